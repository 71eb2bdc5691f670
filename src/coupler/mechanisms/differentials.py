"""Differentials of legs, with which two motors drive two joints together: closed forms γ, and the loops φ they solve.

Both are those of Tello. Positions are in the order of its couplings: the two rotors, then the two joints they drive.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from coupler.mechanisms.checks import check_lengths
from coupler.rotation import about_x, about_y

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True)
class HipDifferential:
    """Two cranks above a hip, one on each side, that move the thigh by rods.

    Turned together, the cranks pitch the thigh; turned in opposite directions, they roll the gimbal that carries it.

    Attributes:
        height: height of the cranks' axis above the gimbal's centre, m.
        crank: the length of each crank, and the distance behind the gimbal at which rods are attached to the thigh, m.
        side: the distance of the rods from the middle, m.
        rod: the length of the rods, m.
        ratio: ratio of the gears between rotors and cranks.
    """

    height: float
    crank: float
    side: float
    rod: float
    ratio: float = 1.0

    def __post_init__(self) -> None:
        check_lengths("hip differential", height=self.height, crank=self.crank, side=self.side, rod=self.rod)

    def __call__(self, y: Array) -> Array:
        """γ: (rotor 1, rotor 2, roll, pitch) from roll and pitch, rad. Where a rod cannot reach, rotors are NaN."""
        rotors = []
        for side in (self.side, -self.side):
            x, aside, z = self._bottom(y[0], y[1], side)
            over, off = self.height - z, side - aside
            # |top − bottom| = rod: x cos θ + over sin θ = c, for the crank's angle θ
            c = (self.rod**2 - self.crank**2 - x * x - off * off - over * over) / (2.0 * self.crank)
            rotors.append(self.ratio * _angle(x, over, c))
        return np.array([*rotors, y[0], y[1]])

    def opening(self, q: Array) -> Array:
        """φ: how far the distance between the ends of each rod is from its length, 2, m."""
        misses = []
        for rotor, side in ((q[0], self.side), (q[1], -self.side)):
            angle = rotor / self.ratio
            top = np.array([-self.crank * np.cos(angle), side, self.height + self.crank * np.sin(angle)])
            misses.append(_miss(top - self._bottom(q[2], q[3], side), self.rod))
        return np.array(misses)

    def _bottom(self, roll: Any, pitch: Any, side: float) -> Array:
        """The end of a rod on the thigh."""
        return about_x(roll) @ (about_y(pitch) @ np.array([-self.crank, side, 0.0]))


@dataclass(frozen=True)
class KneeAnkleDifferential:
    """A knee that turns with the mean of two motors, and an ankle that a crank turns with half their difference.

    The crank is near the knee, and moves the foot by a rod along the shin.

    Attributes:
        shin: the distance from knee to ankle, m.
        pivot: the distance of the crank's pivot from the knee, m, and its angle against the shin, rad.
        crank: the crank's length, m, and its angle with the motors at zero, rad.
        lever: the length of the foot's lever, on which the rod ends, m, and its angle against a line across the shin,
            rad.
        rod: the rod's length, m.
        ratio: ratio of the gears.
    """

    shin: float
    pivot: tuple[float, float]
    crank: tuple[float, float]
    lever: tuple[float, float]
    rod: float
    ratio: float = 1.0

    def __post_init__(self) -> None:
        lengths = {"pivot": self.pivot[0], "crank": self.crank[0], "lever": self.lever[0]}
        check_lengths("knee-ankle differential", shin=self.shin, rod=self.rod, **lengths)

    def __call__(self, y: Array) -> Array:
        """γ: (rotor 1, rotor 2, knee, ankle) from knee and ankle, rad. Where the rod cannot reach, rotors are NaN."""
        knee, ankle = y[0], y[1]
        x, z = self._end(ankle)
        length, angle = self.crank
        c = (x * x + z * z + length**2 - self.rod**2) / (2.0 * length)
        half = angle - _angle(x, z, c)
        return np.array([self.ratio * (knee + half), self.ratio * (knee - half), knee, ankle])

    def opening(self, q: Array) -> Array:
        """φ: how far the rod is from its length, m, and the knee from the mean of the motors, rad."""
        first, second, knee, ankle = q[0] / self.ratio, q[1] / self.ratio, q[2], q[3]
        length, angle = self.crank
        crank = length * _direction(angle - (first - second) / 2.0)
        return np.array([_miss(self._end(ankle) - crank, self.rod), knee - (first + second) / 2.0])

    def _end(self, ankle: Any) -> Array:
        """2, the end of the rod on the foot, from the crank's pivot, m."""
        (pivot, at), (lever, lean) = self.pivot, self.lever
        return self.shin * _direction(0.0) - pivot * _direction(at) + lever * _direction(lean + ankle - pi / 2.0)


def _angle(a: Any, b: Any, c: Any) -> Any:
    """θ with a cos θ + b sin θ = c; of the two solutions, the one below the direction of (a, b)."""
    s = np.sqrt(a * a + b * b - c * c)
    return np.arctan2(c * b - s * a, c * a + s * b)


def _miss(between: Array, rod: float) -> Any:
    """The difference of a distance and a rod's length, to first order."""
    return (between @ between - rod**2) / (2.0 * rod)


def _direction(angle: Any) -> Array:
    return np.array([np.cos(angle), np.sin(angle)])
