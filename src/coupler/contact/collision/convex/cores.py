"""Convex shapes as the search for contacts sees them: cores with a margin, about a centre.

A ball is a point with a margin, and a capsule a segment with one; all others are cores without a margin. The search
only asks for the point of a core furthest along a direction. For most shapes it has a closed form. The vertices of
hulls are scanned a few at a time, so that a kernel is as short for a hull of a thousand vertices as for one of eight.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from coupler.contact.collision.distance_plane import ellipsoid_point
from coupler.contact.collision.forms import Point
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Hull, Sphere

Array = Any  # an ndarray of floats, or of nodes

CHUNK = 8  # vertices of a hull that are scanned at a time
_TINY = 1e-30  # added to squares of lengths that may be zero


def margin(geometry: Any) -> Any:
    """How far a shape extends beyond its core, m."""
    return geometry.radius if isinstance(geometry, Sphere | Capsule) else 0.0


def centre(geometry: Geometry) -> np.ndarray:
    """A point inside a shape, in its frame: the mean of a hull's vertices, or the origin."""
    return geometry.vertices.mean(axis=0) if isinstance(geometry, Hull) else np.zeros(3)


def radius(geometry: Geometry) -> float:
    """The radius of a ball around a shape about its centre, m; zero for a point."""
    match geometry:
        case Hull():
            return float(np.linalg.norm(geometry.vertices - centre(geometry), axis=1).max())
        case Box():
            return 0.5 * float(np.linalg.norm(geometry.size))
        case Cylinder():
            return float(np.hypot(geometry.radius, 0.5 * geometry.length))
        case Ellipsoid():
            return float(np.max(geometry.radii))
        case Capsule():
            return geometry.radius + 0.5 * geometry.length
        case Sphere() | Point():
            return float(margin(geometry))
    box = np.max([[extent(geometry, sign * axis) for axis in np.eye(3)] for sign in (-1.0, 1.0)], axis=0)
    return float(np.linalg.norm(box) + margin(geometry))


def furthest(geometry: Any, d: Array) -> Array:
    """The point of a core furthest along a direction d, 3, not zero, both about its centre; not for hulls."""
    match geometry:
        case Box():
            return np.copysign(0.5 * geometry.size, d)
        case Cylinder():
            scale = geometry.radius / np.sqrt(d[0] * d[0] + d[1] * d[1] + _TINY)
            return np.stack([scale * d[0], scale * d[1], np.copysign(0.5 * geometry.length, d[2])])
        case Ellipsoid():
            return -ellipsoid_point(d, geometry.radii)
        case Capsule():
            end = np.copysign(0.5 * geometry.length, d[2])
            return np.stack([0.0 * end, 0.0 * end, end])
        case Sphere() | Point():
            return 0.0 * d
    raise TypeError(f"{geometry!r} is no shape whose furthest point along a direction is known")


def extent(geometry: Any, d: Array) -> Any:
    """How far a core extends along a direction; not for hulls."""
    return furthest(geometry, d) @ d


@lru_cache(maxsize=1024)
def chunks(hull: Hull) -> np.ndarray:
    """k × CHUNK × 3: the vertices of a hull about its centre, in chunks; the last vertex fills up the last chunk."""
    vertices = hull.vertices - centre(hull)
    missing = -len(vertices) % CHUNK
    return np.concatenate([vertices, np.repeat(vertices[-1:], missing, axis=0)]).reshape(-1, CHUNK, 3)


def further_of(reach: Any, tip: Array, d: Array, vertices: Array) -> tuple[Any, Array]:
    """The furthest along d of a point and some vertices: its distance, and the point itself. Of equals, the first."""
    for vertex in vertices:
        along = vertex @ d
        better = along > reach
        reach, tip = np.where(better, along, reach), np.where(better, vertex, tip)
    return reach, tip
