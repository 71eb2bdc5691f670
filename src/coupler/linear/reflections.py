"""Linear systems of floats or nodes by Householder's reflections, which need no pivots and hence no branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.linear.by_rows import null_space_by_rows, solve_by_rows
from coupler.linear.reflected import Reflected
from coupler.rows import LONG, has_unknown, is_zero, pattern
from coupler.zeros import NullSpace, plan_of_reflections

Array = Any  # an ndarray of floats, or of nodes


def solve(A: Array, B: Array) -> Array:
    """A⁻¹ B for a small regular A, and a vector or matrix B.

    Systems of one and two rows are solved by Cramer's rule, larger ones by Householder reflections, which need no
    pivots and hence no branches.
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
    """X of R X = Qᵀ B, where Q R is A with its columns in another order.

    A reflection maps the entries of a column, in the remaining rows, onto one of them. Rows with a zero there, of which
    loops side by side have many, take no part.
    """
    n = len(A)
    if _are_long_reflections(A, B) and has_unknown(A):
        return solve_by_rows(A, B)
    rows = [list(row) for row in np.concatenate([A, B], axis=1)]
    rows_left, columns_left = list(range(n)), list(range(n))
    solved: list[tuple[int, int]] = []  # columns, and the rows that give their unknowns
    while columns_left:
        solved.append(_reflect_next(rows, rows_left, columns_left))
    X: list[Any] = [None] * n
    for k in reversed(range(n)):
        j, i = solved[k]
        known = [(rows[i][other], X[other]) for other, _ in solved[k + 1 :] if not is_zero(rows[i][other])]
        X[j] = (np.array(rows[i][n:]) - sum((a * x for a, x in known), 0.0)) / rows[i][j]
    return np.array(X)


def null_space(K: Array) -> tuple[Array, Array]:
    """An orthonormal basis N of the null space of K, n × (n − m), and K⁺ = Kᵀ (K Kᵀ)⁻¹, n × m.

    Householder reflections factor Kᵀ = Q₁ R; the other columns of Q are N, and K⁺ = Q₁ R⁻ᵀ. There are no pivots and
    hence no branches: the operations do not depend on the numbers in K.

    Args:
        K: m × n, with m ≤ n linearly independent rows.
    """
    m, n = K.shape
    if _are_long_reflections(K.T, np.eye(n)) and has_unknown(K):
        N, inverse = null_space_by_rows(K, NullSpace.of(pattern(K)))
        return N, inverse.matrix()
    rows = [list(row) for row in np.concatenate([K.T, np.eye(n)], axis=1)]  # to [R, Qᵀ]
    rows_left, columns_left, done = list(range(n)), list(range(m)), list[tuple[int, int]]()
    while columns_left:
        done.append(_reflect_next(rows, rows_left, columns_left))
    z: list[Any] = []  # R⁻ᵀ, row by row
    for k, (j, i) in enumerate(done):
        known = [(rows[other][j], z[a]) for a, (_, other) in enumerate(done[:k]) if not is_zero(rows[other][j])]
        z.append((np.eye(m)[j] - sum((a * x for a, x in known), 0.0)) / rows[i][j])
    Q1 = np.array([rows[i][m:] for _, i in done]).T
    return np.array([rows[i][m:] for i in rows_left]).reshape(n - m, n).T, Q1 @ np.array(z)


def fitted(K: Array, inverse: Array | Reflected, w: Array) -> Array:
    """w + K'⁺ z with K w = 0, given the pseudo-inverse of a K' near to K."""
    if isinstance(inverse, Reflected):
        return w - inverse.turned(solve(inverse.seen(K), K @ w))
    return w - inverse @ solve(K @ inverse, K @ w)


def least_squares(A: Array, b: Array, spanning: Sequence[int] | None = None) -> Array:
    """x for which A x is closest to b, the shortest one if there are several.

    Args:
        A: m × n.
        b: (m,).
        spanning: independent columns of A that span all others; needed if A does not have full rank.
    """
    m, n = A.shape
    if spanning is not None and len(spanning) < min(m, n):  # A = C (C⁺ A), both factors of full rank
        inverse = null_space(A[:, list(spanning)].T)[1].T
        return least_squares(inverse @ A, inverse @ b)
    if m == n:
        return solve(A, b)
    return null_space(A)[1] @ b if m < n else null_space(A.T)[1].T @ b


def _are_long_reflections(A: Array, B: Array) -> bool:
    """Whether reflections are better computed by rows than spelled out."""
    (p, m), n = A.shape, B.shape[1]
    if p * m * (m + n) < LONG:
        return False
    reflections, done, _ = plan_of_reflections(pattern(A))
    turn = {j: k for k, (j, _) in enumerate(done)}
    return sum(2 * len(reflected) * (m - turn[j] + n) for j, reflected in reflections) >= LONG


def _reflect_next(rows: list[list[Any]], rows_left: list[int], columns_left: list[int]) -> tuple[int, int]:
    """Reflects one of the remaining columns onto one of the remaining rows; returns both, and removes them.

    The column with the fewest entries comes first, which preserves zeros.
    """
    entries = {j: [i for i in rows_left if not is_zero(rows[i][j])] for j in columns_left}
    j = min(columns_left, key=lambda column: len(entries[column]))
    if not entries[j]:  # structurally singular: the result will not be finite
        entries[j] = rows_left[:1]
    first = _reflect(rows, entries[j], j)
    rows_left.remove(first)
    columns_left.remove(j)
    return j, first


def _reflect(rows: list[list[Any]], chosen: list[int], j: int) -> int:
    """Reflects the entries of column j in some rows onto the first of these rows, which is returned."""
    first, *others = chosen
    if not others:
        return first
    x = [rows[i][j] for i in chosen]
    length = np.sqrt(sum(a * a for a in x))
    length = np.where(x[0] < 0.0, -length, length)  # away from x, so that nothing cancels
    normal = [x[0] + length, *x[1:]]
    scale = 1.0 / (length * normal[0])
    for column in range(len(rows[first])):
        values = [rows[i][column] for i in chosen]
        if column == j:
            reflected = [-length] + [0.0] * len(others)
        elif all(map(is_zero, values)):
            continue
        else:
            shift = scale * sum(a * value for a, value in zip(normal, values, strict=True))
            reflected = [value - a * shift for a, value in zip(normal, values, strict=True)]
        for i, value in zip(chosen, reflected, strict=True):
            rows[i][column] = value
    return first
