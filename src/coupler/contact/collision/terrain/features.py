"""Candidate contacts of a shape with features of the ground: faces, edges, grid points and walls.

Everything is in the frame of the field, in which the shape's centre is at p and its axes are rotated by R. Normals
point from the ground to the shape. A normal must lie in the cone of its feature: for a convex edge between the normals
of its faces, at a grid point such that all neighbours are lower along it. So seams between coplanar cells have no
contacts of their own, and concave edges have none at all. A face is touched only if the foot of the shape's lowest
point is on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.collision.forms import ContactPlace
from coupler.contact.collision.terrain.edges import along_edge
from coupler.contact.collision.terrain.pool import Candidate
from coupler.contact.collision.terrain.solids import level_for, lowest_points, signed
from coupler.contact.collision.terrain.surface import NEIGHBOURS, corner, slopes_at, to_field, triangle_at, within
from coupler.model.shapes import Cylinder, Sphere

Array = Any  # an ndarray of floats, or of nodes

_SEAM = 1e-9  # of a cell: by how much faces are widened, so that a place on a seam is on at least one
_INWARDS = 1e-5  # m: deeper than a touching corner
_BEYOND = 4.0  # times a gap: how far beyond a concave edge the foot of a corner may be; enough for bends above 0.25
_SUNK = 1e-3  # of a cell: a corner deeper below the plane of a face is not in front of it
_DOWN = np.array([0.0, 0.0, -1.0])


@dataclass(frozen=True, eq=False)
class _Triangle:
    """One of the two triangles of a cell.

    Attributes:
        exists: whether it is in the field.
        below: whether it is the one below the diagonal, seen from above.
        origin: 3, the grid point that owns the cell.
        middle: 3, its centroid.
        normal: 3, upwards.
        cell: the cell's lengths along x and y, m.
    """

    exists: Any
    below: bool
    origin: Array
    middle: Array
    normal: Array
    cell: tuple[Any, Any]

    def foot(self, place: Array) -> tuple[Any, Array]:
        """The height of a place above the triangle's plane, m, and its projection onto the plane."""
        gap = self.normal @ (place - self.origin)
        return gap, place - gap * self.normal

    def has(self, foot: Array, slack: Any) -> Any:
        """Whether a point of its plane is on the triangle, or beyond its edges by at most `slack` of a cell."""
        u, v = (foot[0] - self.origin[0]) / self.cell[0], (foot[1] - self.origin[1]) / self.cell[1]
        less, more = (v, u) if self.below else (u, v)
        return (less >= -slack) & (more >= less - slack) & (more <= 1.0 + slack)


@dataclass(frozen=True, eq=False)
class _Below:
    """The ground straight below a sharp end of a shape, such as a corner.

    Next to such an end, a face may rise from the ground below it. The foot of the end on that face lies beyond the
    concave edge where face and ground meet; the higher the end is, the further beyond. The plane of the face is inside
    the ground there, so the contact counts. The same holds for an end that is as deep in the ground as its foot is
    beyond the edge of the face.

    Attributes:
        place: 3, the place of the end.
        up: 3, the normal of the triangle below it.
        depth: how deep the end is below the plane of that triangle, m.
    """

    place: Array
    up: Array
    depth: Any

    @classmethod
    def of(cls, field: Any, place: Array, over: Array) -> _Below:
        """The ground below a place, looked up at a place `over` next to it: see `corner_place`."""
        height, slope_x, slope_y = slopes_at(field, over[0], over[1])
        up = _upwards(slope_x, slope_y)
        return cls(place, up, up @ (over - place) + up[2] * (height - over[2]))

    def hollow(self, triangle: _Triangle) -> Any:
        """Whether a triangle rises above the plane of the one below the end."""
        return self.up @ (triangle.middle - self.place) + self.depth > _SEAM * triangle.cell[0]

    def beyond(self, triangle: _Triangle, gap: Any) -> Any:
        """How far beyond the edges of a triangle the foot of the end may be, as a fraction of a cell."""
        ahead = np.where(self.hollow(triangle), np.maximum(gap, 0.0), 0.0)
        least = np.minimum(*triangle.cell)
        return _BEYOND * ahead / least + np.clip(2.0 * self.depth / least, 0.0, _SUNK)


def _triangles(field: Any, i: Any, j: Any) -> Iterator[_Triangle]:
    """The two triangles that grid point (i, j) owns."""
    _, _, dx, dy = field.grid
    grid_point, x, y, far = (corner(field, i + a, j + b) for a, b in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)))
    exists = within(field, i, j) & within(field, i + 1.0, j + 1.0)
    for below in (True, False):
        rise_x, rise_y = (x[2] - grid_point[2], far[2] - x[2]) if below else (far[2] - y[2], y[2] - grid_point[2])
        middle = (grid_point + far + (x if below else y)) / 3.0
        yield _Triangle(exists, below, grid_point, middle, _upwards(rise_x / dx, rise_y / dy), (dx, dy))


def near(field: Any, shape: Any, R: Array, p: Array, i: Any, j: Any, radius: Any, bound: Any) -> list[Any]:
    """Whether what grid point (i, j) owns may be nearer to a shape than `bound`, m: all of it, and each edge.

    The shape's ball must come near to the bounding box of the cell, and the shape to the ball around that box; likewise
    for edges.
    """
    points = [corner(field, i + a, j + b) for a, b in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))]
    lowest = highest = points[0][2]
    for point in points[1:]:
        lowest, highest = np.minimum(lowest, point[2]), np.maximum(highest, point[2])
    _, _, dx, dy = field.grid
    half = np.stack([0.5 * dx, 0.5 * dy, 0.5 * (highest - lowest)])
    middle = np.stack([points[0][0], points[0][1], lowest]) + half
    beyond = np.maximum(np.abs(p - middle) - half, 0.0)
    overlaps = beyond @ beyond < (radius + bound) * (radius + bound)
    if isinstance(shape, Sphere):
        return 4 * [overlaps]
    close = [overlaps & _close(shape, R, p, middle, half, bound)]
    for end in points[1:]:
        half = 0.5 * (end - points[0])
        close.append(close[0] & _close(shape, R, p, points[0] + half, half, bound))
    return close


def _close(shape: Any, R: Array, p: Array, middle: Array, half: Array, bound: Any) -> Any:
    distance, _ = signed(shape, R.T @ (middle - p))
    return distance < bound + np.sqrt(half @ half)


def face_contacts(field: Any, shape: Any, R: Array, p: Array, i: Any, j: Any) -> list[Candidate]:
    """Contacts of the lowest points of a shape with curved sides with the two triangles that grid point (i, j) owns."""
    contacts = []
    for triangle in _triangles(field, i, j):
        n = triangle.normal
        faces = triangle.exists & (n @ (p - triangle.origin) >= 0.0)  # not behind a ridge
        for point in lowest_points(shape, np.stack(list(R.T @ n))):
            place = p + R @ point
            gap, foot = triangle.foot(place)
            beyond = _Below.of(field, place, place).beyond(triangle, gap) if isinstance(shape, Cylinder) else 0.0
            contacts.append((faces & triangle.has(foot, _SEAM + beyond), gap, np.stack(list(place - 0.5 * gap * n)), n))
    return contacts


def corner_place(R: Array, p: Array, point: Array) -> tuple[Array, Array]:
    """The place of a shape's corner, and a place next to it inside the shape.

    The ground below the corner is looked up below that second place: so a corner that has just touched a rising face,
    and is slightly inside it, is still above the ground that it came from.
    """
    inwards = np.stack(list(R @ (point / -np.sqrt(point @ point))))
    place = np.stack(list(p + R @ point))
    return place, place + _INWARDS * inwards


def corner_contacts(field: Any, R: Array, p: Array, point: Array, i: Any, j: Any) -> list[Candidate]:
    """Contacts of a corner with the two triangles that grid point (i, j) owns, unless it is straight above them.

    These are rising faces that it may run into.
    """
    _, _, dx, _ = field.grid
    place, over = corner_place(R, p, point)
    (column, row), below = triangle_at(field, over[0], over[1])
    ground, contacts = _Below.of(field, place, over), []
    for triangle in _triangles(field, i, j):
        n, same = triangle.normal, below if triangle.below else np.logical_not(below)
        straight_above = (column == i) & (row == j) & same
        gap, foot = triangle.foot(place)
        ahead = (gap > -_SUNK * dx) & (ground.hollow(triangle) | (gap > _SEAM * dx))
        on = triangle.has(foot, _SEAM + ground.beyond(triangle, gap))
        exists = triangle.exists & on & np.logical_not(straight_above) & ahead
        contacts.append((exists, gap, np.stack(list(place - 0.5 * gap * n)), n))
    return contacts


def edge_contacts(
    field: Any, shape: Any, R: Array, p: Array, i: Any, j: Any, edge: Sequence[Sequence[Any]]
) -> list[Candidate]:
    """Contacts of a shape with a convex edge that grid point (i, j) owns; see `EDGES`."""
    level, tolerance = level_for(shape)
    start, end = corner(field, i, j), corner(field, i + edge[0][0], j + edge[0][1])
    exists = within(field, i, j) & within(field, i + edge[0][0], j + edge[0][1])
    along = end - start
    unit = along / np.sqrt(along @ along)
    into = [_into(field, start, i + a, j + b, unit) for a, b in edge[1:]]
    contacts = []
    for there, gap, point, outward in along_edge(shape, np.stack(list(R.T @ (start - p))), R.T @ along, level):
        n = -np.stack(list(R @ outward))
        in_cone = (into[0] @ n <= tolerance) & (into[1] @ n <= tolerance)
        contacts.append((exists & there & in_cone, gap, np.stack(list(p + R @ point + 0.5 * gap * n)), n))
    return contacts


def grid_contact(field: Any, shape: Any, R: Array, p: Array, i: Any, j: Any) -> Candidate:
    """The contact of a shape with grid point (i, j), at which some edge is convex."""
    _, tolerance = level_for(shape)
    grid_point = corner(field, i, j)
    gap, outward = signed(shape, R.T @ (grid_point - p))
    n = -np.stack(list(R @ outward))
    exists = within(field, i, j)
    for a, b in NEIGHBOURS:
        away = np.where(within(field, i + a, j + b), corner(field, i + a, j + b) - grid_point, _DOWN)
        exists = exists & (away @ n <= tolerance * np.sqrt(away @ away))
    return exists, gap, np.stack(list(grid_point + 0.5 * gap * n)), n


def wall_contacts(field: Any, shape: Any, R: Array, p: Array, outward: Array) -> list[Candidate]:
    """Contacts of a shape with curved sides with the wall of this outward normal, ±x or ±y, at its outermost points.

    What reaches over the rim may be far behind the wall and just below the surface, from where the way out is upwards.
    """
    n, m, dx, dy = field.grid
    half = np.stack([0.5 * (n - 1.0) * dx, 0.5 * (m - 1.0) * dy])
    contacts = []
    for point in lowest_points(shape, np.stack(list(R.T @ outward))):
        place = p + R @ point
        gap = outward @ place - np.abs(outward[:2]) @ half
        foot = place - gap * outward
        height, _, _ = slopes_at(field, foot[0], foot[1])
        on = (np.abs(foot[0]) <= half[0] * (1.0 + _SEAM)) & (np.abs(foot[1]) <= half[1] * (1.0 + _SEAM))
        outside = gap >= outward @ (R @ point)  # is the centre
        if not isinstance(shape, Sphere):
            top, slope_x, slope_y = slopes_at(field, place[0], place[1])
            upwards = _upwards(slope_x, slope_y)[2] * (place[2] - top)
            outside = outside & (gap >= np.minimum(upwards, 0.0))
        contacts.append((on & outside & (foot[2] <= height), gap, np.stack(list(place - 0.5 * gap * outward)), outward))
    return contacts


def sunk_contact(field: Any, shape: Any, R: Array, p: Array) -> Candidate:
    """The way out for a shape with curved sides whose centre is below the surface: through it, or the nearest wall."""
    distance, out = to_field(p, field)
    reach = R @ lowest_points(shape, np.stack(list(R.T @ out)))[0]
    gap = distance + out @ reach
    return distance < 0.0, gap, np.stack(list(p + reach - 0.5 * gap * out)), out


def far_contact(field: Any, shape: Any, R: Array, p: Array, bound: Any) -> ContactPlace:
    """The contact of a shape with curved sides that nothing is near to: where its centre would come down.

    Its gap is at least `bound`, m, within which there is nothing.
    """
    _, gap, point, normal = sunk_contact(field, shape, R, p)
    return np.maximum(gap, bound), point, normal


def _upwards(slope_x: Any, slope_y: Any) -> Array:
    steep = np.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
    return np.stack([-slope_x / steep, -slope_y / steep, 1.0 / steep])


def _into(field: Any, start: Array, i: Any, j: Any, along: Array) -> Array:
    """The unit vector across an edge into the face beside it, given the face's third corner; down for a wall."""
    away = np.where(within(field, i, j), corner(field, i, j) - start, _DOWN)
    away = away - (away @ along) * along
    return away / np.sqrt(away @ away)
