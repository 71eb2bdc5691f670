"""The blocks of a contact problem in a program: the rows of each contact, and the row of each joint that is stopped.

Candidates are many, and few of them touch: only blocks that are active take part. A block joins them once it would
break its law without an impulse, and then stays until the step ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.kernels import clear
from coupler.contact.rows import BlockRecords, ContactRows, Indices, Layout
from coupler.forks import cached_property
from coupler.graph import Buffer, Builder, Constants, Owners, Slot, Vector, View, Window, constants, fields, symmetric
from coupler.grouping import grouped

OwnKernel = Callable[[View], None]  # of a block's own numbers alone
Numbers = Sequence[Any] | Buffer  # of all blocks of a kind: known, or given to the program
More = Callable[[Indices], Window]  # further fields of some blocks

_FLAGS = ("active", "idle", "waiting", "pressed", "slides", "refined")
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


class Blocks:
    """The blocks of a problem, in buffers of a program: first contacts, three rows or more each, then joints, one each.

    The parameter `own` of their kernels has a block's `impulse` λ and `b`, its flags, and whatever else its kind knows:
    contacts `friction`, a number for each disc, as `mobility` and its inverse `disc_steps` have, and more; joints `a`,
    their mobility, `low` and `high`, the velocities that take them to their limits within the step, and `bound`, the
    largest impulse of their friction.

    Attributes:
        contacts, joints: how many there are.
        rows: the rows of contacts; those of joints follow.
        impulses: λ, of all rows.
        b: of all rows.
        flags: of each block 1 or 0: `active`, whether it takes part; `idle`, whether it may join; `waiting`, whether it
            is about to; `pressed`, for `Impacts`; `slides`, of active ones, for `Relaxation`; `refined`, of active
            ones, for `Refinement`.
        part: the flag of the blocks that loops run over unless they are told another one.
        joining: 1, whether any block is waiting.
        owners: flags of pairs that say of which contacts the flags count; None where they count of all.
        given: impulses of contacts that act besides λ, and that no law asks about; None if there are none.
        given_where: the flag of the contacts that have such impulses.
        offsets: impulses that the last blocks, those of actuators, have besides λ wherever they are active; None if
            there are none.
    """

    def __init__(
        self,
        builder: Builder,
        rows: ContactRows,
        friction: Numbers,
        bounds: Numbers,
        impulses: Vector | None = None,
    ) -> None:
        """Begins.

        Args:
            builder: writes the program.
            rows: of contacts.
            friction: the coefficients of all contacts.
            bounds: the largest impulse of each joint's friction, N s or N m s.
            impulses: where λ is; a vector of its own if not given.
        """
        self.builder, self.rows = builder, rows
        self._friction, self._bounds = (x if isinstance(x, Buffer) else np.array(x) for x in (friction, bounds))
        self.contacts, self.joints = len(rows), self._bounds.size
        self.impulses: Vector = impulses or builder.scratch("impulses", rows.total + self.joints)
        self.b = builder.scratch("b", rows.total + self.joints)
        self.flags = {name: builder.scratch(name, self.contacts + self.joints) for name in _FLAGS}
        self.joining = builder.scratch("joining", 1)
        self.part = "active"
        self.owners: Owners | None = None
        self.given: Buffer | None = None
        self.given_where = "active"
        self.offsets: Buffer | None = None
        self._records = BlockRecords(builder, "block", rows, self.joints, _contact, _JOINT)

    @property
    def all(self) -> range:
        return range(self.contacts + self.joints)

    def width(self, block: int) -> int:
        """How many rows a block has: kernels tell kinds of blocks by it."""
        return self.rows.width_of(block)

    def place(self, blocks: Indices, buffer: Vector) -> Slot:
        """Where blocks of one kind have their rows in a vector like λ."""
        return buffer.at(self.rows.first_of(blocks), self.width(blocks[0]))

    def alike(self, blocks: Iterable[int]) -> list[np.ndarray]:
        """Blocks, those of one kind together."""
        return [np.array(own) for own in grouped(blocks, self.width).values()]

    @cached_property
    def kinds(self) -> list[np.ndarray]:
        """All blocks, those of one kind together."""
        return self.alike(self.all)

    @cached_property
    def _known_of_kinds(self) -> list[tuple[np.ndarray, Window]]:
        """All blocks, those of one kind together, and what is known of them."""
        return [(blocks, self.of(blocks)) for blocks in self.kinds]

    def of(self, blocks: Indices) -> Window:
        """What is known of blocks of one kind: see above."""
        blocks = np.asarray(blocks)
        own = {"impulse": self.place(blocks, self.impulses), "b": self.place(blocks, self.b)}
        own |= {name: flags.at(blocks) for name, flags in self.flags.items()}
        if blocks[0] < self.contacts:
            first, discs = self.rows.coefficients[blocks], int(self.rows.discs[blocks[0]])
            known = fields(**own, friction=_of(self._friction, first, discs))
        else:
            known = fields(**own, bound=_of(self._bounds, blocks - self.contacts, None))
        return known | self._records.of(blocks)

    def begin(self, known: Buffer, of_contacts: Mapping[int, int]) -> None:
        """Writes the steps that make blocks idle, and those wait that break their laws or had an impulse.

        Impulses are those to start from.

        Args:
            known: listed flags; where one is zero, nothing is known of its contacts: they are neither idle nor wait.
            of_contacts: the numbers of those flags, for the contacts that have one.
        """
        clear(self.builder, self.joining)
        for name in ("active", "idle", "waiting", "refined") if self.owners is None else ():
            clear(self.builder, self.flags[name])
        joining = shared(joining=self.joining)
        for alike in self.kinds:
            for flagged in (False, True):
                blocks = [block for block in alike if (block in of_contacts) == flagged]
                if not blocks:
                    continue
                own, among = self.of(blocks) | joining(blocks), None
                if flagged:
                    among = known.at([of_contacts[block] for block in blocks])
                if blocks[0] >= self.contacts:
                    self.builder.loop(_begin_joint, own=own)
                elif self.given is None:
                    self.builder.loop(_begin_contact, own=own, among=among)
                else:
                    own |= fields(given=self.place(blocks, self.given))
                    self.builder.loop(_begin_given, own=own, among=among)

    def list_flags(self, name: str) -> None:
        """Writes the step that lists which blocks have a flag."""
        self.builder.list_flags(self.flags[name], self.owners)

    @contextmanager
    def only(self, flag: str) -> Iterator[None]:
        """What is written inside is for blocks with a flag, which has been listed."""
        before, self.part = self.part, flag
        yield
        self.part = before

    def among(self, flag: str | None, blocks: Indices) -> dict[str, Any]:
        """What a loop over some blocks is told, so that it takes those with a flag, which has been listed."""
        flag = flag or self.part
        if flag == "slides":
            return {"among": self.flags[self.part].at(blocks), "where": self.flags["slides"].at(blocks)}
        return {"among": self.flags[flag].at(blocks)}

    def begin_all(self) -> None:
        """Writes the steps that make all blocks wait, with impulses to start from."""
        for blocks in self.kinds:
            self.builder.loop(_begin_at_once, own=self.of(blocks))
        self.list_flags("waiting")

    def each(
        self,
        contact: OwnKernel,
        joint: OwnKernel | None,
        where: str | None = None,
        more: More = lambda _: fields(),
    ) -> None:
        """Writes loops over all contacts and one over all joints, of kernels that do not look at ways."""
        for blocks, own in self._known_of_kinds:
            kernel = contact if blocks[0] < self.contacts else joint
            if kernel is None:
                continue
            self.builder.loop(kernel, own=own | more(blocks), **self.among(where, blocks))


def _of(numbers: Buffer | np.ndarray, first: np.ndarray, count: int | None) -> Slot | Constants:
    """A number of each block, or so many from a first one on."""
    if isinstance(numbers, Buffer):
        return numbers.at(first, () if count is None else count)
    return constants(numbers[first if count is None else first[:, None] + np.arange(count)])


def shared(**buffers: Vector) -> More:
    """Numbers that all blocks have in common."""

    def of(blocks: Indices) -> Window:
        first = np.zeros(len(blocks), int)
        return fields(**{name: buffer.at(first) for name, buffer in buffers.items()})

    return of


def mobilities(own: View) -> list[Any]:
    """Of a contact's normal and of each of its discs."""
    return [own.A[0, 0], *own.mobility]


def contact_error(own: View) -> Any:
    """How far a contact is from its law, m/s, once its velocities are measured."""
    return laws.cone_residual(own.friction, mobilities(own), own.impulse, own.w)


def joint_error(own: View) -> Any:
    """How far a joint is from its law, once its velocity is measured."""
    return braked(own, own.w)[1]


def braked(own: View, w: Any) -> tuple[Any, Any]:
    """The impulse of a joint by its law, at velocity w, and by how much that changes its velocity."""
    new = laws.joint_update(own.a, own.low, own.high, own.bound, own.impulse[0], w[0])
    return new, own.a * np.abs(new - own.impulse[0])


def wait(own: Any, beyond: Any) -> None:
    """Makes a block wait that would break its law."""
    own.waiting = np.where(beyond, 1.0, 0.0)
    own.joining = np.maximum(own.joining, own.waiting)


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
    own.idle = np.array(1.0)
    own.active = own.refined = np.array(0.0)
    own.impulse = own.waiting * own.impulse


def _begin_at_once(own: View) -> None:
    own.active = own.idle = own.slides = np.array(0.0)
    own.waiting = np.array(1.0)
