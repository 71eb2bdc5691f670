"""Which contacts act in a step, as steps of a program: passing.py for all pairs whose shapes may pass each other.

Contacts that have pressed in the step before act at once. Others wait until velocities are known with those, and act if
they would break their laws and if their shapes do meet on the way (advancement.py). Of those that do, what touches
already goes first: a box that slides on another one is held by that, before it is asked whether it meets the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import has_closed_form
from coupler.contact.passing import too_fast
from coupler.contact.rows import Indices
from coupler.contact.step import passing_kernels as kernels
from coupler.contact.step.advancement import Advancement
from coupler.contact.step.blocks import shared
from coupler.contact.step.context import StepContext
from coupler.contact.step.measurement import Measurement
from coupler.contact.step.passing_pairs import PassingPairs
from coupler.contact.step.report import ContactReport
from coupler.graph import Vector, View, Window, constants, fields


class Passing:
    """The contacts of a program whose shapes may pass each other.

    Args:
        pairs: the pairs that may pass each other.
        measurement: the measurement of all contacts.
        report: the report of contacts; contacts that act here are reported where their shapes meet.

    Attributes:
        contacts: their numbers.
    """

    def __init__(
        self, context: StepContext, pairs: PassingPairs, measurement: Measurement, report: ContactReport
    ) -> None:
        self._context, self._builder, self._pairs, self.contacts = context, context.builder, pairs, pairs.contacts
        self._measurement, self._report = measurement, report
        self._advancement = Advancement(context, pairs, measurement)
        builder = context.builder
        self._in_doubt = builder.scratch("passing_in_doubt", 1)  # flag: some contact breaks its law, and may pass
        self._some_touch = builder.scratch("passing_some_touch", 1)  # flag: some contact that acts touches already
        self._touches = builder.scratch("passing_touching", len(pairs.contacts))  # flags of contacts at the start
        self._fast = builder.scratch("passing_fast", len(pairs.pairs))  # flags of pairs with fields: see `too_fast`

    def begin(self, gaps: Vector) -> None:
        """Writes the steps that keep only contacts waiting that pressed in the previous step.

        Args:
            gaps: the gaps of all contacts, m; the contact problem has begun.
        """
        self._gaps = gaps
        for contacts in self._pairs.contact_groups:
            self._begin(contacts, kernels.begin, self._measurement.among_measured(contacts))
        for pairs in self._pairs.groups:
            if pairs[0] in self._pairs.on_fields:
                window = fields(fast=self._fast.at(self._pairs.pair_numbers(pairs)), **self._pairs.near_next(pairs))
                window |= self._pairs.shapes(pairs) | shared(joining=self._context.blocks.joining)(pairs)
                self._builder.loop(self._asking_how_fast(pairs[0]), view=window)

    def begin_measured_anew(self) -> None:
        """Writes the steps that note which contacts touch at the start, for pairs measured once impulses are known."""
        for contacts in self._pairs.contact_groups:
            if among := self._measurement.among_measured_anew(contacts):
                self._begin(contacts, kernels.begin_measured_anew, among)

    def _begin(self, contacts: np.ndarray, kernel: Callable[[View], None], among: dict[str, Any]) -> None:
        touches = self._touches.at(self._pairs.contact_numbers(contacts))
        window = self._context.blocks.of(contacts) | fields(touches=touches, gap=self._gaps.at(contacts))
        window |= fields(step=constants(np.full(len(contacts), self._context.scene.step)))
        self._builder.loop(kernel, block=window, **among)

    def look(self, residual: Vector) -> None:
        """Writes the steps that flag contacts as waiting if they break their laws and their shapes meet.

        Args:
            residual: 1, the error of the laws, m/s; the steps add to it.
        """
        builder, advancement, on_fields = self._builder, self._advancement, self._pairs.on_fields
        state = fields(in_doubt=self._in_doubt.at(0), some_touch=self._some_touch.at(0))
        builder.loop(kernels.begin_doubting, state=state)
        self._each_with_links(kernels.doubt, "idle", residual)
        if on_fields:
            self._each(kernels.doubt_if_fast, "idle", on_fields)
        with builder.repeat(until=kernels.none_in_doubt, at_most=1, rare=True, state=state):
            advancement.clear_moving()
            self._each(kernels.let_move)
            advancement.let_pass(self._report)
            builder.loop(kernels.begin_doubting, state=state)
            self._each(kernels.doubt_moving)
            with builder.repeat(until=kernels.none_in_doubt, at_most=1, rare=True, state=state):
                self._decide(residual)

    def _decide(self, residual: Vector) -> None:
        """Writes the steps that move shapes which may meet, and flag their contacts as waiting if they do."""
        self._advancement.begin()
        self._each(kernels.let_advance)
        self._advancement.run()
        self._each(kernels.wait_if_meeting)
        if listed_anew := sorted(self._pairs.listed_anew):
            # Which contact of such a pair was in doubt says nothing about which one meets: all of them may.
            self._each(kernels.wait_if_meeting, "idle", listed_anew)
        for pairs in self._pairs.groups:
            if has_closed_form(*self._pairs.forms(pairs[0])) or pairs[0] in self._pairs.listed_anew:
                self._move_laws(pairs)
        self._each_with_links(kernels.doubt, "waiting", residual)
        self._each(kernels.note_touching)
        self._each_with_links(kernels.let_wait, "waiting", residual)

    def _move_laws(self, pairs: Sequence[int]) -> None:
        """Writes the steps that give waiting contacts that were open the laws of the place where their shapes meet."""
        context, candidates, names = self._context, self._context.candidates, self._report.names
        moving, first = self._pairs.moving(pairs[0]), candidates.pairs[pairs[0]]
        names = [name for name in names if name != "start"]
        for k in range(first.count):
            contacts = candidates.first[pairs] + k
            window = self._advancement.shapes(pairs) | self._advancement.locations(contacts)
            window |= fields(touches=self._touches.at(self._pairs.contact_numbers(contacts)))
            for side, (name, moves) in enumerate(moving.items()):
                if moves:
                    links = [candidates.ends[i][side].link for i in pairs]
                    window |= fields(**{f"{name}_P": context.columns.at_link(contacts, links)})
            window |= fields(**{f"reported_{name}": self._report.at(name, contacts) for name in names})
            kernel = kernels.moving_law(moving, first.cone.size, names)
            self._loop(kernel, contacts, "waiting", view=window)

    def _asking_how_fast(self, pair: int) -> Callable[[View], None]:
        """The kernel that checks how fast shapes on fields are, for pairs that share a trace with this one."""
        trees = self._pairs.near_next([pair])

        def ask_how_fast(view: View) -> None:
            """Notes whether a shape is too fast: the next step must not first see it behind what it hits."""
            one, other = self._pairs.shifts(view, pair, changed=False)
            view.fast = np.where(too_fast(one, other, view.around, view.step), 1.0, 0.0)
            view.joining = np.maximum(view.joining, view.fast)
            soon = too_fast(one, other, view.around, 2.0 * view.step)
            for name in trees:
                setattr(view, name, np.where(soon, 1.0, getattr(view, name)))

        return ask_how_fast

    # Loops over contacts

    def _each(self, kernel: Callable[[View], None], flag: str = "waiting", pairs: Sequence[int] | None = None) -> None:
        """Writes loops over the contacts with a flag, of all pairs or of some."""
        groups = self._pairs.contact_groups
        if pairs is not None:
            contacts_of = self._context.candidates.contacts_of
            groups = self._pairs.grouped_contacts([contact for pair in pairs for contact in contacts_of(pair)])
        for contacts in groups:
            self._loop(kernel, contacts, flag, block=self._window(contacts))

    def _each_with_links(self, kernel: Callable[[View, list[View]], None], flag: str, residual: Vector) -> None:
        """Writes loops over the contacts with a flag, with fields for the effect of impulses on their links."""
        common = shared(residual=residual, joining=self._context.blocks.joining)
        for contacts in self._pairs.contact_groups:
            block = self._window(contacts) | common(contacts)
            self._loop(kernel, contacts, flag, block=block, ends=self._context.responses(contacts))

    def _loop(
        self, kernel: Callable[..., None], contacts: Indices, flag: str, **windows: Window | list[Window]
    ) -> None:
        flags = self._context.blocks.flags[flag].at(contacts)
        measured = self._measurement.among_measured(contacts)
        self._builder.loop(kernel, **windows, where=flags, **measured)

    def _window(self, contacts: Indices) -> Window:
        """The kernel parameter `block` for contacts."""
        context = self._context
        contact_fields = fields(
            touches=self._touches.at(self._pairs.contact_numbers(contacts)),
            fast=self._fast.at(self._pairs.pair_numbers(context.candidates.pair_of[contacts])),
            tolerance=constants(np.full(len(contacts), context.scene.tolerance)),
        )
        state = shared(in_doubt=self._in_doubt, some_touch=self._some_touch)(contacts)
        return context.blocks.of(contacts) | contact_fields | state | self._advancement.flags(contacts)
