"""Records of the links, joints, loops and couplings of a URDF."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.io.xml import Element
from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    LoopKind,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from coupler.spatial import Transform

__all__ = ["NO_LIMIT", "CouplingPart", "JointPart", "LinkPart", "LoopPart", "axes_and_pitch", "joint_kind"]


NO_LIMIT = 1e30  # written where URDF requires a number and there is no limit


@dataclass(eq=False)
class LinkPart:
    """A link: its inertia, shapes, and whether it is a body, or only a "frame" or "contact" point on another."""

    element: Element
    mass: float = 0.0
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    ideal: bool = False
    role: str = "body"
    shapes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(eq=False)
class JointPart:
    """A joint; its kind is the type in the file, and `properties` are arguments of `Joint`."""

    name: str
    kind: str
    parent: str
    child: str
    at: Transform
    element: Element
    axes: list[np.ndarray] = field(default_factory=lambda: [np.array([1.0, 0.0, 0.0])])
    pitch: float = 0.0
    properties: dict[str, Any] = field(default_factory=dict)
    independent: bool | None = None
    actuated: bool = False
    start: np.ndarray | None = None
    meets: Transform | None = None


@dataclass(eq=False)
class LoopPart:
    """What closes a loop between frames on two links."""

    name: str
    kind: LoopKind
    first: str
    second: str
    at: Transform
    meets: Transform
    element: Element | None = None


@dataclass(eq=False)
class CouplingPart:
    """A relation between joints."""

    name: str
    joints: list[str]
    function: Any
    independent: list[str]
    element: Element | None = None


def axes_and_pitch(element: Element, word: str) -> tuple[list[np.ndarray], float]:
    """The axes that a kind of joint has, x if not given (and y for the second), and the pitch of a screw."""
    tags = ["axis", "axis2"] if word == "universal" else ["axis"]
    given = [element.find(tag) for tag in tags]
    default = np.eye(3)
    axes = [default[i] if axis is None else axis.numbers("xyz", 3) for i, axis in enumerate(given)]
    pitch = element.find("pitch") if word in ("helical", "screw") else None
    return axes, 0.0 if pitch is None else pitch.number("value")


def joint_kind(word: str, axes: list[np.ndarray], pitch: float, properties: dict[str, Any]) -> Joint:
    """A joint from URDF's word for it, its axes and its properties."""
    axis = axes[0]
    match word:
        case "revolute":
            return Revolute(axis=axis, **properties)
        case "continuous":
            return Continuous(axis=axis, **properties)
        case "prismatic":
            return Prismatic(axis=axis, **properties)
        case "fixed":
            return Fixed()
        case "floating" | "free":
            return Free(**properties)
        case "planar":
            return Planar(normal=axis, **properties)
        case "spherical" | "ball":
            return Spherical(**properties)
        case "universal":
            return Universal(first=axis, second=axes[1] if len(axes) > 1 else np.eye(3)[1], **properties)
        case "cylindrical":
            return Cylindrical(axis=axis, **properties)
        case "helical" | "screw":
            return Helical(axis=axis, pitch=pitch, **properties)
    raise ModelError(
        f"there is no joint type {word!r}; there are revolute, continuous, prismatic, fixed, floating, planar, "
        "spherical, universal, cylindrical and helical"
    )
