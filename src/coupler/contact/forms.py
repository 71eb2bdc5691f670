"""Forms that only contact knows: a point, the hull of points, ground of given heights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.shapes import Geometry

__all__ = ["HeightField", "Hull", "Point"]

_FLAT = 1e-9  # of its size: a hull that is thinner has no volume


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
    """Ground of given heights over a grid, bilinear in between; its frame is at the middle of the grid, at height 0.

    Attributes:
        heights: n × m, along z, m; rows go along x, columns along y. Nodes of a trace take 1024 of them at most.
        size: 2, what the grid extends over along x and y, m.
    """

    heights: Any
    size: Any

    def __post_init__(self) -> None:
        heights = np.asarray(self.heights)
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ModelError(f"height field: its heights must be a grid, 2 × 2 at least, got the shape {heights.shape}")
        object.__setattr__(self, "heights", numbers("height field: its heights", heights, heights.shape))
        size = numbers("height field: its size", self.size, (2,))
        if not (size > 0.0).all():
            raise ModelError(f"height field: its size must be above zero, got {self.size!r}")
        object.__setattr__(self, "size", size)
