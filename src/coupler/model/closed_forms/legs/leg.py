"""Legs: chains of joints between two links whose poses are known, solved in closed form.

A leg has an arm on its base link, an arm on its goal link, or both. A ball, a hinge or a rod holds the arms' ends
together. The leg is solved for the positions of the arms' joints. Where the goal is relative to the base follows from
the known positions of a chain of joints between them. Where the ends cannot reach each other, the solution is NaN. The
sign of each square root is the assembly mode of the leg: which of two elbows it has.

Legs have their names from the literature: R rotates, P slides, U is two rotations at right angles, S is a ball.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from coupler.forks import cached_property
from coupler.model.closed_forms.arms import Arm, across, frame_of, is_parallel
from coupler.model.closed_forms.chains import Chain, ChainJoint, Positions
from coupler.model.joints import Revolute
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes
Modes = tuple[float, ...]  # signs of square roots
Limits = Mapping[int, np.ndarray]  # by the number of a joint, 2: its lowest and highest position; infinite for none

NEAR = 1e-12  # m: points closer than this coincide


@dataclass(frozen=True, eq=False)
class Leg(ABC):
    """A leg of a mechanism, and its solution in closed form.

    Attributes:
        base, goal: its arms, one of which may have no joints, each in the frame of the link that carries it.
        chain: the joints between the two links.
        rod: the length of the rod between the arms' ends, m; None where they are held together directly.
        modes: its assembly mode.
    """

    base: Arm
    goal: Arm
    chain: Chain
    rod: float | None
    modes: Modes

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the literature."""

    @classmethod
    @abstractmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        """Whether these arms, held together directly or by a rod of that length, form such a leg."""

    @classmethod
    def with_ball(cls, base: Arm, goal: Arm, chain: Chain) -> tuple[Arm, Arm]:
        """The arms when a ball, which has no axis of its own, holds their ends together; a subclass may set an axis."""
        return base, goal

    @classmethod
    def roots(cls, base: Arm, goal: Arm) -> int:
        """The number of square roots in its solution."""
        return 1

    @classmethod
    def in_all_modes(cls, base: Arm, goal: Arm, chain: Chain, rod: float | None) -> Iterator[Leg]:
        """The leg in each of its assembly modes."""
        for modes in product((1.0, -1.0), repeat=cls.roots(base, goal)):
            yield cls(base, goal, chain, rod, modes)

    def has_dead_points(self, limits: Limits) -> bool:
        """Whether the known joints can fail to determine the others while these stay within their limits."""
        return True

    def turns_of(self, limits: Limits) -> Iterator[tuple[int, float]]:
        """The rotating joints of its arms, and the range around the reference in which their angles are unique, rad.

        An arctangent is unique within half a turn. Where a chain rotates with the arm, its range is subtracted.
        """
        for arm, chain in ((self.base, self.chain.to_base), (self.goal, self.chain.to_goal)):
            for i, (number, kind) in enumerate(zip(arm.joints, arm.kinds, strict=True)):
                rotating_along = chain if i == 0 and self._follows_chain else ()
                used = [_range(limits.get(joint.number), joint.assembled[0]) for joint in rotating_along]
                if kind == "R":
                    yield number, np.pi - float(sum(used))

    _follows_chain: ClassVar[bool] = False  # whether angles of the chain are added to those of its arms

    @abstractmethod
    def solve(self, q: Positions) -> list[Any]:
        """Positions of the joints of both arms, the base's first, for positions q of the chain's joints."""

    def _target(self, q: Positions, frame: Transform, point: np.ndarray) -> Array:
        """A point of the goal link, in a frame of the base link."""
        return frame.E @ (self.chain.from_goal(q, point) - frame.r)

    def _bend(self, q: Positions, arm: Arm, reference: np.ndarray, frame: Transform, vector: Array) -> Any:
        """The position of an arm's first joint that rotates a direction of the arm into a vector.

        Where the chain rotates in the arm's plane, or not at all, the angle is measured against the link that carries
        base and goal, and the chain's own angles are subtracted. It is continuous then, however often the chain turns.

        Args:
            q: positions of the chain's joints.
            arm: the base's or the goal's.
            reference: 3, the direction in the reference pose of the arm, in the frame of the link that carries it.
            frame: a frame of the base.
            vector: 3, in this frame.
        """
        chain, on_goal = self.chain, arm is self.goal
        seen = frame.E.T @ vector  # by the base
        turns = self._turns[on_goal]
        if turns is None:
            if on_goal:
                seen = chain.reversed.from_goal(q, seen, free=True)
            plane = frame_of(arm.axes[0], reference, np.zeros(3)).E
            side = plane @ seen
            return arm.references[0] + np.arctan2(side[1], side[0])
        from_own = chain.reversed if on_goal else chain
        axis, start = (from_own.assembled_carrier @ x for x in (arm.axes[0], reference))
        side = frame_of(axis, start, np.zeros(3)).E @ chain.to_carrier(q, seen)
        angle = arm.references[0] + np.arctan2(side[1], side[0])
        for joint, sign in zip(from_own.to_base, turns, strict=True):
            angle = angle - sign * (q[joint.number][0] - float(joint.assembled[0]))
        return angle

    @cached_property
    def _turns(self) -> tuple[list[float] | None, ...]:
        """For base and goal, the signs of the chain's rotations about its arm's first axis; None if one is not."""
        ways = (self.base, self.chain.to_base), (self.goal, self.chain.to_goal)
        return tuple(_turns(chain, arm.axes[0]) if arm.joints else None for arm, chain in ways)


def _turns(joints: Sequence[ChainJoint], axis: np.ndarray) -> list[float] | None:
    """For joints from a carrier to a link, the sign of each rotation about an axis of the link; None if one is not."""
    signs: list[float] = []
    for joint in reversed(joints):
        if not isinstance(joint.kind, Revolute) or not is_parallel(axis, np.array([0.0, 0.0, 1.0])):
            return None
        signs.append(1.0 if axis[2] > 0.0 else -1.0)
        axis = joint.placement.E.T @ axis
    return signs[::-1]


def turn(v: Array, w: Array) -> Any:
    """The angle from v to w, both of 2, in a plane."""
    return np.arctan2(v[0] * w[1] - v[1] * w[0], v[0] * w[0] + v[1] * w[1])


def length(v: Array) -> float:
    return float(np.linalg.norm(v))


def pointed(h: float, sign: float, w: Array) -> tuple[Any, Any]:
    """Rotates (s, h) about z onto (w₀, w₁), with s of the given sign; returns the angle, and s."""
    square = w[0] * w[0] + w[1] * w[1]
    s = sign * np.sqrt(square - h * h if h else square)
    return (turn((s, h), w) if h else np.arctan2(sign * w[1], sign * w[0])), s


def radius_of(arm: Arm) -> float:
    """The distance of the end of an arm of one joint from its axis, m."""
    return length(across(arm.end - arm.points[0], arm.axes[0]))


def _range(limits: np.ndarray | None, position: float) -> float:
    """How far a joint can move from a position; infinite for a joint of several freedoms, which has no limits."""
    return np.inf if limits is None else float(np.abs(limits - position).max())
