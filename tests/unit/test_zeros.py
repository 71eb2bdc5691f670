"""Known zeros of large matrices: where elimination leaves them, and what it does where others turn up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.graph import Backend, Builder, View, compile, fields
from coupler.linear import Reflected, fitted, null_space_by_rows
from coupler.zeros import NullSpace, least_fill, plan_of_reflections, runs

CHAINS, LINKS, ROWS = 4, 5, 2


def loops_side_by_side() -> np.ndarray:
    """The pattern of K where each of several chains is closed against the first."""
    full = np.zeros((CHAINS * ROWS, (CHAINS + 1) * LINKS), bool)
    full[:, :LINKS] = True
    for k in range(CHAINS):
        full[k * ROWS : (k + 1) * ROWS, (k + 1) * LINKS : (k + 2) * LINKS] = True
    return full


def basis_program(full: np.ndarray) -> Any:
    m, n = full.shape
    b = Builder("basis")

    def kernel(x: View) -> None:
        K = np.where(full, x.K, 0.0)
        x.N, inverse = null_space_by_rows(K, NullSpace.of(full))
        x.P = inverse.matrix()
        by_columns = [Reflected.stored(inverse.numbers, NullSpace.of(full)) @ unit for unit in np.eye(m)]
        x.alike, x.fitted = np.array(by_columns).T, fitted(2.0 * K + x.other, inverse, np.ones(n))

    N, P = b.output("N", n * (n - m)).at([0], (n, n - m)), b.output("P", n * m).at([0], (n, m))
    alike, ends = b.output("alike", n * m).at([0], (n, m)), b.output("fitted", n).at([0], n)
    K, other = b.input("K", m * n).at([0], (m, n)), b.input("other", m * n).at([0], (m, n))
    b.loop(kernel, x=fields(K=K, other=other, N=N, P=P, alike=alike, fitted=ends))
    return b.build()


@pytest.mark.parametrize("backend", ["llvm", "interpreter", "python"])
@pytest.mark.parametrize("still", [False, True])
def test_bases_of_loops_side_by_side(backend: Backend, still: bool) -> None:
    """Right, with zeros where they are said to be; also where a chain happens to be unable to move the loop's ends."""
    full, rng = loops_side_by_side(), np.random.default_rng(0)
    m, n = full.shape
    K = np.where(full, rng.normal(size=full.shape), 0.0)
    if still:
        K[:, LINKS : 2 * LINKS] = 0.0
    other = 0.1 * rng.normal(size=full.shape)
    N, P, alike, ends = compile(basis_program(full), backend=backend)(K.ravel(), other.ravel())
    N, P = N.reshape(n, n - m), P.reshape(n, m)
    np.testing.assert_allclose(K @ N, 0.0, atol=1e-13)
    np.testing.assert_allclose(N.T @ N, np.eye(n - m), atol=1e-13)
    np.testing.assert_allclose(P, np.linalg.pinv(K), atol=1e-12)
    np.testing.assert_allclose(alike.reshape(n, m), P, atol=1e-13)
    np.testing.assert_allclose((2.0 * K + other) @ ends, 0.0, atol=1e-12)
    np.testing.assert_allclose(N.T @ ends, N.T @ np.ones(n), atol=1e-12)  # it moves by K⁺ z alone
    pattern = NullSpace.of(full).basis
    assert not N[~pattern].any()
    assert pattern.mean() < 0.5  # motions of a chain whose ends rest are its own


def test_elimination_keeps_an_arrow() -> None:
    """What everything depends on comes last, although it is first in the matrix."""
    full = np.eye(9, dtype=bool)
    full[0] = full[:, 0] = True
    assert least_fill(full)[-2:].count(0) == 1


def test_every_column_is_done_with_once() -> None:
    full = np.random.default_rng(1).random((12, 7)) < 0.4
    full[:7] |= np.eye(7, dtype=bool)
    _, done, left = plan_of_reflections(full)
    assert sorted(j for j, _ in done) == list(range(7))
    assert sorted([*(i for _, i in done), *left]) == list(range(12))


def test_runs_take_short_gaps() -> None:
    row = np.zeros(40, bool)
    row[[2, 3, 8, 30]] = True
    assert runs(row) == [(2, 7), (30, 1)]
    assert runs(row & False) == []
