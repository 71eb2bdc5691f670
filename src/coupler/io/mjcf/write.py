"""Writing MJCF: nested bodies, joints as hinges, slides and balls, loops as equalities.

A joint's anchor and axis are given in the frame of its body, so that bodies keep their own frames. A ball joint whose
frame is rotated against its body would have other coordinates in MuJoCo; there a massless body has the joint, and the
real one is welded to it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from coupler.grouping import grouped
from coupler.io.couplings import relations_of
from coupler.io.mjcf.attributes import figures, inertial, place
from coupler.io.mjcf.contacts import write_contact_points, write_pairs
from coupler.io.mjcf.inertias import at_zero, outwards, real_inertias
from coupler.io.mjcf.joints import JOINTS, Step, is_axial, steps_of
from coupler.io.mjcf.write_actuators import add_actuators
from coupler.io.mjcf.write_equalities import add_couplings, add_keyframes, add_loops, add_springs
from coupler.io.mjcf.write_shapes import GeomWriter
from coupler.io.mjcf.write_transmissions import SiteWriter
from coupler.io.precision import PRECISION
from coupler.io.taken_names import TakenNames
from coupler.io.writing import check_kinds, document, put
from coupler.model import ModelError, Robot
from coupler.model.errors import warn
from coupler.model.tree import GROUND, TreeJoint
from coupler.model.wording import counted, listed
from coupler.spatial import Transform

_DEEPEST = 480  # nested bodies; MuJoCo's reader gives up at 500 nested elements


def mjcf_text(robot: Robot, folder: Path) -> str:
    """The text of an MJCF file for a robot.

    One `ModelWarning` lists what MJCF cannot express, if the motion does not depend on it.

    Args:
        folder: the folder of the file; paths of meshes are relative to it.

    Raises:
        ModelError: for a coupling, loop or joint that MJCF cannot express or MuJoCo rejects.
    """
    check_kinds("MJCF", robot, JOINTS)
    writer = _Writer(robot, folder)
    root = writer.mujoco()
    remarks = []
    if writer.left_out:
        remarks.append("not in MJCF: " + ", ".join(counted(count, *words) for words, count in writer.left_out.items()))
    if writer.changed:
        remarks.append(
            "MuJoCo accepts no principal moments of which the largest exceeds the sum of the other two, as those of "
            f"{'; '.join(writer.changed)}, kg m²; .urdf keeps them"
        )
    for name, other in writer.body_names.items():
        remarks.append(f"body {name!r} is {other!r} in MJCF, which reserves its name")
    independent = robot.independent_joints
    order = list(dict.fromkeys(joint.name for joint, _, _ in writer.steps if joint.name in independent))
    if order != independent:  # so q and v will have another order, too
        remarks.append(f"in MJCF its joints come depth first: {listed(order)}")
    if remarks:
        warn(f"robot {robot.name!r}: {'; '.join(remarks)}")
    return document(root)


class _Writer:
    """Writes one robot.

    Attributes:
        element: the elements of the bodies and of the ground, by name.
        steps: the MJCF joints in MuJoCo's order: the robot's joint that each belongs to, the step, and the step's name.
        position: for each joint of the robot, the name of the MJCF joint that holds its first position.
        left_out: counts of what is not written, by a phrase for one and a phrase for several.
        changed: descriptions of inertias that MuJoCo rejects, and of what is written instead.
        body_names: for bodies that are renamed, their names in MJCF.
    """

    def __init__(self, robot: Robot, folder: Path) -> None:
        self.robot, self.folder = robot, folder
        self.changed: list[str] = []
        self.inertias, self.relations = real_inertias(robot, self.changed), relations_of(robot)
        self.joint_names = TakenNames(part.name for part in (*robot.joints, *robot.loops, *robot.couplings))
        self.frame_names = TakenNames([GROUND, "world", *robot.bodies, *robot.frame_names])
        self.element: dict[str, ET.Element] = {}
        self.steps: list[tuple[TreeJoint, Step, str]] = []
        self.position: dict[str, str] = {}
        self.left_out: dict[tuple[str, str], int] = {}
        reserved = [name for name in ("world",) if name in robot.bodies]
        self.body_names = {name: self.frame_names.new(f"{name}_body") for name in reserved}

    def mujoco(self) -> ET.Element:
        robot = self.robot
        root = ET.Element("mujoco", model=robot.name)
        flags = {"inertiafromgeom": False, "balanceinertia": False, "autolimits": True}
        put(root, "compiler", angle="radian", boundmass=0.0, **flags)
        put(root, "option", gravity=robot.gravity)
        assets, world, equalities = put(root, "asset"), put(root, "worldbody"), put(root, "equality")
        tendons, motors, keys = put(root, "tendon"), put(root, "actuator"), put(root, "keyframe")
        self.element[GROUND] = world
        self.add_bodies()
        geoms = GeomWriter(robot, self.folder, self.element, self.leave)
        geoms.write(assets)
        self.add_screws(equalities)
        add_loops(robot, equalities, self.element, self.joint_names, self.frame_names)
        add_couplings(self.relations, equalities, tendons, self.position, self.joint_names)
        add_springs(robot, tendons, self.element, self.frame_names)
        sites = SiteWriter(self.element, self.frame_names)
        for words in add_actuators(robot, motors, tendons, self.steps, self.joint_names, sites):
            self.leave(*words)
        add_keyframes(robot, keys, self.steps)
        self.count_left_out()
        if robot.precision:
            put(put(root, "custom"), "numeric", name=PRECISION, data=robot.precision)
        write_contact_points(robot, root)
        self.leave("contact pair", "contact pairs", write_pairs(robot, root, self.body_names, geoms.names))
        for empty in [child for child in root if not len(child) and child.tag not in ("compiler", "option")]:
            root.remove(empty)
        return root

    # Bodies

    def add_bodies(self) -> None:
        """Adds all bodies, depth first, which is MuJoCo's order of joints."""
        carried = grouped(outwards(self.robot), lambda joint: joint.parent)
        bare = self.bare(carried)
        lost = [joint for joint in self.robot.joints if joint.child in bare and joint.child != f"{joint.name}_carrier"]
        self.leave("body without mass between two joints", "bodies without mass between joints", len(lost))
        pending = [([joint], 1) for joint in reversed(carried[GROUND])]
        while pending:
            chain, depth = pending.pop()
            last = chain[-1]
            children = carried.get(last.child, [])
            if last.child in bare:
                pending.append(([*chain, children[0]], depth))
                continue
            if depth > _DEEPEST:
                raise ModelError(
                    f"body {last.child!r} hangs on {depth} others in a row; MuJoCo reads {_DEEPEST}: save it as .urdf"
                )
            self.add_body(chain)
            pending += [([joint], depth + 1) for joint in reversed(children)]

    def bare(self, carried: dict[str, list[TreeJoint]]) -> set[str]:
        """Massless bodies that only separate two joints, and are left out: MuJoCo allows several joints in one body."""
        robot = self.robot
        used = {end for loop in robot.loops for end in (loop.predecessor, loop.successor)}
        used |= {end for spring in robot.elements for end in (spring.first, spring.second)}
        used |= {end.body for actuator in robot.actuators if actuator.along for end in actuator.along.ends}
        used |= {shape.body for shape in robot.shapes}
        used |= {name for name, body in robot.bodies.items() if not body.massless or body.frames or body.contacts}
        return {
            joint.child
            for joints in carried.values()
            for joint in joints
            if joint.child not in used
            and is_axial(joint.kind)
            and len(carried.get(joint.child, ())) == 1
            and is_axial(carried[joint.child][0].kind)
        }

    def add_body(self, chain: list[TreeJoint]) -> None:
        """Adds a body, with the joints between it and its parent."""
        first, last = chain[0], chain[-1]
        pose = Transform.identity()
        for joint in chain:
            pose = at_zero(joint) @ pose
        parent, ends = self.element[first.parent], last.meets
        turned = ends is not None and not np.array_equal(ends.E, np.eye(3))
        if ends is not None and (last.kind.floats or (last.kind.nq != last.kind.nv and turned)):
            carrier = put(parent, "body", name=self.frame_names.new(f"{last.child}_carrier"), **place(ends @ pose))
            self.add_joints(carrier, chain, ends.inverse())
            body = put(carrier, "body", name=self.body_names.get(last.child, last.child), **place(ends.inverse()))
        else:
            if self.stands(last) and len(chain) == 1 and last.start is not None:
                pose = last.kind.placed(last.start) @ pose
            body = put(parent, "body", name=self.body_names.get(last.child, last.child), **place(pose))
            self.add_joints(body, chain, Transform.identity())
        self.element[last.child] = body
        if last.child in self.inertias:
            body.insert(0, put(ET.Element("body"), "inertial", **inertial(self.inertias[last.child])))
        source = self.robot.bodies[last.child]
        for name, at in source.frames.items():
            put(body, "site", name=name, **place(at))
        for name, point in source.contacts.items():
            put(body, "site", name=name, pos=point)

    def add_joints(self, body: ET.Element, chain: list[TreeJoint], seat: Transform) -> None:
        """Adds the joints between a body and its parent; `seat` leads from the element's frame to the last body's."""
        below = seat.inverse()  # from the frame of a joint's child to the element's, with joints at zero
        placed: list[tuple[TreeJoint, Transform]] = []
        for joint in reversed(chain):
            placed.append((joint, below if joint.meets is None else below @ joint.meets.inverse()))
            below = below @ at_zero(joint)
        for joint, X in reversed(placed):
            steps = steps_of(joint.kind, loose=joint.parent == GROUND)
            for i, step in enumerate(steps, 1):
                name = joint.name if len(steps) == 1 else self.joint_names.new(joint.name, i)
                axis, point = None if step.axis is None else X.E @ step.axis, X.inverse().r
                anchor = point if step.type in ("hinge", "ball") and np.any(point) else None
                put(
                    body,
                    "joint",
                    name=name,
                    type=step.type,
                    pos=anchor,
                    axis=axis,
                    **figures(joint.name, joint.kind, step),
                )
                self.steps.append((joint, step, name))
                self.position.setdefault(joint.name, name)

    def add_screws(self, equalities: ET.Element) -> None:
        """Couples the slide of each screw to its hinge by an equality, since MuJoCo has no screws."""
        for joint, step, name in self.steps:
            if not step.entries:
                turn, pitch = self.position[joint.name], joint.kind.pitch  # type: ignore[attr-defined]
                equality = self.joint_names.new(f"{joint.name}_pitch")
                put(equalities, "joint", name=equality, joint1=name, joint2=turn, polycoef=(0, pitch, 0, 0, 0))

    def stands(self, joint: TreeJoint) -> bool:
        """Whether a joint lets its body float in the world, so that MuJoCo lets the body start in any place."""
        return joint.kind.floats and joint.parent == GROUND and joint.meets is None

    # What is not written

    def leave(self, one: str, many: str, count: int = 1) -> None:
        if count:
            self.left_out[one, many] = self.left_out.get((one, many), 0) + count

    def count_left_out(self) -> None:
        """Counts what MJCF cannot express."""
        joints = [joint for joint in self.robot.joints if joint.kind.nv]
        starts = [joint for joint in joints if joint.start is not None]
        balls = [joint for joint in joints if joint.kind.nq != joint.kind.nv]
        fast = [joint for joint in joints if np.isfinite(joint.kind.velocity_limit).any()]
        strong = [joint for joint in balls if np.isfinite(joint.kind.effort_limit).any()]
        away = [joint for joint in starts if not np.array_equal(np.asarray(joint.start), joint.kind.neutral())]
        away = [joint for joint in away if not self.stands(joint)]
        marked = [joint for joint in joints if joint.independent]
        bouncing = [shape for shape in self.robot.shapes if shape.restitution is not None]
        self.leave("restitution of a shape", "restitutions of shapes", len(bouncing))
        self.leave("velocity limit of a joint", "velocity limits of joints", len(fast))
        self.leave("effort limit of a ball or free joint", "effort limits of ball or free joints", len(strong))
        self.leave("start position of a joint", "start positions of joints", len(away))
        still = [joint for joint in joints if np.any(joint.kind.lower == joint.kind.upper)]
        weak = [joint for joint in joints if np.any(joint.kind.effort_limit == 0.0)]
        self.leave("limit of a joint that cannot move", "limits of joints that cannot move", len(still))
        self.leave("effort limit of zero", "effort limits of zero", len(weak))
        self.leave("mark of an independent joint", "marks of independent joints", len(marked))
