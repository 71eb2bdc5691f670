"""The solver of the compiled step, sweeps and the methods that follow them, for problems given by A and b.

It takes any problem whose A is a product Z Yᵀ. A program depends on the number of contacts of each kind, of other rows
and of columns of Z, but not on their values, and solves many problems at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf, isinf

import numpy as np

from coupler.contact.kernels import assign, clear, copy
from coupler.contact.problem import Bilateral, Block, Bounded, Cone, ContactProblem, Unilateral
from coupler.contact.residuals import reached, residual
from coupler.contact.rows import ContactRows
from coupler.contact.solution import TOLERANCE, Solution, Status
from coupler.contact.solvers import bisection
from coupler.contact.step.columns import Node
from coupler.contact.step.interaction import InteractingBlocks
from coupler.contact.step.refinement import Refinement
from coupler.contact.step.relaxation import Relaxation
from coupler.graph import Buffer, Builder, Executable, Field, Program, Window, compile, fields

_NODE = 6  # rows of A that are eliminated together
_FAR = 1e30  # a velocity that no row reaches, for rows without a limit


def solve(
    problem: ContactProblem, *, start: np.ndarray | None = None, tolerance: float = TOLERANCE, iterations: int = 10
) -> Solution:
    """Solves a problem by sweeps, then by Newton's method, an interior-point method and path following.

    Args:
        problem: the contact problem.
        start: impulses to start from, N s; zeros if None.
        tolerance: the residual to reach, m/s.
        iterations: the largest number of sweeps.
    """
    cones = [(rows, x) for rows, x in zip(problem.rows, problem.blocks, strict=True) if isinstance(x, Cone)]
    order = [i for rows, _ in cones for i in range(rows.start, rows.stop)]
    others = sorted({*range(len(problem.b))} - {*order})
    friction = np.array([x for _, cone in cones for x in cone.coefficients])
    limits, advance = row_limits(problem.blocks)
    given = np.zeros(len(problem.b))
    given[others] = advance
    order += others
    lam, b = problem.start(start) - given, problem.b + problem.A @ given
    Z = _factor(problem)[order].ravel()
    size = tuple(len(cone.coefficients) for _, cone in cones), len(limits), len(order)
    impulses, counts = _compiled(*size, tolerance, iterations)(Z, Z, b[order], friction, limits.ravel(), lam[order])
    lam = given.copy()
    lam[order] += impulses
    error = residual(problem, lam).total
    solved = reached(problem, lam, error, tolerance * max(1.0, float(np.abs(problem.b).max(initial=0.0))))
    status = Status.SOLVED if solved else Status.LIMIT
    if not solved and bisection.solve(problem, tolerance=tolerance).status is Status.INFEASIBLE:
        status = Status.INFEASIBLE  # impulses that run away in sweeps are the proof
    return Solution(lam, problem.velocities(lam), error, int(counts.sum()), status)


def row_limits(blocks: Sequence[Block]) -> tuple[np.ndarray, np.ndarray]:
    """The laws of the rows that are not contacts, as the program takes them.

    Returns:
        (n, 3): the least and the largest velocity, and the largest impulse of friction; and (n,), constant impulses
        that act in addition to those of the program.
    """
    limits, given = list[tuple[float, float, float]](), list[float]()
    for block in blocks:
        match block:
            case Cone():
                continue
            case Unilateral():
                lower, upper = 0.0, inf
            case Bilateral():
                lower, upper = -inf, inf
            case Bounded(lower, upper):
                pass
        below, above = isinf(lower), isinf(upper)
        given.append(0.0 if below and above else lower if above else upper if below else 0.5 * (lower + upper))
        bound = 0.0 if below or above else 0.5 * (upper - lower)
        limits.append((0.0 if above else -_FAR, 0.0 if below else _FAR, bound))
    return np.array(limits).reshape(-1, 3), np.array(given)


def _factor(problem: ContactProblem) -> np.ndarray:
    """Z with A = Z Zᵀ, by eigenvalues in rows of unit mobility, so that small masses count as much as large ones."""
    root = np.sqrt(problem.steps)
    values, vectors = np.linalg.eigh(root[:, None] * problem.A * root)
    return vectors * np.sqrt(np.maximum(values, 0.0)) / root[:, None]


@cache
def _compiled(discs: tuple[int, ...], others: int, columns: int, tolerance: float, sweeps: int) -> Executable:
    return compile(cascade_program(discs, others, columns, tolerance, sweeps))


def cascade_program(
    discs: Sequence[int],
    others: int,
    columns: int,
    tolerance: float,
    most_sweeps: int = 10,
    seen: Sequence[Sequence[int]] | None = None,
) -> Program:
    """The program (Z, Y, velocities, friction, limits, start) → (solution, counts) for problems of one size.

    Rows of contacts come first. `velocities` is b, and `solution` is λ. `friction` has a coefficient for each disc of
    each contact (see laws.py). `limits` has three numbers for each other row: the least and the largest velocity, and
    the largest impulse of its friction. `counts` are the numbers of sweeps and of further iterations.

    Args:
        discs: the number of discs of each contact: 1; with torsion 2; with rolling friction 3.
        others: the number of other rows.
        columns: the number of columns of Z and Y.
        tolerance: the residual to reach, m/s; times the largest entry of b, if that is above 1 m/s.
        most_sweeps: the largest number of sweeps.
        seen: for each contact and other row, the nodes of 6 columns each in which its rows of Z and Y may be nonzero;
            all, if None.
    """
    rows_of, b = ContactRows(discs), Builder("cascade")
    n, contacts = rows_of.total + others, len(rows_of)
    factors = b.input("Z", n * columns), b.input("Y", n * columns)
    velocities, friction = b.input("velocities", n), b.input("friction", sum(discs))
    limits, start = b.input("limits", 3 * others), b.input("start", n)
    solution, counts = b.output("solution", n), b.output("counts", 2)
    bounds, residual_, sweeps, iterations = (
        b.scratch(name, size) for name, size in (("bounds", others), ("residual", 1), ("sweeps", 1), ("iterations", 1))
    )
    ways = _Product(b, *factors, rows_of, columns, seen)
    blocks = InteractingBlocks(b, ways, rows_of, friction, bounds)
    copy(b, velocities, blocks.b, n)
    copy(b, start, blocks.impulses, n)
    if others:
        rows = np.arange(others)
        b.loop(assign, row=fields(source=limits.at(3 * rows + 2), target=bounds.at(rows)))
        for k, name in enumerate(("low", "high")):
            target = blocks.of([contacts + int(row) for row in rows]).fields[name]
            b.loop(assign, row=fields(source=limits.at(3 * rows + k), target=target))
    for buffer in (residual_, sweeps, iterations):
        clear(b, buffer)
    blocks.begin_all()
    blocks.join()
    relaxation = Relaxation(blocks)
    relaxation.solve(tolerance, most_sweeps, residual_, sweeps)
    Refinement(blocks, ways, relaxation).solve(tolerance, residual_, iterations)
    copy(b, blocks.impulses, solution, n)
    for k, buffer in enumerate((sweeps, iterations)):
        copy(b, buffer, counts, 1, to=k)
    return b.build()


class _Product:
    """Blocks that interact through Z Yᵀ: see `Ways`."""

    def __init__(
        self,
        builder: Builder,
        Z: Buffer,
        Y: Buffer,
        rows: ContactRows,
        columns: int,
        seen: Sequence[Sequence[int]] | None,
    ) -> None:
        self._Z, self._Y, self._rows, self._columns, self._seen = Z, Y, rows, columns, seen
        self.x = builder.scratch("x", columns)
        self.nodes = [Node(start, min(start + _NODE, columns)) for start in range(0, columns, _NODE)]

    def parts_of_way(self, group: int) -> dict[int, int]:
        nodes = range(len(self.nodes)) if self._seen is None else self._seen[group]
        return {k: self.nodes[k].size for k in nodes}

    def way(self, groups: Sequence[int], nodes: Sequence[int]) -> Window:
        m, size = self._columns, self.nodes[nodes[0]].size
        first, width = self._rows.first_of(groups), self._rows.width_of(groups[0])
        parts = np.array([self.nodes[k].start for k in nodes])
        columns = Field((size, width), tuple(j + i * m for j in range(size) for i in range(width)))
        z, y = (factor.at(first * m + parts, columns) for factor in (self._Z, self._Y))
        return fields(z=z, y=y, x=self.x.at(parts, size))
