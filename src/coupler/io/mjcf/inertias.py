"""Inertias that MuJoCo takes, for robots that move the same way.

MuJoCo refuses bodies that move without mass, and inertias that no real body has. Robots may have such: bodies without
mass, ideal rotors, links of a plane that have one moment only. What a joint cannot tell apart may be moved over it: a
body that turns about an axis may lend the one that carries it, or borrow from it, mass that is spread along the axis
with none left over, for this moves with both alike. The robot moves as before, in all digits.

With Σ = ½ tr I − I, the second moments ∫ x xᵀ of the mass about its centre, a real body has Σ ≥ 0. Mass along an axis
a adds k a aᵀ to Σ, and thus k (1 − a aᵀ) to I.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.io.mjcf.joints import steps_of
from coupler.model import Joint, ModelError, Robot
from coupler.model.tree import GROUND, TreeJoint
from coupler.spatial import Transform

__all__ = ["Inertia", "at_zero", "outwards", "real_inertias"]

_LEAST = 1e-15  # MuJoCo's smallest mass (kg) and moment (kg m²) of what moves
_DIGITS = 1e-14  # relative: what computing principal moments may cost
_ROUNDED = 1e-13  # relative: inertias that are wrong by less are mended


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass (kg), centre (m) and inertia about it (kg m²), in the body's frame."""

    mass: float
    centre: np.ndarray
    about_centre: np.ndarray


def real_inertias(robot: Robot) -> dict[str, Inertia]:
    """What every body is to weigh; none of those that need not weigh anything.

    Raises:
        ModelError: naming a body whose inertia MuJoCo would refuse.
    """
    order = outwards(robot)
    found = {name: body.inertia for name, body in robot.bodies.items()}
    for joint in reversed(order):  # a body's debts are known before it is asked
        name = joint.child
        if not found[name].any():
            continue
        found[name], lent = _real(name, found[name], joint.kind, _meets(joint))
        if joint.parent != GROUND:
            E = at_zero(joint).E
            found[joint.parent] = found[joint.parent] - E.T @ lent @ E
    heavy = _heavy(robot, order, found)
    result = {}
    for joint in order:
        body, I = robot.bodies[joint.child], found[joint.child]  # noqa: E741
        mass = body.mass
        if joint.kind.nv and joint.child not in heavy:
            mass = max(mass, _LEAST)
            I = I + max(0.0, _LEAST - np.linalg.eigvalsh(I)[0]) * np.eye(3)  # noqa: E741
        if mass or I.any():
            result[joint.child] = Inertia(mass, body.centre, I)
    return result


def outwards(robot: Robot) -> list[TreeJoint]:
    """The joints such that parents come before children."""
    on: dict[str, list[TreeJoint]] = {}
    for joint in robot.joints:
        on.setdefault(joint.parent, []).append(joint)
    order = list(on.get(GROUND, []))
    for joint in order:  # which grows meanwhile
        order += on.get(joint.child, [])
    return order


def at_zero(joint: TreeJoint) -> Transform:
    """From the parent's frame to the child's, with the joint at zero."""
    return joint.placement if joint.meets is None else joint.meets.inverse() @ joint.placement


def _meets(joint: TreeJoint) -> np.ndarray:
    """The rotation from the joint's frame to the child's."""
    return np.eye(3) if joint.meets is None else joint.meets.E.T


def _heavy(robot: Robot, order: list[TreeJoint], inertias: dict[str, np.ndarray]) -> set[str]:
    """Bodies that MuJoCo lets move: with mass and inertia, or with something welded to them that has both."""
    heavy: set[str] = set()
    for joint in reversed(order):
        enough = robot.bodies[joint.child].mass >= _LEAST
        if joint.child in heavy or (enough and np.linalg.eigvalsh(inertias[joint.child])[0] >= _LEAST):
            heavy |= {joint.child} if joint.kind.nv else {joint.child, joint.parent}
    return heavy


def _real(name: str, I: np.ndarray, kind: Joint, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
    """An inertia that a real body has, and what of it is borrowed from the body that carries it."""
    scale, none = np.abs(I).max(), np.zeros((3, 3))
    if _is_real(I):
        return I, none
    moments = 0.5 * np.trace(I) * np.eye(3) - I  # Σ
    lacking = -np.linalg.eigvalsh(moments)[0]
    if lacking <= _ROUNDED * scale:
        return I + 2.0 * (max(lacking, 0.0) + _DIGITS * scale) * np.eye(3), none
    borrowed, turns = none, [step for step in steps_of(kind) if step.type != "slide"]
    if [step.type for step in turns] == ["hinge"]:
        a = turn @ turns[0].axis
        borrowed = _needed(moments, a, scale) * (np.eye(3) - np.outer(a, a))
    elif not turns:  # any inertia may go over such a joint
        size, axes = np.linalg.eigh(moments)
        more = axes * np.where(size < 0.0, _ROUNDED * scale - size, 0.0) @ axes.T
        borrowed = np.trace(more) * np.eye(3) - more
    if not _is_real(I + borrowed):
        told = ", ".join(f"{moment:.6g}" for moment in np.linalg.eigvalsh(I))
        raise ModelError(
            f"body {name!r}: MuJoCo takes no inertia with the principal moments {told} kg m², the largest of which "
            "exceeds the sum of the other two; save the robot as .urdf"
        )
    return I + borrowed, borrowed


def _needed(moments: np.ndarray, a: np.ndarray, scale: float) -> float:
    """The least k for which Σ + k a aᵀ ≥ 0, and a little more: its Schur complement."""
    across = np.linalg.svd(a[None])[2][1:].T
    plane, beside = across.T @ moments @ across, across.T @ moments @ a
    return float(beside @ np.linalg.pinv(plane) @ beside - a @ moments @ a) + 1e-6 * scale


def _is_real(I: np.ndarray) -> bool:  # noqa: E741
    """Whether MuJoCo sees that no moment exceeds the sum of the others, also where it has to compute them."""
    diagonal = np.array_equal(I, np.diag(np.diag(I)))
    a, b, c = np.sort(np.diag(I)) if diagonal else np.linalg.eigvalsh(I)
    return bool(a >= 0.0 and a + b - c >= (0.0 if diagonal else 2 * _DIGITS * c))
