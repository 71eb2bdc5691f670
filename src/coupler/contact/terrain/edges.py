"""Where an edge of the ground is deepest in a convex shape, or nearest to it.

The distance d(t) from the shape along the edge is convex, and its slope never falls. Where the slope changes its sign
the edge is deepest. If the edge lies along a flat side, the slope is next to zero over a stretch, and both ends of the
stretch are places of contact. So two crossings are sought: of the slope with −level, and with +level.

A crossing is found by halving, and by going to where the tangents from both sides meet: the one leaves no doubt, the
other is exact where sides are flat. Where the slope jumps, as where the edge crosses an edge of the shape, the normal
is that mean of both sides' normals which is across the edge, m = λ n₁ + (1−λ) n₂. The planes of both sides are d away,
and so the shape is d/|m| away along m.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.terrain.solids import signed
from coupler.model.shapes import Sphere

__all__ = ["along_edge"]

Array = Any  # an ndarray of floats, or of nodes

_STEPS = 14  # of a search; every other one halves

Touch = tuple[Any, Any, Array, Array]  # whether there is one, its gap, the point of the edge, the shape's normal there


def along_edge(shape: Any, start: Array, edge: Array, level: float) -> list[Touch]:
    """The places at which an edge touches a shape, its ends left out: two, or one of a ball.

    Args:
        shape: about its centre; see `signed`.
        start, edge: 3 each, where the edge starts, and from there to its end.
        level: the tilt up to which an edge lies along a side, rad.
    """
    length = np.sqrt(edge @ edge)
    if isinstance(shape, Sphere):
        t = -(start @ edge) / (length * length)
        point = start + t * edge
        distance, normal = signed(shape, point)
        return [((t > 0.0) & (t < 1.0), distance, point, normal)]
    ends = _look(shape, start, edge, length, 0.0), _look(shape, start, edge, length, 1.0)
    found = []
    for at in (-level, level):
        low, high = ends
        exists = (low[3] < at) & (high[3] >= at)
        for k in range(_STEPS):
            t = 0.5 * (low[0] + high[0]) if k % 2 == 0 else _meeting(low, high, at, length)
            middle = _look(shape, start, edge, length, t)
            before = middle[3] < at
            low = [np.where(before, new, old) for new, old in zip(middle, low, strict=True)]
            high = [np.where(before, old, new) for new, old in zip(middle, high, strict=True)]
        t, distance = _between(shape, start, edge, low, high, at, length)
        point = start + t * edge
        along = (high[3] <= level) if at < 0.0 else (low[3] >= -level)
        normal, shortened = _across(low, high)
        gap = np.where(along, distance, distance / shortened)
        normal = np.where(along, (high if at < 0.0 else low)[2], normal)
        found.append((exists & along if at > 0.0 else exists, gap, point, normal))
    return found


def _look(shape: Any, start: Array, edge: Array, length: Any, t: Any) -> list[Any]:
    """A place of the edge: its parameter, distance, normal and slope."""
    distance, normal = signed(shape, start + t * edge)
    return [t, distance, normal, (normal @ edge) / length]


def _between(
    shape: Any, start: Array, edge: Array, low: list[Any], high: list[Any], level: float, length: Any
) -> tuple[Any, Any]:
    """The crossing between two places: where tangents meet, or, where sides are curved, slopes reach the level."""
    jump = high[3] - low[3]
    share = np.where(jump > 1e-12, (level - low[3]) / np.where(jump > 1e-12, jump, 1.0), 0.5)
    t, s = _meeting(low, high, level, length), low[0] + np.clip(share, 0.0, 1.0) * (high[0] - low[0])
    (d, _), (e, _) = (signed(shape, start + x * edge) for x in (t, s))
    better = e - level * length * s < d - level * length * t
    return np.where(better, s, t), np.where(better, e, d)


def _meeting(low: list[Any], high: list[Any], level: float, length: Any) -> Any:
    """Where the tangents of d(t) − level t from both sides meet."""
    a, b = (low[3] - level) * length, (high[3] - level) * length
    rises = b - a > 1e-12 * length
    share = (low[1] - high[1]) + level * length * (high[0] - low[0]) + b * (high[0] - low[0])
    t = low[0] + np.where(rises, share / np.where(rises, b - a, 1.0), 0.5 * (high[0] - low[0]))
    return np.clip(t, low[0], high[0])


def _across(low: list[Any], high: list[Any]) -> tuple[Array, Any]:
    """The mean of two normals that is across the edge, as a unit vector, and how long it was."""
    jump = high[3] - low[3]
    share = np.where(jump > 1e-12, high[3] / np.where(jump > 1e-12, jump, 1.0), 0.5)
    mean = share * low[2] + (1.0 - share) * high[2]
    square = mean @ mean
    length = np.sqrt(np.where(square > 1e-12, square, 1.0))
    return mean / length, length
