"""The convex hull of points as a polyhedron: its corners and the planes of its faces.

It grows from a tetrahedron. The point that is furthest beyond a face is taken in next: so the hull of the first few
corners is already near to that of all points, and stopping early is a way to simplify it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from coupler.contact.collision.distance_convex import convex_distance

_DETAIL = 1e-6  # of the size: points that are nearer to the hull count as on it, as files with 7 digits want it
_PLANE = 1e-10  # of the size: what is nearer to a plane lies in it
_ALIKE = 1e-9  # distances that differ by this part count as the same
_LINE = 1e-8  # the sine between two sides of a triangle below which it has no plane


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """A convex polyhedron.

    Attributes:
        corners: k × 3.
        normals: f × 3, unit vectors outwards, one for each face.
        offsets: f, along them, of the faces from the origin.
    """

    corners: np.ndarray
    normals: np.ndarray
    offsets: np.ndarray

    def distance(self, points: np.ndarray) -> float:
        """How far points are outside of it, at the most; 0 for what rounding explains."""
        heights = points @ self.normals.T - self.offsets
        face, height = heights.argmax(axis=1), heights.max(axis=1)
        out = height > _PLANE * float(np.ptp(self.corners, axis=0).max())
        points, least = points[out], height[out]
        if not len(points):
            return 0.0
        feet = points - least[:, None] * self.normals[face[out]]
        most = np.linalg.norm(points - self._drawn_in(feet), axis=1)
        largest = float(least.max())  # over a face the distance is the height; over an edge or a corner it is more
        for i in np.argsort(-most):
            if most[i] <= largest * (1.0 + _ALIKE):
                break
            largest = max(largest, self._distance(points[i]))
        return largest

    def _drawn_in(self, points: np.ndarray) -> np.ndarray:
        """Points of it, on the way from its middle to given ones."""
        middle = self.corners.mean(axis=0)
        across, room = (points - middle) @ self.normals.T, self.offsets - self.normals @ middle
        return middle + (points - middle) * np.min(room / np.maximum(across, room), axis=1)[:, None]

    def _distance(self, point: np.ndarray) -> float:
        return convex_distance(lambda d: point, lambda d: self.corners[np.argmax(self.corners @ d)]).gap


def polyhedron(points: np.ndarray, most: int | None = None) -> Polyhedron | None:
    """The convex hull of points, or a polyhedron within it; None if they span no volume.

    Args:
        points: n × 3. Those outside the hull of others by less than 1e-6 of its size may be left out.
        most: how many corners to take; all, if None.
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
    """Four points, each as far as can be from point, line and plane of those before; None if they are flat."""
    first = _furthest(x, np.linalg.norm(x, axis=1))
    away = x - x[first]
    second = _furthest(x, np.linalg.norm(away, axis=1))
    third = _furthest(x, np.linalg.norm(np.cross(away, away[second]), axis=1))
    across = np.cross(away[second], away[third])
    height = np.abs(away @ across)
    return [first, second, third, _furthest(x, height)] if height.max() > _DETAIL * np.linalg.norm(across) else None


def _furthest(x: np.ndarray, height: np.ndarray) -> int:
    """The point of the largest height. Of points that are level, as those of an edge are, the outermost is a corner."""
    highest = height.max()
    level = np.flatnonzero(height >= max(highest - _DETAIL, 0.5 * highest))
    return int(level[np.argmax(np.sum(x[level] ** 2, axis=1))])


class _Growth:
    """A hull that takes in points, one by one.

    Attributes:
        corners: numbers of points.
        normals, offsets: f × 3 and f, of its faces.
        members: f × k, which corners lie in which face.
        height: n, how far each point is beyond a face, at the most.
        home: n, the face that it is furthest beyond.
    """

    def __init__(self, x: np.ndarray, corners: list[int]) -> None:
        self.x, self.corners = x, corners
        self.inside = x[corners].mean(axis=0)
        self.normals, self.offsets = self._planes(np.array(list(combinations(corners, 3))))
        self.members = self._lie(self.normals, self.offsets)
        self.height, self.home = _highest(x, self.normals, self.offsets)

    def take(self, i: int) -> None:
        """Faces that a point is beyond make place for faces from their rim to it."""
        beyond = self.normals @ self.x[i] - self.offsets
        seen = beyond > _PLANE
        rims = self._rims(seen)
        self.corners = [*self.corners, i]
        members = np.column_stack([self.members, np.abs(beyond) <= _PLANE])[~seen]
        normals, offsets = self._planes(np.column_stack([rims, np.full(len(rims), i)]))
        own = self._lie(normals, offsets)
        new = np.max(normals @ self.x[self.corners].T - offsets[:, None], axis=1) <= _PLANE
        edge_on = members[members[:, -1]]  # faces whose plane the point is in: they get wider
        new &= ~(own[:, None] == edge_on).all(axis=2).any(axis=1)
        _, once = np.unique(own[new], axis=0, return_index=True)

        number = np.where(seen, -1, np.cumsum(~seen) - 1)  # of faces, once those that are seen are gone
        self.normals = np.concatenate([self.normals[~seen], normals[new][once]])
        self.offsets = np.concatenate([self.offsets[~seen], offsets[new][once]])
        self.members = np.concatenate([members, own[new][once]])
        self._settle(number, len(members))

    def _rims(self, seen: np.ndarray) -> np.ndarray:
        """m × 2: edges, by numbers of points, between faces that are seen and others."""
        near = np.flatnonzero(self.members[seen].any(axis=0))
        ones, others = self.members[np.ix_(seen, near)], self.members[np.ix_(~seen, near)]
        shared = ones.astype(float) @ others.T.astype(float) >= 2.0
        shared_corners = [near[ones[f] & others[g]] for f, g in zip(*np.nonzero(shared), strict=True)]
        return np.array(self.corners)[[pair for own in shared_corners for pair in combinations(own, 2)]]

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
        """Heights over the faces that there are now; the first of them, so many, are kept ones."""
        self.home = number[self.home]
        if len(self.normals) > kept:
            height, home = _highest(self.x, self.normals[kept:], self.offsets[kept:])
            higher = height > self.height
            self.height[higher], self.home[higher] = height[higher], kept + home[higher]
        lost = self.home < 0
        self.height[lost], self.home[lost] = _highest(self.x[lost], self.normals, self.offsets)


def _highest(x: np.ndarray, normals: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    heights = x @ normals.T - offsets
    return heights.max(axis=1), heights.argmax(axis=1)
