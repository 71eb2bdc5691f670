"""What the exact baselines share: the spanning tree's dynamics, and matrices of the robot assembled from its clusters.

Positions p, velocities w and accelerations ẇ of all joints are computed cluster by cluster, as in every algorithm.
Matrices are factorised from the tips inward, so that the inertia of a tree has no fill-in (Featherstone, "Rigid Body
Dynamics Algorithms", chapter 6): structural zeros are zeros of the trace and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.crba import mass_matrix_entries, mass_matrix_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import (
    ClusterRecord,
    ClusterShape,
    ClusterWindows,
    Coordinate,
    Place,
    Record,
    Sweep,
    Visit,
    provided,
    velocities_of,
)


class JointMemory(Record):
    """The parts of a body's joint in vectors over all joints."""

    p, w, wd, f = provided(), provided(), provided(), provided()  # positions, velocities, accelerations, forces


class ClusterMemory(ClusterRecord):
    """The matrices of a cluster's loops, and its parts of accelerations and forces."""

    G, K, k = provided(), provided(), provided()
    a, tau = Coordinate(), Coordinate()


Visited = Visit[JointMemory, ClusterMemory]


def spanning_sweep(robot: Robot, name: str) -> Sweep[JointMemory, ClusterMemory]:
    """Begins a program whose clusters see vectors over all joints."""
    return Sweep(robot, name, body=JointMemory, cluster=ClusterMemory, leaf_clusters=True)


class Spanning:
    """The spanning tree of a robot, with vectors over all its joints.

    Args:
        matrices: the matrices of loops that clusters write: some of G, K and k.
        as_results: whether these are results of the program.

    Attributes:
        tree: the robot with its loops open.
        vectors: over all joints: positions p, velocities w, accelerations wd and forces f.
        sizes: for each cluster the number of its joints' velocities, and how many of these are independent.
    """

    def __init__(self, sweep: Sweep[Any, Any], *, matrices: str = "", as_results: bool = False) -> None:
        self.sweep, robot = sweep, sweep.robot
        self.tree = robot.spanning_tree()
        counts = {"p": self.tree.nq, "w": self.tree.nv, "wd": self.tree.nv, "f": self.tree.nv}
        self.vectors = {name: sweep.scratch(name, size) for name, size in counts.items()}
        shapes = [None, *(sweep.shapes[sweep.shape_of[k]][0] for k in range(1, len(sweep.instances)))]
        self.sizes = [(int(shape.starts[-1]), shape.freedoms) if shape else (0, 0) for shape in shapes]
        store_of = sweep.result_store if as_results else sweep.store
        self._stores = {name: store_of(f"all_{name}") for name in matrices}
        for name, store in self._stores.items():
            for k in range(len(self.sizes)):
                store.add(k, self._shape(name, k))
        sweep.provide = self._provide

    def _shape(self, name: str, cluster: int) -> tuple[int, int]:
        """G has a row for each velocity, K and k a row for each dependent one."""
        n, independent = self.sizes[cluster]
        return {"G": (n, independent), "K": (n - independent, n), "k": (n - independent, 1)}[name]

    def _provide(self, windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        for i, kind in enumerate(shape.kinds):
            joints = [self.sweep.robot.tree.links[self.sweep.instances[k].links[i]].joint for k in clusters]
            for name, buffer in self.vectors.items():
                place = self.tree.q_slice if name == "p" else self.tree.v_slice
                starts = [place(joint).start for joint in joints]
                windows.bodies[i][name] = buffer.at(starts, kind.nq if name == "p" else kind.nv)
        windows.cluster |= {name: store.at(clusters) for name, store in self._stores.items()}

    def whole(self, function: Callable[..., Any], *given: Any, out: Any) -> None:
        """Adds a step: a function of whole vectors and of all clusters' matrices, which are given by name."""
        buffers = [self._stores[x].buffer if isinstance(x, str) else x for x in given]
        schedule = self.sweep.schedule()
        schedule.call(function, *(Place.whole(x, x.size) for x in buffers), out=Place.whole(out, out.size))
        schedule.run()

    def block(self, name: str, values: Any) -> list[Any]:
        """The matrices of all clusters, from their elements one after the other."""
        store, shapes = self._stores[name], [self._shape(name, k) for k in range(len(self.sizes))]
        pairs = zip(store.starts.values(), shapes, strict=True)
        return [values[at : at + rows * columns].reshape(rows, columns) for at, (rows, columns) in pairs]


def tree_dynamics(robot: Robot, name: str, matrices: str, spread: Callable[[Visited], None]) -> Any:
    """Begins a program a(q, v, tau) with the spanning tree's inertia and bias, and the loops' matrices.

    Args:
        name: the name of the program.
        matrices: the loops' matrices that `spread` writes: "G", or "Kk".
        spread: the pass that writes positions, velocities and accelerations of all joints, and these matrices.

    Returns:
        The sweep, the spanning tree in it, and the buffers of H, tau and a.
    """
    sweep = spanning_sweep(robot, name)
    _, _, tau = sweep.inputs("q", "v", "tau")
    a = sweep.output("a")
    spanning = Spanning(sweep, matrices=matrices)
    sweep.outward(spread)
    vectors, tree = spanning.vectors, spanning.tree
    H = add_mass_matrix(sweep, spanning)
    sweep.call(inverse_dynamics_program(tree), q=vectors["p"], v=vectors["w"], a=vectors["wd"], tau=vectors["f"])
    return sweep, spanning, H, tau, a


def add_mass_matrix(sweep: Sweep[Any, Any], spanning: Spanning, H: Any = None) -> Any:
    """Adds the computation of the spanning tree's mass matrix; returns the buffer of its entries, H or a new one."""
    H = sweep.scratch("H", len(mass_matrix_entries(spanning.tree)[0])) if H is None else H
    sweep.call(mass_matrix_program(spanning.tree), q=spanning.vectors["p"], H=H)
    return H


def write_motion(cluster: Visited, wd: Any) -> None:
    """Writes the position, velocity and given acceleration of each joint into the spanning tree's vectors."""
    for body in cluster.bodies:
        body.memory.p, body.memory.w, body.memory.wd = cluster.q[body.number], body.w, wd[body.entries]


class Reversed:
    """A symmetric matrix factorised from its last row to its first, which avoids fill-in for the inertia of a tree."""

    def __init__(self, A: Any) -> None:
        self._factors = Cholesky(A[::-1, ::-1])

    def solve(self, b: Any) -> Any:
        return self._factors.solve(b[::-1])[::-1]

    def sandwich(self, B: Any) -> Any:
        return self._factors.sandwich(B[::-1])


def tree_mass_matrix(tree: Robot, entries: Any) -> Any:
    """The mass matrix of a tree, nv × nv, from its entries that are not zero by structure."""
    H: Any = np.zeros((tree.nv, tree.nv), dtype=object)
    for value, i, j in zip(entries, *mass_matrix_entries(tree), strict=True):
        H[i, j] = H[j, i] = value
    return H


def whole_G(robot: Robot, spanning: Spanning, blocks: Any) -> Any:
    """G of the whole robot, which maps v to the spanning tree's velocities, from the blocks of its clusters."""
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
