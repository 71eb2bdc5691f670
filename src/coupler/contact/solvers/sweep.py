"""Sweeps over the blocks of a contact problem, each solved for its own impulses while the others' stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.contact.problem import Cone, ContactProblem, Solution, Status
from coupler.contact.residuals import reached, residual
from coupler.contact.solvers.newton import polished

# From a block's impulses and velocities to its new impulses.
Update = Callable[[np.ndarray, np.ndarray], np.ndarray]


def sweep(
    problem: ContactProblem,
    cone: Callable[[np.ndarray, np.ndarray, Cone], Update],
    start: np.ndarray | None,
    tolerance: float,
    most: int,
    relaxation: float = 1.0,
    polish: int = 0,
) -> Solution:
    """Sweeps until the residual is met, the sweeps are spent, or the impulses run away along a proof that none do.

    Args:
        problem: The contact problem.
        cone: How to update a cone, from its block of A, its inverse mobilities and itself.
        start: Impulses to start from, N s.
        tolerance: The residual to reach, m/s.
        most: The number of sweeps.
        relaxation: Of rows that are no cones: ω in λ ← P(λ − ω w / A_ii).
        polish: Sweeps between attempts to end with Newton's steps; 0 for none.
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
    while not (solved := reached(problem, lam, error, tolerance)) and k < most and status is Status.LIMIT:
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
            end, least = polished(problem, lam, tolerance)
            if reached(problem, end, least, tolerance):
                lam, error = end, least
    return Solution(lam, problem.velocities(lam), error, k, Status.SOLVED if solved else status)


def _row(step: float, lower: float, upper: float) -> Update:
    """A row between bounds: λ = P(λ − r w)."""

    def update(lam: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.array([min(max(lam[0] - step * w[0], lower), upper)])

    return update
