"""The kernels of closure.py: what is computed for one joint, one constraint, one column of K, one cluster.

A pose is that of a link, seen from the output body of its cluster, whose axes are used throughout. A joint's s holds
its motion vectors in those axes, one for each entry of its velocity; V and A are a link's velocity, and its
acceleration where no joint accelerates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.graph import Template, View, jacobian
from coupler.linear import Cholesky
from coupler.model.embedding.constraints import RelationConstraint, loop_bias, loop_rate, relation_bias, relation_rate
from coupler.model.joint import Joint
from coupler.model.loops import LoopKind
from coupler.spatial import Transform, cross_motion

__all__ = [
    "accumulate",
    "add_step",
    "advance",
    "begin",
    "begin_round",
    "bias_of_loop",
    "bias_of_relation",
    "clear",
    "column_of_loop",
    "columns_of_relation",
    "copy",
    "measure_loop",
    "measure_relation",
    "move",
    "note_worst",
    "place",
    "rest",
    "root",
    "solve",
    "spread",
    "start",
    "step_of",
]

Kernel = Callable[..., None]
Array = Any  # an ndarray of floats, or of nodes

_NEAR = 24  # rounds of Newton's method in which the nearest closed configuration is sought
_STRIDE = 0.5  # the longest step of a joint in one round of Newton's method, rad or m


def copy(here: View) -> None:
    here.target = here.source


def root(pose: View) -> None:
    """The output body sees itself."""
    pose.E, pose.r = np.eye(3), np.zeros(3)


def rest(motion: View) -> None:
    """The output body does not move against itself."""
    motion.V = motion.A = np.zeros(6)


def advance(kind: Joint) -> Kernel:
    """Positions integrate(p, x) of joints that nothing constrains."""

    def advance(joint: View) -> None:
        joint.q = kind.integrate(joint.p, joint.x)

    return advance


def place(kind: Joint, chart: bool) -> Kernel:
    """Pose of a link, and motions s of its joint by unit of w or, in a chart, of x where q = integrate(p, x)."""

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


def move(kind: Joint) -> Kernel:
    """Velocity and acceleration: V += s w, and A += ṡ w with ṡ = V × s + S̊, for constant w."""

    def move(pose: View, motion: View, parent: View, joint: View, rate: View) -> None:
        own = joint.s.T @ rate.w
        V = parent.V + own
        turning = _transform(pose).inverse_motion(kind.subspace_rate(joint.p, rate.w) @ rate.w)
        motion.V, motion.A = V, parent.A + cross_motion(V, own) + turning

    return move


def measure_loop(kind: LoopKind, kept: Sequence[int]) -> Kernel:
    """Residual of a loop joint, and T, the rate of its kept rows with the motion of its second end."""

    def measure_loop(loop: View, first: View, second: View, model: View) -> None:
        X, end = _gap(first, second, model)
        residual = kind.residual(X)
        loop.phi, loop.f = residual, residual[list(kept)]
        loop.T = loop_rate(kind, X)[list(kept)] @ end.matrix()

    return measure_loop


def bias_of_loop(kind: LoopKind) -> Kernel:
    """k of a loop joint: the motion of its second end against the first, and its rate, seen from the second end."""

    def bias_of_loop(loop: View, first: View, second: View, model: View, start: View, goal: View) -> None:
        X, end = _gap(first, second, model)
        m = goal.V - start.V
        loop.k = loop_bias(kind, X, end @ m, end @ (goal.A - start.A - cross_motion(goal.V, m)))

    return bias_of_loop


def _gap(first: View, second: View, model: View) -> tuple[Transform, Transform]:
    """The transform from the first held frame to the second, and that from the output body to the second."""
    start = Transform(model.E1, model.r1) @ _transform(first)
    end = Transform(model.E2, model.r2) @ _transform(second)
    return end @ start.inverse(), end


def _transform(pose: View) -> Transform:
    return Transform(pose.E, pose.r)


def measure_relation(relation: RelationConstraint, kinds: Sequence[Joint], kept: Sequence[int], chart: bool) -> Kernel:
    """Residual of a relation and its columns of K, for joints numbered 0, 1, ..."""

    def measure_relation(here: View) -> None:
        p = [getattr(here, f"p{j}") for j in range(len(kinds))]
        x = [getattr(here, f"x{j}") if chart else np.zeros(kind.nv) for j, kind in enumerate(kinds)]
        q = [kind.integrate(a, b) if chart else a for kind, a, b in zip(kinds, p, x, strict=True)]
        residual = relation.function(q, here.numbers)
        here.phi, here.f = residual, residual[list(kept)]
        K = relation_rate(lambda q: relation.function(q, here.numbers)[list(kept)], kinds, p, x)
        for name, column in zip(columns_of_relation(kinds), K.T, strict=True):
            setattr(here, name, column)

    return measure_relation


def columns_of_relation(kinds: Sequence[Joint]) -> list[str]:
    """What the columns of K are called in `measure_relation`."""
    return [f"K{j}_{i}" for j, kind in enumerate(kinds) for i in range(kind.nv)]


def bias_of_relation(relation: RelationConstraint, kinds: Sequence[Joint]) -> Kernel:
    """k of a relation."""

    def bias_of_relation(here: View) -> None:
        q = [getattr(here, f"p{j}") for j in range(len(kinds))]
        w = [getattr(here, f"w{j}") for j in range(len(kinds))]
        here.k = relation_bias(lambda q: relation.function(q, here.numbers), kinds, q, w)

    return bias_of_relation


def column_of_loop(here: View) -> None:
    """A joint on the way to the second end moves it with T s; one on the way to the first, with −T s."""
    here.K = here.sign * (here.T @ here.s)


def clear(here: View) -> None:
    """A joint that the constraint does not couple."""
    here.K = np.zeros(here.K.shape)


def spread(solution: Template, inputs: int, slots: Sequence[int]) -> Kernel:
    """Positions of dependent joints from those of independent ones."""

    def spread(here: View) -> None:
        positions = solution(np.array([getattr(here, f"y{j}") for j in range(inputs)]), here.numbers)
        for j in slots:
            setattr(here, f"p{j}", positions[j])

    return spread


def begin(cluster: View) -> None:
    """N = φᵀφ 1, to which K W Kᵀ is added; never quite zero, so that what is closed stays as it is."""
    f = cluster.f
    cluster.N, cluster.right = (f @ f + 1e-30) * np.eye(len(f)), f
    cluster.longest = np.array(0.0)


def accumulate(here: View, cluster: View, column: View) -> None:
    """N += K W Kᵀ, and φ − K d on the right-hand side, where d = x − start is how far x has come."""
    cluster.N += column.weight * np.outer(column.K, column.K)
    cluster.right -= column.K * (column.x - column.start) * here.pull


def solve(cluster: View) -> None:
    cluster.force = Cholesky(cluster.N).solve(cluster.right)


def step_of(here: View, cluster: View, column: View) -> None:
    """From how far x has come to −W Kᵀ N⁻¹ (φ − K d)."""
    column.step = -column.weight * (column.K @ cluster.force) - (column.x - column.start) * here.pull
    cluster.longest = np.maximum(cluster.longest, np.abs(column.step))


def add_step(cluster: View, column: View) -> None:
    """Adds the step, shortened where a joint of the cluster would go too far."""
    column.x += column.step * (_STRIDE / np.maximum(_STRIDE, cluster.longest))


def start(here: View) -> None:
    """No round has been made."""
    here.round = np.array(0.0)


def begin_round(here: View) -> None:
    """No residual and no step has been seen. In late rounds nothing pulls back any more: closed comes before near."""
    here.worst = here.longest = np.array(0.0)
    here.round += 1.0
    here.pull = np.where(here.round < _NEAR, 1.0, 0.0)


def note_worst(here: View, cluster: View) -> None:
    """The largest residual so far, and the longest step."""
    worst = here.worst
    for value in cluster.f:
        worst = np.maximum(worst, np.abs(value))
    here.worst, here.longest = worst, np.maximum(here.longest, cluster.longest)
