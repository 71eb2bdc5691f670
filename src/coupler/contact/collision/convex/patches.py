"""Flat sides of convex cores, and the overlap of two of them, which gives more contacts than the nearest place.

A patch is a convex polygon of a core's surface, with an outward normal. A box has six patches, a hull its faces, a
cylinder two caps (as hexagons); a cylinder and a capsule also have the line of their side that faces a direction, as a
very narrow rectangle. Balls and ellipsoids have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coupler.contact.collision.convex.cores import centre
from coupler.contact.collision.distance_point import unit
from coupler.contact.collision.faces import Faces
from coupler.contact.collision.tangents import tangents
from coupler.model.shapes import Box, Capsule, Cylinder, Geometry, Hull
from coupler.spatial import cross

Array = Any  # an ndarray of floats, or of nodes

_CAP = 6  # corners of a cylinder's cap
_HULL = 8  # corners of a hull's face, at most: of more, the outermost in as many directions are kept
_NARROW = 1e-9  # the width of a line relative to its length
_CAP_ON = 0.7  # the cosine to the axis above which a cylinder touches with its cap
_EDGE_ON = 0.1  # the cosine between a patch's normal and the contact's below which the patch is ignored
NEAR = 1e-10  # by how much windows are widened, in radii of the smaller shape
_AXES = np.array([[0.83, 0.52, 0.21], [-0.31, 0.71, 0.63]])  # askew, so that no side of a box is perpendicular to them
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
        """This patch in another frame, in which it is rotated by R and moved by p."""
        return Patch(np.stack([p + R @ point for point in self.points]), R @ self.normal)


def has_patches(geometry: Geometry) -> bool:
    """Whether a shape has flat sides."""
    return isinstance(geometry, Box | Cylinder | Capsule | Hull)


def corners(geometry: Geometry) -> int:
    """The number of corners of a shape's patches; 3 if it has none."""
    if isinstance(geometry, Hull):
        return faces_of(geometry)[1].shape[1]
    return 3 if not has_patches(geometry) else _CAP if isinstance(geometry, Cylinder) else 4


def facing(geometry: Any, d: Array) -> Patch:
    """The patch that faces a unit vector d most, about the centre; not for hulls."""
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
    """A line along z at a distance `out` from the axis, in the direction of d."""
    _, normal = unit(np.stack([d[0], d[1], 0.0 * d[2]]), _X)
    along = np.stack([0.0 * normal[0], 0.0 * normal[0], half + 0.0 * normal[0]])
    across = _NARROW * half * np.stack([-normal[1], normal[0], 0.0 * normal[2]])
    middle = out * normal
    points = [middle + across + along, middle - across + along, middle - across - along, middle + across - along]
    return Patch(np.stack(points), normal)


@lru_cache(maxsize=1024)
def faces_of(hull: Hull) -> tuple[np.ndarray, np.ndarray]:
    """f × 3 normals, and f × k × 3 corners about the centre, padded with the last one; none if the hull is too flat."""
    faces = Faces.of(hull.vertices - centre(hull))
    polygons = [_with_at_most(_HULL, polygon, n) for polygon, n in zip(faces.polygons, faces.normals, strict=True)]
    longest = max((len(polygon) for polygon in polygons), default=3)
    padded = [
        np.concatenate([polygon, np.repeat(polygon[-1:], longest - len(polygon), axis=0)]) for polygon in polygons
    ]
    return faces.normals, np.array(padded).reshape(-1, longest, 3)


def _with_at_most(count: int, polygon: np.ndarray, normal: np.ndarray) -> np.ndarray:
    if len(polygon) <= count:
        return polygon
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    turns = 2.0 * np.pi / count * np.arange(count)
    directions = np.outer(np.cos(turns), u) + np.outer(np.sin(turns), np.cross(normal, u))
    return polygon[sorted({int(i) for i in np.argmax(polygon @ directions.T, axis=0)})]


def more_facing(best: Any, patch: Patch, d: Array, normal: Array, points: Array) -> tuple[Any, Patch]:
    """The one of a patch and a face that faces d more, and the cosine. Of equals, the patch."""
    along = normal @ d
    better = along > best
    chosen = Patch(np.where(better, points, patch.points), np.where(better, normal, patch.normal))
    return np.where(better, along, best), chosen


@dataclass(frozen=True, eq=False)
class Shadow:
    """Two patches as seen along a contact's normal n, from the second shape to the first.

    Attributes:
        axes: 2 × 3, unit vectors perpendicular to n, which turn with the two shapes.
        sign: the sign of the second axis that makes it independent of which shape is first.
        one, other: k × 2, the corners of both patches along these axes, anticlockwise.
    """

    axes: Array
    sign: Any
    one: Array
    other: Array

    @classmethod
    def of(cls, one: Patch, other: Patch, n: Array, R: Array) -> Shadow:
        """The shadow of patches in the second shape's frame, to which R rotates directions from the first's."""
        first, second = (axis + R @ axis for axis in _AXES)
        _, x = unit(np.stack(list(first - (first @ n) * n)), tangents(n)[0])
        y = np.stack(list(cross(n, x)))
        flat = [[np.stack([point @ x, point @ y]) for point in patch.points] for patch in (one, other)]
        flat[0].reverse()  # it is seen from behind
        return cls(np.stack([x, y]), np.copysign(1.0, y @ second), np.stack(flat[0]), np.stack(flat[1]))


NOTHING = -_FAR, np.zeros(2)  # how far a corner is along a direction, and the corner, where there is none


def cut(start: Array, end: Array, window: Array, near: Any) -> tuple[Any, list[Array]]:
    """Whether any part of a line lies within a convex window, and the ends of this part.

    Args:
        start, end: 2 each, the ends of the line.
        window: k × 2, its corners, anticlockwise.
        near: by how much the window is widened, so that coinciding sides are kept, m.
    """
    low, high = 0.0, 1.0
    for i in range(len(window)):
        pair, x, y = window[i], *(window[(i + 1) % len(window)] - window[i])
        wider = near * np.sqrt(x * x + y * y)
        a, b = (x * (p[1] - pair[1]) - y * (p[0] - pair[0]) + wider for p in (start, end))
        enters, leaves, outside = (a < 0.0) & (b >= 0.0), (a >= 0.0) & (b < 0.0), (a < 0.0) & (b < 0.0)
        t = a / np.where(enters | leaves, a - b, 1.0)
        low = np.where(enters, np.maximum(low, t), low)
        high = np.where(leaves, np.minimum(high, t), np.where(outside, -1.0, high))
    side = end - start
    return low <= high, [start + low * side, start + high * side]


def furthest_of(distance: Any, corner: Array, direction: int, sign: Any, exists: Any, places: list[Array]) -> Any:
    """The outermost of a corner and other places in one of four directions: its distance, and the place."""
    for place in places:
        along = place[0] if direction % 2 == 0 else sign * place[1]
        along = along if direction < 2 else -along
        better = exists & (along > distance)
        distance, corner = np.where(better, along, distance), np.where(better, place, corner)
    return distance, corner


def raised(one: Patch, other: Patch, n: Array, axes: Array, distance: Any, corner: Array) -> tuple[Any, Any, Array]:
    """A corner of the overlap of two patches: whether it exists, its gap, and the point halfway between the patches."""
    place, exists = corner[0] * axes[0] + corner[1] * axes[1], distance > -_FAR
    heights = []
    for patch, sign in ((one, -1.0), (other, 1.0)):
        along = patch.normal @ n
        seen = sign * along > _EDGE_ON
        exists = exists & seen
        heights.append((patch.normal @ (patch.points[0] - place)) / np.where(seen, along, 1.0))
    above, below = heights
    return exists, above - below, place + 0.5 * (above + below) * n


def shared_corners(one: Patch, other: Patch, n: Array, R: Array, radius: Any) -> list[tuple[Any, Any, Array]]:
    """The corners of the overlap of two patches, seen along a contact's normal, outermost in four directions.

    The directions turn with the two shapes, so that the order of the corners lasts.

    Args:
        one, other: patches of two shapes in the frame of the second; the first faces against n, the second along it.
        n: 3, the unit normal, from the second shape to the first.
        R: 3 × 3, rotates directions from the first shape's frame to the second's.
        radius: the radius of the smaller of the two shapes, m.
    """
    shadow = Shadow.of(one, other, n, R)
    distance, corner = (4 * [value] for value in NOTHING)
    for polygon, window in ((shadow.one, shadow.other), (shadow.other, shadow.one)):
        for i in range(len(polygon)):
            exists, places = cut(polygon[i], polygon[(i + 1) % len(polygon)], window, NEAR * radius)
            for k in range(4):
                distance[k], corner[k] = furthest_of(distance[k], corner[k], k, shadow.sign, exists, places)
    return [raised(one, other, n, shadow.axes, distance[k], corner[k]) for k in range(4)]
