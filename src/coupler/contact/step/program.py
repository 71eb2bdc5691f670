"""A step with contact as one program, [002, §2.3] on clusters, for lanes and threads.

What stepping.py does in NumPy, without the mass matrix and in one go:

1. positions at which forces are taken: those before the step, or at its middle (drift.py, halves.py);
2. velocities u after the step without impulses, from forces and inertia (kick.py), also of the links that may touch;
3. candidate contacts, limits and dry friction of joints: gaps, and forces by unit of impulse;
4. these forces climb to the ground (columns.py), which gives A = J H⁻¹ Jᵀ as a product [001, eq. 62; 003, eq. 27];
5. the contact problem is solved (blocks.py, relaxation.py, refinement);
6. velocities v⁺ = u + H⁻¹ Jᵀ λ, outwards from what impulses do to each cluster by itself;
7. velocities after impacts that rebound (impact.py), and positions after the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.algorithms import aba
from coupler.algorithms.articulated import propagated, response
from coupler.algorithms.factorization import acceleration
from coupler.contact.collision.tables import Told
from coupler.contact.damping import damped
from coupler.contact.kernels import copy, in_parts
from coupler.contact.scene import ContactScene, Layout, friction_impulses, travelling
from coupler.contact.scheme import SCHEMES
from coupler.contact.servos import servoed
from coupler.contact.sliding import Sliding
from coupler.contact.step.blocks import shared
from coupler.contact.step.candidates import Candidates
from coupler.contact.step.columns import Columns, Passage, Start
from coupler.contact.step.dead_points import watch_dead_points
from coupler.contact.step.drift import Drift
from coupler.contact.step.drives import Drives, controls_of
from coupler.contact.step.halves import Halves
from coupler.contact.step.impact import Impacts
from coupler.contact.step.interaction import InteractingBlocks
from coupler.contact.step.islands import Islands
from coupler.contact.step.joint_blocks import JointBlocks
from coupler.contact.step.kick import Kick, Node, StageBody, StepBody, StepCluster
from coupler.contact.step.passing_program import Passing
from coupler.contact.step.rebound import Rebounds
from coupler.contact.step.refinement import Refinement
from coupler.contact.step.relaxation import Relaxation
from coupler.contact.step.stage_contacts import StageContacts
from coupler.contact.step.stages import Stages
from coupler.graph import Part, Program, Vector, View, constants, fields, may_differ
from coupler.model import Robot
from coupler.model.tolerances import OPEN
from coupler.passes import ClusterWindows, Shape, Sweep, force_on_joints

_MANY_TREES = 8  # of bodies, of which some hardly ever touch the others
_LAST_SWEEPS = 2000  # where the refinement has not solved a problem of many bodies; they take islands that are small
_ROUNDS = 30  # how often candidates can join; each time those do that the others' impulses have moved into contact


def contact_step_program(robot: Robot, scene: ContactScene) -> Program:
    """The program (state, tau) → after of a step, laid out as `Layout` tells.

    Controls of actuators and f_ext are further inputs, in this order.
    """
    candidates, layout, h = Candidates(robot, scene.pairs), Layout(robot, scene), scene.step
    midpoint, scheme = scene.integrator == "midpoint", SCHEMES.get(scene.integrator)
    described, robot = (
        robot,
        robot if scheme else damped(servoed(robot, yielding=scene.yielding) if scene.motors else robot, h, midpoint),
    )
    sweep = _sweep(robot, scene, candidates)
    parts = _Parts(sweep, layout)
    tau = sweep.input("tau", robot.nv)
    drives = None
    if scene.motors:
        drives = Drives(sweep, described, scene, sweep.builder.input("motors", controls_of(robot)))
    if layout.loop_links or scheme or drives:  # clusters of loops feel forces along bases of their own
        sweep.vectors |= {"tau_given": tau, "tau": sweep.builder.scratch("own_tau", robot.nv)}
        copy(sweep.builder, tau, sweep.vectors["tau"], robot.nv)
    halves = Halves(sweep.builder, layout, midpoint, parts.before["near"], parts["near"])
    drift = Drift(sweep, layout, h, halves, parts.before, parts.after)
    halves.begin()
    if midpoint:
        drift.begin()
    else:
        drift.stay()
    for name in ("v", "u"):
        sweep.vector(name)
    sweep.vectors["v_next"] = parts["v"]
    kick = Kick(sweep, candidates.links, scene.integrator, bool(parts["near"].size), parts["rounds"])

    driven = drives.starts if drives else []
    stopped = bool(candidates.starts or layout.joints or driven)
    columns = Columns(sweep, [*candidates.starts, *(Start(1, joint=joint) for joint in layout.joints), *driven])

    stages = Stages(sweep, layout, h, scheme, kick, drift.closing, parts.before, parts.after) if scheme else None

    def provide(windows: ClusterWindows, shape: Shape, clusters: Any) -> None:
        trees = [layout.tree_of_cluster(k) for k in clusters]
        windows.cluster |= {"step": constants(np.full(len(clusters), h)), "dv": columns.answers(clusters)}
        windows.cluster |= {"near": halves.near(trees), "gone": halves.first(trees)} if midpoint else {}
        windows.cluster |= kick.provided(len(clusters))
        drift.provide(windows, shape, clusters)
        if stages:
            stages.provide(windows, shape, clusters)

    sweep.provide = provide
    if stages and drives:
        stages.drive = lambda: drives.drive_stage(stages.progress, parts["motors"], parts["motor_work"])
    loads = kick.write(scene.external, h, drives.prepare if drives else None)
    told = {name: parts[name].at(0) for name in ("residual", "touching", "sweeps", "iterations")}
    sweep.builder.loop(_no_contact, problem=fields(**told))
    jump, pressing, acting, blocks = None, None, None, None
    if stopped:
        friction = friction_impulses(robot, layout.joints, h)
        bounds = sweep.builder.scratch("bounds", len(friction) + len(driven)) if driven else None
        own = parts["impulses"] if not (layout.joints or driven) else None  # else λ is laid out otherwise
        known = layout.contact_rows, candidates.friction, bounds or friction
        blocks = InteractingBlocks(sweep.builder, columns, *known, own)
        impulses = _Impulses(sweep, scene, layout, candidates, blocks, columns, parts, halves)
        if drives and bounds:
            drives.measure(blocks, columns, bounds, friction)
        impulses.write(_applying(kick.located))
        halves.end(parts["impulses"], None if impulses.impacts else blocks)
        jump = impulses.impacts.jump if impulses.impacts else None
        pressing, acting = impulses.stages, impulses.closing
    if drives and scheme:
        first = layout.contact_rows.total + len(layout.joints)
        drives.begin_telling(scheme.weights[0], acting, first, parts["motors"], parts["motor_work"])
    elif drives:
        drives.tell(blocks, len(layout.joints), parts["motors"], parts["motor_work"])
        drives.check_limits(parts["motors"], parts["residual"])
    if stages:
        stages.write(pressing, acting, jump, loads)
    else:
        drift.end(jump)
    watch_dead_points(sweep, scene, parts.before["q"], parts["q"])
    parts.end()
    return sweep.build()


class _Impulses:
    """The steps from velocities without impulses to those with them.

    Candidates that break no law take no part. Where velocities with impulses make some of them break theirs, these join
    the others, and the problem is solved again.
    """

    def __init__(
        self,
        sweep: Sweep[StepBody, StepCluster],
        scene: ContactScene,
        layout: Layout,
        candidates: Candidates,
        blocks: InteractingBlocks,
        columns: Columns,
        parts: _Parts,
        halves: Halves,
    ) -> None:
        self.sweep, self.scene, self.layout, self.parts = sweep, scene, layout, parts
        self.candidates, self.blocks, self.columns, self.halves = candidates, blocks, columns, halves
        islands = Islands(blocks, columns) if layout.trees >= _MANY_TREES else None
        self.relaxation, self.joints = Relaxation(blocks, islands), JointBlocks(sweep, layout, blocks, scene)
        self.refinement = Refinement(blocks, columns, self.relaxation)
        self.rebounds = Rebounds(sweep.builder, scene, blocks) if parts.before["pending"].size else None
        told = {name: parts[name] for name in ("gaps", "v", "residual", "sweeps", "iterations")}
        self.impacts = Impacts(sweep, scene, blocks, told) if travelling(scene.pairs) else None
        passing = Passing(sweep, scene, candidates, columns, blocks, layout, halves)
        self.passing = passing if passing.contacts and not self.rebounds else None  # which turn where they are
        higher = scene.integrator in SCHEMES and bool(candidates.pairs)
        rough = higher and may_differ(candidates.friction) and not (self.rebounds or self.impacts)
        self.sliding = Sliding(blocks) if rough else None
        self.stages = StageContacts(sweep.builder, candidates, scene.step) if higher else None
        apart = scene.integrator in SCHEMES and self.impacts
        self.closing = sweep.builder.scratch("closing_impulses", blocks.impulses.size) if apart else blocks.impulses

    def write(self, apply_impulses: Callable[[Node], None]) -> None:
        """Writes them, given the pass from x to velocities."""
        layout, parts, builder, blocks = self.layout, self.parts, self.sweep.builder, self.blocks
        vectors: dict[str, Vector] = {name: parts[name] for name in ("gaps", "points", "frames") if name in parts.after}
        if not self.scene.places:
            sizes = {"points": 3 * layout.contacts, "frames": 9 * layout.contacts}
            vectors |= {name: builder.scratch(name, size) for name, size in sizes.items()}
        vectors |= {"b": blocks.b, "start": blocks.impulses}
        vectors |= self.rebounds.told if self.rebounds else self.impacts.told if self.impacts else {}
        vectors |= {"approach": self.sliding.approach} if self.sliding else {}
        told = Told(layout.contact_rows, vectors)
        known = (self.sweep, self.columns, self.scene, self.layout, self.halves)
        self.candidates.measure(*known, told, parts.before["impulses"], self.stages)
        self.joints.measure(parts.before["impulses"])
        if self.rebounds:
            self.rebounds.begin(parts["gaps"], parts.before["pending"], parts["pending"])
        if self.impacts:
            self.impacts.begin()
        self.candidates.begin(blocks)
        if self.passing:
            self.passing.begin(parts["gaps"])
        if self.sliding:
            self.sliding.begin()
        self._keep_closing()
        with builder.repeat(until=_none_joins, at_most=_ROUNDS, blocks=fields(joining=blocks.joining.at(0))):
            builder.list_flags(blocks.flags["waiting"])
            self.columns.climb(climb, blocks.flags["waiting"])
            blocks.join()
            self.relaxation.solve(self.scene.tolerance, self.scene.sweeps, parts["residual"], parts["sweeps"])
            self.refinement.solve(self.scene.tolerance, parts["residual"], parts["iterations"])
            if self.relaxation.islands:
                self._sweep_on()
            if self.rebounds:
                self.rebounds.end(parts["pending"])
            self.sweep.outward(apply_impulses)
            but, limits = self.passing.contacts if self.passing else (), (parts["residual"], self.scene.tolerance)
            self.candidates.look(self.sweep, self.columns, blocks, *limits, but)
            if self.passing:
                self.passing.look(parts["residual"], told)
            self.joints.look(parts["residual"], self.scene.tolerance)
            if self.sliding:
                self.sliding.look()
            if self.impacts:
                self._keep_closing()
                self.impacts.write(self.relaxation, self.refinement, lambda: self.sweep.outward(apply_impulses))
        if self.rebounds:
            self.rebounds.add_given()
        if self.stages:
            self.stages.spread(self.closing, parts["frames"])
        self._count_pressing()
        if blocks.impulses is not parts["impulses"]:
            copy(builder, blocks.impulses, parts["impulses"], layout.contact_rows.total)
        self.joints.end(parts["impulses"])

    def _sweep_on(self) -> None:
        """Writes more sweeps for states that the refinement has not solved, from the best impulses that it found."""
        parts = self.parts
        problem = fields(residual=parts["residual"].at(0), tolerance=constants([10.0 * self.scene.tolerance]))
        with self.sweep.builder.repeat(until=_is_solved, at_most=1, rare=True, problem=problem):
            told = parts["residual"], parts["sweeps"]
            self.relaxation.solve(self.scene.tolerance, _LAST_SWEEPS, *told, patient=True)

    def _count_pressing(self) -> None:
        """Writes how many contacts press, and lists active ones, which alone have impulses unless they rebound."""
        blocks, count = self.blocks, shared(touching=self.parts["touching"])
        blocks.builder.list_flags(blocks.flags["active"])
        for contacts in blocks.alike(range(blocks.contacts)):
            listed = {} if self.rebounds or self.impacts else blocks.among("active", contacts)
            blocks.builder.loop(_count_pressing, own=blocks.of(contacts) | count(contacts), **listed)

    def _keep_closing(self) -> None:
        """Writes the steps that keep the impulses with which positions move, before impacts add to them."""
        if self.closing is not self.blocks.impulses:
            copy(self.sweep.builder, self.blocks.impulses, self.closing, self.closing.size)


class _Parts:
    """The parts of the state before a step, and of what it leads to.

    A call with few and plain arrays is what Python makes fastest: so one vector has all parts, and another.

    Attributes:
        before: the parts of the state before the step, by name.
        after: all parts of what it leads to.
    """

    def __init__(self, sweep: Sweep[Any, Any], layout: Layout) -> None:
        state, self._result = sweep.input("state", layout.state), sweep.builder.output("after", layout.size)
        self._sweep, places = sweep, layout.places.items()
        self.before = {x: Part(state, at.start, at.stop - at.start) for x, at in places if x in layout.parts_of_state}
        self.after = {x: Part(self._result, at.start, at.stop - at.start) for x, at in places}

    def __getitem__(self, name: str) -> Part:
        return self.after[name]

    def end(self) -> None:
        """Writes the steps that make all parts NaN where a configuration is invalid."""
        builder, gap = self._sweep.builder, self._sweep.gap
        if gap is not None:
            with builder.repeat(until=_is_valid, at_most=1, rare=True, state=fields(gap=gap.at(0))):
                for starts, size in in_parts(self._result.size):
                    builder.loop(_make_nan, row=fields(x=self._result.at(starts, size)))


def _sweep(robot: Robot, scene: ContactScene, candidates: Candidates) -> Sweep[StepBody, StepCluster]:
    """The passes' memory."""
    higher = scene.integrator in SCHEMES
    loaded = scene.external or bool(robot.elements) or (higher and bool(candidates.pairs))
    return Sweep(
        robot,
        "contact_step",
        body=StageBody if higher else StepBody,
        cluster=StepCluster,
        paired=True,
        loaded=loaded,
        everybody=True,
        remembering=True,
        tangent=True,
        looped=not (higher or loaded),
        oriented={*aba.pulled_links(robot), *candidates.links},
    )


def climb(cluster: Node, passage: Passage) -> None:
    """Forces by unit of impulse, as they are felt beyond a cluster: χᵀ := Xᵀ Lᵀ χᵀ, Lᵀ = 1 − U D⁻¹ Sᵀ. [001, eq. 62]"""
    active = [cluster.bodies[i] for i in passage.active]
    pushed = [] if passage.entry is None else [cluster.G[passage.entry][:, None]]
    pushed += [cluster.memory.gears[i] * cluster.G[entry][:, None] for i, entry in enumerate(passage.geared)]
    z = force_on_joints(cluster, {body: body.memory.P for body in active}, sum(pushed, np.zeros((1, 1))))
    cluster.memory.z, cluster.memory.y = z, cluster.memory.Dinv @ z
    for output, begins in zip(cluster.outputs, passage.begins, strict=True):
        if not output.grounded:
            P = {body: body.memory.P for body in active if body.output is output}
            felt = propagated(cluster, output, cluster.memory.Y, P, z)
            output.memory.P = felt if begins else output.memory.P + felt


def _applying(located: dict[int, set[int]]) -> Callable[[Node], None]:
    def apply_impulses(cluster: Node) -> None:
        """v⁺: what impulses do to joints, with what they do to all that carries them. [001, eq. 64]"""
        dv = cluster.memory.dv
        if not cluster.grounded:
            dv = dv - response(cluster, cluster.memory.Y, [output.memory.a for output in cluster.outputs])
        cluster.memory.v_next = cluster.memory.u + dv
        for body in cluster.bodies:
            if body.carries:
                body.memory.a = acceleration(body, dv)
            if body.number in located[id(cluster.shape)]:
                body.memory.du = acceleration(body, dv)

    return apply_impulses


def _none_joins(blocks: View) -> Any:
    return blocks.joining <= 0.0


def _is_valid(state: View) -> Any:
    return state.gap < OPEN


def _make_nan(row: View) -> None:
    row.x = np.full(len(row.x), np.nan)


def _no_contact(problem: View) -> None:
    problem.residual = problem.touching = problem.sweeps = problem.iterations = np.array(0.0)


def _is_solved(problem: View) -> Any:
    return problem.residual <= problem.tolerance


def _count_pressing(own: View) -> None:
    own.touching = own.touching + np.where(own.impulse[0] > 0.0, 1.0, 0.0)
