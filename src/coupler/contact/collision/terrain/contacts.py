"""Contacts of a shape with a height field, on floats: the reference for program.py.

Each corner of a shape has a contact with the ground straight below it. The ground within a window around the shape has
further contacts with it: its convex edges and grid points, and its faces if the shape has curved sides. Of the latter,
eight contacts are kept, or four for balls and ellipsoids (pool.py). The window is as large as the shape and a quarter
more; the number of its grid points is known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from coupler.contact.collision.convex import cores
from coupler.contact.collision.forms import ContactPlace
from coupler.contact.collision.terrain import features
from coupler.contact.collision.terrain.pool import added, emptied, listed, slots_of
from coupler.contact.collision.terrain.solids import Planes, fixed_points, flat, planes_of
from coupler.contact.collision.terrain.surface import to_field
from coupler.model.errors import ModelError
from coupler.model.height_fields import EDGES, HeightField
from coupler.model.shapes import Geometry, Hull
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes

WALLS = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
FURTHER = 1.25  # of a shape's radius: how far around its centre the ground is searched
_BOUND = 0.25  # of a shape's radius: ground further away from the shape is ignored
_MOST = 128  # grid points along an axis of a window, at most
_ROUNDING = 1e-9  # of a reach: what touches the ball but for rounding counts


def count(shape: Geometry) -> int:
    """The number of candidate contacts of a shape with a field: its corners, and those of the pool."""
    return len(fixed_points(shape)) + slots_of(shape)


def extent(shape: Geometry) -> float:
    """How far around its centre a shape searches the ground, m."""
    return FURTHER * cores.radius(shape)


def window(shape: Geometry, field: HeightField) -> np.ndarray:
    """k × 2: the grid points of a shape's window, counted from the first of them."""
    many = [int(np.floor(2.0 * extent(shape) / spacing)) + 2 for spacing in field.grid[2:]]
    many = [min(wanted, int(there)) for wanted, there in zip(many, field.grid[:2], strict=True)]
    if max(many) > _MOST:
        raise ModelError(
            f"height field: a shape that reaches {cores.radius(shape):.3g} m far covers {many[0]} × {many[1]} of its "
            f"grid points, and may cover {_MOST} along each side: give fewer heights, or several shapes"
        )
    return np.stack([axis.ravel() for axis in np.meshgrid(*map(np.arange, many), indexing="ij")], axis=1).astype(float)


def first_point(field: Any, p: Array, reach: Any, many: Any) -> tuple[Any, Any]:
    """The first grid point of the window around p; the window stays within the field."""
    n, m, dx, dy = field.grid
    first = [
        np.rint((x - reach) / spacing + 0.5 * (points - 1.0) - 0.5)
        for x, spacing, points in ((p[0], dx, n), (p[1], dy, m))
    ]
    return np.clip(first[0], 0.0, n - many[0]), np.clip(first[1], 0.0, m - many[1])


def as_solid(shape: Geometry) -> Any:
    """The shape as `signed` takes it; None for a hull that is too flat to have faces."""
    if not isinstance(shape, Hull):
        return shape
    planes = planes_of(shape)
    return Planes(planes) if len(planes) else None


def corner_contact(field: Any, R: Array, p: Array, point: Array) -> ContactPlace:
    """The contact of a corner of a shape with the ground below it."""
    place, over = features.corner_place(R, p, point)
    gap, normal = to_field(place, field, over)
    return gap, np.stack(list(place - 0.5 * gap * normal)), normal


def field_contacts(
    shape: Geometry, field: HeightField, X_shape: Transform, X_field: Transform
) -> Iterator[ContactPlace]:
    """The contacts of a shape with a field, in the world.

    Args:
        X_shape: the transform from the world to the shape's centre.
        X_field: the transform from the world to the field.
    """
    R, p = X_field.E @ X_shape.E.T, X_field.E @ (X_shape.r - X_field.r)
    corners = [corner_contact(field, R, p, point) for point in fixed_points(shape)]
    for gap, point, normal in [*corners, *_pooled(shape, field, R, p)]:
        yield gap, X_field.r + X_field.E.T @ point, X_field.E.T @ normal


def _pooled(shape: Geometry, field: HeightField, R: np.ndarray, p: np.ndarray) -> list[ContactPlace]:
    pool, solid = SimpleNamespace(), as_solid(shape)
    emptied(pool)
    radius, slots, candidates = cores.radius(shape), slots_of(shape), []
    bound = _BOUND * radius
    for i, j in _around(shape, field, p, radius + bound) if solid is not None else ():
        near, *close = features.near(field, solid, R, p, i, j, radius, bound)
        if not near:
            continue
        candidates += [] if flat(shape) else features.face_contacts(field, solid, R, p, i, j)
        for point in fixed_points(shape):
            candidates += features.corner_contacts(field, R, p, point, i, j)
        sharp = field.sharp.values.reshape(4, *field.heights.shape)[:, int(i), int(j)]
        candidates += [features.grid_contact(field, solid, R, p, i, j)] if sharp[0] else []
        for edge, bent, view in zip(EDGES, sharp[1:], close, strict=True):
            candidates += features.edge_contacts(field, solid, R, p, i, j, edge) if bent and view else []
    if not flat(shape):
        candidates.append(features.sunk_contact(field, solid, R, p))
        for outward in WALLS:
            candidates += features.wall_contacts(field, solid, R, p, outward)
    for candidate in candidates:
        if candidate[0]:
            added(pool, candidate, p, radius, slots)
    return listed(pool, p, slots, None if flat(shape) else features.far_contact(field, solid, R, p, bound))


def _around(shape: Geometry, field: HeightField, p: np.ndarray, reach: float) -> np.ndarray:
    """k × 2: grid points of the window with a feature that the ball around the shape reaches; see `near`."""
    offsets = window(shape, field)
    points = np.array(first_point(field, p, extent(shape), offsets[-1] + 1.0)) + offsets
    n, m, dx, dy = field.grid
    i, j = points.astype(int).T
    beside = np.minimum(i + 1, int(n) - 1), np.minimum(j + 1, int(m) - 1)
    heights = np.array([field.heights[a, b] for a in (i, beside[0]) for b in (j, beside[1])])
    low = np.stack([(i - 0.5 * (n - 1.0)) * dx, (j - 0.5 * (m - 1.0)) * dy, heights.min(axis=0)], axis=1)
    high = np.stack([low[:, 0] + dx, low[:, 1] + dy, heights.max(axis=0)], axis=1)
    return points[np.linalg.norm(np.maximum(np.maximum(low - p, p - high), 0.0), axis=1) <= reach * (1.0 + _ROUNDING)]
