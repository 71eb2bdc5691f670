"""Robots without their rotors: what most simulators compute with [001, §II-C].

A rotor that turns N times as fast as a link is left out, and N² times its inertia added to the link's joint as an
armature. This neglects how rotors couple joints with each other and with the motion of what carries them. Without
armatures it neglects rotors altogether, which the paper calls unconstrained.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from coupler.model import ModelError, Robot
from coupler.model.compose import compose

__all__ = ["without_rotors"]


def without_rotors(robot: Robot, rotors: Iterable[str], *, armature: bool = True) -> Robot:
    """The robot without some bodies that carry nothing, and without what coupled them to others.

    Args:
        robot: which.
        rotors: names of the bodies that are left out.
        armature: whether joints get an armature for them: the diagonal of Nᵀ I N at the neutral configuration, where N
            gives velocities of rotors from those of the other joints.
    """
    rotors = set(rotors)
    for name in rotors:
        if name not in robot.bodies:
            raise ModelError(f"robot {robot.name!r} has no body {name!r}")
        carried = [joint.child for joint in robot.joints if joint.parent == name]
        if carried:
            raise ModelError(f"body {name!r} carries {carried[0]!r} and cannot be left out")
    left_out = {joint.name for joint in robot.joints if joint.child in rotors}
    added = _armatures(robot, left_out) if armature else {}
    joints = []
    for joint in robot.joints:
        if joint.name not in left_out:
            more = added.get(joint.name, np.zeros(joint.kind.nv))
            joints.append(
                replace(joint, kind=replace(joint.kind, armature=joint.kind.armature + more), independent=False)
            )
    bodies = {name: body for name, body in robot.bodies.items() if name not in rotors}
    loops = [loop for loop in robot.loops if not {loop.predecessor, loop.successor} & rotors]
    couplings = [coupling for coupling in robot.couplings if not set(coupling.joints) & left_out]
    name = f"{robot.name}_{'approximate' if armature else 'unconstrained'}"
    return compose(name, robot.gravity, bodies, joints, loops, couplings, robot.elements)


def _armatures(robot: Robot, rotors: set[str]) -> dict[str, np.ndarray]:
    """For each joint the inertia of rotors that turn with it, at the neutral configuration."""
    tree = robot.tree
    G, _ = robot.explicit_constraint(robot.neutral())
    turning = [tree.number[joint] for joint in rotors]
    others = [i for i, link in enumerate(tree.links) if i and link.joint not in rotors]
    rows = np.concatenate([tree.velocities(link) for link in others])
    N = G[np.concatenate([tree.velocities(link) for link in turning])] @ np.linalg.pinv(G[rows])
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
