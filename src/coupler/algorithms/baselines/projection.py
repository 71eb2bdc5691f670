"""Forward dynamics by projecting the equations of motion of the spanning tree. [001, §II-D]"""

from __future__ import annotations

from typing import Any

from coupler.algorithms.baselines.spanning_tree import (
    Reversed,
    Visited,
    tree_dynamics,
    tree_mass_matrix,
    whole_G,
    write_motion,
)
from coupler.model import Robot


def projection_program(robot: Robot) -> Any:
    """The program a(q, v, tau) by projection: (GᵀHG) a = τ − Gᵀ(c + H g), with H and c of the spanning tree."""
    sweep, spanning, H, tau, a = tree_dynamics(robot, "projection", "G", spread_and_project)

    def solve(H: Any, f: Any, tau: Any, G_blocks: Any) -> Any:
        M, G = tree_mass_matrix(spanning.tree, H), whole_G(robot, spanning, G_blocks)
        return Reversed(G.T @ M @ G).solve(tau - G.T @ f)

    spanning.whole(solve, H, spanning.vectors["f"], tau, "G", out=a)
    return sweep.build()


def spread_and_project(cluster: Visited) -> None:
    """Positions and velocities of all joints, their accelerations g at a = 0, and G."""
    cluster.report_gap()
    write_motion(cluster, cluster.g)
    cluster.memory.G = cluster.G
