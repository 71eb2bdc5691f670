"""Transmissions: linear and polynomial relations between joint positions.

Each function returns γ, which maps the independent positions to the positions of all joints. It takes floats or nodes
of a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import as_array, numbers
from coupler.model.wording import clipped

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
    rows = as_array("a linear transmission: G", G)
    if rows.ndim != 2:
        raise ModelError(f"a linear transmission: G must be a matrix, got {clipped(G)}")
    matrix = numbers("a linear transmission: G", rows, rows.shape)
    return Linear(matrix, numbers("a linear transmission: its offset", offset, (len(matrix),), spread=True))


def gear(ratio: float, offset: float = 0.0) -> Gear:
    """A pair of gears: (y, ratio y + offset) for the driving and the driven joint. [000, eq. 16]"""
    values = numbers("gears: the ratio", ratio, ()), numbers("gears: the offset", offset, ())
    return Gear(*map(float, values))


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
    values = as_array("a polynomial transmission: its coefficients", coefficients)
    if values.ndim != 1 or not len(values):
        raise ModelError(f"a polynomial transmission needs a list of coefficients, got {clipped(coefficients)}")
    return Polynomial(tuple(numbers("a polynomial transmission: its coefficients", values, values.shape).tolist()))
