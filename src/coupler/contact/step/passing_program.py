"""Which contacts act in a step, as steps of a program: passing.py for all pairs whose shapes may pass each other.

Contacts that have pressed in the step before act at once. Others wait until velocities are known with those, and act if
they would break their laws and if their shapes do meet on the way. Of those that do, what touches already goes first:
a box that slides on another one is held by that, before it is asked whether it meets the next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.broad_phase import End
from coupler.contact.collision.convex.cores import centre
from coupler.contact.collision.geometry import Contact, has_closed_form
from coupler.contact.collision.tables import Told, form, numbers
from coupler.contact.collision.terrain.program import FieldSearch
from coupler.contact.kernels import clear
from coupler.contact.passing import (
    MOST_ADVANCES,
    Shift,
    advanced,
    advanced_among,
    approach,
    axis_of,
    can_pass,
    closing_speed,
    is_searched,
    nearest,
    on_field,
    reach_of,
    seen_around,
    shifted,
    too_fast,
)
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.step import passing_kernels as kernels
from coupler.contact.step.blocks import Blocks, shared
from coupler.contact.step.candidates import Candidates
from coupler.contact.step.columns import Columns
from coupler.contact.step.halves import Halves
from coupler.forks import cached_property
from coupler.graph import Slot, Vector, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.model.shapes import Hull, Shape
from coupler.passes import Sweep
from coupler.spatial import Transform

_STATE = ("doubts", "undecided", "touches")


class Passing:
    """The contacts of a program whose shapes may pass each other.

    Attributes:
        contacts: their numbers.
    """

    def __init__(
        self,
        sweep: Sweep[Any, Any],
        scene: ContactScene,
        candidates: Candidates,
        columns: Columns,
        blocks: Blocks,
        layout: Layout,
        halves: Halves,
    ) -> None:
        """Args: a program, what it takes into account, its candidates, their columns, its problem, and its trees."""
        self._layout, self._halves = layout, halves
        self._builder, self._sweep, self._scene = sweep.builder, sweep, scene
        self._candidates, self._columns, self._blocks = candidates, columns, blocks
        self._pairs = [i for i, pair in enumerate(candidates.pairs) if can_pass(pair)]
        self._on_fields = [i for i in self._pairs if on_field(*self._forms(i))]
        self._searched = [i for i in self._pairs if is_searched(*self._forms(i))]
        self._listed_anew = {*self._on_fields, *self._searched}  # pairs whose contacts on the way are no fixed list
        self.contacts = [k for i in self._pairs for k in self._of(i)]
        self._number = np.full(len(candidates.pairs), -1)  # of pairs, among those that may pass
        self._number[self._pairs] = np.arange(len(self._pairs))
        self._place = np.full(len(candidates.starts), -1)  # of contacts, likewise
        self._place[self.contacts] = np.arange(len(self.contacts))
        self._known_shapes: dict[tuple[int, ...], Window] = {}
        if self._pairs:
            builder, pairs, contacts = sweep.builder, len(self._pairs), len(self.contacts)
            self._state = {name: builder.scratch(f"passing_{name}", 1) for name in _STATE}
            self._moving = builder.scratch("passing_moving", pairs)  # flags of pairs: undecided
            self._meeting, self._time = (builder.scratch(f"passing_{name}", pairs) for name in ("meeting", "time"))
            self._near = builder.scratch("passing_near", contacts)
            self._fast = builder.scratch("passing_fast", pairs)  # flags of pairs with fields: see `too_fast`
            self._ahead = builder.records("ahead", contacts, gap=(), point=3, frame=(3, 3))

    def _of(self, pair: int) -> range:
        first = self._candidates.first
        return range(int(first[pair]), int(first[pair + 1]))

    def begin(self, gaps: Vector) -> None:
        """Writes the steps by which those contacts wait alone that have pressed before; the problem has begun."""
        for contacts in self._alike_contacts:
            near = self._near.at(self._place[contacts])
            window = self._blocks.of(contacts) | fields(near=near, gap=gaps.at(contacts))
            window |= fields(step=constants(np.full(len(contacts), self._scene.step)))
            self._builder.loop(kernels.begin, own=window, **self._candidates.among_near(contacts))
        for alike in self._alike:
            if alike[0] in self._on_fields:
                joining = fields(joining=self._blocks.joining.at([0] * len(alike)))
                self._builder.loop(self._asking_how_fast(alike[0]), view=self._speeds(alike) | joining)

    def look(self, residual: Vector, told: Told) -> None:
        """Writes the steps by which contacts wait that break their laws and whose shapes meet.

        Args:
            residual: how far impulses are from the laws, which this adds to.
            told: of contacts, as for `Candidates.measure`; of those that act, as they are where their shapes meet.
        """
        builder, state = self._builder, fields(**{name: buffer.at(0) for name, buffer in self._state.items()})
        builder.loop(kernels.no_doubts, state=state)
        self._run(kernels.doubt, "idle", residual)
        if self._on_fields:
            self._loop(kernels.doubt_if_fast, "idle", [k for i in self._on_fields for k in self._of(i)])
        with builder.repeat(until=kernels.doubtless, at_most=1, rare=True, state=state):
            clear(builder, self._moving)
            self._loop(kernels.ask)
            self._let_pass(told)
            builder.loop(kernels.no_doubts, state=state)
            self._loop(kernels.doubt_still)
            with builder.repeat(until=kernels.doubtless, at_most=1, rare=True, state=state):
                self._decide(residual, told, state)

    def _let_pass(self, told: Told) -> None:
        """Writes the first advance of convex shapes, from contacts as they are; what passes is not looked at further.

        So what rests within the slop of others costs little.
        """

        def kind(i: int) -> tuple[int, bool, bool, bool]:
            (one, _), (other, _) = self._links(i).values()
            left_out = bool(self._candidates.among_near(self._of(i)))
            return self._candidates.pairs[i].count, bool(one), bool(other), left_out

        convex = [i for i in self._pairs if i not in self._on_fields]
        for (count, one, other, _), pairs in grouped(convex, kind).items():
            moving = self._moving.at(self._number[pairs])
            window = self._shapes(pairs, formless=True) | fields(moving=moving)
            for k in range(count):
                contacts = [self._of(i)[k] for i in pairs]
                window |= fields(**{f"{name}{k}": told.at(f"{name}s", contacts) for name in ("gap", "frame")})
            near = self._candidates.among_near([self._of(i)[0] for i in pairs])
            self._builder.loop(kernels.letting_pass(count, one, other), view=window, where=moving, **near)

    def _decide(self, residual: Vector, told: Told, state: Window) -> None:
        """Writes the steps that move shapes which may meet, and by which their contacts wait if they do."""
        builder = self._builder
        for buffer in (self._meeting, self._time):
            clear(builder, buffer)
        self._forget()
        self._loop(kernels.may_meet)
        with builder.repeat(until=kernels.decided, at_most=MOST_ADVANCES, state=state):
            builder.loop(kernels.no_one_left, state=state)
            if self._on_fields:
                self._look_at_fields()
            if self._searched:
                self._search()
            for alike in self._alike:
                flags = self._moving.at(self._number[alike])
                window = self._shapes(alike) | self._decisions(alike)
                builder.loop(self._advancing(alike), view=window, where=flags)
        self._loop(kernels.decide)
        if self._listed_anew:
            self._loop(kernels.decide, "idle", [k for i in sorted(self._listed_anew) for k in self._of(i)])
        for alike in self._alike:
            if has_closed_form(*self._forms(alike[0])) or alike[0] in self._listed_anew:
                self._move_laws(alike, told)
        self._run(kernels.doubt, "waiting", residual)
        self._loop(kernels.note_touching)
        self._run(kernels.let_wait, "waiting", residual)

    def _forget(self) -> None:
        """Writes loops that clear what contacts were on the way in the step before; far pairs are not looked at."""
        for own in self._alike_contacts:
            window = self._ahead[self._place[own]]
            self._builder.loop(kernels.forget, ahead=window, **self._candidates.among_near(own))

    def _speeds(self, alike: Sequence[int]) -> Window:
        """How shapes move, where it is noted that they are too fast, and that their trees come near a contact."""
        fast = fields(fast=self._fast.at(self._number[alike]))
        return self._shapes(alike) | fast | fields(**self._near_next(alike))

    def _near_next(self, alike: Sequence[int]) -> dict[str, Slot]:
        """Where it is noted that trees of bodies come near a contact, of those that shapes belong to."""
        if not self._halves.near_next.size:
            return {}
        links = [[link for link, _ in self._links(i).values() if link] for i in alike]
        trees = [[self._layout.tree_of(link) for link in own] for own in zip(*links, strict=True)]
        return {f"near{k}": self._halves.near_next.at(own) for k, own in enumerate(trees)}

    def _asking_how_fast(self, pair: int) -> Callable[[View], None]:
        trees = self._near_next([pair])

        def ask_how_fast(view: View) -> None:
            """Whether a shape is too fast; in the next step it shall not first be seen behind what it hits."""
            one, other = self._shifts(view, pair, changed=False)
            view.fast = np.where(too_fast(one, other, view.around, view.step), 1.0, 0.0)
            view.joining = np.maximum(view.joining, view.fast)
            soon = too_fast(one, other, view.around, 2.0 * view.step)
            for name in trees:
                setattr(view, name, np.where(soon, 1.0, getattr(view, name)))

        return ask_how_fast

    def _run(self, kernel: Callable[[View, list[View]], None], flag: str, residual: Vector) -> None:
        """Writes loops over contacts that have a flag, with what their links do."""
        starts = self._candidates.starts
        for contacts in self._alike_contacts:
            links = [list(own) for own in zip(*(starts[contact].links for contact in contacts), strict=True)]
            du = [self._sweep.bodies(own).fields["du"] for own in links]
            P = [self._columns.at_link(contacts, own) for own in links]
            ends = [fields(P=a, du=b) for a, b in zip(P, du, strict=True)]
            own = self._known(contacts) | shared(residual=residual, joining=self._blocks.joining)(contacts)
            self._builder.loop(kernel, own=own, ends=ends, **self._flagged(contacts, flag))

    @cached_property
    def _alike_contacts(self) -> list[np.ndarray]:
        """All of them, those together that one trace serves, and that all may be left out, or none."""
        return self._contacts_alike(self.contacts)

    def _contacts_alike(self, contacts: Sequence[int]) -> list[np.ndarray]:
        starts, may_be_left_out = self._candidates.starts, self._candidates.may_be_left_out
        groups = grouped(contacts, lambda k: (may_be_left_out(k), len(starts[k].links), starts[k].width))
        return [np.array(own) for own in groups.values()]

    def _flagged(self, contacts: Indices, flag: str) -> dict[str, Any]:
        """What a loop over contacts is told, so that it takes those that have a flag."""
        return {"where": self._blocks.flags[flag].at(contacts)} | self._candidates.among_near(contacts)

    def _loop(
        self, kernel: Callable[[View], None], flag: str = "waiting", contacts: Sequence[int] | None = None
    ) -> None:
        """Writes a loop over all contacts, or some, that have a flag: those that wait."""
        for own in self._alike_contacts if contacts is None else self._contacts_alike(contacts):
            self._builder.loop(kernel, own=self._known(own), **self._flagged(own, flag))

    def _known(self, contacts: Indices) -> Window:
        pairs = self._number[self._candidates.pair_of[contacts]]
        own = {"moving": self._moving.at(pairs), "meeting": self._meeting.at(pairs), "time": self._time.at(pairs)}
        own["near"] = self._near.at(self._place[contacts])
        own["fast"] = self._fast.at(pairs)
        tolerance = constants(np.full(len(contacts), self._scene.tolerance))
        return self._blocks.of(contacts) | fields(**own, tolerance=tolerance) | shared(**self._state)(contacts)

    # Pairs

    def _forms(self, pair: int) -> tuple[Any, Any]:
        return self._candidates.pairs[pair].one.geometry, self._candidates.pairs[pair].other.geometry

    def _links(self, pair: int) -> dict[str, tuple[int, Transform]]:
        """For each side the link that carries its shape, and the transform from there."""
        found = self._candidates.pairs[pair]
        return {"one": self._at[found.one], "other": self._at[found.other]}

    @cached_property
    def _at(self) -> dict[Shape, tuple[int, Transform]]:
        """Of each shape the link that carries it, and the transform from there."""
        place, pairs = self._sweep.robot.tree.place, [self._candidates.pairs[i] for i in self._pairs]
        shapes = {shape for pair in pairs for shape in (pair.one, pair.other)}
        return {shape: (place[shape.body][0], shape.at @ place[shape.body][1]) for shape in shapes}

    @cached_property
    def _alike(self) -> list[list[int]]:
        """Pairs, those together that one trace serves."""
        groups, searched = dict[Hashable, list[int]](), {*self._searched}
        for i in self._pairs:
            moving = (bool(link) for link, _ in self._links(i).values())
            rows = self._candidates.pairs[i].cone.size
            kinds: tuple[Hashable, ...] = (self._candidates.pairs[i].count,)
            if i not in searched:
                kinds = tuple((Hull, len(x.vertices)) if isinstance(x, Hull) else form(x) for x in self._forms(i))
            groups.setdefault((*kinds, *moving, rows), []).append(i)
        return list(groups.values())

    def _shapes(self, alike: Sequence[int], formless: bool = False) -> Window:
        """Where shapes of pairs are, how they move, and for how long they have done so; with their forms or without."""
        if (key := (*alike, formless)) not in self._known_shapes:
            self._known_shapes[key] = self._look_up_shapes(alike, formless)
        return self._known_shapes[key]

    def _look_up_shapes(self, alike: Sequence[int], formless: bool) -> Window:
        time = self._time.at(self._number[alike])
        window = fields(time=time, step=constants(np.full(len(alike), self._scene.step)))
        if alike[0] in self._on_fields:
            window |= fields(around=constants([seen_around(*self._forms(i)) for i in alike]))
        for side, name in enumerate(kernels.SIDES):
            ends = [self._links(i)[name] for i in alike]
            table = {
                f"{name}_at_E": constants([place.E + 0.0 for _, place in ends]),
                f"{name}_at_r": constants([place.r + 0.0 for _, place in ends]),
                f"{name}_reach": constants([reach_of(self._forms(i)[side]) for i in alike]),
                f"{name}_axis": constants([axis_of(self._forms(i)[side]) for i in alike]),
            }
            if not formless and (alike[0] in self._searched or alike[0] in self._on_fields):
                table[f"{name}_centre"] = constants([centre(self._forms(i)[side]) for i in alike])
            if not formless and alike[0] not in self._searched:
                table[f"{name}_numbers"] = constants([numbers(self._forms(i)[side]) for i in alike])
            window |= fields(**table, **self._motion(name, [link for link, _ in ends]))
        return window

    def _decisions(self, alike: Sequence[int]) -> Window:
        """Whether shapes meet, and their contacts on the way."""
        at = self._number[alike]
        undecided = self._state["undecided"].at([0] * len(alike))
        window = fields(moving=self._moving.at(at), meeting=self._meeting.at(at), undecided=undecided)
        for k in range(self._candidates.pairs[alike[0]].count):
            rows = self._place[self._candidates.first[alike] + k]
            window |= fields(**{f"{name}{k}": slot for name, slot in self._ahead[rows].fields.items()})
        return window

    def _look_at_fields(self) -> None:
        """Writes the search for contacts with height fields where their shapes are by then."""
        pairs = self._on_fields
        ends = [(self._end(i, "one"), self._end(i, "other")) for i in pairs]

        def poses(rows: Sequence[int]) -> Window:
            return self._shapes([pairs[row] for row in rows])

        def placed(view: View, rows: Sequence[int]) -> tuple[Transform, Transform, Any]:
            one, other = self._shifts(view, pairs[rows[0]])
            return *_at_centres(view, one, other), approach(one, other)

        flags = self._moving.at(self._number[pairs])
        search = FieldSearch(self._builder, "passing_terrain", ends, flags, self._scene.step)
        search.run(poses, placed, lambda rows: self._found([pairs[row] for row in rows]))

    def _search(self) -> None:
        """Writes the search for contacts of other convex shapes where these are by then."""
        pairs = self._searched

        def placed(view: View, rows: Sequence[int]) -> tuple[Transform, Transform]:
            return _at_centres(view, *self._shifts(view, pairs[rows[0]]))

        self._builder.list_flags(self._moving)
        flags = self._moving.at(self._number[pairs])
        self._candidates.search_of(pairs, flags).run(
            lambda rows: self._shapes([pairs[row] for row in rows]),
            placed,
            lambda rows: self._found([pairs[row] for row in rows]),
        )

    def _found(self, pairs: Sequence[int]) -> Window:
        """Where searches put down the contacts of pairs, on the way."""
        places: dict[str, Any] = {}
        for k in range(self._candidates.pairs[pairs[0]].count):
            own = self._ahead[self._place[self._candidates.first[pairs] + k]].fields
            places |= {f"{name}s{k}": own[name] for name in ("gap", "point", "frame")}
        return fields(**places)

    def _end(self, pair: int, side: str) -> End:
        link, place = self._links(pair)[side]
        return End(dict(self._sides(pair))[side], link, place, place.r)

    def _sides(self, pair: int) -> Iterator[tuple[str, Any]]:
        return zip(kernels.SIDES, self._forms(pair), strict=True)

    def _shifts(self, view: View, pair: int, changed: bool = True) -> list[Shift]:
        """How the shapes of a pair move, with what impulses have `changed`, or without."""
        links, known = self._links(pair), pair not in self._searched
        return [
            kernels.shift_of(view, name, form if known else None, bool(links[name][0]), changed)
            for name, form in self._sides(pair)
        ]

    def _motion(self, name: str, links: Sequence[int]) -> dict[str, Any]:
        if not links[0]:
            return {}
        memory = self._sweep.bodies(list(links)).fields
        gone = self._halves.first([self._layout.tree_of(link) for link in links])
        return {f"{name}_gone": gone} | {f"{name}_{field}": memory[field] for field in ("E", "r", "u", "du", "start")}

    def _advancing(self, alike: Sequence[int]) -> Callable[[View], None]:
        count = self._candidates.pairs[alike[0]].count

        def advance(view: View) -> None:
            """One step of conservative advancement; what is found on the way is kept."""
            one, other = self._shifts(view, alike[0])
            if alike[0] in self._listed_anew:  # they have been searched for
                places = ([getattr(view, f"{name}{k}") for name in ("gap", "point", "frame")] for k in range(count))
                found = [Contact(*place) for place in places]
            else:
                found = shifted(one, other, view.time)
            if alike[0] in self._on_fields:
                time, passes, meeting = advanced_among(view.time, one, other, found, view.step, view.around)
            else:
                gap, normal = nearest(one, other, view.time, found)
                time, passes, meeting = advanced(view.time, gap, closing_speed(one, other, normal), view.step)
            view.time, view.meeting = time, np.where(passes, 0.0, 1.0)
            view.moving = np.where(passes | meeting, 0.0, 1.0)
            view.undecided = np.maximum(view.undecided, view.moving)
            for k, contact in enumerate(found):
                for name in ("gap", "point", "frame"):
                    setattr(view, f"{name}{k}", np.array(getattr(contact, name)))

        return advance

    def _move_laws(self, alike: Sequence[int], told: Told) -> None:
        """Writes the steps by which contacts that wait, and were open, have the laws of where their shapes meet."""
        pair, ends = self._candidates.pairs[alike[0]], self._links(alike[0])
        moving = {name: bool(link) for name, (link, _) in ends.items()}
        for k in range(pair.count):
            contacts = self._candidates.first[alike] + k
            rows = self._place[contacts]
            window = self._shapes(alike) | self._ahead[rows] | fields(near=self._near.at(rows))
            for name, moves in moving.items():
                if moves:
                    links = [self._links(i)[name][0] for i in alike]
                    window |= fields(**{f"{name}_P": self._columns.at_link(contacts, links)})
            names = [name for name in told.names if name != "start"]
            window |= fields(**{f"told_{name}": told.at(name, contacts) for name in names})
            flags = self._flagged(contacts, "waiting")
            self._builder.loop(kernels.moving_law(moving, pair.cone.size, names), view=window, **flags)


def _at_centres(view: View, one: Shift, other: Shift) -> tuple[Transform, Transform]:
    """The transforms from the world to the centres of two shapes by then; hulls that share a trace have their own."""
    X_one, X_other = one.after(view.time), other.after(view.time)
    return Transform.translation(view.one_centre) @ X_one, Transform.translation(view.other_centre) @ X_other
