"""Lemke's method, and the contact problem as a linear complementarity problem with polyhedral cones.

Friction acts along η directions, the columns of D: λ_t = D λ_F with λ_F ≥ 0 [002, eq. 1], and

    0 ≤ w_n ⊥ λ_N ≥ 0,   0 ≤ S e + Dᵀ w_t ⊥ λ_F ≥ 0,   0 ≤ µ λ_N − eᵀ λ_F ⊥ S ≥ 0,     [002, eq. 4]

where S becomes the speed of slip. Spin is such a friction with the two directions ±1. A row between bounds l and u has
λ = l + x and a slack s: 0 ≤ w + s ⊥ x ≥ 0, 0 ≤ (u − l) − x ⊥ s ≥ 0. Bilateral rows, w = 0, are eliminated. With
λ = λ₀ + G x, all contacts together are [002, eq. 11, 13]

    0 ≤ [ Gᵀ A G  E ] [ x ] + [ Gᵀ (A λ₀ + b) ]  ⊥  [ x ] ≥ 0.
        [ C       0 ] [ s ]   [ c             ]     [ s ]
"""

from __future__ import annotations

import contextlib

import numpy as np

from coupler.contact.laws import discs
from coupler.contact.problem import Bilateral, Bounded, Cone, ContactProblem, Unilateral
from coupler.contact.residuals import reached, residual
from coupler.contact.solution import TOLERANCE, Solution, Status
from coupler.model.errors import ModelError

_ROUNDING = 1e-14  # of the largest entry: what impulses that move nothing leave in A by rounding
_RAY = 1e-9  # a ray proves that there is no solution if it satisfies Farkas' conditions to this part of its length
_TINY = 1e-11  # relative to entries of about one: smaller pivots, and smaller differences of ratios, are rounding


def solve(
    problem: ContactProblem,
    *,
    start: np.ndarray | None = None,
    tolerance: float = TOLERANCE,
    iterations: int = 2_000,
    directions: int = 8,
) -> Solution:
    """Solves a contact problem with polyhedral cones by Lemke's method.

    The solution is exact for these cones; the residual is that of the round ones. With more directions, the velocity of
    slip approaches that of round cones as 1/η, and the dissipation of friction as 1/η². Redundant contacts at mass
    ratios beyond 1e4 may fail by rounding, with status RAY.

    Args:
        problem: the contact problem.
        start: unused, because pivots start from zero; checked all the same.
        tolerance: the error, m/s, that bilateral rows, which are eliminated before the pivots, may have after them.
        iterations: the largest number of pivots.
        directions: η ≥ 3, evenly spaced; an even number makes friction the same forwards and backwards.
    """
    problem.start(start)
    if directions < 3:
        raise ModelError(f"contact problem: {directions} directions of friction do not span a plane; 3 or more do")
    A, b = problem.A, problem.b
    free, X = _eliminated(problem)
    Ar, br = A - A @ X @ A, b - A @ (X @ b)
    if problem.proven_infeasible(np.where(free, -problem.steps * br, 0.0)):  # velocities that no impulse can change
        lam = np.zeros(len(b))
        return Solution(lam, b.copy(), residual(problem, lam).total, 0, Status.INFEASIBLE)
    base, G, E, C, c = _polyhedral(problem, directions)
    M = np.block([[G.T @ Ar @ G, E], [C, np.zeros((len(c), len(c)))]])
    q = np.concatenate([G.T @ (Ar @ base + br), c])
    d = _scales(M, E)
    z, ray, status, pivots = lemke_lcp(M * np.outer(d, d), q * d, iterations)
    lam, away = (G @ (d * v)[: G.shape[1]] for v in (z, ray))
    lam = lam + base
    lam, away = lam - X @ (A @ lam + b), away - X @ (A @ away)
    w = problem.velocities(lam)
    if status is Status.SOLVED and not reached(problem, lam, np.abs(w[free]).max(initial=0.0), tolerance):
        status = Status.RAY
    if status is Status.RAY and problem.proven_infeasible(away):
        status = Status.INFEASIBLE
    return Solution(lam, w, residual(problem, lam).total, pivots, status)


def _eliminated(problem: ContactProblem) -> tuple[np.ndarray, np.ndarray]:
    """Flags of bilateral rows, and their response X, (n, n): λ_free = −X (A λ + b) makes w_free = 0 if possible."""
    lower, upper = problem.bounds
    free = np.isinf(lower) & np.isinf(upper) & ~problem.frictional
    root = np.sqrt(problem.steps[free])
    X = np.zeros_like(problem.A)
    block = np.ix_(free, free)
    X[block] = np.outer(root, root) * np.linalg.pinv(
        np.outer(root, root) * problem.A[block], rcond=_ROUNDING, hermitian=True
    )
    return free, X


def _scales(M: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Scales of x and s that give GᵀAG a unit diagonal, and E and C entries of about one."""
    d = M.diagonal()[: len(E)].copy()
    d[d <= _ROUNDING * d.max(initial=0.0)] = 1.0  # impulses that move nothing
    d = 1.0 / np.sqrt(d)
    return np.concatenate([d, E.sum(axis=0) / (d @ E)])


def _polyhedral(problem: ContactProblem, directions: int) -> tuple[np.ndarray, ...]:
    """λ₀, G, E, C, c of the complementarity problem; rows of G for bilateral rows are zero."""
    n = len(problem.b)
    columns: list[tuple[int, np.ndarray]] = []  # first row and entries of a generator of impulses
    slacks: list[tuple[list[int], int, float, float]] = []  # Σ of some generators ≤ factor · another + width
    base = np.zeros(n)
    angles = 2.0 * np.pi / directions * np.arange(directions)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for i, block in zip(problem.starts, problem.blocks, strict=False):
        normal = len(columns)
        match block:
            case Cone():
                columns.append((i, np.ones(1)))
                for bound, rows in discs(block.coefficients):
                    D = circle if rows.stop - rows.start == 2 else np.array([[1.0], [-1.0]])
                    if bound:
                        slacks.append((list(range(len(columns), len(columns) + len(D))), normal, bound, 0.0))
                        columns += [(i + rows.start, direction) for direction in D]
            case Unilateral():
                columns.append((i, np.ones(1)))
            case Bounded(lower, upper) if np.isfinite(lower) or np.isfinite(upper):
                base[i] = lower if np.isfinite(lower) else upper
                columns.append((i, np.array([1.0 if np.isfinite(lower) else -1.0])))
                if np.isfinite(lower) and np.isfinite(upper):
                    slacks.append(([normal], normal, 0.0, upper - lower))
            case Bounded() | Bilateral():
                pass
    G = np.zeros((n, len(columns)))
    for j, (row, entries) in enumerate(columns):
        G[row : row + len(entries), j] = entries
    E, C = np.zeros((len(columns), len(slacks))), np.zeros((len(slacks), len(columns)))
    for k, (bounded, by, factor, _) in enumerate(slacks):
        C[k, by] = factor
        C[k, bounded] -= 1.0
        E[bounded, k] = 1.0
    return base, G, E, C, np.array([width for *_, width in slacks], float)


def lemke_lcp(M: np.ndarray, q: np.ndarray, iterations: int = 2_000) -> tuple[np.ndarray, np.ndarray, Status, int]:
    """Solves 0 ≤ w = M z + q ⊥ z ≥ 0 by Lemke's method with the lexicographic rule, which prevents cycles.

    If M, (n, n) with entries of about one, is copositive, as in contact problems, the method ends with a solution or a
    ray. The tableau's rows are B⁻¹ [1, −M, −e, q], for w − M z − e z₀ = q: variables 0 … n − 1 are w, then z, then z₀.

    Returns:
        z; the ray along which z can grow without bound, zero if there is none; the status; and the number of pivots.
        INFEASIBLE is proven: the ray y has y ≥ 0, Mᵀ y ≤ 0 and qᵀ y < 0, so no z ≥ 0 makes w ≥ 0. RAY proves nothing.
        If the status is not SOLVED, z is that of the last pivot, and w is not complementary.
    """
    n = len(q)
    size = np.abs(q).max(initial=0.0)
    if q.min(initial=0.0) >= 0.0:
        return np.zeros(n), np.zeros(n), Status.SOLVED, 0
    tableau = np.hstack([np.eye(n), -M, -np.ones((n, 1)), q[:, None] / size])
    start, basis = tableau.copy(), np.arange(n)
    row, entering = n - 1 - int(np.argmin(q[::-1])), 2 * n  # the last of the most negative: least by the rule
    status, pivots = Status.LIMIT, 0
    ray = np.zeros(2 * n + 1)
    while pivots < iterations:
        leaving, basis[row], pivots = basis[row], entering, pivots + 1
        tableau[row] /= tableau[row, entering]
        factors = tableau[:, entering].copy()
        factors[row] = 0.0
        tableau -= np.outer(factors, tableau[row])
        if leaving == 2 * n:
            status = Status.SOLVED
            break
        entering = (leaving + n) % (2 * n)
        row = _leave(tableau, entering, basis)
        if row < 0:
            ray[entering], ray[basis] = 1.0, np.maximum(-tableau[:, entering], 0.0)
            y = ray[n : 2 * n]
            infeasible = (M.T @ y).max() <= _RAY * y.max() and q @ y < -_RAY * size * y.max()
            status = Status.INFEASIBLE if infeasible else Status.RAY
            break
    values = np.zeros(2 * n + 1)
    with contextlib.suppress(np.linalg.LinAlgError):  # a basis of rounding: found out below
        values[basis] = np.linalg.solve(start[:, basis], q)  # afresh, without the rounding of all pivots
    z = np.maximum(values[n : 2 * n], 0.0)
    if np.abs(np.minimum(z, M @ z + q)).max() <= _TINY * (np.abs(M) @ z + np.abs(q)).max():
        status = Status.SOLVED  # also where z₀ is but rounding
    elif status is Status.SOLVED:
        status = Status.RAY
    return z, ray[n : 2 * n], status, pivots


def _leave(tableau: np.ndarray, entering: int, basis: np.ndarray) -> int:
    """The row that leaves: that of z₀ if possible, otherwise that of the lexicographically least [q, B⁻¹] / column."""
    n = len(basis)
    column = tableau[:, entering]
    rows = np.flatnonzero(column > _TINY * max(column.max(), 1.0))
    for k in (2 * n + 1, *range(n)):
        if len(rows) < 2:
            break
        ratios = tableau[rows, k] / column[rows]
        least = ratios.min()
        rows = rows[ratios <= least + _TINY * max(abs(least), 1.0)]
        if k == 2 * n + 1 and (basis[rows] == 2 * n).any():
            rows = rows[basis[rows] == 2 * n]
    return int(rows[0]) if len(rows) else -1
