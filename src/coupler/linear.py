"""Small linear systems, of floats or of nodes of a trace."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Cholesky"]

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
        x = list(b)
        for i, row in enumerate(self.L):
            for k, factor in enumerate(row):
                x[i] = x[i] - factor * x[k]
        x = [value * r for value, r in zip(x, self.reciprocal, strict=True)]
        for i in reversed(range(len(x))):
            for k, factor in enumerate(self.L[i]):
                x[k] = x[k] - factor * x[i]
        return np.array(x)
