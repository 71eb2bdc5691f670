"""Dynamics of all joints, with loops held together by Baumgarte's stabilisation. [003, §II-C, §III-A]

Libraries for trees integrate positions and velocities w of all joints and enforce the loops by K ẇ = k only, so that
errors of rounding and integration grow. With k − 2/T φ̇ − φ/T² in place of k, they decay within a time T, as in RBDL,
the paper's numerical method. Explicit constraints follow by partitioning [003, eq. 5, 8].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.baselines.projected_rnea import project
from coupler.algorithms.baselines.spanning_tree import (
    ClusterMemory,
    JointMemory,
    Reversed,
    Spanning,
    add_mass_matrix,
    tree_mass_matrix,
    whole_G,
    write_motion,
)
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.model import Robot
from coupler.passes import ClusterShape, ClusterWindows, Sweep, Visit, constants, provided


class OwnJoint(JointMemory):
    """A joint's parts of vectors over all joints, and of the given velocities."""

    w_given = provided()


class HeldCluster(ClusterMemory):
    """Matrices of a cluster's loops, and how fast their errors decay: 1/T, 1/s."""

    decay = provided()


Visited = Visit[OwnJoint, HeldCluster]


def stabilized_rnea_program(robot: Robot, times: Mapping[str, float]) -> Any:
    """The program τ(q, w, a), with velocities w of all joints: τ = Gᵀ RNEA(p, w, G a + g).

    Args:
        robot: the robot. Loops with a solution need no stabilisation; only independent entries of w count there.
        times: T of loops and couplings by name, s; in a cluster the shortest counts. Errors of others do not decay.
    """
    sweep, spanning = _begin(robot, "stabilized_rnea", times)
    sweep.inputs("a")
    sweep.output("tau")
    sweep.outward(spread_accelerated)
    _tree_forces(sweep, spanning)
    sweep.outward(project)
    return sweep.build()


def stabilized_dynamics_program(robot: Robot, times: Mapping[str, float]) -> Any:
    """The program ẇ(q, w, tau) by projection: (GᵀHG) a = τ − Gᵀ(c + H g), and ẇ = G a + g.

    Args:
        robot, times: as for `stabilized_rnea_program`.
    """
    sweep, spanning = _begin(robot, "stabilized_dynamics", times, matrices="G")
    (tau,) = sweep.inputs("tau")
    rate = sweep.result("w_rate", spanning.tree.nv)
    sweep.outward(spread)
    H = add_mass_matrix(sweep, spanning)
    _tree_forces(sweep, spanning)

    def solve(H: Any, f: Any, tau: Any, g: Any, G_blocks: Any) -> Any:
        M, G = tree_mass_matrix(spanning.tree, H), whole_G(robot, spanning, G_blocks)
        return G @ Reversed(G.T @ M @ G).solve(tau - G.T @ f) + g

    spanning.whole(solve, H, spanning.vectors["f"], tau, spanning.vectors["wd"], "G", out=rate)
    return sweep.build()


def _begin(
    robot: Robot, name: str, times: Mapping[str, float], matrices: str = ""
) -> tuple[Sweep[OwnJoint, HeldCluster], Spanning]:
    """A program whose clusters see the velocities of all their joints, and 1/T."""
    sweep = Sweep(robot, name, body=OwnJoint, cluster=HeldCluster, leaf_clusters=True)
    sweep.inputs("q")
    spanning = Spanning(sweep, matrices=matrices)
    spanning.vectors["w_given"] = sweep.builder.input("w_given", spanning.tree.nv)
    decay, provide = _decays(robot, times), sweep.provide

    def provide_decay(windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        provide(windows, shape, clusters)
        windows.cluster["decay"] = constants([decay.get(cluster, 0.0) for cluster in clusters])

    sweep.provide = provide_decay
    return sweep, spanning


def _decays(robot: Robot, times: Mapping[str, float]) -> dict[int, float]:
    """1/T of each cluster that has one, with the shortest of its loops."""
    decays: dict[int, float] = {}
    for loop in robot.embedding.closure.loops:
        times_of_loop = [times[constraint.name] for constraint in loop.constraints if constraint.name in times]
        if times_of_loop:
            decays[loop.cluster] = 1.0 / min(times_of_loop)
    return decays


def _tree_forces(sweep: Sweep[OwnJoint, HeldCluster], spanning: Spanning) -> None:
    """Adds RNEA on the spanning tree, for the accelerations that have been written."""
    v = spanning.vectors
    sweep.call(inverse_dynamics_program(spanning.tree), q=v["p"], v=v["w"], a=v["wd"], tau=v["f"])


def spread(cluster: Visited) -> None:
    """Positions, velocities, and accelerations g of all joints at a = 0; and G."""
    stabilize(cluster)
    cluster.memory.G = cluster.G
    write_motion(cluster, cluster.g)


def spread_accelerated(cluster: Visited) -> None:
    """Positions, velocities, and accelerations ẇ = G a + g of all joints."""
    stabilize(cluster)
    cluster.remember()
    write_motion(cluster, cluster.G @ cluster.memory.a + cluster.g)


def stabilize(cluster: Visited) -> None:
    """Takes the given velocities, and replaces k by k − 2/T K w − φ/T², so that errors decay."""
    w = np.concatenate([body.memory.w_given for body in cluster.bodies])
    cluster.v = w[cluster.shape.independent]
    if not cluster.shape.solved:
        loops, rate = cluster.loops, cluster.memory.decay
        cluster.w = w
        loops.k = loops.k - 2.0 * rate * (loops.K @ w) - rate**2 * loops.residuals()
