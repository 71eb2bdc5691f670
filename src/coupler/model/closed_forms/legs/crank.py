"""A crank with a rod."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.closed_forms.arms import Arm, across, frame_of, is_square
from coupler.model.closed_forms.chains import Positions, snapped
from coupler.model.closed_forms.legs.leg import NEAR, Array, Leg, length, pointed, radius_of, turn
from coupler.spatial import Transform


class Crank(Leg):
    """A crank with a rod to a ball: RSS, where the rod is massless, or RUS, with the rod on either side's arm.

    With the crank's radius e and the rod's far end t in the crank's plane, the rod's length l requires
    t₀ cos θ + t₁ sin θ = c, where 2 e c = e² + t² + h² − l² and h is the height of the far end above the crank's tip.
    """

    @property
    def name(self) -> str:
        return "RUS" if len(self.base.kinds + self.goal.kinds) > 1 else "RSS"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if (base.kinds, goal.kinds) == ("R", "") and rod is not None:
            return radius_of(base) > NEAR
        if rod is not None or (base.kinds, goal.kinds) not in (("RRR", ""), ("R", "RR")):
            return False
        pair = goal if goal.kinds else base
        axes, points = pair.axes[-2:], pair.points[-2:]
        if not is_square(*axes) or abs(np.cross(*axes) @ (points[1] - points[0])) > NEAR:
            return False
        tip = base.end if goal.kinds else _centre(base)
        return length(across(tip - base.points[0], base.axes[0])) > NEAR

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
        if arm.kinds == "RRR":  # the rod in the crank's frame, whose axes are those of `frame` in the reference pose
            w = np.array([cosine * t[0] + sine * t[1] - e, cosine * t[1] - sine * t[0], t[2]])
            return [angle, *self._rod_angles(arm, frame, w)]
        if self.goal.kinds:
            back = frame.E.T @ np.array([e * cosine - t[0], e * sine - t[1], -t[2]])
            seen = self.chain.reversed.from_goal(q, back, free=True)
            return [angle, *self._rod_angles(self.goal, Transform.identity(), seen)]
        return [angle]

    @property
    def _rod(self) -> float:
        if self.rod is not None:
            return self.rod
        arm = self.goal if self.goal.kinds else self.base
        return length(arm.end - _centre(arm))

    def _rod_angles(self, arm: Arm, seen: Transform, w: Array) -> list[Any]:
        """Positions of an arm's last two joints, whose axes meet, such that its end is along w from where they meet."""
        z, y = arm.axes[-2:]
        turned = frame_of(z, np.cross(y, z), np.zeros(3)).E
        end = snapped(turned @ (arm.end - _centre(arm)))
        w = snapped(turned @ seen.E.T) @ w
        first, s = pointed(float(end[1]), self.modes[1], w)
        second = turn(np.array([end[2], end[0]]), np.array([w[2], s]))
        return [arm.references[-2] + first, arm.references[-1] + second]


def _centre(arm: Arm) -> np.ndarray:
    """The point in which the last two axes of an arm meet, at right angles."""
    z, (first, second) = arm.axes[-2], arm.points[-2:]
    return snapped(first + ((second - first) @ z) * z)
