"""What the exact baselines share: the spanning tree's dynamics, and matrices of the whole robot from its clusters'.

Positions p, velocities w and accelerations ẇ of all joints are computed cluster by cluster, as in every algorithm.
Matrices are factorised from the tips inwards, where a tree's inertia fills in nothing (Featherstone, "Rigid Body
Dynamics Algorithms", chapter 6): what is zero by structure is zero in the trace and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.algorithms.crba import mass_matrix_entries, mass_matrix_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Cluster, Spanning, Sweep, velocities_of

__all__ = [
    "Reversed",
    "add_mass_matrix",
    "independent_entries",
    "joint_entries",
    "tree_dynamics",
    "tree_mass_matrix",
    "whole_G",
    "write_motion",
]


def tree_dynamics(robot: Robot, name: str, matrices: str, spread: Callable[[Cluster], None]) -> Any:
    """Begins a program a(q, v, tau) with the spanning tree's inertia and bias, and the loops' matrices.

    Args:
        robot: the robot to build the program for.
        name: the name of the program.
        matrices: the loops' matrices that `spread` writes: "G", or "Kk".
        spread: the pass that writes positions, velocities and accelerations of all joints, and these matrices.

    Returns:
        The sweep, the spanning tree in it, and the buffers of H, tau and a.
    """
    sweep = Sweep(robot, name, body={}, remembering=True)
    sweep.input("q", robot.nq)
    sweep.input("v", robot.nv)
    tau = sweep.input("tau", robot.nv)
    a = sweep.output("a", robot.nv)
    spanning = Spanning(sweep, matrices=matrices)
    sweep.outward(spread)
    vectors, tree = spanning.vectors, spanning.tree
    H = add_mass_matrix(sweep, spanning)
    spanning.call(inverse_dynamics_program(tree), q=vectors["p"], v=vectors["w"], a=vectors["wd"], tau=vectors["f"])
    return sweep, spanning, H, tau, a


def add_mass_matrix(sweep: Sweep, spanning: Spanning) -> Any:
    """Adds the computation of the spanning tree's mass matrix; returns the buffer of its entries."""
    H = sweep.builder.scratch("H", len(mass_matrix_entries(spanning.tree)[0]))
    spanning.call(mass_matrix_program(spanning.tree), q=spanning.vectors["p"], H=H)
    return H


def write_motion(cluster: Cluster, wd: Any) -> None:
    """Writes position, velocity and a given acceleration of each joint where the spanning tree reads them."""
    for body in cluster.bodies:
        body.memory.p, body.memory.w, body.memory.wd = cluster.q[body.number], body.w, wd[body.entries]


class Reversed:
    """A symmetric matrix factorised from its last row to its first: in a tree's inertia that fills in nothing."""

    def __init__(self, A: Any) -> None:
        self._factors = Cholesky(A[::-1, ::-1])

    def solve(self, b: Any) -> Any:
        return self._factors.solve(b[::-1])[::-1]

    def sandwich(self, B: Any) -> Any:
        return self._factors.sandwich(B[::-1])


def tree_mass_matrix(tree: Robot, entries: Any) -> Any:
    """The mass matrix of a tree, nv × nv, from its structural entries."""
    H: Any = np.zeros((tree.nv, tree.nv), dtype=object)
    for value, i, j in zip(entries, *mass_matrix_entries(tree), strict=True):
        H[i, j] = H[j, i] = value
    return H


def whole_G(robot: Robot, spanning: Spanning, blocks: Any) -> Any:
    """G of the whole robot, from velocities v to those of the spanning tree, from the blocks of its clusters."""
    columns, rows = independent_entries(robot), joint_entries(robot, spanning.tree)
    G: Any = np.zeros((spanning.tree.nv, robot.nv), dtype=object)
    for k, block in enumerate(spanning.block("G", blocks)):
        G[np.ix_(rows[k], columns[k])] = block
    return G


def independent_entries(robot: Robot) -> list[np.ndarray]:
    """For each cluster, the entries of v that are its independent velocities."""
    return [velocities_of(robot, k) for k in range(len(robot.cluster_tree.clusters))]


def joint_entries(robot: Robot, tree: Robot) -> list[np.ndarray]:
    """For each cluster of a robot, the entries of its spanning tree's velocity that are those of its joints."""
    entries = []
    for cluster in robot.cluster_tree.clusters:
        joints = [robot.tree.links[link].joint for link in cluster.bodies if link]
        slices = [tree.v_slice(joint) for joint in joints]
        entries.append(np.concatenate([np.zeros(0, int), *(np.arange(s.start, s.stop) for s in slices)]))
    return entries
