"""Height fields by brute force: all triangles, all edges, in plain NumPy; the reference for contacts with terrain."""

from __future__ import annotations

from itertools import product

import numpy as np

from coupler.model import HeightField

__all__ = ["clearance", "distance_from_triangles", "height", "random_field", "triangles"]


def random_field(rng: np.random.Generator, shape: tuple[int, int] = (9, 8), rough: float = 0.15) -> HeightField:
    """A field of random heights, its cells some 0.2 m wide."""
    return HeightField(rng.uniform(-rough, rough, shape), 0.2 * np.array(shape) + [0.0, 0.05])


def points_of(field: HeightField) -> np.ndarray:
    """n × m × 3."""
    n, m = field.heights.shape
    x, y = (np.linspace(-0.5, 0.5, k) * size for k, size in zip((n, m), field.size, strict=True))
    return np.stack([np.repeat(x[:, None], m, 1), np.repeat(y[None], n, 0), field.heights], axis=-1)


def triangles(field: HeightField) -> np.ndarray:
    """k × 3 × 3, corners anticlockwise as seen from above: cells are cut from (i, j) to (i+1, j+1)."""
    p = points_of(field)
    first = np.stack([p[:-1, :-1], p[1:, :-1], p[1:, 1:]], axis=2).reshape(-1, 3, 3)
    second = np.stack([p[:-1, :-1], p[1:, 1:], p[:-1, 1:]], axis=2).reshape(-1, 3, 3)
    return np.concatenate([first, second])


def height(field: HeightField, x: float, y: float) -> float:
    """Of the surface at a place, by looking through all triangles."""
    for a, b, c in triangles(field):
        M = np.array([b[:2] - a[:2], c[:2] - a[:2]]).T
        s, t = np.linalg.solve(M, np.array([x, y]) - a[:2])
        if s >= -1e-9 and t >= -1e-9 and s + t <= 1.0 + 1e-9:
            return float(a[2] + s * (b - a)[2] + t * (c - a)[2])
    return -np.inf


def distance_from_triangles(field: HeightField, x: np.ndarray) -> float:
    """How far a point is from the nearest triangle, or the nearest edge of one."""
    best = np.inf
    for corners in triangles(field):
        a, b, c = corners
        n = np.cross(b - a, c - a)
        n /= np.linalg.norm(n)
        foot = x - (n @ (x - a)) * n
        if all(np.cross(q - p, foot - p) @ n >= 0.0 for p, q in ((a, b), (b, c), (c, a))):
            best = min(best, abs(float(n @ (x - a))))
        for p, q in ((a, b), (b, c), (c, a)):
            t = np.clip((x - p) @ (q - p) / ((q - p) @ (q - p)), 0.0, 1.0)
            best = min(best, float(np.linalg.norm(x - p - t * (q - p))))
    return best


def clearance(field: HeightField, corners: np.ndarray, planes: np.ndarray, edges: np.ndarray) -> float:
    """How far a convex polyhedron can be lowered, straight down, until it touches the surface, m; less than 0: raised.

    It touches first with a corner on a face, with a face on a grid point, or with an edge on an edge.

    Args:
        field: the ground.
        corners: k × 3.
        planes: f × 4, unit normals outwards and offsets.
        edges: e × 2 × 3.
    """
    found = [c[2] - height(field, *c[:2]) for c in corners]
    for p in points_of(field).reshape(-1, 3):
        free = planes[:, 3] - planes[:, :2] @ p[:2]
        flat = np.abs(planes[:, 2]) < 1e-12
        if (free[flat] < 0.0).any():
            continue
        low = (free / np.where(flat, 1.0, planes[:, 2]))[~flat & (planes[:, 2] < 0.0)].max()
        high = (free / np.where(flat, 1.0, planes[:, 2]))[~flat & (planes[:, 2] > 0.0)].min()
        found += [low - p[2]] if low <= high else []
    sides = np.concatenate([triangles(field)[:, [i, (i + 1) % 3]] for i in range(3)])
    for (a, b), (c, d) in product(edges, sides):
        M = np.array([(b - a)[:2], (c - d)[:2]]).T
        if abs(np.linalg.det(M)) > 1e-12:
            s, t = np.linalg.solve(M, (c - a)[:2])
            if 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0:
                found.append((a + s * (b - a))[2] - (c + t * (d - c))[2])
    return float(min(found))
