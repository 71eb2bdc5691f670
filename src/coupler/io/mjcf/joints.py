"""MJCF's words for joints and for loops: one table each, by which they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    LoopKind,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)


@dataclass(frozen=True, eq=False)
class Step:
    """A joint of MJCF that stands for a joint of the robot, or for a part of one.

    Attributes:
        type: "hinge", "slide", "ball" or "free".
        axis: direction in the joint's frame; None for a ball and a free joint.
        entries: the entries of the joint's velocity that this step has; empty if the step follows from others.
    """

    type: str
    axis: Any
    entries: list[int]


JOINTS: Mapping[type[Joint], Callable[[Any], list[Step]]] = {
    Fixed: lambda kind: [],
    Revolute: lambda kind: [Step("hinge", kind.axis, [0])],
    Continuous: lambda kind: [Step("hinge", kind.axis, [0])],
    Prismatic: lambda kind: [Step("slide", kind.axis, [0])],
    Helical: lambda kind: [Step("hinge", kind.axis, [0]), Step("slide", kind.axis, [])],
    Cylindrical: lambda kind: [Step("hinge", kind.axis, [0]), Step("slide", kind.axis, [1])],
    Universal: lambda kind: [Step("hinge", kind.first, [0]), Step("hinge", kind.second, [1])],
    Planar: lambda kind: [*(Step("slide", kind.plane[i], [i]) for i in range(2)), Step("hinge", kind.normal, [2])],
    Spherical: lambda kind: [Step("ball", None, [0, 1, 2])],
    Free: lambda kind: [Step("free", None, [0, 1, 2, 3, 4, 5])],
}
# The equalities that hold two frames as each kind of loop does; a revolute loop is held at two points of its axis.
EQUALITIES: Mapping[type[LoopKind], str] = {
    Fixed: "weld",
    Spherical: "connect",
    Revolute: "connect",
    Continuous: "connect",
}


def steps_of(kind: Joint, *, loose: bool = True) -> list[Step]:
    """A joint as one MJCF joint or several in a row. With `loose`, a floating joint is MJCF's free joint.

    MuJoCo allows free joints only for bodies that hang on the world.
    """
    if kind.floats and not loose:
        return [*(Step("slide", axis, [i]) for i, axis in enumerate(np.eye(3), 3)), Step("ball", None, [0, 1, 2])]
    return JOINTS[type(kind)](kind)


def is_axial(kind: Joint) -> bool:
    """Whether a joint is hinges and slides in a row."""
    steps = steps_of(kind)
    return bool(steps) and all(step.axis is not None for step in steps)
