"""Inertias that MuJoCo accepts, for robots that move in the same way.

MuJoCo rejects bodies that move without mass, and inertias that no real body has. Our robots may have both: bodies
without mass, ideal rotors, links of planar mechanisms with one moment only. Inertia that moves in the same way with
both bodies of a joint may be shifted over it: a body that turns about an axis may borrow second moments of mass along
that axis from the body that carries it. The dynamics do not change at all.

With Σ = ½ tr I − I, the second moments ∫ x xᵀ of the mass about its centre, a real body has Σ ≥ 0. Mass along an axis
a adds k a aᵀ to Σ, and thus k (1 − a aᵀ) to I.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.grouping import grouped
from coupler.io.mjcf.joints import steps_of
from coupler.model import Joint, Robot
from coupler.model.tree import GROUND, TreeJoint
from coupler.spatial import Transform

_LEAST = 1e-15  # kg or kg m²: the smallest mass and moment that MuJoCo accepts for a moving body
_DIGITS = 1e-14  # relative: the error of MuJoCo's principal moments
_ROUNDED = 1e-13  # relative: inertias that violate the triangle inequality by less are rounded, and mended
_MARGIN = 1e-6  # relative: how much more than necessary is borrowed, so that rounding does not matter


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass (kg), centre (m) and inertia about it (kg m²), in the body's frame."""

    mass: float
    centre: np.ndarray
    about_centre: np.ndarray


def real_inertias(robot: Robot, changed: list[str] | None = None) -> dict[str, Inertia]:
    """The inertias to write, by body; bodies that may be massless in MuJoCo are left out.

    Args:
        changed: gets descriptions of inertias that MuJoCo would reject, and what is written instead.
    """
    order = outwards(robot)
    inertias = {name: body.inertia for name, body in robot.bodies.items()}
    for joint in reversed(order):  # from the tips inwards, so that all that is borrowed from a body is known
        name = joint.child
        if not inertias[name].any():
            continue
        wanted = inertias[name]
        inertias[name], borrowed = _real(wanted, joint.kind, _joint_to_child(joint))
        if not _is_real(inertias[name]):
            inertias[name] = _nearest_real(wanted)
            if changed is not None:
                changed.append(f"{name!r} ({_told(robot.bodies[name].inertia)}; saved as {_told(inertias[name])})")
        if joint.parent != GROUND:
            E = at_zero(joint).E
            inertias[joint.parent] = inertias[joint.parent] - E.T @ borrowed @ E
    heavy = _heavy(robot, order, inertias)
    result = {}
    for joint in order:
        body, I = robot.bodies[joint.child], inertias[joint.child]  # noqa: E741
        mass = body.mass
        if joint.kind.nv and joint.child not in heavy:
            mass = max(mass, _LEAST)
            I = I + max(0.0, _LEAST - np.linalg.eigvalsh(I)[0]) * np.eye(3)  # noqa: E741
        if mass or I.any():
            result[joint.child] = Inertia(mass, body.centre, I)
    return result


def outwards(robot: Robot) -> list[TreeJoint]:
    """The joints in an order in which parents come before children."""
    carried = grouped(robot.joints, lambda joint: joint.parent)
    order = list(carried.get(GROUND, []))
    for joint in order:  # which grows while it is iterated
        order += carried.get(joint.child, [])
    return order


def at_zero(joint: TreeJoint) -> Transform:
    """The transform from the parent's frame to the child's, with the joint at zero."""
    return joint.placement if joint.meets is None else joint.meets.inverse() @ joint.placement


def _joint_to_child(joint: TreeJoint) -> np.ndarray:
    """The rotation from the joint's frame to the child's."""
    return np.eye(3) if joint.meets is None else joint.meets.E.T


def _heavy(robot: Robot, order: list[TreeJoint], inertias: dict[str, np.ndarray]) -> set[str]:
    """Bodies that MuJoCo lets move: with mass and inertia, or with another body welded to them that has both."""
    heavy: set[str] = set()
    for joint in reversed(order):
        enough = robot.bodies[joint.child].mass >= _LEAST
        if joint.child in heavy or (enough and np.linalg.eigvalsh(inertias[joint.child])[0] >= _LEAST):
            heavy |= {joint.child} if joint.kind.nv else {joint.child, joint.parent}
    return heavy


def _told(I: np.ndarray) -> str:  # noqa: E741
    return ", ".join(f"{moment:.6g}" for moment in np.linalg.eigvalsh(I))


def _nearest_real(I: np.ndarray) -> np.ndarray:  # noqa: E741
    """The inertia whose second moments Σ are those of I, with negative ones set to zero."""
    size, axes = np.linalg.eigh(0.5 * np.trace(I) * np.eye(3) - I)
    moments = axes * np.maximum(size, _ROUNDED * np.abs(I).max()) @ axes.T
    return np.trace(moments) * np.eye(3) - moments


def _real(I: np.ndarray, kind: Joint, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: E741
    """An inertia that a real body can have, if there is one, and the part that it borrows from the carrying body."""
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
    elif not turns:  # any inertia may be shifted over such a joint
        size, axes = np.linalg.eigh(moments)
        more = axes * np.where(size < 0.0, _ROUNDED * scale - size, 0.0) @ axes.T
        borrowed = np.trace(more) * np.eye(3) - more
    return (I + borrowed, borrowed) if _is_real(I + borrowed) else (I, none)


def _needed(moments: np.ndarray, a: np.ndarray, scale: float) -> float:
    """The least k for which Σ + k a aᵀ ≥ 0 (by the Schur complement), and a little more."""
    across = np.linalg.svd(a[None])[2][1:].T
    plane, beside = across.T @ moments @ across, across.T @ moments @ a
    return float(beside @ np.linalg.pinv(plane) @ beside - a @ moments @ a) + _MARGIN * scale


def _is_real(I: np.ndarray) -> bool:  # noqa: E741
    """Whether MuJoCo sees that no moment exceeds the sum of the others, also where it has to compute them."""
    diagonal = np.array_equal(I, np.diag(np.diag(I)))
    a, b, c = np.sort(np.diag(I)) if diagonal else np.linalg.eigvalsh(I)
    return bool(a >= 0.0 and a + b - c >= (0.0 if diagonal else 2 * _DIGITS * c))
