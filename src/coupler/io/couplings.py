"""Couplings and locks of a robot in the form that files can hold: numbers instead of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.io.taken_names import TakenNames
from coupler.mechanisms import Polynomial
from coupler.model import Coupling, Held, LoopJoint, ModelError, Robot
from coupler.model.embedding.constraints import RelationConstraint
from coupler.model.tolerances import TINY
from coupler.model.tree import TreeJoint
from coupler.spatial import Transform

_EXACT = 1e-12  # relative: a function that is affine up to this counts as affine; rounding is below 1e-15
_LOCKED = 1e-12  # m or rad: a lock that misses by less during large motions is exact
_ROUNDING = 1e-15  # relative: smaller entries of a least-squares solution are zeros
# A φ is solved for an independent joint only if its factor is this much larger than those of all dependent joints.
_RELUCTANCE = 1e-9


@dataclass(frozen=True)
class Row:
    """How one joint depends on others: offset + Σ factor × position, or a polynomial of a single position.

    Attributes:
        joint: the dependent joint.
        on: the joints that it depends on.
        factors: the factor of each of them.
        offset: position of the dependent joint when the others are at zero, rad or m.
        polynomial: coefficients, constant first; empty if the relation is linear.
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
    """The couplings of a robot in numbers, and what else a file must say for the same coordinates.

    Attributes:
        written: the couplings that can be written in numbers.
        independent: joints to mark as independent, since the coupling that made them so is not written as such.
        start: positions near which to close the loops of their clusters, by joint.
    """

    written: list[Relation] = field(default_factory=list)
    independent: set[str] = field(default_factory=set)
    start: dict[str, Any] = field(default_factory=dict)


def relations_of(robot: Robot) -> Relations:
    """The couplings of a robot.

    A closed-form solution of loops that is neither linear nor polynomial, such as a four-bar's, is left out: its loops
    say the same.

    Raises:
        ModelError: naming a coupling whose function cannot be written.
    """
    relations = Relations()
    for coupling in robot.couplings:
        relation = _relation(robot, coupling)
        if relation is not None:
            relations.written.append(relation)
        elif not coupling.solves:
            raise ModelError(
                f"coupling {coupling.name!r}: its function cannot be written to a file, which can hold only linear and "
                "polynomial relations; keep the robot as Python code, or save robot.spanning_tree()"
            )
        if coupling.solves or not coupling.solved:
            _leave_to_loops(robot, robot.tree.number[coupling.joints[0]], relations)
    for lock in _locks(robot):
        _leave_to_loops(robot, lock.links[0], relations)
    relations.independent -= {row.joint for relation in relations.written for row in relation.rows}
    return relations


def _relation(robot: Robot, coupling: Coupling) -> Relation | None:
    """A coupling in numbers, or None if it is neither linear nor polynomial."""
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
    """A φ of one row, A q + b = 0, solved for a dependent joint if possible."""
    if len(b) != 1 or np.count_nonzero(A[0]) < 2:
        return None
    independent = set(robot.independent_joints)
    size = [
        abs(a) * (1.0 if joint not in independent else _RELUCTANCE)
        for a, joint in zip(A[0], coupling.joints, strict=True)
    ]
    k = int(np.argmax(size))
    free = tuple(joint for joint in coupling.joints if joint != coupling.joints[k])
    factors = -np.delete(A[0], k) / A[0, k]
    return Relation(coupling.name, free, (_row(coupling.joints[k], free, factors, -b[0] / A[0, k]),))


def _row(joint: str, on: tuple[str, ...], factors: np.ndarray, offset: Any) -> Row:
    terms = [(name, float(factor)) for name, factor in zip(on, factors, strict=True)]
    used = [term for term in terms if term[1]] or terms[:1]  # a joint that stands still depends on another all the same
    return Row(joint, tuple(name for name, _ in used), tuple(factor for _, factor in used), float(offset))


def _affine(function: Callable[[Any], Any], n: int) -> tuple[np.ndarray, np.ndarray] | None:
    """A and b with function(y) = A y + b, or None if that fails at a random y."""
    try:
        with np.errstate(all="ignore"):
            b = np.atleast_1d(np.asarray(function(np.zeros(n)), dtype=float))
            A = np.stack([np.atleast_1d(np.asarray(function(e), dtype=float)) - b for e in np.eye(n)], axis=1)
            for y in np.random.default_rng(0).uniform(-3.0, 3.0, (12, n)):
                value = np.atleast_1d(np.asarray(function(y), dtype=float))
                scale = np.abs(A) @ np.abs(y) + np.abs(b) + TINY
                if not (np.abs(A @ y + b - value) <= _EXACT * scale).all():
                    return None
    except Exception:  # a user's function may raise anything where its loop is open
        return None
    return A, b


def _leave_to_loops(robot: Robot, link: int, relations: Relations) -> None:
    """Notes what a file must add to the loops of a cluster: independent joints, and the pose near which loops close."""
    tree, clusters = robot.tree, robot.cluster_tree
    members = {tree.links[i].joint: i for i in clusters.clusters[clusters.cluster_of[link]].bodies}
    independent = set(robot.embedding.v_index.tolist())
    relations.independent |= {
        joint for joint, i in members.items() if independent.issuperset(tree.velocities(i).tolist())
    }
    positions = robot.joint_positions(robot.neutral())
    relations.start |= {joint: positions[joint] for joint in members}


def locks_of(robot: Robot) -> list[LoopJoint]:
    """The locks that `build(lock_idle=True)` added to a robot, as loops that hold two bodies about one axis.

    Raises:
        ModelError: naming the joint of a lock that cannot be written so.
    """
    joints = {joint.name: joint for joint in robot.joints}
    taken = TakenNames(part.name for part in (*robot.joints, *robot.loops, *robot.couplings))
    return [
        _lock(taken.new(lock.name), joints[robot.tree.links[lock.links[0]].joint], lock.numbers)
        for lock in _locks(robot)
    ]


def _locks(robot: Robot) -> list[RelationConstraint]:
    """The locks among the constraints: relations that are neither couplings of the description nor found in loops."""
    known = {coupling.name for coupling in robot.couplings}
    constraints = (constraint for loop in robot.embedding.closure.loops for constraint in loop.constraints)
    return [c for c in constraints if isinstance(c, RelationConstraint) and c.name not in known and not c.recognised]


def _lock(name: str, joint: TreeJoint, numbers: np.ndarray) -> LoopJoint:
    """A lock of one direction d of a joint's velocities, as a loop.

    A constraint force h with Sᵀ h = d holds d for small motions; for large ones this is checked at random positions.
    """
    kind = joint.kind
    position, d = numbers[: kind.nq], numbers[kind.nq :]
    S = np.asarray(kind.subspace(position), dtype=float)
    h = np.linalg.lstsq(S.T, d, rcond=None)[0]
    h = np.where(np.abs(h) < _ROUNDING * np.abs(h).max(), 0.0, h)
    held, at = Held([h]), kind.transform(position)
    for v in np.random.default_rng(0).normal(size=(5, kind.nv)):
        moved = kind.integrate(position, v - (v @ d) * d / (d @ d))
        if np.abs(held.residual(kind.transform(moved) @ at.inverse())).max() > _LOCKED:
            raise ModelError(
                f"the lock of joint {joint.name!r} cannot be written to a file: build the robot without lock_idle, "
                "save it, and load it with lock_idle=True"
            )
    on_child = Transform.identity() if joint.meets is None else joint.meets
    return LoopJoint(name, held, joint.parent, joint.child, at @ joint.placement, on_child)
