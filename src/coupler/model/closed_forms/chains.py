"""Chains of joints whose positions are known, and places of what they carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.model.joint import Joint
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes
Positions = Sequence[Any]  # of each joint of a mechanism, an array of its nq entries; None while it is not known

_SNAP = 1e-14  # numbers nearer to 0 and ±1 are meant to be that: a trace leaves them out


def snapped(numbers: Any) -> np.ndarray:
    """Numbers without rounding errors about 0 and ±1, for which a trace has shorter expressions."""
    values = np.array(numbers, dtype=float)
    for exact in (0.0, 1.0, -1.0):
        values[np.abs(values - exact) < _SNAP] = exact
    return values


@dataclass(frozen=True, eq=False)
class ChainJoint:
    """A joint in a chain.

    Attributes:
        number: among the joints of the mechanism.
        kind: how it moves.
        placement: transform from the frame of the link that carries it to its own.
        assembled: nq, its position where the mechanism is assembled.
    """

    number: int
    kind: Joint
    placement: Transform
    assembled: np.ndarray

    def outwards(self, q: Positions, vector: Array, free: bool) -> Array:
        """A point, or a free vector, given in the carrying link's frame, as the carried link sees it."""
        X, place = self.kind.transform(q[self.number]), self.placement
        if free:
            return X.E @ (place.E @ vector)
        return X.E @ (place.E @ (vector - place.r) - X.r)

    def inwards(self, q: Positions, vector: Array, free: bool) -> Array:
        """The way back."""
        X, place = self.kind.transform(q[self.number]), self.placement
        if free:
            return place.E.T @ (X.E.T @ vector)
        return place.r + place.E.T @ (X.r + X.E.T @ vector)


@dataclass(frozen=True, eq=False)
class Chain:
    """The joints between two links, a base and a goal, by way of the last link that carries both.

    Attributes:
        to_base: from that link to the base, in this order.
        to_goal: from that link to the goal.
    """

    to_base: tuple[ChainJoint, ...]
    to_goal: tuple[ChainJoint, ...]

    @property
    def joints(self) -> tuple[ChainJoint, ...]:
        return self.to_base + self.to_goal

    @cached_property
    def reversed(self) -> Chain:
        """The same, with base and goal exchanged."""
        return Chain(self.to_goal, self.to_base)

    def from_goal(self, q: Positions, vector: Array, *, free: bool = False) -> Array:
        """A point of the goal, or a free vector, as the base sees it."""
        for joint in reversed(self.to_goal):
            vector = joint.inwards(q, vector, free)
        for joint in self.to_base:
            vector = joint.outwards(q, vector, free)
        return vector

    def to_carrier(self, q: Positions, vector: Array) -> Array:
        """A free vector that the base sees, as the last link sees it that carries both."""
        for joint in reversed(self.to_base):
            vector = joint.inwards(q, vector, free=True)
        return vector

    @cached_property
    def assembled_carrier(self) -> np.ndarray:
        """3 × 3, which takes free vectors to the carrier likewise, where the mechanism is assembled."""
        return self.to_carrier(self.assembled, np.eye(3))

    @property
    def assembled(self) -> Positions:
        """Positions of its joints where the mechanism is assembled."""
        known = {joint.number: joint.assembled for joint in self.joints}
        return [known.get(number) for number in range(max(known, default=-1) + 1)]
