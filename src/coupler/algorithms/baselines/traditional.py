"""Accelerations and inverse operational-space inertia from the mass matrix and its Cholesky factors [002, §3.1].

The factors of a small H are written out in one kernel. Those of a large H are computed in tiles of 6 × 6, by small
kernels that are looped over tables of tiles, so that compile time does not grow with its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.baselines.spanning_tree import tree_mass_matrix
from coupler.algorithms.crba import mass_matrix_entries, mass_matrix_program
from coupler.algorithms.kinematics import frame_jacobian_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Place, Schedule, Sweep
from coupler.spatial import Transform, mirrored

TILE = 6  # rows and columns
SMALL = 12  # freedoms, up to which factors are written out


def traditional_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program (q, v, tau) → a, J H⁻¹ Jᵀ: accelerations of independent joints, and the inverse inertia of frames.

    Args:
        frames: for each frame the number of its link, and the transform from the link's frame to the frame.
    """
    n, sweep = robot.nv, Sweep(robot, "traditional")
    q, v, tau = sweep.inputs("q", "v", "tau")
    a, omega = sweep.result("a", n), sweep.result("omega", (6 * len(frames)) ** 2)
    H = sweep.scratch("entries", len(mass_matrix_entries(robot)[0]))
    bias, zero = sweep.scratch("bias", n), sweep.scratch("zero", n)
    schedule = sweep.schedule()
    schedule.clear(Place.whole(zero, n))
    schedule.run()
    sweep.call(mass_matrix_program(robot), q=q, H=H)
    sweep.call(inverse_dynamics_program(robot), q=q, v=v, a=zero, tau=bias)
    jacobians = [sweep.scratch(f"J{i}", 6 * n) for i in range(len(frames))]
    for (link, place), J in zip(frames, jacobians, strict=True):
        sweep.call(frame_jacobian_program(robot, link, place, along_world=False), q=q, J=J)
    if n <= SMALL:
        schedule, given = sweep.schedule(), [H, tau, bias, *jacobians]
        results = [Place.whole(x, x.size) for x in (a, omega) if x.size]
        schedule.call(_written_out(robot), *(Place.whole(x, x.size) for x in given), out=results)
        schedule.run()
        return sweep.build()
    tiles = _Tiles(sweep, n, 1 + 6 * len(frames))
    tiles.fill(H, tau, bias, jacobians)
    tiles.factorise()
    tiles.solve(a, omega, len(frames))
    return sweep.build()


def _written_out(robot: Robot) -> Any:
    """a, and J H⁻¹ Jᵀ if there are frames, from the entries of H, τ, c and the Jacobians."""

    def solve(entries: Any, tau: Any, bias: Any, *jacobians: Any) -> Any:
        factors = Cholesky(tree_mass_matrix(robot, entries))
        a = factors.solve(tau - bias)
        if not jacobians:
            return a
        J = np.concatenate([jacobian.reshape(6, -1) for jacobian in jacobians])
        return a, factors.sandwich(J.T).ravel()

    return solve


class _Tiles:
    """The tiles of the lower triangle of H and of right-hand sides, and the steps that work on them.

    Rows and columns of the last tiles that lie outside the matrix are those of the identity.
    """

    def __init__(self, sweep: Sweep[Any, Any], n: int, columns: int) -> None:
        self._sweep, self._n, self._columns, self._count = sweep, n, columns, -(-n // TILE)
        size = TILE * TILE
        self._row = {(i, j): k for k, (i, j) in enumerate((i, j) for i in range(self._count) for j in range(i + 1))}
        self._H = sweep.scratch("tiles", size * len(self._row))
        self._b = sweep.scratch("sides", TILE * columns * self._count)

    def A(self, i: int, j: int) -> Place:
        return Place.of(self._H, TILE * TILE * self._row[i, j], (TILE, TILE))

    def b(self, i: int) -> Place:
        return Place.of(self._b, TILE * self._columns * i, (TILE, self._columns))

    def x(self, i: int) -> Place:
        """The first column of a tile of right-hand sides."""
        return Place.block(self._b, TILE * self._columns * i, (TILE, 1), self._columns)

    def fill(self, H: Any, tau: Any, bias: Any, jacobians: Sequence[Any]) -> None:
        """Writes the steps that copy H, τ − c and Jᵀ into tiles."""
        schedule, width = self._sweep.schedule(), self._columns
        for i in range(self._count):
            for j in range(i + 1):
                schedule.call(_identity if i == j else _nothing, out=self.A(i, j))
            schedule.call(_zeros(TILE, width), out=self.b(i))
        for entry, (row, column) in enumerate(zip(*mass_matrix_entries(self._sweep.robot), strict=True)):
            r, c = max(row, column), min(row, column)
            tile, place = self._row[r // TILE, c // TILE], (r % TILE) * TILE + c % TILE
            self._copy(schedule, H, entry, self._H, TILE * TILE * tile + place)
        for row in range(self._n):
            at = TILE * width * (row // TILE) + width * (row % TILE)
            given = [Place.of(tau, row, 1), Place.of(bias, row, 1)]
            schedule.call(_difference, *given, out=Place.of(self._b, at, 1))
            for k, J in enumerate(jacobians):
                for e in range(6):
                    self._copy(schedule, J, e * self._n + row, self._b, at + 1 + 6 * k + e)
        schedule.run()

    @staticmethod
    def _copy(schedule: Schedule, source: Any, start: int, target: Any, at: int) -> None:
        schedule.copy(Place.of(source, start, 1), out=Place.of(target, at, 1))

    def factorise(self) -> None:
        """Writes the steps that factorise H = L Lᵀ; tiles on the diagonal hold R = L⁻¹ in place of L."""
        schedule = self._sweep.schedule()
        for k in range(self._count):
            schedule.call(_root, self.A(k, k), out=self.A(k, k))
            for i in range(k + 1, self._count):
                schedule.call(_below, self.A(i, k), self.A(k, k), out=self.A(i, k))
            for i in range(k + 1, self._count):
                schedule.call(_less_square, self.A(i, i), self.A(i, k), out=self.A(i, i))
                for j in range(k + 1, i):
                    schedule.call(_less_product, self.A(i, j), self.A(i, k), self.A(j, k), out=self.A(i, j))
        schedule.run()

    def solve(self, a: Any, omega: Any, frames: int) -> None:
        """Writes the steps to y = L⁻¹ of all right-hand sides, J H⁻¹ Jᵀ = yᵀ y, and L⁻ᵀ y of the first column."""
        schedule, size = self._sweep.schedule(), 6 * frames
        for k in range(self._count):
            for j in range(k):
                schedule.call(_less_times, self.b(k), self.A(k, j), self.b(j), out=self.b(k))
            schedule.call(_times, self.A(k, k), self.b(k), out=self.b(k))
        if frames:
            total = Place.of(self._sweep.scratch("total", size * size), 0, (size, size))
            schedule.clear(total)
            for k in range(self._count):
                schedule.call(_add_square, total, self.b(k), out=total)
            schedule.call(mirrored, total, out=Place.of(omega, 0, (size, size)))
        for k in reversed(range(self._count)):
            for i in range(k + 1, self._count):
                schedule.call(_less_transposed, self.x(k), self.A(i, k), self.x(i), out=self.x(k))
            schedule.call(_times_transposed, self.A(k, k), self.x(k), out=self.x(k))
        for row in range(self._n):
            at = TILE * self._columns * (row // TILE) + self._columns * (row % TILE)
            self._copy(schedule, self._b, at, a, row)
        schedule.run()


# Kernels


def _identity() -> Any:
    return np.eye(TILE)


def _nothing() -> Any:
    return np.zeros((TILE, TILE))


def _zeros(*shape: int) -> Any:
    return lambda: np.zeros(shape)


def _difference(x: Any, y: Any) -> Any:
    return x - y


def _root(A: Any) -> Any:
    """R, lower triangular, with A⁻¹ = Rᵀ R; A is known below its diagonal."""
    return Cholesky(A.T).root()


def _below(A: Any, R: Any) -> Any:
    return A @ _lower(R).T


def _less_square(A: Any, L: Any) -> Any:
    return A - L @ L.T


def _less_product(A: Any, L: Any, M: Any) -> Any:
    return A - L @ M.T


def _less_times(b: Any, L: Any, y: Any) -> Any:
    return b - L @ y


def _times(R: Any, b: Any) -> Any:
    return _lower(R) @ b


def _less_transposed(b: Any, L: Any, x: Any) -> Any:
    return b - L.T @ x


def _times_transposed(R: Any, b: Any) -> Any:
    return _lower(R).T @ b


def _add_square(total: Any, y: Any) -> Any:
    return total + y[:, 1:].T @ y[:, 1:]


def _lower(R: Any) -> Any:
    """R with the zeros above its diagonal made known to the trace."""
    return np.array([[R[i, j] if j <= i else 0.0 for j in range(TILE)] for i in range(TILE)])
