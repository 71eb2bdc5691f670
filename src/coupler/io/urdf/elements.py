"""URDF's elements for origins, joints and their properties, and ours for what URDF lacks."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np

from coupler.io.couplings import Relation
from coupler.io.urdf.joints import JOINTS
from coupler.io.urdf.parts import NO_LIMIT
from coupler.io.writing import put, rpy_of, text
from coupler.model import Joint, PointElement, Robot
from coupler.spatial import Transform

_LIMITS = {"lower": "lower", "upper": "upper", "velocity": "velocity_limit", "effort": "effort_limit"}


# Origins


def put_origin(parent: ET.Element, X: Transform, tag: str = "origin", *, always: bool = False) -> None:
    """Adds an origin, unless it is the identity."""
    turned, moved = not np.array_equal(X.E, np.eye(3)), bool(np.any(X.r))
    if always or turned or moved:
        put(parent, tag, xyz=X.r if moved else None, rpy=rpy_of(X.E.T) if turned else None)


def is_identity(X: Transform) -> bool:
    """Whether a transform is the identity."""
    return np.array_equal(X.E, np.eye(3)) and not np.any(X.r)


# Joints


def put_joint(root: ET.Element, name: str, word: str, parent: str, child: str) -> ET.Element:
    joint = put(root, "joint", name=name, type=word)
    put(joint, "parent", link=parent)
    put(joint, "child", link=child)
    return joint


def put_part(joint: ET.Element, kind: Joint, name: str, *, first: bool) -> None:
    """Marks a joint as a part of a compound joint; the first part also gives the properties of the compound."""
    part = put(joint, "part", of=name, kind=kind.kind)
    if not first:
        return
    for number in JOINTS[type(kind)].numbers:
        part.set(number, text(getattr(kind, number)))
    for word, limits in _limits(kind).items():
        part.set(word, limits)


def add_limits(joint: ET.Element, kind: Joint, name: str) -> None:
    """Adds the limits of a joint of a type that URDF has. URDF requires numbers for some, and takes no lists."""
    limits = _limits(kind)
    if joint.get("type") in ("prismatic", "revolute"):
        limits = {"lower": text(-NO_LIMIT), "upper": text(NO_LIMIT)} | limits
    if any(" " in value for value in limits.values()):
        put_part(joint, kind, name, first=True)
    elif limits:
        put(joint, "limit", **({"effort": text(NO_LIMIT), "velocity": text(NO_LIMIT)} | limits))


def _limits(kind: Joint) -> dict[str, str]:
    """The finite limits: a number each, or a list where they differ from axis to axis."""
    limits = {word: getattr(kind, name) for word, name in _LIMITS.items()}
    return {
        word: _shortened(np.clip(values, -NO_LIMIT, NO_LIMIT))
        for word, values in limits.items()
        if np.isfinite(values).any()
    }


def add_dynamics(joint: ET.Element, kind: Joint) -> None:
    """Springs, dampers, friction and armature of a joint.

    Other readers of URDF expect damping or friction in <dynamics>, and no lists: lists go into an element that they
    do not know.
    """
    figures = {
        name: _shortened(values)
        for name in ("damping", "friction", "armature", "stiffness")
        if np.any(values := getattr(kind, name))
    }
    if not np.array_equal(kind.rest, kind.neutral()):
        figures["rest"] = text(kind.rest)
    lists = {name: figures.pop(name) for name in ("damping", "friction") if " " in figures.get(name, "")}
    if figures and not {"damping", "friction"} & set(figures):
        figures["damping"] = text(0.0)
    for tag, attributes in (("dynamics", figures), ("joint_properties", lists)):
        if attributes:
            put(joint, tag, **attributes)


def _shortened(values: np.ndarray) -> str:
    """A list of numbers as text, or one number if all are the same."""
    return text(values if np.ptp(values) else values[0])


# Couplings, springs and keyframes


def add_coupling(root: ET.Element, relation: Relation, tag: str = "coupling") -> None:
    """Adds a coupling. Its independent joints are listed if their order does not follow from its rows."""
    coupling = put(root, tag, name=relation.name)
    if tuple(dict.fromkeys(name for row in relation.rows for name in row.on)) != relation.independent:
        for name in relation.independent:
            put(coupling, "independent", joint=name)
    for row in relation.rows:
        joint = put(coupling, "joint", name=row.joint, offset=row.offset or None)
        if row.polynomial:
            put(joint, "depends_on", joint=row.on[0], polynomial=row.polynomial)
        for name, factor in zip(row.on, row.factors, strict=False):
            put(joint, "depends_on", joint=name, multiplier=factor)


def add_spring(
    root: ET.Element, spring: PointElement, on_link: Callable[[str, np.ndarray], np.ndarray], tag: str = "spring"
) -> None:
    """Adds a spring; `on_link` returns a point of a body in the frame of its link."""
    figures = {name: getattr(spring, name) for name in ("stiffness", "free_length", "pretension", "damping")}
    element = put(root, tag, name=spring.name, **{name: x or None for name, x in figures.items()})
    for end, body, point in (
        ("predecessor", spring.first, spring.first_point),
        ("successor", spring.second, spring.second_point),
    ):
        put(put(element, end, link=body), "origin", xyz=on_link(body, point))


def add_keyframe(
    root: ET.Element, robot: Robot, name: str, q: np.ndarray, v: np.ndarray, tag: str = "keyframe"
) -> None:
    """Adds a keyframe: positions of all joints, and velocities of the independent ones."""
    keyframe = put(root, tag, name=name)
    velocities = robot.joint_velocities(q, v) if v.any() else {}
    free = set(robot.independent_joints)
    for joint, position in robot.joint_positions(q).items():
        put(keyframe, "joint", name=joint, position=position, velocity=velocities.get(joint) if joint in free else None)
