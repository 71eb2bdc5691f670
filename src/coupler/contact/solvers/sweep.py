"""Sweeps over the blocks of a contact problem: each block is solved for its own impulses while the others are fixed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.contact.problem import Cone, ContactProblem
from coupler.contact.residuals import reached, residual
from coupler.contact.solution import Solution, Status
from coupler.contact.solvers.newton import polished

# From a block's impulses and velocities to its new impulses.
Update = Callable[[np.ndarray, np.ndarray], np.ndarray]


def sweep(
    problem: ContactProblem,
    cone: Callable[[np.ndarray, np.ndarray, Cone], Update],
    start: np.ndarray | None,
    tolerance: float,
    iterations: int,
    relaxation: float = 1.0,
    polish: int = 0,
) -> Solution:
    """Sweeps until the residual is reached, no sweeps are left, or growing impulses prove that there is no solution.

    Args:
        problem: the contact problem.
        cone: makes the update of a cone from its block of A, its inverse mobilities and its law.
        start: impulses to start from, N s.
        tolerance: the residual to reach, m/s.
        iterations: the largest number of sweeps.
        relaxation: ω in λ ← P(λ − ω w / A_ii), for rows that are not cones.
        polish: the number of sweeps between attempts to finish with Newton steps; 0 for none.
    """
    lam = problem.start(start)
    w = problem.velocities(lam)
    lower, upper = problem.bounds
    updates: list[tuple[slice, np.ndarray, Update]] = []
    for block, rows in zip(problem.blocks, problem.rows, strict=True):
        r = problem.steps[rows]
        if isinstance(block, Cone):
            update = cone(problem.A[rows, rows], r, block)
        else:
            update = _row(relaxation * float(r[0]), float(lower[rows][0]), float(upper[rows][0]))
        updates.append((rows, problem.A[rows], update))
    error = residual(problem, lam).total
    status, k = Status.LIMIT, 0
    while not (solved := reached(problem, lam, error, tolerance)) and k < iterations and status is Status.LIMIT:
        before = lam.copy()
        for rows, A, update in updates:
            new = update(lam[rows], w[rows])
            w += (new - lam[rows]) @ A
            lam[rows] = new
        w = problem.velocities(lam)  # afresh, so that rounding does not add up
        error, k = residual(problem, lam).total, k + 1
        if problem.proven_infeasible(lam - before):
            status = Status.INFEASIBLE
        elif polish and k % polish == 0:
            polished_impulses, polished_error = polished(problem, lam, tolerance)
            if reached(problem, polished_impulses, polished_error, tolerance):
                lam, error = polished_impulses, polished_error
    return Solution(lam, problem.velocities(lam), error, k, Status.SOLVED if solved else status)


def _row(step: float, lower: float, upper: float) -> Update:
    """A row between bounds: λ = P(λ − r w)."""

    def update(lam: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.array([min(max(lam[0] - step * w[0], lower), upper)])

    return update
