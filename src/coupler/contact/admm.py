"""The alternating direction method of multipliers: for ill-conditioned and redundant contacts.

With De Saxcé's correction the laws of a cone K are those of a convex problem's optimum: λ ∈ K, w + s(w) ∈ K* and
λ ⊥ w + s(w), with s = (µ |w_t| + τ |w_s|) on the normal. Rows between bounds are cones of their own. The iteration
splits impulses x, which know A, from impulses y, which know the cones, with multipliers z, in the end w + s:

    x ← (A + (ρ + η) 1)⁻¹ (z + ρ y + η x − b − s(z))
    y ← P_K(x − z / ρ)
    z ← z − ρ (x − y)

One eigendecomposition of A serves all ρ, and singular A too. Blocks are scaled to unit mobility first, tangents like
their normals so that cones stay round; so mass ratios matter only inside a block.
"""

from __future__ import annotations

import numpy as np

from coupler.contact.newton import polished
from coupler.contact.problem import ContactProblem, Solution, Status
from coupler.contact.residuals import reached, residual

__all__ = ["solve"]

_PROXIMAL = 1e-6  # η, beside unit mobilities
_RELAXED = 1.6  # over-relaxation of x
_BALANCE = 10  # iterations between changes of ρ
_POLISH = 25  # iterations between attempts to end with Newton's steps


def solve(
    problem: ContactProblem, *, start: np.ndarray | None = None, tolerance: float = 1e-10, most: int = 20_000
) -> Solution:
    """Solves a contact problem by ADMM on the true cones; every 25th iteration, Newton's steps try to end it.

    Args:
        problem: The contact problem.
        start: Impulses to start from, N s, such as those of the step before; zeros for None.
        tolerance: The residual to reach, m/s.
        most: The number of iterations.
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
    while not (solved := reached(problem, lam, error, tolerance)) and k < most and status is Status.LIMIT:
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
            end, least = polished(problem, lam, tolerance)
            if reached(problem, end, least, tolerance):
                lam, error = end, least
    return Solution(lam, problem.velocities(lam), error, k, Status.SOLVED if solved else status)


def _balance(primal: float, dual: float, impulse: float, velocity: float) -> float:
    """The factor on ρ that brings both residuals, relative to what they are residuals of, together."""
    primal, dual = primal / max(impulse, 1e-300), dual / max(velocity, 1e-300)
    if min(primal, dual) <= 0.0:
        return 1.0
    factor = np.sqrt(primal / dual)
    return float(np.clip(factor, 0.2, 5.0)) if not 0.5 < factor < 2.0 else 1.0


def _scales(problem: ContactProblem) -> np.ndarray:
    """d of λ = d y, so that d A d has a diagonal of about one; the same for a cone's normal and tangents."""
    d = np.sqrt(problem.steps)
    d[problem.normals] = np.minimum(d[problem.normals], d[problem.tangents[:, 0]])
    d[problem.tangents] = d[problem.normals][:, None]
    return d


class _Cones:
    """The admissible impulses of a scaled problem."""

    def __init__(self, problem: ContactProblem, d: np.ndarray) -> None:
        self.n, self.t, self.s = problem.normals, problem.tangents, problem.spins
        self.which = problem.spinning
        self.mu = problem.friction
        self.tau = problem.torsion.copy()
        self.tau[self.which] *= d[self.n[self.which]] / d[self.s]
        lower, upper = problem.bounds
        self.bounds = lower / d, upper / d

    def project(self, x: np.ndarray) -> np.ndarray:
        """The nearest admissible impulses.

        The nearest point of a cone has T = min(|x_t|, µ n) and S = min(|x_s|, τ n), where n is the root of
        n − x_n − µ max(|x_t| − µ n, 0) − τ max(|x_s| − τ n, 0): the least of four rising lines, hence the largest of
        their roots.
        """
        y = np.clip(x, *self.bounds)
        n, T, S = self._sizes(x)
        mu, tau = self.mu, self.tau
        roots = (
            n,
            (n + mu * T) / (1 + mu**2),
            (n + tau * S) / (1 + tau**2),
            (n + mu * T + tau * S) / (1 + mu**2 + tau**2),
        )
        n = np.maximum(np.max(roots, axis=0), 0.0)
        radius = mu * n
        scale = np.divide(radius, T, out=np.ones_like(T), where=radius < T)
        y[self.n] = n
        y[self.t] = scale[:, None] * x[self.t]
        bound = (tau * n)[self.which]
        y[self.s] = np.clip(x[self.s], -bound, bound)
        return y

    def correction(self, w: np.ndarray) -> np.ndarray:
        """De Saxcé's s(w): µ |w_t| + τ |w_s| on the normals."""
        _, T, S = self._sizes(w)
        s = np.zeros_like(w)
        s[self.n] = self.mu * T + self.tau * S
        return s

    def _sizes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        t = x[self.t]
        S = np.zeros(len(self.n))
        S[self.which] = np.abs(x[self.s])
        return x[self.n], np.hypot(t[:, 0], t[:, 1]), S
