"""Random transforms, and bodies moved by twists."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.rotation import about_axis, exp_motion, matrix_from_quaternion
from coupler.spatial import Transform


def random_transform(rng: np.random.Generator) -> Transform:
    axis = rng.normal(size=3)
    return Transform(about_axis(axis / np.linalg.norm(axis), rng.uniform(-3, 3)), rng.normal(size=3))


def moved(X: Transform, twist: Any) -> Transform:
    """X with its second frame moved by a twist in that frame's own coordinates."""
    turn, shift = exp_motion(twist)
    return Transform(matrix_from_quaternion(turn).T, shift) @ X
