"""What the faces of two polyhedra share where they are nearest: more places of contact than the one nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.contact.polyhedron import polyhedron
from coupler.spatial import Transform

__all__ = ["Faces", "shared_corners"]

_NO_DIRECTION = 1e-3  # the sum of two unit vectors, across the normal: shorter ones have lost their direction
_FLAT = 1e-5  # of the size: corners so near to a face's plane belong to it, as files with 7 digits want it
_EDGE_ON = 0.1  # the cosine between a face's normal and the contact's below which the face is not looked at
_AXES = np.array([[0.83, 0.52, 0.21], [-0.31, 0.71, 0.63]])  # askew, so that no side of a box is across them


@dataclass(frozen=True, eq=False)
class Faces:
    """The faces of a convex polyhedron.

    Attributes:
        normals: f × 3, unit vectors outwards.
        polygons: f of them, k × 3 each: corners, anticlockwise as seen from outside.
    """

    normals: np.ndarray
    polygons: list[np.ndarray]

    @classmethod
    def of(cls, vertices: np.ndarray) -> Faces:
        """The faces of the convex hull of points; none if it is too flat to tell."""
        hull = polyhedron(vertices)
        if hull is None:
            return cls(np.zeros((0, 3)), [])
        near = _FLAT * float(np.ptp(vertices, axis=0).max())
        heights = hull.normals @ hull.corners.T - hull.offsets[:, None]
        polygons = [
            _around(hull.corners[own], normal)
            for own, normal in zip(np.abs(heights) <= near, hull.normals, strict=True)
        ]
        return cls(hull.normals, polygons)


def shared_corners(
    one: Faces, other: Faces, X_one: Transform, X_other: Transform, normal: np.ndarray, point: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """Corners of what the faces next to a contact share, as seen along its normal: gap and point of four at the most.

    They are those furthest along four directions that move with the two shapes, so that their order lasts.

    Args:
        one, other: the faces of two polyhedra.
        X_one, X_other: transforms from the world to each one's frame.
        normal: 3, the contact's, from the second to the first.
        point: 3, the contact's.
    """
    upper, lower = _facing(one, X_one, -normal, point), _facing(other, X_other, normal, point)
    if upper is None or lower is None:
        return []
    axes = _axes(X_one, X_other, normal)
    area = _clipped(*(_anticlockwise(polygon @ axes.T) for polygon, _ in (upper, lower)))
    if not len(area):
        return []
    chosen = [area[np.argmax(area @ d)] for d in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))]
    found = []
    for place in chosen:
        p = place @ axes
        above, below = (float(n @ (polygon[0] - p) / (n @ normal)) for polygon, n in (upper, lower))
        found.append((above - below, point + p + 0.5 * (above + below) * normal))
    return found


def _facing(faces: Faces, X: Transform, d: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The face that looks along d most: its corners from a point, and its normal, in the world."""
    along = faces.normals @ (X.E @ d)
    face = int(np.argmax(along)) if len(along) else -1
    if face < 0 or along[face] < _EDGE_ON:
        return None
    return faces.polygons[face] @ X.E + (X.r - point), X.E.T @ faces.normals[face]


def _axes(X_one: Transform, X_other: Transform, normal: np.ndarray) -> np.ndarray:
    """2 × 3, across the normal: they turn with the shapes, and do not mind which one is first."""
    found = [normal]
    for axis in _AXES:
        both = _across(X_one.E.T @ axis + X_other.E.T @ axis, found)
        if np.linalg.norm(both) < _NO_DIRECTION:
            both = max((_across(e, found) for e in np.eye(3)), key=lambda e: float(e @ e))
        found.append(both / np.linalg.norm(both))
    return np.stack(found[1:])


def _across(d: np.ndarray, units: list[np.ndarray]) -> np.ndarray:
    return d - sum((float(d @ u) * u for u in units), np.zeros(3))


def _around(corners: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Corners of a face in the order around its middle, anticlockwise as seen from outside."""
    away = corners - corners.mean(axis=0)
    first = away[0] - (away[0] @ normal) * normal
    return corners[np.argsort(np.arctan2(away @ np.cross(normal, first), away @ first))]


def _anticlockwise(polygon: np.ndarray) -> np.ndarray:
    x, y = polygon.T
    return polygon if np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) >= 0.0 else polygon[::-1]


def _clipped(area: np.ndarray, window: np.ndarray) -> np.ndarray:
    """What two convex polygons share, k × 2, anticlockwise as both are; by Sutherland and Hodgman."""
    for start, end in zip(window, np.roll(window, -1, axis=0), strict=True):
        inwards = np.array([start[1] - end[1], end[0] - start[0]])
        inside = (area - start) @ inwards
        kept = []
        for p, q, a, b in zip(area, np.roll(area, -1, axis=0), inside, np.roll(inside, -1), strict=True):
            kept += [p] if a >= 0.0 else []
            kept += [p + (a / (a - b)) * (q - p)] if a * b < 0.0 else []
        area = np.array(kept).reshape(-1, 2)
    return area
