"""A step with contact as one program: semi-implicit Euler, [002, §2.3] on clusters, for lanes and threads.

What stepping.py does in NumPy, without the mass matrix and in one go:

1. accelerations without contact by C-ABA, velocities u = v + h (a + ω × v), and velocities of the links that may touch;
2. candidate contacts, limits and dry friction of joints: gaps, and forces by unit of impulse;
3. these forces climb to the ground (columns.py), where they meet in A = J H⁻¹ Jᵀ [001, eq. 62; 003, eq. 27];
4. sweeps over the blocks of the contact problem (relaxation.py);
5. velocities v⁺ = u + H⁻¹ Jᵀ λ, outwards from what impulses do to each cluster by itself;
6. positions q ⊕ h v⁺ (advance.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.algorithms import aba
from coupler.algorithms.aba import alone, met
from coupler.algorithms.factorization import moved
from coupler.algorithms.gathering import gathered
from coupler.contact.advance import advance
from coupler.contact.candidates import Candidates
from coupler.contact.damping import damped
from coupler.contact.floating import frame_rotation_bias
from coupler.contact.joint_blocks import JointBlocks
from coupler.contact.kernels import clear, copy
from coupler.contact.rebound import Rebounds
from coupler.contact.relaxation import Blocks, Relaxation
from coupler.contact.scene import ContactScene, Layout, friction_impulses
from coupler.graph import Buffer, Program, View, constants, fields
from coupler.linear import Cholesky
from coupler.model import Free, Robot
from coupler.passes import Cluster, Columns, Rise, Shape, Start, Sweep, add_loads, symmetric

__all__ = ["contact_step_program"]


def contact_step_program(robot: Robot, scene: ContactScene) -> Program:
    """The program (state, tau) → after of a step, laid out as `Layout` tells.

    Further inputs, in this order: the contacts that it cannot find by itself (see `Candidates`), and f_ext.
    """
    candidates, layout, h = Candidates(robot, scene.pairs), Layout(robot, scene), scene.step
    robot = damped(robot, h)
    bounds = friction_impulses(robot, layout.joints, h)
    blocks = Blocks(candidates.friction, bounds)
    sweep, located = _sweep(robot, scene, candidates)
    given = sweep.builder.input("given", candidates.given) if candidates.given else None
    parts = _Parts(sweep, layout)
    v_next = sweep.vectors["v_next"] = parts["v"]
    sweep.extra = lambda shape, instances, clusters: {"step": constants(np.full(len(clusters), h))}

    if sweep.loaded:
        add_loads(sweep, scene.external)
    _move_freely(sweep, located, bool(blocks.rows))
    if blocks.rows:
        _Impulses(sweep, scene, layout, candidates, blocks, parts, given).write()
    else:
        sweep.builder.loop(_no_contact, here=fields(**{name: parts[name].at(0, 1) for name in ("residual", "sweeps")}))
        sweep.outward(keep)
    advance(sweep, h, sweep.vectors["q"], v_next, parts["q"])
    parts.tell()
    return sweep.build()


class _Impulses:
    """The steps from velocities without impulses to those with them.

    Joints that have limits and no friction are left out at first. Only where a velocity takes one of them beyond, the
    whole problem is set up and solved.
    """

    def __init__(
        self,
        sweep: Sweep,
        scene: ContactScene,
        layout: Layout,
        candidates: Candidates,
        blocks: Blocks,
        parts: _Parts,
        given: Buffer | None,
    ) -> None:
        self.sweep, self.scene, self.layout, self.parts = sweep, scene, layout, parts
        self.candidates, self.given = candidates, given
        self.whole = Relaxation(sweep.builder, blocks)
        self.rebounds = Rebounds(sweep.builder, scene, self.whole) if parts.pending.size else None
        deferred = 0 if self.rebounds else layout.deferred
        self.part = Relaxation(sweep.builder, blocks.without(deferred), within=self.whole) if deferred else self.whole
        self.columns = Columns(sweep, [*candidates.starts, *(Start(1, joint=joint) for joint in layout.joints)])
        self.joints = JointBlocks(sweep, layout, self.whole, blocks.bounds)
        self.groups = layout.contacts + len(layout.joints)
        self.at_once = self.groups - deferred  # groups of columns that take part at first
        sweep.vector("dv")

    def write(self) -> None:
        """Writes them."""
        layout, parts, builder = self.layout, self.parts, self.sweep.builder
        told = {name: parts[name] for name in ("gaps", "points", "frames")} | {"b": self.whole.b}
        told |= self.rebounds.told if self.rebounds else {}
        self.candidates.measure(self.sweep, self.columns, self.scene, self.given, told)
        self.joints.measure()
        if self.rebounds:
            self.rebounds.begin(parts["gaps"], parts.pending)
        _copy_first(self.sweep, parts.start, self.whole.impulses, 3 * layout.contacts)
        at_once = self.at_once - layout.contacts
        deferred = range(at_once, len(layout.joints))
        self.joints.begin(parts.start, range(at_once))
        self.columns.climb(climb, range(self.at_once))
        if not deferred:
            self._solve(self.part, self.at_once)
        else:
            self.joints.defer(deferred)
            self._solve(self.part, self.at_once)
            self.joints.look(deferred)
            beyond = fields(beyond=self.joints.beyond.at(0), tolerance=constants([self.scene.tolerance]))
            with builder.repeat(until=_within, at_most=1, here=beyond):
                self.joints.begin(parts.start, deferred)
                self.columns.climb(climb, range(self.at_once, self.groups))
                self._solve(self.whole, self.groups)
        _copy_first(self.sweep, self.whole.impulses, parts["impulses"], 3 * layout.contacts)
        self.joints.end(parts["impulses"], self.part.A, int(self.columns.firsts[self.at_once]))

    def _solve(self, relaxation: Relaxation, groups: int) -> None:
        """A of the first groups of columns, the impulses, and v⁺."""
        sweep, parts = self.sweep, self.parts
        self.columns.meet(relaxation.A, groups)
        if self.rebounds:
            self.rebounds.spread()
        relaxation.solve(self.scene.tolerance, self.scene.most, parts["residual"], parts["sweeps"])
        if self.rebounds:
            self.rebounds.end(parts["pending"])
        sweep.builder.loop(clear, here=fields(target=sweep.vectors["dv"].at(0, sweep.robot.nv)))
        self.columns.settle(push, groups, relaxation.impulses)
        sweep.outward(give_way)


class _Parts:
    """The parts of what a step leads to, as buffers of the program; q, v and impulses before the step.

    A call with few and plain arrays is what Python makes fastest: so parts are taken from one vector and put into one.
    """

    def __init__(self, sweep: Sweep, layout: Layout) -> None:
        self._builder, self._places = sweep.builder, layout.places
        self._after = sweep.result("after", layout.size)
        self.start = sweep.builder.scratch("start", layout.rows)
        place = layout.places["pending"]
        self.pending = sweep.builder.scratch("pending", place.stop - place.start)
        before = {"q": sweep.vectors["q"], "v": sweep.vectors["v"], "impulses": self.start, "pending": self.pending}
        for name, buffer in before.items():
            if not buffer.size:
                continue
            source = sweep.vectors["state"].at(layout.places[name].start, buffer.size)
            sweep.builder.loop(copy, here=fields(source=source, target=buffer.at(0, buffer.size)))
        sizes = {name: place.stop - place.start for name, place in layout.places.items()}
        self._buffers = {name: sweep.builder.scratch(f"next_{name}", size) for name, size in sizes.items()}

    def __getitem__(self, name: str) -> Buffer:
        return self._buffers[name]

    def tell(self) -> None:
        """Writes the steps that put all parts into the result."""
        for name, buffer in self._buffers.items():
            if buffer.size:
                target = self._after.at(self._places[name].start, buffer.size)
                self._builder.loop(copy, here=fields(source=buffer.at(0, buffer.size), target=target))


def _sweep(robot: Robot, scene: ContactScene, candidates: Candidates) -> tuple[Sweep, dict[int, set[int]]]:
    """The passes' memory, and which bodies of each shape, by its identity, have poses and velocities in the world."""
    loaded = scene.external or bool(robot.elements)
    body = {"v": 6, "u": 6} | ({} if loaded else {"E": (3, 3), "r": 3})
    sweep = Sweep(
        robot,
        "contact_step",
        body=body,
        left={"IA": symmetric(6), "pA": 6},
        after={"a": 6},
        pair={"IA": (6, 6)},
        cluster=memory_of,
        loaded=loaded,
        everybody=True,
        remembering=True,
        turning={*aba.pulled(robot), *candidates.links},
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


def memory_of(shape: Shape) -> dict[str, Any]:
    """What a cluster remembers: that of C-ABA, and D⁻¹."""
    return {**aba.memory_of(shape), "Dinv": symmetric(len(shape.independent))}


def _move_freely(sweep: Sweep, located: dict[int, set[int]], answering: bool) -> None:
    """Writes the passes to u = v + h (a + ω × v), and to velocities of links with that.

    Args:
        sweep: the program.
        located: for each shape the bodies that have poses and velocities in the world.
        answering: whether impulses will come.
    """

    def outward(cluster: Cluster) -> None:
        """Poses and velocities. [001, eq. 33]"""
        aba.outward(cluster)
        for body in cluster.bodies if answering and not sweep.loaded else ():
            if body.carries or body.number in located[id(cluster.shape)]:
                body.memory.E, body.memory.r, body.memory.v = body.pose.E, body.pose.r, body.v

    def inward(cluster: Cluster) -> None:
        """Articulated inertias and bias forces. [001, eq. 49, 55, 56]"""
        aba.inward(cluster)
        if answering:
            D = gathered(cluster).D
            cluster.memory.Dinv = Cholesky(D).solve(np.eye(len(D)))

    def accelerate(cluster: Cluster) -> None:
        """Accelerations [001, eq. 33, 52], and velocities without impulses."""
        aba.accelerate(cluster)
        u = cluster.v + cluster.here.step * (cluster.read("a") + rotation_biases(cluster))
        cluster.write("u", u)
        for body in cluster.bodies if answering else ():
            if body.carries or body.number in located[id(cluster.shape)]:
                own = body.S @ u
                body.memory.u = own if body.output.grounded else own + body.Xo @ body.output.memory.u

    sweep.outward(outward)
    sweep.inward(inward)
    sweep.outward(accelerate)


def rotation_biases(cluster: Cluster) -> Any:
    """ω × v of floating bodies (see `frame_rotation_bias`), and zeros for all other joints."""
    found = []
    for i, (kind, free) in enumerate(zip(cluster.shape.kinds, cluster.shape.free, strict=True)):
        if isinstance(kind, Free) and len(free) == 6:
            found += [*frame_rotation_bias(getattr(cluster.here, f"v{i}"))]
        else:
            found += [0.0] * len(free)
    return np.array(found)


def climb(cluster: Cluster, rise: Rise) -> None:
    """Forces by unit of impulse, as they are felt beyond a cluster: χᵀ := Xᵀ Lᵀ χᵀ, Lᵀ = 1 − U D⁻¹ Sᵀ. [001, eq. 62]"""
    active = [cluster.bodies[i] for i in rise.active]
    pushed = [] if rise.entry is None else [cluster.G[rise.entry][:, None]]
    z = sum((body.S.T @ body.memory.P for body in active), sum(pushed, np.zeros((1, 1))))
    cluster.memory.z, cluster.memory.y = z, cluster.memory.Dinv @ z
    for output, begins in zip(cluster.outputs, rise.begins, strict=True):
        if output.grounded:
            continue
        own = slice(6 * output.number, 6 * output.number + 6)
        felt = -cluster.memory.Y[:, own].T @ z
        if alone(cluster):
            (body,) = cluster.bodies
            felt = body.Xo.transform_force(body.memory.P + felt if active else felt)
        else:
            felt = sum((body.Xo.transform_force(body.memory.P) for body in active if body.output is output), felt)
        output.memory.P = felt if begins else output.memory.P + felt


def push(cluster: Cluster, impulses: Any) -> None:
    """What impulses do to a cluster's joints, if all that carries it stays: D⁻¹ z λ."""
    cluster.write("dv", cluster.read("dv") + cluster.memory.y @ impulses)


def give_way(cluster: Cluster) -> None:
    """v⁺: what impulses do to joints, with what they do to all that carries them. [001, eq. 64]"""
    dv = cluster.read("dv")
    if not cluster.outputs[0].grounded:
        dv = dv - cluster.memory.Y @ met(cluster, [output.memory.a for output in cluster.outputs])
    cluster.write("v_next", cluster.read("u") + dv)
    for body in cluster.carriers:
        body.memory.a = moved(body, dv)


def keep(cluster: Cluster) -> None:
    """v⁺ without impulses."""
    cluster.write("v_next", cluster.read("u"))


def _copy_first(sweep: Sweep, source: Buffer, target: Buffer, count: int) -> None:
    if count:
        sweep.builder.loop(copy, here=fields(source=source.at(0, count), target=target.at(0, count)))


def _within(here: View) -> Any:
    return here.beyond <= here.tolerance


def _no_contact(here: View) -> None:
    here.residual = here.sweeps = np.zeros(1)
