"""Projected Gauss-Seidel: cheap sweeps, many of them."""

from __future__ import annotations

import numpy as np

from coupler.contact import laws
from coupler.contact.problem import Cone, ContactProblem, Solution
from coupler.contact.solvers.sweep import Update, sweep
from coupler.model.errors import ModelError


def solve(
    problem: ContactProblem,
    *,
    start: np.ndarray | None = None,
    tolerance: float = 1e-10,
    most: int = 10_000,
    relaxation: float = 1.0,
) -> Solution:
    """Solves a contact problem by projected Gauss-Seidel: for each row or pair of tangents, λ ← P(λ − ω r w).

    P is the nearest admissible impulse, r the inverse mobility (see `residual`): first the normal's, then the
    tangents' on the disc of radius µ λ_n, then those of what turns. Sweeps are slow for stacks, redundant contacts and
    mass ratios, and with much friction they may not converge at all (status LIMIT).

    Args:
        problem: The contact problem.
        start: Impulses to start from, N s, such as those of the step before; zeros for None.
        tolerance: The residual to reach, m/s.
        most: The number of sweeps.
        relaxation: ω, above 0 and below 2; above 1 is over-relaxation.
    """
    if not 0.0 < relaxation < 2.0:
        raise ModelError(f"contact problem: relaxation {relaxation} must be between 0 and 2")
    return sweep(
        problem, lambda A, r, cone: projected_step(A, relaxation * r, cone), start, tolerance, most, relaxation
    )


def projected_step(A: np.ndarray, steps: np.ndarray, cone: Cone) -> Update:
    """The update of a cone: a projected step."""
    by_disc = [steps[0], *(steps[own.start] for _, own in laws.discs(cone.coefficients))]
    return lambda lam, w: laws.projected_step(A, by_disc, cone.coefficients, lam, w)
