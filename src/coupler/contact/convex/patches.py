"""Flat sides of convex cores, and what two of them share: more places of contact than the one nearest.

A patch is a convex polygon of a core's surface, with an outward normal. A box has six, a hull its faces, a cylinder two
caps (as hexagons) and, as a capsule, the line of its side that looks along a direction, as a very narrow rectangle.
Balls and ellipsoids have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coupler.contact.convex.cores import centre
from coupler.contact.distance_point import unit
from coupler.contact.faces import Faces
from coupler.contact.forms import Hull
from coupler.contact.tangents import tangents
from coupler.model.shapes import Box, Capsule, Cylinder, Geometry
from coupler.spatial import cross

__all__ = ["Patch", "faces_of", "facing", "has_patches", "more_facing", "shared_corners", "sides"]

Array = Any  # an ndarray of floats, or of nodes

_CAP = 6  # corners of a cylinder's cap
_HULL = 8  # corners of a hull's face, at most: of more, those furthest in as many directions
_NARROW = 1e-9  # the width of a line, in lengths of it
_CAP_ON = 0.7  # the cosine to the axis from which on a cylinder touches with its cap
_EDGE_ON = 0.1  # the cosine between a patch's normal and the contact's below which the patch is not looked at
_NEAR = 1e-10  # by which windows are widened, in radii of the smaller shape
_AXES = np.array([[0.83, 0.52, 0.21], [-0.31, 0.71, 0.63]])  # askew, so that no side of a box is across them
_FAR = 1e30
_X = np.array([1.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False)
class Patch:
    """A flat side.

    Attributes:
        points: k × 3, anticlockwise as seen from outside.
        normal: 3, outwards.
    """

    points: Array
    normal: Array

    def seen_from(self, R: Array, p: Array) -> Patch:
        """The same in another frame, in which it is turned by R and moved by p."""
        return Patch(np.stack([p + R @ point for point in self.points]), R @ self.normal)


def has_patches(geometry: Geometry) -> bool:
    return isinstance(geometry, Box | Cylinder | Capsule | Hull)


def sides(geometry: Geometry) -> int:
    """How many corners its patches have."""
    return (
        faces_of(geometry)[1].shape[1] if isinstance(geometry, Hull) else _CAP if isinstance(geometry, Cylinder) else 4
    )


def facing(geometry: Any, d: Array) -> Patch:
    """The patch that looks along a unit vector d most, about the centre; no hull's."""
    match geometry:
        case Box():
            return _of_box(0.5 * geometry.size, d)
        case Cylinder():
            side, cap = _line(0.5 * geometry.length, geometry.radius, d), _cap(geometry, d)
            on = np.abs(d[2]) > _CAP_ON
            points = np.concatenate([side.points, side.points[-1:], side.points[-1:]])
            return Patch(np.where(on, cap.points, points), np.where(on, cap.normal, side.normal))
        case Capsule():
            return _line(0.5 * geometry.length, 0.0, d)
    raise TypeError(f"{geometry!r} has no patches of a closed form")


def _of_box(half: Array, d: Array) -> Patch:
    size = np.abs(d)
    x = (size[0] >= size[1]) & (size[0] >= size[2])
    y = size[1] >= size[2]
    axis = [np.where(x, 1.0, 0.0), np.where(x, 0.0, np.where(y, 1.0, 0.0)), np.where(x, 0.0, np.where(y, 0.0, 1.0))]
    axes = [np.stack([axis[(i - k) % 3] for i in range(3)]) for k in range(3)]
    sign = np.copysign(1.0, axes[0] @ d)
    normal, u, v = sign * axes[0], axes[1] * half, sign * axes[2] * half
    middle = normal * half
    return Patch(np.stack([middle + u + v, middle - u + v, middle - u - v, middle + u - v]), normal)


def _cap(cylinder: Any, d: Array) -> Patch:
    sign = np.copysign(1.0, d[2])
    turns = 2.0 * np.pi / _CAP * np.arange(_CAP)
    z = sign * (0.5 * cylinder.length)
    corners = [
        np.stack([cylinder.radius * c, sign * (cylinder.radius * s), z])
        for c, s in zip(np.cos(turns), np.sin(turns), strict=True)
    ]
    return Patch(np.stack(corners), np.stack([0.0 * sign, 0.0 * sign, sign]))


def _line(half: Any, out: Any, d: Array) -> Patch:
    """A line along z that is so far out from the axis, in the direction of d."""
    _, normal = unit(np.stack([d[0], d[1], 0.0 * d[2]]), _X)
    along = np.stack([0.0 * normal[0], 0.0 * normal[0], half + 0.0 * normal[0]])
    across = _NARROW * half * np.stack([-normal[1], normal[0], 0.0 * normal[2]])
    middle = out * normal
    points = [middle + across + along, middle - across + along, middle - across - along, middle + across - along]
    return Patch(np.stack(points), normal)


@lru_cache(maxsize=1024)
def faces_of(hull: Hull) -> tuple[np.ndarray, np.ndarray]:
    """f × 3 normals, and f × k × 3 corners about the centre, the last ones again; none, if it is too flat to tell."""
    faces = Faces.of(hull.vertices - centre(hull))
    polygons = [_with_at_most(_HULL, polygon, n) for polygon, n in zip(faces.polygons, faces.normals, strict=True)]
    most = max((len(polygon) for polygon in polygons), default=3)
    padded = [np.concatenate([polygon, np.repeat(polygon[-1:], most - len(polygon), axis=0)]) for polygon in polygons]
    return faces.normals, np.array(padded).reshape(-1, most, 3)


def _with_at_most(most: int, polygon: np.ndarray, normal: np.ndarray) -> np.ndarray:
    if len(polygon) <= most:
        return polygon
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    turns = 2.0 * np.pi / most * np.arange(most)
    directions = np.outer(np.cos(turns), u) + np.outer(np.sin(turns), np.cross(normal, u))
    return polygon[sorted({int(i) for i in np.argmax(polygon @ directions.T, axis=0)})]


def more_facing(best: Any, patch: Patch, d: Array, normal: Array, points: Array) -> tuple[Any, Patch]:
    """The one of a patch and a face that looks along d more, and by how much. Of equals the first."""
    along = normal @ d
    better = along > best
    chosen = Patch(np.where(better, points, patch.points), np.where(better, normal, patch.normal))
    return np.where(better, along, best), chosen


def shared_corners(one: Patch, other: Patch, n: Array, R: Array, radius: Any) -> list[tuple[Any, Any, Array]]:
    """Corners of what two patches share, as seen along a contact's normal: those furthest in four directions.

    The directions turn with the two shapes, so that the order of the corners lasts.

    Args:
        one, other: patches of two shapes in the frame of the second, the first one against n and the second along it.
        n: 3, the unit normal, from the second shape to the first.
        R: 3 × 3, turns directions from the first shape's frame to the second's.
        radius: of the smaller of the two shapes, m.

    Returns:
        Four times whether there is such a corner, its gap, and the point halfway between the two patches.
    """
    along_one, along_other = one.normal @ n, other.normal @ n
    seen = (along_one < -_EDGE_ON) & (along_other > _EDGE_ON)
    x, y, sign = _axes(n, R)
    flat = [[np.stack([point @ x, point @ y]) for point in patch.points] for patch in (one, other)]
    flat[0].reverse()  # it is seen from behind
    near = _NEAR * radius
    cuts = [*_cuts(flat[0], flat[1], near), *_cuts(flat[1], flat[0], near)]
    heights = [
        (patch.normal / np.where(seen, along, 1.0), (patch.normal @ patch.points[0]) / np.where(seen, along, 1.0))
        for patch, along in ((one, along_one), (other, along_other))
    ]
    found = []
    for u, v in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)):
        most, corner = -_FAR, np.zeros(2)
        for exists, place in cuts:
            along = u * place[0] + v * sign * place[1]
            better = exists & (along > most)
            most, corner = np.where(better, along, most), np.where(better, place, corner)
        place = corner[0] * x + corner[1] * y
        above, below = (offset - slope @ place for slope, offset in heights)
        found.append((seen & (most > -_FAR), above - below, place + 0.5 * (above + below) * n))
    return found


def _axes(n: Array, R: Array) -> tuple[Array, Array, Any]:
    """Two unit vectors across n, and the sign with which the second does not mind which shape is the first."""
    one, other = (axis + R @ axis for axis in _AXES)
    _, x = unit(np.stack(list(one - (one @ n) * n)), tangents(n)[0])
    y = np.stack(list(cross(n, x)))
    return x, y, np.copysign(1.0, y @ other)


def _cuts(polygon: list[Array], window: list[Array], near: Any) -> list[tuple[Any, Array]]:
    """The ends of what a window leaves of each side of a polygon, and whether it leaves anything.

    Both are convex and anticlockwise. The window is widened a little, so that sides that coincide stay.
    """
    inside = []
    for start, end in zip(window, window[1:] + window[:1], strict=True):
        x, y = end - start
        wider = near * np.sqrt(x * x + y * y)
        inside.append([x * (p[1] - start[1]) - y * (p[0] - start[0]) + wider for p in polygon])
    found = []
    for i, p in enumerate(polygon):
        k = (i + 1) % len(polygon)
        low, high = 0.0, 1.0
        for heights in inside:
            a, b = heights[i], heights[k]
            enters, leaves, outside = (a < 0.0) & (b >= 0.0), (a >= 0.0) & (b < 0.0), (a < 0.0) & (b < 0.0)
            t = a / np.where(enters | leaves, a - b, 1.0)
            low = np.where(enters, np.maximum(low, t), low)
            high = np.where(leaves, np.minimum(high, t), np.where(outside, -1.0, high))
        side = polygon[k] - p
        found += [(low <= high, p + low * side), (low <= high, p + high * side)]
    return found
