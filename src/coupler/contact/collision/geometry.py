"""Where two shapes touch, or would: gap, point, normal and tangents. [002, §2.1, Fig. 1]

Each pair of kinds of shapes has a fixed number of candidate contacts (`count`), open ones included, so that a step of a
simulation is one program. All pairs take floats; those with a closed form take nodes of a trace as well:

    plane with               point or sphere 1, capsule 2 (its ends), box 8 (its corners), hull (its vertices),
                             cylinder 4 (of its rims), ellipsoid 1
    height field with        point 1
    point or sphere with     point, sphere, capsule, box, cylinder, ellipsoid: 1
    capsule with             capsule 1, box 3 (its ends, and where its axis is nearest to the box)

Contacts of other convex shapes are searched for (convex/): boxes, cylinders, capsules and hulls with each other have 5
(the nearest place, and four corners of the overlap of their facing sides), any other two 1. So are contacts of a shape
with the ground around it on a height field (terrain/): 8, in addition to the corners of a box or hull. Candidates may
coincide, such as those of a capsule whose end is nearest; a searched candidate that coincides with another is moved out
of reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.collision.convex import contacts as convex
from coupler.contact.collision.convex import cores
from coupler.contact.collision.distance_plane import box_corners, cylinder_points, ellipsoid_point
from coupler.contact.collision.distance_point import DISTANCES, to_box_together, to_shape, unit
from coupler.contact.collision.distance_segment import between_segments, nearest_to_box
from coupler.contact.collision.forms import ContactPlace, Point
from coupler.contact.collision.tangents import tangents
from coupler.contact.collision.terrain import contacts as terrain
from coupler.contact.collision.terrain.surface import to_field
from coupler.model.errors import ModelError
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Hull, Plane, Sphere
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False)
class Contact:
    """A place where two bodies touch, or may.

    Attributes:
        gap: g_N, the distance of the two surfaces, m; negative if they overlap.
        point: 3, in the world, halfway between the two nearest (or deepest) points, m.
        frame: 3 × 3, its rows unit vectors in the world: the normal, from the second body to the first, and two
            tangents. It is right-handed.
    """

    gap: Any
    point: Array
    frame: Array


Finder = Callable[[Any, Any, Transform, Transform], Iterator[ContactPlace]]


def contacts(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> list[Contact]:
    """The candidate contacts of two shapes, `count(one, other)` of them, in a fixed order.

    Args:
        one, other: the forms of the shapes.
        X_one, X_other: the transforms from the world to their frames.

    Raises:
        ModelError: if contacts of these two forms are not supported, or not for nodes of a trace.
    """
    finder, _, swapped = _rule(one, other)
    if _traced(X_one, X_other) and not has_closed_form(one, other):
        both = f"{_called(one)} and {_called(other)}"
        raise ModelError(f"contacts between {both} have no closed form to trace: they are searched for")
    if swapped:
        return [contact_of(gap, point, -normal) for gap, point, normal in finder(other, one, X_other, X_one)]
    return [contact_of(*place) for place in finder(one, other, X_one, X_other)]


def contact_of(gap: Any, point: Array, normal: Array) -> Contact:
    """A contact, with tangents added."""
    return Contact(gap, point, np.stack([normal, *tangents(normal)]))


def forces_on(X: Transform, contact: Contact, rows: int = 3) -> Array:
    """6 × rows: the spatial forces on a body, in its own frame, per unit impulse along normal and tangents.

    The transpose maps the body's spatial velocity to the velocity of its point at the contact, along normal and
    tangents.

    Args:
        X: the transform from the world to the body.
        contact: the contact.
        rows: 3; or 4, with a moment about the normal; or 6, also with moments about the tangents.
    """
    along = X.E @ contact.frame.T
    arm = X.E @ (contact.point - X.r)
    turns = np.array([cross(arm, along[:, i]) for i in range(3)]).T
    forces = np.concatenate([turns, along])
    if rows == 3:
        return forces
    moments = np.concatenate([along[:, : rows - 3], np.zeros((3, rows - 3))])
    return np.concatenate([forces, moments], axis=1)


def has_closed_form(one: Geometry, other: Geometry) -> bool:
    """Whether the contacts of two shapes have a closed form, which can be traced."""
    return _rule(one, other)[0] not in (_convex, _on_field)


def count(one: Geometry, other: Geometry) -> int:
    """The number of candidate contacts of two shapes."""
    return _rule(one, other)[1]


def _rule(one: Geometry, other: Geometry) -> tuple[Finder, int, bool]:
    """The function that finds the contacts, their number, and whether it takes the two shapes in reverse order."""
    for first, second, swapped in ((one, other, False), (other, one, True)):
        if isinstance(second, HeightField) and isinstance(first, _CONVEX) and not isinstance(first, Point):
            return _on_field, terrain.count(first), swapped
        if isinstance(second, Plane) and isinstance(first, _CONVEX):
            return _touching, len(_points(first, np.array([0.0, 0.0, 1.0]))), swapped
        if isinstance(first, Point | Sphere) and (type(second) in DISTANCES or isinstance(second, HeightField)):
            return _touching, 1, swapped
        if isinstance(first, Capsule) and isinstance(second, Box):
            return _capsule_box, 3, swapped
    if isinstance(one, Capsule) and isinstance(other, Capsule):
        return _capsules, 1, False
    if isinstance(one, _CONVEX) and isinstance(other, _CONVEX):
        return _convex, convex.count(one, other), False
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


# Points (or balls) of one shape against the surface of another.


def _touching(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> Iterator[ContactPlace]:
    up = np.stack(list(X_one.E @ (X_other.E.T @ np.array([0.0, 0.0, 1.0]))))
    for place in _points(one, up):
        yield _ball(X_one.r + X_one.E.T @ place, cores.margin(one), other, X_other)


def _ball(centre: Array, radius: float, other: Geometry, X: Transform) -> ContactPlace:
    """The contact of a ball with a surface."""
    place = np.stack(list(X.E @ (centre - X.r)))
    distance, normal = to_field(place, other) if isinstance(other, HeightField) else to_shape(other, place)
    normal = np.stack(list(X.E.T @ normal))
    return distance - radius, np.stack(list(centre - 0.5 * (distance + radius) * normal)), normal


def _points(geometry: Any, upwards: Array) -> list[Array]:
    """The points of a shape, in its own frame, that touch ground whose normal, in that frame, is `upwards`."""
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
        case Sphere() | Point():
            return [np.zeros(3)]
    return [cores.furthest(geometry, -upwards)]


# Capsules: balls along an axis.


def _axis(capsule: Capsule) -> np.ndarray:
    """The two ends of a capsule's axis, in its frame."""
    return np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]]) * capsule.length


def _capsules(one: Capsule, other: Capsule, X_one: Transform, X_other: Transform) -> Iterator[ContactPlace]:
    """The nearest points of the two axes; crossing axes are separated across both, parallel ones anywhere across."""
    w, u, v = (np.stack(list(a)) for a in (X_one.r - X_other.r, X_one.E[2], X_other.E[2]))
    s, t = between_segments(w, u, 0.5 * one.length, v, 0.5 * other.length)
    _, across = unit(np.stack(list(cross(u, v))), tangents(u)[0])
    length, normal = unit(w + s * u - t * v, across)
    inwards = 0.5 * (length + one.radius - other.radius)
    yield length - one.radius - other.radius, X_one.r + s * u - inwards * normal, normal


def _capsule_box(one: Capsule, other: Box, X_one: Transform, X_other: Transform) -> Iterator[ContactPlace]:
    """Three balls of the capsule: at its ends, and where the axis is nearest to the box, or halfway through it.

    Balls with their centres in the box leave it together, through the face that takes the shortest way.
    """
    p, u = (np.stack(list(X_other.E @ a)) for a in (X_one.r - X_other.r, X_one.E[2]))
    half_length, half = 0.5 * one.length, 0.5 * other.size
    places = [p + s * u for s in (-half_length, half_length, nearest_to_box(p, u, half_length, half))]
    for place, (distance, normal) in zip(places, to_box_together(places, half), strict=True):
        middle = place - 0.5 * (distance + one.radius) * normal
        point, outwards = X_other.r + X_other.E.T @ middle, X_other.E.T @ normal
        yield distance - one.radius, np.stack(list(point)), np.stack(list(outwards))


# Other convex shapes.

_CONVEX = Point | Sphere | Capsule | Box | Cylinder | Ellipsoid | Hull


def _convex(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> Iterator[ContactPlace]:
    X_one, X_other = convex.centred(one, X_one), convex.centred(other, X_other)
    nearest = convex.search(one, other, X_one, X_other)
    scales, margins = convex.Scales(one, other), (cores.margin(one), cores.margin(other))
    yield from convex.manifold(margins, X_other, nearest, scales, convex.corners(one, other, nearest, scales))


# Ground of given heights.


def _on_field(one: Geometry, other: HeightField, X_one: Transform, X_other: Transform) -> Iterator[ContactPlace]:
    yield from terrain.field_contacts(one, other, convex.centred(one, X_one), X_other)
