"""The baselines with dense matrices, solved by LAPACK: for robots too large to compile their linear algebra.

The other baselines are compiled as a whole, without operations on zeros, and compilation takes time and memory that
grow with the cube of the robot's size. Here only the inertia, bias and loop matrices of the spanning tree are compiled.
The rest is done with dense matrices, one state at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.baselines.lagrange import spread_and_constrain
from coupler.algorithms.baselines.projected_osim import place_and_project
from coupler.algorithms.baselines.projection import spread_and_project
from coupler.algorithms.baselines.spanning_tree import (
    Spanning,
    add_mass_matrix,
    independent_entries,
    joint_entries,
    spanning_sweep,
)
from coupler.algorithms.crba import mass_matrix_entries
from coupler.algorithms.kinematics import frame_jacobian_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.model import Robot
from coupler.spatial import Transform

Compile = Callable[[Any], Callable[..., Any]]


def dense_projection(robot: Robot, compile: Compile) -> Callable[..., np.ndarray]:
    """a(q, v, tau) by projection: (GᵀHG) a = τ − Gᵀ(c + H g).

    Args:
        compile: makes a function of a program.
    """
    terms, matrices = _terms(robot, "dense_projection", "G", spread_and_project, compile)

    def solve(q: Any, v: Any, tau: Any) -> np.ndarray:
        values = terms(q, v)
        M, G = matrices.inertia(values["H_tree"]), matrices.blocks(values["all_G"], matrices.G)
        return np.linalg.solve(G.T @ M @ G, tau - G.T @ values["bias"])

    return solve


def dense_lagrange(robot: Robot, compile: Compile) -> Callable[..., np.ndarray]:
    """a(q, v, tau) by multipliers: (K H⁻¹ Kᵀ) λ = k − K H⁻¹ (τ − c). See `dense_projection`."""
    terms, matrices = _terms(robot, "dense_lagrange", "Kk", spread_and_constrain, compile)

    def solve(q: Any, v: Any, tau: Any) -> np.ndarray:
        values = terms(q, v)
        M, K, k = matrices.inertia(values["H_tree"]), matrices.blocks(values["all_K"], matrices.K), values["all_k"]
        applied = -values["bias"]
        applied[matrices.driven] += tau
        answers = np.linalg.solve(M, np.column_stack([applied, K.T]))
        multipliers = np.linalg.solve(K @ answers[:, 1:], k - K @ answers[:, 0])
        return (answers[:, 0] + answers[:, 1:] @ multipliers)[matrices.driven]

    return solve


def dense_osim(robot: Robot, frames: Sequence[tuple[int, Transform]], compile: Compile) -> Callable[..., np.ndarray]:
    """J G (GᵀHG)⁻¹ Gᵀ Jᵀ of some frames as a function of q. See `dense_projection`."""
    sweep = spanning_sweep(robot, "dense_osim")
    sweep.inputs("q")
    spanning = Spanning(sweep, matrices="G", as_results=True)
    sweep.outward(place_and_project)
    tree, positions = spanning.tree, spanning.vectors["p"]
    add_mass_matrix(sweep, spanning, _inertia_result(sweep, spanning))
    for i, (link, place) in enumerate(frames):
        number, J = tree.tree.number[robot.tree.links[link].joint], sweep.result(f"J{i}", 6 * tree.nv)
        sweep.call(frame_jacobian_program(tree, number, place, along_world=False), q=positions, J=J)
    terms, matrices = _by_name(sweep.build(), compile), _Matrices(robot, spanning)

    def solve(q: Any) -> np.ndarray:
        values = terms(q)
        M, G = matrices.inertia(values["H_tree"]), matrices.blocks(values["all_G"], matrices.G)
        J = np.concatenate([values[f"J{i}"].reshape(6, -1) for i in range(len(frames))]) @ G
        return J @ np.linalg.solve(G.T @ M @ G, J.T)

    return solve


def _terms(robot: Robot, name: str, matrices: str, spread: Any, compile: Compile) -> tuple[Any, _Matrices]:
    """(q, v) → inertia, bias and loop matrices of the spanning tree by name, and where their entries belong."""
    sweep = spanning_sweep(robot, name)
    sweep.inputs("q", "v")
    spanning = Spanning(sweep, matrices=matrices, as_results=True)
    sweep.outward(spread)
    add_mass_matrix(sweep, spanning, _inertia_result(sweep, spanning))
    motion, bias = spanning.vectors, sweep.result("bias", spanning.tree.nv)
    sweep.call(inverse_dynamics_program(spanning.tree), q=motion["p"], v=motion["w"], a=motion["wd"], tau=bias)
    return _by_name(sweep.build(), compile), _Matrices(robot, spanning)


def _inertia_result(sweep: Any, spanning: Spanning) -> Any:
    return sweep.result("H_tree", len(mass_matrix_entries(spanning.tree)[0]))


def _by_name(program: Any, compile: Compile) -> Callable[..., dict[str, np.ndarray]]:
    """A program as a function that returns its results by name."""
    compiled, names = compile(program), [output.name for output in program.outputs]
    return lambda *inputs: dict(zip(names, compiled(*inputs), strict=True))


class _Matrices:
    """The rows and columns of results' entries in dense matrices."""

    def __init__(self, robot: Robot, spanning: Spanning) -> None:
        self._n = spanning.tree.nv
        self._rows, self._columns = mass_matrix_entries(spanning.tree)
        free, joints = independent_entries(robot), joint_entries(robot, spanning.tree)
        dependent = np.cumsum([0, *(n - m for n, m in spanning.sizes)])
        rows = [np.arange(*dependent[k : k + 2]) for k in range(len(free))]
        self.G = self._places(joints, free, (self._n, robot.nv))
        self.K = self._places(rows, joints, (int(dependent[-1]), self._n))
        self.driven = np.zeros(robot.nv, int)  # where independent velocities are among all
        tree, embedding = robot.tree, robot.embedding
        for link in range(1, len(tree.links)):
            at = spanning.tree.v_slice(tree.links[link].joint)
            for entry, place in zip(range(at.start, at.stop), embedding.v_place[tree.velocities(link)], strict=True):
                if place >= 0:
                    self.driven[place] = entry

    @staticmethod
    def _places(rows: Sequence[np.ndarray], columns: Sequence[np.ndarray], shape: tuple[int, int]) -> Any:
        i = np.concatenate([np.repeat(row, len(column)) for row, column in zip(rows, columns, strict=True)])
        j = np.concatenate([np.tile(column, len(row)) for row, column in zip(rows, columns, strict=True)])
        return i.astype(int), j.astype(int), shape

    def inertia(self, entries: np.ndarray) -> np.ndarray:
        H = np.zeros((self._n, self._n))
        H[self._rows, self._columns] = entries
        H[self._columns, self._rows] = entries
        return H

    @staticmethod
    def blocks(entries: np.ndarray, places: Any) -> np.ndarray:
        i, j, shape = places
        whole = np.zeros(shape)
        whole[i, j] = entries
        return whole
