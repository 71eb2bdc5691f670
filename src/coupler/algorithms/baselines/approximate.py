"""Robots with rotors approximated as armatures, as in most simulators, or left out [001, §II-C].

A rotor that turns N times as fast as a link is welded to the body that carries it, and N² times its inertia is added to
the link's joint as an armature. This neglects the coupling of joints by spinning rotors, with each other and with the
motion of the carrier. The paper also considers robots without rotors, whose dynamics it calls unconstrained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from coupler.model import Body, Fixed, ModelError, Robot
from coupler.model.compose import compose
from coupler.model.tree import TreeJoint

# kg m²: smaller armatures are rounding errors of the pseudo-inverse; the smallest real ones are near 1e-6.
_ROUNDING = 1e-12


def with_armatures(robot: Robot, rotors: Iterable[str]) -> Robot:
    """The robot with its rotors welded to the bodies that carry them, and armatures at the joints that they turn with.

    Armatures are the diagonal of Nᵀ I N at the neutral configuration, where N gives velocities of rotors from those of
    the other joints.

    Args:
        robot: the exact robot.
        rotors: names of the rotors; they carry no other bodies.
    """
    joints, rotor_joints = [], _joints_of(robot, rotors)
    armatures = _armatures(robot, rotor_joints)
    for joint in robot.joints:
        if joint.name in rotor_joints:
            joints.append(replace(joint, kind=Fixed(), actuated=False, independent=False, start=np.zeros(0)))
        else:
            armature = joint.kind.armature + armatures.get(joint.name, np.zeros(joint.kind.nv))
            joints.append(replace(joint, kind=joint.kind.with_values(armature=armature), independent=False))
    return _composed(f"{robot.name}_with_armatures", robot, robot.bodies, joints, rotor_joints)


def without_rotors(robot: Robot, rotors: Iterable[str]) -> Robot:
    """The robot without its rotors.

    Args:
        robot: the exact robot.
        rotors: names of the rotors; they carry no other bodies.
    """
    rotors = set(rotors)
    rotor_joints = _joints_of(robot, rotors)
    bodies = {name: body for name, body in robot.bodies.items() if name not in rotors}
    joints = [replace(joint, independent=False) for joint in robot.joints if joint.name not in rotor_joints]
    return _composed(f"{robot.name}_without_rotors", robot, bodies, joints, rotor_joints)


def _joints_of(robot: Robot, rotors: Iterable[str]) -> set[str]:
    """The joints that carry the rotors.

    Raises:
        ModelError: for an unknown body, and for one that carries another.
    """
    for name in rotors:
        if name not in robot.bodies:
            raise ModelError(f"robot {robot.name!r} has no body {name!r}")
        carried = [joint.child for joint in robot.joints if joint.parent == name]
        if carried:
            raise ModelError(f"body {name!r} is not a rotor: it carries {carried[0]!r}")
    return {joint.name for joint in robot.joints if joint.child in set(rotors)}


def _composed(
    name: str, robot: Robot, bodies: Mapping[str, Body], joints: Sequence[TreeJoint], rotor_joints: set[str]
) -> Robot:
    """A robot of the given bodies and joints, with all loops, couplings and springs that involve no rotor."""
    rotors = {joint.child for joint in robot.joints if joint.name in rotor_joints}
    loops = [loop for loop in robot.loops if not {loop.predecessor, loop.successor} & rotors]
    couplings = [coupling for coupling in robot.couplings if not set(coupling.joints) & rotor_joints]
    elements = [spring for spring in robot.elements if not {spring.first, spring.second} & rotors]
    return compose(name, robot.gravity, bodies, joints, loops, couplings, elements, precision=robot.precision)


def _armatures(robot: Robot, rotor_joints: set[str]) -> dict[str, np.ndarray]:
    """For each joint the inertia of the rotors that turn with it, at the neutral configuration, kg m²."""
    tree = robot.tree
    G, _ = robot.explicit_constraint(robot.neutral())
    rotors = [tree.number[joint] for joint in rotor_joints]
    others = [i for i, link in enumerate(tree.links) if i and link.joint not in rotor_joints]
    N = G[tree.velocities_of(rotors)] @ np.linalg.pinv(G[tree.velocities_of(others)])
    inertia = []
    for link in rotors:
        S = np.asarray(tree.links[link].kind.subspace(tree.links[link].kind.neutral()), float)
        inertia.append(np.diag(S.T @ tree.links[link].inertia.matrix() @ S))
    added = np.einsum("ij,i,ij->j", N, np.concatenate(inertia), N)
    starts = np.cumsum([0, *(tree.links[link].kind.nv for link in others)])
    return {
        tree.links[link].joint: np.where(np.abs(armature) < _ROUNDING, 0.0, armature)
        for link, armature in zip(others, np.split(added, starts[1:-1]), strict=True)
    }
