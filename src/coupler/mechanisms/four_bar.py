"""The planar four-bar: all angles from that of the crank, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.errors import ModelError

Array = Any  # an ndarray of floats, or of nodes


_ROUNDING = 1e-14  # relative: lengths that miss an equality by less are meant to satisfy it


@dataclass(frozen=True)
class FourBar:
    """Crank, coupler and rocker on a fixed ground link, in a plane.

    The crank turns about the origin, the rocker about a point on the x axis, and the coupler connects their tips.
    Angles are those of joints, and zero along the link before: of crank and rocker relative to the ground, of the
    coupler relative to the crank.

    Angles are continuous over full turns of a crank that can make them. A parallelogram remains one through its flat
    poses, and a crossed one remains an antiparallelogram.

    Attributes:
        crank, coupler, rocker, ground: lengths, m.
        crossed: the assembly mode: whether the coupler is to the right of the line from the crank's tip to the
            rocker's pivot.
    """

    crank: float
    coupler: float
    rocker: float
    ground: float
    crossed: bool = False

    def __post_init__(self) -> None:
        lengths = np.array([self.crank, self.coupler, self.rocker, self.ground], dtype=float)
        if not (np.isfinite(lengths).all() and (lengths > 0.0).all()):
            raise ModelError(f"a four-bar's lengths must be finite and positive, got {lengths} m")
        if 2.0 * lengths.max() > lengths.sum() * (1.0 + _ROUNDING):
            raise ModelError(f"a four-bar of lengths {lengths} m cannot close: one exceeds the sum of the others")

    @property
    def turns_fully(self) -> bool:
        """Whether the crank can make full turns (Grashof: shortest + longest do not exceed the others)."""
        lengths = sorted([self.crank, self.coupler, self.rocker, self.ground])
        rotates = lengths[0] + lengths[3] <= (lengths[1] + lengths[2]) * (1.0 + _ROUNDING)
        return rotates and lengths[0] in (self.crank, self.ground)

    @property
    def parallelogram(self) -> bool:
        """Whether opposite links are equally long."""
        return self.crank == self.rocker and self.coupler == self.ground

    def __call__(self, y: Array) -> Array:
        """γ: (crank, coupler, rocker) angles in rad from the crank's. Where the loop cannot close, they are NaN.

        Seen from the crank's tip, the rocker's pivot is at distance d. The triangle of coupler, rocker and d gives the
        angle at the tip, as the arctangent of its height over its base: with area² = (r² − (c − d)²)((c + d)² − r²).
        """
        angle = y[0]
        if self.parallelogram and not self.crossed:
            return np.array([angle, -angle, angle])
        cosine, sine = np.cos(angle), np.sin(angle)
        x, z = self.ground * cosine - self.crank, -self.ground * sine  # from tip to pivot, in the crank's frame
        d = np.sqrt(x * x + z * z)
        base = self.coupler**2 + d * d - self.rocker**2
        area = (self.rocker**2 - (self.coupler - d) ** 2) * ((self.coupler + d) ** 2 - self.rocker**2)
        # In a flat pose the area is zero, and may be slightly negative by rounding; otherwise the loop cannot close.
        rounding = _ROUNDING * (self.crank + self.coupler + self.rocker + self.ground) ** 4
        inner = np.arctan2(np.sqrt(np.where((area < 0.0) & (area > -rounding), 0.0, area)), base)
        # The direction to the pivot, in the frame of the longer link, where it makes no full turns.
        if self.ground < self.crank:
            towards = np.pi + np.arctan2(-z, -x)
        else:
            towards = np.arctan2(-self.crank * sine, self.ground - self.crank * cosine) - angle
        side: Any = -1.0 if self.crossed else 1.0
        if self.parallelogram:  # a crossed one changes sides in its flat poses
            side = np.where(sine < 0.0, 1.0, -1.0)
        bend = towards + side * inner
        if self.ground < self.crank:
            tip_x, tip_z = self.coupler * np.cos(bend) - x, self.coupler * np.sin(bend) - z
            return np.array([angle, bend, angle + np.arctan2(tip_z, tip_x)])
        direction = angle + bend
        tip_x = self.crank * cosine + self.coupler * np.cos(direction) - self.ground
        tip_z = self.crank * sine + self.coupler * np.sin(direction)
        return np.array([angle, bend, np.arctan2(tip_z, tip_x)])

    def opening(self, q: Array) -> Array:
        """φ: the gap between the coupler's and the rocker's tip, 2, in m."""
        direction = q[0] + q[1]
        return np.array(
            [
                self.crank * np.cos(q[0]) + self.coupler * np.cos(direction) - self.ground - self.rocker * np.cos(q[2]),
                self.crank * np.sin(q[0]) + self.coupler * np.sin(direction) - self.rocker * np.sin(q[2]),
            ]
        )
