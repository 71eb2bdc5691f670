"""The distance of a point from a shape, and its direction, on floats or nodes of a trace.

Every function takes a point p, 3, in the shape's frame, and returns the signed distance (m, negative inside) and the
unit vector along which it grows: inside, that is the normal of the nearest face. Where the direction is not defined (at
the centre of a ball, on the axis of a capsule), a fixed one is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from coupler.contact.collision.forms import Point
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere

Array = Any  # an ndarray of floats, or of nodes

_CLOSE = 1e-30  # the square of a length, m², below which it has no direction
_X, _Z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])


def unit(v: Array, otherwise: Array) -> tuple[Any, Array]:
    """The length of a vector and its direction; zero and `otherwise` below 1e-15."""
    square = v @ v
    far = square > _CLOSE
    length = np.sqrt(np.where(far, square, 1.0))  # never the root of zero, whose derivative is infinite
    return np.where(far, length, 0.0), np.where(far, v / length, otherwise)


def to_plane(p: Array) -> tuple[Any, Array]:
    """Distance and direction from the half-space z ≤ 0."""
    return p[2], _Z


def to_ball(p: Array, radius: float) -> tuple[Any, Array]:
    """Distance and direction from a ball, or from a point if the radius is zero."""
    length, normal = unit(p, _Z)
    return length - radius, normal


def to_capsule(p: Array, radius: float, half: float) -> tuple[Any, Array]:
    """Distance and direction from a capsule along z whose axis ends at z = ±half."""
    length, normal = unit(np.stack([p[0], p[1], p[2] - np.clip(p[2], -half, half)]), _X)
    return length - radius, normal


def to_box(p: Array, half: np.ndarray) -> tuple[Any, Array]:
    """Distance and direction from a box that reaches to ±half along each axis."""
    distance, weights = _from_faces(np.abs(p) - half)
    return distance, weights * np.copysign(1.0, p)


def to_box_together(places: Sequence[Array], half: np.ndarray) -> list[tuple[Any, Array]]:
    """Distances of several points from a box; points inside leave through one common face, the nearest to all."""
    separate = [to_box(p, half) for p in places]
    inside = [distance <= 0.0 for distance, _ in separate]
    low = reduce(np.minimum, (np.where(within, p, half) for p, within in zip(places, inside, strict=True)))
    high = reduce(np.maximum, (np.where(within, p, -half) for p, within in zip(places, inside, strict=True)))
    _, face = _from_faces(np.maximum(low, -high) - half)
    normal = face * np.copysign(1.0, low + high)
    return [
        (np.where(within, normal @ p - face @ half, distance), np.where(within, normal, direction))
        for p, within, (distance, direction) in zip(places, inside, separate, strict=True)
    ]


def to_cylinder(p: Array, radius: float, half: float) -> tuple[Any, Array]:
    """Distance and direction from a cylinder along z between z = ±half, a rectangle in the plane of axis and p."""
    across, out = unit(np.stack([p[0], p[1]]), _X[:2])
    distance, (radial, axial) = _from_faces(np.stack([across - radius, np.abs(p[2]) - half]))
    return distance, np.stack([radial * out[0], radial * out[1], axial * np.copysign(1.0, p[2])])


def _from_faces(excess: Array) -> tuple[Any, Array]:
    """The distance from faces at right angles, given the excess beyond each, and the weights of their normals."""
    outside, along = unit(np.maximum(excess, 0.0), 0.0)
    inside, face = excess[0], np.eye(len(excess))[0]
    for value, other in zip(excess[1:], np.eye(len(excess))[1:], strict=True):
        nearer = value > inside
        inside, face = np.where(nearer, value, inside), np.where(nearer, other, face)
    return np.where(outside > 0.0, outside, inside), np.where(outside > 0.0, along, face)


_STEPS = 12  # Newton steps: enough for ratios of radii up to 1 : 1000; 10 suffice for 1 : 100
_FLOOR = 1e-12  # in radii: points are moved off planes of symmetry by this much, and the distance errs by as much


def to_ellipsoid(p: Array, radii: np.ndarray) -> tuple[Any, Array]:
    """Distance and direction from an ellipsoid, to 1e-11 of its largest radius.

    The nearest point x of the surface satisfies p − x = t n with the normal n = (xᵢ / aᵢ²), so that xᵢ = aᵢ² pᵢ / (t +
    aᵢ²), and t is the largest root of S(t) = Σ (aᵢ pᵢ / (t + aᵢ²))² = 1. The function 1/√S is concave and increasing,
    so Newton's method on 1/√S = 1 rises to the root from any start below it, and is never far from linear. The unknown
    is τ = t + min aᵢ², in which small denominators keep their digits.
    """
    least = float(np.min(radii))
    delta = radii**2 - least**2
    size = np.maximum(np.abs(p), _FLOOR * radii)
    m = radii * size
    # S ≥ 1 at each of these starts: a single term reaches 1, or all do with the largest denominator.
    tau = np.sqrt(m @ m) - float(np.max(delta))
    for start in m - delta:
        tau = np.maximum(tau, start)
    for _ in range(_STEPS):
        f = m / (tau + delta)
        S = f @ f
        tau = tau + S * (np.sqrt(S) - 1.0) / ((f * f) @ (1.0 / (tau + delta)))
    normal = size / (tau + delta)
    length = np.sqrt(normal @ normal)
    return (tau - least**2) * length, normal / length * np.copysign(1.0, p)


DISTANCES: dict[type, Callable[[Any, Array], tuple[Any, Array]]] = {  # by the kind of shape
    Plane: lambda shape, p: to_plane(p),
    Point: lambda shape, p: to_ball(p, 0.0),
    Sphere: lambda shape, p: to_ball(p, shape.radius),
    Capsule: lambda shape, p: to_capsule(p, shape.radius, 0.5 * shape.length),
    Box: lambda shape, p: to_box(p, 0.5 * shape.size),
    Cylinder: lambda shape, p: to_cylinder(p, shape.radius, 0.5 * shape.length),
    Ellipsoid: lambda shape, p: to_ellipsoid(p, shape.radii),
}


def to_shape(shape: Any, p: Array) -> tuple[Any, Array]:
    """Distance and direction from a shape of one of the kinds in `DISTANCES`."""
    return DISTANCES[type(shape)](shape, p)
