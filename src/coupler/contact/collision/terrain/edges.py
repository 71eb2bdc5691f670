"""Where an edge of the ground is deepest in a convex shape, or nearest to it.

The distance d(t) of the shape along the edge is convex, so its slope never decreases. The edge is deepest where the
slope changes its sign. If the edge lies along a flat side, the slope is nearly zero over a stretch, and both ends of
the stretch are places of contact. So two crossings are computed: of the slope with −level, and with +level.

A crossing is found by alternating bisection with steps to where the tangents from both sides meet: the former is safe,
the latter exact where sides are flat. Where the slope jumps, as where the edge crosses an edge of the shape, the normal
is the mean of both sides' normals that is perpendicular to the edge, m = λ n₁ + (1−λ) n₂. The planes of both sides are
d away, so the shape is d/|m| away along m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.collision.terrain.solids import Planes, signed
from coupler.model.shapes import Sphere

Array = Any  # an ndarray of floats, or of nodes

_SAME = 1e-5  # of an edge's length: faces with the same slope are the same face if their distances agree to this
_ALIKE = 1e-12  # slopes that differ by less differ by rounding, and the mean of normals that nearly cancel is undefined
_STEPS = 14  # of a search; every other one bisects

Touch = tuple[Any, Any, Array, Array]  # whether it exists, its gap, the point of the edge, the shape's normal there


def along_edge(shape: Any, start: Array, edge: Array, level: float) -> list[Touch]:
    """The places where an edge touches a shape, except at its ends: two, or one for a ball.

    Args:
        shape: the shape, about its centre; see `signed`.
        start, edge: 3 each, the start of the edge, and the vector from there to its end.
        level: the tilt up to which an edge lies along a side, rad.
    """
    length = np.sqrt(edge @ edge)
    if isinstance(shape, Sphere):
        t = -(start @ edge) / (length * length)
        point = start + t * edge
        distance, normal = signed(shape, point)
        return [((t > 0.0) & (t < 1.0), distance, point, normal)]
    line = _Through(shape, start, edge, length) if isinstance(shape, Planes) else _Line(shape, start, edge, length)
    ends, contacts = (line.look(0.0), line.look(1.0)), []
    for at in (-level, level):
        low, high = ends
        exists = (low.slope < at) & (high.slope >= at)
        for k in range(_STEPS):
            t = 0.5 * (low.t + high.t) if k % 2 == 0 else _meeting(low, high, at, length)
            middle = line.look(t)
            before = middle.slope < at
            low, high = middle.where(before, low), high.where(before, middle)
        t, distance = _between(line, low, high, at, length)
        point = start + t * edge
        along = (high.slope <= level) if at < 0.0 else (low.slope >= -level)
        one, other = line.normal(low), line.normal(high)
        normal, shortened = _across(low, one, high, other)
        gap = np.where(along, distance, distance / shortened)
        normal = np.where(along, other if at < 0.0 else one, normal)
        contacts.append((exists & along if at > 0.0 else exists, gap, point, normal))
    return contacts


@dataclass(frozen=True, eq=False)
class _Place:
    """A place on an edge: its parameter, the shape's distance, the slope of the distance, and the normal."""

    t: Any
    distance: Any
    slope: Any
    outward: Array

    def where(self, condition: Any, other: _Place) -> _Place:
        """Selects this place where the condition holds, otherwise the other."""
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Place(*(np.where(condition, a, b) for a, b in both))


class _Line:
    """An edge beside a shape."""

    def __init__(self, shape: Any, start: Array, edge: Array, length: Any) -> None:
        self._shape, self._start, self._edge, self._length = shape, start, edge, length

    def look(self, t: Any) -> _Place:
        distance, normal = signed(self._shape, self._start + t * self._edge)
        return _Place(t, distance, (normal @ self._edge) / self._length, normal)

    def normal(self, place: _Place) -> Array:
        return place.outward


class _Through(_Line):
    """An edge beside a polyhedron: the distance from each face is linear, and the normal is only needed at the end."""

    def __init__(self, shape: Planes, start: Array, edge: Array, length: Any) -> None:
        super().__init__(shape, start, edge, length)
        self._lines = [(plane[:3] @ start - plane[3], plane[:3] @ edge) for plane in shape.planes]

    def look(self, t: Any) -> _Place:
        distance, slope = self._lines[0][0] + t * self._lines[0][1], self._lines[0][1]
        for value, rise in self._lines[1:]:
            beyond = value + t * rise
            further = beyond > distance
            distance, slope = np.where(further, beyond, distance), np.where(further, rise, slope)
        return _Place(t, distance, slope / self._length, np.zeros(3))

    def normal(self, place: _Place) -> Array:
        """The normal of the face that determines the distance: the first with this distance and slope."""
        normal = self._shape.planes[0][:3]
        for (value, rise), plane in reversed([*zip(self._lines, self._shape.planes, strict=True)]):
            near = value + place.t * rise >= place.distance - _SAME * self._length
            its = near & np.equal(rise / self._length, place.slope)
            normal = np.where(its, plane[:3], normal)
        return normal


def _between(line: _Line, low: _Place, high: _Place, level: float, length: Any) -> tuple[Any, Any]:
    """The crossing between two places: where tangents meet, or, with curved sides, where the slopes reach the level."""
    jump = high.slope - low.slope
    share = np.where(jump > _ALIKE, (level - low.slope) / np.where(jump > _ALIKE, jump, 1.0), 0.5)
    t, s = _meeting(low, high, level, length), low.t + np.clip(share, 0.0, 1.0) * (high.t - low.t)
    d, e = line.look(t).distance, line.look(s).distance
    better = e - level * length * s < d - level * length * t
    return np.where(better, s, t), np.where(better, e, d)


def _meeting(low: _Place, high: _Place, level: float, length: Any) -> Any:
    """Where the tangents of d(t) − level t from both sides meet."""
    a, b, width = (low.slope - level) * length, (high.slope - level) * length, high.t - low.t
    rises = b - a > _ALIKE * length
    share = (low.distance - high.distance) + level * length * width + b * width
    return np.clip(low.t + np.where(rises, share / np.where(rises, b - a, 1.0), 0.5 * width), low.t, high.t)


def _across(low: _Place, one: Array, high: _Place, other: Array) -> tuple[Array, Any]:
    """The mean of two places' normals that is perpendicular to the edge, as a unit vector, and its length before."""
    jump = high.slope - low.slope
    share = np.where(jump > _ALIKE, high.slope / np.where(jump > _ALIKE, jump, 1.0), 0.5)
    mean = share * one + (1.0 - share) * other
    square = mean @ mean
    length = np.sqrt(np.where(square > _ALIKE, square, 1.0))
    return mean / length, length
