"""The alternating direction method of multipliers, for ill-conditioned and redundant contacts.

With De Saxcé's correction, the laws of a cone K are the optimality conditions of a convex problem: λ ∈ K, w + s(w) ∈ K*
and λ ⊥ w + s(w), with s = (µ |w_t| + τ |w_s|) on the normal. Rows between bounds are cones of their own. The iteration
splits the impulses into x, which satisfy the dynamics A, and y, which satisfy the cones, with multipliers z that
converge to w + s:

    x ← (A + (ρ + η) 1)⁻¹ (z + ρ y + η x − b − s(z))
    y ← P_K(x − z / ρ)
    z ← z − ρ (x − y)

One eigendecomposition of A serves all ρ, even if A is singular. Blocks are first scaled to unit mobility, tangents by
the same factor as their normals so that cones stay round; mass ratios then matter only inside a block.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coupler.contact.laws import de_saxce_shift, nearest_in_cone
from coupler.contact.problem import Cones, ContactProblem
from coupler.contact.residuals import reached, residual
from coupler.contact.solution import TOLERANCE, Solution, Status
from coupler.contact.solvers.newton import polished
from coupler.model.tolerances import TINY

_PROXIMAL = 1e-6  # η, relative to unit mobilities
_RELAXED = 1.6  # over-relaxation of x
_BALANCE = 10  # iterations between changes of ρ
_POLISH = 25  # iterations between attempts to finish with Newton steps


def solve(
    problem: ContactProblem, *, start: np.ndarray | None = None, tolerance: float = TOLERANCE, iterations: int = 20_000
) -> Solution:
    """Solves a contact problem by ADMM on the round cones; every 25th iteration, Newton steps try to finish it.

    Args:
        problem: the contact problem.
        start: impulses to start from, N s, such as those of the step before; zeros if None.
        tolerance: the residual to reach, m/s.
        iterations: the largest number of iterations.
    """
    d = _scales(problem)
    cones = _Cones(problem, d)
    values, vectors = np.linalg.eigh(d[:, None] * problem.A * d)
    b = d * problem.b
    y = problem.start(start) / d
    x, z = y, d * problem.velocities(d * y)
    z = z + cones.correction(z)
    rho = 1.0
    lam = d * y
    error = residual(problem, lam).total
    status, k = Status.LIMIT, 0
    while not (solved := reached(problem, lam, error, tolerance)) and k < iterations and status is Status.LIMIT:
        before = y
        right = z + rho * y + _PROXIMAL * x - b - cones.correction(z)
        x = vectors @ ((vectors.T @ right) / (np.maximum(values, 0.0) + rho + _PROXIMAL))
        mixed = _RELAXED * x + (1.0 - _RELAXED) * y
        y = cones.project(mixed - z / rho)
        z = z - rho * (mixed - y)
        lam, k = d * y, k + 1
        error = residual(problem, lam).total
        if k % _BALANCE == 0:
            rho *= _balance(np.abs(x - y).max(), rho * np.abs(y - before).max(), np.abs(y).max(), np.abs(z).max())
        if problem.proven_infeasible(d * (y - before)):
            status = Status.INFEASIBLE
        elif k % _POLISH == 0:
            polished_impulses, polished_error = polished(problem, lam, tolerance)
            if reached(problem, polished_impulses, polished_error, tolerance):
                lam, error = polished_impulses, polished_error
    return Solution(lam, problem.velocities(lam), error, k, Status.SOLVED if solved else status)


def _balance(primal: float, dual: float, impulse: float, velocity: float) -> float:
    """The factor on ρ that makes the two residuals, each relative to its own variable, equal."""
    primal, dual = primal / max(impulse, TINY), dual / max(velocity, TINY)
    if min(primal, dual) <= 0.0:
        return 1.0
    factor = np.sqrt(primal / dual)
    return float(np.clip(factor, 0.2, 5.0)) if not 0.5 < factor < 2.0 else 1.0


def _scales(problem: ContactProblem) -> np.ndarray:
    """The factors d of λ = d y that give d A d a diagonal of about one; a cone's normal and tangents share theirs."""
    d = np.sqrt(problem.steps)
    for cones in problem.cones:
        d[cones.rows[:3]] = d[cones.rows[:2]].min(axis=0)
    return d


class _Cones:
    """The admissible impulses of a scaled problem."""

    def __init__(self, problem: ContactProblem, d: np.ndarray) -> None:
        lower, upper = problem.bounds
        self._bounds, self._cones = (lower / d, upper / d), [_scaled(cones, d) for cones in problem.cones]

    def project(self, x: np.ndarray) -> np.ndarray:
        """The nearest admissible impulses."""
        y = np.clip(x, *self._bounds)
        for cones in self._cones:
            y[cones.rows] = nearest_in_cone(cones.friction, x[cones.rows])
        return y

    def correction(self, w: np.ndarray) -> np.ndarray:
        """De Saxcé's s(w), on the normals."""
        s = np.zeros_like(w)
        for cones in self._cones:
            s[cones.rows[0]] = de_saxce_shift(cones.friction, w[cones.rows])
        return s


def _scaled(cones: Cones, d: np.ndarray) -> Cones:
    """Cones in scaled impulses: tangents are scaled like their normals, spin and rolling are not."""
    n, _, *rotational = cones.by_disc(d)
    mu, *arms = cones.friction
    return replace(cones, friction=(mu, *(arm * n / scale for arm, scale in zip(arms, rotational, strict=True))))
