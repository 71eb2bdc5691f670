"""Small linear systems, of floats and of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import array
from coupler.linear import Cholesky, null_space, solve


@pytest.mark.parametrize("n", [1, 2, 3, 6, 12])
def test_solutions(n: int) -> None:
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A = A @ A.T + np.eye(n)
    for b in (rng.normal(size=n), rng.normal(size=(n, 3))):
        np.testing.assert_allclose(Cholesky(A).solve(b), np.linalg.solve(A, b), rtol=0, atol=1e-12)


def test_nodes_are_taken_like_floats() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    A, b = A @ A.T + np.eye(4), rng.normal(size=4)
    traced = [float(node) for node in Cholesky(array(A)).solve(array(b))]
    np.testing.assert_array_equal(traced, Cholesky(A).solve(b))


def test_the_lower_triangle_is_not_read() -> None:
    A = np.array([[4.0, 1.0], [np.nan, 3.0]])
    np.testing.assert_allclose(Cholesky(A).solve(np.array([1.0, 2.0])), np.linalg.solve([[4, 1], [1, 3]], [1, 2]))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
def test_any_square_matrix(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        A, b, B = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=(n, 2))
        tolerance = 1e-14 * np.linalg.cond(A) * n
        np.testing.assert_allclose(solve(A, b), np.linalg.solve(A, b), rtol=0, atol=tolerance * 10)
        np.testing.assert_allclose(solve(A, B), np.linalg.solve(A, B), rtol=0, atol=tolerance * 10)


def test_a_zero_on_the_diagonal_needs_no_pivot() -> None:
    A = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 3.0, 0.0]])
    np.testing.assert_allclose(solve(A, np.eye(3)) @ A, np.eye(3), rtol=0, atol=1e-15)
    traced = np.array([[float(x) for x in row] for row in solve(array(A), array(np.eye(3)))])
    np.testing.assert_allclose(traced, np.linalg.inv(A), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (2, 3), (2, 5), (5, 7), (10, 12), (3, 3)])
def test_the_null_space_of_a_matrix(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    for part in (1.0, 0.5):  # with zeros, too
        K = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < part)
        K[:, :rows] += np.eye(rows)
        N, inverse = null_space(K)
        assert N.shape == (columns, columns - rows)
        np.testing.assert_allclose(K @ N, 0.0, rtol=0, atol=1e-13)
        np.testing.assert_allclose(N.T @ N, np.eye(columns - rows), rtol=0, atol=1e-13)
        size = 1e-13 * np.linalg.cond(K) ** 2
        np.testing.assert_allclose(inverse, np.linalg.pinv(K), rtol=0, atol=size)
