"""How other libraries lay out the joints of a robot in their arrays, from their models or from what is known of them.

Models are only read, by their attributes: neither Pinocchio nor MuJoCo is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from coupler.grouping import grouped
from coupler.io.mjcf.joints import steps_of as mjcf_steps
from coupler.io.mjcf.names import PartNames
from coupler.io.urdf.joints import steps_of as urdf_steps
from coupler.model import ModelError, Robot, Spherical
from coupler.model.robot import check_robot
from coupler.model.tree import GROUND, TreeJoint

Form = Literal["number", "circle", "ball", "free", "planar"]
# Entries of a position and of a velocity: circles are (cos, sin), balls quaternions, planes (x, y, cos, sin).
SIZES: dict[Form, tuple[int, int]] = {
    "number": (1, 1),
    "circle": (2, 1),
    "ball": (4, 3),
    "free": (7, 6),
    "planar": (4, 3),
}


@dataclass(frozen=True)
class Slot:
    """A joint of another library, and its place in that library's arrays.

    Attributes:
        name: the joint's name there.
        body: the body that it carries; empty if that is not known.
        form: how its position is written.
        q, v: the indices of its first entries.
    """

    name: str
    body: str
    form: Form
    q: int
    v: int


@dataclass(frozen=True, eq=False)
class LibraryLayout:
    """The layout of another library's arrays.

    Attributes:
        library: the library's name.
        slots: the joints.
        rest: (nq,), positions for joints that the robot does not move.
        nv: the number of entries of a velocity.
        dependent: names of joints that have no entries there, since they follow from others.
    """

    library: Literal["MuJoCo", "Pinocchio"]
    slots: tuple[Slot, ...]
    rest: np.ndarray
    nv: int
    dependent: frozenset[str] = frozenset()


def _stacked(library: Any, joints: list[tuple[str, str, Form]]) -> LibraryLayout:
    """The layout of joints whose entries follow each other."""
    slots, q, v = [], 0, 0
    for name, body, form in joints:
        slots.append(Slot(name, body, form, q, v))
        q, v = q + SIZES[form][0], v + SIZES[form][1]
    return LibraryLayout(library, tuple(slots), np.zeros(q), v)


def _outwards(robot: Robot, alphabetical: bool) -> Iterator[TreeJoint]:
    """All joints of the robot, depth first."""
    joints = sorted(robot.joints, key=lambda joint: joint.name) if alphabetical else robot.joints
    carried = grouped(joints, lambda joint: joint.parent)
    pending = carried.get(GROUND, [])[::-1]
    while pending:
        joint = pending.pop()
        yield joint
        pending += carried.get(joint.child, [])[::-1]


# MuJoCo


_MUJOCO: tuple[Form, ...] = ("free", "ball", "number", "number")  # by mjtJoint: free, ball, slide, hinge
_JOINT_EQUALITY = 2


def mujoco_layout(robot: Robot, model: Any = None) -> LibraryLayout:
    """The layout of a MuJoCo model; by default of the one that MuJoCo makes of the robot's MJCF."""
    check_robot(robot)
    if model is None:
        joints: list[tuple[str, str, Form]] = []
        for joint in _outwards(robot, alphabetical=False):
            steps = mjcf_steps(joint.kind, loose=joint.parent == GROUND)
            if joint.kind.floats and len(steps) > 1:
                raise ModelError(f"joint {joint.name!r}: MuJoCo has no free joints between bodies; only on the ground")
            for i, step in enumerate(steps, 1):
                form: Form = "number" if step.axis is not None else "ball" if step.type == "ball" else "free"
                joints.append((joint.name if len(steps) == 1 else f"{joint.name}_{i}", joint.child, form))
        return _stacked("MuJoCo", joints)
    if not hasattr(model, "jnt_qposadr"):
        raise ModelError(f"model must be an MjModel of MuJoCo, got {type(model).__name__}")
    names = _mujoco_names(model)
    slots = tuple(
        Slot(name, names.bodies[model.jnt_bodyid[i]], _MUJOCO[model.jnt_type[i]], *map(int, places))
        for i, (name, places) in enumerate(
            zip(names.joints, zip(model.jnt_qposadr, model.jnt_dofadr, strict=True), strict=True)
        )
    )
    rest = np.array(model.qpos0)
    for i in range(model.neq):  # a joint that is held by an equality stays where that one holds it
        if model.eq_active0[i] and model.eq_type[i] == _JOINT_EQUALITY and model.eq_obj2id[i] < 0:
            rest[model.jnt_qposadr[model.eq_obj1id[i]]] += model.eq_data[i, 0]
    return LibraryLayout("MuJoCo", slots, rest, int(model.nv))


def _mujoco_names(model: Any) -> PartNames:
    """The names of joints and bodies as coupler loads the same model; MuJoCo leaves some of them without a name."""

    def listed(count: int, of: Any) -> list[str]:
        return [of(i).name for i in range(count)]

    names = {
        "body": listed(model.nbody, model.body),
        "jnt": listed(model.njnt, model.joint),
        "site": listed(model.nsite, model.site),
        "equality": listed(model.neq, model.equality),
    }
    sizes = {key: getattr(model, key) for key in ("nbody", "njnt", "nsite", "neq")}
    places = {key: getattr(model, key) for key in ("site_bodyid", "jnt_bodyid", "eq_type")}
    mjcf: Any = SimpleNamespace(names=names, **sizes, **places)
    return PartNames(mjcf)


# Pinocchio


_NUMBERS = ("JointModelR", "JointModelP", "JointModelH")  # revolute, prismatic, helical ones, about any axis
_PINOCCHIO: dict[str, Form] = {
    "JointModelFreeFlyer": "free",
    "JointModelSpherical": "ball",
    "JointModelPlanar": "planar",
}

_WORDS: dict[str, Form] = {"revolute": "number", "prismatic": "number", "continuous": "circle"}
_WORDS |= {"floating": "free", "planar": "planar"}


def pinocchio_layout(robot: Robot, model: Any = None) -> LibraryLayout:
    """The layout of a Pinocchio model; by default of the one that Pinocchio makes of the robot's URDF."""
    check_robot(robot)
    if model is None:
        joints: list[tuple[str, str, Form]] = []
        for joint in _outwards(robot, alphabetical=True):
            forms = _pinocchio_forms(joint)
            for i, form in enumerate(forms, 1):
                joints.append((joint.name if len(forms) == 1 else f"{joint.name}_{i}", joint.child, form))
        return _stacked("Pinocchio", joints)
    if not hasattr(model, "jointPlacements"):
        raise ModelError(f"model must be a pinocchio.Model, got {type(model).__name__}")
    bodies: dict[int, str] = {}
    for frame in model.frames:
        if str(frame.type) == "BODY":
            bodies.setdefault(int(frame.parentJoint), str(frame.name))
    slots, dependent, rest = [], set(), np.zeros(model.nq)
    for i, (name, joint) in enumerate(zip(model.names, model.joints, strict=True)):
        if i == 0:
            continue  # the universe
        if joint.nq == 0:  # it mimics another
            dependent.add(str(name))
            continue
        form = _pinocchio_form(str(name), joint)
        slots.append(Slot(str(name), bodies.get(i, ""), form, int(joint.idx_q), int(joint.idx_v)))
        if form != "number":
            rest[joint.idx_q + {"circle": 0, "ball": 3, "free": 6, "planar": 2}[form]] = 1.0
    return LibraryLayout("Pinocchio", tuple(slots), rest, int(model.nv), frozenset(dependent))


def _pinocchio_forms(joint: TreeJoint) -> list[Form]:
    """The forms in which Pinocchio reads a joint from coupler's URDF; balls, which URDF lacks, as Pinocchio's own."""
    if isinstance(joint.kind, Spherical):
        return ["ball"]
    return [_WORDS[word] for word, _ in urdf_steps(joint.kind) if word != "fixed"]


def _pinocchio_form(name: str, joint: Any) -> Form:
    kind = joint.shortname()
    if kind in _PINOCCHIO:
        return _PINOCCHIO[kind]
    if kind.startswith(_NUMBERS) and joint.nv == 1:
        return "circle" if joint.nq == 2 else "number"
    raise ModelError(f"joint {name!r} of Pinocchio's model is a {kind}, for which there is no conversion")
