"""Tangents of a surface."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # an ndarray of floats, or of nodes


def tangents(normal: Array) -> tuple[Array, Array]:
    """Two unit vectors that form a right-handed frame with a unit normal.

    They are the images of x and ±y under the shortest rotation from ±z to the normal, with the sign of the normal's z
    component. They are smooth except where that is zero.
    """
    x, y, z = normal
    sign = np.copysign(1.0, z)
    k = 1.0 / (1.0 + sign * z)
    first = np.stack([1.0 - x * x * k, -x * y * k, -sign * x])
    return first, np.stack([-sign * x * y * k, sign * (1.0 - y * y * k), -y])
