"""The distance of any two convex shapes given by their support functions. Floats only, because it branches.

It works in the set of differences C = {a − b} of points of the two shapes: they are apart if the origin is outside C,
by its distance from C; they overlap if it is inside, by its distance from the boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

Support = Callable[[np.ndarray], np.ndarray]

_STEPS = 200  # at most: shapes with corners need about 10, curved ones about 50
_TOUCHING = 1e-9  # in sizes of C: if the origin comes nearer to C, its distance from the boundary is computed instead
_ACCURACY = 1e-14  # of the distance, in sizes of C
_DEPTH_ACCURACY = 1e-13  # likewise, of the depth: closer, the faces on curved shapes are too thin to have a normal
_ROUNDING = 1e-15  # likewise, of the height above a face
_PLANE = 1e-11  # likewise, of the distance from the plane of a face
_SLIVER = 1e-10  # of the squares of a face's sides: with a smaller area, rounding leaves nothing of its normal


@dataclass(frozen=True, eq=False)
class Separation:
    """The gap between two convex shapes, its direction, and the points where it is measured.

    Attributes:
        gap: m; if they overlap, minus the shortest translation that separates them.
        normal: 3, the unit vector along which moving the first shape increases the gap fastest.
        first, second: 3 each, the points of the two shapes between which the gap is measured.
    """

    gap: float
    normal: np.ndarray
    first: np.ndarray
    second: np.ndarray


def convex_distance(support_a: Support, support_b: Support) -> Separation:
    """The separation of two convex shapes, one of which must have a volume.

    If they are apart, simplices approach C (Gilbert, Johnson and Keerthi); if they overlap, a polytope grows where its
    boundary is nearest to the origin (van den Bergen). Relative to the size of the shapes, gap, normal and points are
    accurate to 1e-12 if the shapes have corners. If they are curved, the gap is accurate to 1e-10, normal and points to
    1e-5; all to 1e-3 if the way out is the same in all directions, as for cylinders on one axis. If two faces meet, the
    points are any that they share.

    Args:
        support_a, support_b: give the point of a shape furthest along a direction, 3 (of any length but zero).
    """

    def support(d: np.ndarray) -> np.ndarray:
        a, b = support_a(d), support_b(-d)
        return np.stack([a - b, a, b])

    v, weights, corners = _approach(support)
    length = float(np.linalg.norm(v))
    if length <= _TOUCHING * np.abs(corners[:, 0]).max():
        return _overlap(support)
    return Separation(length, v / length, weights @ corners[:, 1], weights @ corners[:, 2])


def _approach(support: Support) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The point of C nearest to the origin, and the weights and corners of a simplex that contains it."""
    corners = support(np.array([1.0, 0.0, 0.0]))[None]
    weights, v = np.ones(1), corners[0, 0]
    for _ in range(_STEPS):
        length = float(np.linalg.norm(v))
        scale = float(np.abs(corners[:, 0]).max())
        if length <= _TOUCHING * scale:
            break
        w = support(-v / length)
        if length - v @ w[0] / length <= _ACCURACY * scale:
            break
        face, shares = _nearest(np.concatenate([corners, w[None]]))
        nearer = shares @ face[:, 0]
        if np.linalg.norm(nearer) >= length:  # all that rounding allows
            break
        corners, weights, v = face, shares, nearer
    return v, weights, corners


def _nearest(simplex: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The face of a simplex nearest to the origin, and the weights of the nearest point; it has the last vertex."""
    best, nearest = np.inf, (simplex[-1:], np.ones(1))
    for size in range(4):
        for others in combinations(range(len(simplex) - 1), size):
            face = simplex[[*others, len(simplex) - 1]]
            start, edges = face[-1, 0], face[:-1, 0] - face[-1, 0]
            shares = np.linalg.lstsq(edges.T, -start, rcond=None)[0] if size else np.empty(0)
            weights = np.append(shares, 1.0 - shares.sum())
            distance = np.linalg.norm(weights @ face[:, 0])
            if (weights >= 0.0).all() and distance < best:
                best, nearest = distance, (face, weights)
    return nearest


class _Polytope:
    """A convex polytope within C with triangular faces, which grows by adding points of C.

    Attributes:
        points: n × 3 × 3, each a point of C, and the points of the two shapes whose difference it is.
        faces: m × 3, the numbers of each face's points.
        normals: m × 3, outward unit vectors.
        offsets: m, the distances of the faces from the origin along their normals; negative if the origin is beyond.
    """

    def __init__(self, points: np.ndarray) -> None:
        self.points = points
        self.centre = points[:, 0].mean(axis=0)
        self.scale = float(np.linalg.norm(points[:, 0] - self.centre, axis=1).max())
        self.faces = np.empty((0, 3), int)
        self.normals, self.offsets = np.empty((0, 3)), np.empty(0)
        self._add(np.array(list(combinations(range(4), 3))))

    def _add(self, faces: np.ndarray) -> None:
        a, b, c = (self.points[faces[:, i], 0] for i in range(3))
        normals = np.cross(b - a, c - a)
        area = np.linalg.norm(normals, axis=1)
        flat = area <= _SLIVER * np.sum((b - a) ** 2 + (c - a) ** 2, axis=1)
        normals = normals / np.where(flat, 1.0, area)[:, None]
        normals *= np.where(np.sum(normals * (a - self.centre), axis=1) < 0.0, -1.0, 1.0)[:, None]
        offsets = np.max([np.sum(normals * x, axis=1) for x in (a, b, c)], axis=0)
        offsets[flat] = np.inf  # a face without a normal is never the nearest
        self.faces = np.concatenate([self.faces, faces])
        self.normals = np.concatenate([self.normals, normals])
        self.offsets = np.concatenate([self.offsets, offsets])

    def grow(self, point: np.ndarray, face: int) -> None:
        """Adds a point beyond a face: all faces that it sees are replaced by faces from their rim to the point."""
        seen = self.normals @ point[0] - self.offsets > -_ROUNDING * self.scale
        seen[face] = True
        edges = np.sort(self.faces[seen][:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        edges, times = np.unique(edges, axis=0, return_counts=True)
        rim = edges[times == 1]
        self.faces, self.normals, self.offsets = self.faces[~seen], self.normals[~seen], self.offsets[~seen]
        self.points = np.concatenate([self.points, point[None]])
        self._add(np.column_stack([rim, np.full(len(rim), len(self.points) - 1)]))


def _overlap(support: Support) -> Separation:
    polytope = _Polytope(_tetrahedron(support))
    best, normal = np.inf, polytope.normals[0]
    for _ in range(_STEPS):
        face = int(np.argmin(polytope.offsets))
        n = polytope.normals[face]
        w = support(n)
        depth = float(n @ w[0])  # never below the true one
        if depth < best:
            best, normal = depth, n
        if depth - polytope.offsets[face] <= _DEPTH_ACCURACY * polytope.scale:
            break
        polytope.grow(w, face)
    # The place on the boundary is a mixture of what lies in the plane there, which may be more than one face.
    places = polytope.points[polytope.points[:, 0] @ normal >= best - _PLANE * polytope.scale]
    shifted = places - np.stack([best * normal, np.zeros(3), np.zeros(3)])
    _, weights, corners = _approach(lambda d: shifted[np.argmax(shifted[:, 0] @ d)])
    return Separation(-best, -normal, weights @ corners[:, 1], weights @ corners[:, 2])


def _tetrahedron(support: Support) -> np.ndarray:
    """Four points of C that span a volume: each is the furthest from the line or plane through those before."""
    points = [support(d) for d in (np.array([1.0, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0]))]
    line = points[1][0] - points[0][0]
    sideways = np.cross(line, np.eye(3)[np.argmin(np.abs(line))])
    points.append(_furthest(support, sideways, points[0][0]))
    points.append(_furthest(support, np.cross(line, points[2][0] - points[0][0]), points[0][0]))
    return np.stack(points)


def _furthest(support: Support, d: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The point of C furthest, on either side, from the plane through `start` normal to d."""
    ends = [support(d), support(-d)]
    return max(ends, key=lambda w: abs(float(d @ (w[0] - start))))
