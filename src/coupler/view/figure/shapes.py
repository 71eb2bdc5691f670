"""The shapes that a robot's file gives, as surfaces."""

from __future__ import annotations

import numpy as np

from coupler.contact.collision.mesh_files import mesh_triangles
from coupler.model import Mesh, ModelError, Shape
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Hull, Sphere
from coupler.view.figure.surface import Surface, ball, box, capsule, cylinder, grid, hull


def shape_surface(shape: Shape) -> Surface | None:
    """The surface of a shape in its body's frame; None for a plane, which has no end.

    Raises:
        ModelError: for a mesh that cannot be read.
    """
    surface = _surface(shape)
    return surface and surface.moved(shape.at.E.T, shape.at.r)


def _surface(shape: Shape) -> Surface | None:
    match shape.geometry:
        case Sphere(radius=radius):
            return ball(radius)
        case Capsule(radius=radius, length=length):
            return capsule(radius, radius, length).moved(np.eye(3), np.array([0.0, 0.0, -length / 2]))
        case Cylinder(radius=radius, length=length):
            return cylinder(radius, length)
        case Box(size=size):
            return box(size)
        case Ellipsoid(radii=radii):
            return ball(1.0).scaled(radii)
        case Hull(vertices=vertices):
            return hull(vertices)
        case HeightField(heights=heights, size=size):
            return grid(heights, size)
        case Mesh(path=path, scale=scale):
            corners = mesh_triangles(path).reshape(-1, 3)
            vertices, same = np.unique(corners, axis=0, return_inverse=True)
            return Surface(vertices, same.reshape(-1, 3)).scaled(scale)
    return None


def readable(shape: Shape) -> tuple[Surface | None, str]:
    """The surface of a shape, or None and why there is none."""
    try:
        return shape_surface(shape), ""
    except ModelError as error:
        return None, str(error)
