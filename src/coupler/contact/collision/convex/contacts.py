"""Contacts of two convex shapes: the search, on floats, and the contacts from its result, on floats or nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

from coupler.contact.collision.convex import ascent, cores
from coupler.contact.collision.convex.patches import Patch, faces_of, facing, has_patches, more_facing, shared_corners
from coupler.contact.collision.distance_point import unit
from coupler.contact.collision.forms import ContactPlace
from coupler.model.shapes import Box, Geometry, Hull
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

_SAME = 1e-4  # of the smaller radius: places nearer to each other count as one; round sides are found to 1e-5 of it
_LEVEL = 1e-9  # likewise: gaps that exceed the least by less, or are smaller, count as the least


class Scales:
    """Lengths of two shapes to which others are compared, m.

    Attributes:
        larger, smaller: the radii of the two shapes; if one is a point, both are the radius of the other.
        clearance: see ascent.py.
        apart: the sum of the radii, the distance of centres beyond which the shapes cannot touch.
    """

    def __init__(self, one: Geometry, other: Geometry) -> None:
        low, high = sorted((cores.radius(one), cores.radius(other)))
        self.larger, self.smaller, self.apart = high, low or high, low + high
        self.clearance = ascent.CLEARANCE * self.smaller


def count(one: Geometry, other: Geometry) -> int:
    """The number of candidate contacts of two convex shapes."""
    return 5 if has_patches(one) and has_patches(other) else 1


def centred(geometry: Geometry, X: Transform) -> Transform:
    """The transform to a frame at the shape's centre, given the transform to its own frame."""
    return Transform.translation(cores.centre(geometry)) @ X


def relative_pose(X_one: Transform, X_other: Transform) -> tuple[Array, Array]:
    """The rotation and position of one frame in another."""
    return X_other.E @ X_one.E.T, X_other.E @ (X_one.r - X_other.r)


def starts(boxes: bool, R: Array, n: Array) -> list[Array]:
    """Directions along which shapes may be apart, in the second's frame; all but the first are flipped to agree with n.

    They are n and the axes of both shapes; for two boxes also the cross products of their edges, which completes the
    set of possible separating axes.
    """
    directions = [R[:, i] for i in range(3)] + [np.eye(3)[i] for i in range(3)]
    if boxes:
        directions += [unit(np.stack(list(cross(a, b))), n)[1] for a in directions[:3] for b in directions[3:]]
    return [n, *(np.copysign(1.0, d @ n) * d for d in directions)]


def sides_to_try(one: Geometry, other: Geometry) -> list[int]:
    """The sides, 0 or 1, whose face normals are also tried as directions: hulls whose counterpart is not a hull."""
    hulls = isinstance(one, Hull), isinstance(other, Hull)
    return [side for side in (0, 1) if hulls[side] and not hulls[1 - side]]


def face_direction(R: Array, side: int, normal: Array) -> Array:
    """The direction from the second shape to the first that corresponds to the normal of a face on one side."""
    return normal if side else -(R @ normal)


def search(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> Any:
    """The nearest, or deepest, place of two cores, on floats: an object with the fields of `ascent.FIELDS`.

    Args:
        one, other: the forms of the shapes.
        X_one, X_other: the transforms from the world to their centres.
    """
    pair, scales = SimpleNamespace(), Scales(one, other)
    ascent.begin(pair, *relative_pose(X_one, X_other))
    directions = starts(isinstance(one, Box) and isinstance(other, Box), pair.R, pair.n)
    for side in sides_to_try(one, other):
        directions += [face_direction(pair.R, side, normal) for normal in faces_of((one, other)[side])[0]]
    reach = [_furthest(one, -(pair.R.T @ d)) @ -(pair.R.T @ d) + _furthest(other, d) @ d for d in directions]
    ascent.aim(pair, directions, reach)
    for _ in range(ascent.MOST_STEPS):
        tips = _furthest(one, -(pair.R.T @ pair.n)), _furthest(other, pair.n)
        ascent.improve(pair, *tips, scales.larger, scales.clearance)
        if not pair.searching:
            break
    return pair


def _furthest(geometry: Geometry, d: np.ndarray) -> np.ndarray:
    if isinstance(geometry, Hull):
        vertices = cores.chunks(geometry).reshape(-1, 3)
        return vertices[np.argmax(vertices @ d)]
    return cores.furthest(geometry, np.asarray(d, dtype=float))


def corners(one: Geometry, other: Geometry, pair: Any, scales: Scales) -> list[tuple[Any, Any, Array]]:
    """Corners of the overlap of the sides facing each other at the nearest place, on floats; see `shared_corners`."""
    if count(one, other) == 1:
        return []
    first, second = _patch(one, -(pair.R.T @ pair.normal)), _patch(other, pair.normal)
    if first is None or second is None:
        return 4 * [(np.False_, pair.gap, np.zeros(3))]
    return shared_corners(first.seen_from(pair.R, pair.p), second, pair.normal, pair.R, scales.smaller)


def _patch(geometry: Geometry, d: Array) -> Patch | None:
    """The patch of a shape that faces d most, about the shape's centre; None if it has none."""
    if not isinstance(geometry, Hull):
        return facing(geometry, d)
    normals, polygons = faces_of(geometry)
    if not len(normals):
        return None
    best, patch = normals[0] @ d, Patch(polygons[0], normals[0])
    for normal, points in zip(normals[1:], polygons[1:], strict=True):
        best, patch = more_facing(best, patch, d, normal, points)
    return patch


def manifold(
    margins: tuple[Any, Any], X_other: Transform, pair: Any, scales: Any, corners: Sequence[tuple[Any, Any, Array]]
) -> list[ContactPlace]:
    """The contacts that follow from a search: the nearest place, then corners of the overlap of the facing sides.

    A candidate that coincides with another, or does not exist, is moved out of reach.

    Args:
        margins: the margins of both shapes beyond their cores, m.
        X_other: the transform from the world to the second shape's centre.
        pair: the result of the search.
        scales: see `Scales`.
        corners: for each corner whether it exists, its gap, and its point about the second shape's centre; none if a
            shape is round.
    """
    n, point, far = pair.normal, pair.nearest[3:] - 0.5 * pair.nearest[:3], pair.gap + scales.apart
    places = [(pair.gap, point)]
    same = (_SAME * scales.smaller) * (_SAME * scales.smaller)
    for k, (exists, gap, place) in enumerate(corners):
        for _, _, other in corners[:k]:
            exists = exists & (_square(place - other) > same)
        level = gap <= pair.gap + _LEVEL * scales.smaller
        exists = exists & (level | (_square(place - point) > same))  # a level corner takes the nearest place's turn
        gap = np.where(level, pair.gap, gap)
        places.append((np.where(exists, gap, far), np.where(exists, place, point)))
    if corners:
        deepest = reduce(np.minimum, (gap for gap, _ in places[1:]))
        places[0] = np.where(deepest <= pair.gap, far, pair.gap), point
    normal = np.stack(list(X_other.E.T @ n))
    shift = 0.5 * (margins[0] - margins[1])
    return [
        (gap - margins[0] - margins[1], np.stack(list(X_other.r + X_other.E.T @ (place - shift * n))), normal)
        for gap, place in places
    ]


def _square(away: Array) -> Any:
    return away @ away
