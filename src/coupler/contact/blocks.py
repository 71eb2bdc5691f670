"""The blocks of a contact problem in a program: the rows of each contact, and the row of each joint that is stopped.

A = Z Yᵀ is never formed. With the columns z and y of columns.py, impulses λ change the velocities of every cluster's
joints, if all that carries it stays, by x = Yᵀ λ, and a block sees of that w = Z x + b, through the clusters on its own
way to the ground. So a block costs as much as its way is long, however many others there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.columns import Columns
from coupler.contact.cone_update import ConeBlock
from coupler.contact.kernels import clear
from coupler.graph import Buffer, Builder, View, Window, constants, fields, symmetric
from coupler.passes import Schedule

__all__ = ["Blocks", "Kernel", "push", "shared", "velocities"]

Kernel = Callable[[View, list[View]], None]  # of a block's own numbers, and of the clusters on its way
More = Callable[[Sequence[int]], Window]  # further fields of some blocks

_CONTACT = {"A": symmetric(3), "inverse": symmetric(3), "normal_step": (), "tangent_step": (), "mobility": (), "new": 3}
_JOINT = {"a": (), "low": (), "high": ()}


class Blocks:
    """The blocks of a problem, in buffers of a program: first contacts, three rows each, then joints, one row each.

    Kernels of blocks have two parameters. `own` has a block's `impulse` λ and `b`, and whatever else its kind knows:
    contacts `friction` and the fields of `ConeBlock`; joints `a`, their mobility, `low` and `high`, the velocities that
    take them to their limits within the step, and `bound`, the largest impulse of their friction. `ways` has z, y and x
    of each cluster on the block's way.

    Attributes:
        contacts, joints: how many there are.
        friction: µ of each contact.
        bounds: the largest impulse of each joint's friction, N s or N m s.
        impulses: λ, of all rows.
        b: of all rows.
        records: what is known of contacts, and of joints.
        given: impulses of contacts that act besides λ, and that no law asks about; None if there are none.
    """

    def __init__(self, builder: Builder, columns: Columns, friction: Sequence[float], bounds: Sequence[float]) -> None:
        """Args: a program, the columns of all blocks, µ of contacts, and the largest impulses of joints' friction."""
        self.builder, self._columns = builder, columns
        self.contacts, self.joints = len(friction), len(bounds)
        self.friction, self.bounds = np.array(friction, float), np.array(bounds, float)
        self.impulses, self.b = (builder.scratch(name, self.rows) for name in ("impulses", "b"))
        self.given: Buffer | None = None
        kinds = ("contact", self.contacts, _CONTACT), ("stop", self.joints, _JOINT)
        self.records = [builder.records(name, count, **layout) for name, count, layout in kinds]

    @property
    def rows(self) -> int:
        return 3 * self.contacts + self.joints

    def first_row(self, block: int) -> int:
        return 3 * block if block < self.contacts else block + 2 * self.contacts

    def of_joints(self, joints: Iterable[int]) -> Window:
        """What is known of joints."""
        return self.records[1][[*joints]]

    def visit(self, schedule: Schedule, kernel: Kernel, block: int, more: More = lambda _: fields()) -> None:
        """Adds a block to a loop.

        Args:
            schedule: the loop.
            kernel: what to do with it.
            block: its number.
            more: further fields of `own`, for a list of blocks.
        """

        def loop(blocks: list[int]) -> tuple[Callable[..., None], dict[str, Any]]:
            return kernel, {"own": self._own(blocks) | more(blocks), "ways": self._columns.ways(blocks)}

        schedule.add((kernel, block < self.contacts, self._columns.shape_of_way(block)), block, loop)

    def run(self, kernel: Kernel, blocks: Iterable[int], more: More = lambda _: fields()) -> None:
        """Writes a loop over blocks."""
        schedule = Schedule(self.builder)
        for block in blocks:
            self.visit(schedule, kernel, block, more)
        schedule.run()

    def describe(self, blocks: Iterable[int]) -> None:
        """Writes the steps from columns to each block's own part of A, and from impulses into their cones and to x."""
        blocks = [*blocks]
        self.run(_describe_contact, [i for i in blocks if i < self.contacts])
        self.run(_describe_joint, [i for i in blocks if i >= self.contacts])
        self.sum_up(blocks)

    def sum_up(self, blocks: Iterable[int]) -> None:
        """Writes the steps from impulses of blocks to x."""
        x, blocks = self._columns.x, [*blocks]
        self.builder.loop(clear, here=fields(target=x.at(0, x.size)))
        self.run(_push_own, blocks)
        if (given := self.given) is not None:
            contacts = [block for block in blocks if block < self.contacts]
            self.run(_push_given, contacts, lambda own: fields(given=given.at([3 * block for block in own], 3)))

    def _own(self, blocks: Sequence[int]) -> Window:
        contacts, first = blocks[0] < self.contacts, [self.first_row(block) for block in blocks]
        rows = [block if contacts else block - self.contacts for block in blocks]
        width = 3 if contacts else 1
        own = fields(impulse=self.impulses.at(first, width), b=self.b.at(first, width))
        if contacts:
            return own | fields(friction=constants(self.friction[rows])) | self.records[0][rows]
        return own | fields(bound=constants(self.bounds[rows])) | self.records[1][rows]


def shared(**buffers: Buffer) -> More:
    """Numbers that all blocks have in common."""
    return lambda blocks: fields(**{name: buffer.at([0] * len(blocks)) for name, buffer in buffers.items()})


def velocities(own: View, ways: list[View]) -> Any:
    """w = Z x + b of a block."""
    return reduce(add, (way.z.T @ way.x for way in ways), own.b)


def push(ways: list[View], change: Any) -> None:
    """x with impulses of a block changed by so much."""
    for way in ways:
        way.x = way.x + way.y @ change


def _push_own(own: View, ways: list[View]) -> None:
    push(ways, own.impulse)


def _push_given(own: View, ways: list[View]) -> None:
    push(ways, own.given)


def _describe_contact(own: View, ways: list[View]) -> None:
    A = reduce(add, (way.z.T @ way.y for way in ways))
    A = np.array([[A[min(i, j), max(i, j)] for j in range(3)] for i in range(3)])
    block = ConeBlock.of(A)
    own.A, own.inverse, own.mobility = A, block.inverse, np.array(laws.tangential_mobility(A))
    own.normal_step, own.tangent_step = np.array(block.normal_step), np.array(block.tangent_step)
    own.impulse = laws.inside_cone(own.friction, own.impulse)


def _describe_joint(own: View, ways: list[View]) -> None:
    own.a = reduce(add, (way.z.T @ way.y for way in ways))[0, 0]
