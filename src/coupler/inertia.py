"""The mass matrix of a robot, its factors and its inverse, and products with both in linear time [003, §IV-B].

Leading dimensions of q and x are a batch, computed in lanes and threads. Numbers are float64, or float32 if q is.
Results are new arrays and depend on the arguments alone. Only the first of these functions computes H.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.algorithms.crba import mass_matrix_entries, mass_matrix_program
from coupler.algorithms.factorization import (
    mass_matrix_factors_entries,
    mass_matrix_factors_program,
    mass_matrix_product_program,
    mass_matrix_solve_program,
)
from coupler.algorithms.mass_matrix_inverse import mass_matrix_inverse_entries, mass_matrix_inverse_program
from coupler.compiled import remembered, run
from coupler.model import Robot

__all__ = ["mass_matrix", "mass_matrix_factors", "mass_matrix_inverse", "mass_matrix_product", "mass_matrix_solve"]


def mass_matrix(robot: Robot, q: Any) -> np.ndarray:
    """The mass matrix H(q) of the independent joints, by the composite-rigid-body algorithm on clusters.

    The kinetic energy is ½ vᵀ H v. Loops, rotors and armatures are accounted for.

    Args:
        q: (..., nq), a closed configuration.

    Returns:
        (..., nv, nv), symmetric and positive definite; kg m², kg m or kg.
    """
    entries = run(robot, mass_matrix_program, q)
    return remembered(robot, mass_matrix, _symmetric_in, mass_matrix_entries).filled(entries)


def mass_matrix_factors(robot: Robot, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """The factors B and D of the mass matrix H = Bᵀ D B [003, eq. 24], from articulated inertias.

    D has a block for each cluster: its inertia when all joints further out are free. B has ones on its diagonal, and
    further entries only in the rows of a cluster and the columns of clusters that carry it. With clusters in order from
    the base outwards, B is lower triangular.

    Args:
        q: (..., nq), a closed configuration.

    Returns:
        B and D, both (..., nv, nv); D in kg m², kg m or kg, symmetric and positive definite.
    """
    entries = run(robot, mass_matrix_factors_program, q)
    B, D = remembered(robot, mass_matrix_factors, _factors_in)
    return B.filled(entries), D.filled(entries)


def mass_matrix_inverse(robot: Robot, q: Any) -> np.ndarray:
    """The inverse H(q)⁻¹ of the mass matrix, without H: B⁻¹ D⁻¹ B⁻ᵀ with B⁻¹ = 1 − κ ψ X [003, eq. 26, 27].

    Args:
        q: (..., nq), a closed configuration.

    Returns:
        (..., nv, nv), symmetric and positive definite: the accelerations of independent joints by unit of force there.
    """
    entries = run(robot, mass_matrix_inverse_program, q)
    return remembered(robot, mass_matrix_inverse, _symmetric_in, mass_matrix_inverse_entries).filled(entries)


def mass_matrix_product(robot: Robot, q: Any, x: Any) -> np.ndarray:
    """The product H(q) x, in linear time: the forces for accelerations x, without the bias force c.

    Args:
        q: (..., nq), a closed configuration.
        x: (..., nv), accelerations of independent joints; or velocities, for which the results are momenta.

    Returns:
        (..., nv), N m or N.
    """
    return run(robot, mass_matrix_product_program, q, x)


def mass_matrix_solve(robot: Robot, q: Any, x: Any) -> np.ndarray:
    """The solution H(q)⁻¹ x, in linear time: the accelerations that forces x cause, without the bias force c.

    Args:
        q: (..., nq), a closed configuration.
        x: (..., nv), forces at independent joints, N m or N; or impulses, for which the results are velocity changes.

    Returns:
        (..., nv), accelerations of independent joints.
    """
    return run(robot, mass_matrix_solve_program, q, x)


class _Matrix:
    """A matrix some elements of which are results of a program, and the others constant."""

    def __init__(self, given: np.ndarray, rows: np.ndarray, columns: np.ndarray, otherwise: np.ndarray) -> None:
        """Args: the numbers of results, their rows and columns, and a matrix with all other elements."""
        self._place, constants, results = np.zeros(otherwise.shape, int), otherwise.copy(), otherwise * 0.0
        self._place[rows, columns], constants[rows, columns], results[rows, columns] = given, 0.0, 1.0
        self._results = None if results.all() else results  # 1 where elements are results, 0 elsewhere
        self._constants = constants if constants.any() else None

    def filled(self, results: np.ndarray) -> np.ndarray:
        # Many times faster than assigning results to a matrix of zeros; unless clipped, indices are checked.
        matrix = results.take(self._place, axis=-1, mode="clip")
        if self._results is not None:
            matrix *= self._results
        if self._constants is not None:
            matrix += self._constants
        return matrix


def _factors_in(robot: Robot) -> tuple[_Matrix, _Matrix]:
    rows, columns, of_D = mass_matrix_factors_entries(robot)
    n = robot.nv
    B = _Matrix(np.arange(of_D, len(rows)), columns[of_D:], rows[of_D:], np.eye(n))
    return B, _Matrix(np.arange(of_D), rows[:of_D], columns[:of_D], np.zeros((n, n)))


def _symmetric_in(robot: Robot, entries: Callable[[Robot], tuple[np.ndarray, np.ndarray]]) -> _Matrix:
    rows, columns = entries(robot)
    both = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    return _Matrix(np.tile(np.arange(len(rows)), 2), *both, np.zeros((robot.nv, robot.nv)))
