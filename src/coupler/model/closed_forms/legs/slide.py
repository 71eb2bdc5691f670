"""A linear actuator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.model.closed_forms.arms import Arm, frame_of, is_square
from coupler.model.closed_forms.chains import Positions, snapped
from coupler.model.closed_forms.legs.leg import NEAR, Array, Leg, Limits, length, pointed, turn
from coupler.spatial import Transform


class Slide(Leg):
    """A slide on an arm that rotates in a plane, RPR, or about two axes, SPU: a linear actuator.

    With u the direction of the slide and f the distance of its line from the last axis, the end is at (√(w² − f²), f)
    along and across u when its distance from that axis is w. The rotation of the arm follows.
    """

    @property
    def name(self) -> str:
        if self.base.kinds == "RP":
            return "RPR"
        offset = np.cross(*self.base.axes[:2]) @ (self.base.points[1] - self.base.points[0])
        return "SPU" if abs(offset) < NEAR and length(self._hinge) < NEAR else "SPRR"

    @classmethod
    def fits(cls, base: Arm, goal: Arm, rod: float | None) -> bool:
        if rod is not None or goal.kinds or base.kinds not in ("RP", "RRP"):
            return False
        return is_square(base.axes[-1], base.axes[-2]) and (base.kinds == "RP" or is_square(*base.axes[:2]))

    @classmethod
    def roots(cls, base: Arm, goal: Arm) -> int:
        return len(base.kinds) - 1

    @cached_property
    def _frame(self) -> Transform:
        """A frame for an arm about two axes: z along the first, y along the second, which passes at z = 0."""
        z, y = self.base.axes[:2]
        height = (self.base.points[1] - self.base.points[0]) @ z
        return frame_of(z, np.cross(y, z), self.base.points[0] + height * z)

    @cached_property
    def _hinge(self) -> np.ndarray:
        """The distance, m, of the second axis from the first along x, as an array of one number."""
        return snapped((self._frame.E @ (self.base.points[1] - self._frame.r))[:1])

    def has_dead_points(self, limits: Limits) -> bool:
        """Whether its length can become zero, or an arm about two axes can come to point along the first axis."""
        slides = np.array(limits[self.base.joints[-1]])
        if not (self._extents(slides) * self.modes[0] > 0.0).all():
            return True
        if self.base.kinds == "RP":
            return False
        turns = np.array(limits[self.base.joints[1]])
        if not np.isfinite(turns).all():
            return True
        ends = np.where(np.isfinite(slides), slides, 1.0)
        aside = [self._aside(turned, slide) for turned in np.linspace(turns[0], turns[1], 32) for slide in ends]
        return not (np.array(aside) * self.modes[1] > 0.0).all()

    def _aside(self, turned: float, slide: float) -> float:
        """The distance of the end of an arm about two axes from the first, m, for its last two positions."""
        by = turned - self.base.references[1]
        x, _, z = self._frame.E @ (self.base.end + slide * self.base.axes[2] - self._frame.r)
        return float(np.cos(by) * (x - self._hinge[0]) + np.sin(by) * z + self._hinge[0])

    def _extents(self, slides: Any) -> Any:
        """The distance of the end, along the slide, from the point closest to the last axis, m, by slide positions."""
        return slides + (self.base.end - self.base.points[-2]) @ self.base.axes[-1]

    def clearances(self, positions: Sequence[float]) -> list[float]:
        """Distances that vanish at dead points, m: its length and, with two axes, that of its end from the first."""
        clear = [abs(float(self._extents(positions[-1])))]
        return clear if self.base.kinds == "RP" else [*clear, abs(self._aside(positions[1], positions[2]))]

    def solve(self, q: Positions) -> list[Any]:
        if self.base.kinds == "RP":
            frame = frame_of(self.base.axes[0], self.base.axes[1], self.base.points[0])
            end = snapped(frame.E @ (self.base.end - frame.r))
            angle, slide = self._extended(end[:2], self._target(q, frame, self.goal.end)[:2])
            return [self.base.references[0] + angle, slide]
        frame = self._frame
        w, end = self._target(q, frame, self.goal.end), snapped(frame.E @ (self.base.end - frame.r))
        first, s = pointed(float(end[1]), self.modes[1], w)
        u = snapped(frame.E @ self.base.axes[2])
        along, sideways = (u[2], u[0]), (-u[0], u[2])  # in the plane of z and x, through which y points
        plane = np.array([w[2], s - self._hinge[0]])
        end_in_plane = np.array([end[2], end[0] - self._hinge[0]])
        along_and_across = [np.array([np.dot(d, v) for d in (along, sideways)]) for v in (end_in_plane, plane)]
        second, slide = self._extended(snapped(along_and_across[0]), along_and_across[1])
        return [self.base.references[0] + first, self.base.references[1] + second, slide]

    def _extended(self, end: np.ndarray, w: Array) -> tuple[Any, Any]:
        """Angle and slide that bring an end to w, in the plane of the last axis with x along the slide."""
        f = float(end[1])
        square = w[0] * w[0] + w[1] * w[1]
        x = self.modes[0] * np.sqrt(square - f * f if f else square)
        angle = turn((x, f), w) if f else np.arctan2(self.modes[0] * w[1], self.modes[0] * w[0])
        return angle, x - end[0]
