"""Springs and dampers between points of two bodies."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.graph import may_differ
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

_NUMBERS = ("first_point", "second_point", "stiffness", "free_length", "pretension", "damping")


@dataclass(frozen=True, eq=False)
class PointElement:
    """A massless spring, damper, or both in parallel, between points of two bodies.

    It pulls its ends together with the tension T = k (L − L₀) + T₀ + c L̇, where L is the distance between the points.
    [004, eq. 35, whose force is positive when it pushes: T₀, the tension wound into an extension spring, is its −F₀]

    Attributes:
        name: unique in its robot.
        first, second: names of the two bodies; one may be "ground".
        first_point, second_point: 3 each, its ends in the frames of these bodies, m.
        stiffness: k, N/m.
        free_length: L₀, m.
        pretension: T₀, N.
        damping: c, N s/m.
    """

    name: str
    first: str
    second: str
    first_point: Any
    second_point: Any
    stiffness: float = 0.0
    free_length: float = 0.0
    pretension: float = 0.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        for end in ("first_point", "second_point"):
            what = f"spring {self.name!r}: its {end.replace('_', ' ')}"
            object.__setattr__(self, end, numbers(what, getattr(self, end), (3,)))
        for quantity, least in (("stiffness", 0.0), ("free_length", 0.0), ("damping", 0.0), ("pretension", -np.inf)):
            value = numbers(f"spring {self.name!r}: its {quantity}", getattr(self, quantity), (), least=least)
            object.__setattr__(self, quantity, float(value))
        if not (self.stiffness or self.pretension or self.damping):
            raise ModelError(f"spring {self.name!r}: it has neither stiffness nor pretension nor damping")
        if self.first == self.second:
            raise ModelError(f"spring {self.name!r}: both its ends are on body {self.first!r}")

    def numbers(self) -> dict[str, Any]:
        """The numbers of this spring, by name: where springs between the same bodies may differ."""
        return {name: getattr(self, name) for name in _NUMBERS}

    def with_numbers(self, **values: Any) -> PointElement:
        """A copy of this spring with other numbers, or nodes, which are not checked."""
        other = copy(self)
        for name, value in values.items():
            object.__setattr__(other, name, value)
        return other

    def length(self, first: Transform, second: Transform) -> Any:
        """L, m, for the transforms from the world to the two bodies."""
        gap = _place(second, self.second_point) - _place(first, self.first_point)
        return np.sqrt(gap @ gap)

    def energy(self, first: Transform, second: Transform) -> Any:
        """The spring's potential energy ½ k (L − L₀)² + T₀ L, J."""
        if not may_differ([self.free_length, self.pretension]):  # smooth, even where the points meet
            gap = _place(second, self.second_point) - _place(first, self.first_point)
            return 0.5 * self.stiffness * (gap @ gap)
        L = self.length(first, second)
        return 0.5 * self.stiffness * (L - self.free_length) ** 2 + self.pretension * L

    def force(self, first: Transform, first_motion: Array, second: Transform, second_motion: Array) -> Array:
        """The force on the first body; the force on the second is its negative.

        Where the two points coincide, a tension has no direction. What remains of the force there is k times the gap,
        which is zero.

        Args:
            first, second: transforms from the world to each body.
            first_motion, second_motion: spatial velocities of the bodies, each in its own frame.

        Returns:
            A spatial force, 6, about the world's origin in the world's axes.
        """
        p1, p2 = _place(first, self.first_point), _place(second, self.second_point)
        gap = p2 - p1
        pull: Any = self.stiffness * gap
        if may_differ([self.free_length, self.pretension, self.damping]):
            square = gap @ gap
            along = np.where(square > 0.0, gap / np.sqrt(np.where(square > 0.0, square, 1.0)), 0.0)
            pull = pull + (self.pretension - self.stiffness * self.free_length) * along
            if may_differ(self.damping):
                v1 = _velocity(first, first_motion, self.first_point)
                v2 = _velocity(second, second_motion, self.second_point)
                pull = pull + self.damping * (along @ (v2 - v1)) * along
        return np.concatenate([cross(p1, pull), pull])


def _place(X: Transform, point: np.ndarray) -> Array:
    """A point of a body in the world."""
    return X.r + X.E.T @ point


def _velocity(X: Transform, motion: Array, point: np.ndarray) -> Array:
    """The velocity of a point of a body, in the world's axes."""
    return X.E.T @ (motion[3:] + cross(motion[:3], point))
