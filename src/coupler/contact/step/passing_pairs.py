"""The pairs of shapes that may pass each other within a step, and their fields for kernels; see passing.py."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.convex.cores import centre
from coupler.contact.collision.tables import SIDES, Forms, form, forms, numbers, pose, with_numbers
from coupler.contact.passing import Shift, axis_of, can_pass, is_searched, on_field, reach_of, seen_around
from coupler.contact.step.context import StepContext
from coupler.forks import cached_property
from coupler.graph import Slot, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.model.shapes import Hull
from coupler.spatial import Transform

_MOTION = ("E", "r", "u", "du", "start")  # entries of the memory of links that carry shapes


class PassingPairs:
    """Pairs of shapes that may pass each other, numbered from zero in the order of all pairs.

    Attributes:
        pairs: their numbers among all pairs.
        contacts: the numbers of their contacts among all contacts.
        on_fields: the pairs of which one shape is a height field.
        searched: the pairs of convex shapes whose contacts on the way are searched for.
        listed_anew: the pairs of `on_fields` and `searched`; the numbering of their contacts may change on the way.
    """

    def __init__(self, context: StepContext) -> None:
        self._context, candidates = context, context.candidates
        self.pairs = [i for i, pair in enumerate(candidates.pairs) if can_pass(pair)]
        self.contacts = [contact for i in self.pairs for contact in candidates.contacts_of(i)]
        self.on_fields = [i for i in self.pairs if on_field(*self.forms(i))]
        self.searched = [i for i in self.pairs if is_searched(*self.forms(i))]
        self.listed_anew = {*self.on_fields, *self.searched}
        self._pair_number = np.full(len(candidates.pairs), -1)
        self._pair_number[self.pairs] = np.arange(len(self.pairs))
        self._contact_number = np.full(len(candidates.starts), -1)
        self._contact_number[self.contacts] = np.arange(len(self.contacts))
        self._known_shapes: dict[tuple[int, ...], Window] = {}

    def pair_numbers(self, pairs: Any) -> np.ndarray:
        """The numbers of some pairs, counted among the pairs that may pass."""
        return self._pair_number[pairs]

    def contact_numbers(self, contacts: Any) -> np.ndarray:
        """The numbers of some contacts, counted among the contacts of pairs that may pass."""
        return self._contact_number[contacts]

    def forms(self, pair: int) -> Forms:
        return forms(self._context.candidates.pairs[pair])

    def moving(self, pair: int) -> dict[str, bool]:
        """For each side of a pair whether its link moves."""
        return {side: bool(end.link) for side, end in zip(SIDES, self._context.candidates.ends[pair], strict=True)}

    @cached_property
    def groups(self) -> list[list[int]]:
        """All these pairs, in groups that share one trace."""
        searched = {*self.searched}

        def key(i: int) -> Hashable:
            pair = self._context.candidates.pairs[i]
            kinds: tuple[Hashable, ...] = (pair.count,)
            if i not in searched:
                kinds = tuple((Hull, len(x.vertices)) if isinstance(x, Hull) else form(x) for x in self.forms(i))
            return *kinds, *self.moving(i).values(), pair.cone.size

        return list(grouped(self.pairs, key).values())

    @cached_property
    def contact_groups(self) -> list[np.ndarray]:
        """All contacts of these pairs, in groups that share one trace; either all can be culled, or none."""
        return self.grouped_contacts(self.contacts)

    def grouped_contacts(self, contacts: Sequence[int]) -> list[np.ndarray]:
        """Some contacts, in the groups of `contact_groups`."""
        candidates = self._context.candidates

        def key(contact: int) -> Hashable:
            start = candidates.starts[contact]
            return contact in candidates.cullable, len(start.links), start.width

        return [np.array(group) for group in grouped(contacts, key).values()]

    def shapes(self, pairs: Sequence[int], formless: bool = False) -> Window:
        """The fields of the shapes of pairs that share one trace: poses at the start of the step, and motions.

        Args:
            formless: whether to leave out the numbers of their forms.
        """
        key = *pairs, formless
        if key not in self._known_shapes:  # many loops run over the same pairs
            self._known_shapes[key] = self._look_up_shapes(pairs, formless)
        return self._known_shapes[key]

    def _look_up_shapes(self, pairs: Sequence[int], formless: bool) -> Window:
        context, candidates = self._context, self._context.candidates
        window = fields(step=constants(np.full(len(pairs), context.scene.step)))
        if pairs[0] in self.on_fields:
            window |= fields(around=constants([seen_around(*self.forms(i)) for i in pairs]))
        for k, side in enumerate(SIDES):
            geometries, frames = [self.forms(i)[k] for i in pairs], [candidates.frames[i][k] for i in pairs]
            table = {
                f"{side}_at_E": constants([frame.E + 0.0 for frame in frames]),
                f"{side}_at_r": constants([frame.r + 0.0 for frame in frames]),
                f"{side}_reach": constants([reach_of(geometry) for geometry in geometries]),
                f"{side}_axis": constants([axis_of(geometry) for geometry in geometries]),
            }
            if not formless and pairs[0] in self.listed_anew:
                table[f"{side}_centre"] = constants([centre(geometry) for geometry in geometries])
            if not formless and pairs[0] not in self.searched:
                table[f"{side}_numbers"] = constants([numbers(geometry) for geometry in geometries])
            window |= fields(**table)
            if self.moving(pairs[0])[side]:
                window |= fields(**{f"{side}_gone": context.halves.first(self._trees(pairs, k))})
        return window | candidates.motion(context.sweep, candidates.group(pairs), _MOTION)

    def _trees(self, pairs: Sequence[int], side: int) -> list[int]:
        """The trees of bodies of one shape of each pair."""
        ends = self._context.candidates.ends
        return [self._context.layout.tree_of(ends[i][side].link) for i in pairs]

    def near_next(self, pairs: Sequence[int]) -> dict[str, Slot]:
        """The flags that note whether the trees of bodies of these shapes come near a contact."""
        near_next, moving = self._context.halves.near_next, self.moving(pairs[0]).values()
        if not near_next.size:
            return {}
        sides = [k for k, moves in enumerate(moving) if moves]
        return {f"near{k}": near_next.at(self._trees(pairs, side)) for k, side in enumerate(sides)}

    def shifts(self, view: View, pair: int, changed: bool = True) -> list[Shift]:
        """The motions of the shapes of a pair, within a kernel.

        Args:
            view: has what `shapes` gives.
            pair: one of the pairs that share the kernel.
            changed: whether velocities are those with impulses, or without them.
        """
        geometries = (None, None) if pair in self.searched else self.forms(pair)
        sides = zip(geometries, self.moving(pair).items(), strict=True)
        return [shift_of(view, side, geometry, moves, changed) for geometry, (side, moves) in sides]


def shift_of(view: View, side: str, geometry: Any, moves: bool, changed: bool = True) -> Shift:
    """The motion of a shape, within a kernel.

    Args:
        view: has what `shapes` gives.
        side: which shape of its pair.
        geometry: its form; None if it is not needed.
        moves: whether its link moves.
        changed: whether velocities are those with impulses.
    """
    numbered = geometry and with_numbers(geometry, getattr(view, f"{side}_numbers"))
    at = Transform(getattr(view, f"{side}_at_E"), getattr(view, f"{side}_at_r"))
    if not moves:
        return Shift(numbered, at)
    v = getattr(view, f"{side}_u") + (getattr(view, f"{side}_du") if changed else 0.0)
    reach, axis = (getattr(view, f"{side}_{name}") for name in ("reach", "axis"))
    return Shift.on_link(numbered, at, pose(view, side, True), v, reach, axis)
