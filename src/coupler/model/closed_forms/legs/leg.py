"""Legs: chains of joints between two links whose places are known, solved in closed form.

A leg has an arm on its base, an arm on its goal, or both. The arms' ends are held together, by a ball, a hinge or a
rod. What the leg solves for are the positions of the arms' joints; where the goal is against the base follows from the
joints of a chain, whose positions are known. Where the ends cannot reach each other, positions are NaN. Every square
root has a sign, the assembly mode of the leg: which of two elbows it has.

Names of legs are those of the literature: R turns, P slides, U is a pair of turns at right angles, S is a ball.
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
Limits = Mapping[int, np.ndarray]  # by the number of each joint, 2: its least and largest position; infinite for none

NEAR = 1e-12  # m: what is nearer than this is in the same place


@dataclass(frozen=True, eq=False)
class Leg(ABC):
    """One leg.

    Attributes:
        base, goal: its arms, of which one may have no joints; each as the link sees it that carries it.
        chain: the joints between the two links.
        rod: the length of the rod between the arms' ends, m; None where they are held directly.
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
        """What the literature calls it."""

    @classmethod
    @abstractmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        """Whether these arms, held together directly or by a rod of some length, make such a leg."""

    @classmethod
    def held(cls, base: Arm, goal: Arm, chain: Chain) -> tuple[Arm, Arm]:
        """The same arms, if a ball holds their ends, which has no axis of its own."""
        return base, goal

    @classmethod
    def roots(cls, base: Arm, goal: Arm) -> int:
        """How many square roots it has."""
        return 1

    @classmethod
    def in_all_modes(cls, base: Arm, goal: Arm, chain: Chain, rod: float | None) -> Iterator[Leg]:
        """The leg in each of its assembly modes."""
        for modes in product((1.0, -1.0), repeat=cls.roots(base, goal)):
            yield cls(base, goal, chain, rod, modes)

    def has_dead_points(self, limits: Limits) -> bool:
        """Whether the known joints may fail to determine the others, while its own keep within their limits."""
        return True

    def turns_of(self, limits: Limits) -> Iterator[tuple[int, float]]:
        """The joints that it turns, and how far from reference it can tell how far they are turned, rad.

        Beyond half a turn, an angle is the same as one on the other side. A chain that turns with the arm uses that up.
        """
        for arm, chain in ((self.base, self.chain.to_base), (self.goal, self.chain.to_goal)):
            for i, (number, kind) in enumerate(zip(arm.joints, arm.kinds, strict=True)):
                turning = chain if i == 0 and self._follows_chain else ()
                used = [_reach(limits.get(joint.number), joint.assembled[0]) for joint in turning]
                if kind == "R":
                    yield number, np.pi - float(sum(used))

    _follows_chain: ClassVar[bool] = False  # whether angles of the chain are added to those of its arms

    @abstractmethod
    def solve(self, q: Positions) -> list[Any]:
        """Positions of the joints of both arms, the base's first, for those of the chain's joints."""

    def _target(self, q: Positions, frame: Transform, point: np.ndarray) -> Array:
        """A point of the goal in a frame of the base."""
        return frame.E @ (self.chain.from_goal(q, point) - frame.r)

    def _bend(self, q: Positions, arm: Arm, reference: np.ndarray, frame: Transform, vector: Array) -> Any:
        """The position of an arm's first joint that turns a direction of the arm into a vector.

        Where the chain turns in the arm's plane, or not at all, the angle is measured against the link that carries
        base and goal, and the chain's own angles are added: it is continuous then, however often the chain turns.

        Args:
            q: positions of the chain's joints.
            arm: one of the leg's own.
            reference: 3, the direction as the link sees it that carries the arm, where it is bent for reference.
            frame: of the base.
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
        """Of base and goal, in which way the chain's joints turn about the first axis of its arm, if all do."""
        ways = (self.base, self.chain.to_base), (self.goal, self.chain.to_goal)
        return tuple(_turns(chain, arm.axes[0]) if arm.joints else None for arm, chain in ways)


def _turns(joints: Sequence[ChainJoint], axis: np.ndarray) -> list[float] | None:
    """For joints from a carrier to a link, in which way each turns about an axis of the link; None if one does not."""
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
    """Turns (s, h), with s of the given sign, about z until it is above (w₀, w₁); the angle, and s."""
    square = w[0] * w[0] + w[1] * w[1]
    s = sign * np.sqrt(square - h * h if h else square)
    return (turn((s, h), w) if h else np.arctan2(sign * w[1], sign * w[0])), s


def radius_of(arm: Arm) -> float:
    """How far the end of an arm of one joint is from its axis."""
    return length(across(arm.end - arm.points[0], arm.axes[0]))


def _reach(limits: np.ndarray | None, position: float) -> float:
    """How far a joint moves from a position at the most; one of several freedoms has no limits, and moves anywhere."""
    return np.inf if limits is None else float(np.abs(limits - position).max())
