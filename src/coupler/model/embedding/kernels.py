"""Kernels of constraints: poses and motions of links, and φ, K and k of loops and relations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.graph import View, jacobian
from coupler.model.embedding.constraints import LoopConstraint, RelationConstraint, carried
from coupler.model.joint import Joint
from coupler.spatial import Transform

Kernel = Callable[..., None]


def copy(entry: View) -> None:
    entry.target = entry.source


def root(pose: View) -> None:
    """Sets the pose of the output body against itself: the identity."""
    pose.E, pose.r = np.eye(3), np.zeros(3)


def rest(motion: View) -> None:
    """Sets the motion of the output body against itself: zero."""
    motion.V = motion.A = np.zeros(6)


def advancing(kind: Joint) -> Kernel:
    def advance(joint: View) -> None:
        joint.q = kind.integrate(joint.p, joint.x)

    return advance


def placing(kind: Joint, chart: bool) -> Kernel:
    """The pose of a link, and the motions s of its joint by unit of w; in a chart by unit of x, q = integrate(p, x)."""

    def place(pose: View, parent: View, joint: View, model: View) -> None:
        q, rate = joint.p, np.eye(kind.nv)
        if chart:
            q = kind.integrate(joint.p, joint.x)
            joint.q = q
            if kind.nq != kind.nv:
                rate = jacobian(lambda e: kind.difference(q, kind.integrate(joint.p, joint.x + e)), np.zeros(kind.nv))
        X = kind.transform(q) @ Transform(model.E, model.r) @ _transform(parent)
        pose.E, pose.r = X.E, X.r
        joint.s = X.inverse_motion(kind.subspace(q) @ rate).T

    return place


def moving(kind: Joint) -> Kernel:
    def move(pose: View, motion: View, parent: View, joint: View, rate: View) -> None:
        above = parent.V, parent.A
        motion.V, motion.A = carried(kind, _transform(pose), joint.s.T, joint.p, rate.w, above)

    return move


def loop_measure(constraint: LoopConstraint) -> Kernel:
    def measure_loop(loop: View, first: View, second: View, model: View) -> None:
        equations = constraint.at(model, _transform(first), _transform(second))
        residual = equations.residual()
        loop.phi, loop.f, loop.T = residual, residual[equations.kept], equations.T

    return measure_loop


def loop_bias(constraint: LoopConstraint) -> Kernel:
    def bias_of_loop(loop: View, first: View, second: View, model: View, start: View, goal: View) -> None:
        equations = constraint.at(model, _transform(first), _transform(second))
        loop.k = equations.bias((start.V, start.A), (goal.V, goal.A))

    return bias_of_loop


def relation_measure(constraint: RelationConstraint, chart: bool) -> Kernel:
    """The residual of a relation and its columns of K."""
    kinds = constraint.kinds

    def measure_relation(relation: View, joints: list[View], columns: list[View]) -> None:
        p = q = [joint.p for joint in joints]
        x = [np.zeros(kind.nv) for kind in kinds]
        if chart:
            x = [joint.x for joint in joints]
            q = [kind.integrate(joint.p, joint.x) for kind, joint in zip(kinds, joints, strict=True)]
        residual = constraint.residual(relation.numbers, q)
        relation.phi, relation.f = residual, residual[list(constraint.kept)]
        for column, values in zip(columns, constraint.rate(relation.numbers, p, np.concatenate(x)).T, strict=True):
            column.K = values

    return measure_relation


def relation_bias(constraint: RelationConstraint) -> Kernel:
    def bias_of_relation(relation: View, joints: list[View], rates: list[View]) -> None:
        w = np.concatenate([rate.w for rate in rates])
        relation.k = constraint.bias(relation.numbers, [joint.p for joint in joints], w)

    return bias_of_relation


def column_of_loop(column: View) -> None:
    """Sets a column of K: T s for a joint on the way to the second end, −T s for one on the way to the first."""
    column.K = column.sign * (column.T @ column.s)


def clear(column: View) -> None:
    """Clears a column of K, for a joint that the constraint does not couple."""
    column.K = np.zeros(column.K.shape)


def _transform(pose: View) -> Transform:
    return Transform(pose.E, pose.r)
