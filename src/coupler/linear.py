"""Small linear systems, of floats or of nodes of a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Cholesky", "solve"]

Array = Any  # an ndarray of floats, or of nodes


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
    """R X = Qᵀ B, where Q R = A: each reflection takes the rest of a column onto its first entry."""
    n = len(A)
    M = np.concatenate([A, B], axis=1)
    rows = [M[i] for i in range(n)]
    for j in range(n - 1):
        x = [rows[i][j] for i in range(j, n)]
        length = np.sqrt(sum(a * a for a in x))
        length = np.where(x[0] < 0.0, -length, length)  # away from x, so that nothing cancels
        normal = [x[0] + length, *x[1:]]
        scale = 1.0 / (length * normal[0])
        shift = scale * sum(a * rows[i] for a, i in zip(normal, range(j, n), strict=True))
        rows[j:] = [rows[i] - a * shift for a, i in zip(normal, range(j, n), strict=True)]
    X: list[Any] = [None] * n
    for i in reversed(range(n)):
        X[i] = (rows[i][n:] - sum((rows[i][k] * X[k] for k in range(i + 1, n)), 0.0)) / rows[i][i]
    return np.array(X)
