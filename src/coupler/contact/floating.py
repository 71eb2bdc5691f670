"""Floating bodies within a step: they move along straight lines of the world, though their velocity is kept along their
own axes. So their momentum is what impulses make of it, to the last digits. Functions take floats or nodes of a trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model import Free
from coupler.rotation import matrix_from_quaternion
from coupler.spatial import cross

__all__ = ["frame_rotation_bias", "straight_motion"]

Array = Any  # an ndarray of floats, or of nodes


def frame_rotation_bias(v: Array) -> Array:
    """6: (0, ω × v) of a floating body's velocity (ω, v) along its own axes.

    Accelerations along axes that turn lack it: with it, v + h (a + ω × v) is the velocity after a step, seen along the
    axes before it, and without forces that stays as it is.
    """
    return np.concatenate([np.zeros(3), cross(v[:3], v[3:])])


def straight_motion(q: Array, v: Array, step: Any) -> tuple[Array, Array]:
    """Position and velocity of a floating body after a step.

    Args:
        q: 7, its position before the step and its orientation, a quaternion.
        v: 6, its angular and linear velocity in the step, along its axes before the step.
        step: h, s.

    Returns:
        7 numbers like q, and 6 like v, along its axes after the step.
    """
    turned = Free().normalize(Free().integrate(q, step * v))[3:]
    along = matrix_from_quaternion(q[3:]) @ v[3:]
    after = np.concatenate([q[:3] + step * along, turned])
    return after, np.concatenate([v[:3], matrix_from_quaternion(turned).T @ along])
