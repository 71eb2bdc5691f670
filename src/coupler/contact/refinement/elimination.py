"""Small changes of a contact problem: (1 + Yᵀ Q Z) Δx = Yᵀ p, solved by elimination over clusters.

Where the laws of all blocks answer small changes of their velocities with Δλ = p − Q Δw, and w = Z x + b with x = Yᵀ λ,
this is what x changes by: as many unknowns as the clusters on the ways have freedoms, however many contacts there are.
The matrix couples clusters that share a way. So it is eliminated node by node, a node being some clusters in a row on
all ways, in an order that adds few entries: that of a tree costs nothing more than its own entries, and a stack of
bodies as much as it is high. There is no pivoting, so that all states take the same steps.

In a pile, any two bodies may touch, and few do. There, flags tell which nodes are coupled in a state, by blocks that
are active or by elimination; they are listed, and what is zero is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from coupler.contact.interaction import InteractingBlocks, Ways
from coupler.contact.kernels import clear
from coupler.graph import Field, View, fields
from coupler.linear import factors_by_rows
from coupler.passes import Place, Schedule, Store

__all__ = ["Elimination"]

_DENSE = 200  # products of blocks that elimination has at the most: of more, those of zeros are left out


class Elimination:
    """The system of a problem's blocks, of which each has p and Q.

    Attributes:
        right: Yᵀ p, and after `solve` Δx.
        sign: 1, the sign of the matrix's determinant.
    """

    def __init__(self, blocks: InteractingBlocks, columns: Ways) -> None:
        self._blocks, self._columns, self._builder = blocks, columns, blocks.builder
        self.right, self.sign = self._builder.scratch("right", columns.x.size), self._builder.scratch("sign", 1)
        self._parts = [columns.parts_of_way(block) for block in blocks.all]
        coupled = {(a, b) for parts in self._parts for a, b in product(parts, repeat=2)}
        self._order, entries = _elimination_order(sorted({a for a, _ in coupled}), coupled)
        self._sizes = {a: columns.nodes[a].size for a in self._order}
        self._later = {a: [b for b in self._order[i + 1 :] if (a, b) in entries] for i, a in enumerate(self._order)}
        self._S = Store(lambda size: self._builder.scratch("S", size))
        for a, b in sorted(entries):
            self._S.add((a, b), (self._sizes[a], self._sizes[b]))
        products = sum(len(later) ** 2 for later in self._later.values())
        self._coupled = self._builder.scratch("coupled_nodes", len(self._order) ** 2) if products > _DENSE else None
        self._rank = {a: i for i, a in enumerate(self._order)}

    def begin(self) -> None:
        """Writes the steps that find which nodes are coupled, once it is known which blocks take part."""
        if self._coupled is None:
            return
        clear(self._builder, self._coupled)
        schedule, flags, nodes = Schedule(self._builder), self._blocks.flags[self._blocks.part], len(self._order)
        for block, parts in enumerate(self._parts):
            for a, b in product(parts, repeat=2):
                schedule.call(_couple_nodes, out=self._flag(a, b), among=Place.of(flags, block, ()))  # type: ignore[arg-type]
        schedule.run()
        schedule = Schedule(self._builder)
        row = {a: Place.of(self._coupled, nodes * i, nodes) for a, i in self._rank.items()}
        for k in self._order:
            for i in self._later[k]:  # whatever is coupled to k will be coupled to i
                schedule.call(np.maximum, row[i], row[k], out=row[i], where=self._flag(k, i))
        schedule.run()
        self._builder.list_flags(self._coupled)

    def _flag(self, k: int, i: int) -> Place | None:
        """Whether nodes k and i are coupled in a state; None if that is not asked. Those of one k are in a row."""
        if self._coupled is None:
            return None
        return Place.of(self._coupled, self._rank[k] * len(self._order) + self._rank[i], ())

    def factor(self) -> None:
        """Writes the steps from Q of all active blocks to the eliminated matrix."""
        S, later = self._S, self._later
        self._builder.loop(_positive, matrix=fields(sign=self.sign.at(0)))
        schedule = Schedule(self._builder)
        for k in self._order:
            schedule.call(_one(self._sizes[k]), out=S.place((k, k)), among=self._flag(k, k))
            for i in later[k]:
                for entry in ((k, i), (i, k)):
                    schedule.call(_nothing(*S.fields[entry].shape), out=S.place(entry), among=self._flag(k, i))
        schedule.run()
        schedule = Schedule(self._builder)
        for block, parts in enumerate(self._parts):
            for a, b in product(parts, repeat=2):
                self._couple(schedule, block, a, b)
        schedule.run()
        schedule, sign = Schedule(self._builder), Place.of(self.sign, 0, ())
        for k in self._order:
            own = S.place((k, k))
            schedule.call(_factored, own, sign, out=[own, sign], among=self._flag(k, k))
            for i in later[k]:
                both = self._flag(k, i)
                schedule.call(_divided, S.place((i, k)), own, out=S.place((i, k)), among=both)
                for j in later[k]:
                    parts = S.place((i, j)), S.place((i, k)), S.place((k, j))
                    schedule.call(_reduced, *parts, out=parts[0], among=both, where=self._flag(k, j))
        schedule.run()

    def solve(self) -> None:
        """Writes the steps from p of all active blocks to Δx."""
        right, schedule = self.right, Schedule(self._builder)
        self._blocks.sum_up("p", right)
        part = {a: Place.of(right, self._columns.nodes[a].start, self._sizes[a]) for a in self._order}
        for k in self._order:
            for i in self._later[k]:
                row = part[i], self._S.place((i, k)), part[k]
                schedule.call(_reduced, *row, out=part[i], among=self._flag(k, i))
        schedule.run()
        schedule = Schedule(self._builder)
        for k in reversed(self._order):
            for j in reversed(self._later[k]):
                row = part[k], self._S.place((k, j)), part[j]
                schedule.call(_reduced, *row, out=part[k], among=self._flag(k, j))
            schedule.call(_solved, self._S.place((k, k)), part[k], out=part[k], among=self._flag(k, k))
        schedule.run()

    def _couple(self, schedule: Schedule, block: int, a: int, b: int) -> None:
        """Adds what a block makes of the entry (a, b): y Q zᵀ."""
        shape = self._parts[block][a], self._parts[block][b]
        own, width = self._S.place((a, b)), self._sizes[b]
        part = Field(shape, tuple(i * width + j for i in range(shape[0]) for j in range(shape[1])))

        def loop(rows: list[tuple[int, int, int]]) -> tuple[Callable[..., None], dict[str, Any]]:
            blocks, ones, others = (list(column) for column in zip(*rows, strict=True))
            starts = [self._S.starts[row[1:]] for row in rows]
            windows = {"own": self._blocks.of(blocks), "entry": fields(S=own.buffer.at(starts, part))}
            windows |= {"one": self._columns.way(blocks, ones), "other": self._columns.way(blocks, others)}
            return _couple, windows | self._blocks.among(None, blocks)

        schedule.add((_couple, self._blocks.width(block), shape, width), (block, a, b), loop)


def _elimination_order(nodes: list[int], coupled: set[tuple[int, int]]) -> tuple[list[int], set[tuple[int, int]]]:
    """An order of nodes by least degree, and all entries with those that elimination adds."""
    neighbours = {a: {b for b in nodes if (a, b) in coupled and a != b} for a in nodes}
    entries, order = {*coupled, *((a, a) for a in nodes)}, []
    while neighbours:
        k = min(neighbours, key=lambda a: (len(neighbours[a]), -a))
        own = neighbours.pop(k)
        for a in own:
            neighbours[a] |= own - {a}
            neighbours[a].discard(k)
        entries |= {(a, b) for a in own for b in own if a != b}
        order.append(k)
    return order, entries


# Kernels


def _couple_nodes() -> Any:
    return np.array(1.0)


@cache
def _one(size: int) -> Callable[[], Any]:
    def one() -> Any:
        return np.eye(size)

    return one


@cache
def _nothing(rows: int, columns: int) -> Callable[[], Any]:
    def nothing() -> Any:
        return np.zeros((rows, columns))

    return nothing


def _positive(matrix: View) -> None:
    matrix.sign = np.array(1.0)


def _couple(own: View, one: View, other: View, entry: View) -> None:
    entry.S = entry.S + one.y @ (own.Q @ other.z.T)


def _reduced(S: Any, L: Any, U: Any) -> Any:
    return S - L @ U


def _factored(S: Any, sign: Any) -> tuple[Any, Any]:
    """S = L U without pivoting, in one matrix, with 1/u on the diagonal; and the sign times that of the determinant."""
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
    """U⁻¹ L⁻¹ times a vector."""
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
