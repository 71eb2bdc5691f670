"""Reading <visual> and <collision> of URDF."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coupler.io.reading import shape_pairs
from coupler.io.urdf.meshes import Resolver
from coupler.io.urdf.origins import origin
from coupler.io.xml import Element
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, Geometry, Mesh, Plane, Sphere


def materials_of(robot: Element) -> dict[str, np.ndarray]:
    """The colours of all named materials, wherever in the file they are given."""
    for material in robot.all("material"):
        material.require("name")
    named = [element for element in robot.walk() if element.tag == "material" and element.has("name")]
    colours = [(material.get("name"), _colour(material, {})) for material in named]
    return {name: colour for name, colour in colours if colour is not None}


def shapes_of(link: Element, materials: dict[str, np.ndarray], resolve: Resolver) -> Iterator[dict[str, Any]]:
    """The shapes of a link, as arguments of `RobotBuilder.shape`; `at` is relative to the link's frame.

    A <collision same="true"> has the shape of the <visual> before it.
    """
    for visual, collision in shape_pairs(link, "same"):
        parts = [part for part in (visual, collision) if part is not None]
        geometry = _geometry(parts[0].need("geometry"), resolve)
        if geometry is None:
            for part in parts:
                part.ignore()
            continue
        shape: dict[str, Any] = {"geometry": geometry, "at": origin(parts[0]), "name": parts[0].get("name")}
        material = parts[0].find("material")
        if visual is None:
            shape["visible"] = False
        elif material is not None:
            shape["colour"] = _colour(material, materials)
        if material is not None:
            material.ignore()
        if collision is None:
            yield shape | {"group": 0, "meets": 0}
            continue
        if visual is not None:
            collision.ignore()
        yield shape | _contact(collision)


def _contact(element: Element) -> dict[str, Any]:
    contact: dict[str, Any] = {name: _whole(element, name, 1) for name in ("group", "meets")}
    contact["priority"] = _whole(element, "priority", 0)
    laws = ("friction", "restitution", "torsion", "rolling")
    return contact | {name: element.number(name) for name in laws if element.has(name)}


def _whole(element: Element, name: str, default: int) -> int:
    value = element.number(name, default)
    if value != int(value):  # a negative one has all bits but some, as a floor has that meets everything
        raise element.error(f"its {name} must be a whole number, got {element.get(name)!r}")
    return int(value)


def _geometry(element: Element, resolve: Resolver) -> Geometry | None:
    """The shape in a <geometry>; None for a mesh outside the allowed folders, and for a shape without extent."""
    shapes = element.all("box", "cylinder", "sphere", "mesh", "capsule", "ellipsoid")
    if len(shapes) != 1:
        raise element.error("it must hold one of <box>, <cylinder>, <sphere>, <capsule>, <ellipsoid> and <mesh>")
    (form,), disguise = shapes, shapes[0].get("as")
    if disguise == "plane":
        form.get("size")
        return Plane()
    sizes = [form.numbers(name, None) for name in ("size", "radius", "length") if form.has(name)]
    if any((size == 0.0).any() for size in sizes):  # exporters write sizes of zero for links without a shape
        return None
    with form.blamed():
        if form.tag == "box":
            return Box(form.numbers("size", 3))
        if form.tag in ("cylinder", "capsule"):
            radius, length = form.number("radius"), form.number("length")
            return (Capsule if "capsule" in (form.tag, disguise) else Cylinder)(radius, length)
        if form.tag == "sphere":
            radius = form.number("radius")
            return Ellipsoid(form.numbers("radii", 3)) if form.has("radii") else Sphere(radius)
        if form.tag == "ellipsoid":
            return Ellipsoid(form.numbers("radii", 3))
        scale = form.numbers("scale", None, [1.0, 1.0, 1.0])
        if len(scale) not in (1, 3):
            raise form.error(f"its scale must be one number or three, got {form.get('scale')!r}")
        path = resolve(form.require("filename"))
        return None if path is None else Mesh(path, scale if len(scale) == 3 else np.full(3, scale[0]))


def _colour(material: Element, named: dict[str, np.ndarray]) -> np.ndarray | None:
    """The colour of a material, given in it or under its name elsewhere; textures are ignored."""
    colour, name = material.find("color"), material.get("name")
    for texture in material.all("texture"):
        texture.ignore()
    return named.get(name) if colour is None else np.clip(colour.numbers("rgba", 4), 0.0, 1.0)
