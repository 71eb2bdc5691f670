"""Whether two shapes meet within a step, or pass each other, on floats or nodes of a trace.

A contact's law is linear: the gap g along the normal n at the start of the step must not close, g/h + n·w ≥ 0 [002, eq.
4a]. That forbids a half-space, which is more than the bodies fill: a ball that passes beside a box would be stopped by
a wall that is not there. So before an open contact acts, the shapes are moved along the step by conservative
advancement. They are g(t) apart along n(t), and the gap closes no faster than c = −n·w + Σ |ω × n| r, where w is the
relative velocity of their centres and r how far each shape reaches from its centre. So they do not meet before t + g/c.
If that is beyond the end of the step, they pass; if g vanishes, they meet at t; and if neither is clear after some
iterations, they count as meeting, because no contact may be missed.

The law then holds at the place where they meet, with the normal there, and their motion up to t becomes a part of the
gap, g(0) = g(t) − t n·w. So a ball that meets an edge is deflected by the edge, and not stopped by the face beside it.

Shapes that overlap by at most `slop` also pass. So a shape that slides over flush boxes does not trip over their seams,
where it lies on them to rounding. If shapes stay that deep in each other, the next step parts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.collision.convex.cores import radius
from coupler.contact.collision.distance_boxes import between_boxes
from coupler.contact.collision.geometry import Contact, Point, contacts, has_closed_form
from coupler.contact.collision.terrain.contacts import FURTHER
from coupler.contact.pairs import Pair
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Hull, Plane, Sphere
from coupler.rotation import matrix_from_quaternion, normalize_quaternion
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

SLOP = 1e-6  # m: the largest overlap of shapes that pass each other within a step
_LEAST_SLOP = 1e-11  # m: the least slop of any step, above rounding
_SETTLES = 1.0  # m/s²: below gravity
MOST_ADVANCES = 24  # then the contact acts: shapes that nearly graze each other would need ever shorter advances


def can_pass(pair: Pair) -> bool:
    """Whether the shapes of a pair may pass each other. Planes are half-spaces, which nothing passes.

    Nor do points pass a height field, because a point only sees the ground straight below it.
    """
    one, other = pair.one.geometry, pair.other.geometry
    if any(isinstance(form, Plane) for form in (one, other)):
        return False
    return on_field(one, other) or not any(isinstance(form, HeightField) for form in (one, other))


def on_field(one: Geometry, other: Geometry) -> bool:
    """Whether one shape is a height field and the other is not a point: their contacts are not a fixed list.

    The numbering of such a pair's contacts may change within the step, so if one of them is in doubt, all are checked.
    """
    forms = one, other
    return any(isinstance(form, HeightField) for form in forms) and not any(isinstance(form, Point) for form in forms)


def is_searched(one: Geometry, other: Geometry) -> bool:
    """Whether contacts of two convex shapes within a step must be searched for: no closed form, and not two boxes.

    Like contacts with a height field, they are not a fixed list.
    """
    return not (on_field(one, other) or _boxes(one, other) or has_closed_form(one, other))


def _boxes(one: Geometry, other: Geometry) -> bool:
    return isinstance(one, Box) and isinstance(other, Box)


@dataclass(frozen=True, eq=False)
class Shift:
    """The motion of a shape within a step.

    Attributes:
        form: the shape's geometry.
        X: the transform from the world to the shape before the step.
        angular: 3, its angular velocity along the world's axes, rad/s; None if it does not move.
        linear: 3, the velocity of its centre, m/s.
        reach: how far from its centre rotation moves its surface, m; that of `reach_of`, if None.
        axis: 3, its axis of rotational symmetry; that of `axis_of`, if None.
    """

    form: Geometry
    X: Transform
    angular: Array | None = None
    linear: Array | None = None
    reach: Any = None
    axis: Any = None

    @classmethod
    def on_link(
        cls, form: Geometry, at: Transform, link: Transform, v: Array, reach: Any = None, axis: Any = None
    ) -> Shift:
        """The motion of a shape placed `at` a link, from the link's pose and its velocity along its own axes."""
        along = v[3:] + cross(v[:3], at.r)
        return cls(form, at @ link, link.E.T @ v[:3], link.E.T @ along, reach, axis)

    def after(self, t: Any) -> Transform:
        """The transform from the world to the shape at time t; its centre moves straight, and it turns steadily."""
        if self.angular is None or self.linear is None:
            return self.X
        half = 0.5 * t * (self.X.E @ self.angular)  # its length is the tangent of half the angle, to (t ω)³ / 24
        turn = matrix_from_quaternion(normalize_quaternion(np.concatenate([np.ones(1), half])))
        return Transform(turn.T @ self.X.E, self.X.r + t * self.linear)

    def velocity(self, t: Any, point: Array) -> Array:
        """3, the velocity of the shape at a point of the world at time t."""
        if self.angular is None or self.linear is None:
            return np.zeros(3)
        return self.linear + cross(self.angular, point - self.X.r - t * self.linear)

    @property
    def turning_speed(self) -> Any:
        """The largest speed of its surface due to rotation, m/s; spin about an axis of symmetry does not count."""
        if self.angular is None:
            return 0.0
        spin = (axis_of(self.form) if self.axis is None else self.axis) @ (self.X.E @ self.angular)
        return np.sqrt(np.maximum(self.angular @ self.angular - spin * spin, 0.0)) * self._reach

    def turning_along(self, normal: Array) -> Any:
        """The largest speed at which rotation extends it along a normal, m/s; spin about the normal does not count."""
        if self.angular is None:
            return 0.0
        across = cross(self.angular, normal)
        return np.minimum(np.sqrt(across @ across) * self._reach, self.turning_speed)

    @property
    def _reach(self) -> Any:
        return reach_of(self.form) if self.reach is None else self.reach


def axis_of(form: Geometry) -> np.ndarray:
    """3, the axis of rotational symmetry of a shape; zero if there is none."""
    if isinstance(form, Capsule | Cylinder):
        return np.array([0.0, 0.0, 1.0])
    if isinstance(form, Ellipsoid):
        round_about = [i for i in range(3) if form.radii[(i + 1) % 3] == form.radii[(i + 2) % 3]]
        return np.eye(3)[round_about[0]] if round_about else np.zeros(3)
    return np.zeros(3)


def reach_of(form: Geometry) -> float:
    """How far a shape's surface moves outward at most, per radian of rotation about its centre, m."""
    match form:
        case Ellipsoid():
            return float(np.ptp(form.radii))
        case Cylinder():
            return max(form.radius, 0.5 * form.length)
        case Capsule():
            return 0.5 * form.length
        case Hull():
            return float(np.linalg.norm(form.vertices, axis=1).max())
        case HeightField():
            return float(0.5 * np.hypot(*form.size) + np.abs(form.heights).max())
    return 0.0 if isinstance(form, Point | Sphere) else radius(form)


def shifted(one: Shift, other: Shift, t: Any) -> list[Contact]:
    """The contacts of two shapes at time t; none for two boxes, whose distance follows from separating axes."""
    if _boxes(one.form, other.form):
        return []
    return contacts(one.form, other.form, one.after(t), other.after(t))


def nearest(one: Shift, other: Shift, t: Any, contacts: list[Contact]) -> tuple[Any, Array]:
    """A lower bound of the distance of two shapes at time t, m, and its normal, from the second to the first.

    Args:
        one, other: the motions of the shapes.
        t: the time since the start of the step, s.
        contacts: the shapes' contacts at that time; see `shifted`.
    """
    if not contacts:
        assert isinstance(one.form, Box)
        assert isinstance(other.form, Box)
        return between_boxes(one.form, other.form, one.after(t), other.after(t))
    gap, normal = contacts[0].gap, contacts[0].frame[0]
    for contact in contacts[1:]:
        nearer = contact.gap < gap
        gap, normal = np.where(nearer, contact.gap, gap), np.where(nearer, contact.frame[0], normal)
    return gap, normal


def closing_speed(one: Shift, other: Shift, normal: Array) -> Any:
    """The largest speed at which two shapes can approach each other along a normal, m/s."""
    speed = one.turning_along(normal) + other.turning_along(normal)
    if one.linear is not None:
        speed = speed - normal @ one.linear
    return speed if other.linear is None else speed + normal @ other.linear


def slop(step: Any) -> Any:
    """How deep shapes that pass each other may overlap in a step, m: less than a body falls from rest in it.

    So a body that rests on another is held from the first step on, and an overlap of this depth is parted gently.
    """
    return np.clip(_SETTLES * step * step, _LEAST_SLOP, SLOP)


def advanced(t: Any, gap: Any, closing: Any, step: Any) -> tuple[Any, Any, Any]:
    """One step of conservative advancement.

    Args:
        t: the time up to which the shapes do not meet, s.
        gap: their distance at that time, m.
        closing: the largest speed at which the gap can close, m/s.
        step: h, s.

    Returns:
        A later such time, whether the shapes pass each other, and whether they meet at t.
    """
    clearance = gap + slop(step)
    meeting = clearance <= 0.5 * slop(step)
    passes = np.logical_not(meeting) & (closing * (step - t) <= clearance)
    goes_on = np.logical_not(meeting | passes)
    return np.where(goes_on, t + clearance / np.where(goes_on, closing, 1.0), t), passes, meeting


def seen_around(one: Geometry, other: Geometry) -> float:
    """How far around a shape the search of a height field sees all ground, m."""
    return (FURTHER - 1.0) * radius(other if isinstance(one, HeightField) else one)


def too_fast(one: Shift, other: Shift, around: Any, time: Any) -> Any:
    """Whether a shape near a height field may move beyond the ground seen `around` it, m, within a time."""
    distance = approach(one, other) * time
    return (distance > around) & (distance > _height_above(one, other, around))


def _height_above(one: Shift, other: Shift, around: Any) -> Any:
    """A lower bound of a shape's height above the highest point of a height field, m."""
    field, shape = (one, other) if isinstance(one.form, HeightField) else (other, one)
    assert isinstance(field.form, HeightField)
    ball = np.maximum(around / (FURTHER - 1.0), reach_of(shape.form) if shape.reach is None else shape.reach)
    return field.X.E[2] @ (shape.X.r - field.X.r) - float(field.form.heights.max()) - ball


def approach(one: Shift, other: Shift) -> Any:
    """The largest relative speed of any points of two shapes, m/s."""
    zero = np.zeros(3)
    away = (zero if one.linear is None else one.linear) - (zero if other.linear is None else other.linear)
    return np.sqrt(away @ away) + one.turning_speed + other.turning_speed


def advanced_among(
    t: Any, one: Shift, other: Shift, contacts: list[Contact], step: Any, around: Any
) -> tuple[Any, Any, Any]:
    """One step of conservative advancement over a height field, where a shape meets the first of several places.

    Places whose gap does not close within the step do not count, such as the ground on which a ball rolls. Ground
    further away than `around` has not been searched, so the shapes advance by at most that distance at a time.

    Args:
        t: the time up to which the shapes do not meet, s.
        one, other: the motions of the shapes.
        contacts: their contacts at that time.
        step: h, s.
        around: see `seen_around`.

    Returns:
        As for `advanced`.
    """
    fast = approach(one, other) * (step - t) > around
    soonest = np.where(fast, around / np.where(fast, approach(one, other), 1.0), step)
    meeting, closes = np.False_, fast
    for contact in contacts:
        clearance, closing = contact.gap + slop(step), closing_speed(one, other, contact.frame[0])
        near_enough = closing * (step - t) > clearance
        touches = near_enough & (clearance <= 0.5 * slop(step))
        ahead = near_enough & np.logical_not(touches)
        soonest = np.minimum(soonest, np.where(ahead, clearance / np.where(ahead, closing, 1.0), step))
        meeting, closes = meeting | touches, closes | near_enough
    passes = np.logical_not(closes)
    return np.where(meeting | passes, t, t + soonest), passes, meeting
