"""Whether two shapes meet within a step, or pass each other.

A contact's law is linear: the gap g along the normal n of the step's start must not be closed, g/h + n·w ≥ 0 [002, eq.
4a]. That is a half-space, and what it forbids is more than what the bodies fill: a ball that passes beside a box would
be stopped by a wall that is not there. So before a contact acts whose gap is open, the shapes are moved along the step:
conservative advancement. They are apart by g(t), along n(t); that closes no faster than c = −n·w + Σ |ω × n| r, with
the relative velocity w of their middles and how far r they reach from there. So up to t + g/c they do not meet. Where
this leads beyond the end of the step, they pass; where g vanishes, they meet at t; and what is not decided after some
steps counts as met, for no contact may be missed.

Then the law is that of the place where they meet, with its normal: their motion up to t is a part of the gap,
g(0) = g(t) − t n·w. So a ball that meets an edge is deflected by it, and not stopped by the face beside.

Shapes that come no deeper than `slop` pass. So what slides over flush boxes does not trip over their seams, on which it
lies to rounding. If they stay so deep, the next step parts them.

Functions here take floats or nodes of a trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.collision.convex.cores import radius
from coupler.contact.collision.geometry import Contact, Point, contacts, has_closed_form
from coupler.contact.collision.terrain.contacts import FURTHER
from coupler.contact.pairs import Pair
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Hull, Plane, Sphere
from coupler.rotation import matrix_from_quaternion, normalize_quaternion
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

SLOP = 1e-6  # m: the most that shapes overlap which pass each other within a step
_LEAST_SLOP = 1e-11  # m: of any step; above rounding
_SETTLES = 1.0  # m/s²: less than gravity
MOST_ADVANCES = 24  # what is not decided then acts: bodies that graze each other nearly, which needs ever shorter ways
_PARALLEL = 1e-8  # the square of the sine of an angle between edges, below which they give no direction of their own


def can_pass(pair: Pair) -> bool:
    """Whether the shapes of a pair may pass each other, and a program can tell: not a plane, which is a half-space.

    With a field all but points can: a point knows but the ground below it.
    """
    one, other = pair.one.geometry, pair.other.geometry
    if any(isinstance(form, Plane) for form in (one, other)):
        return False
    return on_field(one, other) or not any(isinstance(form, HeightField) for form in (one, other))


def on_field(one: Geometry, other: Geometry) -> bool:
    """Whether these are a height field and a shape: contacts with the ground are no fixed list.

    Which of a pair's contacts is which may change on the way. So all of them are asked if one is in doubt.
    """
    forms = one, other
    return any(isinstance(form, HeightField) for form in forms) and not any(isinstance(form, Point) for form in forms)


def is_searched(one: Geometry, other: Geometry) -> bool:
    """Whether contacts on the way of two convex shapes are searched for: they have no closed form, and are not boxes.

    Like those with a height field, they are no fixed list.
    """
    return not (on_field(one, other) or _boxes(one, other) or has_closed_form(one, other))


def _boxes(one: Geometry, other: Geometry) -> bool:
    return isinstance(one, Box) and isinstance(other, Box)


@dataclass(frozen=True, eq=False)
class Shift:
    """How a shape moves within a step.

    Attributes:
        form: the shape.
        X: the transform from the world to it, before the step.
        angular: 3, its angular velocity in the world, rad/s; None if it does not move.
        linear: 3, the velocity of its middle, m/s.
        reach: how far from its middle turning moves its surface, m; if not given, as `reach_of` tells.
        axis: 3, along the axis about which it is round; if not given, as `axis_of` tells.
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
        """Of a shape at a place of a link, from the link's pose and its velocity along its own axes."""
        along = v[3:] + cross(v[:3], at.r)
        return cls(form, at @ link, link.E.T @ v[:3], link.E.T @ along, reach, axis)

    def after(self, t: Any) -> Transform:
        """The transform from the world to the shape after a time: its middle goes straight, and it turns steadily."""
        if self.angular is None or self.linear is None:
            return self.X
        half = 0.5 * t * (self.X.E @ self.angular)  # its length is the tangent of half the angle, to (t ω)³ / 24
        turn = matrix_from_quaternion(normalize_quaternion(np.concatenate([np.ones(1), half])))
        return Transform(turn.T @ self.X.E, self.X.r + t * self.linear)

    def velocity(self, t: Any, point: Array) -> Array:
        """3, how fast the shape moves at a point of the world after a time."""
        if self.angular is None or self.linear is None:
            return np.zeros(3)
        return self.linear + cross(self.angular, point - self.X.r - t * self.linear)

    @property
    def turning_speed(self) -> Any:
        """How fast its surface moves at most by turning, m/s; spin about an axis of symmetry does not move it."""
        if self.angular is None:
            return 0.0
        spin = (axis_of(self.form) if self.axis is None else self.axis) @ (self.X.E @ self.angular)
        return np.sqrt(np.maximum(self.angular @ self.angular - spin * spin, 0.0)) * self._reach

    def turning_along(self, normal: Array) -> Any:
        """How fast it reaches further along a fixed normal at most by turning, m/s: spin about that does not count."""
        if self.angular is None:
            return 0.0
        across = cross(self.angular, normal)
        return np.minimum(np.sqrt(across @ across) * self._reach, self.turning_speed)

    @property
    def _reach(self) -> Any:
        return reach_of(self.form) if self.reach is None else self.reach


def axis_of(form: Geometry) -> np.ndarray:
    """3, along the axis about which a shape is round; zero if there is none."""
    if isinstance(form, Capsule | Cylinder):
        return np.array([0.0, 0.0, 1.0])
    if isinstance(form, Ellipsoid):
        alike = [i for i in range(3) if form.radii[(i + 1) % 3] == form.radii[(i + 2) % 3]]
        return np.eye(3)[alike[0]] if alike else np.zeros(3)
    return np.zeros(3)


def reach_of(form: Geometry) -> float:
    """How far a shape's surface moves outward at most, by radian that it turns about the middle of its frame, m."""
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
    """The contacts of two shapes after a time; none of boxes, which are asked for their separating axes."""
    if _boxes(one.form, other.form):
        return []
    return contacts(one.form, other.form, one.after(t), other.after(t))


def nearest(one: Shift, other: Shift, t: Any, contacts: list[Contact]) -> tuple[Any, Array]:
    """How far two shapes are apart after a time at least, m, and along which normal, from the second to the first.

    Args:
        one, other: the shapes.
        t: s.
        contacts: their contacts then; see `shifted`.
    """
    if not contacts:
        return _apart(one.form, other.form, one.after(t), other.after(t))
    gap, normal = contacts[0].gap, contacts[0].frame[0]
    for contact in contacts[1:]:
        nearer = contact.gap < gap
        gap, normal = np.where(nearer, contact.gap, gap), np.where(nearer, contact.frame[0], normal)
    return gap, normal


def closing_speed(one: Shift, other: Shift, normal: Array) -> Any:
    """How fast two shapes that are apart along a normal can come nearer at most, m/s."""
    speed = one.turning_along(normal) + other.turning_along(normal)
    if one.linear is not None:
        speed = speed - normal @ one.linear
    return speed if other.linear is None else speed + normal @ other.linear


def slop(step: Any) -> Any:
    """How deep shapes may overlap that pass each other within a step of h, s: less than what falls from rest gets to.

    So what rests on another body is held from the first step on, and an overlap of this depth is parted gently.
    """
    return np.clip(_SETTLES * step * step, _LEAST_SLOP, SLOP)


def advanced(t: Any, gap: Any, closing: Any, step: Any) -> tuple[Any, Any, Any]:
    """One step of conservative advancement.

    Args:
        t: up to which time the shapes do not meet, s.
        gap: how far they are apart then, m.
        closing: how fast that can close at most, m/s.
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
    """How far around a shape all ground of a height field is seen, m."""
    return (FURTHER - 1.0) * radius(other if isinstance(one, HeightField) else one)


def too_fast(one: Shift, other: Shift, around: Any, time: Any) -> Any:
    """Whether a shape near a height field may move further within a time than the ground is seen `around` it, m."""
    way = approach(one, other) * time
    return (way > around) & (way > _height_above(one, other, around))


def _height_above(one: Shift, other: Shift, around: Any) -> Any:
    """How high a shape is above the highest point of a height field at least, m."""
    field, shape = (one, other) if isinstance(one.form, HeightField) else (other, one)
    assert isinstance(field.form, HeightField)
    ball = np.maximum(around / (FURTHER - 1.0), reach_of(shape.form) if shape.reach is None else shape.reach)
    return field.X.E[2] @ (shape.X.r - field.X.r) - float(field.form.heights.max()) - ball


def approach(one: Shift, other: Shift) -> Any:
    """How fast any points of two shapes move past each other at most, m/s."""
    zero = np.zeros(3)
    away = (zero if one.linear is None else one.linear) - (zero if other.linear is None else other.linear)
    return np.sqrt(away @ away) + one.turning_speed + other.turning_speed


def advanced_among(
    t: Any, one: Shift, other: Shift, contacts: list[Contact], step: Any, around: Any
) -> tuple[Any, Any, Any]:
    """The same of a shape on a height field, which is not convex: it meets the first of several places.

    Places that do not close within the step do not count, as the ground that a ball rolls on. What is further away than
    `around` has not been looked at, and the shapes do not move further than that at a time.

    Args:
        t: up to which time the shapes do not meet, s.
        one, other: the shapes.
        contacts: their contacts then.
        step: h, s.
        around: see `seen_around`.
    """
    fast = approach(one, other) * (step - t) > around
    soonest = np.where(fast, around / np.where(fast, approach(one, other), 1.0), step)
    meeting, closes = np.False_, fast
    for contact in contacts:
        clearance, closing = contact.gap + slop(step), closing_speed(one, other, contact.frame[0])
        own = closing * (step - t) > clearance
        touches = own & (clearance <= 0.5 * slop(step))
        ahead = own & np.logical_not(touches)
        soonest = np.minimum(soonest, np.where(ahead, clearance / np.where(ahead, closing, 1.0), step))
        meeting, closes = meeting | touches, closes | own
    passes = np.logical_not(closes)
    return np.where(meeting | passes, t, t + soonest), passes, meeting


def _apart(one: Any, other: Any, X_one: Transform, X_other: Transform) -> tuple[Any, Array]:
    """The same for two boxes, by their separating axes: faces of both, and edges of one across edges of the other."""
    A, B, away = X_one.E, X_other.E, X_one.r - X_other.r
    a, b = 0.5 * one.size, 0.5 * other.size
    C = A @ B.T
    of_one = [(A[i], a[i] + np.abs(C[i]) @ b) for i in range(3)]
    of_other = [(B[j], b[j] + np.abs(C[:, j]) @ a) for j in range(3)]
    best, normal = None, A[0]
    for axis, reach in (*of_one, *of_other):
        best, normal = _further(best, normal, axis, away, reach)
    for i in range(3):
        for j in range(3):
            axis = np.stack(list(cross(A[i], B[j])))
            square = axis @ axis
            crossed = square > _PARALLEL
            axis = axis / np.sqrt(np.where(crossed, square, 1.0))
            reach = np.abs(A @ axis) @ a + np.abs(B @ axis) @ b
            best, normal = _further(best, normal, axis, away, reach, crossed)
    return best, normal


def _further(best: Any, normal: Array, axis: Array, away: Array, reach: Any, valid: Any = True) -> tuple[Any, Array]:
    along = axis @ away
    apart = np.abs(along) - reach
    axis = axis * np.copysign(1.0, along)
    if best is None:
        return apart, axis
    further = valid & (apart > best)
    return np.where(further, apart, best), np.where(further, axis, normal)
