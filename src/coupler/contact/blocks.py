"""The blocks of a contact problem in a program: the rows of each contact, and the row of each joint that is stopped.

A = Z Yᵀ is never formed. With the columns z and y of columns.py, impulses λ change the velocities of every cluster's
joints, if all that carries it stays, by x = Yᵀ λ, and a block sees of that w = Z x + b, through the clusters on its own
way to the ground. So a block costs as much as its way is long, however many others there are.

Candidates are many, and few of them touch: only blocks that are active take part. A block joins them once it would
break its law without an impulse, and then stays until the step ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from coupler.contact import laws
from coupler.contact.columns import Node
from coupler.contact.cone_update import ConeBlock
from coupler.contact.kernels import clear
from coupler.contact.rows import BlockRecords, ContactRows, Layout
from coupler.graph import Buffer, Builder, Constants, Slot, Vector, View, Window, constants, fields, symmetric
from coupler.passes import Schedule

__all__ = ["Blocks", "Kernel", "More", "OwnKernel", "Ways", "mobilities", "push", "shared", "velocities", "wait"]

Kernel = Callable[[View, list[View]], None]  # of a block's own numbers, and of the clusters on its way
OwnKernel = Callable[[View], None]  # of a block's own numbers alone
Numbers = Sequence[float] | Buffer  # of all blocks of a kind: known, or given to the program
More = Callable[[Sequence[int]], Window]  # further fields of some blocks

_FLAGS = ("active", "idle", "waiting", "pressed", "slides", "newton", "interior", "path", "gauge", "starting")
_REACH = 1.0  # m/s: a contact that opens faster does not start from the impulse of the step before
_JOINT: Layout = {"a": (), "low": (), "high": (), "p": 1, "Q": (1, 1), "w": 1, "dw": 1, "pushed": 1}


def _contact(rows: int, discs: int) -> Layout:
    own: Layout = {
        "A": symmetric(rows),
        "inverse": symmetric(3),
        "normal_step": (),
        "disc_steps": discs,
        "mobility": discs,
    }
    return own | dict.fromkeys(("new", "p", "w", "dw", "pushed"), rows) | {"Q": (rows, rows)}


class Ways(Protocol):
    """What blocks see each other through. Nodes are parts of x, and clusters are parts of nodes."""

    @property
    def x(self) -> Buffer:
        """Σ y λ of all blocks."""
        ...

    @property
    def nodes(self) -> Sequence[Node]:
        """The parts of x."""
        ...

    def shape_of_way(self, group: int) -> Hashable:
        """Equal for blocks that look alike to kernels."""
        ...

    def ways(self, groups: Sequence[int], vector: Buffer | None = None) -> list[Window]:
        """For each cluster on the ways of blocks that look alike: their z and y, and its part of x, or of a vector."""
        ...

    def way(self, groups: Sequence[int], clusters: Sequence[int]) -> Window:
        """z and y of blocks in a cluster each, all of the same shape."""
        ...

    def parts_of_way(self, group: int) -> dict[int, list[tuple[int, int]]]:
        """By node, the clusters of it on a block's way and their freedoms; those are the first ones of the node."""
        ...


class Blocks:
    """The blocks of a problem, in buffers of a program: first contacts, three rows or more each, then joints, one each.

    Kernels of blocks have two parameters. `own` has a block's `impulse` λ and `b`, its flags, and whatever else its
    kind knows: contacts `friction`, a number for each disc, as `mobility` and its inverse `disc_steps` have, and more;
    joints `a`, their mobility, `low` and `high`, the velocities that take them to their limits within the step, and
    `bound`, the largest impulse of their friction.
    `ways` has z, y and x of each cluster on the block's way.

    Attributes:
        contacts, joints: how many there are.
        rows: the rows of contacts; those of joints follow.
        impulses: λ, of all rows.
        b: of all rows.
        flags: of each block 1 or 0: `active`, whether it takes part; `idle`, whether it may join; `waiting`, whether it
            is about to; `pressed`, for `Impacts`; `slides`, for `Relaxation`; and the rest, for `Refinement`.
        joining: 1, whether any block is waiting.
        given: impulses of contacts that act besides λ, and that no law asks about; None if there are none.
        given_where: the flag of the contacts that have such impulses.
    """

    def __init__(self, builder: Builder, columns: Ways, rows: ContactRows, friction: Numbers, bounds: Numbers) -> None:
        """Begins.

        Args:
            builder: writes the program.
            columns: the ways of all blocks.
            rows: of contacts.
            friction: the coefficients of all contacts.
            bounds: the largest impulse of each joint's friction, N s or N m s.
        """
        self.builder, self._columns, self.rows, self._friction, self._bounds = builder, columns, rows, friction, bounds
        self.contacts, self.joints = len(rows), bounds.size if isinstance(bounds, Buffer) else len(bounds)
        self.impulses, self.b = (builder.scratch(name, rows.total + self.joints) for name in ("impulses", "b"))
        self.flags = {name: builder.scratch(name, self.contacts + self.joints) for name in _FLAGS}
        self.joining = builder.scratch("joining", 1)
        self.given: Buffer | None = None
        self.given_where = "active"
        self._records = BlockRecords(builder, "block", rows, self.joints, _contact, _JOINT)

    @property
    def all(self) -> range:
        return range(self.contacts + self.joints)

    def width(self, block: int) -> int:
        """How many rows a block has: kernels tell kinds of blocks by it."""
        return int(self.rows.widths[block]) if block < self.contacts else 1

    def place(self, blocks: Sequence[int], buffer: Vector) -> Slot:
        """Where blocks of one kind have their rows in a vector like λ."""
        contacts, rows = blocks[0] < self.contacts, np.array(blocks)
        first = self.rows.first[rows] if contacts else rows - self.contacts + self.rows.total
        return buffer.at(first, self.width(blocks[0]))

    def _kinds(self) -> list[list[int]]:
        """Blocks, those of one kind together."""
        joints = [*self.all[self.contacts :]]
        return [*self.rows.alike(), *([joints] if joints else [])]

    def of(self, blocks: Sequence[int]) -> Window:
        """What is known of blocks of one kind: see above."""
        own = {"impulse": self.place(blocks, self.impulses), "b": self.place(blocks, self.b)}
        own |= {name: flags.at(blocks) for name, flags in self.flags.items()}
        if blocks[0] < self.contacts:
            first, discs = self.rows.coefficients[list(blocks)], int(self.rows.discs[blocks[0]])
            known = fields(**own, friction=_of(self._friction, first, discs))
        else:
            known = fields(**own, bound=_of(self._bounds, np.array(blocks) - self.contacts, None))
        return known | self._records.of(blocks)

    def visit(
        self,
        schedule: Schedule,
        kernel: Kernel,
        block: int,
        where: str = "active",
        more: More = lambda _: fields(),
        vector: Buffer | None = None,
    ) -> None:
        """Adds a block to a loop.

        Args:
            schedule: the loop.
            kernel: what to do with it.
            block: its number.
            where: the flag by which it is left out.
            more: further fields of `own`, for a list of blocks.
            vector: what takes the place of x in `ways`.
        """

        def loop(blocks: list[int]) -> tuple[Callable[..., None], dict[str, Any]]:
            windows = {"own": self.of(blocks) | more(blocks), "ways": self._columns.ways(blocks, vector)}
            return kernel, windows | {"where": self.flags[where].at(blocks)}

        schedule.add((kernel, self.width(block), self._columns.shape_of_way(block)), block, loop)

    def run(
        self,
        contact: Kernel | None,
        joint: Kernel | None,
        where: str = "active",
        more: More = lambda _: fields(),
        vector: Buffer | None = None,
    ) -> None:
        """Writes a loop over all blocks, with a kernel for contacts and one for joints; see `visit`."""
        schedule = Schedule(self.builder)
        for block in self.all:
            kernel = contact if block < self.contacts else joint
            if kernel is not None:
                self.visit(schedule, kernel, block, where, more, vector)
        schedule.run()

    def begin(self) -> None:
        """Writes the steps that make all blocks idle, and those wait that break their laws or had an impulse.

        Impulses are those to start from.
        """
        self.builder.loop(_none_joins, blocks=fields(joining=self.joining.at(0)))
        joining = shared(joining=self.joining)
        for blocks in self._kinds():
            own = self.of(blocks) | joining(blocks)
            if blocks[0] >= self.contacts:
                self.builder.loop(_begin_joint, own=own)
            elif self.given is None:
                self.builder.loop(_begin_contact, own=own)
            else:
                self.builder.loop(_begin_given, own=own | fields(given=self.place(blocks, self.given)))

    def begin_all(self) -> None:
        """Writes the steps that make all blocks wait, with impulses to start from."""
        for blocks in self._kinds():
            self.builder.loop(_begin_at_once, own=self.of(blocks))

    def join(self) -> None:
        """Writes the steps that describe waiting blocks, whose columns are there, and make them active; and to x."""
        self.run(_describe_contact, _describe_joint, "waiting")
        flags = {name: buffer.at(self.all) for name, buffer in self.flags.items()}
        self.builder.loop(_join, own=fields(**flags))
        self.builder.loop(_none_joins, blocks=fields(joining=self.joining.at(0)))
        self.sum_up()

    def each(
        self,
        contact: OwnKernel,
        joint: OwnKernel,
        where: str = "active",
        more: More = lambda _: fields(),
    ) -> None:
        """Writes loops over all contacts and one over all joints, of kernels that do not look at ways.

        There is one trace for each kind, while kernels that do look have one for every shape of a way.
        """
        for blocks in self._kinds():
            kernel = contact if blocks[0] < self.contacts else joint
            self.builder.loop(kernel, own=self.of(blocks) | more(blocks), where=self.flags[where].at(blocks))

    def sum_up(self, name: str = "impulse", vector: Buffer | None = None) -> None:
        """Writes the steps to x, or to a vector like it, from impulses or from another field of blocks.

        x has what impulses that are given do, too.
        """
        kernel = _pushing(name)
        clear(self.builder, vector or self._columns.x)
        self.run(kernel, kernel, vector=vector)
        if vector is None and (given := self.given) is not None:
            self.run(_push_given, None, self.given_where, lambda own: fields(given=self.place(own, given)))

    def measure(self) -> None:
        """Writes the steps from x to `w` of blocks."""
        self.run(_measure, _measure)

    def measure_change(self, vector: Buffer) -> None:
        """Writes the steps from a change of x to `dw` of blocks."""
        self.run(_measure_change, _measure_change, vector=vector)


def _of(numbers: Numbers, first: np.ndarray, count: int | None) -> Slot | Constants:
    """A number of each block, or so many from a first one on."""
    if isinstance(numbers, Buffer):
        return numbers.at(first, () if count is None else count)
    return constants(np.array(numbers, float)[first if count is None else first[:, None] + np.arange(count)])


def shared(**buffers: Vector) -> More:
    """Numbers that all blocks have in common."""
    return lambda blocks: fields(**{name: buffer.at([0] * len(blocks)) for name, buffer in buffers.items()})


def velocities(own: View, ways: list[View]) -> Any:
    """w = Z x + b of a block."""
    return reduce(add, (way.z.T @ way.x for way in ways), own.b)


def mobilities(own: View) -> list[Any]:
    """Of a contact's normal and of each of its discs."""
    return [own.A[0, 0], *own.mobility]


def push(ways: list[View], change: Any) -> None:
    """x with impulses of a block changed by so much."""
    for way in ways:
        way.x = way.x + way.y @ change


def wait(own: Any, beyond: Any) -> None:
    """Makes a block wait that would break its law."""
    own.waiting = np.where(beyond, 1.0, 0.0)
    own.joining = np.maximum(own.joining, own.waiting)


def _none_joins(blocks: View) -> None:
    blocks.joining = np.array(0.0)


def _begin_contact(own: View) -> None:
    _begin(own, (own.b[0] < 0.0) | _held(own))


def _begin_given(own: View) -> None:
    _begin(own, (own.b[0] < 0.0) | _held(own) | (own.given[0] > 0.0))


def _held(own: View) -> Any:
    """Whether a contact had an impulse and may need one again: it has not moved out of reach."""
    return (own.impulse[0] > 0.0) & (own.b[0] < _REACH)


def _begin_joint(own: View) -> None:
    velocity, own.a = own.b[0], np.array(0.0)
    _begin(own, (own.bound > 0.0) | (own.impulse[0] != 0.0) | (velocity < own.low) | (velocity > own.high))


def _begin(own: View, waits: Any) -> None:
    wait(own, waits)
    own.active, own.idle, own.slides = np.array(0.0), np.array(1.0), np.array(0.0)
    own.impulse = own.waiting * own.impulse


def _begin_at_once(own: View) -> None:
    own.active = own.idle = own.slides = np.array(0.0)
    own.waiting = np.array(1.0)


def _join(own: View) -> None:
    own.active = np.maximum(own.active, own.waiting)
    own.idle = np.minimum(own.idle, 1.0 - own.active)
    own.waiting = np.array(0.0)


def _pushing(name: str) -> Kernel:
    def push_field(own: View, ways: list[View]) -> None:
        push(ways, getattr(own, name))

    return push_field


def _measure(own: View, ways: list[View]) -> None:
    own.w = velocities(own, ways)


def _measure_change(own: View, ways: list[View]) -> None:
    own.dw = reduce(add, (way.z.T @ way.x for way in ways))


def _push_given(own: View, ways: list[View]) -> None:
    push(ways, own.given)


def _describe_contact(own: View, ways: list[View]) -> None:
    A = reduce(add, (way.z.T @ way.y for way in ways))
    A = np.array([[A[min(i, j), max(i, j)] for j in range(len(A))] for i in range(len(A))])
    block, mobility = ConeBlock.of(A[:3, :3]), laws.mobilities(A, own.friction)
    own.A, own.inverse, own.mobility = A, block.inverse, np.array(mobility)
    own.normal_step, own.disc_steps = np.array(block.normal_step), np.array([1.0 / m for m in mobility])
    own.impulse = laws.inside_cone(own.friction, own.impulse)


def _describe_joint(own: View, ways: list[View]) -> None:
    own.a = reduce(add, (way.z.T @ way.y for way in ways))[0, 0]
