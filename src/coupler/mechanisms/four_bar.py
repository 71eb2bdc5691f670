"""The planar four-bar: all angles from the crank's, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FourBar"]

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True)
class FourBar:
    """Crank, coupler and rocker over a fixed ground link, in a plane.

    The crank turns about the origin; the rocker turns about a point on the x axis. The coupler hangs on the crank's tip
    and meets the rocker's tip. Angles are those of joints: crank and rocker against the ground, coupler against the
    crank, all zero along the link before them.

    Attributes:
        crank, coupler, rocker, ground: lengths, m.
        crossed: the other of the two ways to assemble it: the coupler on the other side, the right-hand one, of the
            line from the crank's tip to the rocker's pivot.
    """

    crank: float
    coupler: float
    rocker: float
    ground: float
    crossed: bool = False

    def __post_init__(self) -> None:
        lengths = np.array([self.crank, self.coupler, self.rocker, self.ground])
        if not (np.isfinite(lengths).all() and (lengths > 0.0).all()):
            raise ValueError(f"a four-bar's lengths must be finite and positive, got {lengths} m")
        if 2.0 * lengths.max() > lengths.sum():
            raise ValueError(f"a four-bar of lengths {lengths} m cannot close: one exceeds the sum of the others")

    @property
    def turns_fully(self) -> bool:
        """Whether the crank can make full turns (Grashof: shortest + longest do not exceed the others)."""
        lengths = sorted([self.crank, self.coupler, self.rocker, self.ground])
        rotates = lengths[0] + lengths[3] <= lengths[1] + lengths[2]
        return rotates and lengths[0] in (self.crank, self.ground)

    def __call__(self, y: Array) -> Array:
        """γ: (crank, coupler, rocker) angles in rad from the crank's. Where the loop cannot close, they are NaN.

        Seen from the crank's tip, the rocker's pivot is at distance d. The triangle of coupler, rocker and d gives the
        angle at the tip by the law of cosines.
        """
        x = self.ground - self.crank * np.cos(y[0])
        z = -self.crank * np.sin(y[0])
        square = x * x + z * z
        cosine = (self.coupler**2 + square - self.rocker**2) / (2.0 * self.coupler * np.sqrt(square))
        inner = np.arctan2(np.sqrt(1.0 - cosine * cosine), cosine)
        towards = np.arctan2(z, x)
        direction = towards - inner if self.crossed else towards + inner
        tip_x = self.crank * np.cos(y[0]) + self.coupler * np.cos(direction) - self.ground
        tip_z = self.crank * np.sin(y[0]) + self.coupler * np.sin(direction)
        return np.array([y[0], direction - y[0], np.arctan2(tip_z, tip_x)])

    def opening(self, q: Array) -> Array:
        """φ: the gap between the coupler's and the rocker's tip, 2, in m."""
        direction = q[0] + q[1]
        return np.array(
            [
                self.crank * np.cos(q[0]) + self.coupler * np.cos(direction) - self.ground - self.rocker * np.cos(q[2]),
                self.crank * np.sin(q[0]) + self.coupler * np.sin(direction) - self.rocker * np.sin(q[2]),
            ]
        )
