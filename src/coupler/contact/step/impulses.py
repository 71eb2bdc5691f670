"""The impulses of a step: from velocities without them, through the contact problem, to velocities with them.

Candidates that break no law take no part. Where velocities with impulses make some of them break theirs, these join the
others, and the problem is solved again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.kernels import copy
from coupler.contact.scene import travelling
from coupler.contact.scheme import SCHEMES
from coupler.contact.sliding import Sliding
from coupler.contact.solution import ENOUGH
from coupler.contact.step.adhesion import Adhesions
from coupler.contact.step.context import StepContext
from coupler.contact.step.impact import Impacts
from coupler.contact.step.impulse_passes import climb, weigh_gates
from coupler.contact.step.islands import Islands
from coupler.contact.step.jams import Jams
from coupler.contact.step.joint_blocks import JointBlocks
from coupler.contact.step.measurement import Measurement
from coupler.contact.step.passing_pairs import PassingPairs
from coupler.contact.step.passing_program import Passing
from coupler.contact.step.pressing import count_pressing
from coupler.contact.step.rebound import Rebounds
from coupler.contact.step.refinement import Refinement
from coupler.contact.step.relaxation import Relaxation
from coupler.contact.step.report import ContactReport
from coupler.contact.step.sharing import Sharing
from coupler.contact.step.stage_contacts import StageContacts
from coupler.contact.step.state_vectors import StateVectors
from coupler.graph import Buffer, Vector, View, constants, fields, may_differ

_MANY_TREES = 8  # of bodies, of which some hardly ever touch the others: islands are solved apart, and share no load
_LAST_SWEEPS = 2000  # where the refinement has not solved a problem
_ROUNDS = 30  # how often candidates can join; each time those do that the others' impulses have moved into contact


class Impulses:
    """The steps from velocities without impulses to velocities with them.

    Attributes:
        impacts: impacts that rebound once gaps are closed; None if nothing rebounds so.
        stage_contacts: forces of contacts in the stages of a step of higher order; None for other steps.
        position_impulses: the impulses with which positions move. Impacts add others to them, for velocities alone.
    """

    def __init__(self, context: StepContext, vectors: StateVectors, adhesions: Adhesions | None = None) -> None:
        self._adhesions = adhesions
        self._context, self._after, self._before = context, vectors.after, vectors.before
        sweep, scene, blocks, candidates = context.sweep, context.scene, context.blocks, context.candidates
        islands = Islands(blocks, context.columns) if context.layout.trees >= _MANY_TREES else None
        self._relaxation = Relaxation(blocks, islands)
        self._refinement = Refinement(blocks, context.columns, self._relaxation)
        self._joints = JointBlocks(sweep, context.layout, blocks, scene)
        sharing = Sharing(sweep.robot, scene, blocks)
        self._sharing = sharing if sharing.possible and not islands else None
        self._jams = Jams(sweep.robot, scene, context.layout, blocks)
        in_place = bool(vectors.before["pending"].size)
        self._rebounds = Rebounds(sweep.builder, sweep.robot, scene, blocks) if in_place else None
        self.impacts = Impacts(sweep, scene, blocks, vectors.after) if travelling(scene.pairs) else None
        higher = scene.integrator in SCHEMES
        touches, rough = bool(candidates.pairs), may_differ(candidates.friction)
        slides = higher and touches and rough and not (self._rebounds or self.impacts)
        self._sliding = Sliding(blocks) if slides else None
        rows = context.layout.contact_rows
        self.stage_contacts = StageContacts(sweep.builder, candidates, rows, scene.step) if higher and touches else None
        self._reported = report = self._report()
        self._measurement = Measurement(context, report, self.stage_contacts)
        pairs = PassingPairs(context)
        passes = bool(pairs.pairs) and not self._rebounds  # what rebounds in place turns round where it is
        self._passing = Passing(context, pairs, self._measurement, report) if passes else None
        self.position_impulses: Vector = blocks.impulses
        if higher and self.impacts:
            self.position_impulses = sweep.builder.scratch("position_impulses", blocks.impulses.size)

    @property
    def jump(self) -> Buffer | None:
        """The velocities that impacts add once positions have moved; None if nothing rebounds in this way."""
        return self.impacts.jump if self.impacts else None

    def _report(self) -> ContactReport:
        """The report of contacts: parts of the results, and scratch for quantities that only the step itself needs."""
        layout, after, blocks, builder = self._context.layout, self._after, self._context.blocks, self._context.builder
        vectors: dict[str, Vector] = {"gaps": after["gaps"]}
        for name, size in (("points", 3), ("frames", 9)):
            places = self._context.scene.places
            vectors[name] = after[name] if places else builder.scratch(name, size * layout.contacts)
        vectors |= {"b": blocks.b, "start": blocks.impulses, "closures": self._jams.closures}
        for part in (self._rebounds, self.impacts):
            vectors |= part.velocities if part else {}
        vectors |= {"approach": self._sliding.approach} if self._sliding else {}
        for name in ("free", "approach") if self._adhesions else ():
            vectors[name] = vectors.get(name) or builder.scratch(name, 3 * layout.contacts)
        return ContactReport(layout.contact_rows, vectors)

    def write(self, apply_impulses: Callable[[], None]) -> None:
        """Writes the steps.

        Args:
            apply_impulses: writes the pass from x to velocities; see `Columns`.
        """
        builder, blocks, after = self._context.builder, self._context.blocks, self._after
        self._begin()
        self._keep_position_impulses()
        with builder.repeat(until=_none_joins, at_most=_ROUNDS, blocks=fields(joining=blocks.joining.at(0))):
            self._solve()
            apply_impulses()
            self._let_join()
            if self.impacts:
                self._keep_position_impulses()
                self.impacts.write(self._relaxation, self._refinement, apply_impulses)
            if self._adhesions:
                self._adhesions.look(self._reported)
        if self._rebounds:
            self._rebounds.add_given()
        if self.stage_contacts:
            self.stage_contacts.spread(self.position_impulses, after["frames"])
        results = {name: after[name] for name in ("touching", "parting")}
        rebound = bool(self._rebounds or self.impacts)
        count_pressing(blocks, self._jams.closures, results, rebound=rebound)
        if blocks.impulses is not after["impulses"]:
            copy(builder, blocks.impulses, after["impulses"], self._context.layout.contact_rows.total)
        self._joints.end(after["impulses"])

    def _begin(self) -> None:
        """Writes the steps that measure contacts and joints and decide which of them take part from the start."""
        before, after = self._before, self._after
        self._measurement.write(before["impulses"])
        self._joints.measure(before["impulses"])
        if self._adhesions:
            self._adhesions.pull(self._reported, self._context.layout, self._context.halves)
        if self._rebounds:
            self._rebounds.begin(after["gaps"], before["pending"], after["pending"])
        if self.impacts:
            self.impacts.begin()
        self._measurement.begin_problem()
        if self._passing:
            self._passing.begin(after["gaps"])
        if self._adhesions:
            self._adhesions.let_wait()
        if self._sliding:
            self._sliding.begin()
        self._jams.begin(after["jammed"], after["gaps"])

    def _solve(self) -> None:
        """Writes the steps that add waiting blocks to the problem and solve it, with overlaps in full if possible."""
        context, after = self._context, self._after
        context.builder.list_flags(context.blocks.flags["waiting"])
        context.columns.gates.weigh(weigh_gates)
        context.columns.climb(climb, context.blocks.flags["waiting"])
        context.blocks.join()
        if self._rebounds:  # which write b themselves
            self._solve_once()
            self._rebounds.end(after["pending"])
            return
        self._jams.let_stick()
        with self._jams.try_again(after["residual"], self._refinement.limit, after["iterations"]):
            self._solve_once()

    def _solve_once(self) -> None:
        """Writes the steps that solve the problem as it is."""
        after, scene = self._after, self._context.scene
        self._relaxation.solve(scene.tolerance, scene.sweeps, after["residual"], after["sweeps"])
        wanted = None
        if self._sharing:
            self._sharing.look(self._relaxation.largest_change)
            wanted = self._sharing.wanted
        self._refinement.solve(scene.tolerance, after["residual"], after["iterations"], wanted, ENOUGH)
        self._sweep_on()

    def _sweep_on(self) -> None:
        """Writes more sweeps for states that the refinement has not solved, from the best impulses that it found."""
        after, tolerance = self._after, self._context.scene.tolerance
        problem = fields(residual=after["residual"].at(0), tolerance=constants([tolerance]))
        problem |= fields(limit=self._refinement.limit.at(0))
        with self._context.builder.repeat(until=_is_solved, at_most=1, rare=True, problem=problem):
            self._relaxation.solve(tolerance, _LAST_SWEEPS, after["residual"], after["sweeps"], patient=True)

    def _let_join(self) -> None:
        """Writes the steps that flag contacts and joints as waiting if velocities with impulses break their laws."""
        residual = self._after["residual"]
        if self._passing:
            self._measurement.look_again(residual, self._passing.contacts, self._passing.begin_measured_anew)
            self._passing.look(residual)
        else:
            self._measurement.look_again(residual, ())
        self._joints.look(residual, self._context.scene.tolerance)
        if self._sliding:
            self._sliding.look()

    def _keep_position_impulses(self) -> None:
        """Writes the steps that keep the impulses with which positions move, before impacts add to them."""
        impulses = self._context.blocks.impulses
        if self.position_impulses is not impulses:
            copy(self._context.builder, impulses, self.position_impulses, impulses.size)


def _none_joins(blocks: View) -> Any:
    return blocks.joining <= 0.0


def _is_solved(problem: View) -> Any:
    return problem.residual <= np.maximum(ENOUGH * problem.tolerance, problem.limit)
