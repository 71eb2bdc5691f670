"""The lengths and widths of contact forces' arrows, relative to the robot's size, so that they show beside limbs."""

from __future__ import annotations

import numpy as np

from coupler.model import Robot
from coupler.model.tolerances import TINY

COLOUR = (0.82, 0.13, 0.18)
SHAFT, HEAD, HEAD_LENGTH = 0.009, 0.028, 0.06  # radii, and the length of the head
_WEIGHT = 0.6  # the length of the arrow of the robot's weight
_LONGEST = 1.6  # longer arrows are cut, as those of impacts are


def metres_per_newton(robot: Robot, size: float, strongest: float = 0.0) -> float:
    """The scale of arrows, m/N, by the robot's weight, or by the strongest force, N, for a robot without weight."""
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    return _WEIGHT * size / (weight or strongest or 1.0)


def arrow_extents(forces: np.ndarray, scale: float, size: float) -> np.ndarray:
    """Vectors from the starts of arrows to their tips, (n, 3), m, for forces, (n, 3), N."""
    extent = scale * forces
    length = np.linalg.norm(extent, axis=1, keepdims=True)
    return extent * np.minimum(1.0, _LONGEST * size / np.maximum(length, TINY))
