"""Candidate contacts of a shape with features of the ground: faces, edges, grid points and walls.

All are in the frame of the field, in which the shape's centre is at p and its axes are turned by R. Normals point from
the ground to the shape. A normal must be in the cone of its feature: on a convex edge between the normals of its faces,
at a grid point such that all neighbours are lower along it. So seams between cells of a slope give no contact of their
own, and hollow edges none at all. A face is touched only where the foot of the shape's lowest point is on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.terrain.edges import along_edge
from coupler.contact.terrain.pool import Candidate, Found
from coupler.contact.terrain.solids import level_for, lowest_points, signed
from coupler.contact.terrain.surface import NEIGHBOURS, corner, slopes_at, to_field, within
from coupler.model.shapes import Sphere

__all__ = ["edge_contacts", "face_contacts", "far_contact", "grid_contact", "near", "sunk_contact", "wall_contacts"]

Array = Any  # an ndarray of floats, or of nodes

_SEAM = 1e-9  # of a cell: by how much faces are widened, so that none of two is missed
_DOWN = np.array([0.0, 0.0, -1.0])


def near(field: Any, shape: Any, R: Array, p: Array, i: Any, j: Any, radius: Any, bound: Any) -> list[Any]:
    """Whether what grid point (i, j) owns may be nearer to a shape than `bound`, m: all of it, and each of its edges.

    The shape's ball must come near to the box around it, and the shape to the ball around that; edges likewise.
    """
    points = [corner(field, i + a, j + b) for a, b in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))]
    least = most = points[0][2]
    for point in points[1:]:
        least, most = np.minimum(least, point[2]), np.maximum(most, point[2])
    _, _, dx, dy = field.grid
    half = np.stack([0.5 * dx, 0.5 * dy, 0.5 * (most - least)])
    middle = np.stack([points[0][0], points[0][1], least]) + half
    beyond = np.maximum(np.abs(p - middle) - half, 0.0)
    meets = beyond @ beyond < (radius + bound) * (radius + bound)
    if isinstance(shape, Sphere):
        return 4 * [meets]
    found = [meets & _close(shape, R, p, middle, half, bound)]
    for end in points[1:]:
        half = 0.5 * (end - points[0])
        found.append(found[0] & _close(shape, R, p, points[0] + half, half, bound))
    return found


def _close(shape: Any, R: Array, p: Array, middle: Array, half: Array, bound: Any) -> Any:
    distance, _ = signed(shape, R.T @ (middle - p))
    return distance < bound + np.sqrt(half @ half)


def face_contacts(field: Any, shape: Any, R: Array, p: Array, i: Any, j: Any) -> list[Candidate]:
    """The lowest points of a shape with curved sides against the two triangles that grid point (i, j) owns."""
    _, _, dx, dy = field.grid
    here, x, y, far = (corner(field, i + a, j + b) for a, b in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)))
    exists, found = within(field, i, j) & within(field, i + 1.0, j + 1.0), []
    for below in (True, False):  # the diagonal
        rise_x, rise_y = (x[2] - here[2], far[2] - x[2]) if below else (far[2] - y[2], y[2] - here[2])
        n = _upwards(rise_x / dx, rise_y / dy)
        faces = exists & (n @ (p - here) >= 0.0)  # behind a ridge, a shape is below the planes of its far side
        for point in lowest_points(shape, np.stack(list(R.T @ n))):
            place = p + R @ point
            gap = n @ (place - here)
            foot = place - gap * n
            u, v = (foot[0] - here[0]) / dx, (foot[1] - here[1]) / dy
            less, more = (v, u) if below else (u, v)
            inside = (less >= -_SEAM) & (more >= less - _SEAM) & (more <= 1.0 + _SEAM)
            found.append((faces & inside, gap, np.stack(list(place - 0.5 * gap * n)), n))
    return found


def edge_contacts(
    field: Any, shape: Any, R: Array, p: Array, i: Any, j: Any, edge: Sequence[Sequence[Any]]
) -> list[Candidate]:
    """A shape against a convex edge that grid point (i, j) owns; see `EDGES`."""
    level, tolerance = level_for(shape)
    start, end = corner(field, i, j), corner(field, i + edge[0][0], j + edge[0][1])
    exists = within(field, i, j) & within(field, i + edge[0][0], j + edge[0][1])
    along = end - start
    unit = along / np.sqrt(along @ along)
    into = [_into(field, start, i + a, j + b, unit) for a, b in edge[1:]]
    found = []
    for there, gap, point, outward in along_edge(shape, np.stack(list(R.T @ (start - p))), R.T @ along, level):
        n = -np.stack(list(R @ outward))
        in_cone = (into[0] @ n <= tolerance) & (into[1] @ n <= tolerance)
        found.append((exists & there & in_cone, gap, np.stack(list(p + R @ point + 0.5 * gap * n)), n))
    return found


def grid_contact(field: Any, shape: Any, R: Array, p: Array, i: Any, j: Any) -> Candidate:
    """A shape against grid point (i, j), at which some edge is convex."""
    _, tolerance = level_for(shape)
    here = corner(field, i, j)
    gap, outward = signed(shape, R.T @ (here - p))
    n = -np.stack(list(R @ outward))
    exists = within(field, i, j)
    for a, b in NEIGHBOURS:
        away = np.where(within(field, i + a, j + b), corner(field, i + a, j + b) - here, _DOWN)
        exists = exists & (away @ n <= tolerance * np.sqrt(away @ away))
    return exists, gap, np.stack(list(here + 0.5 * gap * n)), n


def wall_contacts(field: Any, shape: Any, R: Array, p: Array, outward: Array) -> list[Candidate]:
    """The points of a shape with curved sides that are furthest against a wall's normal, ±x or ±y, on that wall."""
    n, m, dx, dy = field.grid
    half = np.stack([0.5 * (n - 1.0) * dx, 0.5 * (m - 1.0) * dy])
    found = []
    for point in lowest_points(shape, np.stack(list(R.T @ outward))):
        place = p + R @ point
        gap = outward @ place - np.abs(outward[:2]) @ half
        foot = place - gap * outward
        height, _, _ = slopes_at(field, foot[0], foot[1])
        on = (np.abs(foot[0]) <= half[0] * (1.0 + _SEAM)) & (np.abs(foot[1]) <= half[1] * (1.0 + _SEAM))
        outside = gap >= outward @ (R @ point)  # is the centre
        found.append((on & outside & (foot[2] <= height), gap, np.stack(list(place - 0.5 * gap * outward)), outward))
    return found


def sunk_contact(field: Any, shape: Any, R: Array, p: Array) -> Candidate:
    """The way out of a shape with curved sides whose centre is below the surface: through that, or the nearest wall."""
    distance, out = to_field(p, field)
    reach = R @ lowest_points(shape, np.stack(list(R.T @ out)))[0]
    gap = distance + out @ reach
    return distance < 0.0, gap, np.stack(list(p + reach - 0.5 * gap * out)), out


def far_contact(field: Any, shape: Any, R: Array, p: Array, bound: Any) -> Found:
    """What is told of a shape with curved sides that nothing is near to: where its centre would come down.

    Its gap is not less than `bound`, m, within which nothing is.
    """
    _, gap, point, normal = sunk_contact(field, shape, R, p)
    return np.maximum(gap, bound), point, normal


def _upwards(slope_x: Any, slope_y: Any) -> Array:
    steep = np.sqrt(1.0 + slope_x * slope_x + slope_y * slope_y)
    return np.stack([-slope_x / steep, -slope_y / steep, 1.0 / steep])


def _into(field: Any, start: Array, i: Any, j: Any, along: Array) -> Array:
    """The unit vector into the face beside an edge, across it, given the face's third corner; into a wall: down."""
    away = np.where(within(field, i, j), corner(field, i, j) - start, _DOWN)
    away = away - (away @ along) * along
    return away / np.sqrt(away @ away)
