"""Velocities after a step without impulses: the effect of forces and inertia on a robot at fixed positions.

    u = v + h H⁻¹ (τ − c(v̄)),    v̄ = v for Euler's method, (v + u)/2 for the midpoint rule

With the midpoint rule u stands on both sides. So it is found in rounds: the first one takes v̄ = v, each of the others
the v̄ of the round before. Rounds end where the next one would change nothing that counts.

Near a contact, impulses undo most of what gravity and motors do, but they come later. So a tree of bodies that is near
one takes v̄ = v + (u − u°)/2, where u° is u of the same robot at rest: a robot at rest then stays so. Where nothing is
fast, v̄ = v does for such a tree.

c(v̄) needs no articulated inertia: bodies get the accelerations a⁰ that they have where ÿ = 0, and the factors of H
answer what these cost, I a⁰ + v ×* I v [003, eq. 24]. The factors are found once for all rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.algorithms.articulated import propagated, response
from coupler.algorithms.factorization import acceleration
from coupler.contact.floating import frame_rotation_bias
from coupler.contact.scheme import SCHEMES
from coupler.contact.step.inertia import answer, factorise
from coupler.contact.step.memory import StageBody, StepBody, StepCluster, Visited
from coupler.graph import Buffer, Vector, View, fields, may_differ
from coupler.passes import Body, Sweep, TreeRecord, across_joints, add_loads, force_on_joints

TOLERANCE = 1e-13  # what rounds may leave, relative to the largest velocity, at least 1: a million steps lose 1e-7
_TOUCHING = 1e5  # near contacts a step is of first order, and rounds may leave so many times as much
_SLOW = 1e-3  # h |v|, rad or m, below which v̄ = v does near contacts
_ROUNDS = 40  # at most
_CONTRACTION = 4.0  # h |v̄| times this: how much smaller the second round's change is expected to be than the first's
_SLOWEST = 0.9  # the largest ratio of two rounds' changes from which an end is extrapolated


class Kick:
    """The passes from velocities before a step to velocities after it without impulses.

    Clusters remember the result as `u`, and as `v_next`, to which impulses are added.

    Args:
        links: the links whose poses and velocities in the world are asked for, because they may touch.
        integrator: the method; see `ContactScene`.
        touching: whether trees of bodies can be near contacts.
        rounds: 1, gets the number of rounds.

    Attributes:
        located: for each shape, by its identity, the bodies that have poses and velocities in the world.
    """

    def __init__(
        self,
        sweep: Sweep[StepBody, StepCluster],
        links: set[int],
        integrator: str,
        touching: bool,
        rounds: Vector,
    ) -> None:
        self._sweep, self._midpoint, self._ahead = sweep, integrator == "midpoint", integrator in SCHEMES
        self._damped = any(may_differ(link.kind.damping) for link in sweep.robot.tree.links)
        self._touching = touching and self._midpoint
        if self._touching:
            sweep.vector("at_rest")
        self._progress = sweep.builder.scratch("kick", 6)
        self._rounds = rounds
        self.located = {
            id(shape): {i for k in clusters for i, link in enumerate(sweep.instances[k].links) if link in links}
            for shape, clusters in sweep.shapes
        }

    def provided(self, count: int) -> dict[str, Any]:
        """The fields that `count` clusters see of the rounds, which all clusters share."""
        names = enumerate(("change", "fastest", "fastest_near"))
        return {name: self._progress.at([i] * count) for i, name in names} | {"rounds": self._rounds.at([0] * count)}

    def write(self, external: bool, h: float, drive: Callable[[], None] | None = None) -> Buffer | None:
        """Writes the passes; returns the input of forces on bodies, if there is one.

        Args:
            external: whether forces on bodies are a further input.
            h: the step's length, s.
            drive: writes the steps that add forces of actuators to those at joints.
        """
        sweep, builder = self._sweep, self._sweep.builder
        if sweep.trees:
            sweep.trees.place(sweep.vectors["q"], closed=self._midpoint)
        sweep.outward(self._begin)
        if drive:
            drive()
        loads = add_loads(sweep, external)
        names = enumerate(("change", "fastest", "fastest_near", "before", "remaining", "step"))
        progress = fields(rounds=self._rounds.at(0), **{name: self._progress.at(i) for i, name in names})
        builder.loop(_begin_rounds(h), progress=progress)
        if sweep.trees:
            sweep.trees.check()
            sweep.trees.weigh()
            sweep.trees.push("bias")
            sweep.inward(factorise)  # in a pass of its own: kernels that are too long compile to slow code
            sweep.inward(self._answer_first)
        else:
            sweep.inward(self.factorise_and_answer)
        sweep.outward(self._accelerate)
        if not self._midpoint:
            return loads
        builder.loop(_end_round, progress=progress)
        with builder.repeat(until=_settled, at_most=_ROUNDS, progress=progress):
            builder.loop(_begin_round, progress=progress)
            sweep.outward(move, carriers=True, new_velocities=True)
            if sweep.trees:
                sweep.trees.push("bias")
            sweep.inward(self._answer)
            sweep.outward(self._accelerate)
            builder.loop(_end_round, progress=progress)
        return loads

    def _begin(self, cluster: Visited) -> None:
        """Computes positions, and the velocities of joints and bodies with which the first round begins."""
        memory = cluster.memory
        if cluster.tangent:
            memory.start = cluster.G.T @ np.concatenate([joint.w for joint in cluster.views.joints])
            tau = [
                joint.tau_given for joint, free in zip(cluster.views.joints, cluster.shape.free, strict=True) if free
            ]
            memory.tau = cluster.G[cluster.shape.independent].T @ np.concatenate(tau)
        memory.v = memory.start
        if self._touching:
            memory.at_rest = memory.start
        cluster.remember_positions()
        move(cluster)
        for _, _, pair in cluster.pairs:
            pair.IA = np.zeros((6, 6))
        for body in cluster.bodies if not self._sweep.loaded else ():
            if body.carries or self._is_located(body):
                body.memory.E, body.memory.r = body.pose.E, body.pose.r
        for body in cluster.bodies:
            if self._is_located(body):
                body.memory.start = body.v

    def _is_located(self, body: Body[StepBody]) -> bool:
        return body.number in self.located[id(body.cluster.shape)]

    def factorise_and_answer(self, cluster: Visited) -> None:
        """Computes the factors of H, and `y0` of the first round."""
        factorise(cluster)
        self._answer_first(cluster)

    def _answer_first(self, cluster: Visited) -> None:
        self._answer(cluster, first=True)

    def _answer(self, cluster: Visited, first: bool = False) -> None:
        """Computes y0: accelerations of joints if their carriers did not accelerate. [001, eq. 34, 56]"""
        memory, bodies = cluster.memory, cluster.bodies
        passive = cluster.springs
        if self._midpoint and self._damped:
            # Dampers feel v, and the rest of v⁺ by armatures (see damping.py). In the first round v̄ is v. G is that
            # of the middle, where loops have turned the joints by half of what their bias adds in the step.
            dampers, ahead = np.concatenate([body.model.damping for body in bodies]), 0.5 * memory.step * cluster.g
            passive = passive + dampers * (ahead if first else ahead + cluster.G @ (cluster.v - memory.start))
        f: dict[Any, Any] = {}
        if cluster.looped:
            needed = TreeRecord(memory.view).bias_forces + cluster.armatures * cluster.g
            u = memory.tau + cluster.G.T @ (passive - needed)
        else:
            f = {body: body.inertia @ (body.memory.bias if body.carries else _bias(body)) + body.p for body in bodies}
            f |= {body: f[body] + body.memory.f for body in cluster.carriers}
            z = force_on_joints(cluster, f, cluster.armature_bias)
            u = memory.tau + cluster.G.T @ passive - z
        memory.y0 = answer(cluster, u)
        for output in cluster.outputs:
            if not output.grounded:
                carried = {body: f[body] for body in f if body.output is output}
                felt = propagated(cluster, output, memory.Y, carried, -u)
                output.collect(f=felt + TreeRecord(memory.view).force if cluster.looped else felt)

    def _accelerate(self, cluster: Visited) -> None:
        """Computes accelerations [001, eq. 33, 52], and velocities after the step without impulses."""
        memory, ydd = cluster.memory, accelerated(cluster)
        u = memory.start + memory.step * (ydd + rotation_biases(cluster))
        if self._midpoint:
            self._go_between(cluster, u)
        memory.u = memory.v_next = u
        for body in cluster.bodies:
            if body.carries or self._is_located(body):
                relative = across_joints(body, u)
                body.memory.u = relative if body.output.grounded else relative + body.Xo @ body.output.memory.u
            if self._ahead and self._is_located(body):
                fall = np.concatenate([np.zeros(3), body.memory.E @ cluster.gravity])
                a = acceleration(body, ydd) + (body.memory.bias if body.carries else _bias(body)) + fall
                StageBody(body.memory.view).ahead = body.memory.start + memory.step * a

    def _go_between(self, cluster: Visited, u: Any) -> None:
        """Computes v̄ for the next round, and by how much it differs from this round's."""
        memory, v_used = cluster.memory, cluster.v
        v, weight, speeds = 0.5 * (memory.start + u), 1.0, np.abs(u)
        if self._touching:
            near, first, second = memory.near > 0.0, memory.rounds < 1.5, memory.rounds < 2.5
            # The first round gives u, which is kept in place of u° until the second, of a robot at rest, gives that.
            at_rest, taken = np.where(second, u, memory.at_rest), np.where(second, memory.at_rest, u)
            v = np.where(near, np.where(first, 0.0, memory.start + 0.5 * (taken - at_rest)), v)
            memory.at_rest = np.where(near, at_rest, memory.start)
            weight = np.where(near, np.where(second, 0.0, 1.0 / _TOUCHING), 1.0)
            for speed in np.abs(memory.start):
                memory.fastest_near = np.maximum(memory.fastest_near, np.where(near, speed, -1.0))
        for new, old, speed in zip(v, v_used, speeds, strict=True):
            memory.change = np.maximum(memory.change, 2.0 * weight * np.abs(new - old))
            memory.fastest = np.maximum(memory.fastest, speed)
        memory.v = v


def accelerated(cluster: Visited) -> Any:
    """ÿ of a cluster: y0, less its response to the accelerations of its carriers. [001, eq. 33, 52]"""
    memory = cluster.memory
    ydd = memory.y0
    if not cluster.grounded:
        ydd = ydd - response(cluster, memory.Y, [output.memory.a for output in cluster.outputs])
    for body in cluster.carriers:
        body.memory.a = acceleration(body, ydd)
    return ydd


def move(cluster: Visited) -> None:
    """Computes velocities v̄ of bodies, and their accelerations for ÿ = 0. [001, eq. 33]"""
    cluster.remember_velocities()
    for body in cluster.carriers:
        body.memory.v, body.memory.bias = body.v, _bias(body)


def _bias(body: Body[StepBody]) -> Any:
    """a⁰ = X a⁰_λ + c: the acceleration of a body for ÿ = 0, with gravity as a ground that accelerates upwards."""
    output = body.output
    above = np.concatenate([np.zeros(3), -body.cluster.gravity]) if output.grounded else output.memory.bias
    return body.Xo @ above + body.c


def rotation_biases(cluster: Visited) -> Any:
    """ω × v of floating bodies (see `frame_rotation_bias`), and zeros for all other joints."""
    biases: list[Any] = []
    for i, (kind, free) in enumerate(zip(cluster.shape.kinds, cluster.shape.free, strict=True)):
        if kind.floats and len(free) == 6 and not cluster.tangent:
            joint = cluster.views.joints[i]
            biases += [*frame_rotation_bias(joint.v, joint.centre)]
        else:
            biases += [0.0] * len(free)
    return np.array(biases)


def _begin_rounds(h: float) -> Any:
    def begin_rounds(progress: View) -> None:
        progress.rounds, progress.step, progress.before = np.array(0.0), np.array(h), np.array(0.0)
        progress.fastest_near = np.array(-1.0)  # nothing is near so far
        _begin_round(progress)

    return begin_rounds


def _begin_round(progress: View) -> None:
    progress.change = np.array(0.0)
    progress.fastest = np.array(1.0)
    progress.rounds += 1.0


def _end_round(progress: View) -> None:
    """Estimates what further rounds would change: a geometric series, with the ratio of the last two changes.

    Near contacts, two more rounds follow the first, for u° and for u between both, unless the first one is enough.
    """
    has_ratio = progress.before > 0.0
    ratio = np.where(has_ratio, progress.change / np.where(has_ratio, progress.before, 1.0), 0.0)
    expected = np.where(has_ratio, ratio, _CONTRACTION * progress.step * progress.fastest)
    expected = np.minimum(expected, _SLOWEST)
    remaining = progress.change * expected / ((1.0 - expected) * progress.fastest)
    fast = (progress.fastest_near * progress.step > _SLOW) | (remaining > TOLERANCE)
    early = (progress.fastest_near > -0.5) & (progress.rounds < 2.5) & (fast | (progress.rounds > 1.5))
    progress.remaining = np.where(early, 1.0, remaining)
    progress.before = np.where(early, 0.0, progress.change)


def _settled(progress: View) -> Any:
    return progress.remaining < TOLERANCE
