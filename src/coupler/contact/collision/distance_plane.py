"""The points of a shape that touch a plane first, in the shape's frame. Floats or nodes of a trace."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

Array = Any  # an ndarray of floats, or of nodes

_UPRIGHT = 1e-18  # sin² of the angle to the plane's normal below which a cylinder's caps have no lowest point


def box_corners(half: np.ndarray) -> list[np.ndarray]:
    """The eight corners of a box that reaches to ±half along each axis."""
    return [half * signs for signs in product((-1.0, 1.0), repeat=3)]


def cylinder_points(m: Array, radius: float, half: float) -> list[Array]:
    """Four points on the two rims of a cylinder along z between z = ±half, over a plane.

    They are the lowest point of the rim at −half, the lowest of the rim at half, and the two points of the lower rim a
    third of a turn away from its lowest. The first two do not swap when rounding decides which end of a lying cylinder
    is lower, so each finds its impulse of the previous step again. An upright cylinder stands on the last two and one
    of the first, a tilted one on one point.

    Args:
        m: 3, the unit normal out of the plane, in the cylinder's frame.
        radius, half: the cylinder's radius and half length, m.
    """
    square = m[0] * m[0] + m[1] * m[1]
    tilted = square > _UPRIGHT
    root = np.sqrt(np.where(tilted, square, 1.0))
    x, y = (np.where(tilted, -m[0] / root, 1.0), np.where(tilted, -m[1] / root, 0.0))
    z = -np.copysign(half, m[2])
    c, s = -0.5, np.sqrt(0.75)
    places = [(x, y, -half), (x, y, half), (c * x - s * y, s * x + c * y, z), (c * x + s * y, c * y - s * x, z)]
    return [np.stack([radius * a, radius * b, np.array(h)]) for a, b, h in places]


def ellipsoid_point(m: Array, radii: np.ndarray) -> Array:
    """The point of an ellipsoid furthest in the direction opposite to the unit vector m: −a² m / |a m|."""
    scaled = radii * m
    return -(radii * scaled) / np.sqrt(scaled @ scaled)
