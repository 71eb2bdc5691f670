"""Loops: what closes a chain of bodies, as functions that are zero when it is closed.

Two kinds of constraint are described here. A `LoopJoint` holds two frames on two bodies together as a joint would; it
looks at the transform X between them. A `Coupling` relates the positions of tree joints: gears, belts, differentials,
racks, or any function of the user's. Either is a plain function of floats or nodes, from which Jacobians and biases are
derived; none is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.joints import Cylindrical, Fixed, Free, Helical, Planar, Prismatic, Revolute, Spherical, Universal
from coupler.spatial import Transform

__all__ = ["Coupling", "LoopJoint", "Rod", "residual_of"]

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False)
class Rod:
    """A massless rod with balls at both ends: the two origins keep their distance.

    Attributes:
        length: m.
    """

    length: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.length) or self.length <= 0.0:
            raise ModelError(f"rod: its length must be finite and positive, got {self.length!r} m")


@dataclass(frozen=True, eq=False)
class LoopJoint:
    """Two frames held together.

    Attributes:
        name: unique in its robot.
        kind: a joint, whose freedoms remain (a ball for point to point, `Fixed` for a weld), or a `Rod`.
        predecessor, successor: names of the two bodies; "ground" is one.
        predecessor_frame, successor_frame: transforms from each body's frame to the frame that is held.
    """

    name: str
    kind: Joint | Rod
    predecessor: str
    successor: str
    predecessor_frame: Transform
    successor_frame: Transform

    def residual(self, X: Transform) -> Array:
        """Zero when closed: see `residual_of`, for X from the predecessor's body to the successor's."""
        return residual_of(self.kind, self.successor_frame @ X @ self.predecessor_frame.inverse())


def residual_of(kind: Joint | Rod, X: Transform) -> Array:
    """What must be zero of the transform X between two frames for this kind of joint to hold them.

    There is one row for each freedom that the joint takes away, in m or as the sine of an angle, and no more. With
    X = (E, r), r is the successor's origin and Eᵀ a the successor's direction a, both seen from the predecessor.

    Two limits: a residual made of sines is zero at half a turn, too, and that of a screw jumps where its angle passes
    ±π; a loop that winds on a screw is better cut elsewhere.
    """
    E, r = X.E, X.r
    if isinstance(kind, Rod):
        return np.array([(r @ r - kind.length**2) / (2.0 * kind.length)])
    if isinstance(kind, Fixed):
        return np.concatenate([r, _turn(E)])
    if isinstance(kind, Spherical):
        return np.asarray(r)
    if isinstance(kind, Universal):
        return np.concatenate([r, np.array([kind.first @ (E.T @ kind.second) - kind.first @ kind.second])])
    if isinstance(kind, Planar):
        return np.concatenate([np.array([kind.normal @ r]), _tilt(E, kind.normal)])
    if isinstance(kind, Free):
        return np.zeros(0)
    if not isinstance(kind, Revolute | Prismatic | Helical | Cylindrical):
        raise ModelError(f"a {kind.kind} joint cannot close a loop")
    across = np.array([side @ r for side in _sides(kind.axis)])
    if isinstance(kind, Revolute):
        return np.concatenate([r, _tilt(E, kind.axis)])
    if isinstance(kind, Prismatic):
        return np.concatenate([across, _turn(E)])
    if isinstance(kind, Helical):
        b, c = _sides(kind.axis)
        turned = E.T @ b
        advance = kind.axis @ r - kind.pitch * np.arctan2(c @ turned, b @ turned)
        return np.concatenate([across, _tilt(E, kind.axis), np.array([advance])])
    return np.concatenate([across, _tilt(E, kind.axis)])


def _sides(axis: np.ndarray) -> np.ndarray:
    """Two directions that make a right-handed frame with the axis; those of coordinates where that is one."""
    return Planar(normal=axis).plane


def _tilt(E: Array, axis: np.ndarray) -> Array:
    """How far the successor's axis leans from the predecessor's, two rows."""
    turned = E.T @ axis
    return np.array([side @ turned for side in _sides(axis)])


def _turn(E: Array) -> Array:
    """The axis of a rotation times the sine of its angle, three rows."""
    return 0.5 * np.array([E[1, 2] - E[2, 1], E[2, 0] - E[0, 2], E[0, 1] - E[1, 0]])


@dataclass(frozen=True, eq=False)
class Coupling:
    """A relation between the positions of tree joints, either solved or not.

    Attributes:
        name: unique in its robot.
        joints: names of all joints it relates, in the order in which the function gives or takes their positions.
        independent: names of those that are free, in the order in which γ takes them; empty for a φ.
        function: γ, which gives all positions from the independent ones, or φ, which is zero when they fit together.
    """

    name: str
    joints: tuple[str, ...]
    independent: tuple[str, ...]
    function: Callable[[Array], Array]

    def __post_init__(self) -> None:
        for names in (self.joints, self.independent):
            if len(set(names)) != len(names):
                raise ModelError(f"coupling {self.name!r}: a joint is named twice in {', '.join(names)}")
        unknown = [joint for joint in self.independent if joint not in self.joints]
        if unknown:
            raise ModelError(f"coupling {self.name!r}: its independent joint {unknown[0]!r} is not among its joints")
        if len(self.joints) < 2 or len(self.independent) >= len(self.joints):
            raise ModelError(f"coupling {self.name!r}: it must relate two joints or more, and leave one dependent")

    @property
    def solved(self) -> bool:
        """Whether the function is a γ."""
        return bool(self.independent)

    def residual(self, positions: Array) -> Array:
        """Zero when the positions of all its joints, in order, fit together."""
        if not self.solved:
            return np.atleast_1d(self.function(positions))
        given = np.array([positions[self.joints.index(joint)] for joint in self.independent])
        computed = self.function(given)
        dependent = [i for i, joint in enumerate(self.joints) if joint not in self.independent]
        return np.array([positions[i] - computed[i] for i in dependent])
