"""Contacts of two convex shapes: the search, on floats, and what is made of its result, on floats or nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

from coupler.contact.convex import ascent, cores
from coupler.contact.convex.patches import Patch, faces_of, facing, has_patches, more_facing, shared_corners
from coupler.contact.distance_point import unit
from coupler.contact.forms import Hull
from coupler.model.shapes import Box, Geometry
from coupler.spatial import Transform, cross

__all__ = [
    "Found",
    "Scales",
    "centred",
    "count",
    "face_direction",
    "manifold",
    "relative_pose",
    "search",
    "sides_to_try",
    "starts",
]

Array = Any  # an ndarray of floats, or of nodes
Found = tuple[Any, Array, Array]  # gap, point, normal

_SAME = 1e-6  # of the smaller radius: places that are nearer to each other are one
_LEVEL = 1e-9  # likewise, gaps that are larger than the least by less, or smaller, are the least


class Scales:
    """Lengths of two shapes by which others are judged, m.

    Attributes:
        larger, smaller: their radii; the smaller is that of the other one, if one is a point.
        clearance: see ascent.py.
        apart: both radii, the distance of centres beyond which they do not touch.
    """

    def __init__(self, one: Geometry, other: Geometry) -> None:
        low, high = sorted((cores.radius(one), cores.radius(other)))
        self.larger, self.smaller, self.apart = high, low or high, low + high
        self.clearance = ascent.CLEARANCE * self.smaller


def count(one: Geometry, other: Geometry) -> int:
    """How many candidate contacts two convex shapes have."""
    return 5 if has_patches(one) and has_patches(other) else 1


def centred(geometry: Geometry, X: Transform) -> Transform:
    """The transform to a frame at the shape's centre, given that to its own frame."""
    return Transform.translation(cores.centre(geometry)) @ X


def relative_pose(X_one: Transform, X_other: Transform) -> tuple[Array, Array]:
    """How one frame is turned and placed in another."""
    return X_other.E @ X_one.E.T, X_other.E @ (X_one.r - X_other.r)


def starts(one: Geometry, other: Geometry, R: Array, n: Array) -> list[Array]:
    """Directions along which shapes may be apart, in the frame of the second one, and not against n, but the first.

    They are n, and the axes of both; of two boxes those across an edge of each as well, which then are all there are.
    """
    found = [R[:, i] for i in range(3)] + [np.eye(3)[i] for i in range(3)]
    if isinstance(one, Box) and isinstance(other, Box):
        found += [unit(np.stack(list(cross(a, b))), n)[1] for a in found[:3] for b in found[3:]]
    return [n, *(np.copysign(1.0, d @ n) * d for d in found)]


def sides_to_try(one: Geometry, other: Geometry) -> list[int]:
    """Which of two shapes is a hull whose faces are tried as well: one whose counterpart is no hull."""
    return [side for side, (own, opposite) in enumerate(((one, other), (other, one))) if _only(own, opposite)]


def _only(own: Geometry, opposite: Geometry) -> bool:
    return isinstance(own, Hull) and not isinstance(opposite, Hull)


def face_direction(R: Array, side: int, normal: Array) -> Array:
    """The direction from the second shape to the first that a face of one of them stands for."""
    return normal if side else -(R @ normal)


def search(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> Any:
    """Where two cores are nearest, or deepest, on floats: an object with the fields of `ascent.FIELDS`.

    Args:
        one, other: their forms.
        X_one, X_other: transforms from the world to their centres.
    """
    here, scales = SimpleNamespace(), Scales(one, other)
    ascent.begin(here, *relative_pose(X_one, X_other))
    directions = starts(one, other, here.R, here.n)
    for side in sides_to_try(one, other):
        directions += [face_direction(here.R, side, normal) for normal in faces_of((one, other)[side])[0]]
    reach = [_furthest(one, -(here.R.T @ d)) @ -(here.R.T @ d) + _furthest(other, d) @ d for d in directions]
    ascent.aim(here, directions, reach)
    for _ in range(ascent.MOST):
        tips = _furthest(one, -(here.R.T @ here.n)), _furthest(other, here.n)
        ascent.improve(here, *tips, scales.larger, scales.clearance)
        if not here.searching:
            break
    return here


def _furthest(geometry: Geometry, d: np.ndarray) -> np.ndarray:
    if isinstance(geometry, Hull):
        vertices = cores.chunks(geometry).reshape(-1, 3)
        return vertices[np.argmax(vertices @ d)]
    return cores.furthest(geometry, np.asarray(d, dtype=float))


def patch(geometry: Geometry, d: Array) -> Patch | None:
    """The patch of a shape that looks along d most, about its centre, on floats; None if it has none."""
    if not isinstance(geometry, Hull):
        return facing(geometry, d) if has_patches(geometry) else None
    normals, polygons = faces_of(geometry)
    if not len(normals):
        return None
    best, found = normals[0] @ d, Patch(polygons[0], normals[0])
    for normal, points in zip(normals[1:], polygons[1:], strict=True):
        best, found = more_facing(best, found, d, normal, points)
    return found


def manifold(
    one: Geometry, other: Geometry, X_other: Transform, here: Any, scales: Any, patches: Sequence[Patch | None]
) -> list[Found]:
    """The contacts that a search leads to, `count` of them: the nearest place, then corners of what patches share.

    A candidate that is another one again, or that has no place, is out of reach.

    Args:
        one, other: the forms.
        X_other: the transform from the world to the second one's centre.
        here: the result of the search.
        scales: see `Scales`.
        patches: of each the patch that looks at the other one, about its centre; None where there is none.
    """
    outside = cores.margin(one), cores.margin(other)
    n, point = here.normal, here.nearest[3:] - 0.5 * here.nearest[:3]
    places = [(here.gap, point)]
    if count(one, other) > 1:
        places += _corners(here, scales, patches) if None not in patches else 4 * [(here.gap + scales.apart, point)]
        deepest = reduce(np.minimum, (gap for gap, _ in places[1:]))
        places[0] = np.where(deepest <= here.gap, here.gap + scales.apart, here.gap), point
    normal = np.stack(list(X_other.E.T @ n))
    shift = 0.5 * (outside[0] - outside[1])
    return [
        (gap - outside[0] - outside[1], np.stack(list(X_other.r + X_other.E.T @ (point - shift * n))), normal)
        for gap, point in places
    ]


def _corners(here: Any, scales: Any, patches: Sequence[Any]) -> list[tuple[Any, Array]]:
    first = patches[0].seen_from(here.R, here.p)
    found: list[tuple[Any, Array]] = []
    for exists, gap, point in shared_corners(first, patches[1], here.normal, here.R, scales.smaller):
        for _, other in found:
            away = point - other
            exists = exists & (away @ away > (_SAME * scales.smaller) * (_SAME * scales.smaller))
        gap = np.where(gap <= here.gap + _LEVEL * scales.smaller, here.gap, gap)
        gap = np.where(exists, gap, here.gap + scales.apart)
        found.append((gap, np.where(exists, point, here.nearest[3:] - 0.5 * here.nearest[:3])))
    return found
