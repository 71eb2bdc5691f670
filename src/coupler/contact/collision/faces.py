"""The faces of convex polyhedra, as polygons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.contact.collision.polyhedron import polyhedron

_FLAT = 1e-5  # of the size: corners this near to a face's plane belong to it, because files often have only 7 digits


@dataclass(frozen=True, eq=False)
class Faces:
    """The faces of a convex polyhedron.

    Attributes:
        normals: f × 3, outward unit vectors.
        polygons: f arrays of k × 3 corners, anticlockwise as seen from outside.
    """

    normals: np.ndarray
    polygons: list[np.ndarray]

    @classmethod
    def of(cls, vertices: np.ndarray) -> Faces:
        """The faces of the convex hull of points; none if the hull is too flat."""
        hull = polyhedron(vertices)
        if hull is None:
            return cls(np.zeros((0, 3)), [])
        near = _FLAT * float(np.ptp(vertices, axis=0).max())
        heights = hull.normals @ hull.corners.T - hull.offsets[:, None]
        polygons = [
            _around(hull.corners[in_plane], normal)
            for in_plane, normal in zip(np.abs(heights) <= near, hull.normals, strict=True)
        ]
        return cls(hull.normals, polygons)


def _around(corners: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The corners of a face in order around its middle, anticlockwise as seen from outside."""
    away = corners - corners.mean(axis=0)
    first = away[0] - (away[0] @ normal) * normal
    return corners[np.argsort(np.arctan2(away @ np.cross(normal, first), away @ first))]
