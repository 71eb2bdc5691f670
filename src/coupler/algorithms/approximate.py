"""Robots whose rotors do not turn: what most simulators compute with [001, §II-C].

A rotor that turns N times as fast as a link is welded to what carries it, and N² times its inertia added to the link's
joint as an armature. This neglects how a turning rotor couples joints with each other and with the motion of its
carrier. The paper also looks at robots without rotors altogether, whose dynamics it calls unconstrained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from coupler.model import Body, Fixed, ModelError, Robot
from coupler.model.compose import compose
from coupler.model.tree import TreeJoint

__all__ = ["with_armatures", "without_rotors"]


def with_armatures(robot: Robot, rotors: Iterable[str]) -> Robot:
    """The robot with its rotors welded to what carries them, and armatures for them at the joints that they turn with.

    Armatures are the diagonal of Nᵀ I N at the neutral configuration, where N gives velocities of rotors from those of
    the other joints.

    Args:
        robot: which.
        rotors: names of the rotors; they carry nothing.
    """
    joints, turning = [], _joints_of(robot, rotors)
    armatures = _armatures(robot, turning)
    for joint in robot.joints:
        if joint.name in turning:
            joints.append(replace(joint, kind=Fixed(), actuated=False, independent=False, start=np.zeros(0)))
        else:
            heavier = joint.kind.armature + armatures.get(joint.name, np.zeros(joint.kind.nv))
            joints.append(replace(joint, kind=joint.kind.with_values(armature=heavier), independent=False))
    return _composed(f"{robot.name}_with_armatures", robot, robot.bodies, joints, turning)


def without_rotors(robot: Robot, rotors: Iterable[str]) -> Robot:
    """The robot without its rotors.

    Args:
        robot: which.
        rotors: names of the rotors; they carry nothing.
    """
    rotors = set(rotors)
    turning = _joints_of(robot, rotors)
    bodies = {name: body for name, body in robot.bodies.items() if name not in rotors}
    joints = [replace(joint, independent=False) for joint in robot.joints if joint.name not in turning]
    return _composed(f"{robot.name}_without_rotors", robot, bodies, joints, turning)


def _joints_of(robot: Robot, rotors: Iterable[str]) -> set[str]:
    """The joints that carry rotors, which carry nothing themselves."""
    for name in rotors:
        if name not in robot.bodies:
            raise ModelError(f"robot {robot.name!r} has no body {name!r}")
        carried = [joint.child for joint in robot.joints if joint.parent == name]
        if carried:
            raise ModelError(f"body {name!r} is no rotor: it carries {carried[0]!r}")
    return {joint.name for joint in robot.joints if joint.child in set(rotors)}


def _composed(
    name: str, robot: Robot, bodies: Mapping[str, Body], joints: Sequence[TreeJoint], turning: set[str]
) -> Robot:
    """The robot from these parts, with those of its loops and couplings that are about none of the turning joints."""
    carried = {joint.child for joint in robot.joints if joint.name in turning}
    loops = [loop for loop in robot.loops if not {loop.predecessor, loop.successor} & carried]
    couplings = [coupling for coupling in robot.couplings if not set(coupling.joints) & turning]
    elements = [spring for spring in robot.elements if not {spring.first, spring.second} & carried]
    return compose(name, robot.gravity, bodies, joints, loops, couplings, elements)


def _armatures(robot: Robot, rotors: set[str]) -> dict[str, np.ndarray]:
    """For each joint the inertia of rotors that turn with it, at the neutral configuration."""
    tree = robot.tree
    G, _ = robot.explicit_constraint(robot.neutral())
    turning = [tree.number[joint] for joint in rotors]
    others = [i for i, link in enumerate(tree.links) if i and link.joint not in rotors]
    rows = tree.velocities_of(others)
    N = G[tree.velocities_of(turning)] @ np.linalg.pinv(G[rows])
    inertia = []
    for link in turning:
        S = np.asarray(tree.links[link].kind.subspace(tree.links[link].kind.neutral()), float)
        inertia.append(np.diag(S.T @ tree.links[link].inertia.matrix() @ S))
    added = np.einsum("ij,i,ij->j", N, np.concatenate(inertia), N)
    starts = np.cumsum([0, *(tree.links[link].kind.nv for link in others)])
    return {
        tree.links[link].joint: np.where(np.abs(own) < 1e-12, 0.0, own)
        for link, own in zip(others, np.split(added, starts[1:-1]), strict=True)
    }
