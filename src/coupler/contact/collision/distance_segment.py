"""The nearest points of a segment to another segment, or to a box: the axes of capsules. Floats or nodes of a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.spatial import cross

Array = Any  # an ndarray of floats, or of nodes

_PARALLEL = 1e-24  # sin² of the angle below which axes count as parallel: the gap is off by 1e-12 of their lengths
_ACROSS = 1e-12  # a smaller component of an axis' direction never takes it to the faces of the box across it
_FLAT = 1e-14  # m: a smaller slope of a squared distance is rounding


def between_segments(w: Array, u: Array, half_u: float, v: Array, half_v: float) -> tuple[Any, Any]:
    """The parameters s, t that bring s u nearest to t v − w, for |s| ≤ half_u and |t| ≤ half_v.

    Without bounds, s = −(w × v)·(u × v) / |u × v|². Clipping s, then clipping the nearest t, then clipping the s
    nearest to that t, gives the minimum, because the function is convex in two unknowns. Parallel segments are nearest
    along a whole stretch, of which the middle is taken.

    Args:
        w: 3, from the centre of the second segment to that of the first, m.
        u, v: 3 each, their unit directions.
        half_u, half_v: half of their lengths, m.
    """
    c, normal = u @ v, np.stack(list(cross(u, v)))
    sine = normal @ normal
    crossed = sine > _PARALLEL
    middle = 0.5 * (np.clip(-(w @ u) - half_v, -half_u, half_u) + np.clip(-(w @ u) + half_v, -half_u, half_u))
    s = np.where(crossed, -(cross(w, v) @ normal) / np.where(crossed, sine, 1.0), middle)
    t = np.clip(w @ v + c * np.clip(s, -half_u, half_u), -half_v, half_v)
    return np.clip(c * t - w @ u, -half_u, half_u), t


def nearest_to_box(p: Array, u: Array, half_length: float, half: np.ndarray) -> Any:
    """The parameter s, |s| ≤ half_length, that brings p + s u nearest to a box that reaches to ±half.

    The slope of the squared distance, F(s) = Σ uᵢ (the excess of xᵢ beyond ±halfᵢ), never decreases and is linear
    between the places where the line meets the planes of the faces; places beyond the ends are moved there. The root
    lies between the last place with F ≤ 0 and the first with F ≥ 0. Where F is zero along a stretch (inside the box, or
    beside a face), the middle of the stretch is taken.
    """

    def slope(s: Any) -> Any:
        x = p + s * u
        return u @ (x - np.clip(x, -half, half))

    places: list[Any] = []
    for i in range(3):
        along = np.abs(u[i]) > _ACROSS
        crossings = [(face - p[i]) / np.where(along, u[i], 1.0) for face in (-half[i], half[i])]
        places += [np.where(along, np.clip(s, -half_length, half_length), half_length) for s in crossings]
    low, high = -half_length, half_length
    for s in places:
        F = slope(s)
        low = np.where(F <= _FLAT, np.maximum(low, s), low)
        high = np.where(F >= -_FLAT, np.minimum(high, s), high)
    before, after = slope(low), slope(high)
    rises = after - before > _FLAT
    share = np.where(rises, -before / np.where(rises, after - before, 1.0), 0.5)
    return low + np.clip(share, 0.0, 1.0) * (high - low)
