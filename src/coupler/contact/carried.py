"""Contacts within a step of higher order, during which bodies move while forces act: on floats, or nodes of a trace.

The impulses of a step are spread over it as forces [002, §4.1], which act where the shapes touch in each stage. (If
they acted at the places where the shapes touched at the start, forces on sliding shapes would have a wrong lever arm,
and the energy would have an error of first order.) If a pair's contacts have a closed form, the form gives the place:
below the centre of a ball, wherever it rolls. Other contacts are carried along by their bodies, and so are those that
would jump: a cylinder that stands on its rim touches now at one place, now at another.

Forces keep their directions in the world, except those along a normal that turns: on balls that pass each other, such
forces would no longer point at the centres, and would make the balls spin without friction. The normal force of shapes
that already touch turns with the normal. The normal force of shapes that meet within the step is an impact. It keeps
the direction in which they meet, so that it does the work that the law prescribes, and acts on each ball where the
ball's surface has that normal.

Forces that move along with a body whose weight is small beside them drive its turning: they let it fall from its
balance on them, and have to be corrected by the next step. Where they are so strong that it falls faster than steps
follow, as in a light box under a heavy one, they keep their lever arms and their directions.

Velocities after a step are those of contacts where they then are [002, eq. 6, 10]: with the directions at the start of
the step, a turning body would sink into the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact, forces_on
from coupler.contact.laws import TINY
from coupler.rotation import exp_motion, matrix_from_quaternion
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

_JUMP = 20.0  # times the speed of bodies at a contact: one that moves faster along a rim is another contact
_STRONG = 0.1  # of (ω h)², at which a body falls from its balance as exp(ω t): from 1 on, steps do not correct that
_TURNED = 0.5  # the cosine by which a normal may turn within a step; if it turns further, it is another contact
_STILL = 1e-9  # m: how far contacts of bodies at rest may move


@dataclass(frozen=True, eq=False)
class Carrier:
    """A moving body that carries one of the shapes of a contact.

    Attributes:
        sign: 1 for the first shape, -1 for the second.
        X: the transform from the world to the body at the start of a step.
        v: 6, the body's velocity then, along its own axes.
        v_after: 6, its velocity after the step without impulses.
    """

    sign: float
    X: Transform
    v: Array
    v_after: Array


def moved(X: Transform, v: Array, time: Any) -> Transform:
    """The transform from the world to a body after it has moved for some time with a velocity along its own axes."""
    turn, shift = exp_motion(time * v)
    return Transform(matrix_from_quaternion(turn).T @ X.E, X.r + X.E.T @ shift)


def on_carriers(carriers: Sequence[Transform], point: Array) -> list[Array]:
    """A point of the world in the frame of each body that carries it."""
    return [X.E @ (point - X.r) for X in carriers]


def carried(carriers: Sequence[Transform], places: Sequence[Array]) -> Array:
    """The present place of a point that had these places on its carriers; halfway between, if two bodies carry it."""
    points = [X.r + X.E.T @ place for X, place in zip(carriers, places, strict=True)]
    return reduce(add, points) / len(points)


def centre(X: Transform, place: Array) -> Array:
    """A body's centre of mass in the world, given its place in the body's frame."""
    return X.r + X.E.T @ place


def strength(force: Array, arm: Array, inertia: Any, step: Any) -> Any:
    """(ω h)² = h² |F| |r| / I, to which each force on a body adds; see the top of this module.

    Args:
        force: 3, F, N.
        arm: 3, r, from the body's centre of mass to where the force acts, m.
        inertia: I, the body's mean rotational inertia, kg m²; that of other bodies that hang on it does not count.
        step: h, s.
    """
    return step * step * _length(force) * _length(arm) / (inertia + TINY)


def is_strong(strengths: Any) -> Any:
    """Whether forces on a body keep their lever arms, given the sum of their strengths."""
    return strengths > _STRONG


def reach(carriers: Sequence[Carrier], point: Array, step: Any) -> Any:
    """The largest distance, m, that a contact can move within a step from where its bodies carry it."""
    speed = 0.0
    for body in carriers:
        arm = point - body.X.r
        speed = speed + _length(body.v[3:]) + _length(body.v[:3]) * _length(arm)
    return _STILL + _JUMP * step * speed


def followed(point: Array, carried_point: Array, farthest: Any) -> Any:
    """Whether the contact found at one point is the one that was carried along to another point."""
    return _length(point - carried_point) <= farthest


def on_same_side(normal: Array, normal_before: Array) -> Any:
    """Whether a contact is still on the sides of its bodies where it was, and these have not moved past each other."""
    return normal @ normal_before > _TURNED


def velocity_ahead(
    contact: Contact, there: Contact | None, carriers: Sequence[Carrier], step: Any, rows: int = 3
) -> Array:
    """(rows,): a contact's velocity after a step without impulses, along its normal then and its tangents at the start.

    Args:
        contact: the contact at the start.
        there: the contact after the bodies have moved; None if it has no closed form.
        carriers: the bodies that carry it.
        step: h, s.
        rows: 3, m/s; or 4, with the spin about that normal, rad/s; or 6, also with the rotation about the tangents.
    """
    before, after = [body.X for body in carriers], [moved(body.X, body.v, step) for body in carriers]
    point, normal = carried(after, on_carriers(before, contact.point)), contact.frame[0]
    if there is not None:
        same = followed(there.point, point, reach(carriers, contact.point, step)) & on_same_side(there.frame[0], normal)
        point, normal = np.where(same, there.point, point), np.where(same, there.frame[0], normal)
    there = Contact(contact.gap, point, np.stack([normal, contact.frame[1], contact.frame[2]]))
    parts = [body.sign * (forces_on(X, there, rows).T @ body.v_after) for body, X in zip(carriers, after, strict=True)]
    return reduce(add, parts)


def turned(force: Array, normal: Array, new_normal: Array) -> Array:
    """A contact force whose part along the contact's normal now points along another normal."""
    return force + (force @ normal) * (new_normal - normal)


def on_surface(point: Array, gap: Any, there: Array, normal: Array, sign: float, margin: Any) -> Array:
    """The point of a rounded shape, such as a ball, with a given normal, found from a contact with another normal.

    Args:
        point, gap, there: the contact's point and gap, and its normal there.
        normal: the normal asked for.
        sign: the sign of the shape; see `Carrier`.
        margin: the radius of the ball or of the rounding, m; with zero, the result is the contact's point.
    """
    return point + np.where(margin > 0.0, sign * (margin + 0.5 * gap), 0.0) * (there - normal)


def load(point: Array, force: Array, moment: Array) -> Array:
    """6: the spatial force about the world's origin of a force at a point, and a moment."""
    return np.concatenate([cross(point, force) + moment, force])


def _length(x: Array) -> Any:
    return np.sqrt(x @ x)
