"""Surfaces made of triangles: boxes, balls, cylinders, tapered rods, plates.

Triangles that share a vertex are shaded as one smooth surface. So vertices are shared where a surface is round, and
doubled where it has an edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from coupler.contact.collision.faces import Faces

_SIDES = 24  # of what is round
_ARC = 5  # points of a quarter of a circle
_SHORT = 1e-9  # of its thickness: a rod of no length is a ball
_SHORTEST = 1e-6  # m: bars of no length are seen as discs
_CHAMFER = 0.12  # of its radius: how much the edges of a cylinder are broken, so that they catch the light


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles.

    Attributes:
        vertices: n × 3, m.
        triangles: m × 3, numbers of vertices, anticlockwise as seen from outside.
    """

    vertices: np.ndarray
    triangles: np.ndarray

    def moved(self, rotation: np.ndarray, offset: np.ndarray) -> Surface:
        """This surface, rotated by a 3 × 3 matrix and then shifted by 3, m."""
        return Surface(self.vertices @ np.asarray(rotation).T + offset, self.triangles)

    def scaled(self, factors: np.ndarray) -> Surface:
        """This surface, stretched along its axes; negative factors mirror it."""
        turned_over = np.prod(factors) < 0.0
        return Surface(self.vertices * factors, self.triangles[:, ::-1] if turned_over else self.triangles)


def joined(surfaces: Iterable[Surface]) -> Surface:
    """Several surfaces as one."""
    parts = list(surfaces)
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    triangles = [part.triangles + start for part, start in zip(parts, starts, strict=False)]
    empty = np.zeros((0, 3))
    return Surface(
        np.concatenate([empty, *(part.vertices for part in parts)]), np.concatenate([empty.astype(int), *triangles])
    )


def turned_to(axis: np.ndarray) -> np.ndarray:
    """A rotation, 3 × 3, that turns z to an axis."""
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[int(np.abs(z).argmin())], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def _revolved(strips: Sequence[np.ndarray]) -> Surface:
    """The surface of profiles revolved about z; each is k × 2, radius and height, from bottom to top, and smooth."""
    angle = np.linspace(0.0, 2.0 * np.pi, _SIDES, endpoint=False)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    parts = []
    for strip in strips:
        r, z = np.asarray(strip, dtype=float).T
        rings = np.concatenate(
            [r[:, None, None] * around, np.broadcast_to(z[:, None, None], (len(r), _SIDES, 1))], axis=2
        )
        i, j = np.meshgrid(np.arange(len(r) - 1), np.arange(_SIDES), indexing="ij")
        a, b = i * _SIDES + j, i * _SIDES + (j + 1) % _SIDES
        lower = np.stack([a, b, b + _SIDES], axis=-1)[np.broadcast_to((r[:-1] > 0.0)[:, None], a.shape)]
        upper = np.stack([a, b + _SIDES, a + _SIDES], axis=-1)[np.broadcast_to((r[1:] > 0.0)[:, None], a.shape)]
        parts.append(Surface(rings.reshape(-1, 3), np.concatenate([lower, upper])))
    return joined(parts)


def ball(radius: float) -> Surface:
    return capsule(radius, radius, 0.0)


def capsule(below: float, above: float, length: float) -> Surface:
    """Two balls with the cone that touches both, along z.

    Args:
        below, above: the radii of the balls, m; the first is around the origin.
        length: the distance between their centres, m.
    """
    lean = np.arcsin(np.clip((below - above) / length, -1.0, 1.0)) if length > abs(below - above) else 0.0
    lower, upper = np.linspace(-np.pi / 2, lean, 2 * _ARC), np.linspace(lean, np.pi / 2, 2 * _ARC)
    arcs = [below * np.stack([np.cos(lower), np.sin(lower)], axis=1)]
    arcs.append(above * np.stack([np.cos(upper), np.sin(upper)], axis=1) + [0.0, length])
    profile = np.concatenate(arcs)
    profile[[0, -1], 0] = 0.0  # which rounding left a little above
    return _revolved([profile])


def rod(start: np.ndarray, end: np.ndarray, thick: float, thin: float) -> Surface:
    """A tapered rod with round ends from one point to another: radii at both, m."""
    along = np.asarray(end, dtype=float) - start
    length = float(np.linalg.norm(along))
    if length < _SHORT * thick:
        return ball(thick).moved(np.eye(3), start)
    return capsule(thick, thin, length).moved(turned_to(along), start)


def cylinder(radius: float, length: float) -> Surface:
    """A cylinder along z around the origin, with bevelled edges."""
    h, c = length / 2, min(_CHAMFER * radius, 0.25 * length)
    inner = radius - c
    corners = np.array([[0, -h], [inner, -h], [radius, c - h], [radius, h - c], [inner, h], [0, h]])
    return _revolved([corners[i : i + 2] for i in range(5)])


def cone(base: np.ndarray, tip: np.ndarray, radius: float) -> Surface:
    """A pointed cone from the middle of its base, of a radius, m, to its tip."""
    along = tip - base
    profile = np.array([[0.0, 0.0], [radius, 0.0], [0.0, float(np.linalg.norm(along))]])
    return _revolved([profile[i : i + 2] for i in range(2)]).moved(turned_to(along), base)


def bar(start: np.ndarray, end: np.ndarray, radius: float) -> Surface:
    """A cylinder from one point to another."""
    along = end - start
    return cylinder(radius, max(float(np.linalg.norm(along)), _SHORTEST)).moved(turned_to(along), (start + end) / 2)


def box(size: np.ndarray) -> Surface:
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    return hull(corners).scaled(np.asarray(size, dtype=float))


def hull(points: np.ndarray) -> Surface:
    """The convex hull of points, with sharp edges; empty if they span no volume."""
    return joined(_fan(polygon) for polygon in Faces.of(points).polygons if len(polygon) > 2)


def rounded_hull(points: np.ndarray, radius: float) -> Surface:
    """The convex hull of balls around points: a plate, or a body with round edges."""
    pads = (points[:, None] + radius * _PAD).reshape(-1, 3)
    surface = hull(pads)
    _, first, same = np.unique(np.round(surface.vertices / radius, 6), axis=0, return_index=True, return_inverse=True)
    return Surface(surface.vertices[first], same.reshape(-1)[surface.triangles])  # shaded as one


def _fan(polygon: np.ndarray) -> Surface:
    count = len(polygon) - 2
    return Surface(polygon, np.stack([np.zeros(count, int), np.arange(count) + 1, np.arange(count) + 2], axis=1))


def grid(heights: np.ndarray, size: np.ndarray) -> Surface:
    """The surface of a height field: heights, n × m, over a grid of this size, 2, m; see `HeightField`."""
    n, m = heights.shape
    x, y = np.meshgrid(*(s * np.linspace(-0.5, 0.5, k) for s, k in zip(size, (n, m), strict=True)), indexing="ij")
    i, j = (a.ravel() for a in np.meshgrid(np.arange(n - 1), np.arange(m - 1), indexing="ij"))
    a, b, c, d = i * m + j, (i + 1) * m + j, (i + 1) * m + j + 1, i * m + j + 1
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return Surface(np.stack([x, y, heights], axis=-1).reshape(-1, 3), triangles)


def _pad() -> np.ndarray:
    """Points on the unit ball: along its axes, and between them."""
    steps = np.array([[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z], float)
    return steps / np.linalg.norm(steps, axis=1, keepdims=True)


_PAD = _pad()
