"""The inverse operational-space inertia matrix, projected from the spanning tree. [001, §II-E]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.baselines.spanning_tree import (
    Reversed,
    Spanning,
    Visited,
    add_mass_matrix,
    spanning_sweep,
    tree_mass_matrix,
    whole_G,
)
from coupler.algorithms.kinematics import frame_jacobian_program
from coupler.model import Robot
from coupler.spatial import Transform


def projected_osim_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program q → J G (GᵀHG)⁻¹ Gᵀ Jᵀ of some frames, with H and the Jacobians of the spanning tree.

    Args:
        frames: for each frame the number of its link, and the transform from the link's frame to the frame.
    """
    sweep = spanning_sweep(robot, "projected_osim")
    sweep.inputs("q")
    omega = sweep.result("omega", (6 * len(frames)) ** 2)
    spanning = Spanning(sweep, matrices="G")
    sweep.outward(place_and_project)
    tree, positions = spanning.tree, spanning.vectors["p"]
    H = add_mass_matrix(sweep, spanning)
    links = [tree.tree.number[robot.tree.links[link].joint] if link else 0 for link, _ in frames]
    jacobians = [sweep.scratch(f"J{i}", 6 * tree.nv) for i in range(len(frames))]
    for link, (_, place), J in zip(links, frames, jacobians, strict=True):
        sweep.call(frame_jacobian_program(tree, link, place, along_world=False), q=positions, J=J)

    def solve(H: Any, G_blocks: Any, *jacobians: Any) -> Any:
        M, G = tree_mass_matrix(tree, H), whole_G(robot, spanning, G_blocks)
        J = np.zeros((6 * len(frames), tree.nv), dtype=object)
        for i, link in enumerate(links):
            moving = _velocities_moving(tree, link)
            J[6 * i : 6 * i + 6, moving] = jacobians[i].reshape(6, -1)[:, moving]
        return Reversed(G.T @ M @ G).sandwich((J @ G).T).ravel()

    spanning.whole(solve, H, "G", *jacobians, out=omega)
    return sweep.build()


def place_and_project(cluster: Visited) -> None:
    """Positions of all joints, and G."""
    cluster.report_gap()
    for body in cluster.bodies:
        body.memory.p = cluster.q[body.number]
    cluster.memory.G = cluster.G


def _velocities_moving(tree: Robot, link: int) -> list[int]:
    """The entries of a tree's velocity that move a link."""
    entries: list[int] = []
    while link:
        entries += tree.embedding.v_place[tree.tree.velocities(link)].tolist()
        link = tree.tree.parent[link]
    return entries
