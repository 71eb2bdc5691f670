"""Writing what constrains bodies in MJCF beside their joints: equalities, springs as tendons, and keyframes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coupler.io.couplings import Relations, Row, locks_of
from coupler.io.mjcf.attributes import place
from coupler.io.mjcf.joints import EQUALITIES, Step
from coupler.io.taken_names import TakenNames
from coupler.io.writing import put
from coupler.model import LoopJoint, ModelError, PointElement, Revolute, Robot
from coupler.model.tree import TreeJoint
from coupler.rotation import quaternion_from_matrix
from coupler.spatial import Transform

Elements = Mapping[str, ET.Element]  # elements of bodies, by name

_COEFFICIENTS = 5  # of MuJoCo's polynomials


def add_loops(robot: Robot, equalities: ET.Element, bodies: Elements, names: TakenNames, places: TakenNames) -> None:
    """Writes loops as equalities of two sites each.

    A revolute loop becomes two points held on its axis; one of their six rows is redundant.

    Raises:
        ModelError: for a loop of a kind that MuJoCo has no equality for.
    """
    for loop in (*robot.loops, *locks_of(robot)):
        tag = EQUALITIES.get(type(loop.kind))
        if tag is None:
            raise ModelError(
                f"loop {loop.name!r}: MJCF has fixed, spherical and revolute loops, but no {loop.kind.kind} loops; "
                "save the robot as .urdf"
            )
        if not isinstance(loop.kind, Revolute):
            _add_equality(equalities, tag, loop.name, loop, bodies, places)
            continue
        for i, along in enumerate((np.zeros(3), loop.kind.axis), 1):
            _add_equality(equalities, tag, names.new(loop.name, i), loop, bodies, places, Transform.translation(along))


def _add_equality(
    equalities: ET.Element,
    tag: str,
    name: str,
    loop: LoopJoint,
    bodies: Elements,
    places: TakenNames,
    shift: Transform | None = None,
) -> None:
    sites = []
    for i, (body, at) in enumerate(
        ((loop.predecessor, loop.predecessor_frame), (loop.successor, loop.successor_frame)), 1
    ):
        at = at if shift is None else shift @ at
        at = at if tag == "weld" else Transform.translation(at.r)
        sites.append(_site(bodies[body], places, name, i, **place(at)))
    put(equalities, tag, name=name, site1=sites[0], site2=sites[1])


def _site(body: ET.Element, places: TakenNames, name: str, number: int, **at: Any) -> str:
    """The name of a site at a place of a body: an existing one if there is (as after reading MJCF), else a new one."""
    site = put(body, "site", **at)
    for other in body.findall("site"):
        if {word: value for word, value in other.attrib.items() if word != "name"} == site.attrib and other is not site:
            body.remove(site)
            return other.attrib["name"]
    site.attrib = {"name": places.new(name, number), **site.attrib}
    return site.attrib["name"]


def add_couplings(
    relations: Relations, equalities: ET.Element, tendons: ET.Element, position: Mapping[str, str], names: TakenNames
) -> None:
    """Writes couplings as equalities of two joints each, or of a tendon whose length is a sum of joint positions.

    Raises:
        ModelError: for a polynomial of too high a degree.
    """
    for relation in relations.written:
        for i, row in enumerate(relation.rows, 1):
            name = relation.name if len(relation.rows) == 1 else names.new(relation.name, i)
            if len(row.on) > 1:
                tendon = put(tendons, "fixed", name=name)
                for joint, factor in zip((row.joint, *row.on), (1.0, *(-f for f in row.factors)), strict=True):
                    put(tendon, "joint", joint=position[joint], coef=factor)
                put(equalities, "tendon", name=name, tendon1=name, polycoef=[row.offset, 0.0, 0.0, 0.0, 0.0])
                continue
            ends = {"joint1": position[row.joint], "joint2": position[row.on[0]] if row.on else None}
            put(equalities, "joint", name=name, **ends, polycoef=_polynomial(relation.name, row))


def _polynomial(name: str, row: Row) -> np.ndarray:
    """The coefficients of a row, padded with zeros to the number that MuJoCo expects."""
    coefficients = np.array(row.polynomial or (row.offset, *row.factors))
    if coefficients[_COEFFICIENTS:].any():
        raise ModelError(
            f"coupling {name!r}: its polynomial has degree {np.flatnonzero(coefficients)[-1]}, and MJCF allows at "
            f"most {_COEFFICIENTS - 1}; save the robot as .urdf"
        )
    return np.pad(coefficients[:_COEFFICIENTS], (0, max(0, _COEFFICIENTS - len(coefficients))))


def add_springs(robot: Robot, tendons: ET.Element, bodies: Elements, places: TakenNames) -> None:
    """Writes springs and dampers as tendons over two sites."""
    for spring in robot.elements:
        length = _springlength(spring)
        figures = {"stiffness": spring.stiffness or None, "damping": spring.damping or None, "springlength": length}
        tendon = put(tendons, "spatial", name=spring.name, **figures)
        ends = (spring.first, spring.first_point), (spring.second, spring.second_point)
        for i, (body, point) in enumerate(ends, 1):
            put(tendon, "site", site=_site(bodies[body], places, spring.name, i, pos=point))


def _springlength(spring: PointElement) -> float | None:
    """The length at which a spring stops pulling, m, which pretension makes shorter; None if it has no stiffness.

    Raises:
        ModelError: if the spring would pull at any length.
    """
    if not spring.stiffness and not spring.pretension:
        return None
    length = spring.free_length - spring.pretension / spring.stiffness if spring.stiffness else -1.0
    if length < 0.0:
        raise ModelError(
            f"spring {spring.name!r}: its pretension of {spring.pretension:g} N pulls at any length, which MJCF cannot "
            "express; save the robot as .urdf"
        )
    return length


def add_keyframes(robot: Robot, keys: ET.Element, steps: Sequence[tuple[TreeJoint, Step, str]]) -> None:
    """Writes keyframes in MuJoCo's order and coordinates."""
    for name, (q, v) in robot.keyframes.items():
        positions = robot.joint_positions(q)
        velocities = robot.joint_velocities(q, v) if v.any() else {}
        qpos, qvel = [], []
        for joint, step, _ in steps:
            p = np.atleast_1d(positions[joint.name])
            w = np.atleast_1d(velocities.get(joint.name, np.zeros(joint.kind.nv)))
            qpos.append(step_position(joint, step, p))
            qvel.append(step_velocity(joint, step, p, w))
        put(keys, "key", name=name, qpos=np.concatenate(qpos), qvel=np.concatenate(qvel) if velocities else None)


def step_position(joint: TreeJoint, step: Step, p: np.ndarray) -> np.ndarray:
    """The position of a step, given its joint's position p."""
    if step.type == "free":
        X = joint.kind.transform(p) @ joint.placement
        return np.concatenate([X.r, quaternion_from_matrix(X.E.T)])
    if step.type == "ball":
        return p[-4:]
    if not step.entries:  # the slide of a screw
        return p * joint.kind.pitch  # type: ignore[attr-defined]
    return p[[step.entries[0] % 3]]  # the slides of a free joint are its entries 3, 4 and 5


def step_velocity(joint: TreeJoint, step: Step, p: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The velocity of a step, given its joint's position p and velocity w.

    Slides of a free joint are along the axes of the body that carries it.
    """
    if joint.kind.nv == 6:
        linear = joint.kind.transform(p).E.T @ w[3:]
        if step.type == "free":
            return np.concatenate([joint.placement.E.T @ linear, w[:3]])
        return w[:3] if step.type == "ball" else linear[[step.entries[0] - 3]]
    if not step.entries:
        return w * joint.kind.pitch  # type: ignore[attr-defined]
    return w[step.entries]
