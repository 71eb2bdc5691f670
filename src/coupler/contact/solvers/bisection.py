"""Gauss-Seidel sweeps that solve each contact exactly on its round friction cone.

One contact has impulses λ = (λ_n, λ_t) and velocities w = A λ + b, where b is what all other impulses leave. It is

- open if b_n ≥ 0: λ = 0;
- sticking if λ = −A⁻¹ b lies in the cone: w = 0;
- otherwise sliding: λ is on the boundary of the cone, λ_t = µ λ_n u with a unit vector u, and w_n = 0. These two
  conditions meet in an ellipse,

      λ_n = β / (a + µ c·u),   with β = −b_n, a = A_nn, c = A_nt,

  on which friction dissipates most where w_t = −κ u, κ ≥ 0. So u solves u × w_t = 0, which times the denominator is

      F(u) = u × (β A_tn + a b_t) + µ (β u × A_tt u + (c·u) (u × b_t)) = 0.

  F has at most four zeros on the circle. Each is bracketed on a grid of angles, and its arc is cut until it is found.

Sweeps that solve one contact after another in this way are the per-contact iteration of Hwangbo, Lee and Hutter, 2018.
(They choose u where the energy along the ellipse is least, which is Coulomb's u only if c = 0.)

Compiled steps are tested against this solver. It therefore solves a contact without laws.py and cone_update.py, except
for the residual that ends the sweeps, and for a projected step where a singular block gives no solution.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from coupler.contact.problem import Cone, ContactProblem
from coupler.contact.solution import TOLERANCE, Solution
from coupler.contact.solvers.gauss_seidel import projected_step
from coupler.contact.solvers.sweep import Update, sweep

_POLISH = 10  # sweeps between attempts to finish with Newton steps
_JAMMED = 1e-3  # of A_nn: a sliding contact jams where friction leaves less of it than this
_ROUNDING = 1e-16  # of the coefficients of F: how far from zero F may be at a zero
_SINGULAR = 1e-12  # of the largest singular value: a block with a smaller one counts as singular
_ANGLES = np.arange(65) * (2.0 * np.pi / 64)
_COS, _SIN = np.cos(_ANGLES), np.sin(_ANGLES)
_GRID = np.stack([_COS, _SIN, _COS**2, _SIN**2, _COS * _SIN], axis=1)


def solve(
    problem: ContactProblem, *, start: np.ndarray | None = None, tolerance: float = TOLERANCE, iterations: int = 2_000
) -> Solution:
    """Solves a contact problem by sweeps that solve each contact exactly.

    Every tenth sweep, Newton steps try to finish it: sweeps alone are slow where contacts are redundant.

    Args:
        problem: the contact problem.
        start: impulses to start from, N s, such as those of the step before; zeros if None.
        tolerance: the residual to reach, m/s.
        iterations: the largest number of sweeps.
    """
    return sweep(problem, _contact, start, tolerance, iterations, polish=_POLISH)


def _contact(A: np.ndarray, steps: np.ndarray, cone: Cone) -> Update:
    """The exact update of a cone; a projected step if A's block is singular, or the cone resists rolling."""
    fallback = projected_step(A, steps, cone)
    if cone.rolling is not None:
        return fallback
    cases = [_OneContact(A, cone.friction)] if cone.torsion is None else _spin_cases(A, cone.friction, cone.torsion)

    def update(lam: np.ndarray, w: np.ndarray) -> np.ndarray:
        b = w - A @ lam
        if b[0] >= 0.0:
            return np.zeros(len(lam))
        for case in cases:
            solution = case.solve(b)
            if solution is not None:
                return solution
        return fallback(lam, w)

    return update


class _OneContact:
    """The problem of one contact; A need not be symmetric."""

    def __init__(self, A: np.ndarray, friction: float) -> None:
        self.A, self.friction = A, friction
        self.inverse = _inverse(A)

    def solve(self, b: np.ndarray) -> np.ndarray | None:
        """λ of a contact that would close, b_n < 0; None if there is no solution."""
        if self.inverse is not None:
            n, x, y = lam = -self.inverse @ b
            if n > 0.0 and x * x + y * y <= (self.friction * n) ** 2:
                return lam
        return self._slide(*b.tolist())

    def _slide(self, bn: float, bx: float, by: float) -> np.ndarray | None:
        (a, cx, cy), (dx, Txx, Txy), (dy, Tyx, Tyy) = self.A.tolist()
        mu, beta = self.friction, -bn
        if mu == 0.0:
            return np.array((beta / a, 0.0, 0.0)) if a > 0.0 else None
        F = (
            beta * dy + a * by,
            -(beta * dx + a * bx),
            mu * (beta * Tyx + cx * by),
            -mu * (beta * Txy + cy * bx),
            mu * (beta * (Tyy - Txx) + cy * by - cx * bx),
        )
        best, dissipated = None, inf
        values = _GRID @ F
        for k in np.flatnonzero((values[:-1] > 0.0) != (values[1:] > 0.0)).tolist():
            ux, uy = _zero(F, k)
            size = a + mu * (cx * ux + cy * uy)
            if size <= _JAMMED * a:  # impulses would be out of all proportion
                continue
            n = beta / size
            tx, ty = mu * n * ux, mu * n * uy
            along = ux * (dx * n + Txx * tx + Txy * ty + bx) + uy * (dy * n + Tyx * tx + Tyy * ty + by)
            if along <= 0.0 and n * along < dissipated:  # friction opposes slip; of several zeros, take the one that
                best, dissipated = np.array((n, tx, ty)), n * along  # dissipates most
        return best


def _zero(F: tuple[float, ...], k: int) -> tuple[float, float]:
    """The unit vector in the grid's k-th arc where F changes its sign.

    The arc is cut where the chord of F is zero. The value at an end that stays twice is halved (the Illinois rule), so
    that both ends close in.
    """

    def value(x: float, y: float) -> float:
        return F[0] * x + F[1] * y + F[2] * x * x + F[3] * y * y + F[4] * x * y

    x0, y0, x1, y1 = float(_COS[k]), float(_SIN[k]), float(_COS[k + 1]), float(_SIN[k + 1])
    f0, f1 = value(x0, y0), value(x1, y1)
    small = _ROUNDING * sum(map(abs, F))
    for _ in range(60):
        s = f0 / (f0 - f1) if f0 != f1 else 0.5
        x, y = x0 + s * (x1 - x0), y0 + s * (y1 - y0)
        length = sqrt(x * x + y * y)
        x, y = x / length, y / length
        f = value(x, y)
        if (f > 0.0) != (f1 > 0.0):
            x0, y0, f0 = x1, y1, f1
        else:
            f0 *= 0.5
        x1, y1, f1 = x, y, f
        if abs(f) <= small:
            break
    return x1, y1


class _Spin:
    """A contact with torsion in one of three cases, each of which reduces it to a contact of three rows.

    Held (side 0): w_s = 0, and λ_s is eliminated. Spinning (side ±1): λ_s = ±τ λ_n, and its effects are added to those
    of λ_n.
    """

    def __init__(self, A: np.ndarray, friction: float, torsion: float, side: float) -> None:
        self.A, self.torsion, self.side = A, torsion, side
        reduced = A[:3, :3].copy()
        if side == 0.0:
            reduced -= np.outer(A[:3, 3], A[3, :3]) / A[3, 3]
        else:
            reduced[:, 0] += side * torsion * A[:3, 3]
        self.contact = _OneContact(reduced, friction)

    def solve(self, b: np.ndarray) -> np.ndarray | None:
        A, held = self.A, self.side == 0.0
        reduced = b[:3] - A[:3, 3] * (b[3] / A[3, 3]) if held else b[:3]
        lam = self.contact.solve(reduced) if reduced[0] < 0.0 else None
        if lam is None:
            return None
        w = A[3, :3] @ lam + b[3]
        spin = -w / A[3, 3] if held else self.side * self.torsion * lam[0]
        fits = abs(spin) <= self.torsion * lam[0] if held else self.side * (w + A[3, 3] * spin) <= 0.0
        return np.append(lam, spin) if fits else None


def _spin_cases(A: np.ndarray, friction: float, torsion: float) -> list[_Spin]:
    sides = (0.0, 1.0, -1.0) if A[3, 3] > 0.0 else (1.0, -1.0)
    return [_Spin(A, friction, torsion, side) for side in sides]


def _inverse(A: np.ndarray) -> np.ndarray | None:
    """A⁻¹, or None if A is singular beside its rounding."""
    values = np.linalg.svd(A, compute_uv=False)
    return np.linalg.inv(A) if values[-1] > _SINGULAR * values[0] else None
