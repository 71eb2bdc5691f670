"""Forces in every tree joint and every loop, split into actuation and constraint [001, §V-D], with C-RNEA [001, §VI].

If the loops of a cluster were open, the tree joint of a body would transmit the force on the body and everything that
it carries: with f of all bodies from C-RNEA, carried = f + Σ Xᵀ carried over its children [001, eq. 27, 28]. Along its
freedoms the joint would need Sᵀ carried + A q̈, less springs and dampers; s has these forces for all joints of a
cluster. Loops and couplings supply Kᵀλ of s, and actuators, at driven joints, supply τ:

    s = P τ + Kᵀ λ,    hence    K_Uᵀ λ = s_U    for the undriven joints U,    and    τ = s − Kᵀ λ    for the others.

If some rows of K are redundant, λ is not unique: these rows transmit nothing, or what a rule says; see sharing.py.

Gᵀ s = Gᵀ P τ are the forces of inverse dynamics [001, eq. 29]; if P selects the independent joints, they are τ. A
coupling acts along the freedoms of its joints. A loop joint transmits the force Tᵀλ from one body to another, and the
tree joints on the way to that body transmit so much less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.bonds import bonds_of_clusters, with_every_row
from coupler.algorithms.force_layout import ForceLayout, ForcePlaces
from coupler.algorithms.rnea import net_force, outward
from coupler.algorithms.sharing import (
    SharedBody,
    SharedBond,
    SharedCluster,
    SharedRows,
    Sharing,
    Sharings,
    by_constraint,
    shared_multipliers,
    spared_by_loops,
    turned,
    without_work,
)
from coupler.linear import solve
from coupler.model import ModelError, Robot
from coupler.model.embedding.constraints import Constraint, LoopConstraint
from coupler.model.wording import counted, listed
from coupler.passes import Body, ClusterShape, ClusterWindows, Indexed, Sweep, Visit, add_loads, provided, velocities_of
from coupler.passes.loops import Loops
from coupler.spatial import Transform

_IDLE = 1e-7  # relative: joints that move their cluster less than this do not drive it


class ForceBody(SharedBody):
    """What C-RNEA remembers of a body, its frame on its link, and the forces in its joint."""

    axes, origin = provided(), provided()
    total, constraint, actuator, passive = provided(), provided(), provided(), provided()


class BondRecord(SharedBond):
    """A loop joint's rotation from standard form, and the force in a loop joint or coupling."""

    force = provided()
    force_on = Indexed()  # of a coupling, by body


Visited = Visit[ForceBody, SharedCluster]


def joint_forces_layout(robot: Robot, actuators: tuple[str, ...] = ()) -> ForceLayout:
    """The layout of the result of `joint_forces_program`."""
    return ForcePlaces(robot, _driven(robot, actuators), bonds_of_clusters(robot)).layout()


def joint_forces_program(
    robot: Robot, external: bool = False, actuators: tuple[str, ...] = (), sharings: Sharings | None = None
) -> Any:
    """The program (q, v, a) → forces in all joints, laid out as `joint_forces_layout` says.

    Args:
        external: whether forces on bodies are a further input, `f_ext`.
        actuators: the driven joints. In clusters of which no joint is named, the independent joints are driven.
        sharings: for each cluster how its redundant rows transmit forces; they transmit nothing if not given. If their
            multipliers z are an input of the program, the residuals of conditions are a further output.
    """
    loaded = external or bool(robot.elements)
    sweep = Sweep(robot, "joint_forces", body=ForceBody, cluster=SharedCluster, loaded=loaded)
    sweep.inputs("q", "v", "a")
    driven, bonds = _driven(robot, actuators), bonds_of_clusters(robot)
    places = ForcePlaces(robot, driven, bonds)
    forces = sweep.result("forces", places.size)
    shares = SharedRows(robot, sweep, sharings) if sharings else None
    add_loads(sweep, external)
    sweep.outward(outward, carriers=True)
    schedule = sweep.schedule()

    def provide(windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        places.provide(windows, forces, clusters)
        if shares:
            shares.provide(windows, clusters)

    for k in reversed(range(1, len(bonds))):
        entries = np.flatnonzero(driven[robot.tree.velocities_of(robot.cluster_tree.clusters[k].bodies)])
        sharing = sharings[k] if sharings else None
        rows = bonds[k] if sharing is None else with_every_row(robot, bonds[k])
        key = tuple((bond.form, bond.connection) for bond in rows), tuple(entries.tolist()), sharing
        sweep.visit(schedule, transmit, k, rows, entries, sharing, key=key, provide=provide)
    schedule.run()
    return sweep.build()


def transmit(cluster: Visited, bonds: Sequence[Constraint], driven: np.ndarray, sharing: Sharing | None) -> None:
    """Forces across all joints of a cluster, passed on to its output bodies; see the module's text."""
    cluster.report_gap()
    force, passive = carry(cluster), passive_forces(cluster)
    loops = Loops(cluster, bonds, cluster.views.bonds)
    s = np.concatenate([body.subspace.T @ force[body] for body in cluster.bodies]) - passive
    undriven = np.setdiff1d(np.arange(len(s)), driven)
    tau: Any = s
    if bonds:
        if sharing is not None:
            multipliers = shared_multipliers(cluster, loops, sharing, force, s, undriven)
        else:
            multipliers = solve(loops.K[:, undriven].T, s[undriven]) if len(loops.K) else np.zeros(0)
        rest = s - loops.K.T @ multipliers
        tau = np.array([rest[j] if j in driven else 0.0 for j in range(len(s))])
        write_bond_forces(cluster, loops, multipliers)
        for body, spared in spared_by_loops(cluster, loops, multipliers).items():
            force[body] = force[body] - spared
    for body in cluster.bodies:
        frame = Transform(body.memory.axes, body.memory.origin)
        reaction = without_work(body, force[body])
        body.memory.total, body.memory.constraint = (frame.inverse_force(f) for f in (force[body], reaction))
        body.memory.actuator, body.memory.passive = tau[body.entries], passive[body.entries]


def write_bond_forces(cluster: Visited, loops: Loops, multipliers: Any) -> None:
    """Stores the forces of loop joints and couplings."""
    for i, (constraint, its_multipliers) in enumerate(by_constraint(loops, multipliers)):
        bond = BondRecord(cluster.views.bonds[i])
        if isinstance(constraint, LoopConstraint):
            bond.force = turned(bond.turn, loops.wrench(i, its_multipliers)) if constraint.kept else np.zeros(6)
            continue
        on_joints = loops.rates[i].T @ its_multipliers if constraint.kept else np.zeros(int(cluster.shape.starts[-1]))
        for j in constraint.links:
            bond.force_on[j] = on_joints[cluster.bodies[j].entries]


def carry(cluster: Visited) -> dict[Body[ForceBody], Any]:
    """The force across each tree joint with loops open, in the body's frame; output bodies collect it. [001, eq. 27]"""
    carried = {body: body.memory.f if body.carries else net_force(body) for body in cluster.bodies}
    for body in reversed(cluster.bodies):
        force = body.X.transform_force(carried[body])
        if body.parent is not None:
            carried[body.parent] = carried[body.parent] + force
        elif not body.output.grounded:
            body.output.memory.f += force
    return carried


def passive_forces(cluster: Visited) -> Any:
    """k (rest − q) − d q̇ − A q̈ at all joints: the forces of springs and dampers, less those on armatures."""
    return cluster.springs - cluster.armatures * (cluster.G @ cluster.memory.a + cluster.g)


def _driven(robot: Robot, actuators: Sequence[str]) -> np.ndarray:
    """For each velocity of the spanning tree whether an actuator drives it.

    Raises:
        ModelError: for unknown joints, and if a cluster has more or fewer driven velocities than freedoms.
    """
    tree, driven = robot.tree, robot.embedding.v_place >= 0
    for joint in actuators:
        if joint not in tree.number:
            raise ModelError(f"actuators: {joint!r} is not a joint that moves; there are {listed(tree.number)}")
    named = {tree.number[joint] for joint in actuators}
    G = robot.explicit_constraint(robot.neutral())[0] if named else np.zeros((0, 0))
    for k in sorted({robot.cluster_tree.cluster_of[link] for link in named}):
        links = robot.cluster_tree.clusters[k].bodies
        every, named_entries = tree.velocities_of(links), tree.velocities_of([link for link in links if link in named])
        freedoms = int(driven[every].sum())
        joints = listed(tree.links[link].joint for link in links if link in named)
        if len(named_entries) != freedoms:
            others = listed(tree.links[link].joint for link in links)
            raise ModelError(
                f"actuators: {joints} drive {counted(len(named_entries), 'velocity', 'velocities')} of a cluster with "
                f"{counted(freedoms, 'freedom')}; name as many of its joints, or none: it has {others}"
            )
        driven[every] = False
        driven[named_entries] = True
        sizes = np.linalg.svd(G[np.ix_(named_entries, velocities_of(robot, k))], compute_uv=False)
        if sizes[freedoms - 1] < _IDLE * sizes[0]:
            raise ModelError(f"actuators: {joints} cannot move all freedoms of their cluster")
    return driven
