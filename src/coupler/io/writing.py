"""What writers of robot files share: elements, numbers, rotations and paths as text."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Container
from pathlib import Path
from typing import Any

import numpy as np

from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Hull,
    LoopKind,
    Mesh,
    ModelError,
    Plane,
    Robot,
    Sphere,
)
from coupler.model.wording import listed

_GEOMETRIES = (Box, Capsule, Cylinder, Ellipsoid, HeightField, Hull, Mesh, Plane, Sphere)
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def put(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """Adds an element. An attribute that is None is left out; `as_` is written as="..."."""
    given = {name.rstrip("_"): text(value) for name, value in attributes.items() if value is not None}
    return ET.SubElement(parent, tag, given)


def text(value: Any) -> str:
    """A value as text: strings unchanged, booleans as true or false, numbers with all their digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(repr(float(x) + 0.0).removesuffix(".0") for x in np.ravel(value))


def document(root: ET.Element) -> str:
    """The text of the file whose root is this element."""
    ET.indent(root)
    return f'<?xml version="1.0"?>\n{ET.tostring(root, encoding="unicode")}\n'


def check_names(robot: Robot) -> None:
    """Refuses names that XML cannot hold, and names with blanks at their ends, which readers strip."""
    parts = (*robot.joints, *robot.loops, *robot.couplings, *robot.elements, *robot.shapes, *robot.actuators)
    names = [robot.name, *robot.bodies, *robot.frame_names, *robot.keyframes, *(part.name for part in parts)]
    odd = [name for name in names if _NO_XML.search(name) or name != name.strip()]
    if odd:
        raise ModelError(
            f"robot {robot.name!r} cannot be written: no file can hold the name {listed(odd)}, which has control "
            "characters or blanks at its ends; rename it"
        )


def check_kinds(
    format: str, robot: Robot, joints: Container[type[LoopKind]], loops: Container[type[LoopKind]] | None = None
) -> None:
    """Refuses joints and shapes that a format has no words for.

    A subclass of a joint is not the kind that it is derived from; one of a shape has the same surface.

    Args:
        format: the name of the format.
        robot: the robot to be written.
        joints, loops: the classes of joints and of loops that can be written; any loops if not given.
    """
    named: list[tuple[str, str, LoopKind, Any]] = [("joint", joint.name, joint.kind, joints) for joint in robot.joints]
    named += [("loop", loop.name, loop.kind, loops) for loop in robot.loops if loops is not None]
    for what, name, kind, written in named:
        if type(kind) not in written:
            cls = f"{type(kind).__module__}.{type(kind).__qualname__}"
            ours = type(kind).__module__.startswith("coupler.")  # which URDF+ has words for
            way_out = "save the robot as .urdf, which has one" if ours else "keep the robot as Python code"
            raise ModelError(
                f"{what} {name!r}: {format} has no word for its kind, {kind.kind} (class {cls}); {way_out}"
            )
    for shape in robot.shapes:
        if not isinstance(shape.geometry, _GEOMETRIES):
            raise ModelError(
                f"shape {shape.name!r} on body {shape.body!r}: {format} has no word for its geometry, "
                f"{type(shape.geometry).__name__}; give it as Hull(points), or keep the robot as Python code"
            )


def rpy_of(R: np.ndarray) -> np.ndarray:
    """Roll, pitch and yaw with Rz Ry Rx = R, accurate also near a pitch of a quarter turn.

    There roll and yaw turn about the same axis: yaw is read off first, however inaccurate, then the others given it.
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def mesh_path(path: Path, folder: Path) -> str:
    """A mesh's path relative to the folder of the robot's file, or absolute if there is no such path."""
    whole = Path(path).resolve()
    try:
        return Path(os.path.relpath(whole, folder.resolve())).as_posix()
    except ValueError:  # another drive
        return whole.as_posix()
