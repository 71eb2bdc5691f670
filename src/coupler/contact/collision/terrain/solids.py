"""Shapes as the ground sees them, about their centres: distances from them, and their lowest points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.collision.convex import cores
from coupler.contact.collision.convex.patches import faces_of
from coupler.contact.collision.distance_plane import box_corners, cylinder_points, ellipsoid_point
from coupler.contact.collision.distance_point import to_shape
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Hull, Sphere

Array = Any  # an ndarray of floats, or of nodes

_LEVEL = {True: 0.1, False: 1e-5}  # rad: the largest tilt of an edge that lies along a flat side, or a round one
_EXACT = 1e-6  # rad: rounding of directions


@dataclass(frozen=True, eq=False)
class Planes(Geometry):
    """A convex polyhedron, given by its faces.

    Attributes:
        planes: f × 4, for each face the outward unit normal, and its distance from the centre, m.
    """

    planes: Any

    def __post_init__(self) -> None:
        """Does nothing: the numbers of a kernel cannot be checked."""


def planes_of(hull: Hull) -> np.ndarray:
    """f × 4: see `Planes`; none if the hull is too flat to have faces."""
    normals, polygons = faces_of(hull)
    return np.concatenate([normals, np.sum(normals * polygons[:, 0], axis=1)[:, None]], axis=1)


def signed(shape: Any, x: Array) -> tuple[Any, Array]:
    """The distance of a point from a shape, negative inside, and the unit vector along which it grows.

    For planes, it is the distance from the furthest plane, which outside, near edges and corners, is less than the true
    one.
    """
    if not isinstance(shape, Planes):
        return to_shape(shape, x)
    distance, normal = -1e30, np.zeros(3)
    for plane in shape.planes:
        beyond = plane[:3] @ x - plane[3]
        further = beyond > distance
        distance, normal = np.where(further, beyond, distance), np.where(further, plane[:3], normal)
    return distance, normal


def flat(shape: Any) -> bool:
    """Whether all sides of a shape are flat."""
    return isinstance(shape, Box | Hull | Planes)


def level_for(shape: Any) -> tuple[float, float]:
    """The largest tilt of an edge along a side that it lies on, and the slack of normals' cones, both rad."""
    return _LEVEL[flat(shape)], 0.1 if flat(shape) else _EXACT


def fixed_points(shape: Geometry) -> list[np.ndarray]:
    """The corners of a shape, each of which has its own contact; none for shapes with curved sides."""
    if isinstance(shape, Box):
        return box_corners(0.5 * shape.size)
    return list(shape.vertices - cores.centre(shape)) if isinstance(shape, Hull) else []


def lowest_points(shape: Any, up: Array) -> list[Array]:
    """The points with which a shape with curved sides touches a face of the normal `up`, about its centre."""
    match shape:
        case Sphere():
            return [-shape.radius * up]
        case Capsule():
            ends = [np.stack([0.0 * up[0], 0.0 * up[0], s * (0.5 * shape.length) + 0.0 * up[0]]) for s in (-1.0, 1.0)]
            return [end - shape.radius * up for end in ends]
        case Cylinder():
            return cylinder_points(up, shape.radius, 0.5 * shape.length)
        case Ellipsoid():
            return [ellipsoid_point(up, shape.radii)]
    return [] if flat(shape) else [cores.furthest(shape, -up)]
