"""Kernels of the search for contacts: for one shape of a pair, a row of a hull's tables, or a pair as a whole.

`pair` has the fields of `ascent.FIELDS`, and for each of the two sides those of `program.Search`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.collision.convex import ascent, cores
from coupler.contact.collision.convex.patches import (
    NEAR,
    NOTHING,
    Patch,
    Shadow,
    cut,
    faces_of,
    furthest_of,
    more_facing,
)
from coupler.graph import View
from coupler.model.shapes import Geometry, Hull

Array = Any  # nodes of a trace

_FAR = 1e30  # further than any point along any direction, and more than any cosine


def padded(points: Array, many: int) -> Array:
    """Points filled up to a number of them, by repeating the last one."""
    return np.stack([points[min(i, len(points) - 1)] for i in range(many)])


def normals_and_corners(hull: Hull) -> np.ndarray:
    """f × (1 + k) × 3: the normal of each face, and its corners."""
    normals, points = faces_of(hull)
    return np.concatenate([normals[:, None], points], axis=1)


def seen(pair: View, side: int, d: Array) -> Array:
    """A direction from the second shape to the first, as a side sees it: towards the other, in its own frame."""
    return d if side else -(pair.R.T @ d)


# Kernels of one shape.


def extents(pair: View, shape: Geometry, side: int, many: int) -> None:
    """Computes the extents of a shape along the directions to start from."""
    directions, rest = getattr(pair, f"starts{side}")[:many], getattr(pair, f"extents{side}")[many:]
    setattr(pair, f"extents{side}", np.concatenate([np.stack([cores.extent(shape, d) for d in directions]), rest]))


def tip(pair: View, shape: Geometry, side: int) -> None:
    """Computes the point of a shape furthest towards the other one."""
    setattr(pair, f"tip{side}", cores.furthest(shape, getattr(pair, f"toward{side}")))


def extents_of_hull(pair: View, side: int, many: int) -> None:
    """Updates the extents of a hull along the directions to start from with some of its vertices."""
    extents, directions = getattr(pair, f"extents{side}"), getattr(pair, f"starts{side}")[:many]
    reaches = [
        cores.further_of(reach, np.zeros(3), d, pair.table)[0]
        for reach, d in zip(extents[:many], directions, strict=True)
    ]
    setattr(pair, f"extents{side}", np.concatenate([np.stack(reaches), extents[many:]]))


def tip_of_hull(pair: View, side: int) -> None:
    """Updates the point of a hull furthest towards the other shape with some of its vertices."""
    reach, tip, toward = (getattr(pair, f"{name}{side}") for name in ("reach", "tip", "toward"))
    reach, tip = cores.further_of(reach, tip, toward, pair.table)
    setattr(pair, f"reach{side}", reach)
    setattr(pair, f"tip{side}", tip)


def facing_none(side: int) -> Callable[[View], None]:
    """The kernel that prepares a side for the search for its hull's facing face."""

    def facing_none(pair: View) -> None:
        setattr(pair, f"facing{side}", np.array(-_FAR))
        setattr(pair, f"face{side}", np.zeros(np.shape(getattr(pair, f"face{side}"))))
        setattr(pair, f"outward{side}", np.zeros(3))
        setattr(pair, f"toward{side}", np.stack(list(seen(pair, side, pair.normal))))

    return facing_none


def face_of_hull(pair: View, side: int) -> None:
    """Updates the face of a hull that faces the other shape most with one of its faces."""
    patch = Patch(getattr(pair, f"face{side}"), getattr(pair, f"outward{side}"))
    points = padded(pair.table[1:], len(patch.points))
    toward, best = getattr(pair, f"toward{side}"), getattr(pair, f"facing{side}")
    best, patch = more_facing(best, patch, toward, pair.table[0], points)
    setattr(pair, f"facing{side}", best)
    setattr(pair, f"face{side}", patch.points)
    setattr(pair, f"outward{side}", patch.normal)


# Kernels of pairs.


def patches(pair: View) -> tuple[Patch, Patch]:
    """The two patches that face each other, in the frame of the second shape."""
    one = Patch(pair.face0, pair.outward0).seen_from(pair.R, pair.p)
    return one, Patch(pair.face1, pair.outward1)


def overlay(pair: View) -> None:
    """Projects the two facing patches along the normal."""
    shadow = Shadow.of(*patches(pair), pair.normal, pair.R)
    pair.axes, pair.sign = shadow.axes, np.array(shadow.sign)
    pair.flat0, pair.flat1 = shadow.one, shadow.other
    pair.outermost, pair.corner = np.full(4, NOTHING[0]), np.zeros((4, 2))


def cut_side(pair: View) -> None:
    """Clips a side of one patch by the other, and keeps the outermost ends."""
    exists, places = cut(pair.start, pair.end, pair.window, NEAR * pair.smaller)
    furthest = [furthest_of(pair.outermost[k], pair.corner[k], k, pair.sign, exists, places) for k in range(4)]
    pair.outermost = np.stack([distance for distance, _ in furthest])
    pair.corner = np.stack([corner for _, corner in furthest])


def point(pair: View) -> None:
    """Sets the direction along which both shapes look for their furthest points next."""
    for side in (0, 1):
        setattr(pair, f"toward{side}", np.stack(list(seen(pair, side, pair.n))))
        setattr(pair, f"reach{side}", np.array(-_FAR))
        setattr(pair, f"tip{side}", np.zeros(3))


def improve(pair: View) -> None:
    """Makes one step of the search of a pair that is not finished."""
    ascent.improve(pair, pair.tip0, pair.tip1, pair.larger, pair.clearance)
    point(pair)
    pair.going = np.maximum(pair.going, pair.searching)


def go(pair: View) -> None:
    pair.going = np.array(1.0)


def stop(pair: View) -> None:
    pair.going = np.array(0.0)


def none_goes(pair: View) -> Any:
    return pair.going <= 0.0
