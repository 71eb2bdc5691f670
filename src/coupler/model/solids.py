"""Mass, centre of mass and inertia of solids of uniform density."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from coupler.forks import imports
from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, Hull, Mesh, Sphere


def solid_of(
    what: str, geometry: Geometry, mass: float | None = None, density: float = 1000.0
) -> tuple[float, np.ndarray, np.ndarray]:
    """The mass of a solid, kg, its centre of mass in the geometry's frame, 3, m, and its inertia there, 3 × 3, kg m².

    Args:
        what: what to call it in an error.
        geometry: its geometry; a mesh counts as its convex hull.
        mass: kg; if None, it follows from the density.
        density: kg/m³.

    Raises:
        ModelError: for a geometry without a volume, or with an infinite one.
    """
    volume, centre, second = _moments(what, geometry)
    if mass is None:
        mass = volume * float(numbers(f"{what}: its density", density, (), least=0.0))
    mass = float(numbers(f"{what}: its mass", mass, (), least=0.0))
    if mass <= 0.0:
        raise ModelError(f"{what}: its mass must be above zero")
    spread = mass / volume * second
    return mass, centre, np.trace(spread) * np.eye(3) - spread


def _moments(what: str, geometry: Geometry) -> tuple[float, np.ndarray, np.ndarray]:
    """The volume of a solid, m³, its centre, m, and ∫ x xᵀ dV about that, 3 × 3, m⁵."""
    match geometry:
        case Mesh():
            with imports():  # a call upwards: contact knows how to read meshes
                from coupler.contact.collision.meshes import hull_of

            return _moments(what, hull_of(geometry))
        case Hull():
            return _moments_of_hull(what, geometry)
        case Sphere():
            return _round(4.0 / 3.0 * np.pi * geometry.radius**3, 3 * [geometry.radius**2 / 5.0])
        case Ellipsoid():
            return _round(4.0 / 3.0 * np.pi * np.prod(geometry.radii), geometry.radii**2 / 5.0)
        case Box():
            return _round(np.prod(geometry.size), geometry.size**2 / 12.0)
        case Cylinder():
            r, length = geometry.radius, geometry.length
            return _round(np.pi * r**2 * length, [r**2 / 4.0, r**2 / 4.0, length**2 / 12.0])
        case Capsule():
            r, length = geometry.radius, geometry.length
            middle, ends = np.pi * r**2 * length, 4.0 / 3.0 * np.pi * r**3
            across = middle * r**2 / 4.0 + ends * r**2 / 5.0
            along = middle * length**2 / 12.0 + ends * (r**2 / 5.0 + length**2 / 4.0 + 3.0 / 8.0 * length * r)
            volume = middle + ends
            return _round(volume, np.array([across, across, along]) / volume)
    name = type(geometry).__name__
    raise ModelError(f"{what}: a {name} cannot move by itself: give it to the ground, as a shape")


def _round(volume: Any, squares: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """`_moments` of a solid symmetric about its coordinate planes, from its volume and the means of x², y², z²."""
    return float(volume), np.zeros(3), float(volume) * np.diag(np.asarray(squares, dtype=float))


def _moments_of_hull(what: str, hull: Hull) -> tuple[float, np.ndarray, np.ndarray]:
    """`_moments` of a hull: sums over tetrahedra from a point inside to the triangles of its faces."""
    with imports():  # a call upwards: contact knows what faces a hull has
        from coupler.contact.collision.faces import Faces

    middle = hull.vertices.mean(axis=0)
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for polygon in Faces.of(hull.vertices - middle).polygons:
        for b, c in pairwise(polygon[1:]):
            corners = np.stack([polygon[0], b, c])
            part = abs(float(np.linalg.det(corners))) / 6.0
            total = corners.sum(axis=0)
            volume += part
            first += part * total / 4.0
            second += part / 20.0 * (corners.T @ corners + np.outer(total, total))
    if not volume:
        raise ModelError(f"{what}: its hull is too flat to tell what it weighs")
    offset = first / volume
    return volume, middle + offset, second - volume * np.outer(offset, offset)
