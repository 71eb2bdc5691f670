"""A step with contact as one program, [002, §2.3] on clusters, for lanes and threads.

It never forms the mass matrix:

1. positions at which forces are taken: those before the step, or at its middle (drift.py, halves.py);
2. velocities u after the step without impulses, from forces and inertia (kick.py), also of the links that may touch;
3. candidate contacts, limits and dry friction of joints: gaps, and forces by unit of impulse (measurement.py);
4. these forces climb to the ground (columns.py), which gives A = J H⁻¹ Jᵀ as a product [001, eq. 62; 003, eq. 27];
5. the contact problem is solved (impulses.py, blocks.py, relaxation.py, refinement);
6. velocities v⁺ = u + H⁻¹ Jᵀ λ, outwards from what impulses do to each cluster by itself;
7. velocities after impacts that rebound (impact.py), and positions after the step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.contact.damping import damped
from coupler.contact.kernels import copy
from coupler.contact.laws import TINY
from coupler.contact.scene import ContactScene, Layout, friction_impulses
from coupler.contact.scheme import SCHEMES
from coupler.contact.servos import servoed
from coupler.contact.step.adhesion import Adhesions, leave_idle
from coupler.contact.step.candidates import Candidates
from coupler.contact.step.columns import Columns, Start
from coupler.contact.step.context import StepContext
from coupler.contact.step.dead_points import watch_dead_points
from coupler.contact.step.drift import Drift
from coupler.contact.step.drives import Drives, controls_of
from coupler.contact.step.halves import Halves
from coupler.contact.step.impulse_passes import applying
from coupler.contact.step.impulses import Impulses
from coupler.contact.step.interaction import InteractingBlocks
from coupler.contact.step.kick import Kick
from coupler.contact.step.memory import StageBody, StepBody, StepCluster
from coupler.contact.step.stages import Stages
from coupler.contact.step.state_vectors import StateVectors
from coupler.graph import Buffer, Program, View, constants, fields
from coupler.model import ModelError, Robot
from coupler.model.actuators import adhesions
from coupler.model.wording import listed
from coupler.passes import ClusterShape, ClusterWindows, Sweep

_ROUNDING = 1e-20  # of a robot that moves as a whole: a mobility that is due to rounding alone

# What results tell of the contact problem.
_OF_PROBLEM = ("residual", "touching", "sweeps", "iterations", "jammed", "parting")


def contact_step_program(robot: Robot, scene: ContactScene) -> Program:
    """The program (state, tau) → after of a step, laid out as `Layout` tells.

    Controls of actuators and f_ext are further inputs, in this order.
    """
    step = _Step(robot, scene)
    step.drift_before_forces()
    loads = step.kick()
    impulses = step.solve_contacts() if step.can_be_stopped else None
    step.report_actuators(impulses)
    step.drift_after_impulses(impulses, loads)
    step.check()
    return step.sweep.build()


class _Step:
    """The parts of a step, each of which writes its own stretch of the program.

    Attributes:
        sweep: the program.
        can_be_stopped: whether there are contacts, limits, dry friction or servos that need impulses.
    """

    def __init__(self, robot: Robot, scene: ContactScene) -> None:
        self._scene, self._layout, self._candidates = scene, Layout(robot, scene), Candidates(robot, scene.pairs)
        midpoint, scheme = scene.integrator == "midpoint", SCHEMES.get(scene.integrator)
        self._midpoint, self._scheme = midpoint, scheme
        self._adhering = adhesions(robot) if scene.motors else []
        if scheme and self._adhering:
            raise ModelError(
                f'adhesion {listed(self._adhering)} takes integrator="midpoint" or "euler", got {scene.integrator!r}'
            )
        if scheme:
            moving = robot
        else:  # springs, dampers and free servos take part in the step as armatures, so that none is too stiff for it
            moving = damped(servoed(robot, yielding=scene.yielding) if scene.motors else robot, scene.step, midpoint)
        self.sweep = sweep = _sweep(moving, scene, self._candidates)
        self._vectors = StateVectors(sweep, self._layout)
        tau, controls = sweep.input("tau", robot.nv), controls_of(robot)
        self._drives = Drives(sweep, robot, scene, sweep.builder.input("motors", controls)) if scene.motors else None
        if self._layout.loop_links or scheme or self._drives:
            # Such clusters feel forces along bases of their own, and actuators add to them: tau itself stays as it is.
            sweep.vectors |= {"tau_given": tau, "tau": sweep.builder.scratch("own_tau", robot.nv)}
            copy(sweep.builder, tau, sweep.vectors["tau"], robot.nv)
        before, after = self._vectors.before, self._vectors.after
        self._halves = Halves(sweep.builder, self._layout, midpoint, before["near"], after["near"])
        self._drift = Drift(sweep, self._layout, scene.step, self._halves, before, after)
        self._kick = Kick(sweep, self._candidates.links, scene.integrator, bool(after["near"].size), after["rounds"])
        self._stages = None
        if scheme:
            closing = self._drift.closing
            self._stages = Stages(sweep, self._layout, scene.step, scheme, self._kick, closing, before, after)
        driven = self._drives.starts if self._drives else []
        starts = [*self._candidates.starts, *(Start(1, joint=joint) for joint in self._layout.joints), *driven]
        self.can_be_stopped = bool(starts)
        self._columns = Columns(sweep, starts)
        self._blocks: InteractingBlocks | None = None  # the contact problem, once it is written
        self._adhesions: Adhesions | None = None
        for name in ("v", "u"):
            sweep.vector(name)
        sweep.vectors["v_next"] = after["v"]
        sweep.provide = self._provide

    def drift_before_forces(self) -> None:
        """Writes the steps that compute the positions and velocities at which forces are taken."""
        self._halves.begin()
        if self._midpoint:
            self._drift.begin()
        else:
            self._drift.stay()

    def kick(self) -> Buffer | None:
        """Writes the steps that compute velocities without impulses; returns the input of forces on bodies, if any."""
        scene, after, stages, drives = self._scene, self._vectors.after, self._stages, self._drives
        if stages and drives:
            stages.drive = lambda: drives.drive_stage(stages.progress, after["motors"], after["motor_work"])
        loads = self._kick.write(scene.external, scene.step, drives.prepare if drives else None)
        problem = fields(**{name: after[name].at(0) for name in _OF_PROBLEM})
        self.sweep.builder.loop(_no_contact, problem=problem)
        return loads

    def _provide(self, windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        """Adds the fields that passes see of clusters besides their own memory."""
        trees = [self._layout.tree_of_cluster(k) for k in clusters]
        step = constants(np.full(len(clusters), self._scene.step))
        windows.cluster |= {"step": step, "dv": self._columns.answers(clusters)}
        windows.cluster |= self._columns.gates.fields(clusters)
        if self._midpoint:
            windows.cluster |= {"near": self._halves.near(trees), "gone": self._halves.first(trees)}
        windows.cluster |= self._kick.provided(len(clusters))
        self._drift.provide(windows, shape, clusters)
        if self._stages:
            self._stages.provide(windows, shape, clusters)

    def solve_contacts(self) -> Impulses:
        """Writes the steps that compute impulses of contacts, joints and actuators, and velocities with them."""
        sweep, scene, layout, after = self.sweep, self._scene, self._layout, self._vectors.after
        friction = friction_impulses(sweep.robot, layout.joints, scene.step)
        driven = self._drives.rows if self._drives else []
        bounds = sweep.builder.scratch("bounds", len(friction) + len(driven)) if driven else None
        # Results have impulses of limits and of friction apart, and none of actuators: then λ is a vector of its own.
        impulse_vector = None if layout.joints or driven else after["impulses"]
        self._blocks = blocks = InteractingBlocks(
            sweep.builder,
            self._columns,
            layout.contact_rows,
            self._candidates.friction,
            bounds or friction,
            impulse_vector,
            rounding=_ROUNDING / (sum(body.mass for body in sweep.robot.bodies.values()) + TINY),
        )
        context = StepContext(sweep, scene, layout, self._halves, self._candidates, self._columns, blocks)
        if self._drives and self._adhering:
            self._adhesions = Adhesions(sweep.robot, scene.step, self._candidates, blocks, self._drives.forces)
        impulses = Impulses(context, self._vectors, self._adhesions)
        if self._drives and bounds:
            self._drives.measure(blocks, self._columns, bounds, friction)
        gated = {id(sweep.shapes[number][0]) for number in self._columns.gates.bodies}
        apply_impulses = applying(self._kick.located, gated)
        impulses.write(lambda: sweep.outward(apply_impulses))
        self._halves.end(after["impulses"], None if impulses.impacts else blocks)
        return impulses

    def report_actuators(self, impulses: Impulses | None) -> None:
        """Writes the steps that compute the forces and the work of actuators."""
        after, joints = self._vectors.after, len(self._layout.joints)
        if self._drives and self._scheme:
            first, acting = self._layout.contact_rows.total + joints, impulses and impulses.position_impulses
            weight = self._scheme.weights[0]
            self._drives.report_first_stage(weight, acting, first, after["motors"], after["motor_work"])
        elif self._drives:
            self._drives.report(self._blocks, joints, after["motors"], after["motor_work"])
            self._drives.check_limits(after["motors"], after["residual"])
            if self._adhesions:
                self._adhesions.report(after["motors"], after["motor_work"])
            elif self._adhering:
                leave_idle(self.sweep.builder, self.sweep.robot, after["motors"])

    def drift_after_impulses(self, impulses: Impulses | None, loads: Buffer | None) -> None:
        """Writes the steps that compute positions and velocities where the step ends.

        Args:
            impulses: the impulses of the step; None if nothing can be stopped.
            loads: the input of forces on bodies, if there is one.
        """
        jump = impulses.jump if impulses else None
        if not self._stages:
            self._drift.end(jump)
        elif impulses:
            self._stages.write(impulses.stage_contacts, impulses.position_impulses, jump, loads)
        else:
            self._stages.write(None, None, None, loads)

    def check(self) -> None:
        """Writes the steps that make the result invalid where a loop passes a dead point or is open."""
        vectors = self._vectors
        watch_dead_points(self.sweep, self._scene, vectors.before["q"], vectors.after["q"])
        vectors.invalidate_open_loops()


def _sweep(robot: Robot, scene: ContactScene, candidates: Candidates) -> Sweep[StepBody, StepCluster]:
    """Begins the program, with the memory of passes."""
    higher = scene.integrator in SCHEMES
    loaded = scene.external or bool(robot.elements) or (higher and bool(candidates.pairs))
    return Sweep(
        robot,
        "contact_step",
        body=StageBody if higher else StepBody,
        cluster=StepCluster,
        loaded=loaded,
        leaf_bodies=True,
        leaf_clusters=True,
        tangent=True,
        looped=not (higher or loaded),
        oriented=candidates.links,
    )


def _no_contact(problem: View) -> None:
    for name in _OF_PROBLEM:
        setattr(problem, name, np.array(0.0))
