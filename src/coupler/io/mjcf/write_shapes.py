"""Writing shapes as geoms of MJCF, with meshes, hulls and height fields among its assets."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from coupler.io.mjcf.attributes import form, place
from coupler.io.mjcf.contacts import geom_friction
from coupler.io.taken_names import TakenNames
from coupler.io.writing import mesh_path, put
from coupler.model import HeightField, Hull, Mesh, Plane, Robot, Shape
from coupler.model.tree import GROUND
from coupler.spatial import Transform

_MESHES = (".stl", ".obj", ".msh")  # mesh files that MuJoCo reads
_FLAT = 1e-9  # m: MuJoCo wants a height field to rise by something
_HIDDEN = "3"  # a group that MuJoCo's viewer does not show


class GeomWriter:
    """Writes the shapes of a robot.

    Args:
        folder: the folder of the file; paths of meshes are relative to it.
        bodies: elements of bodies and of the ground, by name.
        leave: notes a shape that is not written, by a phrase for one and a phrase for several.

    Attributes:
        names: the names of the shapes that are written.
    """

    def __init__(
        self, robot: Robot, folder: Path, bodies: Mapping[str, ET.Element], leave: Callable[[str, str], None]
    ) -> None:
        self.names: set[str] = set()
        self._robot, self._folder, self._bodies, self._leave = robot, folder, bodies, leave
        self._shape_names, self._asset_names = TakenNames(shape.name for shape in robot.shapes), TakenNames()
        self._meshes: dict[tuple[str, str], str] = {}  # names of assets, by file and scale
        self._resists_turning = any(shape.torsion is not None or shape.rolling is not None for shape in robot.shapes)

    def write(self, assets: ET.Element) -> None:
        """Writes all shapes, and their meshes and height fields to the assets."""
        for shape in self._robot.shapes:
            geometry = shape.geometry
            if isinstance(geometry, Mesh) and not _is_readable(geometry):
                self._leave("mesh without a file that MuJoCo reads", "meshes without files that MuJoCo reads")
            elif isinstance(geometry, Plane) and not self._is_fixed(shape.body):
                self._leave("plane on a body that moves", "planes on bodies that move")
            elif isinstance(geometry, Mesh):
                self._add_geom(shape, self._mesh(assets, geometry))
            elif isinstance(geometry, Hull):
                self._add_geom(shape, self._hull(assets, shape, geometry))
            elif isinstance(geometry, HeightField):
                low = Transform.translation((0.0, 0.0, float(geometry.heights.min())))
                self._add_geom(replace(shape, at=low @ shape.at), self._height_field(assets, shape, geometry))
            else:
                self._add_geom(shape, form(geometry))

    def _is_fixed(self, body: str) -> bool:
        """Whether a body is fixed to the ground."""
        return self._robot.tree.place[body][0] == 0

    def _mesh(self, assets: ET.Element, mesh: Mesh) -> dict[str, Any]:
        """Attributes of a geom with a mesh from a file; the mesh becomes an asset once for each scale."""
        key = mesh_path(mesh.path, self._folder), str(np.asarray(mesh.scale).tolist())
        if key not in self._meshes:
            self._meshes[key] = self._asset_names.new(Path(mesh.path).stem)
            scale = None if np.array_equal(mesh.scale, np.ones(3)) else mesh.scale
            put(assets, "mesh", name=self._meshes[key], file=key[0], scale=scale, inertia="shell")
        return {"type": "mesh", "mesh": self._meshes[key]}

    def _hull(self, assets: ET.Element, shape: Shape, hull: Hull) -> dict[str, Any]:
        name = self._asset_names.new(shape.name or shape.body)
        put(assets, "mesh", name=name, vertex=hull.vertices.ravel(), inertia="shell")
        return {"type": "mesh", "mesh": name}

    def _height_field(self, assets: ET.Element, shape: Shape, field: HeightField) -> dict[str, Any]:
        """Attributes of a geom with a height field; MuJoCo measures heights from the lowest point."""
        name = self._asset_names.new(shape.name or shape.body)
        low, high = float(field.heights.min()), float(field.heights.max())
        rise = max(high - low, _FLAT)
        rows = (field.heights.T[::-1] - low) / rise  # from 0 to 1; rows go along y, and the first is the furthest
        size = (*(field.size / 2.0), rise, max(1.0, float(field.size.max())))
        n, m = field.heights.shape
        put(assets, "hfield", name=name, nrow=str(m), ncol=str(n), size=size, elevation=rows.ravel())
        return {"type": "hfield", "hfield": name}

    def _add_geom(self, shape: Shape, looks: dict[str, Any]) -> None:
        name = None
        if shape.name:  # the first of several shapes keeps the name
            taken = any(geom.get("name") == shape.name for geom in self._bodies[GROUND].iter("geom"))
            name = self._shape_names.new(shape.name) if taken else shape.name
            self.names.add(shape.name)
        bits = {"contype": shape.group, "conaffinity": shape.meets}
        bits = {word: None if value == 1 else str(value) for word, value in bits.items()}
        looks = looks | geom_friction(shape, self._resists_turning)
        looks |= {"rgba": shape.colour, "group": None if shape.visible else _HIDDEN}
        looks["priority"] = str(shape.priority) if shape.priority else None
        put(self._bodies[shape.body], "geom", name=name, **looks, **bits, **place(shape.at))


def _is_readable(mesh: Mesh) -> bool:
    path = Path(mesh.path)
    return path.is_file() and path.suffix.lower() in _MESHES
