"""How the blocks of a contact problem act on each other, as steps of a program.

A = Z Yᵀ is never formed. With the columns z and y of columns.py, impulses λ change the velocities of each cluster's
joints, if all that carries it stays, by x = Yᵀ λ. A block sees of that w = Z x + b, through the clusters on its own way
to the ground. So the cost of a block grows with the length of its way, and not with the number of other blocks. Chains
of clusters are taken together, as nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from coupler.contact import laws
from coupler.contact.kernels import clear
from coupler.contact.rows import ContactRows
from coupler.contact.step.blocks import Blocks, More, Numbers, describe_contact
from coupler.contact.step.columns import Node
from coupler.graph import Buffer, Builder, Vector, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.passes import Schedule

Kernel = Callable[[View, list[View]], None]  # sees a block, and all nodes on its way if that is short
WayKernel = Callable[[View, View], None]  # sees a block, and one node on its way

_SHORT_WAY = 3  # nodes: kernels may see a way of so many as a whole, and are then traced for each shape of it
_MANY_SHAPES = 8  # of short ways: if there are more, shapes of single blocks are left to loops over nodes


class Ways(Protocol):
    """The ways of blocks to the ground, through nodes, the parts of x, in which blocks act on each other."""

    @property
    def x(self) -> Buffer:
        """Σ y λ of all blocks."""
        ...

    @property
    def nodes(self) -> Sequence[Node]:
        """The parts of x."""
        ...

    def parts_of_way(self, group: int) -> dict[int, int]:
        """The nodes on a block's way, and the number of freedoms of each that are on the way, from the first one on."""
        ...

    def way(self, groups: Sequence[int], nodes: Sequence[int]) -> Window:
        """z, y and the part of x for blocks and one node each, all of the same shape."""
        ...


class InteractingBlocks(Blocks):
    """The blocks of a contact problem, and how they act on each other.

    Kernels have a parameter `block` (see `Blocks`), and either `way`, with z, y and x of one node on the block's way,
    or `ways`, a list of such nodes.

    Args:
        columns: the ways of all blocks.
        rows, friction, bounds, impulses: as for `Blocks`.
        rounding: a mobility that is due to rounding alone, 1/kg.
    """

    def __init__(
        self,
        builder: Builder,
        columns: Ways,
        rows: ContactRows,
        friction: Numbers,
        bounds: Numbers,
        impulses: Vector | None = None,
        rounding: Any = laws.TINY,
    ) -> None:
        super().__init__(builder, rows, friction, bounds, impulses)
        self._columns, self._rounding = columns, rounding
        ways = [(self.width(block), self._shape(block)) for block in self.all]
        self._shapes = Counter(way for way in ways if len(way[1]) <= _SHORT_WAY)
        self._known_ways: dict[range, list[tuple[np.ndarray, Window]]] = {}

    def join(self) -> None:
        """Writes the steps that make waiting blocks active, with their own blocks of A, and that compute x.

        Waiting blocks have been listed, and their columns have climbed. Active blocks are listed from here on.
        """
        self.each(_without_block, _without_mobility, "waiting")
        self.along(_add_block, "waiting", blocks=self.all[: self.contacts])
        self.along(_add_mobility, "waiting", blocks=self.all[self.contacts :])
        rounding = lambda blocks: fields(rounding=constants(np.full(len(blocks), self._rounding)))  # noqa: E731
        self.each(describe_contact, None, "waiting", rounding)
        flags = {name: buffer.at(self.all) for name, buffer in self.flags.items()}
        self.builder.loop(_join, block=fields(**flags), **self.among("waiting", self.all))
        self.builder.list_flags(self.flags["active"])
        clear(self.builder, self.joining)
        self.sum_up()

    def sum_up(self, name: str = "impulse", vector: Buffer | None = None) -> None:
        """Writes the steps that compute x from impulses, given ones and offsets included.

        Args:
            name: the field of blocks to sum up in place of impulses.
            vector: a vector laid out like x, which gets the sum in its place; nothing is added to that.
        """
        key = self.sum_up, name, vector, self.part, self.given, self.given_where, self.offsets, self.pulls
        self.builder.once(key, lambda: self._sum_up(name, vector))

    def _sum_up(self, name: str, vector: Buffer | None) -> None:
        clear(self.builder, vector or self._columns.x)
        self.along(_pushing(name), vector=vector)
        if vector is None and (given := self.given) is not None:
            more = lambda blocks: fields(given=self.place(blocks, given))  # noqa: E731
            self.along(_pushing("given"), self.given_where, more, blocks=self.all[: self.contacts])
        if vector is None and (pulls := self.pulls) is not None:
            more = lambda blocks: fields(pull=self.place(blocks, pulls))  # noqa: E731
            self.along(_pushing("pull"), "pulled", more, blocks=self.all[: self.contacts])
        if vector is None and (offsets := self.offsets) is not None:
            last = self.all[len(self.all) - offsets.size :]
            more = lambda blocks: fields(offset=offsets.at([block - last[0] for block in blocks], 1))  # noqa: E731
            self.along(_pushing("offset"), more=more, blocks=last)

    def measure(self) -> None:
        """Writes the steps that compute `w` of blocks from x."""

        def measure() -> None:
            self.each(_begin_to_see, _begin_to_see)
            self.along(_see)

        self.builder.once((self.measure, self.part), measure)

    def measure_change(self, vector: Buffer | None = None, where: str | None = None) -> None:
        """Writes the steps that compute `dw` of blocks from a change of x, or from x itself."""
        self.each(_without_change, _without_change, where)
        self.along(_see_change, where, vector=vector)

    def along(
        self,
        kernel: WayKernel,
        where: str | None = None,
        more: More = lambda _: fields(),
        vector: Buffer | None = None,
        blocks: range | None = None,
    ) -> None:
        """Writes loops over all nodes on the ways of blocks; nodes whose seen parts have equal size share a trace.

        Args:
            kernel: a kernel of a block and a node.
            where: the flag of the blocks to run over; see `part`.
            more: gives further fields of `block`.
            vector: takes the place of x.
            blocks: the blocks to run over; all if not given.
        """
        for rows, way in self._ways_of(self.all if blocks is None else blocks):
            if vector is not None:
                way = Window({**way.fields, "x": way.fields["x"].rebound({self._columns.x: vector})})
            self.builder.loop(kernel, block=self.of(rows) | more(rows), way=way, **self.among(where, rows))

    def _ways_of(self, blocks: range) -> list[tuple[np.ndarray, Window]]:
        """All nodes on the ways of some blocks, in groups that share a trace: the blocks, and the fields they see.

        Many loops run over the same blocks, so this is remembered.
        """
        if blocks not in self._known_ways:
            parts = self._columns.parts_of_way
            steps = [(block, node) for block in blocks for node in parts(block)]
            alike = grouped(steps, lambda step: (self.width(step[0]), parts(step[0])[step[1]])).values()
            columns = [tuple(zip(*group, strict=True)) for group in alike]
            self._known_ways[blocks] = [(np.array(rows), self._columns.way(rows, nodes)) for rows, nodes in columns]
        return self._known_ways[blocks]

    def visit(
        self, schedule: Schedule, kernel: Kernel, block: int, where: str | None = None, more: More = lambda _: fields()
    ) -> None:
        """Adds a block to a loop; its kernel sees and changes the nodes on the block's way, if the way is short.

        Args:
            kernel: a kernel of the block and its way; see `velocities` and `push`.
            block: the number of the block.
            where: the flag that it must have; see `part`.
            more: gives further fields of `block`.
        """
        shape, short = self._shape(block), self._is_short(block)

        def loop(blocks: list[int]) -> tuple[Callable[..., None], dict[str, Any]]:
            nodes = zip(*(self._columns.parts_of_way(block) for block in blocks), strict=True) if short else ()
            ways = [self._columns.way(blocks, row) for row in nodes]
            return kernel, {"block": self.of(blocks) | more(blocks), "ways": ways} | self.among(where, blocks)

        schedule.add((kernel, self.width(block), shape if short else None), block, loop)

    def _shape(self, block: int) -> tuple[int, ...]:
        return tuple(self._columns.parts_of_way(block).values())

    def _is_short(self, block: int) -> bool:
        """Whether kernels of a block see its way as a whole; otherwise loops run over its nodes."""
        shape = self._shape(block)
        few = len(self._shapes) <= _MANY_SHAPES
        return len(shape) <= _SHORT_WAY and (few or self._shapes[self.width(block), shape] > 1)

    def look_along(self, schedule: Schedule, block: int) -> None:
        """Adds to a loop the rows that gather what a block sees along a long way; call it before adding its kernels."""
        self._add_along(schedule, block, _see_first, _see)

    def push_along(self, schedule: Schedule, block: int) -> None:
        """Adds to a loop the rows that spread a block's changes along a long way; call it after adding its kernels."""
        self._add_along(schedule, block, _pass_on, _pass_on)

    def _add_along(self, schedule: Schedule, block: int, first: WayKernel, others: WayKernel) -> None:
        parts, kernel = self._columns.parts_of_way(block), first
        if self._is_short(block):
            return

        def loop(kernel: WayKernel, rows: list[tuple[int, int]]) -> tuple[WayKernel, dict[str, Any]]:
            blocks, nodes = zip(*rows, strict=True)
            windows = {"block": self.of(blocks), "way": self._columns.way(blocks, nodes)}
            return kernel, windows | self.among(None, blocks)

        for node, size in parts.items():
            schedule.add((kernel, self.width(block), size), (block, node), partial(loop, kernel))
            kernel = others


def velocities(block: View, ways: list[View]) -> Any:
    """The velocities w = Z x + b of a block; if its way is long, `look_along` has computed them."""
    return reduce(add, (way.z.T @ way.x for way in ways), block.b) if ways else block.w


def push(block: View, ways: list[View], change: Any) -> None:
    """Adds the effect of a change of a block's impulses to x; if its way is long, that is left to `push_along`."""
    if not ways:
        block.pushed = change
    for way in ways:
        way.x = way.x + way.y @ change


def _join(block: View) -> None:
    block.active, block.idle, block.waiting = np.array(1.0), np.array(0.0), np.array(0.0)


# Kernels of a block and a node on its way


def _pushing(name: str) -> WayKernel:
    def push_field(block: View, way: View) -> None:
        way.x = way.x + way.y @ getattr(block, name)

    return push_field


_pass_on = _pushing("pushed")


def _see_first(block: View, way: View) -> None:
    block.w = block.b + way.z.T @ way.x


def _see(block: View, way: View) -> None:
    block.w = block.w + way.z.T @ way.x


def _see_change(block: View, way: View) -> None:
    block.dw = block.dw + way.z.T @ way.x


def _add_block(block: View, way: View) -> None:
    A = way.z.T @ way.y
    block.A = block.A + np.array([[A[min(i, j), max(i, j)] for j in range(len(A))] for i in range(len(A))])


def _add_mobility(block: View, way: View) -> None:
    block.a = block.a + (way.z.T @ way.y)[0, 0]


# Kernels of a block


def _begin_to_see(block: View) -> None:
    block.w = block.b


def _without_change(block: View) -> None:
    block.dw = np.zeros(len(block.b))


def _without_block(block: View) -> None:
    block.A = np.zeros(np.shape(block.A))


def _without_mobility(block: View) -> None:
    block.a = np.array(0.0)
