"""Contacts within a step of higher order, in which bodies move on while forces act: on floats, or nodes of a trace.

The impulses of a step are spread over it as forces [002, §4.1]. They act where the shapes touch in each stage. (At the
places of the step's start, those that slide would be pushed with a wrong lever, and energy err by first order.) Where a
pair's contacts have a closed form, that tells the place: below the centre of a ball, wherever it rolls. Others are
carried along by the bodies that they are on, and so are those which would jump: a cylinder that stands on its rim
touches now here, now there.

Forces keep their directions in the world, but for those along a normal that turns: on balls that pass each other, they
would not point at the centres any more, and make them spin without friction. The normal force of shapes that touch
already turns with the normal. That of shapes that meet within the step is an impact and keeps the direction in which
they meet, so that it does the work of the law; it acts on each ball where its surface has that normal.

Velocities after a step are those of contacts where they then are [002, eq. 6, 10]: along the directions of the step's
start a body that turns would sink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact, forces_on
from coupler.rotation import exp_motion, matrix_from_quaternion
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

_JUMP = 4.0  # times how fast bodies move about a contact: one that goes faster is another one
_STILL = 1e-9  # m: by so much contacts of bodies at rest may move


@dataclass(frozen=True, eq=False)
class Carrier:
    """A body that moves and has one of the shapes of a contact.

    Attributes:
        sign: 1 of the first shape, -1 of the second.
        X: the transform from the world to it, at the start of a step.
        v: 6, its velocity then, along its own axes.
        v_after: 6, the same after the step without impulses.
    """

    sign: float
    X: Transform
    v: Array
    v_after: Array


def moved(X: Transform, v: Array, time: Any) -> Transform:
    """The transform from the world to a body that has moved for some time with a velocity along its own axes."""
    turn, shift = exp_motion(time * v)
    return Transform(matrix_from_quaternion(turn).T @ X.E, X.r + X.E.T @ shift)


def on_carriers(carriers: Sequence[Transform], point: Array) -> list[Array]:
    """A point of the world in the frame of each body that carries it."""
    return [X.E @ (point - X.r) for X in carriers]


def carried(carriers: Sequence[Transform], places: Sequence[Array]) -> Array:
    """Where a point is that had these places on bodies: halfway, if two of them carry it."""
    points = [X.r + X.E.T @ place for X, place in zip(carriers, places, strict=True)]
    return reduce(add, points) / len(points)


def reach(carriers: Sequence[Carrier], point: Array, step: Any) -> Any:
    """How far from where it is carried a contact can be within a step, m."""
    speed = 0.0
    for body in carriers:
        arm = point - body.X.r
        speed = speed + _length(body.v[3:]) + _length(body.v[:3]) * _length(arm)
    return _STILL + _JUMP * step * speed


def followed(there: Array, along: Array, farthest: Any) -> Any:
    """Whether a contact that is found somewhere is the one that is carried along."""
    return _length(there - along) <= farthest


def velocity_ahead(contact: Contact, there: Contact | None, carriers: Sequence[Carrier], step: Any) -> Array:
    """3: velocities of a contact after a step without impulses, along the normal there and tangents of the start, m/s.

    Args:
        contact: as it is at the start.
        there: the same once bodies have moved; None where there is no closed form for it.
        carriers: the bodies.
        step: h, s.
    """
    before, after = [body.X for body in carriers], [moved(body.X, body.v, step) for body in carriers]
    point, normal = carried(after, on_carriers(before, contact.point)), contact.frame[0]
    if there is not None:
        same = followed(there.point, point, reach(carriers, contact.point, step))
        point, normal = np.where(same, there.point, point), np.where(same, there.frame[0], normal)
    there = Contact(contact.gap, point, np.stack([normal, contact.frame[1], contact.frame[2]]))
    parts = [body.sign * (forces_on(X, there).T @ body.v_after) for body, X in zip(carriers, after, strict=True)]
    return reduce(add, parts)


def turned(force: Array, normal: Array, there: Array) -> Array:
    """A force on a contact, of which the part along its normal is now along another one."""
    return force + (force @ normal) * (there - normal)


def on_surface(point: Array, gap: Any, there: Array, normal: Array, sign: float, margin: Any) -> Array:
    """Where a ball has a normal, or another shape with a rounded surface, if it is touched where it has another one.

    Args:
        point, gap, there: of the contact, with its normal there.
        normal: the one that is asked for.
        sign: of the shape; see `Carrier`.
        margin: the radius of the ball, or of the rounding, m; if that is zero, the answer is the point itself.
    """
    return point + np.where(margin > 0.0, sign * (margin + 0.5 * gap), 0.0) * (there - normal)


def load(point: Array, force: Array) -> Array:
    """6: a force at a point, about the world's origin."""
    return np.concatenate([cross(point, force), force])


def _length(x: Array) -> Any:
    return np.sqrt(x @ x)
