"""Parsing of arguments: what a verb is, and a parser that raises an exception instead of exiting."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from coupler.model import ModelError


class UsageError(Exception):
    """A command that cannot be understood."""


class Parser(ArgumentParser):
    """A parser that accepts no abbreviations and raises `UsageError`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `{self.prog} --help` describes its arguments")

    def options(self) -> list[str]:
        """The names of all options."""
        return [name for name in self._option_string_actions if name.startswith("--")]


@dataclass(frozen=True)
class Verb:
    """A command of the command line.

    Attributes:
        name: the name on the command line.
        about: what the verb does, in one line.
        example: an example of its use.
        add: adds the verb's arguments to a parser.
        run: runs the verb, and returns the exit status.
        more: further lines at the end of its help.
    """

    name: str
    about: str
    example: str
    add: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    more: tuple[str, ...] = ()


def add_file(parser: ArgumentParser, name: str = "FILE") -> None:
    """Adds the argument for the robot, or for a log, and the options for reading the robot's file."""
    robot, log = "a robot: URDF, xacro, MJCF or SDFormat, or the name of a bundled one", "a log: .clog or .npz"
    about = "; or ".join([robot] * (name != "LOG") + [log] * ("LOG" in name))
    parser.add_argument("file", metavar=name, type=_not_empty, help=about)
    group = parser.add_argument_group("reading the file")
    group.add_argument("--closures", metavar="FILE", help="a YAML file with its loops; `none` ignores such files")
    group.add_argument("--floating", action="store_true", help="give it a floating base")
    pair = {"type": _pair, "action": "append", "default": []}
    group.add_argument(
        "--package", metavar="NAME=FOLDER", **pair, help="the folder of package://NAME or model://NAME; may be repeated"
    )
    group.add_argument("--argument", metavar="NAME=VALUE", **pair, help="an argument of a xacro file; may be repeated")
    group.add_argument(
        "--trust", action="store_true", help="expand xacro's macros, which are programs of the file's author"
    )
    group.add_argument(
        "--precision", type=float, metavar="P", help="by how much its numbers are rounded, m or rad; 0 for exact ones"
    )
    group.add_argument(
        "--massless",
        choices=("refuse", "lock"),
        help="what to do with joints that move nothing but links without mass (default: refuse)",
    )
    group.add_argument(
        "--lock-idle", action="store_true", help="lock idle freedoms, such as the spin of a rod between two ball joints"
    )
    group.add_argument(
        "--closure",
        choices=("auto", "analytical", "numerical"),
        help="how loops are closed; auto: analytically, if without dead points",
    )


def add_robot_of_log(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--robot", metavar="FILE", help="the robot of the log (default: the bundled one of the name in the log)"
    )


def add_force(parser: ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="overwrite the file if it is there")


def check_out(out: Path, given: Namespace) -> None:
    """Refuses to overwrite a file, unless the user asks for it."""
    if out.exists() and not given.force:
        raise ModelError(f"{out} exists already; --force overwrites it")


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def file_path(text: str) -> Path:
    """The path of a file that an argument names."""
    return Path(_not_empty(text))


def _not_empty(text: str) -> str:
    if not text:
        raise ArgumentTypeError("it is empty; name a file")
    return text


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ArgumentTypeError(f"{text!r} must have a name and a value, as NAME=VALUE")
    return name, value
