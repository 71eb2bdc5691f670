"""The solver of the compiled step, sweeps and what follows them, for contact problems that are given by A and b.

It takes any problem without torsion, with A as a product Z Yᵀ. Programs depend on how many contacts, other rows and
columns of Z there are, not on their numbers, and solve many problems at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isinf

import numpy as np

from coupler.contact import bisection
from coupler.contact.blocks import Blocks
from coupler.contact.columns import Node
from coupler.contact.kernels import assign, clear, copy
from coupler.contact.problem import Bilateral, Bounded, Cone, ContactProblem, Solution, Status, Unilateral
from coupler.contact.refinement import Refinement
from coupler.contact.relaxation import Relaxation
from coupler.contact.residuals import reached, residual
from coupler.graph import Buffer, Builder, Executable, Field, Program, Window, compile, fields
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
    Z = _factor(problem)[order].ravel()
    size = len(contacts), len(limits), len(order)
    impulses, counts = _compiled(*size, tolerance, most)(Z, Z, b[order], friction, limits.ravel(), lam[order])
    lam = given.copy()
    lam[order] += impulses
    error = residual(problem, lam).total
    solved = reached(problem, lam, error, tolerance * max(1.0, float(np.abs(problem.b).max(initial=0.0))))
    status = Status.SOLVED if solved else Status.LIMIT
    if not solved and bisection.solve(problem, tolerance=tolerance).status is Status.INFEASIBLE:
        status = Status.INFEASIBLE  # impulses that run away in sweeps are the proof
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


def _factor(problem: ContactProblem) -> np.ndarray:
    """Z with A = Z Zᵀ: by eigenvalues in rows of unit mobility, so that small masses count as well as large ones."""
    root = np.sqrt(problem.steps)
    values, vectors = np.linalg.eigh(root[:, None] * problem.A * root)
    return vectors * np.sqrt(np.maximum(values, 0.0)) / root[:, None]


@cache
def _compiled(contacts: int, others: int, columns: int, tolerance: float, most: int) -> Executable:
    return compile(cascade_program(contacts, others, columns, tolerance, most))


def cascade_program(contacts: int, others: int, columns: int, tolerance: float, most: int = 10) -> Program:
    """The program (Z, Y, velocities, friction, limits, start) → (solution, counts) of problems of one size.

    Rows of contacts, three each, come first; Z and Y have so many columns. `velocities` is b, and `solution` is λ.
    `limits` has three numbers for each other row: the least and the largest velocity, and the largest impulse of its
    friction. `counts` are sweeps and iterations.
    """
    n, b = 3 * contacts + others, Builder("cascade")
    factors = b.input("Z", n * columns), b.input("Y", n * columns)
    velocities, friction = b.input("velocities", n), b.input("friction", contacts)
    limits, start = b.input("limits", 3 * others), b.input("start", n)
    solution, counts = b.output("solution", n), b.output("counts", 2)
    bounds, residual_, sweeps, iterations = (
        b.scratch(name, size) for name, size in (("bounds", others), ("residual", 1), ("sweeps", 1), ("iterations", 1))
    )
    ways = _Product(b, *factors, contacts, columns)
    blocks = Blocks(b, ways, friction, bounds)
    copy(b, velocities, blocks.b, n)
    copy(b, start, blocks.impulses, n)
    if others:
        rows = np.arange(others)
        b.loop(assign, row=fields(source=limits.at(3 * rows + 2), target=bounds.at(rows)))
        for k, name in enumerate(("low", "high")):
            own = blocks.of([contacts + int(row) for row in rows]).fields[name]
            b.loop(assign, row=fields(source=limits.at(3 * rows + k), target=own))
    for buffer in (residual_, sweeps, iterations):
        clear(b, buffer)
    blocks.begin_all()
    blocks.join()
    relaxation = Relaxation(blocks)
    relaxation.solve(tolerance, most, residual_, sweeps)
    Refinement(blocks, ways, relaxation).solve(tolerance, residual_, iterations)
    copy(b, blocks.impulses, solution, n)
    for k, buffer in enumerate((sweeps, iterations)):
        copy(b, buffer, counts, 1, to=k)
    return b.build()


class _Product:
    """Blocks that see each other through Z Yᵀ: see `Ways`. All of them see all nodes, of a cluster each."""

    def __init__(self, builder: Builder, Z: Buffer, Y: Buffer, contacts: int, columns: int) -> None:
        self._Z, self._Y, self._contacts, self._columns = Z, Y, contacts, columns
        self.x = builder.scratch("x", columns)
        self.nodes = [Node(start, min(start + _NODE, columns)) for start in range(0, columns, _NODE)]

    def shape_of_way(self, group: int) -> int:
        return 3 if group < self._contacts else 1

    def ways(self, groups: Sequence[int], vector: Buffer | None = None) -> list[Window]:
        x = vector or self.x
        return [
            self.way(groups, [k] * len(groups)) | fields(x=x.at([node.start] * len(groups), node.size))
            for k, node in enumerate(self.nodes)
        ]

    def way(self, groups: Sequence[int], clusters: Sequence[int]) -> Window:
        m, width, size = self._columns, self.shape_of_way(groups[0]), self.nodes[clusters[0]].size
        first = np.array([3 * i if i < self._contacts else i + 2 * self._contacts for i in groups])
        starts = first * m + np.array([self.nodes[k].start for k in clusters])
        columns = Field((size, width), tuple(j + i * m for j in range(size) for i in range(width)))
        return fields(z=self._Z.at(starts, columns), y=self._Y.at(starts, columns))

    def parts_of_way(self, group: int) -> dict[int, list[tuple[int, int]]]:
        return {k: [(k, node.size)] for k, node in enumerate(self.nodes)}
