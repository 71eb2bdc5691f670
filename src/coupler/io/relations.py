"""Couplings and locks of a robot as files can hold them: numbers instead of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.io.writing import Names
from coupler.mechanisms import Polynomial
from coupler.model import Coupling, Held, LoopJoint, ModelError, Robot
from coupler.model.embedding.constraints import RelationConstraint
from coupler.model.tree import TreeJoint
from coupler.spatial import Transform

__all__ = ["Relation", "Relations", "Row", "locks_of", "relations_of"]

_EXACT = 1e-12  # relative: how far a function may miss an affine one


@dataclass(frozen=True)
class Row:
    """How one joint depends on others: offset + Σ factor × position, or a polynomial of a single position.

    Attributes:
        joint: which depends.
        on: the joints that it depends on.
        factors: one for each of them.
        offset: its position when theirs are zero, rad or m.
        polynomial: coefficients, constant first; empty where the others tell it.
    """

    joint: str
    on: tuple[str, ...]
    factors: tuple[float, ...] = ()
    offset: float = 0.0
    polynomial: tuple[float, ...] = ()


@dataclass(frozen=True)
class Relation:
    """A coupling: its independent joints, in order, and a row for each of the others."""

    name: str
    independent: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass
class Relations:
    """What is written of a robot's couplings.

    Attributes:
        written: those that can be.
        independent: joints to be marked as independent, since what makes them so is written in another way.
        start: positions near which the loops of such a cluster are to be closed, by joint.
    """

    written: list[Relation] = field(default_factory=list)
    independent: set[str] = field(default_factory=set)
    start: dict[str, Any] = field(default_factory=dict)


def relations_of(robot: Robot) -> Relations:
    """The couplings of a robot.

    A solution of loops that is no plain relation, such as a four-bar's, is left out: its loops say the same.

    Raises:
        ModelError: naming a coupling whose function cannot be written.
    """
    found = Relations()
    for coupling in robot.couplings:
        relation = _relation(robot, coupling)
        if relation is not None:
            found.written.append(relation)
        elif not coupling.solves:
            raise ModelError(
                f"coupling {coupling.name!r}: its function cannot be written to a file, which holds only linear and "
                "polynomial relations; keep the robot as Python code, or save robot.spanning_tree()"
            )
        if coupling.solves or not coupling.solved:
            _leave_to_loops(robot, robot.tree.number[coupling.joints[0]], found)
    for lock in _locks(robot):
        _leave_to_loops(robot, lock.links[0], found)
    found.independent -= {row.joint for relation in found.written for row in relation.rows}
    return found


def _relation(robot: Robot, coupling: Coupling) -> Relation | None:
    """A coupling in numbers, if it has such a form."""
    if isinstance(coupling.function, Polynomial):
        (free,), dependent = coupling.independent, coupling.joints[1]
        return Relation(coupling.name, (free,), (Row(dependent, (free,), polynomial=coupling.function.coefficients),))
    affine = _affine(coupling.function, len(coupling.independent or coupling.joints))
    if affine is None:
        return None
    if coupling.solved:
        rows = zip(coupling.joints, *affine, strict=True)
        written = [_row(joint, coupling.independent, *row) for joint, *row in rows if joint not in coupling.independent]
        return Relation(coupling.name, coupling.independent, tuple(written))
    return _solved(robot, coupling, *affine)


def _solved(robot: Robot, coupling: Coupling, A: np.ndarray, b: np.ndarray) -> Relation | None:
    """A φ of one row, A q + b = 0, solved for a joint that is not independent anyway."""
    if len(b) != 1 or np.count_nonzero(A[0]) < 2:
        return None
    kept = set(robot.independent_joints)
    size = [abs(a) * (1.0 if joint not in kept else 1e-9) for a, joint in zip(A[0], coupling.joints, strict=True)]
    k = int(np.argmax(size))
    free = tuple(joint for joint in coupling.joints if joint != coupling.joints[k])
    factors = -np.delete(A[0], k) / A[0, k]
    return Relation(coupling.name, free, (_row(coupling.joints[k], free, factors, -b[0] / A[0, k]),))


def _row(joint: str, on: tuple[str, ...], factors: np.ndarray, offset: Any) -> Row:
    used = [(name, float(factor)) for name, factor in zip(on, factors, strict=True) if factor]
    return Row(joint, tuple(name for name, _ in used), tuple(factor for _, factor in used), float(offset))


def _affine(function: Callable[[Any], Any], n: int) -> tuple[np.ndarray, np.ndarray] | None:
    """A and b with function(y) = A y + b, if it is so wherever one looks."""
    try:
        with np.errstate(all="ignore"):
            b = np.atleast_1d(np.asarray(function(np.zeros(n)), dtype=float))
            A = np.stack([np.atleast_1d(np.asarray(function(e), dtype=float)) - b for e in np.eye(n)], axis=1)
            for y in np.random.default_rng(0).uniform(-3.0, 3.0, (12, n)):
                value = np.atleast_1d(np.asarray(function(y), dtype=float))
                scale = np.abs(A) @ np.abs(y) + np.abs(b) + 1e-300
                if not (np.abs(A @ y + b - value) <= _EXACT * scale).all():
                    return None
    except Exception:  # whatever a user's function raises away from its loop
        return None
    return A, b


def _leave_to_loops(robot: Robot, link: int, found: Relations) -> None:
    """Marks what the loops of a cluster do not tell: which joints are independent, and how they are assembled."""
    tree, clusters = robot.tree, robot.cluster_tree
    members = {tree.links[i].joint: i for i in clusters.clusters[clusters.cluster_of[link]].bodies}
    kept = set(robot.embedding.v_index.tolist())
    found.independent |= {joint for joint, i in members.items() if kept.issuperset(tree.velocities(i).tolist())}
    positions = robot.joint_positions(robot.neutral())
    found.start |= {joint: positions[joint] for joint in members}


def locks_of(robot: Robot) -> list[LoopJoint]:
    """What `build(lock_idle=True)` has added to a robot, as loops that hold two bodies about one axis.

    Raises:
        ModelError: naming the joint of a lock that is nothing of the kind.
    """
    joints = {joint.name: joint for joint in robot.joints}
    taken = Names([*joints, *(loop.name for loop in robot.loops), *(coupling.name for coupling in robot.couplings)])
    return [
        _lock(taken.new(lock.name), joints[robot.tree.links[lock.links[0]].joint], lock.numbers)
        for lock in _locks(robot)
    ]


def _locks(robot: Robot) -> list[RelationConstraint]:
    """The relations that nobody described."""
    known = {coupling.name for coupling in robot.couplings}
    constraints = (constraint for loop in robot.embedding.closure.loops for constraint in loop.constraints)
    return [c for c in constraints if isinstance(c, RelationConstraint) and c.name not in known]


def _lock(name: str, joint: TreeJoint, numbers: np.ndarray) -> LoopJoint:
    """A joint that is held at a position in one direction d of its velocities.

    A force h with Sᵀ h = d does so for small motions. Whether it does so for large ones is tried.
    """
    kind = joint.kind
    position, d = numbers[: kind.nq], numbers[kind.nq :]
    S = np.asarray(kind.subspace(position), dtype=float)
    h = np.linalg.lstsq(S.T, d, rcond=None)[0]
    h = np.where(np.abs(h) < 1e-15 * np.abs(h).max(), 0.0, h)
    held, at = Held([h]), kind.transform(position)
    for v in np.random.default_rng(0).normal(size=(5, kind.nv)):
        moved = kind.integrate(position, v - (v @ d) * d / (d @ d))
        if np.abs(held.residual(kind.transform(moved) @ at.inverse())).max() > 1e-12:
            raise ModelError(
                f"the lock of joint {joint.name!r} cannot be written to a file: build the robot without lock_idle, "
                "save it, and load it with lock_idle=True"
            )
    meets = Transform.identity() if joint.meets is None else joint.meets
    return LoopJoint(name, held, joint.parent, joint.child, at @ joint.placement, meets)
