"""Shapes of a compiled model in MJCF."""

from __future__ import annotations

import numpy as np

from coupler.io.mjcf.compilation import Compiled
from coupler.io.mjcf.contacts import frictions_of_geoms
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.names import PartNames
from coupler.io.mjcf.tree import pose
from coupler.io.taken_names import TakenNames
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Hull,
    Mesh,
    ModelError,
    Plane,
    RobotBuilder,
    Sphere,
)
from coupler.model.wording import counted
from coupler.rotation import matrix_from_quaternion, normalize_quaternion, quaternion_conjugate, quaternion_product
from coupler.spatial import Transform

_PLANE, _FIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(8)  # MuJoCo's types of geoms
_GREY = (0.5, 0.5, 0.5, 1.0)  # MuJoCo's colour of geoms that have none
_HIDDEN = 3  # MuJoCo's viewer hides this group and those above it


def add_shapes(
    model: Compiled, files: Files, names: PartNames, builder: RobotBuilder, touch: bool
) -> tuple[list[str | None], list[str]]:
    """Adds the shapes of bodies; returns the name of each, None if it is left out, and a description of those."""
    geom_names = [model.names["geom"][i] for i in range(model.ngeom)]
    taken, frictions, shapes = TakenNames(geom_names), frictions_of_geoms(model), list[str | None]()
    for i, name in enumerate(geom_names):
        body, at = names.bodies[model.geom_bodyid[i]], pose(model.geom_pos[i], model.geom_quat[i])
        if model.geom_type[i] == _MESH:
            form, at = _mesh(model, i, at)
        elif model.geom_type[i] == _FIELD:
            form = _field(model, int(model.geom_dataid[i]))
        else:
            form = _form(int(model.geom_type[i]), model.geom_size[i])
        if form is None:
            shapes.append(None)
            continue
        colour = _colour(model, i)
        shapes.append(name or taken.numbered(f"{body}_geom"))
        with files.where("geom", name).blamed():
            builder.shape(
                body,
                form,
                at,
                name=shapes[-1] or "",
                visible=bool((colour is None or colour[3] > 0.0) and model.geom_group[i] < _HIDDEN),
                group=int(model.geom_contype[i]) if touch else 0,
                meets=int(model.geom_conaffinity[i]) if touch else 0,
                colour=colour,
                priority=int(model.geom_priority[i]),
                **frictions[i],
            )
    lost = shapes.count(None)
    return shapes, [f"{counted(lost, 'shape')} without a volume, or rotated before it is scaled"] if lost else []


def _form(kind: int, size: np.ndarray) -> Geometry | None:
    """A primitive shape; MuJoCo's sizes are halves."""
    if kind == _PLANE:
        return Plane()
    if kind == _SPHERE:
        return Sphere(size[0])
    if kind in (_CAPSULE, _CYLINDER):
        return (Capsule if kind == _CAPSULE else Cylinder)(size[0], 2 * size[1])
    if kind == _ELLIPSOID:
        return Ellipsoid(size)
    return Box(2 * size) if kind == _BOX else None


def _field(model: Compiled, i: int) -> Geometry:
    """A height field; MuJoCo's rows go along y."""
    first, n, m = (int(getattr(model, f"hfield_{name}")[i]) for name in ("adr", "nrow", "ncol"))
    (x, y, z, _), data = model.hfield_size[i], model.hfield_data[first : first + n * m]
    return HeightField(z * data.astype(float).reshape(n, m).T, (2.0 * x, 2.0 * y))


def _hull(model: Compiled, i: int) -> Geometry | None:
    """The hull of a mesh that the file itself holds; None if it has no volume."""
    first, count = int(model.mesh_vertadr[i]), int(model.mesh_vertnum[i])
    try:
        return Hull(model.mesh_vert[first : first + count].astype(float))
    except ModelError:
        return None


def _mesh(model: Compiled, i: int, at: Transform) -> tuple[Geometry | None, Transform]:
    """A mesh and the frame of its file: MuJoCo moves meshes to their centres and principal axes."""
    number = model.geom_dataid[i]
    if model.mesh_paths[number] is None:
        return _hull(model, number), at
    turn = quaternion_product(model.geom_quat[i], quaternion_conjugate(model.mesh_quat[number]))
    at = pose(model.geom_pos[i] - matrix_from_quaternion(turn) @ model.mesh_pos[number], turn)
    path, scale, origin = model.mesh_paths[number], model.mesh_scale[number], model.mesh_refpos[number]
    reference = pose(origin, normalize_quaternion(model.mesh_refquat[number]))
    turned, stretched = not np.array_equal(reference.E, np.eye(3)), np.ptp(scale) != 0.0
    if turned and stretched:  # MuJoCo rotates before it scales
        return None, at
    return Mesh(path, scale), Transform(reference.E.T, -scale * (reference.E @ origin)) @ at


def _colour(model: Compiled, i: int) -> np.ndarray | None:
    """The colour of a geom or of its material; None if neither has one."""
    colour, material = model.geom_rgba[i], model.geom_matid[i]
    if not np.allclose(colour, _GREY):
        return np.clip(colour, 0.0, 1.0)
    return np.clip(model.mat_rgba[material], 0.0, 1.0) if material >= 0 else None
