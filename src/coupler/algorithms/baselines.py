"""What the cluster algorithms are compared with: exact methods on the spanning tree [001, §II].

They open the loops, run the conventional recursions on the tree of all joints, and put the loops back, by G or by K and
multipliers. Positions p, velocities w and accelerations ẇ of all joints are found cluster by cluster, as everywhere.
Matrices are factorised from the tips inwards, where a tree's inertia fills in nothing (Featherstone, "Rigid Body
Dynamics Algorithms", chapter 6): what is zero by structure is zero in the trace and costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.algorithms.crba import mass_matrix_entries, mass_matrix_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Cluster, Spanning, Sweep, velocities_of

__all__ = ["lagrange_program", "projected_rnea_program", "projection_program"]


def projected_rnea_program(robot: Robot) -> Any:
    """The program τ(q, v, a) by the conventional algorithm on the spanning tree: τ = Gᵀ RNEA(p, w, ẇ). [001, §II-C]"""
    sweep = Sweep(robot, "projected_rnea", body={}, remembering=True)
    for name, size in (("q", robot.nq), ("v", robot.nv), ("a", robot.nv)):
        sweep.input(name, size)
    sweep.output("tau", robot.nv)
    spanning = Spanning(sweep)
    sweep.outward(spread)
    vectors = spanning.vectors
    spanning.call(
        inverse_dynamics_program(spanning.tree), q=vectors["p"], v=vectors["w"], a=vectors["wd"], tau=vectors["f"]
    )
    sweep.outward(project)
    return sweep.build()


def projection_program(robot: Robot) -> Any:
    """The program a(q, v, tau) by projection: (GᵀHG) a = τ − Gᵀ(c + H g), H and c of the spanning tree. [001, §II-D]"""
    sweep, spanning, H, tau, a = _forward(robot, "projection", "G")
    rows, columns = mass_matrix_entries(spanning.tree)
    order, places = _independent(robot), _tree_velocities(robot, spanning.tree)

    def solve(here: Any) -> None:
        M = _symmetric(here.H, rows, columns, spanning.tree.nv)
        G: Any = np.zeros((spanning.tree.nv, robot.nv), dtype=object)
        for k, block in enumerate(spanning.block("G", here.G)):
            G[np.ix_(places[k], order[k])] = block
        projected = G.T @ M @ G
        here.a = Reversed(projected).solve(here.tau - G.T @ here.f)

    spanning.whole(solve, H=H, f=spanning.vectors["f"], tau=tau, a=a)
    return sweep.build()


def lagrange_program(robot: Robot) -> Any:
    """The program a(q, v, tau) by multipliers: H ẇ − Kᵀ λ = τ − c with K ẇ = k, on the spanning tree. [001, §II-D]

    With H factorised, (K H⁻¹ Kᵀ) λ = k − K H⁻¹ (τ − c).
    """
    sweep, spanning, H, tau, a = _forward(robot, "lagrange", "Kk")
    rows, columns = mass_matrix_entries(spanning.tree)
    order, places = _independent(robot), _tree_velocities(robot, spanning.tree)
    independent = [_chosen(robot, k) for k in range(len(order))]

    def solve(here: Any) -> None:
        n = spanning.tree.nv
        inertia = Reversed(_symmetric(here.H, rows, columns, n))
        force: Any = -here.f
        blocks = [(places[k], K) for k, K in enumerate(spanning.block("K", here.K)) if len(K)]
        K: Any = np.zeros((sum(len(block) for _, block in blocks), n), dtype=object)
        at = 0
        for place, block in blocks:
            K[at : at + len(block), place] = block
            at += len(block)
        applied: Any = np.zeros(n, dtype=object)
        for k, place in enumerate(places):
            for entry, i in zip(order[k], independent[k], strict=True):
                applied[place[i]] = here.tau[entry]
        free = inertia.solve(applied + force)
        wd = free
        if at:
            reach = inertia.solve(K.T)
            k = np.concatenate([part.ravel() for part in spanning.block("k", here.k)])
            wd = free + reach @ Cholesky(K @ reach).solve(k - K @ free)
        result: Any = np.zeros(robot.nv, dtype=object)
        for k, place in enumerate(places):
            result[order[k]] = wd[place[independent[k]]]
        here.a = result

    spanning.whole(solve, H=H, f=spanning.vectors["f"], tau=tau, a=a)
    return sweep.build()


def _forward(robot: Robot, name: str, matrices: str) -> Any:
    """A program with what both methods need: the tree's inertia and bias, and the loops' matrices."""
    sweep = Sweep(robot, name, body={}, remembering=True)
    sweep.input("q", robot.nq)
    sweep.input("v", robot.nv)
    tau = sweep.input("tau", robot.nv)
    a = sweep.output("a", robot.nv)
    spanning = Spanning(sweep, matrices=matrices)
    sweep.outward(spread_and_project if "G" in matrices else spread_and_constrain)
    vectors, tree = spanning.vectors, spanning.tree
    H = sweep.builder.scratch("H", len(mass_matrix_entries(tree)[0]))
    spanning.call(mass_matrix_program(tree), q=vectors["p"], H=H)
    spanning.call(inverse_dynamics_program(tree), q=vectors["p"], v=vectors["w"], a=vectors["wd"], tau=vectors["f"])
    return sweep, spanning, H, tau, a


def spread(cluster: Cluster) -> None:
    """Positions, velocities w = G v and accelerations ẇ = G a + g of all joints."""
    cluster.report_gap()
    cluster.remember()
    _write(cluster, cluster.G @ cluster.read("a") + cluster.g)


def spread_and_project(cluster: Cluster) -> None:
    """Positions and velocities of all joints, their accelerations g where v does not change, and G."""
    cluster.report_gap()
    _write(cluster, cluster.g)
    cluster.memory.G = cluster.G


def spread_and_constrain(cluster: Cluster) -> None:
    """Positions and velocities of all joints, without accelerations, and K and k."""
    cluster.report_gap()
    _write(cluster, np.zeros(int(cluster.shape.starts[-1])))
    K, k = cluster.constraint
    if len(K):
        cluster.memory.K, cluster.memory.k = K, k[:, None]


def _write(cluster: Cluster, wd: Any) -> None:
    for body in cluster.bodies:
        body.memory.p, body.memory.w, body.memory.wd = cluster.q[body.number], body.w, wd[body.entries]


def project(cluster: Cluster) -> None:
    """τ = Gᵀ f."""
    cluster.write("tau", cluster.G.T @ np.concatenate([body.memory.f for body in cluster.bodies]))


class Reversed:
    """A symmetric matrix factorised from its last row to its first: in a tree's inertia that fills in nothing."""

    def __init__(self, A: Any) -> None:
        self._factors = Cholesky(A[::-1, ::-1])

    def solve(self, b: Any) -> Any:
        return self._factors.solve(b[::-1])[::-1]


def _symmetric(entries: Any, rows: np.ndarray, columns: np.ndarray, size: int) -> Any:
    A: Any = np.zeros((size, size), dtype=object)
    for value, i, j in zip(entries, rows, columns, strict=True):
        A[i, j] = A[j, i] = value
    return A


def _independent(robot: Robot) -> list[np.ndarray]:
    """For each cluster where its independent velocities are in v."""
    return [velocities_of(robot, k) for k in range(len(robot.cluster_tree.clusters))]


def _tree_velocities(robot: Robot, tree: Robot) -> list[np.ndarray]:
    """For each cluster where the velocities of its joints are in those of the tree."""
    found = []
    for cluster in robot.cluster_tree.clusters:
        joints = [robot.tree.links[link].joint for link in cluster.bodies if link]
        slices = [tree.v_slice(joint) for joint in joints]
        found.append(np.concatenate([np.zeros(0, int), *(np.arange(s.start, s.stop) for s in slices)]))
    return found


def _chosen(robot: Robot, cluster: int) -> np.ndarray:
    """Which velocities of a cluster's joints are independent."""
    links = [link for link in robot.cluster_tree.clusters[cluster].bodies if link]
    entries = robot.tree.velocities_of(links)
    return np.flatnonzero(robot.embedding.v_place[entries] >= 0)
