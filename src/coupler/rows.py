"""Large linear algebra as a list of operations on rows of a small memory.

A system of forty unknowns has sixty thousand products. Spelled out one by one, they take seconds to trace and compile.
As operations on rows they are a table of some thousand entries and one loop over it, on every back end. Entries that
are known to be zero when the table is written are left out.

The table is data: `run` interprets it on arrays, for one state or many, and on nodes of a trace; `coupler.graph` runs
it as machine code. In each case every number results from the same operations in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.zeros import runs

# The number of products from which on they are not spelled out. Operations on rows run faster for one state, up to 1.8
# times slower in lanes, and compile at once, while ten thousand products that are spelled out take half a second.
LONG = 4_000
_DENSE = 0.4  # the share of products that must not be zero: within a run, operations on rows compute zeros as well

# Operations, each with a target t, a source s, a factor f and a width w; m is the memory, and c goes from 0 to w.
CLEAR = 0  # m[t + c] = 0
COPY = 1  # m[t + c] = m[s + c]
ADD = 2  # m[t + c] += m[f] m[s + c]
SUBTRACT = 3  # m[t + c] -= m[f] m[s + c]
SCALE = 4  # m[t + c] = m[f] m[s + c]
INVERT = 5  # m[t] = 1 / m[s]
REFLECT = 6  # from x₀ in m[t] and x·x in m[s]: x₀ + l in m[t], 1 / (l (x₀ + l)) in m[f], −l in m[w]; l = ±|x| like x₀;
#              where x is zero, there is nothing to reflect, and m[f] is zero
DOT = 7  # m[t] += m[f + c] m[s + c], one c after the other

Rule = Callable[[Any, Any, Any], Any]


class RowCode:
    """A finished list of operations.

    Attributes:
        code: (n, 5), a row for each operation: its kind, t, s, f, w.
        inputs: the number of given numbers, which are the first of the memory.
        size: the number of numbers in the memory.
    """

    def __init__(self, code: np.ndarray, inputs: int, size: int) -> None:
        self.code, self.inputs, self.size = np.ascontiguousarray(code, np.int32), inputs, size
        self.key = (self.code.tobytes(), inputs, size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowCode) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def products(self) -> int:
        """The number of products, divisions and roots that it computes."""
        kinds, widths = self.code[:, 0], self.code[:, 4]
        products = widths[np.isin(kinds, (ADD, SUBTRACT, SCALE, DOT))].sum()
        return int(products + (kinds == INVERT).sum() + 4 * (kinds == REFLECT).sum())

    @cached_property
    def depth(self) -> int:
        """The length of the longest chain of dependent operations."""
        return int(self._after(np.zeros(self.size, int), _DEPTHS, _reflected_depths).max(initial=0))

    def run(self, given: Sequence[Any]) -> Any:
        """The whole memory after all operations.

        Args:
            given: its first numbers: arrays over states, floats or nodes.
        """
        values = [np.asarray(value) for value in given]
        kind = np.result_type(*(value.dtype for value in values))
        m = np.zeros((self.size, *np.broadcast_shapes(*(value.shape for value in values))), kind)
        for i, value in enumerate(values):
            m[i] = value[()]
        return self._after(m, _VALUES, _reflected_values)

    def _after(self, m: np.ndarray, rules: Mapping[int, Rule], reflected: Callable[[Any, Any], tuple]) -> np.ndarray:
        """The memory after all operations, by rules for what each of them writes."""
        for kind, t, s, f, w in self.code.tolist():
            if kind == REFLECT:
                m[t], m[f], m[w] = reflected(m[t], m[s])
            elif kind == DOT:
                for c in range(w):
                    m[t] = rules[ADD](m[t], m[s + c], m[f + c])
            else:
                m[t : t + w] = rules[kind](m[t : t + w], m[s : s + w], m[f])
        return m


# What operations write, for the contents of m[t : t + w], m[s : s + w] and m[f]: values, or their depths.
_VALUES: dict[int, Rule] = {
    CLEAR: lambda t, s, f: 0.0,
    COPY: lambda t, s, f: s,
    ADD: lambda t, s, f: t + f * s,
    SUBTRACT: lambda t, s, f: t - f * s,
    SCALE: lambda t, s, f: f * s,
    INVERT: lambda t, s, f: 1.0 / s,
}
_DEPTHS: dict[int, Rule] = {
    CLEAR: lambda t, s, f: 0,
    COPY: lambda t, s, f: s,
    ADD: lambda t, s, f: np.maximum(np.maximum(s, f) + 1, t) + 1,
    SUBTRACT: lambda t, s, f: np.maximum(np.maximum(s, f) + 1, t) + 1,
    SCALE: lambda t, s, f: np.maximum(s, f) + 1,
    INVERT: lambda t, s, f: s + 1,
}


def _reflected_values(x: Any, square: Any) -> tuple[Any, Any, Any]:
    length = np.sqrt(square)
    length = np.where(x < 0.0, -length, length)
    first = x + length
    is_zero = length * first == 0.0
    return first, np.where(is_zero, 0.0, 1.0 / np.where(is_zero, 1.0, length * first)), -length


def _reflected_depths(x: Any, square: Any) -> tuple[Any, Any, Any]:
    length = max(square + 1, x) + 1
    return length + 1, length + 5, length


class Rows:
    """Records operations: memory is taken, numbers are put into it, rows are computed, and finally all is run."""

    def __init__(self) -> None:
        self._given: list[Any] = []
        self._numbers: dict[int, int] = {}  # by the id of a given number, its place among these
        self._code: list[tuple[int, int, int, int, int]] = []
        self._size = 0

    def take(self, size: int) -> int:
        """Takes memory for that many numbers, initially zero; returns where it starts."""
        self._size += size
        return self._size - size

    def put(self, at: int, value: Any) -> None:
        """Puts a given number into the memory."""
        number = self._numbers.setdefault(id(value), len(self._given))
        if number == len(self._given):
            self._given.append(value)
        last = self._code[-1] if self._code else None
        if last and last[0] == COPY and last[1] + last[4] == at and ~last[2] + last[4] == number:
            self._code[-1] = (COPY, last[1], last[2], 0, last[4] + 1)  # one more of a run
        else:
            self._code.append((COPY, at, ~number, 0, 1))

    def put_matrix(self, at: int, matrix: Any, width: int) -> None:
        """Puts the entries of a matrix that are not zero into rows of a width."""
        for i, row in enumerate(matrix):
            for j, value in enumerate(row):
                if not is_zero(value):
                    self.put(at + i * width + j, value)

    def add(self, target: int, factor: int, source: int, width: int) -> None:
        self._code.append((ADD, target, source, factor, width))

    def subtract(self, target: int, factor: int, source: int, width: int) -> None:
        self._code.append((SUBTRACT, target, source, factor, width))

    def scale(self, target: int, factor: int, source: int, width: int) -> None:
        self._code.append((SCALE, target, source, factor, width))

    def invert(self, target: int, source: int) -> None:
        self._code.append((INVERT, target, source, 0, 1))

    def reflect(self, first: int, square: int, scale: int, length: int) -> None:
        self._code.append((REFLECT, first, square, scale, length))

    def dot(self, target: int, first: int, second: int, width: int) -> None:
        self._code.append((DOT, target, second, first, width))

    def copy(self, target: int, source: int, width: int) -> None:
        self._code.append((COPY, target, source, 0, width))

    def clear(self, target: int, width: int) -> None:
        self._code.append((CLEAR, target, 0, 0, width))

    def run(self) -> _Memory:
        """Runs all recorded operations on the given numbers or nodes; returns the memory afterwards."""
        inputs = len(self._given)
        code = np.array(self._code, np.int64).reshape(-1, 5)
        kinds = code[:, 0]
        given = (kinds == COPY) & (code[:, 2] < 0)  # the first numbers of the memory are those given
        code[:, 1] += inputs
        code[:, 2] = np.where(given, ~code[:, 2], code[:, 2] + inputs)
        code[:, 3] += inputs
        code[kinds == REFLECT, 4] += inputs
        start = [[CLEAR, inputs, 0, 0, self._size]]
        finished = RowCode(np.concatenate([np.array(start), code]), inputs, inputs + self._size)
        nodes = [value for value in self._given if hasattr(value, "on_rows")]
        memory = nodes[0].on_rows(finished, self._given) if nodes else finished.run(self._given)
        return _Memory(memory, inputs)


class _Memory:
    """The memory of `Rows` after it was run, by the places that `take` returned."""

    def __init__(self, values: Any, inputs: int) -> None:
        self._values, self._inputs = values, inputs

    def number(self, at: int) -> Any:
        """A number at a place."""
        return self._values[self._inputs + at]

    def matrix(self, at: int, rows: int, columns: int, width: int) -> np.ndarray:
        """A matrix whose rows, of a width, start at a place."""
        first = self._inputs + at
        return np.array([[self._values[first + i * width + j] for j in range(columns)] for i in range(rows)])


def is_zero(x: Any) -> bool:
    """Whether this is the number zero, or a node that is the constant zero."""
    return (x.op == "constant" and x.value == 0.0) if hasattr(x, "op") else float(x) == 0.0


def product(A: Any, B: Any, wanted: np.ndarray | None = None) -> np.ndarray:
    """A B of nodes; if only some entries are wanted, these, with zeros in place of the others."""
    full_A, full_B = pattern(A), pattern(B)
    m, n = len(A), B.shape[1]
    rows = Rows()
    a, b, c = rows.take(A.size), rows.take(B.size), rows.take(m * n)
    rows.put_matrix(a, A, A.shape[1])
    rows.put_matrix(b, B, n)
    parts = [runs(row) for row in full_B]
    for i in range(m):
        sums: dict[tuple[int, int], list[int]] = {}  # by run: those into the same one follow each other
        for k in np.flatnonzero(full_A[i]).tolist():
            for run in parts[k] if wanted is None else runs(full_B[k] & wanted[i]):
                sums.setdefault(run, []).append(k)
        for (first, width), terms in sums.items():
            for k in terms:
                rows.add(c + i * n + first, a + i * A.shape[1] + k, b + k * n + first, width)
    filled = np.einsum("ik,kj->ij", full_A.astype(int), full_B.astype(int)) > 0
    return np.where(filled if wanted is None else filled & wanted, rows.run().matrix(c, m, n, n), 0.0)


def times_vector(A: Any, x: Any) -> np.ndarray | None:
    """A x of nodes if that takes many products, else None."""
    if A.size < LONG // 4 or not has_unknown(A, x):
        return None
    full, m = pattern(A), len(A)
    parts = [runs(row) for row in full]
    if full.sum() < max(LONG // 4, _DENSE * sum(width for row_runs in parts for _, width in row_runs)):
        return None
    rows, n = Rows(), len(x)
    a, b, c = rows.take(A.size), rows.take(n), rows.take(m)
    rows.put_matrix(b, [x], n)
    if A.flags.c_contiguous or not A.flags.f_contiguous:
        rows.put_matrix(a, A, n)
        for i, row_runs in enumerate(parts):
            for first, width in row_runs:
                rows.dot(c + i, a + i * n + first, b + first, width)
    else:  # the transpose of a matrix whose rows lie side by side
        rows.put_matrix(a, A.T, m)
        for k, column in enumerate(full.T):
            for first, width in runs(column):
                rows.add(c + first, b + k, a + k * m + first, width)
    return np.where(full.any(axis=1), rows.run().matrix(c, 1, m, m)[0], 0.0)


def is_long_product(A: Any, B: Any) -> bool:
    """Whether A B is better computed by rows than spelled out: it has many products, and few zeros within runs."""
    if A.ndim != 2 or B.ndim != 2 or A.size * B.shape[1] < LONG:
        return False
    full_A, full_B = pattern(A), pattern(B)
    uses = full_A.sum(axis=0)
    spelled_out = int(uses @ full_B.sum(axis=1))
    return spelled_out >= max(LONG, _DENSE * (uses @ [sum(width for _, width in runs(row)) for row in full_B]))


def has_unknown(*matrices: Any) -> bool:
    """Whether some numbers are nodes whose values are known only at run time."""
    return any(hasattr(x, "op") and x.op != "constant" for matrix in matrices for x in np.ravel(matrix))


def pattern(matrix: Any) -> np.ndarray:
    """The pattern of a matrix: flags for entries that may differ from zero."""
    flat = [not is_zero(x) for x in np.asarray(matrix, dtype=object).view(np.ndarray).ravel()]
    return np.array(flat, bool).reshape(np.shape(matrix))
