"""Projected Gauss-Seidel: cheap sweeps, many of them."""

from __future__ import annotations

from math import hypot

import numpy as np

from coupler.contact.problem import Cone, ContactProblem, Solution
from coupler.contact.sweep import Update, sweep
from coupler.model.errors import ModelError

__all__ = ["projected_step", "solve"]


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
    tangents' on the disc of radius µ λ_n, then the spin's. Sweeps are slow for stacks, redundant contacts and mass
    ratios, and with much friction they may not converge at all (status LIMIT).

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
    """The update of a cone: normal, tangents, spin, each with the velocities that those before it leave."""
    a, r, mu, tau = A.tolist(), steps.tolist(), cone.friction, cone.torsion

    def update(lam: np.ndarray, w: np.ndarray) -> np.ndarray:
        n, x, y, *s = lam.tolist()
        w = w.tolist()
        new = max(n - r[0] * w[0], 0.0)
        tx = x - r[1] * (w[1] + a[1][0] * (new - n))
        ty = y - r[2] * (w[2] + a[2][0] * (new - n))
        length, radius = hypot(tx, ty), mu * new
        if length > radius:
            tx, ty = tx * radius / length, ty * radius / length
        if tau is None:
            return np.array((new, tx, ty))
        spin = w[3] + a[3][0] * (new - n) + a[3][1] * (tx - x) + a[3][2] * (ty - y)
        return np.array((new, tx, ty, min(max(s[0] - r[3] * spin, -tau * new), tau * new)))

    return update
