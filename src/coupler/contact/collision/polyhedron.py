"""The convex hull of points as a polyhedron: its corners and the planes of its faces.

It grows from a tetrahedron. The point furthest beyond a face is added next, so the hull of the first few corners is
already near to that of all points, and stopping early simplifies it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from coupler.contact.collision.distance_convex import convex_distance

_DETAIL = 1e-6  # of the size: points nearer to the hull count as on it, because files often have only 7 digits
_PLANE = 1e-10  # of the size: points nearer to a plane lie in it
_ALIKE = 1e-9  # distances that differ by less than this fraction count as equal
_BLOCK = 4096  # points that are compared with all faces at a time
_LINE = 1e-8  # the sine of the angle between two sides of a triangle below which it has no plane


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """A convex polyhedron.

    Attributes:
        corners: k × 3.
        normals: f × 3, an outward unit vector for each face.
        offsets: f, the distances of the faces from the origin along their normals.
    """

    corners: np.ndarray
    normals: np.ndarray
    offsets: np.ndarray

    def distance(self, points: np.ndarray) -> float:
        """The largest distance of points outside of it; 0 if it is due to rounding."""
        height, face = _highest(points, self.normals, self.offsets)
        out = height > _PLANE * float(np.ptp(self.corners, axis=0).max())
        points, least = points[out], height[out]
        if not len(points):
            return 0.0
        feet = points - least[:, None] * self.normals[face[out]]
        distances = np.linalg.norm(points - self._drawn_in(feet), axis=1)
        largest = float(least.max())  # over a face the distance is the height; over an edge or a corner it is more
        for i in np.argsort(-distances):
            if distances[i] <= largest * (1.0 + _ALIKE):
                break
            largest = max(largest, self._distance(points[i]))
        return largest

    def _drawn_in(self, points: np.ndarray) -> np.ndarray:
        """Points of the polyhedron, on the lines from its middle to given points."""
        middle = self.corners.mean(axis=0)
        across, room = (points - middle) @ self.normals.T, self.offsets - self.normals @ middle
        np.maximum(across, room, out=across)
        np.divide(room, across, out=across)
        first = across.argmin(axis=1)[:, None]
        return middle + (points - middle) * np.take_along_axis(across, first, axis=1)

    def _distance(self, point: np.ndarray) -> float:
        return convex_distance(lambda d: point, lambda d: self.corners[np.argmax(self.corners @ d)]).gap


def polyhedron(points: np.ndarray, most: int | None = None) -> Polyhedron | None:
    """The convex hull of points, or a polyhedron within it; None if they span no volume.

    Args:
        points: n × 3. Points outside the hull of others by less than 1e-6 of its size may be left out.
        most: the largest number of corners; None for no limit.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    centre, size = 0.5 * (low + high), float(np.abs(high - low).max())
    if not size > 0.0:
        return None
    x = (points - centre) / size
    start = _tetrahedron(x)
    if start is None:
        return None
    hull = _Growth(x, start)
    while hull.height.max() > _DETAIL and (most is None or len(hull.corners) < most):
        hull.take(_furthest(x, hull.height))
    return Polyhedron(points[hull.corners], hull.normals, size * hull.offsets + hull.normals @ centre)


def _tetrahedron(x: np.ndarray) -> list[int] | None:
    """Four points, each as far as possible from the point, line or plane of those before; None if all are coplanar."""
    first = _furthest(x, np.linalg.norm(x, axis=1))
    away = x - x[first]
    second = _furthest(x, np.linalg.norm(away, axis=1))
    third = _furthest(x, np.linalg.norm(np.cross(away, away[second]), axis=1))
    across = np.cross(away[second], away[third])
    height = np.abs(away @ across)
    return [first, second, third, _furthest(x, height)] if height.max() > _DETAIL * np.linalg.norm(across) else None


def _furthest(x: np.ndarray, height: np.ndarray) -> int:
    """The number of the highest point; of equally high ones, as on an edge, the outermost, which is a corner."""
    highest = height.max()
    level = np.flatnonzero(height >= max(highest - _DETAIL, 0.5 * highest))
    return int(level[np.argmax(np.sum(x[level] ** 2, axis=1))])


class _Growth:
    """A hull that grows point by point.

    Attributes:
        corners: the numbers of its points.
        normals, offsets: f × 3 and f, the planes of its faces.
        members: f × k, which corners lie in which face.
        height: n, how far each point is beyond a face at most.
        home: n, the face that it is furthest beyond.
    """

    def __init__(self, x: np.ndarray, corners: list[int]) -> None:
        self.x, self.corners = x, corners
        self.inside = x[corners].mean(axis=0)
        self.normals, self.offsets = self._planes(np.array(list(combinations(corners, 3))))
        self.members = self._lie(self.normals, self.offsets)
        self.height, self.home = _highest(x, self.normals, self.offsets)

    def take(self, i: int) -> None:
        """Adds a point: the faces that it is beyond are replaced by faces from their rim to the point."""
        beyond = self.normals @ self.x[i] - self.offsets
        seen = beyond > _PLANE
        rims = self._rims(seen)
        self.corners = [*self.corners, i]
        members = np.column_stack([self.members, np.abs(beyond) <= _PLANE])[~seen]
        normals, offsets = self._planes(np.column_stack([rims, np.full(len(rims), i)]))
        corners_in_plane = self._lie(normals, offsets)
        new = np.max(normals @ self.x[self.corners].T - offsets[:, None], axis=1) <= _PLANE
        edge_on = members[members[:, -1]]  # faces whose plane the point is in: they get wider
        new &= ~(corners_in_plane[:, None] == edge_on).all(axis=2).any(axis=1)
        _, once = np.unique(corners_in_plane[new], axis=0, return_index=True)

        number = np.where(seen, -1, np.cumsum(~seen) - 1)  # of faces, once those that are seen are gone
        self.normals = np.concatenate([self.normals[~seen], normals[new][once]])
        self.offsets = np.concatenate([self.offsets[~seen], offsets[new][once]])
        self.members = np.concatenate([members, corners_in_plane[new][once]])
        self._settle(number, len(members))

    def _rims(self, seen: np.ndarray) -> np.ndarray:
        """m × 2: edges, by numbers of points, between faces that the point sees and others."""
        near = np.flatnonzero(self.members[seen].any(axis=0))
        ones, others = self.members[np.ix_(seen, near)], self.members[np.ix_(~seen, near)]
        shared = ones.astype(float) @ others.T.astype(float) >= 2.0
        shared_corners = [near[ones[f] & others[g]] for f, g in zip(*np.nonzero(shared), strict=True)]
        return np.array(self.corners)[[edge for corners in shared_corners for edge in combinations(corners, 2)]]

    def _planes(self, triples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normals and offsets of planes through three points each, those on a line left out."""
        a, b, c = (self.x[triples[:, k]] for k in range(3))
        normals = np.cross(b - a, c - a)
        area = np.linalg.norm(normals, axis=1)
        wide = area > _LINE * np.linalg.norm(b - a, axis=1) * np.linalg.norm(c - a, axis=1)
        normals, a = normals[wide] / area[wide, None], a[wide]
        normals *= np.where(np.sum(normals * (a - self.inside), axis=1) < 0.0, -1.0, 1.0)[:, None]
        return normals, np.sum(normals * a, axis=1)

    def _lie(self, normals: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        return np.abs(normals @ self.x[self.corners].T - offsets[:, None]) <= _PLANE

    def _settle(self, number: np.ndarray, kept: int) -> None:
        """Updates the heights of points over the present faces, of which the first `kept` are old ones."""
        self.home = number[self.home]
        if len(self.normals) > kept:
            height, home = _highest(self.x, self.normals[kept:], self.offsets[kept:])
            higher = height > self.height
            self.height[higher], self.home[higher] = height[higher], kept + home[higher]
        lost = self.home < 0
        self.height[lost], self.home[lost] = _highest(self.x[lost], self.normals, self.offsets)


def _highest(x: np.ndarray, normals: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far each point is beyond one of the faces at most, and which; in blocks that fit into a processor's cache."""
    height, home = np.empty(len(x)), np.empty(len(x), dtype=int)
    for start in range(0, len(x), _BLOCK):
        block = slice(start, start + _BLOCK)
        heights = x[block] @ normals.T
        heights -= offsets
        home[block] = heights.argmax(axis=1)  # of short rows, found sooner than their maximum
        height[block] = np.take_along_axis(heights, home[block, None], axis=1)[:, 0]
    return height, home
