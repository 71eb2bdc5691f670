"""Loading the robot that a command names: a file, or a bundled robot."""

from __future__ import annotations

import os
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from coupler.model import ModelError, ModelWarning, Robot
from coupler.model.wording import clipped, listed
from coupler.robots import load as load_bundled
from coupler.robots import names

_LOGS = (".clog", ".npz")
# Of files that may describe robots.
_SUFFIXES = (".urdf", ".xacro", ".xml", ".sdf", ".world", ".yaml", ".yml", ".json", ".csv")


def load_robot(given: Namespace) -> Robot:
    """The robot that the arguments of `parser.add_file` name: a file if it exists, or a bundled robot.

    Warnings are not shown, but kept in `robot.warnings`.

    Raises:
        ModelError: for a file that does not exist, or does not describe a robot.
    """
    path = Path(given.file)
    if not os.path.exists(path) or os.path.isdir(path):
        return _bundled(given, path)
    if is_log(given.file):
        raise ModelError(f"{path}: it is a log, not a robot; `coupler log {path}` describes it")
    return load_file(
        path,
        closures=False if given.closures == "none" else given.closures,
        floating=given.floating,
        packages=dict(given.package),
        lock_idle=given.lock_idle,
        arguments=dict(given.argument),
        xacro=given.trust,
        precision=given.precision,
        massless=given.massless or "refuse",
        closure=given.closure or "auto",
    )


def is_log(name: str) -> bool:
    """Whether a file is a log of a run, by its suffix."""
    return Path(name).suffix.lower() in _LOGS


def load_with_log(given: Namespace, needed: bool = True) -> tuple[Any, Any]:
    """The robot of a log, and the log, from the arguments of `parser.add_file` and `parser.add_robot_of_log`.

    Args:
        needed: whether a log whose robot is not known is an error; otherwise the robot is None then.

    Raises:
        ModelError: for a log that cannot be read, and for a robot that is not known or not that of the log.
    """
    from coupler.simulate import Log

    log = Log.load(given.file)
    if given.robot is not None:
        robot = load_robot(Namespace(**{**vars(given), "file": given.robot}))
    elif log.robot in names():
        robot = load_bundled(log.robot)
    elif needed:
        raise ModelError(f"{given.file}: it is a log of robot {log.robot!r}; name the robot's file with --robot FILE")
    else:
        return None, log
    if robot.independent_joints != list(log.joints):
        if not needed and given.robot is None:
            return None, log
        raise ModelError(
            f"{given.file}: it was recorded with robot {log.robot!r}, whose joints differ from those of "
            f"{robot.name!r}; name the recorded robot with --robot FILE"
        )
    floor = any(contact.split(",")[0].endswith(" on floor") for contact in log.contacts)
    return robot.with_floor() if floor and not any(s.name == "floor" for s in robot.shapes) else robot, log


def load_file(path: Path, **options: Any) -> Robot:
    """The robot in a file, with all warnings kept in `robot.warnings` instead of shown."""
    from coupler.io.load import load

    with caught_warnings() as messages:
        robot = load(path, **options)
    # `load` shows all of a robot's warnings as one
    others = (text for text in messages if not any(warning in text for warning in robot.warnings))
    return replace(robot, warnings=(*robot.warnings, *others))


@contextmanager
def caught_warnings() -> Iterator[list[str]]:
    """Collects the texts of all `ModelWarning`s; other warnings are shown as usual."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        yield messages
    for warning in caught:
        if issubclass(warning.category, ModelWarning):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _bundled(given: Namespace, path: Path) -> Robot:
    if given.file not in names():
        raise ModelError(_missing(given.file, path))
    for option in (
        "closures",
        "floating",
        "package",
        "argument",
        "trust",
        "precision",
        "massless",
        "lock_idle",
        "closure",
    ):
        if getattr(given, option) not in (None, False, []):
            raise ModelError(f"{given.file!r} is a bundled robot: --{option.replace('_', '-')} is for files only")
    return load_bundled(given.file)


def _missing(name: str, path: Path) -> str:
    """The message for a robot that does not exist, with similar names of files in the folder and of bundled robots."""
    if os.path.isdir(path):
        inside = [str(file) for file in sorted(path.iterdir()) if file.suffix in _SUFFIXES]
        return f"{name} is a folder" + (f"; name a file in it: {listed(inside)}" if inside else " without robot files")
    folder = path.parent
    files = [file.name for file in folder.iterdir() if file.suffix in _SUFFIXES] if os.path.isdir(folder) else []
    similar = [str(folder / file) for file in get_close_matches(path.name, files, n=3)]
    similar += get_close_matches(path.name.lower(), names(), n=3)
    hint = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
    bundled = ", ".join(names())
    return f"there is no file {clipped(name)}, and no bundled robot of this name.{hint} Bundled robots: {bundled}"
