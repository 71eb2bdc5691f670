"""Meshes that touch: as their convex hulls, simplified to a few corners.

A mesh touches with its convex hull, as in other simulators: what is hollow is filled. To touch with the hollow side,
give several hulls. Each corner of a hull is a candidate contact with a plane or a height field, and each costs: so a
hull takes the few corners of the mesh from which the others are least far away. It lies within the mesh's whole hull,
and tells how far within.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable
from dataclasses import replace

from coupler.contact.collision.mesh_files import mesh_vertices
from coupler.contact.collision.polyhedron import polyhedron
from coupler.model import Mesh, ModelError, ModelWarning, Robot, Shape
from coupler.model.numbers import numbers
from coupler.model.shapes import Hull
from coupler.model.wording import counted, listed

CORNERS = 32  # of a hull, at the most, unless told


def hull_of(mesh: Mesh, most: int = CORNERS) -> Hull:
    """The convex hull of a mesh, simplified; see `simplified_hull`."""
    return simplified_hull(mesh, most)[0]


def simplified_hull(mesh: Mesh, most: int = CORNERS) -> tuple[Hull, float]:
    """The convex hull of a mesh, simplified, and how far it is within the whole one, at the most, m.

    Gaps to planes are too large by so much at the most, and never too small.

    Args:
        mesh: the mesh; its file is read.
        most: how many corners the hull may have, 4 or more. They are vertices of the mesh.

    Raises:
        ModelError: if the file cannot be read, or the mesh has no volume.
    """
    most = int(numbers("most", most, (), least=4.0))
    points = mesh_vertices(mesh.path) * mesh.scale
    hull = polyhedron(points, most)
    if hull is None:
        raise ModelError(f"mesh {mesh.path}: it is flat, and has no volume to touch with; give a thin Box instead")
    return Hull(hull.corners), hull.distance(points)


def with_hulls(robot: Robot, most: int = CORNERS) -> Robot:
    """The same robot with a hull for every mesh that touches something; `pairs_of` asks for it by itself.

    A mesh that is seen as well stays, for that alone. One that cannot be read touches nothing: a `ModelWarning` names
    it. The robot's remarks tell which hulls are simplified, and by how much.

    Args:
        robot: the robot.
        most: how many corners a hull may have.
    """
    paired = {name for pair in robot.contact_pairs for name in (pair.first, pair.second)}
    touching = [shape for shape in robot.shapes if shape.touches or shape.name in paired]
    meshes = {id(shape): shape.geometry for shape in touching if isinstance(shape.geometry, Mesh)}
    if not meshes:
        return robot
    hulls, remarks, lost = _hulls(meshes.values(), most)
    shapes: list[Shape] = []
    for shape in robot.shapes:
        hull = hulls.get(_key(meshes[id(shape)])) if id(shape) in meshes else None
        if id(shape) not in meshes:
            shapes.append(shape)
        elif shape.visible or hull is None:
            shapes.append(replace(shape, group=0, meets=0))
        if hull is not None:
            shapes.append(replace(shape, geometry=hull, visible=False))
    told = [f"it touches nothing with {text}" for text in lost]
    if told:
        warnings.warn(f"robot {robot.name!r}: {'; '.join(told)}", ModelWarning, stacklevel=2)
    return replace(robot, shapes=tuple(shapes), remarks=(*robot.remarks, *remarks), warnings=(*robot.warnings, *told))


def _hulls(meshes: Iterable[Mesh], most: int) -> tuple[dict[Hashable, Hull], list[str], list[str]]:
    """The hulls of meshes, remarks on them, and what is wrong with those that have none: one line for all absent."""
    hulls: dict[Hashable, Hull] = {}
    remarks, lost, absent = list[str](), list[str](), list[str]()
    for key, mesh in {_key(mesh): mesh for mesh in meshes}.items():
        if not mesh.path.is_file():
            absent.append(mesh.path.name)
            continue
        try:
            hulls[key], error = simplified_hull(mesh, most)
        except ModelError as wrong:
            lost.append(str(wrong))
            continue
        if error > 0.0:
            corners = counted(len(hulls[key].vertices), "corner")
            remarks.append(f"mesh {mesh.path} touches with {corners}, up to {error:.2g} m within its whole hull")
    if absent:
        what = f"mesh {absent[0]!r}, whose file is" if len(absent) == 1 else f"meshes {listed(absent)}, whose files are"
        lost.append(f"{what} missing; name the folder of its package, or give a simpler shape")
    return hulls, remarks, lost


def _key(mesh: Mesh) -> Hashable:
    return mesh.path, mesh.scale.tobytes()
