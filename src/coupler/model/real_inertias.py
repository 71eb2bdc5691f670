"""Inertias that a body can have, and the nearest of them to one that no body has."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.tolerances import ROUNDED

# Principal moments of the integrals of x², y² and z² over the mass: each counts for the two other axes.
_MOMENTS = np.ones((3, 3)) - np.eye(3)


def nearest_inertia(inertia: Any) -> np.ndarray:
    """The possible inertia nearest to a given one, by the sum of squared changes.

        body = Body("base", 45.7, inertia=nearest_inertia(printed))

    It has the same principal axes. Principal moments are J = M s, where s ≥ 0 are integrals of squares over the mass;
    the best s is found by trying which of its entries are zero. A possible inertia is returned unchanged, up to
    rounding. Take the result as a suggestion: it spreads the correction of one misprint over several numbers.

    Args:
        inertia: 3 × 3, symmetric, about the centre of mass, kg m².

    Returns:
        3 × 3, kg m².
    """
    given = numbers("inertia", inertia, (3, 3))
    if np.abs(given - given.T).max() > ROUNDED * np.abs(given).max():
        raise ModelError(f"inertia: it is not symmetric:\n{given}")
    moments, axes = np.linalg.eigh((given + given.T) / 2)
    best, least = np.zeros(3), np.inf
    for kept in product((False, True), repeat=3):
        columns = _MOMENTS[:, list(kept)]
        s = np.linalg.lstsq(columns, moments, rcond=None)[0]
        missed = float(np.sum((columns @ s - moments) ** 2))
        if (s >= 0.0).all() and missed < least:
            best, least = columns @ s, missed
    return (axes * best) @ axes.T
