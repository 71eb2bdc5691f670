"""Factors of square matrices of floats or nodes: L D Lᵀ of symmetric ones, L U of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.linear.products import symmetric_product
from coupler.rows import LONG, Rows, has_unknown, is_zero, pattern
from coupler.zeros import Factors, runs

Array = Any  # an ndarray of floats, or of nodes


class Cholesky:
    """The factors L D Lᵀ of a symmetric positive definite matrix, of which only the upper triangle is read.

    The unknowns of a large matrix are eliminated in an order that preserves most of its known zeros.

    Attributes:
        L: the rows of L, without the unit diagonal, in the order of elimination.
    """

    def __init__(self, A: Array, plan: Factors | None = None) -> None:
        """Factorises a matrix.

        Args:
            A: the matrix, n × n.
            plan: the order of elimination and where factors are, if they are to be stored; see `stored`.
        """
        n = len(A)
        self.L: list[list[Any]] = [[] for _ in range(n)]
        if plan is None and n**3 // 6 >= LONG and has_unknown(A):
            plan = Factors.of(np.triu(pattern(A)))
        self._order = plan.order if plan else list(range(n))
        self._reciprocal: list[Any] = []  # 1 / D
        if plan and plan.products >= LONG and has_unknown(A):
            self._factorise_by_rows(A, plan)
            return
        scaled: list[list[Any]] = [[] for _ in range(n)]  # rows of L D
        for j in range(n):
            column = [self._reduced(A, scaled[i], i, j) for i in range(j, n)]
            self._reciprocal.append(1.0 / column[0])
            for i, value in enumerate(column[1:], j + 1):
                scaled[i].append(value)
                self.L[i].append(value * self._reciprocal[j])

    def _reduced(self, A: Array, scaled: list[Any], i: int, j: int) -> Any:
        """An entry of L D, from those before it in row i."""
        first, second = sorted((self._order[i], self._order[j]))
        return A[first, second] - sum(a * b for a, b in zip(scaled, self.L[j], strict=True))

    def _factorise_by_rows(self, A: Array, plan: Factors) -> None:
        """Factorises by operations on rows: row after row of D Lᵀ and of Lᵀ."""
        n, rows = len(A), Rows()
        U, Lt, r = rows.take(n * n), rows.take(n * n), rows.take(n)
        full = plan.full
        reordered = [[A[min(i, j), max(i, j)] for j in plan.order] for i in plan.order]
        rows.put_matrix(U, [[0.0] * i + row[i:] for i, row in enumerate(reordered)], n)
        for i in range(n):
            for k in np.flatnonzero(full[:i, i]).tolist():
                for first, width in runs(full[k, i:]):
                    at = i + first
                    rows.subtract(U + i * n + at, Lt + k * n + i, U + k * n + at, width)
            rows.invert(r + i, U + i * n + i)
            for first, width in runs(full[i, i + 1 :]):
                at = i * n + i + 1 + first
                rows.scale(Lt + at, r + i, U + at, width)
        memory = rows.run()
        self._reciprocal = list(memory.matrix(r, 1, n, n)[0])
        upper = np.where(full, memory.matrix(Lt, n, n, n), 0.0)
        self.L = [list(upper[:i, i]) for i in range(n)]

    @classmethod
    def stored(cls, numbers: Array, plan: Factors) -> Cholesky:
        """Factors from their `numbers`."""
        self = cls.__new__(cls)
        self._order, n = plan.order, len(plan.order)
        self._reciprocal = list(numbers[:n])
        upper = np.zeros((n, n), dtype=object)
        upper[np.triu(plan.full, 1)] = numbers[n:]
        self.L = [list(upper[:i, i]) for i in range(n)]
        return self

    def numbers(self, plan: Factors) -> Array:
        """1 / D, and all of L that may differ from zero: `plan.size` numbers."""
        return np.array([*self._reciprocal, *(self.L[i][k] for k, i in np.argwhere(np.triu(plan.full, 1)))])

    @property
    def reciprocal(self) -> list[Any]:
        """The reciprocals 1 / D, in the order of the rows of the matrix."""
        return [r for _, r in sorted(zip(self._order, self._reciprocal, strict=True), key=lambda pair: pair[0])]

    def solve(self, b: Array) -> Array:
        """A⁻¹ b, for a vector or for the columns of a matrix."""
        if self._is_long(b, ways=2):
            return self._substitute_by_rows(b, backward=True)
        x = [value * r for value, r in zip(self._spelled_out(b), self._reciprocal, strict=True)]
        for i in reversed(range(len(x))):
            for k, factor in enumerate(self.L[i]):
                if not is_zero(factor):
                    x[k] = x[k] - factor * x[i]
        return np.array([value for _, value in sorted(zip(self._order, x, strict=True), key=lambda pair: pair[0])])

    def _is_long(self, b: Array, ways: int) -> bool:
        """Whether substitution is better computed by rows than spelled out, one way or both ways."""
        columns, limit = (1, LONG) if b.ndim == 1 else (b.shape[1], LONG // 2)  # of columns, several share a register
        if len(self.L) ** 3 // 6 < LONG or ways * columns * len(self.L) ** 2 // 2 < limit:
            return False
        products = ways * columns * sum(not is_zero(factor) for row in self.L for factor in row)
        return products >= limit and (has_unknown(b) or has_unknown(*self.L))

    def sandwich(self, B: Array) -> Array:
        """Bᵀ A⁻¹ B, symmetric: half the work of solving for the columns of B."""
        x = np.array(self._forward(B))
        upper = symmetric_product((x * np.array(self._reciprocal)[:, None]).T, x)
        return np.array([[upper[min(i, j), max(i, j)] for j in range(B.shape[1])] for i in range(B.shape[1])])

    def inverse(self) -> Array:
        """A⁻¹, symmetric."""
        unit = np.eye(len(self.L))
        return self.sandwich(unit) if self._is_long(unit, ways=2) else self.solve(unit)

    def root(self) -> Array:
        """R with A⁻¹ = Rᵀ R, lower triangular up to the order of elimination."""
        return np.sqrt(np.array(self._reciprocal))[:, None] * np.array(self._forward(np.eye(len(self.L))))

    def _forward(self, b: Array) -> list[Any]:
        """L⁻¹ b, in the order of elimination."""
        return list(self._substitute_by_rows(b, backward=False)) if self._is_long(b, ways=1) else self._spelled_out(b)

    def _spelled_out(self, b: Array) -> list[Any]:
        x = [b[i] for i in self._order]
        for i, row in enumerate(self.L):
            for k, factor in enumerate(row):
                if not is_zero(factor):
                    x[i] = x[i] - factor * x[k]
        return x

    def _substitute_by_rows(self, b: Array, backward: bool) -> Array:
        """L⁻¹ b in the order of elimination, or A⁻¹ b, for all columns at once."""
        n, columns = len(self.L), (b[:, None] if b.ndim == 1 else b)[self._order]
        rows, width = Rows(), columns.shape[1]
        L, r, x = rows.take(n * n), rows.take(n), rows.take(n * width)
        below = np.array([[k < i and not is_zero(self.L[i][k]) for i in range(n)] for k in range(n)])
        for k, i in np.argwhere(below).tolist():  # as the factorisation left them: by columns
            rows.put(L + k * n + i, self.L[i][k])
        rows.put_matrix(r, [self._reciprocal], n)
        rows.put_matrix(x, columns, width)
        full = pattern(columns)
        for i in range(n):
            for k in np.flatnonzero(below[:, i]).tolist():
                for first, size in runs(full[k]):
                    rows.subtract(x + i * width + first, L + k * n + i, x + k * width + first, size)
                full[i] |= full[k]
        if backward:
            for i in range(n):
                rows.scale(x + i * width, r + i, x + i * width, width)
            for k in reversed(range(n)):
                for i in reversed(np.flatnonzero(below[k]).tolist()):
                    for first, size in runs(full[i]):
                        rows.subtract(x + k * width + first, L + k * n + i, x + i * width + first, size)
                    full[k] |= full[i]
        result = np.where(full, rows.run().matrix(x, n, width, width), 0.0)
        result = result[np.argsort(self._order)] if backward else result
        return result[:, 0] if b.ndim == 1 else result


def factors_by_rows(A: Array) -> Array | None:
    """L and U of a large A without pivoting, in one matrix, with 1/u on the diagonal; None if A is small."""
    n = len(A)
    if n**3 // 3 < LONG or not has_unknown(A):
        return None
    rows = Rows()
    M = rows.take(n * n)
    rows.put_matrix(M, A, n)
    for k in range(n):
        rows.invert(M + k * n + k, M + k * n + k)
        for i in range(k + 1, n):
            rows.scale(M + i * n + k, M + k * n + k, M + i * n + k, 1)
        for i in range(k + 1, n):
            rows.subtract(M + i * n + k + 1, M + i * n + k, M + k * n + k + 1, n - k - 1)
    return rows.run().matrix(M, n, n, n)
