"""Where two shapes touch, or would: gap, point, normal and tangents. [002, §2.1, Fig. 1]

Each pair of kinds of shapes has a fixed number of candidate contacts (`count`), open ones among them, so that a step
of a simulation is one program. All pairs take floats; those with a closed form take nodes of a trace as well:

    plane with               point or sphere 1, capsule 2 (its ends), box 8 (its corners), hull (its vertices),
                             cylinder 4 (of its rims), ellipsoid 1
    height field with        point or sphere 1, capsule 2, box 8, cylinder 4, ellipsoid 1, hull (its vertices): only
                             these points touch
    point or sphere with     point, sphere, capsule, box, cylinder, ellipsoid: 1
    capsule with             capsule 1, box 3 (its ends, and where its axis is nearest to the box)

Other convex shapes have contacts of floats only, by `convex_distance`: hulls and boxes with each other 5 (the nearest
place, and four corners of what their faces next to it share), any other two 1, although one that rests on a face of
another touches it in more places. Candidates may coincide, such as those of a capsule whose end is nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coupler.contact.distance_coal import Solid, coal_distance
from coupler.contact.distance_convex import Support, convex_distance
from coupler.contact.distance_plane import box_corners, cylinder_points, ellipsoid_point
from coupler.contact.distance_point import (
    to_ball,
    to_box,
    to_capsule,
    to_cylinder,
    to_ellipsoid,
    to_field,
    to_plane,
    unit,
)
from coupler.contact.distance_segment import between_segments, nearest_to_box
from coupler.contact.faces import Faces, shared_corners
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Plane, Sphere
from coupler.spatial import Transform, cross

__all__ = ["Contact", "HeightField", "Hull", "Point", "contacts", "count", "forces_on", "has_closed_form", "tangents"]

Array = Any  # an ndarray of floats, or of nodes

_FLAT = 1e-9  # of its size: a hull that is thinner has no volume
_ROUNDS = 3  # in which the lowest point of a round shape over a field is sought
_TRACED = 1024  # the most heights of a field on nodes: each of them becomes operations of the program


@dataclass(frozen=True, eq=False)
class Point(Geometry):
    """A point, at the origin of its frame."""


@dataclass(frozen=True, eq=False)
class Hull(Geometry):
    """The convex hull of points.

    Attributes:
        vertices: n × 3, m, which span a volume. Those inside the hull do no harm, but each costs.
    """

    vertices: Any

    def __post_init__(self) -> None:
        what = "hull: its vertices"
        vertices = numbers(what, self.vertices, (3,), batch=True)
        spread = vertices - vertices.mean(axis=0) if vertices.ndim == 2 and len(vertices) else np.zeros((1, 3))
        if np.linalg.matrix_rank(spread, tol=_FLAT * max(float(np.abs(spread).max()), 1e-300)) < 3:
            raise ModelError(f"{what} must be n × 3 numbers that span a volume, got the shape {vertices.shape}")
        object.__setattr__(self, "vertices", vertices)


@dataclass(frozen=True, eq=False)
class HeightField(Geometry):
    """Ground of given heights over a grid, bilinear in between; its frame is at the middle of the grid, at height 0.

    Attributes:
        heights: n × m, along z, m; rows go along x, columns along y. Nodes of a trace take 1024 of them at most.
        size: 2, what the grid extends over along x and y, m.
    """

    heights: Any
    size: Any

    def __post_init__(self) -> None:
        heights = np.asarray(self.heights)
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ModelError(f"height field: its heights must be a grid, 2 × 2 at least, got the shape {heights.shape}")
        object.__setattr__(self, "heights", numbers("height field: its heights", heights, heights.shape))
        size = numbers("height field: its size", self.size, (2,))
        if not (size > 0.0).all():
            raise ModelError(f"height field: its size must be above zero, got {self.size!r}")
        object.__setattr__(self, "size", size)


@dataclass(frozen=True, eq=False)
class Contact:
    """A place where two bodies touch, or may.

    Attributes:
        gap: g_N, the distance of the two surfaces, m; negative if they overlap.
        point: 3, world, halfway between the two points that are nearest (or deepest), m.
        frame: 3 × 3, its rows unit vectors in the world: the normal, from the second body to the first, and two
            tangents. It is right-handed.
    """

    gap: Any
    point: Array
    frame: Array


Found = tuple[Any, Array, Array]  # gap, point, normal
Finder = Callable[[Any, Any, Transform, Transform], Iterator[Found]]


def contacts(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> list[Contact]:
    """The candidate contacts of two shapes, `count(one, other)` of them, in an order that does not change.

    Args:
        one, other: their forms.
        X_one, X_other: transforms from the world to each one's frame.

    Raises:
        ModelError: if there is no way to tell the contacts of such two, or none for nodes of a trace.
    """
    finder, _, swapped = _rule(one, other)
    if _traced(X_one, X_other) and not has_closed_form(one, other):
        what = f"contacts between {_called(one)} and {_called(other)} cannot be traced"
        if finder in _SEARCHING:
            raise ModelError(f"{what}: give one of them as spheres or capsules, which have a closed form")
        raise ModelError(f"{what}: the field has more than {_TRACED} heights; cut it to what is within reach")
    if swapped:
        found = ((gap, point, -normal) for gap, point, normal in finder(other, one, X_other, X_one))
    else:
        found = finder(one, other, X_one, X_other)
    return [Contact(gap, point, np.stack([normal, *tangents(normal)])) for gap, point, normal in found]


def forces_on(X: Transform, contact: Contact) -> Array:
    """6 × 3: the spatial forces on a body, in its own frame, by unit of impulse along normal and tangents.

    Their transpose gives the velocity of the body's point at the contact, along normal and tangents, by its motion.

    Args:
        X: the transform from the world to the body.
        contact: where it is touched.
    """
    along = X.E @ contact.frame.T
    arm = X.E @ (contact.point - X.r)
    turns = np.array([cross(arm, along[:, i]) for i in range(3)]).T
    return np.concatenate([turns, along])


def has_closed_form(one: Geometry, other: Geometry) -> bool:
    """Whether the contacts of two shapes can be told of nodes of a trace."""
    return _rule(one, other)[0] not in _SEARCHING and not _large(one) and not _large(other)


def count(one: Geometry, other: Geometry) -> int:
    """How many candidate contacts two shapes have."""
    return _rule(one, other)[1]


def tangents(normal: Array) -> tuple[Array, Array]:
    """Two unit vectors that make a right-handed frame with a unit normal.

    They are what the shortest turn from ±z to the normal makes of x and ±y, with the sign of the normal's z: smooth
    but at its equator.
    """
    x, y, z = normal
    sign = np.copysign(1.0, z)
    k = 1.0 / (1.0 + sign * z)
    first = np.stack([1.0 - x * x * k, -x * y * k, -sign * x])
    return first, np.stack([-sign * x * y * k, sign * (1.0 - y * y * k), -y])


def _rule(one: Geometry, other: Geometry) -> tuple[Finder, int, bool]:
    """What finds the contacts, how many there are, and whether it wants the two shapes exchanged."""
    for first, second, swapped in ((one, other, False), (other, one, True)):
        if isinstance(second, Plane | HeightField) and isinstance(first, _TOUCHING[type(second)]):
            return _touching, len(_points(first, np.array([0.0, 0.0, 1.0]))), swapped
        if isinstance(first, Point | Sphere) and type(second) in _SURFACES:
            return _touching, 1, swapped
        if isinstance(first, Capsule) and isinstance(second, Box):
            return _capsule_box, 3, swapped
        if isinstance(first, Hull | Box) and isinstance(second, Hull | Box):
            return _polyhedra, 5, swapped
    if isinstance(one, Capsule) and isinstance(other, Capsule):
        return _capsules, 1, False
    if type(one) in _SUPPORTS and type(other) in _SUPPORTS:
        return _convex, 1, False
    raise ModelError(
        f"there are no contacts between {_called(one)} and {_called(other)}: "
        "give a mesh as Hull(vertices), `hull_of(mesh)` or by simpler shapes, "
        "and let only one of the two be a plane or height field"
    )


def _called(geometry: Geometry) -> str:
    name = {"HeightField": "height field"}.get(type(geometry).__name__, type(geometry).__name__.lower())
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _traced(*transforms: Transform) -> bool:
    return any(np.asarray(part).dtype == object for X in transforms for part in (X.E, X.r))


def _large(geometry: Geometry) -> bool:
    return isinstance(geometry, HeightField) and geometry.heights.size > _TRACED


# Points (or balls) of one shape against the surface of another.


def _touching(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> Iterator[Found]:
    for place in _points(one, _upwards(one, other, X_one, X_other)):
        yield _ball(X_one.r + X_one.E.T @ place, _margin(one), other, X_other)


def _upwards(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> Array:
    """The normal of the ground below a shape, in its frame; of a field, where the shape's lowest point is."""
    up = np.stack(list(X_one.E @ (X_other.E.T @ np.array([0.0, 0.0, 1.0]))))
    for _ in range(_ROUNDS if isinstance(other, HeightField) and isinstance(one, Cylinder | Ellipsoid) else 0):
        lowest = X_one.r + X_one.E.T @ _points(one, up)[0]
        _, _, normal = _ball(lowest, 0.0, other, X_other)
        up = np.stack(list(X_one.E @ normal))
    return up


def _ball(centre: Array, radius: float, other: Geometry, X: Transform) -> Found:
    """A ball against a surface."""
    distance, normal = _SURFACES[type(other)](other, np.stack(list(X.E @ (centre - X.r))))
    normal = np.stack(list(X.E.T @ normal))
    return distance - radius, np.stack(list(centre - 0.5 * (distance + radius) * normal)), normal


def _margin(geometry: Geometry) -> float:
    """The radius of the balls that a shape is made of; a point is one of radius zero."""
    return geometry.radius if isinstance(geometry, Sphere | Capsule) else 0.0


def _points(geometry: Any, upwards: Array) -> list[Array]:
    """The points, in its own frame, with which a shape touches ground of that normal, in its frame."""
    match geometry:
        case Capsule():
            return list(_axis(geometry))
        case Box():
            return box_corners(0.5 * geometry.size)
        case Hull():
            return list(geometry.vertices)
        case Cylinder():
            return cylinder_points(upwards, geometry.radius, 0.5 * geometry.length)
        case Ellipsoid():
            return [ellipsoid_point(upwards, geometry.radii)]
    return [np.zeros(3)]


_TOUCHING: dict[type, tuple[type, ...]] = {
    Plane: (Point, Sphere, Capsule, Box, Cylinder, Ellipsoid, Hull),
    HeightField: (Point, Sphere, Capsule, Box, Cylinder, Ellipsoid, Hull),
}
_SURFACES: dict[type, Callable[[Any, Array], tuple[Any, Array]]] = {
    Plane: lambda g, p: to_plane(p),
    HeightField: lambda g, p: to_field(p, g.heights, g.size),
    Point: lambda g, p: to_ball(p, 0.0),
    Sphere: lambda g, p: to_ball(p, g.radius),
    Capsule: lambda g, p: to_capsule(p, g.radius, 0.5 * g.length),
    Box: lambda g, p: to_box(p, 0.5 * g.size),
    Cylinder: lambda g, p: to_cylinder(p, g.radius, 0.5 * g.length),
    Ellipsoid: lambda g, p: to_ellipsoid(p, g.radii),
}


# Capsules: balls along an axis.


def _axis(capsule: Capsule) -> np.ndarray:
    """The two ends of its axis, in its frame."""
    return np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]]) * capsule.length


def _capsules(one: Capsule, other: Capsule, X_one: Transform, X_other: Transform) -> Iterator[Found]:
    """The nearest points of the two axes. Axes that cross are parted across both, parallel ones anywhere across."""
    w, u, v = (np.stack(list(a)) for a in (X_one.r - X_other.r, X_one.E[2], X_other.E[2]))
    s, t = between_segments(w, u, 0.5 * one.length, v, 0.5 * other.length)
    _, across = unit(np.stack(list(cross(u, v))), tangents(u)[0])
    length, normal = unit(w + s * u - t * v, across)
    inwards = 0.5 * (length + one.radius - other.radius)
    yield length - one.radius - other.radius, X_one.r + s * u - inwards * normal, normal


def _capsule_box(one: Capsule, other: Box, X_one: Transform, X_other: Transform) -> Iterator[Found]:
    """Three balls of the capsule: at its ends, and where the axis is nearest to the box, or halfway through it."""
    u = np.stack(list(X_one.E[2]))
    p = np.stack(list(X_other.E @ (X_one.r - X_other.r)))
    half = 0.5 * one.length
    s = nearest_to_box(p, np.stack(list(X_other.E @ u)), half, 0.5 * other.size)
    for along in (-half, half, s):
        yield _ball(X_one.r + along * u, one.radius, other, X_other)


# Convex shapes: a core with a margin, of which the core's support is taken, so that balls and capsules stay exact.


def _polyhedra(one: Hull | Box, other: Hull | Box, X_one: Transform, X_other: Transform) -> Iterator[Found]:
    """The nearest place, and others along the same normal; it again where there are less than four others."""
    (faces, solid), (other_faces, other_solid) = _polyhedron(one), _polyhedron(other)
    core = coal_distance(solid, other_solid, X_one, X_other)
    core = core or convex_distance(_support(one, X_one), _support(other, X_other))
    nearest = core.gap, 0.5 * (core.first + core.second)
    others = shared_corners(faces, other_faces, X_one, X_other, core.normal, nearest[1])
    for gap, point in [nearest, *others, *[nearest] * (4 - len(others))]:
        yield max(gap, core.gap), point, core.normal


@lru_cache(maxsize=1024)
def _polyhedron(geometry: Hull | Box) -> tuple[Faces, Solid]:
    corners = np.array(_points(geometry, np.zeros(3)))
    return Faces.of(corners), Solid(corners)


def _convex(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> Iterator[Found]:
    core = convex_distance(_support(one, X_one), _support(other, X_other))
    halfway = 0.5 * (core.first + core.second - (_margin(one) - _margin(other)) * core.normal)
    yield core.gap - _margin(one) - _margin(other), halfway, core.normal


def _support(geometry: Geometry, X: Transform) -> Support:
    local = _SUPPORTS[type(geometry)]
    return lambda d: X.r + X.E.T @ local(geometry, X.E @ d)


def _cylinder_support(g: Cylinder, d: np.ndarray) -> np.ndarray:
    across = np.hypot(d[0], d[1])
    out = d[:2] * (g.radius / across) if across > 0.0 else np.zeros(2)
    return np.array([*out, np.copysign(0.5 * g.length, d[2])])


_SUPPORTS: dict[type, Callable[[Any, np.ndarray], np.ndarray]] = {
    Point: lambda g, d: np.zeros(3),
    Sphere: lambda g, d: np.zeros(3),
    Capsule: lambda g, d: np.array([0.0, 0.0, np.copysign(0.5 * g.length, d[2])]),
    Box: lambda g, d: np.copysign(0.5 * g.size, d),
    Cylinder: _cylinder_support,
    Ellipsoid: lambda g, d: -ellipsoid_point(d, g.radii),
    Hull: lambda g, d: g.vertices[np.argmax(g.vertices @ d)],
}


_SEARCHING = (_convex, _polyhedra)  # by steps whose number is not known beforehand
