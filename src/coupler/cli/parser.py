"""How arguments are understood: what a verb is, and a parser that raises instead of leaving."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

__all__ = ["Parser", "UsageError", "Verb", "add_file", "add_json"]


class UsageError(Exception):
    """A command that cannot be understood."""


class Parser(ArgumentParser):
    """A parser that takes no abbreviations, and whose errors are exceptions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `{self.prog} --help` tells more")

    def options(self) -> list[str]:
        """What options there are."""
        return [name for name in self._option_string_actions if name.startswith("--")]


@dataclass(frozen=True)
class Verb:
    """A thing that the command line can do.

    Attributes:
        name: how it is called.
        about: what it does, in a line.
        example: of its use.
        add: adds its arguments to a parser.
        run: does it, and returns the exit status.
        more: lines that its help ends with.
    """

    name: str
    about: str
    example: str
    add: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    more: tuple[str, ...] = ()


def add_file(parser: ArgumentParser, name: str = "FILE") -> None:
    """The robot that a verb is about, and how it is to be read."""
    parser.add_argument("file", metavar=name, help="a robot: URDF, xacro or MJCF, or the name of a bundled one")
    group = parser.add_argument_group("reading the file")
    group.add_argument(
        "--closures", metavar="FILE", help="what closes its loops; `none`: nothing, whatever lies beside it"
    )
    group.add_argument("--floating", action="store_true", help="its base floats")
    pair = {"type": _pair, "action": "append", "default": []}
    group.add_argument("--package", metavar="NAME=FOLDER", **pair, help="where package://NAME is; may come repeatedly")
    group.add_argument("--argument", metavar="NAME=VALUE", **pair, help="of a xacro file; may come repeatedly")
    group.add_argument("--lock-idle", action="store_true", help="lock motions that nothing else takes part in")


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ArgumentTypeError(f"{text!r} must have a name and a value, as NAME=VALUE")
    return name, value
