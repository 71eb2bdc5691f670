"""The linear system of small changes of a contact problem, (1 + Yᵀ Q Z) Δx = Yᵀ p, solved by elimination over nodes.

Let the laws of all blocks answer small changes of their velocities with Δλ = p − Q Δw, where w = Z x + b and x = Yᵀ λ.
Then this system gives the change of x. It has as many unknowns as the clusters on all ways have freedoms, however many
contacts there are. The matrix couples clusters that share a way. So it is eliminated node by node (a node is a chain of
clusters, see columns.py), in an order that adds few entries: a tree adds none, and the cost of a stack of bodies grows
with its height. There is no pivoting, so that all states take the same steps.

In a pile any two bodies may touch, but few do. There, flags tell which nodes are coupled in a state, by active blocks
or by elimination. The flags are listed, and blocks of zeros are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.step.interaction import InteractingBlocks, Ways
from coupler.graph import Buffer, View, fields
from coupler.linear import factors_by_rows
from coupler.passes import Place, Places, Schedule

Ranks = int | np.ndarray  # of a node in the order of elimination, or of several of one size

_DENSE = 200  # products of blocks in the elimination: if there are more, those with zeros are skipped


class Elimination:
    """The linear system of a problem; each block has its p and Q.

    Attributes:
        right: Yᵀ p, and after `solve` Δx.
        sign: 1, the sign of the determinant of the matrix.
    """

    def __init__(self, blocks: InteractingBlocks, columns: Ways) -> None:
        self._blocks, self._columns, self._builder = blocks, columns, blocks.builder
        self.right, self.sign = self._builder.scratch("right", columns.x.size), self._builder.scratch("sign", 1)
        self._parts = [columns.parts_of_way(block) for block in blocks.all]
        coupled = {(a, b) for parts in self._parts for a, b in product(parts, repeat=2)}
        self._order, entries = _elimination_order(sorted({a for a, _ in coupled}), coupled)
        self._rank, nodes = {a: i for i, a in enumerate(self._order)}, len(self._order)
        self._sizes = [columns.nodes[a].size for a in self._order]  # of nodes in the order of elimination, as all below
        self._part = np.array([columns.nodes[a].start for a in self._order])
        self._start, size = np.full((nodes, nodes), -1), 0  # where each entry is, -1 for zeros
        for a, b in sorted(entries):
            i, j = self._rank[a], self._rank[b]
            self._start[i, j], size = size, size + self._sizes[i] * self._sizes[j]
        self._S = self._builder.scratch("S", size)
        self._later = [k + 1 + np.flatnonzero(self._start[k, k + 1 :] >= 0) for k in range(nodes)]
        products = sum(len(later) ** 2 for later in self._later)
        self._coupled = self._builder.scratch("coupled_nodes", nodes**2) if products > _DENSE else None

    def begin(self) -> None:
        """Writes the steps that find which nodes are coupled; it is known which blocks take part."""
        if self._coupled is None:
            return
        clear(self._builder, self._coupled)
        flags, nodes = self._blocks.flags[self._blocks.part], len(self._order)
        ranks = [[self._rank[a] for a in parts] for parts in self._parts]
        pairs = np.array([(block, *pair) for block, parts in enumerate(ranks) for pair in product(parts, repeat=2)])
        schedule, coupled = Schedule(self._builder), self._flag(pairs[:, 1], pairs[:, 2])
        assert coupled is not None
        schedule.call(_couple_nodes, out=coupled, among=Places.of(flags, pairs[:, 0], ()))
        schedule.run()
        earlier = np.repeat(np.arange(nodes), [len(neighbours) for neighbours in self._later])
        later = np.concatenate(self._later)
        schedule = Schedule(self._builder)  # eliminating a node couples all that it is coupled to with each other
        rows = [Places.of(self._coupled, nodes * ranks_of, nodes) for ranks_of in (later, earlier)]
        schedule.call(np.maximum, *rows, out=rows[0], where=self._flag(earlier, later))
        schedule.run()
        self._builder.list_flags(self._coupled)

    def _flag(self, k: Ranks, i: Ranks) -> Place | Places | None:
        """Flags of whether nodes k and i are coupled in a state; None if all are taken as coupled."""
        if self._coupled is None:
            return None
        return _place(self._coupled, k * len(self._order) + i, ())

    def _entry(self, i: Ranks, j: Ranks) -> Place | Places:
        """The entry of nodes i and j, or several entries of one size."""
        return _place(self._S, self._start[i, j], (self._size(i), self._size(j)))

    def _size(self, nodes: Ranks) -> int:
        return self._sizes[nodes if isinstance(nodes, int) else nodes[0]]

    def _runs(self, k: int) -> list[np.ndarray]:
        """The later nodes that may be coupled to k, in order, split where their sizes change."""
        sizes = np.array([self._sizes[i] for i in self._later[k]])
        return np.split(self._later[k], 1 + np.flatnonzero(np.diff(sizes))) if len(sizes) else []

    def factor(self) -> None:
        """Writes the steps that compute the factors of the matrix from Q of all active blocks."""
        self._builder.loop(_positive, matrix=fields(sign=self.sign.at(0)))
        self._clear()
        schedule = Schedule(self._builder)
        for block, parts in enumerate(self._parts):
            for a, b in product(parts, repeat=2):
                self._couple(schedule, block, a, b)
        schedule.run()
        schedule, sign = Schedule(self._builder), Place.of(self.sign, 0, ())
        for k in range(len(self._order)):
            pivot, runs = self._entry(k, k), self._runs(k)
            schedule.call(_factored, pivot, sign, out=[pivot, sign], among=self._flag(k, k))
            for i in self._later[k].tolist():
                both, entry = self._flag(k, i), self._entry(i, k)
                schedule.call(_divided, entry, pivot, out=entry, among=both)
                for j in runs:
                    rest = self._entry(i, j)
                    schedule.call(
                        _reduced, rest, entry, self._entry(k, j), out=rest, among=both, where=self._flag(k, j)
                    )
        schedule.run()

    def _clear(self) -> None:
        """Writes the steps that make the matrix the unit matrix."""
        schedule = Schedule(self._builder)
        for k in range(len(self._order)):
            schedule.call(_unit(self._sizes[k]), out=self._entry(k, k), among=self._flag(k, k))
            for i in self._later[k].tolist():
                for entry in (self._entry(k, i), self._entry(i, k)):
                    schedule.call(_zeros(*entry.field.shape), out=entry, among=self._flag(k, i))
        schedule.run()

    def solve(self) -> None:
        """Writes the steps that compute Δx from p of all active blocks."""
        self._blocks.sum_up("p", self.right)
        self._builder.once((self.solve, self._blocks.part), self._substitute)

    def _substitute(self) -> None:
        right, schedule = self.right, Schedule(self._builder)

        def part(i: Ranks) -> Place | Places:
            return _place(right, self._part[i], self._size(i))

        for k in range(len(self._order)):
            for i in self._runs(k):
                later = part(i)
                schedule.call(_reduced, later, self._entry(i, k), part(k), out=later, among=self._flag(k, i))
        schedule.run()
        schedule = Schedule(self._builder)
        for k in reversed(range(len(self._order))):
            solution = part(k)
            for run in reversed(self._runs(k)):
                j = run[::-1]
                schedule.call(_reduced, solution, self._entry(k, j), part(j), out=solution, among=self._flag(k, j))
            schedule.call(_solved, self._entry(k, k), solution, out=solution, among=self._flag(k, k))
        schedule.run()

    def _couple(self, schedule: Schedule, block: int, a: int, b: int) -> None:
        """Adds to a loop the row that adds a block's term, y Q zᵀ, to the entry of nodes a and b."""
        shape, i, j = (self._parts[block][a], self._parts[block][b]), self._rank[a], self._rank[b]

        def loop(rows: list[tuple[int, int, int, int]]) -> tuple[Callable[..., None], dict[str, Any]]:
            blocks, ones, others, starts = (list(column) for column in zip(*rows, strict=True))
            entry = Place.block(self._S, 0, shape, self._sizes[j]).field
            windows = {"block": self._blocks.of(blocks), "entry": fields(S=self._S.at(starts, entry))}
            windows |= {"one": self._columns.way(blocks, ones), "other": self._columns.way(blocks, others)}
            return _couple, windows | self._blocks.among(None, blocks)

        key = _couple, self._blocks.width(block), shape, self._sizes[j]
        schedule.add(key, (block, a, b, int(self._start[i, j])), loop)


def _place(buffer: Buffer, start: Any, shape: int | tuple[int, ...]) -> Place | Places:
    if isinstance(start, np.ndarray):
        return Places.of(buffer, start, shape)
    return Place.of(buffer, int(start), shape)


def _elimination_order(nodes: list[int], coupled: set[tuple[int, int]]) -> tuple[list[int], set[tuple[int, int]]]:
    """An order of nodes by least degree, and all entries of the matrix, with those that elimination adds."""
    neighbours = {a: {b for b in nodes if (a, b) in coupled and a != b} for a in nodes}
    entries, order = {*coupled, *((a, a) for a in nodes)}, []
    while neighbours:
        k = min(neighbours, key=lambda a: (len(neighbours[a]), -a))
        around = neighbours.pop(k)
        for a in around:
            neighbours[a] |= around - {a}
            neighbours[a].discard(k)
        entries |= {(a, b) for a in around for b in around if a != b}
        order.append(k)
    return order, entries


# Kernels


def _couple_nodes() -> Any:
    return np.array(1.0)


@cache
def _unit(size: int) -> Callable[[], Any]:
    def unit() -> Any:
        return np.eye(size)

    return unit


@cache
def _zeros(rows: int, columns: int) -> Callable[[], Any]:
    def zeros() -> Any:
        return np.zeros((rows, columns))

    return zeros


def _positive(matrix: View) -> None:
    matrix.sign = np.array(1.0)


def _couple(block: View, one: View, other: View, entry: View) -> None:
    entry.S = entry.S + one.y @ (block.Q @ other.z.T)


def _reduced(S: Any, L: Any, U: Any) -> Any:
    return S - L @ U


def _factored(S: Any, sign: Any) -> tuple[Any, Any]:
    """S = L U without pivoting, in one matrix, with 1/u on the diagonal; and `sign` times the sign of det S."""
    n = len(S)
    if (rows := factors_by_rows(S)) is not None:
        return rows, np.prod([np.copysign(1.0, x) for x in np.diag(rows)]) * sign
    rows = [[S[i, j] for j in range(n)] for i in range(n)]
    for k in range(n):
        sign = np.copysign(1.0, rows[k][k]) * sign
        rows[k][k] = 1.0 / rows[k][k]
        for i in range(k + 1, n):
            rows[i][k] = rows[i][k] * rows[k][k]
            for j in range(k + 1, n):
                rows[i][j] = rows[i][j] - rows[i][k] * rows[k][j]
    return np.array(rows), sign


def _solved(LU: Any, right: Any) -> Any:
    """U⁻¹ L⁻¹ times the right side."""
    n, x = len(LU), list(right)
    for i in range(n):
        for k in range(i):
            x[i] = x[i] - LU[i, k] * x[k]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - LU[i, k] * x[k]
        x[i] = x[i] * LU[i, i]
    return np.array(x)


def _divided(A: Any, LU: Any) -> Any:
    """A U⁻¹ L⁻¹, row by row."""
    n = len(LU)
    columns: list[Any] = [A[:, j] for j in range(n)]
    for j in range(n):
        for k in range(j):
            columns[j] = columns[j] - columns[k] * LU[k, j]
        columns[j] = columns[j] * LU[j, j]
    for j in reversed(range(n)):
        for k in range(j + 1, n):
            columns[j] = columns[j] - columns[k] * LU[k, j]
    return np.stack(columns, axis=1)
