"""Writing SDFormat 1.11: a loop is a joint like any other, and the robot is posed where its loops are closed.

A file's joints are at zero as it poses the robot. Where ours are not, <coupler:properties position> says where they
are, and the file's limits, springs and mimics count from there. What SDFormat lacks is in elements and attributes with
the prefix `coupler:`, which other readers pass over. docs/files.md lists them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np

from coupler.grouping import grouped
from coupler.io.actuators import put_actuators
from coupler.io.contact_pairs import put_contact_pairs
from coupler.io.couplings import Relation, locks_of, relations_of
from coupler.io.mjcf.inertias import real_inertias
from coupler.io.sdf.joints import JOINTS
from coupler.io.sdf.parts import add_axes, add_inertial, add_shape, extension, properties, put_pose, say
from coupler.io.taken_names import TakenNames
from coupler.io.urdf.elements import add_coupling, add_keyframe, add_spring, is_identity, put_origin
from coupler.io.urdf.origins import NOISE
from coupler.io.writing import check_kinds, document, put, text
from coupler.model import Body, Free, LoopJoint, ModelError, Robot, Shape, Universal
from coupler.model.errors import warn
from coupler.model.tree import GROUND, TreeJoint
from coupler.model.wording import counted
from coupler.spatial import Transform

_VERSION = "1.11"
_GRAVITY = (0.0, 0.0, -9.81)  # of a model that is in no world
_URN = "urn:coupler"  # what the prefix stands for


def sdf_text(robot: Robot, folder: Path) -> str:
    """The text of an SDFormat file for a robot.

    Args:
        folder: the folder of the file; paths of meshes are relative to it.

    Raises:
        ModelError: for a coupling, joint or loop that cannot be written.
    """
    check_kinds("SDFormat", robot, {*JOINTS, Free}, JOINTS)
    for joint in robot.joints:
        if type(joint.kind) is Free and robot.tree.place[joint.parent][0]:
            raise ModelError(f"joint {joint.name!r}: SDFormat lets bodies float in the world only; save it as .urdf")
    if locks_of(robot):
        raise ModelError(
            "SDFormat has no word for the locks of idle freedoms: build the robot without lock_idle, save it, and load "
            "it with lock_idle=True"
        )
    writer = _Writer(robot, folder)
    if writer.changed:
        warn(
            f"robot {robot.name!r}: other readers of SDFormat accept no principal moments of which the largest exceeds "
            f"the sum of the other two; for them those of {counted(len(writer.changed), 'body', 'bodies')} are changed"
        )
    return document(writer.sdf())


class _Writer:
    """Writes one robot.

    Attributes:
        links, joints: names in the file, by the robot's names; links, joints and frames of a file must not share names.
        positions: positions of all joints in the pose of the file.
        independent: joints to mark as independent, so that coordinates stay the same where loops leave a choice.
        axes: the first axis of each joint that has one.
    """

    def __init__(self, robot: Robot, folder: Path) -> None:
        self.robot, self.folder, self.relations = robot, folder, relations_of(robot)
        names = TakenNames(["", "world"])
        self.links = {name: names.new(_plain(name)) for name in robot.bodies}
        self.frames = {name: names.new(_plain(name)) for name in robot.frame_names}
        named = [part.name for part in (*robot.joints, *robot.loops)]
        self.joints = {name: names.new(_plain(name)) for name in named}
        positions = robot.joint_positions(robot.neutral())
        self.positions = {
            joint.name: _settled(np.atleast_1d(positions[joint.name])) if joint.kind.nv else np.zeros(0)
            for joint in robot.joints
        }
        self.poses = robot_poses(robot, self.positions)
        self.independent = {joint.name for joint in robot.joints if joint.independent} | self.relations.independent
        self.independent |= _chosen(robot)
        self.axes: dict[str, ET.Element] = {}
        self.changed: list[str] = []
        self.inertias = real_inertias(robot, self.changed)

    def sdf(self) -> ET.Element:
        robot = self.robot
        root = ET.Element("sdf", {"version": _VERSION, f"xmlns:{extension('')[:-1]}": _URN})
        if robot.precision:
            root.set(extension("precision"), text(robot.precision))
        shapes = grouped(robot.shapes, lambda shape: shape.body)
        top = root
        if GROUND in shapes or not np.array_equal(robot.gravity, _GRAVITY):
            top = put(root, "world", name="scene")
            say(top, "gravity", robot.gravity)
        if GROUND in shapes:
            ground = put(top, "model", name="ground" if robot.name != "ground" else "ground_model")
            say(ground, "static", True)
            self.add_shapes(put(ground, "link", name="ground"), shapes[GROUND])
        model = put(top, "model", **_named(robot.name, _plain(robot.name)))
        if any(shape.touches for shape in robot.shapes if shape.body != GROUND):
            say(model, "self_collide", True)
        carriers = {joint.child: joint for joint in robot.joints}
        for body in robot.bodies.values():
            self.add_link(model, body, carriers[body.name], shapes.get(body.name, []))
        for joint in robot.joints:
            if type(joint.kind) is not Free:
                self.add_joint(model, joint)
        for loop in robot.loops:
            self.add_loop(model, loop)
        for body in robot.bodies.values():
            self.add_frames(model, body)
        for relation in self.relations.written:
            self.add_relation(model, relation)
        for spring in robot.elements:
            add_spring(model, spring, lambda body, point: point, extension("spring"))
        put_actuators(model, extension("actuator"), robot)
        for one, other in robot.exclusions:
            put(model, extension("exclude"), link1=one, link2=other)
        put_contact_pairs(model, extension("contact_pair"), robot)
        for name, (q, v) in robot.keyframes.items():
            add_keyframe(model, robot, name, q, v, extension("keyframe"))
        for element in model.iter():  # other readers want names to be different from those of links and joints
            if element.tag.startswith(extension("")) and "name" in element.attrib:
                element.attrib = {extension("name"): element.attrib.pop("name"), **element.attrib}
        return root

    # Links

    def add_link(self, model: ET.Element, body: Body, joint: TreeJoint, shapes: list[Shape]) -> None:
        link = put(model, "link", **_named(body.name, self.links[body.name]))
        if body.ideal:
            link.set(extension("ideal"), "true")
        if type(joint.kind) is Free:
            put_pose(link, self.poses[body.name])
            marks = {name: True for name in ("independent", "actuated") if getattr(joint, name)}
            floating = put(link, extension("floating"), name=joint.name, **marks, **properties(joint.kind))
            placement = joint.placement @ self.poses[joint.parent]  # its parent does not move
            if not is_identity(placement) or joint.meets is not None:  # q is not the pose of the link itself
                floating.set("position", text(self.positions[joint.name]))
                put_origin(floating, placement)
                put_origin(floating, Transform.identity() if joint.meets is None else joint.meets, "meets")
        else:
            on_link = Transform.identity() if joint.meets is None else joint.meets.inverse()
            put_pose(link, on_link, self.joints[joint.name])
        add_inertial(link, body, self.inertias.get(body.name))
        self.add_shapes(link, shapes)

    def add_shapes(self, link: ET.Element, shapes: list[Shape]) -> None:
        names = TakenNames()
        for i, shape in enumerate(shapes, 1):
            name = names.new(shape.name) if shape.name else names.new("shape", i)
            add_shape(link, shape, name, self.folder)

    def add_frames(self, model: ET.Element, body: Body) -> None:
        """Adds named frames, and contact points as frames."""
        places = [("", name, at) for name, at in body.frames.items()]
        places += [("contact", name, Transform.translation(point)) for name, point in body.contacts.items()]
        for role, name, at in places:
            frame = put(model, "frame", **_named(name, self.frames[name]), attached_to=self.links[body.name])
            if role:
                frame.set(extension("as"), role)
            put_pose(frame, at)

    # Joints

    def add_joint(self, model: ET.Element, joint: TreeJoint) -> None:
        position = self.positions[joint.name]
        X = joint.kind.transform(position)
        element = self.put_joint(model, joint.name, JOINTS[type(joint.kind)][0], joint.parent, joint.child)
        put_pose(element, X @ joint.placement, self.links.get(joint.parent, "__model__"))
        axes = add_axes(element, joint.kind, X.E, position)
        if axes:
            self.axes[joint.name] = axes[0]
        extras: dict[str, Any] = {}
        if not np.array_equal(position, joint.kind.neutral()):
            extras["position"] = position
        if joint.name in self.independent:
            extras["independent"] = True
        if joint.actuated:
            extras["actuated"] = True
        extras |= properties(joint.kind)
        if extras:
            put(element, extension("properties"), **extras)

    def put_joint(self, model: ET.Element, name: str, word: str, parent: str, child: str) -> ET.Element:
        joint = put(model, "joint", **_named(name, self.joints[name]), type=word)
        say(joint, "parent", self.links.get(parent, "world"))
        say(joint, "child", self.links[child])
        return joint

    def add_loop(self, model: ET.Element, loop: LoopJoint) -> None:
        """Adds a joint that closes a loop. Its child must not be the world."""
        kind, ends = loop.kind, [(loop.predecessor, loop.predecessor_frame), (loop.successor, loop.successor_frame)]
        names, plain = JOINTS[type(kind)][1], Transform.identity()  # type: ignore[index]
        directions = {name: getattr(kind, name) for name in names}
        if loop.successor == GROUND:
            ends = ends[::-1]
            directions = {name: -directions[other] for name, other in zip(names, reversed(names), strict=True)}
        given = directions | ({"pitch": kind.pitch} if JOINTS[type(kind)][0] == "screw" else {})  # type: ignore
        (parent, on_parent), (child, on_child) = ends
        turn = (on_child @ self.poses.get(child, plain)).E @ (on_parent @ self.poses.get(parent, plain)).E.T
        element = self.put_joint(model, loop.name, JOINTS[type(kind)][0], parent, child)  # type: ignore[index]
        put_pose(element, on_child)
        turned = turn if isinstance(kind, Universal) else np.eye(3)
        add_axes(element, type(kind)(**given), turned, np.zeros(3))  # type: ignore[arg-type]
        say(put(put(element, "physics"), "simbody"), "must_be_loop_joint", True)

    # Couplings

    def add_relation(self, model: ET.Element, relation: Relation) -> None:
        """Writes a linear relation of two joints as a <mimic>, and any other one as an element of coupler's own."""
        row = relation.rows[0]
        axis = self.axes.get(row.joint)
        single = len(relation.rows) == len(relation.independent) == len(row.factors) == 1
        if not single or axis is None or axis.find("mimic") is not None:
            add_coupling(model, relation, extension("coupling"))
            return
        (leader,), (multiplier,) = row.on, row.factors
        offset = row.offset + multiplier * self.positions[leader][0] - self.positions[row.joint][0]
        mimic = put(axis, "mimic", joint=self.joints[leader])
        if relation.name != f"{row.joint}_mimic":
            mimic.set(extension("name"), relation.name)
        say(mimic, "multiplier", multiplier)
        say(mimic, "offset", _settled(np.array(offset)))
        say(mimic, "reference", 0.0)


def robot_poses(robot: Robot, positions: dict[str, np.ndarray]) -> dict[str, Transform]:
    """The transforms from the world to all bodies, with joints at the given positions."""
    carried = grouped(robot.joints, lambda joint: joint.parent)
    poses, pending = {GROUND: Transform.identity()}, [GROUND]
    for body in pending:  # which grows while it is iterated
        for joint in carried.get(body, ()):
            X = joint.kind.transform(positions[joint.name]) @ joint.placement @ poses[body]
            poses[joint.child] = X if joint.meets is None else joint.meets.inverse() @ X
            pending.append(joint.child)
    return poses


def _chosen(robot: Robot) -> set[str]:
    """The independent joints of loops, which a file marks so that rounding cannot change the choice."""
    tree, clusters, free = robot.tree, robot.cluster_tree, set(robot.embedding.v_index.tolist())
    closed = {
        clusters.cluster_of[tree.place[end][0]] for loop in robot.loops for end in (loop.predecessor, loop.successor)
    }
    return {
        joint
        for joint, link in tree.number.items()
        if clusters.cluster_of[link] in closed and free.issuperset(tree.velocities(link).tolist())
    }


def _plain(name: str) -> str:
    """A name as SDFormat allows it."""
    name = name.replace("::", "_")
    return name.strip("_") or "part" if name.startswith("__") and name.endswith("__") else name


def _named(name: str, in_file: str) -> dict[str, str]:
    """The attribute `name`, and the robot's own name in another attribute where the two differ."""
    return {"name": in_file} if name == in_file else {"name": in_file, extension("name"): name}


def _settled(position: np.ndarray) -> np.ndarray:
    """A position with rounding errors around zero removed."""
    return np.where(np.abs(position) < NOISE, 0.0, position)
