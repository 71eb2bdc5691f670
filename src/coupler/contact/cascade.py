"""The solver of the compiled step, sweeps and what follows them, for contact problems that are given by A and b.

It takes any problem without torsion: here x is λ itself, with Y = 1 and Z = A. Programs depend on how many contacts and
other rows there are, not on their numbers, and solve many problems at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isinf
from typing import Any

import numpy as np

from coupler.contact.blocks import Blocks
from coupler.contact.columns import Node
from coupler.contact.kernels import copy
from coupler.contact.problem import Bilateral, Bounded, Cone, ContactProblem, Solution, Status, Unilateral
from coupler.contact.refinement import Refinement
from coupler.contact.relaxation import Relaxation
from coupler.contact.residuals import reached, residual
from coupler.graph import Buffer, Builder, Executable, Field, Program, Window, compile, constants, fields
from coupler.model.errors import ModelError

__all__ = ["cascade_program", "solve"]

_NODE = 6  # rows of A that are eliminated at once
_FAR = 1e30  # a velocity that no row reaches: where it has no limit


def solve(
    problem: ContactProblem, *, start: np.ndarray | None = None, tolerance: float = 1e-10, most: int = 10
) -> Solution:
    """Solves a problem by sweeps, then by Newton's method and an interior point.

    Args:
        problem: Without torsion.
        start: Impulses to start from, N s; zeros for None.
        tolerance: The residual to reach, m/s.
        most: The number of sweeps.
    """
    contacts = [rows for rows, block in zip(problem.rows, problem.blocks, strict=True) if isinstance(block, Cone)]
    order = [i for rows in contacts for i in range(rows.start, rows.stop)]
    order += sorted({*range(len(problem.b))} - {*order})
    friction, limits, given = _numbers(problem)
    lam, b = problem.start(start) - given, problem.b + problem.A @ given
    inputs = problem.A[np.ix_(order, order)].ravel(), b[order], friction, limits.ravel(), lam[order]
    impulses, counts = _compiled(len(contacts), len(limits), tolerance, most)(*inputs)
    lam = given.copy()
    lam[order] += impulses
    error = residual(problem, lam).total
    solved = reached(problem, lam, error, tolerance * max(1.0, float(np.abs(problem.b).max(initial=0.0))))
    status = Status.SOLVED if solved else Status.INFEASIBLE if problem.proven_infeasible(lam) else Status.LIMIT
    return Solution(lam, problem.velocities(lam), error, int(counts.sum()), status)


def _numbers(problem: ContactProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """µ of contacts; velocities that bound other rows, low and high, and their friction; impulses given in advance."""
    friction, limits, given = list[float](), list[tuple[float, float, float]](), np.zeros(len(problem.b))
    for rows, block in zip(problem.rows, problem.blocks, strict=True):
        match block:
            case Cone(mu, None):
                friction.append(mu)
            case Cone():
                raise ModelError("contact problem: cascade takes no torsion; take another method")
            case Unilateral():
                limits.append((0.0, _FAR, 0.0))
            case Bilateral():
                limits.append((0.0, 0.0, 0.0))
            case Bounded(lower, upper):
                below, above = isinf(lower), isinf(upper)
                given[rows] = 0.0 if below and above else lower if above else upper if below else 0.5 * (lower + upper)
                low, high = 0.0 if above else -_FAR, 0.0 if below else _FAR
                limits.append((low, high, 0.0 if below or above else 0.5 * (upper - lower)))
    return np.array(friction), np.array(limits).reshape(-1, 3), given


@cache
def _compiled(contacts: int, others: int, tolerance: float, most: int) -> Executable:
    return compile(cascade_program(contacts, others, tolerance, most))


def cascade_program(contacts: int, others: int, tolerance: float, most: int = 10) -> Program:
    """The program (A, velocities, friction, limits, start) → (solution, counts) of problems with so many contacts and rows.

    Rows of contacts, three each, come first. `velocities` is b, and `solution` is λ. `limits` has three numbers for each other row: the least and the largest
    velocity, and the largest impulse of its friction. `counts` are sweeps and iterations.
    """
    n, b = 3 * contacts + others, Builder("cascade")
    A, velocities = b.input("A", n * n), b.input("velocities", n)
    friction, limits, start = b.input("friction", contacts), b.input("limits", 3 * others), b.input("start", n)
    solution, counts = b.output("solution", n), b.output("counts", 2)
    bounds, residual_, sweeps, iterations = (
        b.scratch(name, size) for name, size in (("bounds", others), ("residual", 1), ("sweeps", 1), ("iterations", 1))
    )
    ways = _Matrix(b, A, contacts, others)
    blocks = Blocks(b, ways, friction, bounds)
    for source, target in ((velocities, blocks.b), (start, blocks.impulses)):
        if n:
            b.loop(copy, here=fields(source=source.at(0, n), target=target.at(0, n)))
    if others:
        rows = np.arange(others)
        b.loop(copy, here=fields(source=limits.at(3 * rows + 2), target=bounds.at(rows)))
        for k, name in enumerate(("low", "high")):
            own = blocks.of([contacts + int(row) for row in rows]).fields[name]
            b.loop(copy, here=fields(source=limits.at(3 * rows + k), target=own))
    for buffer in (residual_, sweeps, iterations):
        b.loop(_zero, here=fields(target=buffer.at(0)))
    blocks.begin_all()
    blocks.join()
    relaxation = Relaxation(blocks)
    relaxation.solve(tolerance, most, residual_, sweeps)
    Refinement(blocks, ways, relaxation).solve(tolerance, residual_, iterations)
    if n:
        b.loop(copy, here=fields(source=blocks.impulses.at(0, n), target=solution.at(0, n)))
    for k, buffer in enumerate((sweeps, iterations)):
        b.loop(copy, here=fields(source=buffer.at(0), target=counts.at(k)))
    return b.build()


class _Matrix:
    """Blocks that see each other through a matrix A: see `Ways`. All of them see all nodes, of a cluster each."""

    def __init__(self, builder: Builder, A: Buffer, contacts: int, others: int) -> None:
        self._A, self._contacts, self._n = A, contacts, 3 * contacts + others
        self.x = builder.scratch("x", self._n)
        starts = range(0, self._n, _NODE)
        self.nodes = [Node(start, min(start + _NODE, self._n)) for start in starts]

    def shape_of_way(self, group: int) -> int:
        return self._width(group)

    def _width(self, group: int) -> int:
        return 3 if group < self._contacts else 1

    def ways(self, groups: Sequence[int], vector: Buffer | None = None) -> list[Window]:
        x = vector or self.x
        return [
            self.way(groups, [k] * len(groups)) | fields(x=x.at([node.start] * len(groups), node.size))
            for k, node in enumerate(self.nodes)
        ]

    def way(self, groups: Sequence[int], clusters: Sequence[int]) -> Window:
        n, width, size = self._n, self._width(groups[0]), self.nodes[clusters[0]].size
        first = np.array([3 * i if i < self._contacts else i + 2 * self._contacts for i in groups])
        starts = np.array([self.nodes[k].start for k in clusters])
        columns = Field((size, width), tuple(j + i * n for j in range(size) for i in range(width)))
        y = (first[:, None] + np.arange(width))[:, None, :] == (starts[:, None] + np.arange(size))[:, :, None]
        return fields(z=self._A.at(first * n + starts, columns), y=constants(y.astype(float)))

    def parts_of_way(self, group: int) -> dict[int, list[tuple[int, int]]]:
        return {k: [(k, node.size)] for k, node in enumerate(self.nodes)}


def _zero(here: Any) -> None:
    here.target = np.array(0.0)
