"""The blocks of a contact problem in a program: the rows of each contact, the row of each joint that can be stopped.

Candidates are many, and few of them touch. So only active blocks take part. A block becomes active once it would break
its law without an impulse, and stays so until the step ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.kernels import clear
from coupler.contact.rows import BlockRecords, ContactRows, Indices, Layout
from coupler.contact.step.cone_update import ConeBlock
from coupler.forks import cached_property
from coupler.graph import Buffer, Builder, Constants, Slot, Vector, View, Window, constants, fields, symmetric
from coupler.grouping import grouped

BlockKernel = Callable[[View], None]  # sees the numbers of one block, as `block`
Numbers = Sequence[Any] | Buffer  # of all blocks of a kind: constants, or numbers that the program computes
More = Callable[[Indices], Window]  # gives further fields for some blocks

_FLAGS = ("active", "idle", "waiting", "pressed", "slides", "refined")
_REACH = 1.0  # m/s: a contact that opens faster than that does not start from the impulse of the step before
_IMMOBILE = 1e-12  # of a contact's mobilities: its normal gives way less only by rounding, or at a dead point
_JOINT: Layout = {"a": (), "low": (), "high": (), "p": 1, "Q": (1, 1), "w": 1, "dw": 1, "pushed": 1}


def _contact(rows: int, discs: int) -> Layout:
    matrices: Layout = {
        "A": symmetric(rows),
        "inverse": symmetric(3),
        "normal_step": (),
        "held": (),
        "disc_steps": discs,
        "mobility": discs,
    }
    return matrices | dict.fromkeys(("new", "p", "w", "dw", "pushed"), rows) | {"Q": (rows, rows)}


class Blocks:
    """The blocks of a problem, in buffers of a program: first contacts, three rows or more each, then joints, one each.

    Kernels see one block as their parameter `block`: its `impulse` λ and `b`, its flags, and the fields of its kind.
    Contacts have `friction`, `mobility` and its inverse `disc_steps`, a number for each disc, and more. Joints have
    their mobility `a`, the velocities `low` and `high` that take them to their limits within the step, and `bound`, the
    largest impulse of their friction.

    Args:
        friction: the friction coefficients of all contacts.
        bounds: the largest impulse of each joint's friction, N s or N m s.
        impulses: the vector of λ; a new one if not given.

    Attributes:
        contacts, joints: the numbers of contacts and of joints.
        rows: the rows of contacts; rows of joints follow.
        impulses: λ of all rows.
        b: velocities of all rows without impulses, with what gaps add.
        flags: for each block 1 or 0: `active`, whether it takes part; `idle`, whether it may join; `waiting`, whether
            it is about to join; `pressed`, see `Impacts`; of active blocks `slides`, see `Relaxation`, and `refined`,
            see `Refinement`.
        part: the flag of the blocks that loops run over, unless another one is named.
        joining: 1, whether any block is waiting.
        given: impulses of contacts that act besides λ and are not solved for; None if there are none.
        given_where: the flag of the contacts that have such impulses.
        offsets: impulses that active blocks of actuators, the last ones, have besides λ; None if there are none.
        pulls: impulses of adhesions, which act besides λ on contacts with the flag `pulled`; None if there are none.
    """

    def __init__(
        self,
        builder: Builder,
        rows: ContactRows,
        friction: Numbers,
        bounds: Numbers,
        impulses: Vector | None = None,
    ) -> None:
        self.builder, self.rows = builder, rows
        self._friction, self._bounds = (x if isinstance(x, Buffer) else np.array(x) for x in (friction, bounds))
        self.contacts, self.joints = len(rows), self._bounds.size
        self.impulses: Vector = impulses or builder.scratch("impulses", rows.total + self.joints)
        self.b = builder.scratch("b", rows.total + self.joints)
        self.flags = {name: builder.scratch(name, self.contacts + self.joints) for name in _FLAGS}
        self.joining = builder.scratch("joining", 1)
        self.part = "active"
        self.given: Buffer | None = None
        self.given_where = "active"
        self.offsets: Buffer | None = None
        self.pulls: Buffer | None = None
        self._records = BlockRecords(builder, "block", rows, self.joints, _contact, _JOINT)

    def pull(self) -> None:
        """Lets contacts be pulled; see `pulls`."""
        self.pulls = self.builder.scratch("pulls", self.rows.total)
        self.flags["pulled"] = self.builder.scratch("pulled", self.contacts + self.joints)

    @property
    def all(self) -> range:
        return range(self.contacts + self.joints)

    def width(self, block: int) -> int:
        """The number of rows of a block; blocks of one kind have equally many."""
        return self.rows.width_of(block)

    def place(self, blocks: Indices, buffer: Vector) -> Slot:
        """The rows of blocks of one kind in a vector laid out like λ."""
        return buffer.at(self.rows.first_of(blocks), self.width(blocks[0]))

    def alike(self, blocks: Iterable[int]) -> list[np.ndarray]:
        """Blocks, grouped by kind."""
        return [np.array(group) for group in grouped(blocks, self.width).values()]

    @cached_property
    def kinds(self) -> list[np.ndarray]:
        """All blocks, grouped by kind."""
        return self.alike(self.all)

    @cached_property
    def _windows_of_kinds(self) -> list[tuple[np.ndarray, Window]]:
        """All blocks, grouped by kind, with the windows that kernels see of them."""
        return [(blocks, self.of(blocks)) for blocks in self.kinds]

    def of(self, blocks: Indices) -> Window:
        """The kernel parameter `block` for blocks of one kind; see the class."""
        blocks = np.asarray(blocks)
        window = fields(impulse=self.place(blocks, self.impulses), b=self.place(blocks, self.b))
        window |= fields(**{name: flags.at(blocks) for name, flags in self.flags.items()})
        if blocks[0] < self.contacts:
            first, discs = self.rows.coefficients[blocks], int(self.rows.discs[blocks[0]])
            window |= fields(friction=_of(self._friction, first, discs))
        else:
            window |= fields(bound=_of(self._bounds, blocks - self.contacts, None))
        return window | self._records.of(blocks)

    def begin(self, measured: Buffer, flag_of: Mapping[int, int]) -> None:
        """Writes the steps that flag all blocks as idle, and those that break their laws or had an impulse as waiting.

        λ has the impulses to start from.

        Args:
            measured: listed flags; contacts whose flag is zero are not measured yet, and neither idle nor waiting.
            flag_of: the number of the flag, for each contact that has one.
        """
        for buffer in (self.joining, *(self.flags[name] for name in ("active", "idle", "waiting", "refined"))):
            clear(self.builder, buffer)
        joining = shared(joining=self.joining)
        for alike in self.kinds:
            for flagged in (False, True):
                blocks = [block for block in alike if (block in flag_of) == flagged]
                if not blocks:
                    continue
                block, among = self.of(blocks) | joining(blocks), None
                if flagged:
                    among = measured.at([flag_of[block] for block in blocks])
                if blocks[0] >= self.contacts:
                    self.builder.loop(_begin_joint, block=block)
                elif self.given is None:
                    self.builder.loop(_begin_contact, block=block, among=among)
                else:
                    block |= fields(given=self.place(blocks, self.given))
                    self.builder.loop(_begin_given_contact, block=block, among=among)

    @contextmanager
    def only(self, flag: str) -> Iterator[None]:
        """A context: loops written inside run over blocks with this flag, which has been listed."""
        before, self.part = self.part, flag
        yield
        self.part = before

    def among(self, flag: str | None, blocks: Indices) -> dict[str, Any]:
        """The arguments of a loop over some blocks that let it run over those with a flag, which has been listed."""
        flag = flag or self.part
        if flag == "slides":
            return {"among": self.flags[self.part].at(blocks), "where": self.flags["slides"].at(blocks)}
        return {"among": self.flags[flag].at(blocks)}

    def begin_all(self) -> None:
        """Writes the steps that flag all blocks as waiting; λ has the impulses to start from."""
        for blocks in self.kinds:
            self.builder.loop(_begin_at_once, block=self.of(blocks))
        self.builder.list_flags(self.flags["waiting"])

    def each(
        self,
        contact: BlockKernel,
        joint: BlockKernel | None,
        where: str | None = None,
        more: More = lambda _: fields(),
    ) -> None:
        """Writes loops over all contacts and over all joints, with kernels that see one block at a time.

        Args:
            contact, joint: the kernels; joints are left out if their kernel is None.
            where: the flag of the blocks to run over; see `part`.
            more: gives further fields of `block`.
        """
        for blocks, block in self._windows_of_kinds:
            kernel = contact if blocks[0] < self.contacts else joint
            if kernel is None:
                continue
            self.builder.loop(kernel, block=block | more(blocks), **self.among(where, blocks))


def _of(numbers: Buffer | np.ndarray, first: np.ndarray, count: int | None) -> Slot | Constants:
    """A field with one number for each block, or with `count` numbers from the block's `first` on."""
    if isinstance(numbers, Buffer):
        return numbers.at(first, () if count is None else count)
    return constants(numbers[first if count is None else first[:, None] + np.arange(count)])


def shared(**buffers: Vector) -> More:
    """A function that returns fields of numbers that all blocks share; each buffer holds one."""

    def of(blocks: Indices) -> Window:
        first = np.zeros(len(blocks), int)
        return fields(**{name: buffer.at(first) for name, buffer in buffers.items()})

    return of


def mobilities(block: View) -> list[Any]:
    """The mobilities of a contact's normal and of each of its discs."""
    return [block.A[0, 0], *block.mobility]


def contact_error(block: View) -> Any:
    """The error of a contact's law, m/s, once its velocities are measured."""
    return laws.cone_residual(block.friction, mobilities(block), block.impulse, block.w)


def joint_error(block: View) -> Any:
    """The error of a joint's law, once its velocity is measured."""
    return braked(block, block.w)[1]


def braked(block: View, w: Any) -> tuple[Any, Any]:
    """The impulse of a joint by its law at velocity w, and how much this change of impulse changes the velocity."""
    new = laws.joint_update(block.a, block.low, block.high, block.bound, block.impulse[0], w[0])
    return new, block.a * np.abs(new - block.impulse[0])


def wait(block: Any, beyond: Any) -> None:
    """Flags a block as waiting if it is `beyond` what its law allows."""
    block.waiting = np.where(beyond, 1.0, 0.0)
    block.joining = np.maximum(block.joining, block.waiting)


def _begin_contact(block: View) -> None:
    _begin(block, (block.b[0] < 0.0) | _held(block))


def _begin_given_contact(block: View) -> None:
    _begin(block, (block.b[0] < 0.0) | _held(block) | (block.given[0] > 0.0))


def _held(block: View) -> Any:
    """Whether a contact had an impulse and may need one again, as it opens slowly enough."""
    return (block.impulse[0] > 0.0) & (block.b[0] < _REACH)


def _begin_joint(block: View) -> None:
    velocity, block.a = block.b[0], np.array(0.0)
    _begin(block, (block.bound > 0.0) | (block.impulse[0] != 0.0) | (velocity < block.low) | (velocity > block.high))


def _begin(block: View, waits: Any) -> None:
    wait(block, waits)
    block.idle = np.array(1.0)
    block.impulse = block.waiting * block.impulse


def _begin_at_once(block: View) -> None:
    block.active = block.idle = block.slides = np.array(0.0)
    block.waiting = np.array(1.0)


def describe_contact(block: View) -> None:
    """Prepares a contact's block of A for updates.

    No impulse moves a contact along its normal at a wheel on a rail, say, or at the hand of an arm that is stretched
    out. Such a contact is `held`, and counts as if its normal were as mobile as all its rows together: then rounding of
    its velocity causes impulses of the size of rounding.
    """
    together = block.A[0, 0] + block.A[1, 1] + block.A[2, 2] + block.rounding
    held = block.A[0, 0] <= _IMMOBILE * together + block.rounding
    block.held = np.where(held, 1.0, 0.0)
    rows = range(len(block.A))
    block.A = np.array(
        [[np.where(held, together, block.A[0, 0]) if i == j == 0 else block.A[i, j] for j in rows] for i in rows]
    )
    A = block.A
    cone, mobility = ConeBlock.of(A[:3, :3]), laws.mobilities(A, block.friction)
    block.inverse, block.mobility = cone.inverse, np.array(mobility)
    block.normal_step, block.disc_steps = np.array(cone.normal_step), np.array([1.0 / m for m in mobility])
    block.impulse = np.where(held, 0.0, laws.inside_cone(block.friction, block.impulse))
