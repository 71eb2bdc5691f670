"""The robot that a command is about: a file, or a bundled one."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from coupler.model import ModelError, ModelWarning, Robot
from coupler.model.words import listed
from coupler.robots import load as load_bundled
from coupler.robots import names

__all__ = ["heard", "load_robot", "quietly"]

_ROBOTS = (".urdf", ".xacro", ".xml")  # files that may be robots


def load_robot(given: Namespace) -> Robot:
    """The robot of `parser.add_file`: a file if there is such a one, else a bundled robot.

    What is warned of meanwhile is in `robot.warnings`, and not shown.

    Raises:
        ModelError: for a file that there is not, or that is no robot.
    """
    path = Path(given.file)
    if not path.is_file():
        return _bundled(given, path)
    return quietly(
        path,
        closures=False if given.closures == "none" else given.closures,
        floating=given.floating,
        packages=dict(given.package),
        lock_idle=given.lock_idle,
        arguments=dict(given.argument),
    )


def quietly(path: Path, **options: Any) -> Robot:
    """The robot of a file, with all that is warned of in `robot.warnings` instead of shown."""
    from coupler.io.load import load

    with heard() as said:
        robot = load(path, **options)
    told = "; ".join(robot.warnings)
    return replace(robot, warnings=(*robot.warnings, *(text for text in said if not told or told not in text)))


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collects what is warned of about models; other warnings go their way."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        yield said
    for warning in caught:
        if issubclass(warning.category, ModelWarning):
            said.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _bundled(given: Namespace, path: Path) -> Robot:
    if given.file not in names():
        raise ModelError(_missing(given.file, path))
    for option in ("closures", "floating", "package", "argument", "lock_idle"):
        if getattr(given, option):
            raise ModelError(f"{given.file!r} is a bundled robot: --{option.replace('_', '-')} is for files only")
    return load_bundled(given.file)


def _missing(name: str, path: Path) -> str:
    """That there is no such robot, and what else may be meant: files of the same folder, and bundled robots."""
    if path.is_dir():
        inside = [str(found) for found in sorted(path.iterdir()) if found.suffix in _ROBOTS]
        return f"{name} is a folder; " + (f"robots in it may be {listed(inside)}" if inside else "no robot is in it")
    folder = path.parent
    files = [found.name for found in folder.iterdir() if found.suffix in _ROBOTS] if folder.is_dir() else []
    near = [str(folder / found) for found in get_close_matches(path.name, files, n=3)]
    near += get_close_matches(path.name.lower(), names(), n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"there is no file {name!r}, nor a bundled robot of this name; {hint}Bundled are {', '.join(names())}"
