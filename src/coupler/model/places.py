"""Places on bodies, as users give them, as transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.tolerances import ROUNDED
from coupler.spatial import Transform

Place = Any  # a point (three numbers, m) or a Transform
_FAR = 1e9  # m: points further away are mistakes
_LARGEST = 2.0  # entries of a rotation are at most 1; products of much larger ones might overflow
_EXACT = 4e-16  # how far E Eᵀ is from 1 for a rotation with exact digits: two roundings


def placed(what: str, at: Place, turned: Any) -> Transform:
    """The transform to a frame that is given by a point and a rotation matrix, or as a Transform."""
    if isinstance(at, Transform):
        if turned is not None:
            raise ModelError(f"{what}: its place is a Transform already; leave out turned")
        E, r = numbers(f"{what}: its rotation", at.E, (3, 3)), numbers(f"{what}: its point", at.r, (3,))
    else:
        r = numbers(f"{what}: its point", at, (3,))
        E = np.eye(3) if turned is None else numbers(f"{what}: its rotation", turned, (3, 3)).T
    if np.abs(r).max() > _FAR:
        raise ModelError(f"{what}: its point {r.tolist()} is further away than {_FAR:g} m")
    if np.abs(E).max() > _LARGEST or np.abs(E @ E.T - np.eye(3)).max() > ROUNDED or np.linalg.det(E) < 0:
        raise ModelError(f"{what}: its rotation is not a rotation matrix:\n{E.T}")
    return Transform(_orthonormal(E), r)


def _orthonormal(E: np.ndarray) -> np.ndarray:
    """The nearest rotation matrix; one with exact digits, such as a permutation, is returned unchanged."""
    if np.abs(E @ E.T - np.eye(3)).max() < _EXACT:
        return E
    U, _, Vt = np.linalg.svd(E)
    return U @ Vt
