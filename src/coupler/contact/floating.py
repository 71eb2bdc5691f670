"""Floating bodies within a step, on floats or nodes of a trace.

Centres of mass move along straight lines in the world, although velocities are kept along a body's own axes and at its
own origin. So impulses account for all changes of momentum, to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.graph import may_differ
from coupler.model import Free
from coupler.model.tree import Link
from coupler.rotation import matrix_from_quaternion
from coupler.spatial import cross

Array = Any  # an ndarray of floats, or of nodes


def centre_of(link: Link) -> np.ndarray:
    """3: the centre of mass of a floating link, in its own frame, m; its origin, if it has no mass."""
    return link.inertia.h / link.inertia.m if may_differ(link.inertia.m) else np.zeros(3)


def mean_inertia(link: Link) -> Any:
    """A link's rotational inertia about its centre of mass, mean of all axes, kg m²."""
    about_origin, c = np.trace(link.inertia.I), centre_of(link)
    return (about_origin - 2.0 * (link.inertia.h @ c)) / 3.0


def frame_rotation_bias(v: Array, centre: Array) -> Array:
    """6: (0, ω × v_c) for a floating body's velocity (ω, v) along its own axes; v_c is that of its centre of mass.

    Accelerations along turning axes, of a point that moves around the centre of mass, lack this term. With it, v + h (a
    + ω × v_c) is the velocity after a step along the axes before it, and without forces the velocity of the centre of
    mass does not change.
    """
    return np.concatenate([np.zeros(3), cross(v[:3], v[3:] + cross(v[:3], centre))])


def turned_velocity(v: Array, before: Array, after: Array, centre: Array) -> Array:
    """6: a velocity (ω, v) of a floating body along its axes after a rotation that keeps its centre of mass' velocity.

    Args:
        v: 6, the velocity along the axes before.
        before, after: 4 each, the orientations as quaternions.
        centre: 3, the centre of mass in the body's frame, m.
    """
    turn = matrix_from_quaternion(after).T @ matrix_from_quaternion(before)
    omega = turn @ v[:3]
    return np.concatenate([omega, turn @ (v[3:] + cross(v[:3], centre)) - cross(omega, centre)])


def straight_motion(q: Array, v: Array, step: Any, centre: Array, axes: Array | None = None) -> tuple[Array, Array]:
    """Position and velocity of a floating body after a step.

    Args:
        q: 7, the body's position before the step and its orientation, a quaternion.
        v: 6, its angular and linear velocity in the step, along its axes.
        step: h, s.
        centre: 3, its centre of mass in its own frame, m.
        axes: 4, the orientation along whose axes v is given; that before the step, if None.

    Returns:
        7 numbers like q; and 6 like v, along the axes after the step.
    """
    R = matrix_from_quaternion(q[3:])
    omega, along = v[:3], v[3:] + cross(v[:3], centre)
    if axes is not None:
        turn = R.T @ matrix_from_quaternion(axes)
        omega, along = turn @ omega, turn @ along
    turned = Free().normalize(Free().integrate(q, step * np.concatenate([omega, np.zeros(3)])))[3:]
    R_after, along = matrix_from_quaternion(turned), R @ along
    position = q[:3] + R @ centre + step * along - R_after @ centre
    after = np.concatenate([omega, R_after.T @ along - cross(omega, centre)])
    return np.concatenate([position, turned]), after
