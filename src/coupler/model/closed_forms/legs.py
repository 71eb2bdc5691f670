"""Legs: chains of joints between two links whose places are known, solved in closed form.

A leg has an arm on its base, an arm on its goal, or both. The arms' ends are held together, by a ball, a hinge or a
rod. What the leg solves for are the positions of the arms' joints; where the goal is against the base follows from the
joints of a chain, whose positions are known. Where the ends cannot reach each other, positions are NaN. Every square
root has a sign, the assembly mode of the leg: which of two elbows it has.

Names of legs are those of the literature: R turns, P slides, U is a pair of turns at right angles, S is a ball.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from coupler.model.closed_forms.arms import Arm, across, frame_of, is_parallel, is_square
from coupler.model.closed_forms.chains import Chain, ChainJoint, Positions, snapped
from coupler.model.joints import Revolute
from coupler.spatial import Transform

__all__ = ["LEGS", "Leg"]

Array = Any  # an ndarray of floats, or of nodes
Modes = tuple[float, ...]  # signs of square roots

_NEAR = 1e-12  # m: what is nearer than this is in the same place


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

    dead_points: ClassVar[bool] = True  # whether, in its workspace, the known joints may fail to determine the others

    @property
    @abstractmethod
    def name(self) -> str:
        """What the literature calls it."""

    @classmethod
    @abstractmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        """Whether these arms, held together directly or by a rod of some length, make such a leg."""

    @classmethod
    def roots(cls, base: Arm, goal: Arm) -> int:
        """How many square roots it has."""
        return 1

    @classmethod
    def in_all_modes(cls, base: Arm, goal: Arm, chain: Chain, rod: float | None) -> Iterator[Leg]:
        """The leg in each of its assembly modes."""
        for modes in product((1.0, -1.0), repeat=cls.roots(base, goal)):
            yield cls(base, goal, chain, rod, modes)

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
        own, other = (chain.to_goal, chain.to_base) if on_goal else (chain.to_base, chain.to_goal)
        seen = frame.E.T @ vector  # by the base
        turns = _turns(own, arm.axes[0])
        if turns is None:
            if on_goal:
                seen = chain.reversed().from_goal(q, seen, free=True)
            plane = frame_of(arm.axes[0], reference, np.zeros(3)).E
            side = plane @ seen
            return arm.references[0] + np.arctan2(side[1], side[0])
        from_own = Chain(own, other)
        axis, start = (from_own.to_carrier(chain.assembled, x) for x in (arm.axes[0], reference))
        side = frame_of(axis, start, np.zeros(3)).E @ chain.to_carrier(q, seen)
        angle = arm.references[0] + np.arctan2(side[1], side[0])
        for joint, sign in zip(own, turns, strict=True):
            angle = angle - sign * (q[joint.number][0] - float(joint.assembled[0]))
        return angle


def _turns(joints: Sequence[ChainJoint], axis: np.ndarray) -> list[float] | None:
    """For joints from a carrier to a link, in which way each turns about an axis of the link; None if one does not."""
    signs: list[float] = []
    for joint in reversed(joints):
        if not isinstance(joint.kind, Revolute) or not is_parallel(axis, np.array([0.0, 0.0, 1.0])):
            return None
        signs.append(1.0 if axis[2] > 0.0 else -1.0)
        axis = joint.placement.E.T @ axis
    return signs[::-1]


def _turn(v: Array, w: Array) -> Any:
    """The angle from v to w, both of 2, in a plane."""
    return np.arctan2(v[0] * w[1] - v[1] * w[0], v[0] * w[0] + v[1] * w[1])


def _length(v: Array) -> float:
    return float(np.linalg.norm(v))


def _pointed(h: float, sign: float, w: Array) -> tuple[Any, Any]:
    """Turns (s, h), with s of the given sign, about z until it is above (w₀, w₁); the angle, and s."""
    square = w[0] * w[0] + w[1] * w[1]
    s = sign * np.sqrt(square - h * h if h else square)
    return (_turn((s, h), w) if h else np.arctan2(sign * w[1], sign * w[0])), s


class Slide(Leg):
    """A joint that slides along an arm that turns in a plane, RPR, or points anywhere, SPU: a linear actuator.

    With u the direction of the slide and f the distance of its line from the last axis, the end is at (√(w² − f²), f)
    along and across u when it is at the distance w from that axis. How the arm turns follows.
    """

    dead_points = False

    @property
    def name(self) -> str:
        if self.base.kinds == "RP":
            return "RPR"
        offset = np.cross(*self.base.axes[:2]) @ (self.base.points[1] - self.base.points[0])
        return "SPU" if abs(offset) < _NEAR and _length(self._hinge) < _NEAR else "SPRR"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if rod is not None or goal.kinds or base.kinds not in ("RP", "RRP"):
            return False
        return is_square(base.axes[-1], base.axes[-2]) and (base.kinds == "RP" or is_square(*base.axes[:2]))

    @classmethod
    def roots(cls, base: Arm, goal: Arm) -> int:
        return len(base.kinds) - 1

    @property
    def _frame(self) -> Transform:
        """Of an arm that points anywhere: z along its first axis, y along the second, which passes at z = 0."""
        z, y = self.base.axes[:2]
        height = (self.base.points[1] - self.base.points[0]) @ z
        return frame_of(z, np.cross(y, z), self.base.points[0] + height * z)

    @property
    def _hinge(self) -> np.ndarray:
        """Where the second axis passes beside the first, along x."""
        return snapped((self._frame.E @ (self.base.points[1] - self._frame.r))[:1])

    def solve(self, q: Positions) -> list[Any]:
        if self.base.kinds == "RP":
            frame = frame_of(self.base.axes[0], self.base.axes[1], self.base.points[0])
            end = snapped(frame.E @ (self.base.end - frame.r))
            angle, slide = self._extended(end[:2], self._target(q, frame, self.goal.end)[:2])
            return [self.base.references[0] + angle, slide]
        frame = self._frame
        w, end = self._target(q, frame, self.goal.end), snapped(frame.E @ (self.base.end - frame.r))
        first, s = _pointed(float(end[1]), self.modes[1], w)
        u = snapped(frame.E @ self.base.axes[2])
        along, sideways = (u[2], u[0]), (-u[0], u[2])  # in the plane of z and x, through which y points
        plane = np.array([w[2], s - self._hinge[0]])
        here = np.array([end[2], end[0] - self._hinge[0]])
        along_and_across = [np.array([np.dot(d, v) for d in (along, sideways)]) for v in (here, plane)]
        second, slide = self._extended(snapped(along_and_across[0]), along_and_across[1])
        return [self.base.references[0] + first, self.base.references[1] + second, slide]

    def _extended(self, end: np.ndarray, w: Array) -> tuple[Any, Any]:
        """Angle and slide for an end to get to w, in a plane around the last axis with x along the slide."""
        f = float(end[1])
        square = w[0] * w[0] + w[1] * w[1]
        x = self.modes[0] * np.sqrt(square - f * f if f else square)
        angle = _turn((x, f), w) if f else np.arctan2(self.modes[0] * w[1], self.modes[0] * w[0])
        return angle, x - end[0]


class Elbow(Leg):
    """Two turns in a plane, RRR: one after the other on the base, or one on each side.

    The elbow C is at the distances l₁ and l₂ from two known points, the origin and t: C = α t + β t⊥, with
    α = (t² + l₁² − l₂²) / 2t² and β = ± √(l₁²/t² − α²).
    """

    @property
    def name(self) -> str:
        return "RRR"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if rod is not None or (base.kinds, goal.kinds) not in (("RR", ""), ("R", "R")):
            return False
        if goal.kinds:
            lengths = _length(across(base.end - base.points[0], base.axes[0])), _radius(goal)
        elif not is_parallel(*base.axes):
            return False
        else:
            vectors = base.points[1] - base.points[0], base.end - base.points[1]
            lengths = tuple(_length(across(vector, base.axes[0])) for vector in vectors)
        return min(lengths) > _NEAR

    def solve(self, q: Positions) -> list[Any]:
        arm, two = self.base, not self.goal.kinds
        elbow = arm.points[1] if two else arm.end
        frame = frame_of(arm.axes[0], elbow - arm.points[0], arm.points[0])
        first = _length(across(elbow - arm.points[0], arm.axes[0]))
        t = self._target(q, frame, self.goal.end if two else self.goal.points[0])[:2]
        forearm = snapped((frame.E @ (arm.end - elbow))[:2]) if two else np.array([_radius(self.goal), 0.0])
        square = t[0] * t[0] + t[1] * t[1]
        alpha = 0.5 + (0.5 * (first**2 - forearm @ forearm)) / square
        beta = self.modes[0] * np.sqrt(first**2 / square - alpha * alpha)
        C = np.array([alpha * t[0] - beta * t[1], alpha * t[1] + beta * t[0]])
        angle = self._bend(q, arm, elbow - arm.points[0], frame, np.array([C[0], C[1], 0.0]))
        rest = t - C
        if two:  # as the upper arm sees it, whose x axis is along C
            turned = np.array([C[0] * rest[0] + C[1] * rest[1], C[0] * rest[1] - C[1] * rest[0]])
            direction = 1.0 if arm.axes[0] @ arm.axes[1] > 0.0 else -1.0
            return [angle, arm.references[1] + direction * _turn(forearm, turned)]
        back = np.array([-rest[0], -rest[1], 0.0])
        return [angle, self._bend(q, self.goal, self.goal.end - self.goal.points[0], frame, back)]


def _radius(arm: Arm) -> float:
    """How far the end of an arm of one joint is from its axis."""
    return _length(across(arm.end - arm.points[0], arm.axes[0]))


class SlidingElbow(Leg):
    """A slide and a turn in a plane, PRR or P-RR: the crank and rod of an engine, seen from the crank.

    The end of the slide is at the distance l from a known point t: at x = t₀ ± √(l² − t₁²) along the slide.
    """

    @property
    def name(self) -> str:
        return "PRR"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if rod is not None or (base.kinds, goal.kinds) not in (("PR", ""), ("P", "R")):
            return False
        if goal.kinds:
            return _radius(goal) > _NEAR
        return is_square(*base.axes) and _length(across(base.end - base.points[1], base.axes[1])) > _NEAR

    def solve(self, q: Positions) -> list[Any]:
        arm, two = self.base, not self.goal.kinds
        hinge = arm.points[1] if two else arm.end
        if two:
            frame = frame_of(arm.axes[1], arm.axes[0], hinge)
            t = self._target(q, frame, self.goal.end)
            rod = snapped((frame.E @ (arm.end - hinge))[:2])
            t, length = t[:2], _length(rod)
            x = t[0] + self.modes[0] * np.sqrt(length**2 - t[1] * t[1])
            return [x, arm.references[1] + _turn(rod, np.array([t[0] - x, t[1]]))]
        frame = frame_of(arm.axes[0], np.zeros(3), hinge)  # here z is along the slide
        t = self._target(q, frame, self.goal.points[0])
        height = self._target_axis(q, frame)
        aside = t - (t @ height) * height  # in the plane of motion
        x = aside[2] + self.modes[0] * np.sqrt(_radius(self.goal) ** 2 - aside[0] * aside[0] - aside[1] * aside[1])
        back = np.array([-aside[0], -aside[1], x - aside[2]])
        return [x, self._bend(q, self.goal, self.goal.end - self.goal.points[0], frame, back)]

    def _target_axis(self, q: Positions, frame: Transform) -> Array:
        """The axis of the goal's arm, in a frame of the base."""
        return frame.E @ self.chain.from_goal(q, self.goal.axes[0], free=True)


class Crank(Leg):
    """A crank with a rod to a ball: RSS, where the rod has no mass, or RUS, on either side of which the rod may hang.

    With e the radius of the crank and t the point that the rod leads to, both in the crank's plane, the rod's length l
    demands t₀ cos θ + t₁ sin θ = c, where 2 e c = e² + t² + h² − l² and h is how far t is above the crank's tip.
    """

    @property
    def name(self) -> str:
        return "RUS" if len(self.base.kinds + self.goal.kinds) > 1 else "RSS"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if (base.kinds, goal.kinds) == ("R", "") and rod is not None:
            return _radius(base) > _NEAR
        if rod is not None or (base.kinds, goal.kinds) not in (("RRR", ""), ("R", "RR")):
            return False
        pair = goal if goal.kinds else base
        axes, points = pair.axes[-2:], pair.points[-2:]
        if not is_square(*axes) or abs(np.cross(*axes) @ (points[1] - points[0])) > _NEAR:
            return False
        tip = base.end if goal.kinds else _centre(base)
        return _length(across(tip - base.points[0], base.axes[0])) > _NEAR

    @classmethod
    def roots(cls, base: Arm, goal: Arm) -> int:
        return min(len(base.kinds + goal.kinds), 2)

    def solve(self, q: Positions) -> list[Any]:
        arm = self.base
        tip = _centre(arm) if arm.kinds == "RRR" else arm.end
        at = _centre(self.goal) if self.goal.kinds else self.goal.end
        frame = frame_of(arm.axes[0], tip - arm.points[0], arm.points[0])
        e, height = (frame.E @ (tip - frame.r))[[0, 2]]
        frame = Transform(frame.E, snapped(frame.r + height * frame.E[2]))  # at the height of the tip
        t = self._target(q, frame, at)
        square = t[0] * t[0] + t[1] * t[1]
        c = (square + t[2] * t[2] + (e * e - self._rod**2)) * (0.5 / e)
        s = self.modes[0] * np.sqrt(square - c * c)
        cosine, sine = (c * t[0] - s * t[1]) / square, (c * t[1] + s * t[0]) / square
        angle = arm.references[0] + np.arctan2(sine, cosine)
        if arm.kinds == "RRR":  # the rod as the crank sees it, in axes that are those of the frame for reference
            w = np.array([cosine * t[0] + sine * t[1] - e, cosine * t[1] - sine * t[0], t[2]])
            return [angle, *self._pointed(arm, frame, w)]
        if self.goal.kinds:
            back = frame.E.T @ np.array([e * cosine - t[0], e * sine - t[1], -t[2]])
            seen = self.chain.reversed().from_goal(q, back, free=True)
            return [angle, *self._pointed(self.goal, Transform.identity(), seen)]
        return [angle]

    @property
    def _rod(self) -> float:
        if self.rod is not None:
            return self.rod
        arm = self.goal if self.goal.kinds else self.base
        return _length(arm.end - _centre(arm))

    def _pointed(self, arm: Arm, seen: Transform, w: Array) -> list[Any]:
        """Positions of the last two joints of an arm, whose axes meet, for its end to lie along w from there."""
        z, y = arm.axes[-2:]
        turned = frame_of(z, np.cross(y, z), np.zeros(3)).E
        end = snapped(turned @ (arm.end - _centre(arm)))
        w = snapped(turned @ seen.E.T) @ w
        first, s = _pointed(float(end[1]), self.modes[1], w)
        second = _turn(np.array([end[2], end[0]]), np.array([w[2], s]))
        return [arm.references[-2] + first, arm.references[-1] + second]


def _centre(arm: Arm) -> np.ndarray:
    """Where the last two axes of an arm meet, which are at right angles."""
    z, (first, second) = arm.axes[-2], arm.points[-2:]
    return snapped(first + ((second - first) @ z) * z)


class SphericalElbow(Leg):
    """Two turns about axes through one point, RRR on a sphere: one after the other on the base, or one on each side.

    The elbow is an axis x of given angles to two known axes a and m, with cosines k and l:
    x = α a + β m + γ a × m, where α and β follow from x·a = k and x·m = l, and γ from its length.
    """

    @property
    def name(self) -> str:
        return "spherical RRR"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if rod is not None or (base.kinds, goal.kinds) not in (("RR", ""), ("R", "R")):
            return False
        if goal.kinds:
            return not (is_parallel(base.axes[0], base.end_axis) or is_parallel(goal.axes[0], goal.end_axis))
        return not (is_parallel(*base.axes) or is_parallel(base.axes[1], base.end_axis))

    def solve(self, q: Positions) -> list[Any]:
        arm, two = self.base, not self.goal.kinds
        elbow = arm.axes[1] if two else arm.end_axis
        frame = frame_of(arm.axes[0], elbow, np.zeros(3))
        k = float(frame.E[2] @ elbow)
        known = self.goal.end_axis if two else self.goal.axes[0]
        m = frame.E @ self.chain.from_goal(q, known, free=True)
        last = float(arm.axes[1] @ arm.end_axis if two else self.goal.axes[0] @ self.goal.end_axis)
        # x = α z + β m + γ z × m, with z·m = m₂
        across_square = 1.0 - m[2] * m[2]
        alpha, beta = (k - m[2] * last) / across_square, (last - m[2] * k) / across_square
        gamma = self.modes[0] * np.sqrt((1.0 - alpha * k - beta * last) / across_square)
        x = np.array([beta * m[0] - gamma * m[1], beta * m[1] + gamma * m[0], alpha + beta * m[2]])
        angle = arm.references[0] + np.arctan2(x[1], x[0])
        if not two:
            return [angle, self._bend(q, self.goal, self.goal.end_axis, frame, x)]
        # The known axis as the upper arm sees it, turned back about z; x has the same part across z before and after.
        part = float(np.sqrt(1.0 - k * k))
        cosine, sine = x[0] / part, x[1] / part
        turned = np.array([cosine * m[0] + sine * m[1], cosine * m[1] - sine * m[0], m[2]])
        own = frame_of(frame.E @ elbow, frame.E @ arm.end_axis, np.zeros(3))
        seen = own.E @ turned
        return [angle, arm.references[1] + np.arctan2(seen[1], seen[0])]


LEGS: tuple[type[Leg], ...] = (Slide, Elbow, SlidingElbow, Crank, SphericalElbow)
