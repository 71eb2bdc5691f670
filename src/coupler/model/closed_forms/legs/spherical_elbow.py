"""Two rotations about axes that meet in a point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coupler.model.closed_forms.arms import Arm, frame_of, is_parallel
from coupler.model.closed_forms.chains import Chain, Positions, snapped
from coupler.model.closed_forms.legs.leg import NEAR, Leg

_MEET = 1e-9  # m: axes nearer than this meet

Line = tuple[np.ndarray, np.ndarray]  # its direction, and a point on it


class SphericalElbow(Leg):
    """Two rotations about axes through one point, RRR on a sphere: both on the base, or one on each side.

    The elbow is an axis x at given angles to two known axes a and m, with cosines k and l:
    x = α a + β m + γ a × m, where α and β follow from x·a = k and x·m = l, and γ from its length.
    """

    _follows_chain = True

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

    @classmethod
    def with_ball(cls, base: Arm, goal: Arm, chain: Chain) -> tuple[Arm, Arm]:
        """A ball on a sphere acts like a hinge whose axis points to the centre, where the first two axes meet."""
        assembled, lines = chain.assembled, [*zip(base.axes, base.points, strict=True)]
        for axis, point in zip(goal.axes, goal.points, strict=True):
            on_axis, beyond = (np.asarray(chain.from_goal(assembled, x), float) for x in (point, point + axis))
            lines.append((beyond - on_axis, on_axis))
        if len(lines) != 2 or (centre := _meeting_point(*lines)) is None:
            return base, goal
        centres = centre, np.asarray(chain.reversed.from_goal(assembled, centre), float)
        radii = [float(np.linalg.norm(arm.end - at)) for arm, at in zip((base, goal), centres, strict=True)]
        if min(radii) < NEAR:
            return base, goal
        one, other = (
            replace(arm, end_axis=snapped((arm.end - at) / radius))
            for arm, at, radius in zip((base, goal), centres, radii, strict=True)
        )
        return one, other

    def solve(self, q: Positions) -> list[Any]:
        arm, both_on_base = self.base, not self.goal.kinds
        elbow = arm.axes[1] if both_on_base else arm.end_axis
        frame = frame_of(arm.axes[0], elbow, np.zeros(3))
        k = float(frame.E[2] @ elbow)
        known = self.goal.end_axis if both_on_base else self.goal.axes[0]
        m = frame.E @ self.chain.from_goal(q, known, free=True)
        last = float(arm.axes[1] @ arm.end_axis if both_on_base else self.goal.axes[0] @ self.goal.end_axis)
        # x = α z + β m + γ z × m, with z·m = m₂
        across_square = 1.0 - m[2] * m[2]
        alpha, beta = (k - m[2] * last) / across_square, (last - m[2] * k) / across_square
        gamma = self.modes[0] * np.sqrt((1.0 - alpha * k - beta * last) / across_square)
        x = np.array([beta * m[0] - gamma * m[1], beta * m[1] + gamma * m[0], alpha + beta * m[2]])
        angle = arm.references[0] + np.arctan2(x[1], x[0])
        if not both_on_base:
            return [angle, self._bend(q, self.goal, self.goal.end_axis, frame, x)]
        # The known axis in the upper arm's frame, rotated back about z; across z, x keeps its length.
        sine_of_k = float(np.sqrt(1.0 - k * k))
        cosine, sine = x[0] / sine_of_k, x[1] / sine_of_k
        turned = np.array([cosine * m[0] + sine * m[1], cosine * m[1] - sine * m[0], m[2]])
        elbow_frame = frame_of(frame.E @ elbow, frame.E @ arm.end_axis, np.zeros(3))
        seen = elbow_frame.E @ turned
        return [angle, arm.references[1] + np.arctan2(seen[1], seen[0])]


def _meeting_point(one: Line, other: Line) -> np.ndarray | None:
    """The point in which two lines meet; None if they do not."""
    (a, p), (b, q) = one, other
    if is_parallel(a, b):
        return None
    ways = np.linalg.lstsq(np.array([a, -b]).T, q - p, rcond=None)[0]
    ends = p + ways[0] * a, q + ways[1] * b
    return 0.5 * (ends[0] + ends[1]) if np.linalg.norm(ends[0] - ends[1]) < _MEET else None
