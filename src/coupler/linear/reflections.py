"""Linear systems of floats or nodes by Householder's reflections, which need no pivots and hence no branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.rows import LONG, Rows, has_unknown, is_zero, pattern
from coupler.zeros import plan_of_reflections, runs

Array = Any  # an ndarray of floats, or of nodes


def solve(A: Array, B: Array) -> Array:
    """A⁻¹ B for a small square A of any kind, and a vector or matrix B.

    One and two rows are solved by hand, more by Householder's reflections, which need no pivots and hence no branches.
    """
    columns = B[:, None] if B.ndim == 1 else B
    if len(A) == 1:
        X = columns / A[0, 0]
    elif len(A) == 2:
        (a, b), (c, d) = A
        X = np.array([d * columns[0] - b * columns[1], a * columns[1] - c * columns[0]]) / (a * d - b * c)
    else:
        X = _solve_by_reflections(A, columns)
    return X[:, 0] if B.ndim == 1 else X


def _solve_by_reflections(A: Array, B: Array) -> Array:
    """R X = Qᵀ B, where Q R = A with its columns in another order.

    A reflection takes a column's entries, in rows that are left, onto one of them. Rows with a zero there, as loops
    side by side leave many, take no part.
    """
    n = len(A)
    if _are_long_reflections(A, B) and has_unknown(A):
        return _reflected_by_rows(A, B)[0]
    rows = [list(row) for row in np.concatenate([A, B], axis=1)]
    left, waiting = list(range(n)), list(range(n))
    solved: list[tuple[int, int]] = []  # columns, and the rows that give their unknowns
    while waiting:
        solved.append(_reflect_next(rows, left, waiting))
    X: list[Any] = [None] * n
    for k in reversed(range(n)):
        j, i = solved[k]
        known = [(rows[i][other], X[other]) for other, _ in solved[k + 1 :] if not is_zero(rows[i][other])]
        X[j] = (np.array(rows[i][n:]) - sum((a * x for a, x in known), 0.0)) / rows[i][j]
    return np.array(X)


def null_space(K: Array, full: np.ndarray | None = None) -> tuple[Array, Array]:
    """An orthonormal basis N of what K maps to zero, n × (n − m), and K⁺ = Kᵀ (K Kᵀ)⁻¹, n × m.

    Householder's reflections take Kᵀ to Q₁ R; the other columns of Q are N, and K⁺ = Q₁ R⁻ᵀ. There are no pivots and
    hence no branches: what K is decides nothing but numbers.

    Args:
        K: m × n, with m ≤ n rows, none of which follows from others.
        full: where K may be anything but zero. If given, N and K⁺ have zeros where `null_space_patterns` says.
    """
    m, n = K.shape
    if full is not None or (_are_long_reflections(K.T, np.eye(n)) and has_unknown(K)):
        pseudo_inverse, basis = _reflected_by_rows(K.T, np.eye(n), None if full is None else full.T)
        return basis.T, pseudo_inverse.T
    rows = [list(row) for row in np.concatenate([K.T, np.eye(n)], axis=1)]  # to [R, Qᵀ]
    left, waiting, done = list(range(n)), list(range(m)), list[tuple[int, int]]()
    while waiting:
        done.append(_reflect_next(rows, left, waiting))
    z: list[Any] = []  # R⁻ᵀ, row by row
    for k, (j, i) in enumerate(done):
        known = [(rows[other][j], z[a]) for a, (_, other) in enumerate(done[:k]) if not is_zero(rows[other][j])]
        z.append((np.eye(m)[j] - sum((a * x for a, x in known), 0.0)) / rows[i][j])
    Q1 = np.array([rows[i][m:] for _, i in done]).T
    return np.array([rows[i][m:] for i in left]).reshape(n - m, n).T, Q1 @ np.array(z)


def least_squares(A: Array, b: Array, spanning: Sequence[int] | None = None) -> Array:
    """x for which A x is nearest to b, the shortest one if there are several.

    Args:
        A: m × n, a matrix of any shape.
        b: (m,), a vector.
        spanning: columns of A of which all others are made, and none of them; needed where A is not of full rank.
    """
    m, n = A.shape
    if spanning is not None and len(spanning) < min(m, n):  # A = C (C⁺ A), both factors of full rank
        inverse = null_space(A[:, list(spanning)].T)[1].T
        return least_squares(inverse @ A, inverse @ b)
    if m == n:
        return solve(A, b)
    return null_space(A)[1] @ b if m < n else null_space(A.T)[1].T @ b


def _reflected_by_rows(A: Array, B: Array, full: np.ndarray | None = None) -> tuple[Array, Array]:
    """X of A X = B in the least-squares sense, and the rows of Qᵀ B that no column of A is left in.

    The same reflections as below, of which each takes whole rows at once: A = Q₁ R, R X = Q₁ᵀ B.

    Args:
        A: p × m, with p ≥ m rows.
        B: p × n.
        full: the pattern of A, if others count on it.
    """
    (p, m), n = A.shape, B.shape[1]
    reflections, done, left = plan_of_reflections(pattern(A) if full is None else full)
    columns, pivots = [j for j, _ in done], [i for _, i in done]
    place = {j: k for k, j in enumerate(columns)}
    full = np.concatenate([pattern(A) if full is None else full, pattern(B)], axis=1)[:, [*columns, *range(m, m + n)]]
    rows, width = Rows(), m + n
    M, shift, square, scale, length = rows.take(p * width), rows.take(width), rows.take(1), rows.take(1), rows.take(1)
    rows.put_matrix(M, np.concatenate([A[:, columns], B], axis=1), width)
    for j, own in reflections:
        k, at = place[j], [M + i * width for i in own]
        full[list(own)] = full[list(own)].any(axis=0)
        full[list(own[1:]), k] = False
        after = [(k + 1 + first, size) for first, size in runs(full[own[0], k + 1 :])]
        rows.clear(square, 1)
        for x in at:
            rows.add(square, x + k, x + k, 1)
        rows.reflect(at[0] + k, square, scale, length)
        for first, size in after:
            rows.clear(shift + first, size)
            for x in at:
                rows.add(shift + first, x + k, x + first, size)
            rows.scale(shift + first, scale, shift + first, size)
            for x in at:
                rows.subtract(x + first, x + k, shift + first, size)
        rows.copy(at[0] + k, length, 1)
    for k in reversed(range(m)):
        at = M + pivots[k] * width
        for other in np.flatnonzero(full[pivots[k], k + 1 : m]) + k + 1:
            for first, size in runs(full[pivots[other], m:]):
                rows.subtract(at + m + first, at + int(other), M + pivots[other] * width + m + first, size)
            full[pivots[k], m:] |= full[pivots[other], m:]
        rows.invert(scale, at + k)
        rows.scale(at + m, scale, at + m, n)
    memory = rows.run()
    X = np.empty((m, n), dtype=object)
    for k, j in enumerate(columns):
        X[j] = _known_zeros(memory.matrix(M + pivots[k] * width + m, 1, n, n)[0], full[pivots[k], m:])
    others = [_known_zeros(memory.matrix(M + i * width + m, 1, n, n)[0], full[i, m:]) for i in left]
    return np.array(X.tolist()), np.array(others).reshape(len(left), n)


def _known_zeros(values: Array, full: np.ndarray) -> list[Any]:
    return [value if may_be else 0.0 for value, may_be in zip(values, full.tolist(), strict=True)]


def _are_long_reflections(A: Array, B: Array) -> bool:
    """Whether they are better computed by rows than spelled out."""
    (p, m), n = A.shape, B.shape[1]
    if p * m * (m + n) < LONG:
        return False
    reflections, done, _ = plan_of_reflections(pattern(A))
    turn = {j: k for k, (j, _) in enumerate(done)}
    return sum(2 * len(own) * (m - turn[j] + n) for j, own in reflections) >= LONG


def _reflect_next(rows: list[list[Any]], left: list[int], waiting: list[int]) -> tuple[int, int]:
    """Reflects one of the waiting columns onto one of the rows that are left; returns both, which wait no longer.

    The column with the fewest entries comes first, so that zeros last.
    """
    entries = {j: [i for i in left if not is_zero(rows[i][j])] for j in waiting}
    j = min(waiting, key=lambda column: len(entries[column]))
    if not entries[j]:  # singular wherever one looks: the result shows it
        entries[j] = left[:1]
    first = _reflect(rows, entries[j], j)
    left.remove(first)
    waiting.remove(j)
    return j, first


def _reflect(rows: list[list[Any]], own: list[int], j: int) -> int:
    """Takes the entries of column j in some rows onto the first of them; returns that row."""
    first, *others = own
    if not others:
        return first
    x = [rows[i][j] for i in own]
    length = np.sqrt(sum(a * a for a in x))
    length = np.where(x[0] < 0.0, -length, length)  # away from x, so that nothing cancels
    normal = [x[0] + length, *x[1:]]
    scale = 1.0 / (length * normal[0])
    for column in range(len(rows[first])):
        values = [rows[i][column] for i in own]
        if column == j:
            reflected = [-length] + [0.0] * len(others)
        elif all(map(is_zero, values)):
            continue
        else:
            shift = scale * sum(a * value for a, value in zip(normal, values, strict=True))
            reflected = [value - a * shift for a, value in zip(normal, values, strict=True)]
        for i, value in zip(own, reflected, strict=True):
            rows[i][column] = value
    return first
