"""Newton's method for closed configurations, as a program: all clusters at once, each by its own linear system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.graph import Buffer, Builder, Program, View, Window, fields, symmetric
from coupler.grouping import grouped
from coupler.linear import Cholesky
from coupler.model.embedding.constraint_steps import ConstraintSteps
from coupler.model.embedding.constraints import Loop
from coupler.model.embedding.kernels import copy
from coupler.model.tolerances import CLOSED_BY_NEWTON, SETTLED, STRIDE
from coupler.model.tree import Tree

_ROUNDS = 40  # the largest number of rounds
_NEAR = 24  # rounds that look for the nearest closed configuration; later ones for any
_NEVER_ZERO = 1e-30  # added to φᵀφ, so that the system of a closed loop with all joints held is regular


def newton_program(tree: Tree, loops: Sequence[Loop]) -> Program:
    """(p, step, weight) → q, φ: positions that close the loops, and the remaining residuals.

    Positions are q = integrate(p, x), and x = step + d. Each round takes d to −W Kᵀ (K W Kᵀ + φᵀφ)⁻¹ (φ − K d), with
    K = ∂φ/∂x. This ends where φ = 0 and W⁻¹ d has no part along the loops' freedoms: for weights of one, at the nearest
    closed configuration. Joints of weight zero stay where the step takes them. The term φᵀφ tames singular poses and
    vanishes faster than φ, as in Levenberg's and Marquardt's method.

    Args:
        loops: the loops to close. Only kept rows are solved for; the others must follow from them.
    """
    b = Builder("newton", tree.parameters)
    p, n = b.input("p", tree.nq), tree.nv
    step, weight, x = b.input("step", n), b.input("weight", n), b.scratch("x", n)
    q, phi = b.output("q", p.size), b.output("phi", sum(loop.rows for loop in loops))
    b.loop(copy, entry=fields(source=step.at(range(n)), target=x.at(range(n))))
    constraints = ConstraintSteps(b, tree, loops, p, x, q, phi)
    constraints.advance(link for link in range(1, len(tree.links)) if link not in constraints.row)
    constraints.place()
    constraints.measure()
    solver = _Solver(constraints, step, weight, x)
    solver.measure()
    with b.repeat(until=_closed, at_most=_ROUNDS, progress=solver.progress()):
        constraints.columns()
        solver.step()
        constraints.place()
        constraints.measure()
        solver.measure()
    return b.build()


class _Solver:
    """The steps of a round, cluster by cluster."""

    def __init__(self, constraints: ConstraintSteps, start: Buffer, weight: Buffer, x: Buffer) -> None:
        b, self.b = constraints.b, constraints.b
        self._progress, steps = b.scratch("verdict", 4), b.scratch("steps", weight.size)
        b.loop(_start, progress=self.progress())
        self.clusters: list[Window] = []
        self.columns: list[dict[str, Any]] = []
        constrained = [cluster for cluster in constraints.clusters if cluster[0].kept]
        for rows, clusters in grouped(constrained, lambda cluster: cluster[0].kept).items():
            records = b.records(f"cluster{rows}", len(clusters), N=symmetric(rows), right=rows, force=rows, longest=())
            self.clusters.append(records[:] | fields(f=constraints.f.at([f for _, f, _ in clusters], rows)))
            numbers = np.repeat(np.arange(len(clusters)), [len(loop.columns) for loop, _, _ in clusters])
            entries = np.concatenate([loop.columns for loop, _, _ in clusters])
            K = np.concatenate([first + rows * np.arange(len(loop.columns)) for loop, _, first in clusters])
            column = fields(K=constraints.K.at(K, rows), weight=weight.at(entries), step=steps.at(entries))
            column |= fields(x=x.at(entries), start=start.at(entries))
            self.columns.append({"cluster": records[numbers], "column": column})
            b.loop(_begin, cluster=self.clusters[-1])

    def step(self) -> None:
        """Moves x by one step."""
        for cluster, columns in zip(self.clusters, self.columns, strict=True):
            self.b.loop(_begin, cluster=cluster)
            progress = self.progress(columns["cluster"].fields["N"].rows)
            self.b.loop(_accumulate, progress=progress, **columns)
            self.b.loop(_solve, cluster=cluster)
            self.b.loop(_step_of, progress=progress, **columns)
            self.b.loop(_add_step, **columns)

    def progress(self, rows: int = 1) -> Window:
        """The progress of the whole robot, for that many rows."""
        names = enumerate(("worst", "longest", "round", "pull"))
        return fields(**{name: self._progress.at([i] * rows) for i, name in names})

    def measure(self) -> None:
        """Determines the largest residual, and the longest step of the round."""
        self.b.loop(_begin_round, progress=self.progress())
        for cluster in self.clusters:
            self.b.loop(_note_worst, progress=self.progress(cluster.fields["N"].rows), cluster=cluster)


# Kernels


def _begin(cluster: View) -> None:
    """Sets N = φᵀφ 1, to which K W Kᵀ is added; never quite zero, so that closed loops stay as they are."""
    f = cluster.f
    cluster.N, cluster.right = (f @ f + _NEVER_ZERO) * np.eye(len(f)), f
    cluster.longest = np.array(0.0)


def _accumulate(progress: View, cluster: View, column: View) -> None:
    """Adds K W Kᵀ to N, and −K d to φ on the right-hand side, where d = x − start is how far x has come."""
    cluster.N += column.weight * np.outer(column.K, column.K)
    cluster.right -= column.K * (column.x - column.start) * progress.pull


def _solve(cluster: View) -> None:
    cluster.force = Cholesky(cluster.N).solve(cluster.right)


def _step_of(progress: View, cluster: View, column: View) -> None:
    """Computes the step, from the d that x has come so far to −W Kᵀ N⁻¹ (φ − K d)."""
    column.step = -column.weight * (column.K @ cluster.force) - (column.x - column.start) * progress.pull
    cluster.longest = np.maximum(cluster.longest, np.abs(column.step))


def _add_step(cluster: View, column: View) -> None:
    """Adds the step, shortened where a joint of the cluster would go too far."""
    column.x += column.step * (STRIDE / np.maximum(STRIDE, cluster.longest))


def _start(progress: View) -> None:
    """Sets the initial progress: no round has been made."""
    progress.round = np.array(0.0)


def _begin_round(progress: View) -> None:
    """Resets residual and step. Late rounds ignore the distance from the start: closed matters more than near."""
    progress.worst = progress.longest = np.array(0.0)
    progress.round += 1.0
    progress.pull = np.where(progress.round < _NEAR, 1.0, 0.0)


def _note_worst(progress: View, cluster: View) -> None:
    """Notes the largest residual so far, and the longest step."""
    worst = progress.worst
    for value in cluster.f:
        worst = np.maximum(worst, np.abs(value))
    progress.worst, progress.longest = worst, np.maximum(progress.longest, cluster.longest)


def _closed(progress: View) -> Any:
    return (progress.worst < CLOSED_BY_NEWTON) & (progress.longest < SETTLED)
