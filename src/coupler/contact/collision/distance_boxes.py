"""How far two boxes are apart, by their separating axes. Floats or nodes of a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.shapes import Box
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

_PARALLEL = 1e-8  # sin² of the angle between two edges below which they give no direction of their own


def between_boxes(one: Box, other: Box, X_one: Transform, X_other: Transform) -> tuple[Any, Array]:
    """The distance of two boxes along the best separating axis, m, and that axis, from the second box to the first.

    The axes are the normals of both boxes' faces, and the cross products of an edge of one and an edge of the other.
    The distance is negative if the boxes overlap.

    Args:
        X_one, X_other: the transforms from the world to their frames.
    """
    A, B, away = X_one.E, X_other.E, X_one.r - X_other.r
    a, b = 0.5 * one.size, 0.5 * other.size
    C = A @ B.T
    of_one = [(A[i], a[i] + np.abs(C[i]) @ b) for i in range(3)]
    of_other = [(B[j], b[j] + np.abs(C[:, j]) @ a) for j in range(3)]
    best, normal = None, A[0]
    for axis, reach in (*of_one, *of_other):
        best, normal = _further(best, normal, axis, away, reach)
    for i in range(3):
        for j in range(3):
            axis = np.stack(list(cross(A[i], B[j])))
            square = axis @ axis
            crossed = square > _PARALLEL
            axis = axis / np.sqrt(np.where(crossed, square, 1.0))
            reach = np.abs(A @ axis) @ a + np.abs(B @ axis) @ b
            best, normal = _further(best, normal, axis, away, reach, crossed)
    return best, normal


def _further(best: Any, normal: Array, axis: Array, away: Array, reach: Any, valid: Any = True) -> tuple[Any, Array]:
    along = axis @ away
    apart = np.abs(along) - reach
    axis = axis * np.copysign(1.0, along)
    if best is None:
        return apart, axis
    further = valid & (apart > best)
    return np.where(further, apart, best), np.where(further, axis, normal)
