"""The few contacts with the ground that are kept: the two nearest in each sector around a shape.

Sectors are quarters around +x, −x, +y and −y of the field, as seen from the shape's centre; for balls and ellipsoids,
which at most three sides of a pit hold, they are halves along ±x. Of equally near contacts, as along a ridge under a
flat side, the outermost count. The two contacts of a sector are apart, or have different normals, as in a hollow, and
keep their order, so that each finds its impulse of the previous step again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.forms import ContactPlace
from coupler.model.shapes import Ellipsoid, Geometry, Sphere

Array = Any  # an ndarray of floats, or of nodes
Candidate = tuple[Any, Any, Array, Array]  # whether there is one, gap, point, normal: in the field's frame

SLOTS = 8  # at most
EMPTY = 10.0  # m: the gap of a slot without a contact, further than anything moves within a step
_OUTER = 1e-6  # a place further out by 1 m may be further away by this much, m
_APART = 0.02  # in radii of the shape: the least distance of the two contacts of a sector
_ALIKE = 0.99  # cosine: contacts at one place count as apart if their normals differ more, as in a hollow
_MIDDLE = 1e-4  # likewise: places nearer to the centre, as under a ball on level ground, are in the first sector
_UP = np.array([0.0, 0.0, 1.0])
_ORDER = np.array([0.31, 0.83, 0.47])  # askew, so that neighbouring places of typical scenes are not level along it


def slots_of(shape: Geometry) -> int:
    """The number of contacts of a shape that are kept."""
    return SLOTS // 2 if isinstance(shape, Sphere | Ellipsoid) else SLOTS


def emptied(pool: Any) -> None:
    """Empties all slots of a pool, whose fields are `gap`, `score`, `point` and `normal`."""
    pool.gap, pool.score = np.full(SLOTS, EMPTY), np.full(SLOTS, EMPTY)
    pool.point, pool.normal = np.zeros((SLOTS, 3)), np.tile(_UP, (SLOTS, 1))


def added(pool: Any, candidate: Candidate, centre: Array, radius: Any, slots: int) -> None:
    """Adds a contact to a pool if it is among the nearest of its sector.

    Args:
        pool: see `emptied`.
        candidate: the contact.
        centre: 3, the centre of the shape.
        radius: the radius of the ball around the shape, m.
        slots: see `slots_of`.
    """
    exists, gap, point, normal = candidate
    x, y = point[0] - centre[0] + _MIDDLE * radius, point[1] - centre[1]
    score = gap - _OUTER * np.maximum(np.abs(x), np.abs(y))
    near = (_APART * radius) * (_APART * radius)
    sectors = _sectors(x, y, slots)
    new, parts = (gap, score, point, normal), (pool.gap, pool.score, pool.point, pool.normal)
    first, second = ([_chosen(sectors, part[i:slots:2]) for part in parts] for i in (0, 1))
    apart, apart_second = (
        ((point - other[2]) @ (point - other[2]) > near) | (normal @ other[3] < _ALIKE) for other in (first, second)
    )
    better = exists & (score < first[1])
    moves_down = better & (apart | (first[1] >= EMPTY))
    drops_out = better & ~apart_second
    joins = exists & (score >= first[1]) & apart & (score < second[1])
    empty, rows = (EMPTY, EMPTY, np.zeros(3), _UP), []
    for i in range(4):
        kept = np.where(drops_out, empty[i], second[i])
        second[i] = np.where(joins, new[i], np.where(moves_down, first[i], kept))
        first[i] = np.where(better, new[i], first[i])
        both = first[i], second[i]
        rows.append([np.where(sectors[k // 2], both[k % 2], parts[i][k]) for k in range(slots)] + [*parts[i][slots:]])
    pool.gap, pool.score, pool.point, pool.normal = (np.stack(row) for row in rows)


def listed(pool: Any, centre: Array, slots: int, otherwise: ContactPlace | None) -> list[ContactPlace]:
    """The contacts of a pool, in an order that lasts; if there are none, the first is `otherwise`."""
    slots_in_order = []
    for k in range(slots // 2):
        first, second = ([part[2 * k + i] for part in (pool.gap, pool.point, pool.normal)] for i in (0, 1))
        alike = first[2] @ second[2] >= _ALIKE
        later = np.where(alike, (second[1] - first[1]) @ _ORDER, (second[2] - first[2]) @ _ORDER)
        swap = (second[0] < EMPTY) & (later < 0.0)
        slots_in_order.append([np.where(swap, b, a) for a, b in zip(first, second, strict=True)])
        slots_in_order.append([np.where(swap, a, b) for a, b in zip(first, second, strict=True)])
    places = [(gap, np.where(gap < EMPTY, point, centre), normal) for gap, point, normal in slots_in_order]
    if otherwise is None:
        return places
    nothing = places[0][0] >= EMPTY
    for gap, _, _ in places[1:]:
        nothing = nothing & (gap >= EMPTY)
    gap, point, normal = (np.where(nothing, b, a) for a, b in zip(places[0], otherwise, strict=True))
    return [(gap, point, normal), *places[1:]]


def _sectors(x: Any, y: Any, slots: int) -> list[Any]:
    """For each sector, whether a place is in it."""
    if slots < SLOTS:
        return [x >= 0.0, x < 0.0]
    along_x = np.abs(x) >= np.abs(y)
    return [along_x & (x >= 0.0), along_x & (x < 0.0), ~along_x & (y >= 0.0), ~along_x & (y < 0.0)]


def _chosen(sectors: Sequence[Any], parts: Array) -> Any:
    """The value of the sector that holds."""
    chosen = parts[0]
    for holds, part in zip(sectors[1:], parts[1:], strict=True):
        chosen = np.where(holds, part, chosen)
    return chosen
