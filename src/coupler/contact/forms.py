"""Forms that only contact knows: a point, the hull of points, ground of given heights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.contact.terrain.surface import sharpness
from coupler.graph import Table
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.shapes import Geometry

__all__ = ["HeightField", "Hull", "Point"]

_FLAT = 1e-9  # of its size: a hull that is thinner has no volume
_MOST = 2**22  # heights of a field: four numbers are kept of each, and a table has 2²⁴


@dataclass(frozen=True, eq=False)
class Point(Geometry):
    """A point, at the origin of its frame."""


@dataclass(frozen=True, eq=False)
class Hull(Geometry):
    """The convex hull of points.

    Attributes:
        vertices: n × 3, m, which span a volume. Those inside the hull do no harm, but each costs.
    """

    vertices: Any

    def __post_init__(self) -> None:
        what = "hull: its vertices"
        vertices = numbers(what, self.vertices, (3,), batch=True)
        spread = vertices - vertices.mean(axis=0) if vertices.ndim == 2 and len(vertices) else np.zeros((1, 3))
        if np.linalg.matrix_rank(spread, tol=_FLAT * max(float(np.abs(spread).max()), 1e-300)) < 3:
            raise ModelError(f"{what} must be n × 3 numbers that span a volume, got the shape {vertices.shape}")
        object.__setattr__(self, "vertices", vertices)


@dataclass(frozen=True, eq=False)
class HeightField(Geometry):
    """Ground of given heights over a grid; its frame is at the middle of the grid, at height 0.

    Each cell is two flat triangles, cut by the diagonal from (i, j) to (i+1, j+1), as in MuJoCo. Below the surface it
    is solid, down without end, between vertical walls at the rim; beyond these there is nothing.

    Attributes:
        heights: n × m, along z, m; rows go along x, columns along y. Up to 2²² of them.
        size: 2, what the grid extends over along x and y, m.
        grid: 4, n and m, and the distances of grid points along x and y, m.
        table: the heights, row by row.
        sharp: where the ground is convex; see `sharpness`.
    """

    heights: Any
    size: Any
    grid: Any = field(init=False, repr=False)
    table: Table = field(init=False, repr=False)
    sharp: Table = field(init=False, repr=False)

    def __post_init__(self) -> None:
        heights = np.asarray(self.heights)
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
        own = {"heights": heights, "size": size, "grid": np.array([*heights.shape, *spacing])}
        own |= {"table": Table(heights), "sharp": Table(sharpness(heights, *spacing))}
        for name, value in own.items():
            object.__setattr__(self, name, value)
