"""Saving a robot to a file of any format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coupler.files import whole_file
from coupler.io.mjcf.write import mjcf_text
from coupler.io.urdf.write import urdf_text
from coupler.model import ModelError, Robot
from coupler.model.wording import listed

__all__ = ["save"]

_WRITERS: dict[str, Callable[[Robot, Path], str]] = {".urdf": urdf_text, ".xml": mjcf_text}


def save(robot: Robot, path: str | Path) -> Path:
    """Writes a robot to a file, as URDF+ or MJCF. An existing file is replaced.

    Args:
        robot: the robot to save.
        path: the file to write; its suffix selects the format: ".urdf" (URDF+) or ".xml" (MJCF).

    Returns:
        The path.

    Raises:
        ModelError: for an unknown suffix, a path that cannot be written to, or something about the robot that the
            format cannot express. Nothing is written then.
    """
    path = Path(path)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ModelError(
            f"{path}: a robot is saved to {listed(_WRITERS)}, for URDF and MJCF, not to {path.suffix or path.name!r}"
        )
    if path.is_dir():
        raise ModelError(f"{path}: it is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ModelError(f"{path}: there is no folder {path.parent}; make it first")
    text = writer(robot, path.parent)
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise ModelError(f"{path}: it cannot be written: {error.strerror or error}") from None
    return path
