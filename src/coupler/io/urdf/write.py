"""Writing URDF: the tree in standard elements, loops and the rest in elements of ours that other readers ignore.

The frame of a URDF link is at its joint. A body whose joint is elsewhere on it is written relative to the joint, and
<meets> says where the joint is on the body. Joint types that URDF lacks are written as chains of those that it has.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from coupler.grouping import grouped
from coupler.io.actuators import put_actuators
from coupler.io.contact_pairs import put_contact_pairs
from coupler.io.couplings import locks_of, relations_of
from coupler.io.taken_names import TakenNames
from coupler.io.urdf.elements import (
    add_coupling,
    add_dynamics,
    add_keyframe,
    add_limits,
    add_spring,
    is_identity,
    put_joint,
    put_origin,
    put_part,
)
from coupler.io.urdf.joints import JOINTS, LOOPS, steps_of
from coupler.io.urdf.parts import NO_LIMIT
from coupler.io.writing import check_kinds, document, mesh_path, put, text
from coupler.model import (
    Body,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Fixed,
    Geometry,
    HeightField,
    Held,
    LoopJoint,
    Mesh,
    ModelError,
    Plane,
    Robot,
    Shape,
    Sphere,
)
from coupler.model.tree import GROUND, TreeJoint
from coupler.spatial import Transform

_GRAVITY = (0.0, 0.0, -9.81)


def urdf_text(robot: Robot, folder: Path) -> str:
    """The text of a URDF file for a robot.

    Args:
        folder: the folder of the file; paths of meshes are relative to it.

    Raises:
        ModelError: for a coupling, joint or loop that cannot be written.
    """
    check_kinds("URDF", robot, JOINTS, LOOPS)
    return document(_Writer(robot, folder).robot())


class _Writer:
    """Writes one robot.

    Attributes:
        seat: for each body the transform from URDF's link frame, which is at the body's joint, to the body's own frame.
        colours: the names of materials by their colour.
    """

    def __init__(self, robot: Robot, folder: Path) -> None:
        self.source, self.folder = robot, folder
        self.relations = relations_of(robot)
        self.seat = {joint.child: joint.meets.inverse() for joint in robot.joints if joint.meets is not None}
        self.link_names = TakenNames([GROUND, *robot.bodies, *robot.frame_names])
        self.joint_names = TakenNames(part.name for part in (*robot.joints, *robot.loops, *robot.couplings))
        self.colours: dict[str, str] = {}
        self.root = _root(robot)

    def robot(self) -> ET.Element:
        robot = self.source
        root = ET.Element("robot", name=robot.name)
        if robot.precision:
            root.set("precision", text(robot.precision))
        if not np.array_equal(robot.gravity, _GRAVITY):
            put(root, "gravity", xyz=robot.gravity)
        shapes = grouped(robot.shapes, lambda shape: shape.body)
        if self.root == GROUND:
            self.add_shapes(put(root, "link", name=GROUND), shapes.get(GROUND, []))
        for body in robot.bodies.values():
            link = put(root, "link", name=body.name, ideal=body.ideal or None)
            self.add_inertial(link, body)
            self.add_shapes(link, shapes.get(body.name, []))
        for joint in robot.joints:
            if joint.child != self.root:
                self.add_joint(root, joint)
        for body in robot.bodies.values():
            self.add_frames(root, body)
        for loop in (*robot.loops, *locks_of(robot)):
            self.add_loop(root, loop)
        for relation in self.relations.written:
            add_coupling(root, relation)
        for spring in robot.elements:
            add_spring(root, spring, lambda body, point: self.on(body, Transform.translation(point)).r)
        put_actuators(root, "actuator", robot, self.on)
        for one, other in robot.exclusions:
            put(root, "disable_collisions", link1=one, link2=other)
        put_contact_pairs(root, "contact_pair", robot)
        for name, (q, v) in robot.keyframes.items():
            add_keyframe(root, robot, name, q, v)
        return root

    def on(self, body: str, at: Transform) -> Transform:
        """A frame on a body, relative to URDF's link frame."""
        return at @ self.seat[body] if body in self.seat else at

    # Links

    def add_inertial(self, link: ET.Element, body: Body) -> None:
        """Adds mass and inertia. The inertia keeps its numbers; <origin> gives the rotation of its axes."""
        if body.massless:
            return
        inertial = put(link, "inertial")
        put_origin(inertial, self.on(body.name, Transform.translation(body.centre)))
        put(inertial, "mass", value=body.mass)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia
        put(inertial, "inertia", ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)

    def add_shapes(self, link: ET.Element, shapes: list[Shape]) -> None:
        for shape in shapes:
            name = shape.name or None
            if shape.visible:
                self.add_form(put(link, "visual", name=name), shape)
            if shape.touches or not shape.visible:
                collision = put(link, "collision", name=name, same=shape.visible or None)
                for word, value, usual in (
                    ("group", shape.group, 1),
                    ("meets", shape.meets, 1),
                    ("priority", shape.priority, 0),
                ):
                    if value != usual:
                        collision.set(word, str(value))
                for word in ("friction", "restitution", "torsion", "rolling"):
                    if (number := getattr(shape, word)) is not None:
                        collision.set(word, text(number))
                self.add_form(collision, shape)

    def add_form(self, parent: ET.Element, shape: Shape) -> None:
        put_origin(parent, self.on(shape.body, shape.at))
        self.add_geometry(put(parent, "geometry"), shape.geometry)
        if shape.colour is not None and (parent.tag == "visual" or not shape.visible):
            rgba = text(shape.colour)
            name = self.colours.setdefault(rgba, f"colour_{len(self.colours) + 1}")
            put(put(parent, "material", name=name), "color", rgba=rgba)

    def add_geometry(self, parent: ET.Element, form: Geometry) -> None:
        """Adds a shape. URDF has boxes, cylinders, spheres and meshes; other shapes are disguised as one of these."""
        if isinstance(form, Box):
            put(parent, "box", size=form.size)
        elif isinstance(form, Cylinder | Capsule):
            disguise = "capsule" if isinstance(form, Capsule) else None
            put(parent, "cylinder", radius=form.radius, length=form.length, as_=disguise)
        elif isinstance(form, Sphere):
            put(parent, "sphere", radius=form.radius)
        elif isinstance(form, Ellipsoid):
            put(parent, "sphere", radius=np.max(form.radii), radii=form.radii)
        elif isinstance(form, Plane):
            put(parent, "box", size=(20.0, 20.0, 0.002), as_="plane")
        elif isinstance(form, Mesh):
            scale = None if np.array_equal(form.scale, np.ones(3)) else form.scale
            put(parent, "mesh", filename=mesh_path(form.path, self.folder), scale=scale)
        else:
            what = "a height field" if isinstance(form, HeightField) else f"a {type(form).__name__.lower()}"
            raise ModelError(f"URDF has no words for {what}; save the robot as .sdf or .xml (MJCF)")

    def add_frames(self, root: ET.Element, body: Body) -> None:
        """Adds named frames and contact points, as links on fixed joints."""
        places = [("frame", name, at) for name, at in body.frames.items()]
        places += [("contact", name, Transform.translation(point)) for name, point in body.contacts.items()]
        for role, name, at in places:
            if role == "contact" and body.name in self.seat:  # a point has no orientation to preserve
                at = Transform(self.seat[body.name].E.T, at.r)
            put(root, "link", name=name, as_=role)
            joint = put_joint(root, self.joint_names.new(f"{name}_joint"), "fixed", body.name, name)
            put_origin(joint, self.on(body.name, at))

    # Joints

    def add_joint(self, root: ET.Element, joint: TreeJoint) -> None:
        steps = steps_of(joint.kind)
        single = len(steps) == 1
        names = [joint.name] if single else [self.joint_names.new(joint.name, i) for i in range(1, len(steps) + 1)]
        links = [self.link_names.new(joint.name, i) for i in range(1, len(steps))]
        for link in links:
            put(root, "link", name=link)
        ends = [joint.parent, *links, joint.child]
        for i, (name, (word, axis)) in enumerate(zip(names, steps, strict=True)):
            part = put_joint(root, name, word, ends[i], ends[i + 1])
            if i == 0:
                self.add_marks(part, joint)
                put_origin(part, self.on(joint.parent, joint.placement))
            if axis is not None:
                put(part, "axis", xyz=axis)
            if single:
                add_limits(part, joint.kind, joint.name)
            elif word == "prismatic":
                put(part, "limit", lower=-NO_LIMIT, upper=NO_LIMIT, effort=NO_LIMIT, velocity=NO_LIMIT)
            if i == 0:
                add_dynamics(part, joint.kind)
            if not single:
                put_part(part, joint.kind, joint.name, first=i == 0)
            if i == 1 and "pitch" in JOINTS[type(joint.kind)].numbers:
                put(part, "mimic", joint=names[0], multiplier=joint.kind.pitch)  # type: ignore[attr-defined]
            if joint.meets is not None and i == len(steps) - 1:
                put_origin(part, joint.meets, "meets", always=True)

    def add_marks(self, element: ET.Element, joint: TreeJoint) -> None:
        """Marks the joint as independent or actuated, and gives its start position."""
        if joint.independent or joint.name in self.relations.independent:
            element.set("independent", "true")
        if joint.actuated:
            element.set("actuated", "true")
        start = self.relations.start.get(joint.name, joint.start)
        if start is not None and not np.array_equal(np.atleast_1d(start), joint.kind.neutral()):
            element.set("start", text(start))

    # Loops

    def add_loop(self, root: ET.Element, loop: LoopJoint) -> None:
        kind, words = loop.kind, LOOPS[type(loop.kind)]
        element = put(root, "loop", name=loop.name, type=kind.kind)
        self.add_end(element, "predecessor", loop.predecessor, loop.predecessor_frame)
        self.add_end(element, "successor", loop.successor, loop.successor_frame)
        for tag, axis in zip(("axis", "axis2"), words.axes, strict=False):
            put(element, tag, xyz=getattr(kind, axis))
        for number in words.numbers:
            put(element, number, value=getattr(kind, number))
        for row in kind.axes if isinstance(kind, Held) else ():
            put(element, "hold", angular=row[:3], linear=row[3:])

    def add_end(self, element: ET.Element, end: str, body: str, at: Transform) -> None:
        put_origin(put(element, end, link=body), self.on(body, at))


def _root(robot: Robot) -> str:
    """The root link: the body that is fixed to the ground, if nothing else refers to the ground; or the ground."""
    first = robot.joints[0]
    ends = [end for loop in robot.loops for end in (loop.predecessor, loop.successor)]
    ends += [end for spring in robot.elements for end in (spring.first, spring.second)]
    ends += [end.body for actuator in robot.actuators if actuator.along for end in actuator.along.ends]
    ends += [shape.body for shape in robot.shapes] + [joint.parent for joint in robot.joints[1:]]
    plain = type(first.kind) is Fixed and first.name == f"ground_to_{first.child}" and first.parent == GROUND
    return (
        first.child if plain and is_identity(first.placement) and first.meets is None and GROUND not in ends else GROUND
    )
