"""The surface of a height field: flat triangles over a grid, with vertical walls below its rim.

Grid point (i, j) is at x = (i − (n−1)/2) dx, y = (j − (m−1)/2) dy. Each cell is cut into two triangles by its diagonal
from (i, j) to (i+1, j+1), as in MuJoCo. Everything below the surface is solid.

A contact may be on a face, on an edge or at a grid point. Edges and grid points only matter where the solid is convex:
a shape that touches a flat or concave edge also touches a face. Each grid point owns three edges, to (i+1, j), (i, j+1)
and (i+1, j+1), and two triangles.

Functions take floats or nodes of a trace; the field has `grid` (n, m, dx, dy) and its tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model.height_fields import HeightField

Array = Any  # an ndarray of floats, or of nodes

NEIGHBOURS = ((1, 0), (1, 1), (0, 1), (-1, 0), (-1, -1), (0, -1))


def within(field: Any, i: Any, j: Any) -> Any:
    """Whether grid point (i, j) exists."""
    n, m, _, _ = field.grid
    return (i >= 0.0) & (i <= n - 1.0) & (j >= 0.0) & (j <= m - 1.0)


def corner(field: Any, i: Any, j: Any) -> Array:
    """3, the place of grid point (i, j); one outside the field has the height of the nearest one inside."""
    n, m, dx, dy = field.grid
    height = field.table.look_up(np.clip(i, 0.0, n - 1.0) * m + np.clip(j, 0.0, m - 1.0))
    return np.stack([(i - 0.5 * (n - 1.0)) * dx, (j - 0.5 * (m - 1.0)) * dy, height])


def _cell_at(field: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """The grid point that owns the cell at a place, and the place in it, 0 to 1; outside, at the nearest place."""
    n, m, dx, dy = field.grid
    a, b = np.clip(x / dx + 0.5 * (n - 1.0), 0.0, n - 1.0), np.clip(y / dy + 0.5 * (m - 1.0), 0.0, m - 1.0)
    i, j = np.clip(np.rint(a - 0.5), 0.0, n - 2.0), np.clip(np.rint(b - 0.5), 0.0, m - 2.0)
    return i, j, a - i, b - j


def triangle_at(field: Any, x: Any, y: Any) -> tuple[tuple[Any, Any], Any]:
    """The grid point that owns the triangle at a place, and whether the triangle is the one below the diagonal."""
    i, j, u, v = _cell_at(field, x, y)
    return (i, j), u >= v


def slopes_at(field: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Height and slopes along x and y of the triangle at a place; outside the field, at the nearest place inside."""
    _, m, dx, dy = field.grid
    i, j, u, v = _cell_at(field, x, y)
    first = i * m + j
    h00, h10, h01, h11 = (field.table.look_up(first + step) for step in (0.0, m, 1.0, m + 1.0))
    below = u >= v  # of the diagonal
    rise_x, rise_y = np.where(below, h10 - h00, h11 - h01), np.where(below, h11 - h10, h01 - h00)
    return h00 + u * rise_x + v * rise_y, rise_x / dx, rise_y / dy


def highest(field: HeightField, low: np.ndarray, high: np.ndarray) -> float:
    """The height of the highest point of a field over a rectangle, m; minus infinity beside the field.

    It is at a grid point inside, or on a side of the rectangle: at its ends, or where it crosses lines and diagonals of
    the grid.

    Args:
        low, high: 2 each, opposite corners of the rectangle in the field's frame, m.
    """
    last, spacing = field.grid[:2] - 1.0, field.grid[2:]
    ends = [np.asarray(end) / spacing + 0.5 * last for end in (low, high)]  # counted in cells
    if (ends[1] < 0.0).any() or (ends[0] > last).any():
        return -np.inf
    (x0, y0), (x1, y1) = np.clip(ends, 0.0, last)
    xs, ys = np.arange(np.ceil(x0), x1 + 1.0), np.arange(np.ceil(y0), y1 + 1.0)
    places = [np.stack(np.meshgrid(xs, ys, indexing="ij"), axis=-1).reshape(-1, 2)]
    for x in (x0, x1):
        along = np.concatenate([[y0, y1], ys, ys + x % 1.0, ys + x % 1.0 - 1.0])
        places.append(np.stack([np.full_like(along, x), along], axis=1))
    for y in (y0, y1):
        along = np.concatenate([xs, xs + y % 1.0, xs + y % 1.0 - 1.0])
        places.append(np.stack([along, np.full_like(along, y)], axis=1))
    within = (np.clip(np.concatenate(places), (x0, y0), (x1, y1)) - 0.5 * last) * spacing
    return float(slopes_at(field, *within.T)[0].max())


def to_field(p: Array, field: Any, over: Array | None = None) -> tuple[Any, Array]:
    """The distance of a point from the ground, and its direction; see distance_point.py.

    Above or below the field, it is the distance from the plane of the triangle there; beside it, from the walls. From
    inside, the way out is through that plane or a wall, whichever is nearer. If `over` is given, the triangle is that
    at this place.
    """
    n, m, dx, dy = field.grid
    x, y = (p if over is None else over)[:2]
    height, slope_x, slope_y = slopes_at(field, x, y)
    if over is not None:
        height = height + slope_x * (p[0] - x) + slope_y * (p[1] - y)
    steep = np.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
    above = p[2] - height
    top, up = above / steep, np.stack([-slope_x / steep, -slope_y / steep, 1.0 / steep])
    sign_x, sign_y = np.copysign(1.0, p[0]), np.copysign(1.0, p[1])
    wall_x, wall_y = np.abs(p[0]) - 0.5 * (n - 1.0) * dx, np.abs(p[1]) - 0.5 * (m - 1.0) * dy
    # Between the walls.
    aside = np.maximum(wall_x, wall_y)
    through_wall = (above < 0.0) & (aside > top)
    along_x = wall_x >= wall_y
    outward = np.stack([np.where(along_x, sign_x, 0.0), np.where(along_x, 0.0, sign_y), 0.0 * top])
    distance, normal = np.where(through_wall, aside, top), np.where(through_wall, outward, up)
    # Outside of the walls.
    away = np.stack([sign_x * np.maximum(wall_x, 0.0), sign_y * np.maximum(wall_y, 0.0), np.maximum(above, 0.0)])
    beside = aside > 0.0
    length = np.sqrt(np.where(beside, away @ away, 1.0))
    return np.where(beside, length, distance), np.where(beside, away / length, normal)
