"""The candidate contacts of a robot in a program: gaps, frames, forces by unit of impulse, and velocities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, cast

import numpy as np

from coupler.contact.collision.broad_phase import Alike, BroadPhase, End
from coupler.contact.collision.convex.contacts import centred
from coupler.contact.collision.convex.program import Search
from coupler.contact.collision.geometry import Contact, Point, forces_on, has_closed_form
from coupler.contact.collision.tables import SIDES, Told, finding_kernel, first_of, form, forms, numbers, pose
from coupler.contact.collision.terrain.placing import on_links, places, poses
from coupler.contact.collision.terrain.program import FieldSearch
from coupler.contact.kernels import assign
from coupler.contact.laws import gap_seen, let_out
from coupler.contact.pairs import Pair
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.step.blocks import Blocks, shared, wait
from coupler.contact.step.columns import Columns, Start
from coupler.contact.step.halves import Halves
from coupler.contact.step.stage_contacts import StageContacts
from coupler.forks import cached_property
from coupler.graph import Builder, Slot, Vector, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.model import Robot
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Geometry, Hull, Plane, Shape
from coupler.passes import Schedule, Sweep
from coupler.spatial import Transform

Array = Any  # nodes of a trace

_FOUND = ("gaps", "points", "frames")  # what is told of a contact before velocities are looked at


class Candidates:
    """The candidate contacts of pairs, in their order.

    Attributes:
        pairs: what may touch.
        names: of each contact: both shapes, and a number where they touch in several places.
        friction: the coefficients of each contact, one for each disc.
        links: those that may touch.
        starts: where the columns of each contact start; see `Columns`.
        ends: of each pair its two shapes.
        first: of each pair its first contact.
        pair_of: of each contact its pair.
        groups: pairs, those together that one trace serves.
    """

    def __init__(self, robot: Robot, pairs: Sequence[Pair]) -> None:
        self.robot, self.pairs = robot, tuple(pairs)
        self._searched = {i for i, pair in enumerate(pairs) if not has_closed_form(*forms(pair))}
        self._on_fields = {i for i in self._searched if any(isinstance(own, HeightField) for own in forms(pairs[i]))}
        self.ends = [
            (self._end(pair.one, i in self._searched), self._end(pair.other, i in self._searched))
            for i, pair in enumerate(pairs)
        ]
        self.first = np.cumsum([0, *(pair.count for pair in pairs)])
        self.pair_of = np.repeat(np.arange(len(pairs)), [pair.count for pair in pairs])
        self.friction = [x for pair in pairs for _ in range(pair.count) for x in pair.cone.coefficients]
        self.names = [name for pair in pairs for name in _names(pair)]
        moving = [tuple(end.link for end in ends if end.link) for ends in self.ends]
        self.links = {link for links in moving for link in links}
        self.groups = self._alike()
        starts = [Start(pair.cone.size, links) for pair, links in zip(pairs, moving, strict=True)]
        self.starts = [start for pair, start in zip(pairs, starts, strict=True) for _ in range(pair.count)]

    def _end(self, shape: Shape, about_centre: bool) -> End:
        link, place = self.robot.tree.place[shape.body]
        at = shape.at @ place
        middle = centred(shape.geometry, at)
        return End(shape.geometry, link, middle if about_centre else at, middle.r)

    def measure(
        self,
        sweep: Sweep[Any, Any],
        columns: Columns,
        scene: ContactScene,
        layout: Layout,
        halves: Halves,
        told: Told,
        before: Vector,
        stages: StageContacts | None = None,
    ) -> None:
        """Writes the steps from poses and velocities of links to contacts.

        Args:
            sweep: has poses E and r of links, and their velocities `start` before and u after a step without impulses.
            columns: get forces on links by unit of impulse.
            scene: what counts.
            layout: of the state, which knows trees of bodies.
            halves: what part of the step they have gone; they are told which come near a contact.
            told: what is told of contacts; gaps count at position level [002, eq. 4a].
            before: impulses of the step before, to start from; of pairs that are left out, they become zero.
            stages: of a step of higher order, which then tells velocities after it.
        """
        self._layout, self._halves, self._stages = layout, halves, stages
        self._broad_phase = BroadPhase(sweep.builder, self._far_groups, len(self.pairs), scene.step, sweep.bodies)
        if self._far_groups:
            self._broad_phase.begin()
        self._start_from(sweep.builder, before, told)
        for alike in self._far_groups:
            self._leave_out(sweep.builder, scene, alike, told)
        self._measure(sweep, columns, scene, told, [alike for alike in self.groups if not alike.may_be_left_out])
        with sweep.builder.recorded() as self._measuring_steps:
            self._measure(sweep, columns, scene, told, self._far_groups)

    @property
    def _far_groups(self) -> list[Alike]:
        return [alike for alike in self.groups if alike.may_be_left_out]

    def _start_from(self, builder: Builder, before: Vector, told: Told) -> None:
        """Writes loops that take impulses over from the step before, of contacts that are not left out."""
        alike = grouped(range(len(self.starts)), lambda k: (k in self._pair_of_far, self.starts[k].width))
        for contacts in alike.values():
            window = fields(source=told.at("start", contacts, before), target=told.at("start", contacts))
            builder.loop(assign, row=window, **self.among_near(contacts))

    def may_be_left_out(self, contact: int) -> bool:
        """Whether a contact is of a pair that is left out while its shapes are far from each other."""
        return contact in self._pair_of_far

    def among_near(self, contacts: Indices) -> dict[str, Any]:
        """What a loop over contacts is told, all of pairs that may be left out, or none: to pass by those that are."""
        if not self.may_be_left_out(contacts[0]):
            return {}
        return {"among": self._broad_phase.near.at(self.pair_of[contacts])}

    def _measure(
        self,
        sweep: Sweep[Any, Any],
        columns: Columns,
        scene: ContactScene,
        told: Told,
        groups: Sequence[Alike],
    ) -> None:
        """Writes the steps that measure pairs; those that may be left out if they are fresh."""
        searched = sorted(i for alike in groups if alike.searched for i in alike.numbers)
        if convex := [i for i in searched if i not in self._on_fields]:
            self._search(sweep, convex, told)
        if on_fields := [i for i in searched if i in self._on_fields]:
            self._search_fields(sweep, on_fields, told, scene.step)
        far = bool(groups) and groups[0].may_be_left_out
        self.find(sweep, groups, _FOUND, told.at, self._broad_phase.fresh.at if far else None)
        if self._stages:
            for alike in groups:
                fresh = self._broad_phase.fresh.at(alike.numbers) if alike.may_be_left_out else None
                self._stages.look_ahead(sweep, alike, told, fresh)
        kinds: dict[tuple[bool, bool, bool, bool, int], list[tuple[int, int]]] = {}
        for alike in groups:
            one, other = alike.moving.values()
            for i in alike.numbers:
                within = len({self._layout.tree_of(end.link) for end in self.ends[i] if end.link}) == 1
                rows = self.pairs[i].cone.size
                own = kinds.setdefault((one, other, alike.may_be_left_out, within, rows), [])
                own += [(i, int(self.first[i]) + k) for k in range(alike.contacts)]
        for (one, other, left_out, within, _), contacts in kinds.items():
            moving = {"one": one, "other": other}
            self._measure_contacts(sweep, columns, scene, told, sorted(contacts), moving, left_out, within)

    def find(
        self,
        sweep: Sweep[Any, Any],
        groups: Sequence[Alike],
        names: Sequence[str],
        at: Callable[[str, np.ndarray], Slot],
        where: Callable[[Sequence[int]], Slot] | None,
    ) -> None:
        """Writes loops that find the contacts of pairs with a closed form.

        Corners of hulls over planes are points, all in one loop: its text is as long for any number of them.

        Args:
            sweep: has poses E and r of links.
            groups: of pairs; those that are searched are passed by.
            names: what is told of contacts: some of gaps, points and frames.
            at: where something is told of contacts, by name and their numbers.
            where: by numbers of pairs, flags of those that count; all do if not given.
        """
        kinds: dict[Hashable, tuple[list[int], list[tuple[End, End]]]] = {}
        for alike in groups:
            both = forms(self.pairs[alike.numbers[0]])
            if _is_hull_on_plane(both):
                pairs, ends = kinds.setdefault(tuple(alike.moving.values()), ([], []))
                pairs += alike.numbers
                ends += [(corner, plane) for hull, plane in alike.ends for corner in _corners(hull)]
            elif not alike.searched:
                window, flags = self.poses(sweep, alike) | self.places(alike, at, names), where and where(alike.numbers)
                sweep.builder.loop(finding_kernel(both, alike.moving, names), view=window, where=flags)
        for pairs, ends in kinds.values():
            corners = Alike([pair for pair in pairs for _ in range(self.pairs[pair].count)], ends, 1, searched=False)
            contacts = np.concatenate([np.arange(self.first[pair], self.first[pair + 1]) for pair in pairs])
            window = self.poses(sweep, corners) | fields(**{f"{name}0": at(name, contacts) for name in names})
            kernel, flags = finding_kernel((Point(), Plane()), corners.moving, names), where and where(corners.numbers)
            sweep.builder.loop(kernel, view=window, where=flags)

    def _measure_contacts(
        self,
        sweep: Sweep[Any, Any],
        columns: Columns,
        scene: ContactScene,
        told: Told,
        rows: Sequence[tuple[int, int]],
        moving: Mapping[str, bool],
        left_out: bool,
        within: bool,
    ) -> None:
        """Writes a loop over contacts that have been found.

        Args:
            sweep, columns, scene, told: as for `measure`.
            rows: the numbers of pairs, and of their contacts, which have as many rows.
            moving: which of their shapes move.
            left_out: whether these pairs may be left out.
            within: whether their shapes are of one tree of bodies.
        """
        pairs, contacts = (list(own) for own in zip(*rows, strict=True))
        own: dict[str, Any] = {}
        own |= {name: told.at(name, contacts) for name in told.names if name != "start"}
        own["pace"] = constants(np.full(len(rows), 1.0 / scene.step))
        if self._stages:
            own["ahead"] = self._stages.velocity.at(3 * np.array(contacts), 3)
        for side, (name, moves) in enumerate(moving.items()):
            if moves:
                links = [self.ends[i][side].link for i in pairs]
                memory = sweep.bodies(links).fields
                own |= {f"{name}_{field}": memory[field] for field in ("E", "r", "u", "start")}
                own[f"{name}_P"] = columns.at_link(contacts, links)
                if scene.integrator == "midpoint":
                    trees = [self._layout.tree_of(link) for link in links]
                    own[f"{name}_gone"] = self._halves.first(trees)
                    own["near" if within else f"{name}_near"] = self._halves.near_next.at(trees)
        fresh = self._broad_phase.fresh.at(pairs) if left_out else None
        sweep.builder.loop(
            _measuring(moving, scene, self.starts[contacts[0]].width, told.names, within, self._stages is not None),
            view=fields(**own),
            among=fresh,
        )

    def _leave_out(self, builder: Builder, scene: ContactScene, alike: Alike, told: Told) -> None:
        """Writes what is known of the contacts of far pairs: their gaps are not small."""

        rows = self.pairs[alike.numbers[0]].cone.size
        read = "free" in told.names  # by rebounds and impacts, which look at all contacts
        unread = {"closures"} | ({"b"} if not read else set[str]())
        unread |= set[str]() if scene.places else {"points", "frames"}
        names = [name for name in told.names if name not in unread]

        def leave_out(view: View) -> None:
            bound, nothing = np.array(view.bound), np.zeros(3)
            found = {"b": first_of(rows, bound * view.pace), "free": nothing, "approach": nothing}
            found |= {"gaps": bound, "points": nothing, "frames": np.eye(3)[[2, 0, 1]], "start": np.zeros(rows)}
            for name in names:
                for k in range(alike.contacts):
                    setattr(view, f"{name}{k}", found[name])

        window = fields(
            pace=constants(np.full(len(alike.numbers), 1.0 / scene.step)),
            bound=self._broad_phase.bounds.at(alike.numbers),
        )
        window |= self.places(alike, told.at, names)
        builder.loop(leave_out, view=window, where=self._broad_phase.far.at(alike.numbers))

    def _alike(self) -> list[Alike]:
        """Pairs, those together that one trace serves."""
        groups: dict[Hashable, list[int]] = {}
        for i, (pair, ends) in enumerate(zip(self.pairs, self.ends, strict=True)):
            any_form = i in self._searched or _is_hull_on_plane(forms(pair))
            kinds = (type(own) if any_form else form(own) for own in forms(pair))
            groups.setdefault((*kinds, pair.count, *(bool(end.link) for end in ends), pair.cone.size), []).append(i)
        return [self._together(rows) for rows in groups.values()]

    def _together(self, rows: Sequence[int]) -> Alike:
        """Pairs that one trace serves."""
        return Alike(list(rows), [self.ends[i] for i in rows], self.pairs[rows[0]].count, rows[0] in self._searched)

    def _rows_of(self, pairs: Sequence[int]) -> Callable[[Sequence[int]], Alike]:
        """What searches ask for: of some pairs, those in some rows."""
        return lambda rows: self._together([pairs[row] for row in rows])

    def _search(self, sweep: Sweep[Any, Any], pairs: Sequence[int], told: Told) -> None:
        """Writes the search for contacts of pairs without a closed form."""
        alike = self._rows_of(pairs)
        search = Search(sweep.builder, [self.ends[i] for i in pairs], self._broad_phase.fresh.at(pairs))
        self._convex = search, {pair: row for row, pair in enumerate(pairs)}
        search.run(
            lambda rows: places(alike(rows).ends) | self.motion(sweep, alike(rows), ("E", "r")),
            lambda view, rows: poses(view, alike(rows).ends[0]),
            lambda rows: self.places(alike(rows), told.at, _FOUND),
        )

    def search_of(self, pairs: Sequence[int], flags: Slot) -> Search:
        """The search among some pairs of convex shapes, with flags of their own, once contacts have been measured."""
        search, rows = self._convex
        return search.of([rows[pair] for pair in pairs], flags)

    def _search_fields(self, sweep: Sweep[Any, Any], pairs: Sequence[int], told: Told, step: float) -> None:
        """Writes the search for contacts with height fields; of pairs all of which may be left out, or none."""
        alike = self._rows_of(pairs)
        left_out = alike([0]).may_be_left_out
        flags = self._broad_phase.fresh.at(pairs) if left_out else None
        name = "terrain" if left_out else "moving_terrain"
        FieldSearch(sweep.builder, name, [self.ends[i] for i in pairs], flags, step).run(
            lambda rows: places(alike(rows).ends) | self.motion(sweep, alike(rows), ("E", "r", "u", "start")),
            lambda view, rows: on_links(view, alike(rows).ends[0]),
            lambda rows: self.places(alike(rows), told.at, _FOUND),
        )

    def begin(self, blocks: Blocks) -> None:
        """Writes the steps that begin the problem; contacts of far pairs, of which nothing is known, may not join."""
        blocks.begin(self._broad_phase.fresh, self._pair_of_far)

    @cached_property
    def _pair_of_far(self) -> dict[int, int]:
        """The pairs of those contacts that may be left out."""
        pairs = sorted(i for alike in self._far_groups for i in alike.numbers)
        return {k: i for i in pairs for k in range(int(self.first[i]), int(self.first[i + 1]))}

    def look(
        self,
        sweep: Sweep[Any, Any],
        columns: Columns,
        blocks: Blocks,
        residual: Vector,
        tolerance: float,
        but: Collection[int] = (),
    ) -> None:
        """Writes the steps that make idle contacts wait which velocities after the step would close too far.

        Args:
            sweep: has the changes `du` of links' velocities by impulses.
            columns: have forces on links by unit of impulse.
            blocks: of contacts first.
            residual: how far impulses are from the laws, which this adds to.
            tolerance: by how much they may be, m/s.
            but: contacts that are looked at elsewhere (see `Passing`).
        """
        if self._far_groups:
            self._broad_phase.look_again(lambda: self._measure_fresh(sweep.builder, blocks))
        schedule = Schedule(sweep.builder)
        common = shared(residual=residual, joining=blocks.joining)

        def loop(contacts: list[int]) -> tuple[Callable[..., None], dict[str, Any]]:
            links = zip(*(self.starts[contact].links for contact in contacts), strict=True)
            ends = [
                fields(P=columns.at_link(contacts, own), du=sweep.bodies(own).fields["du"]) for own in map(list, links)
            ]
            own = (
                blocks.of(contacts) | common(contacts) | fields(tolerance=constants(np.full(len(contacts), tolerance)))
            )
            return _look, {"own": own, "ends": ends, "where": blocks.flags["idle"].at(contacts)}

        elsewhere = {*but}
        for contact, start in enumerate(self.starts):
            if contact not in elsewhere:
                schedule.add((len(start.links), start.width), contact, loop)
        schedule.run()

    def _measure_fresh(self, builder: Builder, blocks: Blocks) -> None:
        builder.replay(self._measuring_steps)
        contacts, pairs = zip(*self._pair_of_far.items(), strict=True)
        contact = fields(idle=blocks.flags["idle"].at(contacts))
        builder.loop(_let_in, contact=contact, among=self._broad_phase.fresh.at(pairs))

    def places(self, alike: Alike, at: Callable[[str, np.ndarray], Slot], names: Sequence[str]) -> Window:
        """Where contacts of pairs are told of: of the first one of each pair `gaps0`, and so on."""
        found = {}
        for name in names:
            for k in range(alike.contacts):
                found[f"{name}{k}"] = at(name, self.first[alike.numbers] + k)
        return fields(**found)

    def motion(self, sweep: Sweep[Any, Any], alike: Alike, names: Sequence[str]) -> Window:
        """What is known of the links that carry shapes, of those that move."""
        own: dict[str, Any] = {}
        for side, moves in alike.moving.items():
            if moves:
                memory = sweep.bodies([end.link for end in alike.side(side)]).fields
                own |= {f"{side}_{name}": memory[name] for name in names}
        return fields(**own)

    def poses(self, sweep: Sweep[Any, Any], alike: Alike) -> Window:
        """Where shapes are, and their numbers."""
        own: dict[str, Any] = {}
        for name in SIDES:
            ends = alike.side(name)
            own |= {
                f"{name}_at_E": constants([end.at.E + 0.0 for end in ends]),
                f"{name}_at_r": constants([end.at.r + 0.0 for end in ends]),
                f"{name}_numbers": constants([numbers(end.form) for end in ends]),
            }
        return fields(**own) | self.motion(sweep, alike, ("E", "r"))


def _is_hull_on_plane(both: tuple[Geometry, Geometry]) -> bool:
    """Whether each corner of the one is a contact with the other."""
    return isinstance(both[0], Hull) and isinstance(both[1], Plane)


def _corners(hull: End) -> list[End]:
    vertices = cast(Hull, hull.form).vertices
    return [replace(hull, form=Point(), at=Transform.translation(vertex) @ hull.at) for vertex in vertices]


def _let_in(contact: View) -> None:
    contact.idle = np.array(1.0)


def _look(own: View, ends: list[View]) -> None:
    """Makes a contact wait that velocities after the step close too far: w_n = b_n + P_nᵀ Δu."""
    w = reduce(add, (end.P[:, 0] @ end.du for end in ends), own.b[0])
    own.residual = np.maximum(own.residual, -w)
    wait(own, w < -own.tolerance)


def _names(pair: Pair) -> list[str]:
    return [pair.name] if pair.count == 1 else [f"{pair.name}, {k + 1}" for k in range(pair.count)]


def _measuring(
    moving: Mapping[str, bool],
    scene: ContactScene,
    rows: int,
    told: Sequence[str],
    within: bool,
    ahead: bool,
) -> Callable[[View], None]:
    def measuring(view: View) -> None:
        """What a contact brings into the problem."""
        contact, P = Contact(view.gaps, view.points, view.frames), {}
        for (name, moves), sign in zip(moving.items(), (1.0, -1.0), strict=True):
            if moves:
                P[name] = sign * forces_on(pose(view, name, moves), contact, rows)
                setattr(view, f"{name}_P", P[name])
        free, approach = (reduce(add, (P[name].T @ getattr(view, f"{name}_{x}") for name in P)) for x in ("u", "start"))
        if ahead:
            free = view.ahead
        closure = gap_seen(contact.gap, scene.penetration) * view.pace
        if scene.integrator == "midpoint":
            for name in P:  # gaps count from where the step started
                closure = closure - getattr(view, f"{name}_gone") * (P[name][:, 0] @ getattr(view, f"{name}_start"))
            soon = closure + 2.0 * free[0] < 0.0  # with the same velocities for one more step, it would touch
            for name in ["near"] if within else [f"{name}_near" for name in P]:
                setattr(view, name, np.where(soon, 1.0, getattr(view, name)))
        closure = let_out(closure, free[0], scene.recovery)
        found = {"b": free + first_of(rows, closure), "free": free[:3], "approach": approach[:3], "closures": closure}
        for name in found:
            if name in told:
                setattr(view, name, found[name])

    return measuring
