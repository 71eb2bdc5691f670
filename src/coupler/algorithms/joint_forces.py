"""Forces in every tree joint and every loop, actuators and constraints apart [001, §V-D], beside C-RNEA [001, §VI].

What a body and all that it carries needs would come through its tree joint if the loops of its cluster were open. With
f of all bodies from C-RNEA, that is carried = f + Σ Xᵀ carried over its children [001, eq. 27, 28], and its joint would
need Sᵀ carried + A q̈ − springs and dampers along its freedoms, s for all joints of a cluster. Loops and couplings give
Kᵀλ of it and actuators τ, those at driven joints only:

    s = P τ + Kᵀ λ,    hence    K_Uᵀ λ = s_U    for the undriven joints U,    and    τ = s − Kᵀ λ    at the others.

Gᵀ s = Gᵀ P τ are the forces of inverse dynamics [001, eq. 29]; where P selects the independent joints, they are τ.
A coupling works along the freedoms of its joints. A loop joint transmits the force Tᵀλ from one body to another, which
the tree joints on the way to that body are spared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.algorithms.bonds import bonds_of_clusters
from coupler.algorithms.rnea import BodyMemory, ClusterMemory, net_force, outward
from coupler.linear import Cholesky, solve
from coupler.model import ModelError, Robot
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.model.wording import counted, listed
from coupler.passes import (
    Body,
    ClusterWindows,
    Indexed,
    Record,
    Shape,
    Sweep,
    Visit,
    add_loads,
    numbered,
    provided,
    tables,
    velocities_of,
)
from coupler.passes.loops import Loops
from coupler.spatial import Transform

__all__ = ["ForceLayout", "joint_forces_layout", "joint_forces_program"]

_IDLE = 1e-7  # relative: joints that move their cluster less than this do not drive it

Places = Mapping[str, Any]  # by name, where something is in a vector: a slice, or a place for a single number


@dataclass(frozen=True, eq=False)
class ForceLayout:
    """Where forces are in the result of the program.

    Attributes:
        joints: total force of each tree joint, 6.
        constraints: the part of it that does no work, 6.
        actuators: of each driven joint, one for each freedom.
        passive: of each tree joint, one for each freedom.
        loops: of each loop joint, 6.
        couplings: of each coupling, by joint, one for each freedom.
        size: of the result.
    """

    joints: Places
    constraints: Places
    actuators: Places
    passive: Places
    loops: Places
    couplings: Mapping[str, Places]
    size: int


class ForceBody(BodyMemory):
    """Of every body, besides what C-RNEA remembers: its frame on its link, and the forces in its joint."""

    axes, origin = provided(), provided()
    total, constraint, actuator, passive = provided(), provided(), provided(), provided()


class BondRecord(Record):
    """Of a loop joint or a coupling: how its axes are turned from standard form, and the force in it."""

    turn, force = provided(), provided()
    force_on = Indexed()  # of a coupling, by body


Node = Visit[ForceBody, ClusterMemory]


def joint_forces_layout(robot: Robot, actuators: tuple[str, ...] = ()) -> ForceLayout:
    """Where forces are in the result of `joint_forces_program`."""
    return _Places(robot, _driven(robot, actuators), bonds_of_clusters(robot)).layout()


def joint_forces_program(robot: Robot, external: bool = False, actuators: tuple[str, ...] = ()) -> Any:
    """The program (q, v, a) → forces in all joints, laid out as `joint_forces_layout` says.

    Args:
        robot: the robot.
        external: whether there are forces on its bodies, too, as a further input `f_ext`.
        actuators: the joints that actuators drive, in clusters of which some are named; in others the independent ones.
    """
    loaded = external or bool(robot.elements)
    sweep = Sweep(robot, "joint_forces", body=ForceBody, cluster=ClusterMemory, loaded=loaded)
    for name, size in (("q", robot.nq), ("v", robot.nv), ("a", robot.nv)):
        sweep.input(name, size)
    driven, bonds = _driven(robot, actuators), bonds_of_clusters(robot)
    places = _Places(robot, driven, bonds)
    forces = sweep.result("forces", places.size)
    if loaded:
        add_loads(sweep, external)
    sweep.outward(outward, carriers=True)
    schedule = sweep.schedule()

    def provide(windows: ClusterWindows, shape: Shape, clusters: Sequence[int]) -> None:
        places.provide(windows, forces, clusters)

    for k in reversed(range(1, len(bonds))):
        entries = np.flatnonzero(driven[robot.tree.velocities_of(robot.cluster_tree.clusters[k].bodies)])
        key = tuple((bond.form, bond.connection) for bond in bonds[k]), tuple(entries.tolist())
        sweep.visit(schedule, transmit, k, bonds[k], entries, key=key, provide=provide)
    schedule.run()
    return sweep.build()


def transmit(cluster: Node, bonds: Sequence[Constraint], driven: np.ndarray) -> None:
    """Forces across all joints of a cluster, and what its output bodies carry of it; see the module's text."""
    cluster.report_gap()
    force, passive = carry(cluster), passive_forces(cluster)
    loops = Loops(cluster, bonds, cluster.views.bonds)
    s = np.concatenate([body.subspace.T @ force[body] for body in cluster.bodies]) - passive
    undriven = np.setdiff1d(np.arange(len(s)), driven)
    tau: Any = s
    if len(undriven):
        multipliers = solve(loops.K[:, undriven].T, s[undriven])
        rest = s - loops.K.T @ multipliers
        tau = np.array([rest[j] if j in driven else 0.0 for j in range(len(s))])
        for body, spared in hold(cluster, loops, multipliers).items():
            force[body] = force[body] - spared
    for body in cluster.bodies:
        S, frame = body.subspace, Transform(body.memory.axes, body.memory.origin)
        along = S @ Cholesky(S.T @ S).solve(S.T @ force[body])  # Tᵃ Sᵀ f [001, eq. 9]
        body.memory.total, body.memory.constraint = (frame.inverse_force(f) for f in (force[body], force[body] - along))
        body.memory.actuator, body.memory.passive = tau[body.entries], passive[body.entries]


def hold(cluster: Node, loops: Loops, multipliers: Any) -> dict[Any, Any]:
    """Tells the forces of loop joints and couplings; gives what loop joints spare the tree joints of bodies."""
    spared: dict[Any, Any] = {}
    ends = np.cumsum([len(constraint.kept) for constraint in loops.constraints])[:-1]
    for i, (constraint, own) in enumerate(zip(loops.constraints, np.split(multipliers, ends), strict=True)):
        bond = BondRecord(cluster.views.bonds[i])
        if not isinstance(constraint, LoopConstraint):
            given = loops.rates[i].T @ own if constraint.kept else np.zeros(int(cluster.shape.starts[-1]))
            for j in constraint.links:
                bond.force_on[j] = given[cluster.bodies[j].entries]
            continue
        force, parts = loops.wrench(i, constraint, own) if constraint.kept else (np.zeros(6), {})
        bond.force = turned(bond.turn, force)
        for j, part in parts.items():
            spared[cluster.bodies[j]] = spared.get(cluster.bodies[j], 0.0) + part
    return spared


def carry(cluster: Node) -> dict[Body[ForceBody], Any]:
    """What comes through each tree joint with loops open, in the body's frame; output bodies collect it."""
    carried = {body: body.memory.f if body.carries else net_force(body) for body in cluster.bodies}
    for body in reversed(cluster.bodies):
        force = body.X.transform_force(carried[body])
        if body.parent is not None:
            carried[body.parent] = carried[body.parent] + force
        elif not body.output.grounded:
            body.output.memory.f += force
    return carried


def passive_forces(cluster: Node) -> Any:
    """k (rest − q) − d q̇ − A q̈ at all joints: what springs and dampers give, less what armatures take."""
    return cluster.springs - cluster.armatures * (cluster.G @ cluster.memory.a + cluster.g)


def turned(E: Any, force: Any) -> Any:
    """A force along other axes."""
    return Transform.rotation(E).inverse_force(force)


def _driven(robot: Robot, actuators: Sequence[str]) -> np.ndarray:
    """For each velocity of the spanning tree whether an actuator works along it.

    Raises:
        ModelError: for joints that there are not, and where a cluster has more or less of them than freedoms.
    """
    tree, driven = robot.tree, robot.embedding.v_place >= 0
    for joint in actuators:
        if joint not in tree.number:
            raise ModelError(f"actuators: {joint!r} is no joint that moves; there are {listed(tree.number)}")
    named = {tree.number[joint] for joint in actuators}
    G = robot.explicit_constraint(robot.neutral())[0] if named else np.zeros((0, 0))
    for k in sorted({robot.cluster_tree.cluster_of[link] for link in named}):
        links = robot.cluster_tree.clusters[k].bodies
        every, own = tree.velocities_of(links), tree.velocities_of([link for link in links if link in named])
        freedoms = int(driven[every].sum())
        told = listed(tree.links[link].joint for link in links if link in named)
        if len(own) != freedoms:
            others = listed(tree.links[link].joint for link in links)
            raise ModelError(
                f"actuators: {told} drive {counted(len(own), 'velocity', 'velocities')} of a cluster with "
                f"{counted(freedoms, 'freedom')}; name as many of its joints, or none: it has {others}"
            )
        driven[every] = False
        driven[own] = True
        sizes = np.linalg.svd(G[np.ix_(own, velocities_of(robot, k))], compute_uv=False)
        if sizes[freedoms - 1] < _IDLE * sizes[0]:
            raise ModelError(f"actuators: {told} cannot move all freedoms of their cluster")
    return driven


class _Places:
    """Where the forces of links and bonds are in the result, one cluster after the other."""

    def __init__(self, robot: Robot, driven: np.ndarray, bonds: Sequence[Sequence[Constraint]]) -> None:
        self.robot, self.driven, self.bonds, self.size = robot, driven, bonds, 0
        self.links: dict[int, dict[str, slice]] = {}
        self.bond_forces: dict[tuple[int, int, int | None], slice] = {}  # by cluster, bond, and body of a coupling
        for k, cluster in enumerate(robot.cluster_tree.clusters):
            for link in cluster.bodies if k else ():
                nv = robot.tree.links[link].kind.nv
                sizes = {"total": 6, "constraint": 6, "actuator": nv, "passive": nv}
                self.links[link] = {name: self._take(size) for name, size in sizes.items()}
            for i, constraint in enumerate(bonds[k]):
                if isinstance(constraint, LoopConstraint):
                    self.bond_forces[k, i, None] = self._take(6)
                    continue
                for j in constraint.links:
                    self.bond_forces[k, i, j] = self._take(robot.tree.links[cluster.bodies[j]].kind.nv)

    def _take(self, size: int) -> slice:
        self.size += size
        return slice(self.size - size, self.size)

    def provide(self, windows: ClusterWindows, forces: Any, clusters: Sequence[int]) -> None:
        """Adds what clusters of the same kind see of the result, of their bonds, and of the frames of bodies."""
        tree, of_robot, first = self.robot.tree, self.robot.cluster_tree.clusters, clusters[0]

        def at(places: Sequence[slice]) -> Any:
            return forces.at([place.start for place in places], places[0].stop - places[0].start)

        windows.bonds = tables([[bond.constants for bond in self.bonds[k]] for k in clusters])
        for i in range(len(of_robot[first].bodies)):
            links = [of_robot[k].bodies[i] for k in clusters]
            frames = [tree.place[tree.links[link].name][1] for link in links]
            windows.bodies[i] |= tables([[{"axes": X.E, "origin": X.r}] for X in frames])[0]
            windows.bodies[i] |= {x: at([self.links[link][x] for link in links]) for x in self.links[links[0]]}
        for k, i, j in self.bond_forces:
            if k == first:
                name = "force" if j is None else numbered("force_on", j)
                windows.bonds[i][name] = at([self.bond_forces[other, i, j] for other in clusters])

    def layout(self) -> ForceLayout:
        """By name, joints in the order in which they are described."""
        tree, of_robot = self.robot.tree, self.robot.cluster_tree.clusters
        number = {joint.name: tree.number[joint.name] for joint in self.robot.joints if joint.name in tree.number}
        by_joint = {
            name: {joint: self.links[link][name] for joint, link in number.items()}
            for name in ("total", "constraint", "actuator", "passive")
        }
        drives = {joint for joint, link in number.items() if self.driven[tree.velocities(link)].any()}
        loops: dict[str, Any] = {}
        couplings: dict[str, dict[str, Any]] = {}
        for (k, i, j), place in self.bond_forces.items():
            name = self.bonds[k][i].name
            if j is None:
                loops[name] = place
            else:
                couplings.setdefault(name, {})[tree.links[of_robot[k].bodies[j]].joint] = _single(place)
        return ForceLayout(
            joints=by_joint["total"],
            constraints=by_joint["constraint"],
            actuators={joint: _single(place) for joint, place in by_joint["actuator"].items() if joint in drives},
            passive={joint: _single(place) for joint, place in by_joint["passive"].items()},
            loops={loop.name: loops[loop.name] for loop in self.robot.loops},
            couplings=couplings,
            size=self.size,
        )


def _single(place: slice) -> Any:
    """A place for a single number, where there is one."""
    return place.start if place.stop - place.start == 1 else place
