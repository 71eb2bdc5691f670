"""The length of a cable from one point to another, around a sphere or a cylinder between them.

In the plane across a cylinder's axis, or through both points and the centre of a sphere, a cable leaves a circle of
radius r along its tangents. From a point at the distance a, that is √(a² − r²) away, and seen from the centre by an
angle of arccos(r / a) off the point. What is left of the angle between both points is an arc. Along a cylinder, the
cable is a straight line once its surface is unrolled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # an ndarray of floats, or of nodes

_FAR = 2.0  # radii: a distance that stands for one within the circle, where no length is defined
_TINY = 1e-30  # of a squared length, below which a direction is undefined


def length_around_sphere(ends: Array, radius: Array, side: Array | None) -> Array:
    """The length from one point to another, around a sphere at the origin where that is in between.

    Args:
        ends: the two points, 6.
        radius: the sphere's.
        side: a point on whose side of the sphere the cable passes, 3; None for the shorter way.
    """
    first, second = ends[:3], ends[3:]
    x = _direction(first)
    across = second - (x @ second) * x
    y = _direction(across)
    flat = [np.array([x @ point, y @ point]) for point in (first, second, *(() if side is None else (side,)))]
    around, wraps = _length_around_circle(flat[0], flat[1], radius, None if side is None else flat[2])
    gap = second - first
    return np.where(wraps, around, _length(gap))


def length_around_cylinder(ends: Array, radius: Array, side: Array | None) -> Array:
    """The same around a cylinder along z, whose ends are out of reach."""
    first, second = ends[:3], ends[3:]
    around, wraps = _length_around_circle(first[:2], second[:2], radius, None if side is None else side[:2])
    gap = second - first
    return np.where(wraps, _length(np.array([around, gap[2]])), _length(gap))


def _length_around_circle(first: Array, second: Array, radius: Array, side: Array | None) -> tuple[Array, Array]:
    """The length around a circle about the origin, and whether the cable touches it."""
    gap, square = second - first, radius * radius
    squares = [point @ point for point in (first, second)]
    outside = (squares[0] > square) & (squares[1] > square)
    along = np.minimum(np.maximum(-(gap @ first) / np.maximum(gap @ gap, _TINY), 0.0), 1.0)
    nearest = first + along * gap
    passes = nearest @ nearest > square
    if side is not None:
        passes = passes & (side @ nearest >= 0.0)
    # Points within the circle are replaced, so that lengths and slopes are defined that are not used there.
    far = _FAR * radius * np.array([1.0, 0.0])
    first, second = (np.where(x > square, point, far) for x, point in zip(squares, (first, second), strict=True))
    tangents = [np.sqrt(point @ point - square) for point in (first, second)]
    angles = [np.arctan2(tangent, radius) for tangent in tangents]
    turn = np.arctan2(_area(first, second), first @ second)
    if side is None:
        arc = np.abs(turn) - angles[0] - angles[1]
    else:
        ways = [_way(direction, turn, first, angles, side) for direction in (1.0, -1.0)]
        arc = np.where(ways[0][1] > ways[1][1], ways[0][0], ways[1][0])
    return tangents[0] + tangents[1] + radius * arc, outside & np.logical_not(passes) & (arc > 0.0)


def _way(direction: float, turn: Array, first: Array, angles: list[Array], side: Array) -> tuple[Array, Array]:
    """A way around a circle: its arc, and how far the middle of the arc is on the side."""
    arc = np.where(direction * turn < 0.0, 2.0 * np.pi, 0.0) + direction * turn - angles[0] - angles[1]
    return arc, _turned(_direction(first), direction * (angles[0] + 0.5 * arc)) @ side


def _area(a: Array, b: Array) -> Array:
    return a[0] * b[1] - a[1] * b[0]


def _turned(point: Array, angle: Array) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * point[0] - s * point[1], s * point[0] + c * point[1]])


def _direction(vector: Array) -> Array:
    """The unit vector; zero for a vector without a direction."""
    square = vector @ vector
    return np.where(square > _TINY, vector / np.sqrt(np.where(square > _TINY, square, 1.0)), 0.0 * vector)


def _length(vector: Array) -> Array:
    square = vector @ vector
    return np.where(square > 0.0, np.sqrt(np.where(square > 0.0, square, 1.0)), 0.0)
