"""Forward dynamics by Lagrange multipliers on the spanning tree. [001, §II-D]"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.algorithms.baselines.spanning_tree import (
    Reversed,
    Visited,
    independent_entries,
    joint_entries,
    tree_dynamics,
    tree_mass_matrix,
    write_motion,
)
from coupler.linear import Cholesky
from coupler.model import Robot


def lagrange_program(robot: Robot) -> Any:
    """The program a(q, v, tau) by multipliers: H ẇ − Kᵀ λ = τ − c with K ẇ = k, on the spanning tree.

    With H factorised, (K H⁻¹ Kᵀ) λ = k − K H⁻¹ (τ − c).
    """
    sweep, spanning, H, tau, a = tree_dynamics(robot, "lagrange", "Kk", spread_and_constrain)
    order, places = independent_entries(robot), joint_entries(robot, spanning.tree)
    independent = [_independent_in_cluster(robot, k) for k in range(len(order))]

    def solve(H: Any, f: Any, tau: Any, K_blocks: Any, k_blocks: Any) -> Any:
        n = spanning.tree.nv
        inertia = Reversed(tree_mass_matrix(spanning.tree, H))
        force: Any = -f
        blocks = [(places[k], K) for k, K in enumerate(spanning.block("K", K_blocks)) if len(K)]
        K: Any = np.zeros((sum(len(block) for _, block in blocks), n), dtype=object)
        row = 0
        for place, block in blocks:
            K[row : row + len(block), place] = block
            row += len(block)
        applied: Any = np.zeros(n, dtype=object)
        for k, place in enumerate(places):
            for entry, i in zip(order[k], independent[k], strict=True):
                applied[place[i]] = tau[entry]
        unconstrained = inertia.solve(applied + force)
        wd = unconstrained
        if len(K):
            response = inertia.solve(K.T)
            k = np.concatenate([part.ravel() for part in spanning.block("k", k_blocks)])
            wd = unconstrained + response @ Cholesky(K @ response).solve(k - K @ unconstrained)
        result: Any = np.zeros(robot.nv, dtype=object)
        for k, place in enumerate(places):
            result[order[k]] = wd[place[independent[k]]]
        return result

    spanning.whole(solve, H, spanning.vectors["f"], tau, "K", "k", out=a)
    return sweep.build()


def spread_and_constrain(cluster: Visited) -> None:
    """Positions and velocities of all joints, zero accelerations, and K and k."""
    cluster.report_gap()
    write_motion(cluster, np.zeros(int(cluster.shape.starts[-1])))
    K, k = cluster.constraint
    if len(K):
        cluster.memory.K, cluster.memory.k = K, k[:, None]


def _independent_in_cluster(robot: Robot, cluster: int) -> np.ndarray:
    """Flags for the entries of a cluster's joint velocities that are independent."""
    links = [link for link in robot.cluster_tree.clusters[cluster].bodies if link]
    entries = robot.tree.velocities_of(links)
    return np.flatnonzero(robot.embedding.v_place[entries] >= 0)
