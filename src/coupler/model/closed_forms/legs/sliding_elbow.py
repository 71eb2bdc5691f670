"""A slide and a rotation in a plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.closed_forms.arms import Arm, across, frame_of, is_square
from coupler.model.closed_forms.chains import Positions, snapped
from coupler.model.closed_forms.legs.leg import NEAR, Array, Leg, length, radius_of, turn
from coupler.spatial import Transform


class SlidingElbow(Leg):
    """A slide and a rotation in a plane, PRR or P-RR: the piston and rod of an engine, seen from the crank.

    The end of the slide has the distance l from a known point t: it is at x = t₀ ± √(l² − t₁²) along the slide.
    """

    _follows_chain = True

    @property
    def name(self) -> str:
        return "PRR"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if rod is not None or (base.kinds, goal.kinds) not in (("PR", ""), ("P", "R")):
            return False
        if goal.kinds:
            return radius_of(goal) > NEAR
        return is_square(*base.axes) and length(across(base.end - base.points[1], base.axes[1])) > NEAR

    def solve(self, q: Positions) -> list[Any]:
        arm, both_on_base = self.base, not self.goal.kinds
        hinge = arm.points[1] if both_on_base else arm.end
        if both_on_base:
            frame = frame_of(arm.axes[1], arm.axes[0], hinge)
            t = self._target(q, frame, self.goal.end)
            rod = snapped((frame.E @ (arm.end - hinge))[:2])
            x = t[0] + self.modes[0] * np.sqrt(length(rod) ** 2 - t[1] * t[1])
            return [x, arm.references[1] + turn(rod, np.array([t[0] - x, t[1]]))]
        frame = frame_of(arm.axes[0], np.zeros(3), hinge)  # here z is along the slide
        t = self._target(q, frame, self.goal.points[0])
        height = self._target_axis(q, frame)
        aside = t - (t @ height) * height  # in the plane of motion
        x = aside[2] + self.modes[0] * np.sqrt(radius_of(self.goal) ** 2 - aside[0] * aside[0] - aside[1] * aside[1])
        back = np.array([-aside[0], -aside[1], x - aside[2]])
        return [x, self._bend(q, self.goal, self.goal.end - self.goal.points[0], frame, back)]

    def _target_axis(self, q: Positions, frame: Transform) -> Array:
        """The axis of the goal's arm, in a frame of the base."""
        return frame.E @ self.chain.from_goal(q, self.goal.axes[0], free=True)
