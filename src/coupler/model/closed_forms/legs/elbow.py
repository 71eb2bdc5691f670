"""Two rotations in a plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.closed_forms.arms import Arm, across, frame_of, is_parallel
from coupler.model.closed_forms.chains import Positions, snapped
from coupler.model.closed_forms.legs.leg import NEAR, Leg, length, radius_of, turn


class Elbow(Leg):
    """Two rotations in a plane, RRR: both on the base, or one on each side.

    The elbow C has the distances l₁ and l₂ from two known points, the origin and t: C = α t + β t⊥, with
    α = (t² + l₁² − l₂²) / 2t² and β = ± √(l₁²/t² − α²).
    """

    _follows_chain = True

    @property
    def name(self) -> str:
        return "RRR"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if rod is not None or (base.kinds, goal.kinds) not in (("RR", ""), ("R", "R")):
            return False
        if goal.kinds:
            lengths = length(across(base.end - base.points[0], base.axes[0])), radius_of(goal)
        elif not is_parallel(*base.axes):
            return False
        else:
            vectors = base.points[1] - base.points[0], base.end - base.points[1]
            lengths = tuple(length(across(vector, base.axes[0])) for vector in vectors)
        return min(lengths) > NEAR

    def solve(self, q: Positions) -> list[Any]:
        arm, both_on_base = self.base, not self.goal.kinds
        elbow = arm.points[1] if both_on_base else arm.end
        frame = frame_of(arm.axes[0], elbow - arm.points[0], arm.points[0])
        first = length(across(elbow - arm.points[0], arm.axes[0]))
        t = self._target(q, frame, self.goal.end if both_on_base else self.goal.points[0])[:2]
        forearm = snapped((frame.E @ (arm.end - elbow))[:2]) if both_on_base else np.array([radius_of(self.goal), 0.0])
        square = t[0] * t[0] + t[1] * t[1]
        alpha = 0.5 + (0.5 * (first**2 - forearm @ forearm)) / square
        beta = self.modes[0] * np.sqrt(first**2 / square - alpha * alpha)
        C = np.array([alpha * t[0] - beta * t[1], alpha * t[1] + beta * t[0]])
        angle = self._bend(q, arm, elbow - arm.points[0], frame, np.array([C[0], C[1], 0.0]))
        rest = t - C
        if both_on_base:  # in the upper arm's frame, whose x axis is along C
            turned = np.array(
                [
                    C[0] * rest[0] + C[1] * rest[1],
                    C[0] * rest[1] - C[1] * rest[0],
                ]
            )
            direction = 1.0 if arm.axes[0] @ arm.axes[1] > 0.0 else -1.0
            return [angle, arm.references[1] + direction * turn(forearm, turned)]
        back = np.array([-rest[0], -rest[1], 0.0])
        return [angle, self._bend(q, self.goal, self.goal.end - self.goal.points[0], frame, back)]
