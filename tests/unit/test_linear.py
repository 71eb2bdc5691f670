"""Small linear systems, of floats and of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import array
from coupler.linear import Cholesky


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
