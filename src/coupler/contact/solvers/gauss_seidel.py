"""Projected Gauss-Seidel: many cheap sweeps."""

from __future__ import annotations

import numpy as np

from coupler.contact import laws
from coupler.contact.problem import Cone, ContactProblem
from coupler.contact.solution import TOLERANCE, Solution
from coupler.contact.solvers.sweep import Update, sweep
from coupler.model.errors import ModelError


def solve(
    problem: ContactProblem,
    *,
    start: np.ndarray | None = None,
    tolerance: float = TOLERANCE,
    iterations: int = 10_000,
    relaxation: float = 1.0,
) -> Solution:
    """Solves a contact problem by projected Gauss-Seidel: for each row or disc, λ ← P(λ − ω r w).

    P is the projection onto admissible impulses and r the inverse mobility (see `residual`). Each contact updates its
    normal first, then its tangents on the disc of radius µ λ_n, then spin and rolling. Sweeps converge slowly for
    stacks, redundant contacts and large mass ratios, and may not converge at all with much friction (status LIMIT).

    Args:
        problem: the contact problem.
        start: impulses to start from, N s, such as those of the step before; zeros if None.
        tolerance: the residual to reach, m/s.
        iterations: the largest number of sweeps.
        relaxation: ω, above 0 and below 2; above 1 is over-relaxation.
    """
    if not 0.0 < relaxation < 2.0:
        raise ModelError(f"contact problem: relaxation {relaxation} must be between 0 and 2")
    return sweep(
        problem, lambda A, r, cone: projected_step(A, relaxation * r, cone), start, tolerance, iterations, relaxation
    )


def projected_step(A: np.ndarray, steps: np.ndarray, cone: Cone) -> Update:
    """The update of a cone by a projected step; see `laws.projected_step`."""
    by_disc = [steps[0], *(steps[rows.start] for _, rows in laws.discs(cone.coefficients))]
    return lambda lam, w: laws.projected_step(A, by_disc, cone.coefficients, lam, w)
