"""Arms of two links whose axes meet in a point."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.closed_forms.arms import Arm, frame_of, is_parallel
from coupler.model.closed_forms.chains import Positions
from coupler.model.closed_forms.legs.leg import Leg

__all__ = ["SphericalElbow"]


class SphericalElbow(Leg):
    """Two turns about axes through one point, RRR on a sphere: one after the other on the base, or one on each side.

    The elbow is an axis x of given angles to two known axes a and m, with cosines k and l:
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
