"""From poses and velocities of links to rows of the contact problem, for all candidate contacts.

Pairs of shapes that are far apart are culled (broad_phase.py): their contacts get a bound of their gap in place of a
measurement, and take no part. Once impulses are known, pairs that these bring together are measured after all, and
contacts join the problem that the velocities after the step would close too far.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from coupler.contact.collision.broad_phase import BroadPhase
from coupler.contact.collision.geometry import Contact, forces_on
from coupler.contact.collision.pair_groups import PairGroup
from coupler.contact.collision.tables import SIDES, first_of, pose
from coupler.contact.kernels import assign, clear
from coupler.contact.laws import let_out
from coupler.contact.passing import can_pass, slop
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene, rebounding
from coupler.contact.step.blocks import shared, wait
from coupler.contact.step.candidates import SIGNS
from coupler.contact.step.context import StepContext
from coupler.contact.step.narrow_phase import NarrowPhase
from coupler.contact.step.report import ContactReport
from coupler.contact.step.stage_contacts import StageContacts
from coupler.graph import Vector, View, constants, fields
from coupler.grouping import grouped
from coupler.passes import Schedule


class ContactKind(NamedTuple):
    """A key for contacts that one kernel can measure.

    Attributes:
        one_moves, other_moves: whether the links of their shapes move.
        cullable: whether their pairs can be culled.
        one_tree: whether both shapes belong to the same tree of bodies, or one of them to the ground.
        may_pass: in steps of several stages, whether their shapes may pass each other.
        rows: the number of rows of each contact.
    """

    one_moves: bool
    other_moves: bool
    cullable: bool
    one_tree: bool
    may_pass: bool
    rows: int

    @property
    def moving_sides(self) -> list[str]:
        return [side for side, moves in zip(SIDES, (self.one_moves, self.other_moves), strict=True) if moves]


class Measurement:
    """The steps that measure candidate contacts.

    Args:
        context: the program. Links have poses E and r there, and velocities `start` before the step, u after it
            without impulses, and later `du`, what impulses change.
        report: the report that gets the results; gaps count at position level [002, eq. 4a].
        stages: in steps of several stages, gives the velocities of contacts after the step; else None.

    Attributes:
        narrow_phase: finds where contacts are.
    """

    def __init__(self, context: StepContext, report: ContactReport, stages: StageContacts | None) -> None:
        self._context, self._report, self._stages = context, report, stages
        sweep, scene, candidates = context.sweep, context.scene, context.candidates
        self._broad_phase = BroadPhase(
            sweep.builder, candidates.cullable_groups, len(candidates.pairs), scene.step, sweep.bodies
        )
        self.narrow_phase = NarrowPhase(sweep, candidates, self._broad_phase, scene.step)

    def write(self, impulses: Vector) -> None:
        """Writes the steps that compute gaps, velocities and forces by unit of impulse of all contacts.

        Args:
            impulses: the previous step's impulses. Contacts start from them, or from zero if their pair is culled.
        """
        candidates, builder = self._context.candidates, self._context.builder
        if candidates.cullable_groups:
            self._broad_phase.begin(lambda alike: candidates.results(alike, self._report.at, ["gaps"]))
            for name in ("start", *(("points", "frames") if self._context.scene.places else ())):
                clear(builder, self._report.of_all(name))
        self._take_over(impulses)
        for alike in candidates.cullable_groups if "free" in self._report.names else ():
            self._fill_culled(alike)
        self._measure([alike for alike in candidates.groups if not alike.may_be_left_out])
        with builder.recorded() as self._steps_for_fresh_pairs:
            self._measure(candidates.cullable_groups)

    def begin_problem(self) -> None:
        """Writes the steps that begin the contact problem; contacts of culled pairs, not measured so far, stay out."""
        self._context.blocks.begin(self._broad_phase.fresh, self._context.candidates.cullable)

    def among_measured(self, contacts: Indices) -> dict[str, Any]:
        """The argument of a loop that skips contacts of culled pairs.

        Args:
            contacts: the contacts of the loop; either all can be culled, or none.
        """
        if contacts[0] not in self._context.candidates.cullable:
            return {}
        return {"among": self._broad_phase.near.at(self._context.candidates.pair_of[contacts])}

    def among_measured_anew(self, contacts: Indices) -> dict[str, Any]:
        """The argument of a loop over contacts of pairs that are measured only once impulses are known."""
        if contacts[0] not in self._context.candidates.cullable:
            return {}
        return {"among": self._broad_phase.fresh.at(self._context.candidates.pair_of[contacts])}

    def _take_over(self, impulses: Vector) -> None:
        """Writes loops that copy the previous step's impulses for pairs that are not culled."""
        candidates, report = self._context.candidates, self._report
        contacts = range(len(candidates.starts))
        for alike in grouped(contacts, lambda k: (k in candidates.cullable, candidates.starts[k].width)).values():
            window = fields(source=report.at("start", alike, impulses), target=report.at("start", alike))
            self._context.builder.loop(assign, row=window, **self.among_measured(alike))

    def _fill_culled(self, alike: PairGroup) -> None:
        """Writes a loop that fills in the velocities of culled contacts: zero, plus the bound of the gap in b."""
        context, report = self._context, self._report
        rows = context.candidates.pairs[alike.numbers[0]].cone.size
        names = [name for name in ("b", "free", "approach") if name in report.names]

        def fill_culled(view: View) -> None:
            nothing = np.zeros(3)
            values = {"b": first_of(rows, view.bound * view.pace), "free": nothing, "approach": nothing}
            for name in names:
                for k in range(alike.contacts):
                    setattr(view, f"{name}{k}", values[name])

        window = fields(
            pace=constants(np.full(len(alike.numbers), 1.0 / context.scene.step)),
            bound=self._broad_phase.bounds.at(alike.numbers),
        )
        window |= context.candidates.results(alike, report.at, names)
        context.builder.loop(fill_culled, view=window, where=self._broad_phase.far.at(alike.numbers))

    def _measure(self, groups: Sequence[PairGroup]) -> None:
        """Writes the steps that measure groups of pairs; of pairs that can be culled, only the fresh ones."""
        context, fresh = self._context, self._broad_phase.fresh
        self.narrow_phase.find(groups, self._report)
        if self._stages:
            for alike in groups:
                flags = fresh.at(alike.numbers) if alike.may_be_left_out else None
                self._stages.look_ahead(context.sweep, alike, self._report, flags)
        contacts = [k for alike in groups for pair in alike.numbers for k in context.candidates.contacts_of(pair)]
        for kind, group in grouped(contacts, self._kind).items():
            self._measure_contacts(kind, sorted(group))

    def _kind(self, contact: int) -> ContactKind:
        candidates, layout = self._context.candidates, self._context.layout
        one, other = candidates.ends[candidates.pair_of[contact]]
        trees = {layout.tree_of(end.link) for end in (one, other) if end.link}
        cullable, rows = contact in candidates.cullable, candidates.starts[contact].width
        pair = candidates.pairs[candidates.pair_of[contact]]
        may_pass = self._stages is not None and can_pass(pair) and not rebounding(self._context.scene.pairs)
        return ContactKind(bool(one.link), bool(other.link), cullable, len(trees) == 1, may_pass, rows)

    def _measure_contacts(self, kind: ContactKind, contacts: list[int]) -> None:
        """Writes the loop from locations of contacts to their rows of the problem."""
        context, report, halves = self._context, self._report, self._context.halves
        pairs = context.candidates.pair_of[contacts]
        entries: dict[str, Any] = {name: report.at(name, contacts) for name in report.names if name != "start"}
        entries["pace"] = constants(np.full(len(contacts), 1.0 / context.scene.step))
        entries |= context.scene.gravity_for(context.sweep.robot, len(contacts))
        if self._stages:
            entries["ahead"] = self._stages.velocity(contacts)
        for side in kind.moving_sides:
            links = [context.candidates.ends[i][SIDES.index(side)].link for i in pairs]
            memory = context.sweep.bodies(links).fields
            entries |= {f"{side}_{name}": memory[name] for name in ("E", "r", "u", "start")}
            entries[f"{side}_P"] = context.columns.at_link(contacts, links)
            if context.scene.integrator == "midpoint":
                trees = [context.layout.tree_of(link) for link in links]
                entries[f"{side}_gone"] = halves.first(trees)
                entries["near" if kind.one_tree else f"{side}_near"] = halves.near_next.at(trees)
        kernel = _measuring(kind, context.scene, report.names, self._stages is not None)
        fresh = self._broad_phase.fresh.at(pairs) if kind.cullable else None
        context.builder.loop(kernel, view=fields(**entries), among=fresh)

    # Once impulses are known

    def look_again(
        self, residual: Vector, elsewhere: Collection[int], begin_anew: Callable[[], None] = lambda: None
    ) -> None:
        """Writes the steps that flag idle contacts as waiting if velocities after the step would close them too far.

        Args:
            residual: 1, the error of the laws, m/s; the steps add to it.
            elsewhere: contacts to leave out, because `Passing` decides about them.
            begin_anew: writes the steps that must follow when pairs are measured that impulses bring together.
        """
        context, blocks = self._context, self._context.blocks
        if context.candidates.cullable_groups:
            self._broad_phase.look_again(lambda: self._measure_fresh(begin_anew))
        schedule, passed_over = Schedule(context.builder), {*elsewhere}
        common = shared(residual=residual, joining=blocks.joining)

        def loop(contacts: list[int]) -> tuple[Callable[..., None], dict[str, Any]]:
            tolerance = constants(np.full(len(contacts), context.scene.tolerance))
            block = blocks.of(contacts) | common(contacts) | fields(tolerance=tolerance)
            windows = {"block": block, "ends": context.responses(contacts)}
            return _wait_if_closing, windows | {"where": blocks.flags["idle"].at(contacts)}

        for contact, start in enumerate(context.candidates.starts):
            if contact not in passed_over:
                schedule.add((len(start.links), start.width), contact, loop)
        schedule.run()

    def _measure_fresh(self, begin_anew: Callable[[], None]) -> None:
        """Writes the steps that measure fresh pairs and add their contacts, with the rows of the first measurement."""
        context = self._context
        context.builder.replay(self._steps_for_fresh_pairs)
        contacts, pairs = zip(*context.candidates.cullable.items(), strict=True)
        contact = fields(idle=context.blocks.flags["idle"].at(contacts))
        context.builder.loop(_let_in, contact=contact, among=self._broad_phase.fresh.at(pairs))
        begin_anew()


# Kernels of contacts


def _measuring(kind: ContactKind, scene: ContactScene, names: Sequence[str], ahead: bool) -> Callable[[View], None]:
    """The kernel that measures contacts of a kind.

    Args:
        names: the quantities that are reported of contacts.
        ahead: whether velocities without impulses are given as `ahead`, of a step of several stages.
    """

    def measure(view: View) -> None:
        """Computes forces on links by unit of impulse, and b: velocities without impulses, plus gap over step."""
        contact, P = Contact(view.gaps, view.points, view.frames), {}
        for side in kind.moving_sides:
            P[side] = SIGNS[side] * forces_on(pose(view, side, True), contact, kind.rows)
            setattr(view, f"{side}_P", P[side])
        free, approach = (reduce(add, (P[side].T @ getattr(view, f"{side}_{v}") for side in P)) for v in ("u", "start"))
        if ahead:  # but a half-space at the start for shapes that are apart: where they then are, some have passed
            free = np.where(contact.gap > slop(scene.step), free, view.ahead) if kind.may_pass else view.ahead
        closure = scene.seen(contact.gap, view) * view.pace
        if scene.integrator == "midpoint":
            for side in P:  # gaps count from where the step started, and links have moved since
                closure = closure - getattr(view, f"{side}_gone") * (P[side][:, 0] @ getattr(view, f"{side}_start"))
            soon = closure + 2.0 * free[0] < 0.0  # with the same velocities for one more step, it would touch
            for name in ["near"] if kind.one_tree else [f"{side}_near" for side in P]:
                setattr(view, name, np.where(soon, 1.0, getattr(view, name)))
        closure = let_out(closure, approach[0], scene.recovery)
        values = {"b": free + first_of(kind.rows, closure), "closures": closure}
        values |= {"free": free[:3], "approach": approach[:3]}
        for name, value in values.items():
            if name in names:
                setattr(view, name, value)

    return measure


def _let_in(contact: View) -> None:
    contact.idle = np.array(1.0)


def normal_velocity(block: View, ends: list[View]) -> Any:
    """w_n = b_n + P_nᵀ Δu of a contact, with impulses; see `StepContext.responses`."""
    return reduce(add, (end.P[:, 0] @ end.du for end in ends), block.b[0])


def _wait_if_closing(block: View, ends: list[View]) -> None:
    """Flags a contact as waiting if velocities after the step close it too far."""
    w = normal_velocity(block, ends)
    block.residual = np.maximum(block.residual, -w)
    wait(block, w < -block.tolerance)
