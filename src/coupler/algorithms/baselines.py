"""What the cluster algorithms are compared with: exact methods on the spanning tree [001, §II].

They open the loops, run the conventional recursions on the tree of all joints, and put the loops back, by G or by K and
multipliers. Positions p, velocities w and accelerations ẇ of all joints are found cluster by cluster, as everywhere.
Matrices are factorised from the tips inwards, where a tree's inertia fills in nothing (Featherstone, "Rigid Body
Dynamics Algorithms", chapter 6): what is zero by structure is zero in the trace and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.crba import mass_matrix_entries, mass_matrix_program
from coupler.algorithms.kinematics import frame_jacobian_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Cluster, Coordinate, Spanning, SpanningBody, SpanningCluster, Sweep, velocities_of
from coupler.spatial import Transform

__all__ = ["lagrange_program", "projected_osim_program", "projected_rnea_program", "projection_program"]


class ClusterMemory(SpanningCluster):
    a, tau = Coordinate(), Coordinate()


Node = Cluster[SpanningBody, ClusterMemory]


def projected_rnea_program(robot: Robot) -> Any:
    """The program τ(q, v, a) by the conventional algorithm on the spanning tree: τ = Gᵀ RNEA(p, w, ẇ). [001, §II-C]"""
    sweep = Sweep(robot, "projected_rnea", body=SpanningBody, cluster=ClusterMemory, remembering=True)
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

    def solve(here: Any) -> None:
        M, G = _symmetric(here.H, rows, columns, spanning.tree.nv), _whole_G(robot, spanning, here.G)
        here.a = Reversed(G.T @ M @ G).solve(here.tau - G.T @ here.f)

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


def projected_osim_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program q → J (GᵀHG)⁻¹ Jᵀ of some frames, H and Jacobians of the spanning tree. [001, §II-E]

    Args:
        robot: which.
        frames: for each its link, and the transform from the link's frame to it.
    """
    sweep = Sweep(robot, "projected_osim", body=SpanningBody, cluster=ClusterMemory, remembering=True)
    sweep.input("q", robot.nq)
    omega = sweep.result("omega", (6 * len(frames)) ** 2)
    spanning = Spanning(sweep, matrices="G")
    sweep.outward(place_and_project)
    tree, positions = spanning.tree, spanning.vectors["p"]
    H = sweep.builder.scratch("H", len(mass_matrix_entries(tree)[0]))
    spanning.call(mass_matrix_program(tree), q=positions, H=H)
    links = [tree.tree.number[robot.tree.links[link].joint] if link else 0 for link, _ in frames]
    jacobians = {f"J{i}": sweep.builder.scratch(f"J{i}", 6 * tree.nv) for i in range(len(frames))}
    for link, (_, place), J in zip(links, frames, jacobians.values(), strict=True):
        spanning.call(frame_jacobian_program(tree, link, place, along_world=False), q=positions, J=J)
    rows, columns = mass_matrix_entries(tree)

    def solve(here: Any) -> None:
        M, G = _symmetric(here.H, rows, columns, tree.nv), _whole_G(robot, spanning, here.G)
        J = np.zeros((6 * len(frames), tree.nv), dtype=object)
        for i, link in enumerate(links):
            way = _on_way(tree, link)
            J[6 * i : 6 * i + 6, way] = getattr(here, f"J{i}").reshape(6, -1)[:, way]
        here.omega = Reversed(G.T @ M @ G).sandwich((J @ G).T).ravel()

    spanning.whole(solve, H=H, omega=omega, **jacobians)
    return sweep.build()


def _on_way(tree: Robot, link: int) -> list[int]:
    """The velocities of a tree that move a link."""
    found: list[int] = []
    while link:
        found += tree.embedding.v_place[tree.tree.velocities(link)].tolist()
        link = tree.tree.parent[link]
    return found


def _whole_G(robot: Robot, spanning: Spanning, blocks: Any) -> Any:
    order, places = _independent(robot), _tree_velocities(robot, spanning.tree)
    G: Any = np.zeros((spanning.tree.nv, robot.nv), dtype=object)
    for k, block in enumerate(spanning.block("G", blocks)):
        G[np.ix_(places[k], order[k])] = block
    return G


def _forward(robot: Robot, name: str, matrices: str) -> Any:
    """A program with what both methods need: the tree's inertia and bias, and the loops' matrices."""
    sweep = Sweep(robot, name, body=SpanningBody, cluster=ClusterMemory, remembering=True)
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


def spread(cluster: Node) -> None:
    """Positions, velocities w = G v and accelerations ẇ = G a + g of all joints."""
    cluster.report_gap()
    cluster.remember()
    _write(cluster, cluster.G @ cluster.memory.a + cluster.g)


def spread_and_project(cluster: Node) -> None:
    """Positions and velocities of all joints, their accelerations g where v does not change, and G."""
    cluster.report_gap()
    _write(cluster, cluster.g)
    cluster.memory.G = cluster.G


def place_and_project(cluster: Node) -> None:
    """Positions of all joints, and G."""
    cluster.report_gap()
    for body in cluster.bodies:
        body.memory.p = cluster.q[body.number]
    cluster.memory.G = cluster.G


def spread_and_constrain(cluster: Node) -> None:
    """Positions and velocities of all joints, without accelerations, and K and k."""
    cluster.report_gap()
    _write(cluster, np.zeros(int(cluster.shape.starts[-1])))
    K, k = cluster.constraint
    if len(K):
        cluster.memory.K, cluster.memory.k = K, k[:, None]


def _write(cluster: Node, wd: Any) -> None:
    for body in cluster.bodies:
        body.memory.p, body.memory.w, body.memory.wd = cluster.q[body.number], body.w, wd[body.entries]


def project(cluster: Node) -> None:
    """τ = Gᵀ f."""
    cluster.memory.tau = cluster.G.T @ np.concatenate([body.memory.f for body in cluster.bodies])


class Reversed:
    """A symmetric matrix factorised from its last row to its first: in a tree's inertia that fills in nothing."""

    def __init__(self, A: Any) -> None:
        self._factors = Cholesky(A[::-1, ::-1])

    def solve(self, b: Any) -> Any:
        return self._factors.solve(b[::-1])[::-1]

    def sandwich(self, B: Any) -> Any:
        return self._factors.sandwich(B[::-1])


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
