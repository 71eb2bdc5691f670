"""Chains of joints whose positions are known, and points and directions seen along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.model.joint import Joint
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes
Positions = Sequence[Any]  # by the number of a joint, an array of its nq entries; None while it is unknown

_SNAP = 1e-14  # numbers this close to 0 and ±1 are meant to be exact; a trace then leaves them out


def snapped(numbers: Any) -> np.ndarray:
    """Numbers, with those within rounding of 0 and ±1 made exact, which shortens traces."""
    values = np.array(numbers, dtype=float)
    for exact in (0.0, 1.0, -1.0):
        values[np.abs(values - exact) < _SNAP] = exact
    return values


@dataclass(frozen=True, eq=False)
class ChainJoint:
    """A joint in a chain.

    Attributes:
        number: its number in the mechanism.
        kind: how it moves.
        placement: transform from the frame of the link that carries it to its own.
        assembled: nq, its position in the assembled pose.
    """

    number: int
    kind: Joint
    placement: Transform
    assembled: np.ndarray

    def outwards(self, q: Positions, vector: Array, free: bool) -> Array:
        """A point or a free vector given in the carrying link's frame, in the carried link's frame."""
        X, place = self.kind.transform(q[self.number]), self.placement
        if free:
            return X.E @ (place.E @ vector)
        return X.E @ (place.E @ (vector - place.r) - X.r)

    def inwards(self, q: Positions, vector: Array, free: bool) -> Array:
        """The inverse of `outwards`."""
        X, place = self.kind.transform(q[self.number]), self.placement
        if free:
            return place.E.T @ (X.E.T @ vector)
        return place.r + place.E.T @ (X.r + X.E.T @ vector)


@dataclass(frozen=True, eq=False)
class Chain:
    """The joints between two links, a base and a goal, by way of their last common carrier.

    Attributes:
        to_base: from the carrier to the base, in this order.
        to_goal: from the carrier to the goal.
    """

    to_base: tuple[ChainJoint, ...]
    to_goal: tuple[ChainJoint, ...]

    @property
    def joints(self) -> tuple[ChainJoint, ...]:
        return self.to_base + self.to_goal

    @cached_property
    def reversed(self) -> Chain:
        """This chain with base and goal exchanged."""
        return Chain(self.to_goal, self.to_base)

    def from_goal(self, q: Positions, vector: Array, *, free: bool = False) -> Array:
        """A point or a free vector given in the goal's frame, in the base's frame."""
        for joint in reversed(self.to_goal):
            vector = joint.inwards(q, vector, free)
        for joint in self.to_base:
            vector = joint.outwards(q, vector, free)
        return vector

    def to_carrier(self, q: Positions, vector: Array) -> Array:
        """A free vector given in the base's frame, in the carrier's frame."""
        for joint in reversed(self.to_base):
            vector = joint.inwards(q, vector, free=True)
        return vector

    @cached_property
    def assembled_carrier(self) -> np.ndarray:
        """3 × 3, the matrix of `to_carrier` in the assembled pose."""
        return self.to_carrier(self.assembled, np.eye(3))

    @property
    def assembled(self) -> Positions:
        """Positions of its joints in the assembled pose."""
        known = {joint.number: joint.assembled for joint in self.joints}
        return [known.get(number) for number in range(max(known, default=-1) + 1)]
