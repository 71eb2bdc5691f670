"""How the blocks of a contact problem act on each other, as steps of a program.

A = Z Yᵀ is never formed. With the columns z and y of columns.py, impulses λ change the velocities of every cluster's
joints, if all that carries it stays, by x = Yᵀ λ, and a block sees of that w = Z x + b, through the clusters on its own
way to the ground. So a block costs as much as its way is long, however many others there are. Clusters in a row are
taken together, in nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from coupler.contact import laws
from coupler.contact.kernels import clear
from coupler.contact.rows import ContactRows
from coupler.contact.step.blocks import Blocks, More, Numbers
from coupler.contact.step.columns import Node
from coupler.contact.step.cone_update import ConeBlock
from coupler.graph import Buffer, Builder, Vector, View, Window, fields
from coupler.passes import Schedule

Kernel = Callable[[View, list[View]], None]  # of a block's own numbers, and of the nodes on its way, if that is short
WayKernel = Callable[[View, View], None]  # of a block's own numbers, and of one node on its way

_SHORT_WAY = 3  # nodes: what a block sees of so many may be in its kernels, which depend on the shape of its way then
_MANY_SHAPES = 8  # of short ways: with more of them, those of single blocks are left to loops over nodes


class Ways(Protocol):
    """What blocks see each other through: parts of x, the nodes, of which each block sees some."""

    @property
    def x(self) -> Buffer:
        """Σ y λ of all blocks."""
        ...

    @property
    def nodes(self) -> Sequence[Node]:
        """The parts of x."""
        ...

    def parts_of_way(self, group: int) -> dict[int, int]:
        """The nodes on a block's way, and how many freedoms of each, the first ones, are on it."""
        ...

    def way(self, groups: Sequence[int], nodes: Sequence[int]) -> Window:
        """z, y and the part of x of blocks in a node each, all of the same shape."""
        ...


class InteractingBlocks(Blocks):
    """The blocks of a problem, with what they see of each other.

    Kernels have a parameter `own` (see `Blocks`), and `way`, which has z, y and x of a node on the block's way; or
    `ways`, a list of them.
    """

    def __init__(
        self,
        builder: Builder,
        columns: Ways,
        rows: ContactRows,
        friction: Numbers,
        bounds: Numbers,
        impulses: Vector | None = None,
    ) -> None:
        """Args: the ways of all blocks; the others as for `Blocks`."""
        super().__init__(builder, rows, friction, bounds, impulses)
        self._columns = columns
        ways = [(self.width(block), self._shape(block)) for block in self.all]
        self._shapes = Counter(way for way in ways if len(way[1]) <= _SHORT_WAY)
        self._found_ways: dict[range, list[tuple[np.ndarray, Window]]] = {}

    def join(self) -> None:
        """Writes the steps that describe waiting blocks, whose columns are there, and make them active; and to x.

        Those that wait have been listed; those that are active are from now on.
        """
        self.each(_without_block, _without_mobility, "waiting")
        self.along(_add_block, "waiting", blocks=self.all[: self.contacts])
        self.along(_add_mobility, "waiting", blocks=self.all[self.contacts :])
        self.each(_describe_contact, None, "waiting")
        flags = {name: buffer.at(self.all) for name, buffer in self.flags.items()}
        self.builder.loop(_join, own=fields(**flags), **self.among("waiting", self.all))
        self.list_flags("active")
        clear(self.builder, self.joining)
        self.sum_up()

    def sum_up(self, name: str = "impulse", vector: Buffer | None = None) -> None:
        """Writes the steps to x, or to a vector like it, from impulses or from another field of blocks.

        x has what impulses that are given do, too.
        """
        key = self.sum_up, name, vector, self.part, self.given, self.given_where, self.offsets
        self.builder.once(key, lambda: self._sum_up(name, vector))

    def _sum_up(self, name: str, vector: Buffer | None) -> None:
        clear(self.builder, vector or self._columns.x)
        self.along(_pushing(name), vector=vector)
        if vector is None and (given := self.given) is not None:
            more = lambda own: fields(given=self.place(own, given))  # noqa: E731
            self.along(_pushing("given"), self.given_where, more, blocks=self.all[: self.contacts])
        if vector is None and (offsets := self.offsets) is not None:
            last = self.all[len(self.all) - offsets.size :]
            more = lambda own: fields(offset=offsets.at([block - last[0] for block in own], 1))  # noqa: E731
            self.along(_pushing("offset"), more=more, blocks=last)

    def measure(self) -> None:
        """Writes the steps from x to `w` of blocks."""

        def measure() -> None:
            self.each(_begin_to_see, _begin_to_see)
            self.along(_see)

        self.builder.once((self.measure, self.part), measure)

    def measure_change(self, vector: Buffer | None = None, where: str | None = None) -> None:
        """Writes the steps from a change of x, or from x itself, to `dw` of blocks."""
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
        """Writes loops over all nodes on the ways of blocks, with one trace for nodes of which as much is seen.

        Args:
            kernel: what to do with a block and a node.
            where: the flag by which blocks are left out; see `part`.
            more: further fields of `own`, for a list of blocks.
            vector: what takes the place of x.
            blocks: which; all if not given.
        """
        for own, way in self._ways_of(self.all if blocks is None else blocks):
            if vector is not None:
                way = Window({**way.fields, "x": way.fields["x"].rebound({self._columns.x: vector})})
            self.builder.loop(kernel, own=self.of(own) | more(own), way=way, **self.among(where, own))

    def _ways_of(self, blocks: range) -> list[tuple[np.ndarray, Window]]:
        """Of some blocks all nodes on their ways, those of which as much is seen together: blocks, and what they see.

        Many loops go over the same ones, which are found once.
        """
        if blocks not in self._found_ways:
            alike: dict[Hashable, list[tuple[int, int]]] = {}
            for block in blocks:
                for node, size in self._columns.parts_of_way(block).items():
                    alike.setdefault((self.width(block), size), []).append((block, node))
            steps = [tuple(zip(*rows, strict=True)) for rows in alike.values()]
            self._found_ways[blocks] = [(np.array(own), self._columns.way(own, nodes)) for own, nodes in steps]
        return self._found_ways[blocks]

    def visit(
        self, schedule: Schedule, kernel: Kernel, block: int, where: str | None = None, more: More = lambda _: fields()
    ) -> None:
        """Adds a block to a loop; what it sees, and what it changes of that, is in its kernel if its way is short.

        Args:
            schedule: the loop.
            kernel: what to do with it, and with its way; see `velocities` and `push`.
            block: its number.
            where: the flag by which it is left out; see `part`.
            more: further fields of `own`, for a list of blocks.
        """
        shape, short = self._shape(block), self._is_short(block)

        def loop(blocks: list[int]) -> tuple[Callable[..., None], dict[str, Any]]:
            nodes = zip(*(self._columns.parts_of_way(own) for own in blocks), strict=True) if short else ()
            windows = {"own": self.of(blocks) | more(blocks), "ways": [self._columns.way(blocks, own) for own in nodes]}
            return kernel, windows | self.among(where, blocks)

        schedule.add((kernel, self.width(block), shape if short else None), block, loop)

    def _shape(self, block: int) -> tuple[int, ...]:
        return tuple(self._columns.parts_of_way(block).values())

    def _is_short(self, block: int) -> bool:
        """Whether kernels of a block see its way as a whole, and not node by node."""
        shape = self._shape(block)
        few = len(self._shapes) <= _MANY_SHAPES
        return len(shape) <= _SHORT_WAY and (few or self._shapes[self.width(block), shape] > 1)

    def look_along(self, schedule: Schedule, block: int) -> None:
        """Adds what a block sees along a long way to a loop, in front of its kernels."""
        self._add_along(schedule, block, _see_first, _see)

    def push_along(self, schedule: Schedule, block: int) -> None:
        """Adds what a block changes along a long way, behind its kernels."""
        self._add_along(schedule, block, _pass_on, _pass_on)

    def _add_along(self, schedule: Schedule, block: int, first: WayKernel, others: WayKernel) -> None:
        parts, kernel = self._columns.parts_of_way(block), first
        if self._is_short(block):
            return

        def adding(kernel: WayKernel) -> Callable[[list[tuple[int, int]]], tuple[WayKernel, dict[str, Any]]]:
            def loop(rows: list[tuple[int, int]]) -> tuple[WayKernel, dict[str, Any]]:
                own, nodes = zip(*rows, strict=True)
                return kernel, {"own": self.of(own), "way": self._columns.way(own, nodes)} | self.among(None, own)

            return loop

        for node, size in parts.items():
            schedule.add((kernel, self.width(block), size), (block, node), adding(kernel))
            kernel = others


def velocities(own: View, ways: list[View]) -> Any:
    """w = Z x + b of a block; it is known if its way is long."""
    return reduce(add, (way.z.T @ way.x for way in ways), own.b) if ways else own.w


def push(own: View, ways: list[View], change: Any) -> None:
    """x with impulses of a block changed by so much; if its way is long, that is left to `push_along`."""
    if not ways:
        own.pushed = change
    for way in ways:
        way.x = way.x + way.y @ change


def _join(own: View) -> None:
    own.active, own.idle, own.waiting = np.array(1.0), np.array(0.0), np.array(0.0)


# Kernels of a block and a node on its way


def _pushing(name: str) -> WayKernel:
    def push_field(own: View, way: View) -> None:
        way.x = way.x + way.y @ getattr(own, name)

    return push_field


_pass_on = _pushing("pushed")


def _see_first(own: View, way: View) -> None:
    own.w = own.b + way.z.T @ way.x


def _see(own: View, way: View) -> None:
    own.w = own.w + way.z.T @ way.x


def _see_change(own: View, way: View) -> None:
    own.dw = own.dw + way.z.T @ way.x


def _add_block(own: View, way: View) -> None:
    A = way.z.T @ way.y
    own.A = own.A + np.array([[A[min(i, j), max(i, j)] for j in range(len(A))] for i in range(len(A))])


def _add_mobility(own: View, way: View) -> None:
    own.a = own.a + (way.z.T @ way.y)[0, 0]


# Kernels of a block


def _begin_to_see(own: View) -> None:
    own.w = own.b


def _without_change(own: View) -> None:
    own.dw = np.zeros(len(own.b))


def _without_block(own: View) -> None:
    own.A = np.zeros(np.shape(own.A))


def _without_mobility(own: View) -> None:
    own.a = np.array(0.0)


def _describe_contact(own: View) -> None:
    A = own.A
    block, mobility = ConeBlock.of(A[:3, :3]), laws.mobilities(A, own.friction)
    own.inverse, own.mobility = block.inverse, np.array(mobility)
    own.normal_step, own.disc_steps = np.array(block.normal_step), np.array([1.0 / m for m in mobility])
    own.impulse = laws.inside_cone(own.friction, own.impulse)
