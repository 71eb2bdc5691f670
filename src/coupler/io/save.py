"""Saving a robot to a file of any format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coupler.io.mjcf.write import mjcf_text
from coupler.io.saved_meshes import SavedMeshes
from coupler.io.sdf.write import sdf_text
from coupler.io.urdf.write import urdf_text
from coupler.io.writing import check_names
from coupler.model import ModelError, Robot
from coupler.model.errors import warn
from coupler.model.outputs import check_target, unwritten, written_whole

_WRITERS: dict[str, Callable[[Robot, Path], str]] = {".urdf": urdf_text, ".xml": mjcf_text, ".sdf": sdf_text}


def save(robot: Robot, path: str | Path) -> Path:
    """Writes a robot to a file, as URDF+, MJCF or SDFormat. An existing file is replaced.

    Meshes from outside the file's folder are copied into a folder NAME_meshes beside it, so that the file can be read
    again; for MJCF, STL that is written as text is made binary there. A `ModelWarning` lists meshes that do not exist,
    which are left out.

    Args:
        path: the file to write; its suffix selects the format: ".urdf" (URDF+), ".xml" (MJCF) or ".sdf"
            (SDFormat 1.11).

    Returns:
        The path.

    Raises:
        ModelError: for an unknown suffix, a path that cannot be written to, or something about the robot that the
            format cannot express. Nothing is written then.
    """
    path = check_target(path)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ModelError(
            f"{path}: robots are saved as .urdf (URDF+), .xml (MJCF) or .sdf (SDFormat), not as "
            f"{path.suffix or path.name!r}"
        )
    check_names(robot)
    meshes = SavedMeshes(robot, path, binary=path.suffix.lower() == ".xml")
    try:
        with meshes.copied(), written_whole(path) as file:
            file.write(writer(meshes.robot, path.parent).encode())
    except ModelError:
        raise
    except (OSError, ValueError) as error:
        raise unwritten(path, error) from None
    for warning in meshes.warnings:
        warn(f"robot {robot.name!r}: {warning}")
    return path
