"""Conservative advancement as steps of a program: shapes move along a step until they meet or pass; see passing.py.

All pairs that are in doubt advance together. Each round finds the contacts of shapes where they are by then, moves them
as far as they cannot meet, and ends for pairs that are decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact
from coupler.contact.collision.tables import SIDES
from coupler.contact.collision.terrain.program import FieldSearch
from coupler.contact.kernels import clear
from coupler.contact.passing import (
    MOST_ADVANCES,
    Shift,
    advanced,
    advanced_among,
    approach,
    closing_speed,
    nearest,
    shifted,
)
from coupler.contact.rows import Indices
from coupler.contact.step.blocks import shared
from coupler.contact.step.context import StepContext
from coupler.contact.step.measurement import Measurement
from coupler.contact.step.passing_pairs import PassingPairs, shift_of
from coupler.contact.step.report import ContactReport
from coupler.graph import View, Window, fields
from coupler.grouping import grouped
from coupler.spatial import Transform

_LOCATION = ("gap", "point", "frame")  # of a contact on the way


class Advancement:
    """The steps that move shapes of pairs along their ways."""

    def __init__(self, context: StepContext, pairs: PassingPairs, measurement: Measurement) -> None:
        self._context, self._builder, self._pairs, self._measurement = context, context.builder, pairs, measurement
        builder, count = context.builder, len(pairs.pairs)
        self._undecided = builder.scratch("passing_undecided", 1)
        self._moving = builder.scratch("passing_moving", count)  # flags of pairs that still advance
        self._meeting = builder.scratch("passing_meeting", count)  # flags of pairs that meet, as far as is known
        self._time = builder.scratch("passing_time", count)  # up to when shapes do not meet, s
        self._ahead = builder.records("ahead", len(pairs.contacts), gap=(), point=3, frame=(3, 3))

    # What kernels see

    def flags(self, contacts: Indices) -> Window:
        """Flags of the pairs of contacts: whether they are moving, and whether they meet; and whether any is moving."""
        pairs = self._pairs.pair_numbers(self._context.candidates.pair_of[contacts])
        return fields(moving=self._moving.at(pairs), meeting=self._meeting.at(pairs)) | shared(
            undecided=self._undecided
        )(contacts)

    def shapes(self, pairs: Sequence[int]) -> Window:
        """The fields of `PassingPairs.shapes`, and for how long shapes have moved."""
        return self._pairs.shapes(pairs) | fields(time=self._time.at(self._pairs.pair_numbers(pairs)))

    def locations(self, contacts: Indices) -> Window:
        """Gap, point and frame of contacts with their shapes where they have moved so far."""
        return self._ahead[self._pairs.contact_numbers(contacts)]

    # Steps

    def clear_moving(self) -> None:
        """Writes the steps that let no pair move."""
        clear(self._builder, self._moving)

    def let_pass(self, report: ContactReport) -> None:
        """Writes the first advance of convex shapes, from contacts as they are; pairs that pass are decided.

        It needs no search, so shapes that rest within the slop of others cost little.
        """
        candidates = self._context.candidates

        def kind(pair: int) -> tuple[int, tuple[bool, ...], bool]:
            cullable = candidates.contacts_of(pair)[0] in candidates.cullable
            return candidates.pairs[pair].count, tuple(self._pairs.moving(pair).values()), cullable

        convex = [i for i in self._pairs.pairs if i not in self._pairs.on_fields]
        for (count, moving, _), pairs in grouped(convex, kind).items():
            flags = self._moving.at(self._pairs.pair_numbers(pairs))
            window = self._pairs.shapes(pairs, formless=True) | fields(moving=flags)
            for k in range(count):
                contacts = candidates.first[pairs] + k
                window |= fields(**{f"{name}{k}": report.at(f"{name}s", contacts) for name in ("gap", "frame")})
            measured = self._measurement.among_measured(candidates.first[pairs])
            self._builder.loop(_letting_pass(count, moving), view=window, where=flags, **measured)

    def begin(self) -> None:
        """Writes the steps that put all shapes back to the start; contacts on the way are forgotten."""
        for buffer in (self._meeting, self._time):
            clear(self._builder, buffer)
        for contacts in self._pairs.contact_groups:
            measured = self._measurement.among_measured(contacts)
            self._builder.loop(_forget, contact=self.locations(contacts), **measured)

    def run(self) -> None:
        """Writes the rounds that decide whether the shapes of moving pairs meet.

        Pairs that are not decided in the last round count as meeting.
        """
        state = fields(undecided=self._undecided.at(0))
        with self._builder.repeat(until=_decided, at_most=MOST_ADVANCES, state=state):
            self._builder.loop(_begin_round, state=state)
            if self._pairs.on_fields:
                self._search_fields()
            if self._pairs.searched:
                self._search()
            for pairs in self._pairs.groups:
                at = self._pairs.pair_numbers(pairs)
                window = self.shapes(pairs) | fields(
                    moving=self._moving.at(at),
                    meeting=self._meeting.at(at),
                    undecided=self._undecided.at([0] * len(pairs)),
                )
                window |= self._results(pairs, "{name}{k}")
                self._builder.loop(self._advancing(pairs[0]), view=window, where=self._moving.at(at))

    def _results(self, pairs: Sequence[int], form: str) -> Window:
        """The buffers for contacts of pairs on the way, under the names that kernels use."""
        places: dict[str, Any] = {}
        for k in range(self._context.candidates.pairs[pairs[0]].count):
            location = self.locations(self._context.candidates.first[pairs] + k).fields
            places |= {form.format(name=name, k=k): location[name] for name in _LOCATION}
        return fields(**places)

    def _search_fields(self) -> None:
        """Writes the search for contacts with height fields, with shapes where they have moved so far."""
        pairs = self._pairs.on_fields
        ends = [self._context.candidates.ends[i] for i in pairs]

        def placed(view: View, rows: Sequence[int]) -> tuple[Transform, Transform, Any]:
            one, other = self._pairs.shifts(view, pairs[rows[0]])
            return *_at_centres(view, one, other), approach(one, other)

        flags = self._moving.at(self._pairs.pair_numbers(pairs))
        search = FieldSearch(self._builder, "passing_terrain", ends, flags, self._context.scene.step)
        search.run(
            lambda rows: self.shapes([pairs[row] for row in rows]),
            placed,
            lambda rows: self._results([pairs[row] for row in rows], "{name}s{k}"),
        )

    def _search(self) -> None:
        """Writes the search for contacts of other convex shapes where they have moved so far."""
        pairs = self._pairs.searched

        def placed(view: View, rows: Sequence[int]) -> tuple[Transform, Transform]:
            return _at_centres(view, *self._pairs.shifts(view, pairs[rows[0]]))

        self._builder.list_flags(self._moving)
        flags = self._moving.at(self._pairs.pair_numbers(pairs))
        self._measurement.narrow_phase.search_of(pairs, flags).run(
            lambda rows: self.shapes([pairs[row] for row in rows]),
            placed,
            lambda rows: self._results([pairs[row] for row in rows], "{name}s{k}"),
        )

    def _advancing(self, pair: int) -> Callable[[View], None]:
        """The kernel of one round, of pairs that share a trace with this one."""
        count, pairs = self._context.candidates.pairs[pair].count, self._pairs

        def advance(view: View) -> None:
            """Makes one step of conservative advancement; contacts that are found on the way are kept."""
            one, other = pairs.shifts(view, pair)
            if pair in pairs.listed_anew:  # a search has found them
                contacts = [Contact(*(getattr(view, f"{name}{k}") for name in _LOCATION)) for k in range(count)]
            else:
                contacts = shifted(one, other, view.time)
            if pair in pairs.on_fields:
                time, passes, meeting = advanced_among(view.time, one, other, contacts, view.step, view.around)
            else:
                gap, normal = nearest(one, other, view.time, contacts)
                time, passes, meeting = advanced(view.time, gap, closing_speed(one, other, normal), view.step)
            view.time, view.meeting = time, np.where(passes, 0.0, 1.0)
            view.moving = np.where(passes | meeting, 0.0, 1.0)
            view.undecided = np.maximum(view.undecided, view.moving)
            for k, contact in enumerate(contacts):
                for name in _LOCATION:
                    setattr(view, f"{name}{k}", np.array(getattr(contact, name)))

        return advance


def _at_centres(view: View, one: Shift, other: Shift) -> tuple[Transform, Transform]:
    """The transforms from the world to the centres of two moved shapes; hulls of one trace have their own centres."""
    X_one, X_other = one.after(view.time), other.after(view.time)
    return Transform.translation(view.one_centre) @ X_one, Transform.translation(view.other_centre) @ X_other


# Kernels


def _letting_pass(count: int, moving: tuple[bool, ...]) -> Callable[[View], None]:
    """The kernel that decides which pairs pass, for pairs with so many contacts whose sides `moving` move."""

    def let_pass(view: View) -> None:
        one, other = (shift_of(view, side, None, moves) for side, moves in zip(SIDES, moving, strict=True))
        contacts = [Contact(getattr(view, f"gap{k}"), np.zeros(3), getattr(view, f"frame{k}")) for k in range(count)]
        gap, normal = nearest(one, other, 0.0, contacts)
        _, passes, _ = advanced(0.0, gap, closing_speed(one, other, normal), view.step)
        view.moving = np.where(passes, 0.0, view.moving)

    return let_pass


def _forget(contact: View) -> None:
    contact.gap, contact.point, contact.frame = np.array(0.0), np.zeros(3), np.zeros((3, 3))


def _begin_round(state: View) -> None:
    state.undecided = np.array(0.0)


def _decided(state: View) -> Any:
    return state.undecided <= 0.0
