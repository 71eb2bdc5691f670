"""A step with contact as one program: semi-implicit Euler, [002, §2.3] on clusters, for lanes and threads.

What stepping.py does in NumPy, without the mass matrix and in one go:

1. accelerations without contact by C-ABA, velocities u = v + h (a + ω × v), and velocities of the links that may touch;
2. candidate contacts, limits and dry friction of joints: gaps, and forces by unit of impulse;
3. these forces climb to the ground (columns.py), which gives A = J H⁻¹ Jᵀ as a product [001, eq. 62; 003, eq. 27];
4. sweeps over the blocks of the contact problem (blocks.py, relaxation.py);
5. velocities v⁺ = u + H⁻¹ Jᵀ λ, outwards from what impulses do to each cluster by itself;
6. positions q ⊕ h v⁺ (advance.py), and velocities after impacts that rebound (impact.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.algorithms import aba
from coupler.algorithms.articulated import articulated, propagated, response
from coupler.algorithms.factorization import acceleration
from coupler.contact.advance import advance
from coupler.contact.blocks import Blocks
from coupler.contact.candidates import Candidates
from coupler.contact.columns import ColumnBody, ColumnCluster, Columns, Passage, Start
from coupler.contact.damping import damped
from coupler.contact.floating import frame_rotation_bias
from coupler.contact.impact import Impacts
from coupler.contact.joint_blocks import JointBlocks
from coupler.contact.kernels import copy
from coupler.contact.passing_program import Passing
from coupler.contact.rebound import Rebounds
from coupler.contact.refinement import Refinement
from coupler.contact.relaxation import Relaxation
from coupler.contact.scene import ContactScene, Layout, friction_impulses, travelling
from coupler.graph import Buffer, Program, View, constants, fields
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import ClusterWindows, Coordinate, Shape, Sweep, Visit, add_loads, entry, provided, symmetric

__all__ = ["contact_step_program"]


class StepBody(aba.BodyMemory, ColumnBody):
    """What a body remembers: what it does in C-ABA, its pose, its velocity u without impulses, and what they change."""

    u, du, E, r = entry(6), entry(6), entry((3, 3)), entry(3)


class StepCluster(aba.ClusterMemory, ColumnCluster):
    """What a cluster remembers: that of C-ABA, D⁻¹, velocities, and the length of the step."""

    Dinv = entry(lambda shape: symmetric(shape.freedoms))
    u, v_next = Coordinate(), Coordinate()
    dv = provided()  # what impulses do to its joints, if all that carries it stays
    step = provided()


Node = Visit[StepBody, StepCluster]

_ROUNDS = 30  # how often candidates can join; each time those do that the others' impulses have moved into contact


def contact_step_program(robot: Robot, scene: ContactScene) -> Program:
    """The program (state, tau) → after of a step, laid out as `Layout` tells.

    Further inputs, in this order: the contacts that it cannot find by itself (see `Candidates`), and f_ext.
    """
    candidates, layout, h = Candidates(robot, scene.pairs), Layout(robot, scene), scene.step
    robot = damped(robot, h)
    sweep, located = _sweep(robot, scene, candidates)
    given = sweep.builder.input("given", candidates.given) if candidates.given else None
    parts = _Parts(sweep, layout)
    v_next = sweep.vectors["v_next"] = parts["v"]

    stopped = bool(candidates.starts or layout.joints)
    columns = Columns(sweep, [*candidates.starts, *(Start(1, joint=joint) for joint in layout.joints)])

    def provide(windows: ClusterWindows, shape: Shape, clusters: Any) -> None:
        windows.cluster["step"] = constants(np.full(len(clusters), h))
        windows.cluster["dv"] = columns.answers(clusters)

    sweep.provide = provide
    if sweep.loaded:
        add_loads(sweep, scene.external)
    _move_freely(sweep, located, stopped)
    told = {name: parts[name].at(0) for name in ("residual", "sweeps", "iterations")}
    sweep.builder.loop(_no_contact, problem=fields(**told))
    impulses = None
    if stopped:
        bounds = friction_impulses(robot, layout.joints, h)
        blocks = Blocks(sweep.builder, columns, candidates.friction, bounds)
        impulses = _Impulses(sweep, scene, layout, candidates, blocks, columns, parts)
        impulses.write(given, _applying(located))
    advance(sweep, h, sweep.vectors["q"], v_next, parts["q"])
    if impulses is not None and impulses.impacts:
        impulses.impacts.end(sweep.vectors["q"], parts["q"])
    parts.tell()
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
        blocks: Blocks,
        columns: Columns,
        parts: _Parts,
    ) -> None:
        self.sweep, self.scene, self.layout, self.parts = sweep, scene, layout, parts
        self.candidates, self.blocks, self.columns = candidates, blocks, columns
        self.relaxation, self.joints = Relaxation(blocks), JointBlocks(sweep, layout, blocks, scene.recovery)
        self.refinement = Refinement(blocks, columns, self.relaxation)
        self.rebounds = Rebounds(sweep.builder, scene, blocks) if parts.pending.size else None
        told = {name: parts[name] for name in ("gaps", "v", "residual", "sweeps", "iterations")}
        self.impacts = Impacts(sweep, scene, blocks, told) if travelling(scene.pairs) else None
        passing = Passing(sweep, scene, candidates, columns, blocks)
        self.passing = passing if passing.contacts and not self.rebounds else None  # which turn where they are

    def write(self, given: Buffer | None, apply_impulses: Callable[[Node], None]) -> None:
        """Writes them.

        Args:
            given: contacts that the program is given; see `Candidates`.
            apply_impulses: the pass from x to velocities.
        """
        layout, parts, builder, blocks = self.layout, self.parts, self.sweep.builder, self.blocks
        told = {name: parts[name] for name in ("gaps", "points", "frames")} | {"b": blocks.b}
        told |= self.rebounds.told if self.rebounds else self.impacts.told if self.impacts else {}
        self.candidates.measure(self.sweep, self.columns, self.scene, given, told)
        self.joints.measure(parts.start)
        if self.rebounds:
            self.rebounds.begin(parts["gaps"], parts.pending, parts["pending"])
        if self.impacts:
            self.impacts.begin()
        copy(builder, parts.start, blocks.impulses, 3 * layout.contacts)
        blocks.begin()
        if self.passing:
            self.passing.begin(parts["gaps"])
        with builder.repeat(until=_none_joins, at_most=_ROUNDS, blocks=fields(joining=blocks.joining.at(0))):
            self.columns.climb(climb, blocks.flags["waiting"])
            blocks.join()
            self.relaxation.solve(self.scene.tolerance, self.scene.most, parts["residual"], parts["sweeps"])
            self.refinement.solve(self.scene.tolerance, parts["residual"], parts["iterations"])
            if self.rebounds:
                self.rebounds.end(parts["pending"])
            self.sweep.outward(apply_impulses)
            but, limits = self.passing.contacts if self.passing else (), (parts["residual"], self.scene.tolerance)
            self.candidates.look(self.sweep, self.columns, blocks, *limits, but)
            if self.passing:
                self.passing.look(parts["residual"], told)
            self.joints.look(parts["residual"], self.scene.tolerance)
            if self.impacts:
                self.impacts.write(self.relaxation, self.refinement, lambda: self.sweep.outward(apply_impulses))
        if self.rebounds:
            self.rebounds.add_given()
        copy(builder, blocks.impulses, parts["impulses"], 3 * layout.contacts)
        self.joints.end(parts["impulses"])


class _Parts:
    """The parts of what a step leads to, as buffers of the program; q, v and impulses before the step.

    A call with few and plain arrays is what Python makes fastest: so parts are taken from one vector and put into one.
    """

    def __init__(self, sweep: Sweep[Any, Any], layout: Layout) -> None:
        self._builder, self._places = sweep.builder, layout.places
        self._after = sweep.result("after", layout.size)
        self.start = sweep.builder.scratch("start", layout.rows)
        place = layout.places["pending"]
        self.pending = sweep.builder.scratch("pending", place.stop - place.start)
        before = {"q": sweep.vectors["q"], "v": sweep.vectors["v"], "impulses": self.start, "pending": self.pending}
        for name, buffer in before.items():
            if not buffer.size:
                continue
            copy(sweep.builder, sweep.vectors["state"], buffer, buffer.size, first=layout.places[name].start)
        sizes = {name: place.stop - place.start for name, place in layout.places.items()}
        self._buffers = {name: sweep.builder.scratch(f"next_{name}", size) for name, size in sizes.items()}

    def __getitem__(self, name: str) -> Buffer:
        return self._buffers[name]

    def tell(self) -> None:
        """Writes the steps that put all parts into the result."""
        for name, buffer in self._buffers.items():
            if buffer.size:
                copy(self._builder, buffer, self._after, buffer.size, to=self._places[name].start)


def _sweep(
    robot: Robot, scene: ContactScene, candidates: Candidates
) -> tuple[Sweep[StepBody, StepCluster], dict[int, set[int]]]:
    """The passes' memory, and which bodies of each shape, by its identity, have poses and velocities in the world."""
    sweep = Sweep(
        robot,
        "contact_step",
        body=StepBody,
        cluster=StepCluster,
        paired=True,
        loaded=scene.external or bool(robot.elements),
        everybody=True,
        remembering=True,
        oriented={*aba.pulled_links(robot), *candidates.links},
    )
    sweep.input("state", Layout(robot, scene).state)
    sweep.input("tau", robot.nv)
    sweep.vectors["q"] = sweep.builder.scratch("q", robot.nq)
    for name in ("v", "a", "u"):
        sweep.vector(name)
    located = {
        id(shape): {i for k in clusters for i, link in enumerate(sweep.instances[k].links) if link in candidates.links}
        for shape, clusters in sweep.shapes
    }
    return sweep, located


def _move_freely(sweep: Sweep[StepBody, StepCluster], located: dict[int, set[int]], answering: bool) -> None:
    """Writes the passes to u = v + h (a + ω × v), and to velocities of links with that.

    Args:
        sweep: the program.
        located: for each shape the bodies that have poses and velocities in the world.
        answering: whether impulses will come.
    """

    def outward(cluster: Node) -> None:
        """Poses and velocities. [001, eq. 33]"""
        aba.outward(cluster)
        for body in cluster.bodies if answering and not sweep.loaded else ():
            if body.carries or body.number in located[id(cluster.shape)]:
                body.memory.E, body.memory.r, body.memory.v = body.pose.E, body.pose.r, body.v

    def inward(cluster: Node) -> None:
        """Articulated inertias and bias forces. [001, eq. 49, 55, 56]"""
        aba.inward(cluster)
        if answering:
            D = articulated(cluster).D
            cluster.memory.Dinv = Cholesky(D).solve(np.eye(len(D)))

    def accelerate(cluster: Node) -> None:
        """Accelerations [001, eq. 33, 52], and velocities without impulses."""
        aba.accelerate(cluster)
        u = cluster.v + cluster.memory.step * (cluster.memory.a + rotation_biases(cluster))
        cluster.memory.u = cluster.memory.v_next = u
        for body in cluster.bodies if answering else ():
            if body.carries or body.number in located[id(cluster.shape)]:
                own = body.S @ u
                body.memory.u = own if body.output.grounded else own + body.Xo @ body.output.memory.u

    sweep.outward(outward)
    sweep.inward(inward)
    sweep.outward(accelerate)


def rotation_biases(cluster: Node) -> Any:
    """ω × v of floating bodies (see `frame_rotation_bias`), and zeros for all other joints."""
    biases = []
    for i, (kind, free) in enumerate(zip(cluster.shape.kinds, cluster.shape.free, strict=True)):
        if kind.floats and len(free) == 6:
            biases += [*frame_rotation_bias(cluster.views.joints[i].v)]
        else:
            biases += [0.0] * len(free)
    return np.array(biases)


def climb(cluster: Node, passage: Passage) -> None:
    """Forces by unit of impulse, as they are felt beyond a cluster: χᵀ := Xᵀ Lᵀ χᵀ, Lᵀ = 1 − U D⁻¹ Sᵀ. [001, eq. 62]"""
    active = [cluster.bodies[i] for i in passage.active]
    pushed = [] if passage.entry is None else [cluster.G[passage.entry][:, None]]
    z = sum((body.S.T @ body.memory.P for body in active), sum(pushed, np.zeros((1, 1))))
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


def _no_contact(problem: View) -> None:
    problem.residual = problem.sweeps = problem.iterations = np.array(0.0)
