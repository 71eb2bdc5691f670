"""The distance of two convex cores and its direction, by an iteration of identical steps.

It works in the set of differences C = {a − b} of points of the two cores, in the frame of the second. Along a unit
vector n, from the second to the first, the cores are s(n) = min n·c over C apart, or overlap by −s(n). The gap is the
largest s, whether they are apart or overlap, and the normal is the n at which it is reached.

If the cores are far enough apart, the gap is the distance of the origin from C, which simplices approach (Gilbert,
Johnson and Keerthi). If they touch or overlap, simplices have no direction to offer. So the origin is first moved back
along the best direction n so far, to a point x that is a fixed distance outside: x = −(clearance − s(n)) n. The
direction n' from x to the point of C nearest to x has s(n') ≥ s(n), because x is at least the clearance away from C,
and moving x back costs no more along n' than along n. If n' is no better than n, no direction near it is. So one loop
climbs to the gap from either side, and always sees C from well outside, where directions have all their digits. If the
cores are apart, the maximum is unique. If they overlap, it is a local one, a shortest way out among those nearby; with
a small overlap, it is the global one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.distance_point import unit
from coupler.spatial import cross

Array = Any  # an ndarray of floats, or of nodes

CLEARANCE = 0.05  # in radii of the smaller of two shapes: how far outside C the origin is moved
MOST_STEPS = 80  # shapes with corners need about 10, curved ones about 50
FIELDS: dict[str, Any] = {
    "R": (3, 3),  # turns directions from the first shape's frame to the second's
    "p": 3,  # the first one's centre, from the second one's
    "n": 3,  # the direction to be tried next
    "start": (),  # how far the cores are apart along the first one
    "normal": 3,  # the best direction so far
    "gap": (),  # how far the cores are apart along it
    "corners": (3, 6),  # a triangle in C: each corner is a − b, and a
    "nearest": 6,  # likewise, the point of it nearest to x
    "distance": (),  # of that from x
    "searching": (),  # 1, or 0 once there is nothing left to improve
}
_FAR = 1e30  # a distance above all others, m
_ACCURACY = 1e-13  # of the gap, in radii of the larger shape
_TINY = 1e-30  # added to squares of lengths and areas that may be zero


def begin(pair: Any, R: Array, p: Array) -> None:
    """Starts a search with the direction between the centres.

    Args:
        pair: has the fields of `FIELDS`.
        R: 3 × 3, rotates directions from the first shape's frame to the second's.
        p: 3, the first shape's centre in the second's frame.
    """
    pair.R, pair.p = R, p
    _, pair.n = unit(np.stack(list(p)), np.array([0.0, 0.0, 1.0]))
    pair.normal, pair.gap, pair.start = pair.n, np.array(-_FAR), np.array(-_FAR)
    corner = np.concatenate([p, p])  # centres are inside, so that this is a point of C
    pair.corners, pair.nearest = np.stack([corner, corner, corner]), corner
    pair.distance, pair.searching = np.array(_FAR), np.array(1.0)


def aim(pair: Any, directions: Sequence[Array], extents: Sequence[Any]) -> None:
    """Chooses the direction to start from, of these and earlier ones: that along which the cores are furthest apart.

    Args:
        pair: has the fields of `FIELDS`.
        directions: unit vectors, from the second shape to the first.
        extents: for each direction, the extent of the first core against it plus that of the second along it, about
            their centres, m.
    """
    best, n = pair.start, pair.n
    for d, reach in zip(directions, extents, strict=True):
        apart = d @ pair.p - reach
        better = apart > best
        best, n = np.where(better, apart, best), np.where(better, d, n)
    pair.start, pair.n = best, n


def improve(pair: Any, first: Array, second: Array, radii: Any, clearance: Any) -> None:
    """Makes one step of the search.

    Args:
        pair: has the fields of `FIELDS`.
        first, second: 3, the first core's point furthest against `pair.n`, and the second's furthest along it, each in
            its own frame.
        radii: the radius of the larger of the two shapes, m.
        clearance: how far outside C the origin is moved, m.
    """
    place = pair.p + pair.R @ first
    corner = np.concatenate([place - second, place])
    along = pair.n @ corner[:3]
    better = along > pair.gap
    gap, normal = np.where(better, along, pair.gap), np.where(better, pair.n, pair.normal)
    x = -np.maximum(clearance - gap, 0.0) * normal
    square, nearest, corners = _nearest(x, [*pair.corners], corner)
    distance = np.sqrt(square)
    close_enough = distance - np.maximum(gap, clearance) <= _ACCURACY * radii
    stuck = ~better & (distance >= pair.distance)  # all that rounding allows
    pair.gap, pair.normal = gap, normal
    pair.n = (nearest[:3] - x) / np.sqrt(square + _TINY)
    pair.corners, pair.nearest = corners, np.where(stuck, pair.nearest, nearest)
    pair.distance = np.where(better, _FAR, distance)
    pair.searching = np.where(close_enough | stuck, 0.0, 1.0)


def _nearest(x: Array, old: list[Array], new: Array) -> tuple[Any, Array, Array]:
    """The nearest point to x on the triangles of three old corners and a new one, except on edges between old corners.

    Returns:
        The square of the distance, the point, and the corners of the triangle.
    """
    square, nearest, dropped = _FAR, new, 0.0
    start = new[:3] - x
    for i, corner in enumerate(old):
        side = corner - new
        t = np.clip(-(start @ side[:3]) / (side[:3] @ side[:3] + _TINY), 0.0, 1.0)
        point = new + t * side
        away = point[:3] - x
        other = away @ away
        less = other < square
        square, nearest = np.where(less, other, square), np.where(less, point, nearest)
        dropped = np.where(less, (i + 1.0) % 3.0, dropped)
    for a, b, c, without in ((new, *old[:2], 2.0), (new, *old[1:], 0.0), (new, old[0], old[2], 1.0), (*old, 3.0)):
        inside, point = _in_plane(x, a, b, c)
        away = point[:3] - x
        other = away @ away
        less = inside & (other < square)
        square, nearest = np.where(less, other, square), np.where(less, point, nearest)
        dropped = np.where(less, without, dropped)
    corners = [np.where(np.equal(dropped, float(i)), new, corner) for i, corner in enumerate(old)]
    return square, nearest, np.stack(corners)


def _in_plane(x: Array, a: Array, b: Array, c: Array) -> tuple[Any, Array]:
    """Whether the projection of x onto a triangle's plane lies in the triangle, and the projection."""
    e, f, d = b - a, c - a, x - a[:3]
    across = cross(e[:3], f[:3])
    square = across @ across
    inverse = 1.0 / (square + _TINY)
    s, t = (across @ cross(d, f[:3])) * inverse, (across @ cross(e[:3], d)) * inverse
    inside = (square > _TINY) & (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0)
    return inside, a + s * e + t * f
