"""Linear algebra by rows: the same numbers as spelled out, on every back end, in one state and in lanes."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import Backend, Builder, View, compile, fields, jacobian
from coupler.linear import Cholesky, null_space, solve, symmetric_product
from coupler.rows import Rows

M, N = 15, 27


@pytest.fixture(autouse=True)
def _small_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small systems are computed by rows, too."""
    monkeypatch.setattr("coupler.rows.LONG", 300)
    for module in ("factors", "reflections"):
        monkeypatch.setattr(f"coupler.linear.{module}.LONG", 300)


def program(sparse: np.ndarray):
    """K → a basis of its null space, its pseudo-inverse, K⁻¹ of a square part, and what Cholesky's factors give."""
    b = Builder("dense")
    shapes = {"N": (N, N - M), "P": (N, M), "S": (M, 3), "C": (M, 2), "v": (M,), "R": (M, M), "W": (3, 3), "T": (M, M)}

    def kernel(x: View) -> None:
        x.N, x.P = null_space(np.where(sparse, x.K, 0.0))
        x.S = solve(x.K[:, :M], x.K[:, -3:])
        factors = Cholesky(x.K @ x.K.T)
        x.C, x.v, x.R = factors.solve(x.K[:, :2]), factors.solve(x.K[:, 4]), factors.root()
        x.W = factors.sandwich(x.K[:, :3])
        x.T = symmetric_product(x.K, x.K.T)

    slots = {name: b.output(name, int(np.prod(shape))).at([0], shape) for name, shape in shapes.items()}
    b.loop(kernel, x=fields(K=b.input("K", M * N).at([0], (M, N)), **slots))
    return b.build(), shapes


@pytest.mark.parametrize("backend", ["llvm", "interpreter", "python"])
def test_what_is_computed_by_rows_is_right(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    sparse = rng.random((M, N)) < 0.4
    dense, shapes = program(sparse)
    run, K = compile(dense, backend=backend), rng.normal(size=(11, M * N))
    results = run(K)
    for i, k in enumerate(K.reshape(-1, M, N)):
        x = {name: values[i].reshape(shape) for (name, shape), values in zip(shapes.items(), results, strict=True)}
        A, open_ones = k @ k.T, np.where(sparse, k, 0.0)
        np.testing.assert_allclose(open_ones @ x["N"], 0.0, atol=1e-12)
        np.testing.assert_allclose(x["N"].T @ x["N"], np.eye(N - M), atol=1e-12)
        np.testing.assert_allclose(x["P"], np.linalg.pinv(open_ones), atol=1e-10)
        np.testing.assert_allclose(k[:, :M] @ x["S"], k[:, -3:], atol=1e-10)
        np.testing.assert_allclose(A @ x["C"], k[:, :2], atol=1e-10)
        np.testing.assert_allclose(A @ x["v"], k[:, 4], atol=1e-10)
        np.testing.assert_allclose(x["R"].T @ x["R"], np.linalg.inv(A), atol=1e-10)
        np.testing.assert_allclose(x["W"], k[:, :3].T @ np.linalg.solve(A, k[:, :3]), atol=1e-10)
        np.testing.assert_allclose(x["T"], np.triu(A), atol=1e-12)
        for one, several in zip(run(K[i]), results, strict=True):
            np.testing.assert_array_equal(one, several[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_states_left_out_of_a_repeat_keep_their_numbers(dtype: type) -> None:
    """A kernel with operations on rows, run under a mask of lanes."""
    b = Builder("masked")
    n = 16
    A, count, y = b.input("A", n * n), b.input("count", 1), b.output("y", n)
    left = b.scratch("left", 1)

    def begin(x: View) -> None:
        x.left, x.y = x.count, np.ones(n)

    def again(x: View) -> None:
        x.y, x.left = Cholesky(x.A @ x.A.T + n * np.eye(n)).solve(x.y), x.left - 1.0

    vector = fields(y=y.at([0], n), left=left.at([0]))
    b.loop(begin, x=vector | fields(count=count.at([0])))
    with b.repeat(until=lambda x: x.left <= 0.0, at_most=9, x=fields(left=left.at([0]))):
        b.loop(again, x=vector | fields(A=A.at([0], (n, n))))
    run, rng = compile(b.build(), dtype), np.random.default_rng(1)
    matrices, counts = rng.normal(size=(21, n * n)).astype(dtype), rng.integers(0, 4, (21, 1)).astype(dtype)
    results = run(matrices, counts)
    for i, (a, times) in enumerate(zip(matrices.reshape(-1, n, n).astype(float), counts, strict=True)):
        wanted = np.linalg.matrix_power(np.linalg.inv(a @ a.T + n * np.eye(n)), int(times[0])) @ np.ones(n)
        np.testing.assert_allclose(results[i], wanted, rtol=1e3 * np.finfo(dtype).eps, atol=1e-6)
        np.testing.assert_array_equal(run(matrices[i], counts[i]), results[i])


def test_a_long_product_is_a_table_not_a_text() -> None:
    sizes = {}
    for n in (16, 32):
        b = Builder("product")
        x = fields(A=b.input("A", n * n).at([0], (n, n)), B=b.output("B", n * n).at([0], (n, n)))

        def kernel(x: View) -> None:
            x.B = x.A @ x.A

        b.loop(kernel, x=x)
        built = b.build()
        sizes[n] = len(built.kernels()[0].text.splitlines())
        assert built.operations()["rows"] == n**3
    assert sizes[32] < 5 * sizes[16]  # as the elements, not as the products


def test_derivatives_go_through_it() -> None:
    rng, n = np.random.default_rng(2), 14
    A, b = rng.normal(size=(n, n)) + n * np.eye(n), rng.normal(size=n)
    builder = Builder("derived")

    def kernel(x: View) -> None:
        x.J = jacobian(lambda t: solve(A + t[0] * np.ones((n, n)), b + t[1]), x.t)

    builder.loop(kernel, x=fields(t=builder.input("t", 2).at([0], 2), J=builder.output("J", 2 * n).at([0], (n, 2))))
    found = compile(builder.build())(np.zeros(2)).reshape(n, 2)
    inverse = np.linalg.inv(A)
    wanted = np.stack([-inverse @ np.ones((n, n)) @ inverse @ b, inverse @ np.ones(n)], axis=1)
    np.testing.assert_allclose(found, wanted, atol=1e-11)


def test_zeros_that_are_known_stay_known() -> None:
    """Rows of a product that nothing contributes to are the number zero, of which later operations are spared."""
    n = 20
    b = Builder("zeros")

    def kernel(x: View) -> None:
        half = np.where(np.arange(n)[:, None] < n // 2, x.A, 0.0)
        x.y = (half @ x.A)[n // 2 :].sum(axis=0)

    b.loop(kernel, x=fields(A=b.input("A", n * n).at([0], (n, n)), y=b.output("y", n).at([0], n)))
    built = b.build()
    assert not built.operations()
    np.testing.assert_array_equal(compile(built)(np.ones(n * n)), np.zeros(n))


def test_memory_is_zero_where_nothing_was_put() -> None:
    rows = Rows()
    a, c = rows.take(2), rows.take(2)
    rows.put(a, 3.0)
    rows.add(c, a, a, 2)
    np.testing.assert_array_equal(rows.run().matrix(a, 2, 2, 2), [[3.0, 0.0], [9.0, 0.0]])
