"""Records of the links, joints, loops and couplings of a URDF."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.io.urdf.joints import joint_kind
from coupler.io.xml import Element
from coupler.model import LoopKind
from coupler.spatial import Transform

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

    def fix(self, position: float = 0.0) -> None:
        """Makes the joint a fixed one, at a position; joints with several freedoms can be fixed at zero only."""
        if position:
            self.at = joint_kind(self.kind, self.axes, self.pitch, {}).transform(np.array([position])) @ self.at
        self.kind, self.properties, self.start, self.actuated = "fixed", {}, None, False


@dataclass(eq=False)
class LoopPart:
    """A loop between frames on two links."""

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
