"""Small linear systems, of floats or of nodes of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.reflections import null_space_by_rows, solve_by_rows
from coupler.rows import LONG, Rows, has_unknown, is_long_product, is_zero, pattern, product
from coupler.zeros import least_fill, plan_of_reflections, runs

__all__ = [
    "Cholesky",
    "factors_by_rows",
    "known_value",
    "least_squares",
    "null_space",
    "product_where",
    "solve",
    "symmetric_product",
]

Array = Any  # an ndarray of floats, or of nodes


def known_value(x: Any) -> float | None:
    """The value of a number, or of a node that is a constant; None of a node that is known only later."""
    if hasattr(x, "op"):
        return x.value if x.op == "constant" else None
    return float(x)


def symmetric_product(A: Array, B: Array) -> Array:
    """A B where that is symmetric: its upper triangle, and zeros below."""
    if is_long_product(A, B) and has_unknown(A, B):
        return product(A, B, ~np.tri(len(A), k=-1, dtype=bool))
    n = len(A)
    return np.array([[A[i] @ B[:, j] if i <= j else 0.0 for j in range(n)] for i in range(n)])


def product_where(A: Array, B: Array, wanted: np.ndarray) -> Array:
    """Those numbers of A B that are wanted, and zeros in place of the others."""
    if has_unknown(A, B):
        return product(A, B, wanted)
    return np.where(wanted, A @ B, 0.0)


class Cholesky:
    """The factors L D Lᵀ of a symmetric positive definite matrix, without square roots; its upper triangle is read.

    Of a large one, rows and columns are eliminated in the order in which most of its known zeros last.

    Attributes:
        L: its rows, without the unit diagonal.
    """

    def __init__(self, A: Array) -> None:
        n = len(A)
        self.L: list[list[Any]] = [[] for _ in range(n)]
        self._by_rows = n**3 // 6 >= LONG and has_unknown(A)
        self._order = list(range(n))
        self._reciprocal: list[Any] = []  # 1 / D
        if self._by_rows:
            self._factorise_by_rows(A)
            return
        scaled: list[list[Any]] = [[] for _ in range(n)]  # rows of L D
        for j in range(n):
            column = [A[j, i] - sum(a * b for a, b in zip(scaled[i], self.L[j], strict=True)) for i in range(j, n)]
            self._reciprocal.append(1.0 / column[0])
            for i, value in enumerate(column[1:], j + 1):
                scaled[i].append(value)
                self.L[i].append(value * self._reciprocal[j])

    def _factorise_by_rows(self, A: Array) -> None:
        """The same, row after row of D Lᵀ and of Lᵀ."""
        n, rows = len(A), Rows()
        U, Lt, r = rows.take(n * n), rows.take(n * n), rows.take(n)
        upper = np.triu(pattern(A))
        self._order = order = least_fill(upper)
        full = np.triu((upper | upper.T)[np.ix_(order, order)])
        reordered = [[A[min(i, j), max(i, j)] for j in order] for i in order]
        rows.put_matrix(U, [[0.0] * i + row[i:] for i, row in enumerate(reordered)], n)
        for i in range(n):
            for k in np.flatnonzero(full[:i, i]).tolist():
                for first, width in runs(full[k, i:]):
                    at = i + first
                    rows.subtract(U + i * n + at, Lt + k * n + i, U + k * n + at, width)
                full[i, i:] |= full[k, i:]
            rows.invert(r + i, U + i * n + i)
            for first, width in runs(full[i, i + 1 :]):
                at = i * n + i + 1 + first
                rows.scale(Lt + at, r + i, U + at, width)
        memory = rows.run()
        self._reciprocal = list(memory.matrix(r, 1, n, n)[0])
        upper = np.where(full, memory.matrix(Lt, n, n, n), 0.0)
        self.L = [list(upper[:i, i]) for i in range(n)]

    @property
    def reciprocal(self) -> list[Any]:
        """1 / D, by rows of the matrix."""
        return [r for _, r in sorted(zip(self._order, self._reciprocal, strict=True), key=lambda pair: pair[0])]

    def solve(self, b: Array) -> Array:
        """A⁻¹ b, for a vector or for the columns of a matrix."""
        if self._by_rows:
            return self._substitute_by_rows(b, backward=True)
        x = [value * r for value, r in zip(self._forward(b), self._reciprocal, strict=True)]
        for i in reversed(range(len(x))):
            for k, factor in enumerate(self.L[i]):
                x[k] = x[k] - factor * x[i]
        return np.array(x)

    def sandwich(self, B: Array) -> Array:
        """Bᵀ A⁻¹ B, symmetric, for the columns of a matrix: half the work of solving for them."""
        x = np.array(self._forward(B))
        upper = symmetric_product((x * np.array(self._reciprocal)[:, None]).T, x)
        return np.array([[upper[min(i, j), max(i, j)] for j in range(B.shape[1])] for i in range(B.shape[1])])

    def inverse(self) -> Array:
        """A⁻¹, symmetric."""
        unit = np.eye(len(self.L))
        return self.sandwich(unit) if self._by_rows else self.solve(unit)

    def root(self) -> Array:
        """R with A⁻¹ = Rᵀ R; lower triangular, but for the order of columns where it was changed."""
        return np.sqrt(np.array(self._reciprocal))[:, None] * np.array(self._forward(np.eye(len(self.L))))

    def _forward(self, b: Array) -> list[Any]:
        """L⁻¹ b, in the order of elimination."""
        if self._by_rows:
            return list(self._substitute_by_rows(b, backward=False))
        x = list(b)
        for i, row in enumerate(self.L):
            for k, factor in enumerate(row):
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
    """L and U of a long A without pivoting, in one matrix, with 1/u on the diagonal; None if it is not long."""
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
        return solve_by_rows(A, B)
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
        return null_space_by_rows(K, pattern(K) if full is None else full)
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
