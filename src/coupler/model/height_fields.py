"""Height fields: uneven ground as a grid of triangles, and where it is convex."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.graph import Table
from coupler.model.errors import ModelError
from coupler.model.numbers import as_array, numbers
from coupler.model.shapes import Geometry

_MOST = 2**22  # the most heights of a field: four numbers are kept for each, and a table holds 2²⁴
_BENT = 1e-7  # rad: edges that are bent by less are flat

# Edges that a grid point owns: where they lead, and the third corners of the triangles on both sides.
EDGES = (((1, 0), (1, 1), (0, -1)), ((0, 1), (1, 1), (-1, 0)), ((1, 1), (1, 0), (0, 1)))


@dataclass(frozen=True, eq=False)
class HeightField(Geometry):
    """Uneven ground, given by its heights over a grid. Its frame is at the middle of the grid, at height 0.

    Each cell is two flat triangles, cut by the diagonal from (i, j) to (i+1, j+1), as in MuJoCo. The ground is solid
    below its surface, to any depth, between vertical walls at the rim; beyond these there is nothing.

    Attributes:
        heights: n × m, along z, m; rows go along x, columns along y. Up to 2²² of them.
        size: 2, the extent of the grid along x and y, m.
        grid: 4, n and m, and the distances of grid points along x and y, m.
        table: the heights, row by row.
        sharp: where the ground is convex; see `_sharpness`.
    """

    heights: Any
    size: Any
    grid: Any = field(init=False, repr=False)
    table: Table = field(init=False, repr=False)
    sharp: Table = field(init=False, repr=False)

    def __post_init__(self) -> None:
        heights = as_array("height field: its heights", self.heights)
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ModelError(f"height field: its heights must be a grid, 2 × 2 at least, got the shape {heights.shape}")
        if heights.size > _MOST:
            raise ModelError(
                f"height field: it may have {_MOST} heights at most, got {heights.size}; cut it into several"
            )
        heights = numbers("height field: its heights", heights, heights.shape)
        size = numbers("height field: its size", self.size, (2,))
        if not (size > 0.0).all():
            raise ModelError(f"height field: its size must be above zero, got {self.size!r}")
        spacing = size / (np.array(heights.shape) - 1.0)
        values = {"heights": heights, "size": size, "grid": np.array([*heights.shape, *spacing])}
        values |= {"table": Table(heights), "sharp": Table(_sharpness(heights, *spacing))}
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _sharpness(heights: np.ndarray, dx: float, dy: float) -> np.ndarray:
    """4 n m flags: for each grid point whether any edge there is convex, and which of the three that it owns are.

    An edge is convex if the sum of the directions from it into its two faces points down. At the rim, the wall is one
    of the faces, straight down.
    """
    n, m = heights.shape
    i, j = np.meshgrid(np.arange(n), np.arange(m), indexing="ij")

    def seen(step: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """The vectors from each grid point to another one, n × m × 3, and whether the other one exists."""
        a, b = i + step[0], j + step[1]
        there = (a >= 0) & (a < n) & (b >= 0) & (b < m)
        rise = heights[np.clip(a, 0, n - 1), np.clip(b, 0, m - 1)] - heights
        return np.stack([np.full((n, m), step[0] * dx), np.full((n, m), step[1] * dy), rise], axis=-1), there

    flags, sharp_at = [], np.zeros((n, m), dtype=bool)
    for end, *thirds in EDGES:
        along, there = seen(end)
        along = along / np.linalg.norm(along, axis=-1, keepdims=True)
        total = np.zeros((n, m, 3))
        for third in thirds:
            face, exists = seen(third)
            into = np.where(exists[..., None], face, [0.0, 0.0, -1.0])
            into = into - np.sum(into * along, axis=-1, keepdims=True) * along
            total += into / np.linalg.norm(into, axis=-1, keepdims=True)
        sharp = there & (total[..., 2] < -_BENT)
        flags.append(sharp)
        sharp_at |= sharp
        a, b = np.nonzero(sharp)
        sharp_at[a + end[0], b + end[1]] = True
    return np.stack([sharp_at, *flags]).astype(float).ravel()
