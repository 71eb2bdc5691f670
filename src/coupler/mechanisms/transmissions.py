"""Transmissions: linear and polynomial relations between joint positions.

Each function returns γ, which maps the independent positions to the positions of all joints. It takes floats or nodes
of a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False)
class Linear:
    """γ(y) = G y + offset."""

    G: np.ndarray
    offset: np.ndarray

    def __call__(self, y: Array) -> Array:
        return self.G @ y + self.offset


@dataclass(frozen=True, eq=False)
class Polynomial:
    """γ(y) = (y, c0 + c1 y + c2 y² + ...)."""

    coefficients: tuple[float, ...]

    def __call__(self, y: Array) -> Array:
        total: Any = self.coefficients[-1]
        for c in reversed(self.coefficients[:-1]):
            total = total * y[0] + c
        return np.array([y[0], total])


@dataclass(frozen=True, eq=False)
class Gear:
    """γ(y) = (y, ratio y + offset)."""

    ratio: float
    offset: float = 0.0

    def __call__(self, y: Array) -> Array:
        (x,) = y
        return np.array([x, self.ratio * x + self.offset])


def linear(G: Any, offset: Any = 0.0) -> Linear:
    """q = G y + offset.

    Args:
        G: one row for each joint, one column for each independent one.
        offset: positions at y = 0, rad or m.
    """
    G = np.array(G, dtype=float)
    if G.ndim != 2 or not np.isfinite(G).all():
        raise ValueError(f"a linear transmission needs a finite matrix, got {G!r}")
    shift = np.broadcast_to(np.asarray(offset, dtype=float), (len(G),)).copy()
    if not np.isfinite(shift).all():
        raise ValueError(f"a linear transmission needs finite offsets, got {offset!r}")
    return Linear(G, shift)


def gear(ratio: float, offset: float = 0.0) -> Gear:
    """A pair of gears: (y, ratio y + offset) for the driving and the driven joint. [000, eq. 16]"""
    for what, value in (("ratio", ratio), ("offset", offset)):
        if not np.isfinite(value):
            raise ValueError(f"gears need a finite {what}, got {value!r}")
    return Gear(float(ratio), float(offset))


def rack_and_pinion(radius: float, offset: float = 0.0) -> Gear:
    """(y, radius y + offset): the pinion's angle in rad and the rack's shift in m, for a pitch radius in m."""
    return gear(radius, offset)


def belt(first: float, through: float, second: float) -> Linear:
    """Two links driven by two rotors in parallel, the second rotor by a belt that runs over the first link's joint.

    q = (y1, first y1, through y1 + second y2, y2) for link, rotor, rotor, link. [000, eq. 17]
    """
    return linear([[1.0, 0.0], [first, 0.0], [through, second], [0.0, 1.0]])


def differential(ratio: float = 1.0) -> Linear:
    """Two links driven through a differential: each rotor turns with the sum or the difference of their angles.

    q = (y1, y2, ratio (y1 + y2), ratio (y1 - y2)) for the two links and the two rotors.
    """
    return linear([[1.0, 0.0], [0.0, 1.0], [ratio, ratio], [ratio, -ratio]])


def polynomial(coefficients: Sequence[float]) -> Polynomial:
    """(y, c0 + c1 y + c2 y² + ...), as in MuJoCo's joint equality."""
    values = tuple(float(c) for c in coefficients)
    if not values or not np.isfinite(values).all():
        raise ValueError(f"a polynomial transmission needs finite coefficients, got {coefficients!r}")
    return Polynomial(values)
