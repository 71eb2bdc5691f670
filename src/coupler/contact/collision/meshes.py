"""Meshes touch as their convex hulls, simplified to a few corners.

As in other simulators, the convex hull fills what is hollow; give several hulls to touch a hollow side. Each corner of
a hull is a candidate contact with a plane or a height field, and each has its cost. So a hull uses the few corners of
the mesh that keep the others nearest. It lies within the full hull of the mesh, and reports how far within.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from coupler.contact.collision.mesh_files import mesh_vertices
from coupler.contact.collision.polyhedron import polyhedron
from coupler.model import Mesh, ModelError, Robot, Shape
from coupler.model.errors import warn
from coupler.model.numbers import numbers
from coupler.model.shapes import Hull
from coupler.model.wording import counted, listed

CORNERS = 32  # the largest number of corners of a hull, by default


def hull_of(mesh: Mesh, most: int = CORNERS) -> Hull:
    """The convex hull of a mesh, simplified; see `simplified_hull`."""
    return simplified_hull(mesh, most)[0]


def simplified_hull(mesh: Mesh, most: int = CORNERS) -> tuple[Hull, float]:
    """The simplified convex hull of a mesh, and how far it lies within the full one at most, m.

    Gaps to planes are too large by at most that much, and never too small.

    Args:
        mesh: the mesh, whose file is read.
        most: the largest number of corners, 4 or more. They are vertices of the mesh.

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
    """A robot with a hull in place of every mesh that touches something; `pairs_of` calls this itself.

    A visible mesh remains, but no longer touches. A mesh that cannot be read touches nothing, and a `ModelWarning`
    names it. The robot's remarks say which hulls are simplified, and by how much.

    Args:
        most: the largest number of corners of a hull.
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
    failures = [f"it touches nothing with {text}" for text in lost]
    if failures:
        warn(f"robot {robot.name!r}: {'; '.join(failures)}")
    return replace(
        robot, shapes=tuple(shapes), remarks=(*robot.remarks, *remarks), warnings=(*robot.warnings, *failures)
    )


def _hulls(meshes: Iterable[Mesh], most: int) -> tuple[dict[Hashable, Hull], list[str], list[str]]:
    """The hulls of meshes, remarks on them, and a line for each mesh without a hull; missing files share one line."""
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
            remarks.append(f"mesh {mesh.path} touches as a hull of {corners}, up to {error:.2g} m inside its full hull")
    if absent:
        what = f"mesh {absent[0]!r}, whose file is" if len(absent) == 1 else f"meshes {listed(absent)}, whose files are"
        lost.append(f"{what} missing; name the folder of its package, or give a simpler shape")
    return hulls, remarks, lost


def _key(mesh: Mesh) -> Hashable:
    return mesh.path, mesh.scale.tobytes()
