"""Small linear systems, of floats or of nodes of a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Cholesky", "known_value", "null_space", "solve"]

Array = Any  # an ndarray of floats, or of nodes


def known_value(x: Any) -> float | None:
    """The value of a number, or of a node that is a constant; None of a node that is known only later."""
    if hasattr(x, "op"):
        return x.value if x.op == "constant" else None
    return float(x)


class Cholesky:
    """The factors L D Lᵀ of a symmetric positive definite matrix, without square roots; its upper triangle is read."""

    def __init__(self, A: Array) -> None:
        n = len(A)
        self.reciprocal: list[Any] = []  # 1 / D
        self.L: list[list[Any]] = [[] for _ in range(n)]  # rows, without the unit diagonal
        scaled: list[list[Any]] = [[] for _ in range(n)]  # rows of L D
        for j in range(n):
            column = [A[j, i] - sum(a * b for a, b in zip(scaled[i], self.L[j], strict=True)) for i in range(j, n)]
            self.reciprocal.append(1.0 / column[0])
            for i, value in enumerate(column[1:], j + 1):
                scaled[i].append(value)
                self.L[i].append(value * self.reciprocal[j])

    def solve(self, b: Array) -> Array:
        """A⁻¹ b, for a vector or for the columns of a matrix."""
        x = [value * r for value, r in zip(self._forward(b), self.reciprocal, strict=True)]
        for i in reversed(range(len(x))):
            for k, factor in enumerate(self.L[i]):
                x[k] = x[k] - factor * x[i]
        return np.array(x)

    def sandwich(self, B: Array) -> Array:
        """Bᵀ A⁻¹ B, symmetric, for the columns of a matrix: half the work of solving for them."""
        x = np.array(self._forward(B))
        scaled = x * np.array(self.reciprocal)[:, None]
        n = B.shape[1]
        upper = {(i, j): scaled[:, i] @ x[:, j] for i in range(n) for j in range(i, n)}
        return np.array([[upper[min(i, j), max(i, j)] for j in range(n)] for i in range(n)])

    def root(self) -> Array:
        """R, lower triangular, with A⁻¹ = Rᵀ R."""
        return np.sqrt(np.array(self.reciprocal))[:, None] * np.array(self._forward(np.eye(len(self.reciprocal))))

    def _forward(self, b: Array) -> list[Any]:
        """L⁻¹ b."""
        x = list(b)
        for i, row in enumerate(self.L):
            for k, factor in enumerate(row):
                x[i] = x[i] - factor * x[k]
        return x


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
    rows = [list(row) for row in np.concatenate([A, B], axis=1)]
    left, waiting = list(range(n)), list(range(n))
    solved: list[tuple[int, int]] = []  # columns, and the rows that give their unknowns
    while waiting:
        solved.append(_reflect_next(rows, left, waiting))
    X: list[Any] = [None] * n
    for k in reversed(range(n)):
        j, i = solved[k]
        known = [(rows[i][other], X[other]) for other, _ in solved[k + 1 :] if not _is_zero(rows[i][other])]
        X[j] = (np.array(rows[i][n:]) - sum((a * x for a, x in known), 0.0)) / rows[i][j]
    return np.array(X)


def null_space(K: Array) -> tuple[Array, Array]:
    """An orthonormal basis N of what K maps to zero, n × (n − m), and K⁺ = Kᵀ (K Kᵀ)⁻¹, n × m.

    Householder's reflections take Kᵀ to Q₁ R; the other columns of Q are N, and K⁺ = Q₁ R⁻ᵀ. There are no pivots and
    hence no branches: what K is decides nothing but numbers.

    Args:
        K: m × n, with m ≤ n rows, none of which follows from others.
    """
    m, n = K.shape
    rows = [list(row) for row in np.concatenate([K.T, np.eye(n)], axis=1)]  # to [R, Qᵀ]
    left, waiting, done = list(range(n)), list(range(m)), list[tuple[int, int]]()
    while waiting:
        done.append(_reflect_next(rows, left, waiting))
    z: list[Any] = []  # R⁻ᵀ, row by row
    for k, (j, i) in enumerate(done):
        known = [(rows[other][j], z[a]) for a, (_, other) in enumerate(done[:k]) if not _is_zero(rows[other][j])]
        z.append((np.eye(m)[j] - sum((a * x for a, x in known), 0.0)) / rows[i][j])
    Q1 = np.array([rows[i][m:] for _, i in done]).T
    return np.array([rows[i][m:] for i in left]).reshape(n - m, n).T, Q1 @ np.array(z)


def _reflect_next(rows: list[list[Any]], left: list[int], waiting: list[int]) -> tuple[int, int]:
    """Reflects one of the waiting columns onto one of the rows that are left; returns both, which wait no longer.

    The column with the fewest entries comes first, so that zeros last.
    """
    entries = {j: [i for i in left if not _is_zero(rows[i][j])] for j in waiting}
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
        elif all(map(_is_zero, values)):
            continue
        else:
            shift = scale * sum(a * value for a, value in zip(normal, values, strict=True))
            reflected = [value - a * shift for a, value in zip(normal, values, strict=True)]
        for i, value in zip(own, reflected, strict=True):
            rows[i][column] = value
    return first


def _is_zero(x: Any) -> bool:
    """Whether this is the number zero, not a node that may be."""
    return known_value(x) == 0.0
