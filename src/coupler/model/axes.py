"""Axes of joints: unit vectors, rotations about them, and measures of how far two frames are rotated apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.rotation import unit
from coupler.spatial import skew

Array = Any  # an ndarray of floats, or of nodes

Z = (0.0, 0.0, 1.0)


def unit_axis(kind: str, axis: Any) -> np.ndarray:
    """An axis that a user gave for a kind of joint, normalised."""
    value = numbers(f"{kind} joint: its axis", axis, (3,))
    if not value.any():
        raise ModelError(f"{kind} joint: its axis must not be zero")
    value = unit(value)
    value.setflags(write=False)
    return value


def plane_across(normal: np.ndarray) -> np.ndarray:
    """2 × 3: two directions that form a right-handed frame with the normal; x and y for z, and so on cyclically."""
    x = np.eye(3)[(np.argmax(np.abs(normal)) + 1) % 3]
    x = x - (x @ normal) * normal
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(normal, x)])


def rotation_about(axis: np.ndarray, cosine: Any, sine: Any) -> Array:
    """The rotation matrix about a known axis, with exact zeros and ones for the coordinate axes.

    Rodrigues: 1 + sin θ a× + (1 − cos θ) a×a×.
    """
    c, s = cosine, sine
    for i in range(3):
        if abs(axis[i]) == 1.0 and np.count_nonzero(axis) == 1:
            s = float(axis[i]) * s
            R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])  # about z, and so on in turn
            return np.roll(R, i + 1, axis=(0, 1))
    return c * np.eye(3) + s * skew(axis) + (1.0 - c) * np.outer(axis, axis)


def tilt_of(E: Array, axis: np.ndarray) -> Array:
    """The tilt of the successor's axis against the predecessor's, two rows: 2 tan(θ/2) times its direction."""
    turned = E.T @ axis
    scale = 2.0 / (1.0 + axis @ turned)
    return np.array([scale * (side @ turned) for side in plane_across(axis)])


def turn_of(E: Array) -> Array:
    """The rotation of the successor against the predecessor, three rows: 2 tan(θ/2) times its axis."""
    scale = 2.0 / (1.0 + E[0, 0] + E[1, 1] + E[2, 2])
    return scale * np.array([E[1, 2] - E[2, 1], E[2, 0] - E[0, 2], E[0, 1] - E[1, 0]])
