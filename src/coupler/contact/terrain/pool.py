"""The few contacts with the ground that are kept: in each quarter around a shape the two that are nearest.

Quarters are those around +x, −x, +y and −y of the field, as seen from the shape's centre. Of contacts that are equally
near, as all along a ridge under a flat side, the outermost count. Two contacts of a quarter are apart, and in an order
that lasts, so that the impulses of the step before are found again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["EMPTY", "SLOTS", "Candidate", "added", "emptied", "listed"]

Array = Any  # an ndarray of floats, or of nodes
Candidate = tuple[Any, Any, Array, Array]  # whether there is one, gap, point, normal: in the field's frame

SLOTS = 8
EMPTY = 10.0  # m: the gap of a slot without contact, beyond what anything travels within a step
_OUTER = 1e-6  # what a place further out by 1 m may be further away, m
_APART = 0.02  # in radii of the shape: how far apart the two contacts of a quarter are at least
_MIDDLE = 1e-4  # likewise: nearer to the centre, as under a ball on level ground, all is in the first quarter


def emptied(pool: Any) -> None:
    """Makes all slots of a pool empty: its fields are `gap`, `score`, `point` and `normal`."""
    pool.gap, pool.score = np.full(SLOTS, EMPTY), np.full(SLOTS, EMPTY)
    pool.point, pool.normal = np.zeros((SLOTS, 3)), np.tile([0.0, 0.0, 1.0], (SLOTS, 1))


def added(pool: Any, candidate: Candidate, centre: Array, radius: Any) -> None:
    """Puts a contact into a pool if it is among the nearest of its quarter.

    Args:
        pool: see `emptied`.
        candidate: the contact.
        centre: 3, of the shape.
        radius: of the ball around it, m.
    """
    exists, gap, point, normal = candidate
    x, y = point[0] - centre[0] + _MIDDLE * radius, point[1] - centre[1]
    along_x = np.abs(x) >= np.abs(y)
    quarters = along_x & (x >= 0.0), along_x & (x < 0.0), ~along_x & (y >= 0.0), ~along_x & (y < 0.0)
    score = gap - _OUTER * np.maximum(np.abs(x), np.abs(y))
    near = (_APART * radius) * (_APART * radius)
    new, rows = (gap, score, point, normal), []
    for k, own in enumerate(quarters):
        first, second = ([part[2 * k + i] for part in (pool.gap, pool.score, pool.point, pool.normal)] for i in (0, 1))
        away, away_second = point - first[2], point - second[2]
        apart, apart_second = away @ away > near, away_second @ away_second > near
        mine = exists & own
        better = mine & (score < first[1])
        moves_down = better & (apart | (first[1] >= EMPTY))
        drops_out = better & ~apart_second
        joins = mine & (score >= first[1]) & apart & (score < second[1])
        empty = (EMPTY, EMPTY, np.zeros(3), np.array([0.0, 0.0, 1.0]))
        for i in range(4):
            kept = np.where(drops_out, empty[i], second[i])
            second[i] = np.where(joins, new[i], np.where(moves_down, first[i], kept))
            first[i] = np.where(better, new[i], first[i])
        rows += [first, second]
    pool.gap, pool.score, pool.point, pool.normal = (np.stack([row[i] for row in rows]) for i in range(4))


def listed(pool: Any, bound: Any, centre: Array) -> list[tuple[Any, Array, Array]]:
    """The contacts of a pool: gap, point, normal, in an order that lasts.

    If there are none, the first says that nothing is within `bound`, m.
    """
    found = []
    for k in range(SLOTS // 2):
        first, second = ([part[2 * k + i] for part in (pool.gap, pool.point, pool.normal)] for i in (0, 1))
        across = 1 if k < 2 else 0
        swap = (second[0] < EMPTY) & (second[1][across] < first[1][across])
        found.append([np.where(swap, b, a) for a, b in zip(first, second, strict=True)])
        found.append([np.where(swap, a, b) for a, b in zip(first, second, strict=True)])
    nothing = found[0][0] >= EMPTY
    for gap, _, _ in found[1:]:
        nothing = nothing & (gap >= EMPTY)
    found[0][0] = np.where(nothing, bound, found[0][0])
    return [(gap, np.where(gap < EMPTY, point, centre), normal) for gap, point, normal in found]
