"""How programs are called, on every back end: shapes, types, strides, and what is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from coupler.graph import Builder, Executable, GraphError, Program, View, fields
from coupler.graph import compile as compile_program
from machines import BACKENDS


def mix(s: View) -> None:
    s.total = s.x * 2.0 + s.y[0]
    s.product = s.x[0] * s.y


def program() -> Program:
    b = Builder("mix")
    b.loop(
        mix,
        s=fields(
            x=b.input("x", 3).at(0, 3),
            y=b.input("y", 2).at(0, 2),
            total=b.output("total", 3).at(0, 3),
            product=b.output("product", 2).at(0, 2),
        ),
    )
    return b.build()


PROGRAM = program()


@pytest.fixture(params=BACKENDS)
def run(request: pytest.FixtureRequest) -> Executable:
    return BACKENDS[request.param](PROGRAM, np.float64)


def check(result: tuple[np.ndarray, np.ndarray], x: np.ndarray, y: np.ndarray) -> None:
    x, y = np.asarray(x, float), np.asarray(y, float)
    np.testing.assert_array_equal(result[0], x * 2 + y[..., :1])
    np.testing.assert_array_equal(result[1], x[..., :1] * y)


SHARED = np.empty((21, 3))
X, Y = np.random.default_rng(0).normal(size=(2, 21, 3))
Y = Y[:, :2]


@pytest.mark.parametrize("states", [(), (1,), (5,), (21,), (3, 7), (7, 1, 3), (0,), (4, 0)])
def test_leading_dimensions_are_a_batch(run: Executable, states: tuple[int, ...]) -> None:
    count = int(np.prod(states))
    x, y = X[:count].reshape(*states, 3), Y[:count].reshape(*states, 2)
    result = run(x, y)
    assert result[0].shape == (*states, 3)
    check(result, x, y)


def test_batches_are_broadcast(run: Executable) -> None:
    check(run(X[0], Y), X[0][None].repeat(21, 0), Y)
    check(run(X[:5, None], Y[:4]), np.repeat(X[:5, None], 4, axis=1), Y[:4])


LAYOUTS = {
    "fortran": np.asfortranarray,
    "backwards": lambda a: a[::-1].copy()[::-1],
    "every other": lambda a: np.repeat(a, 2, axis=0)[::2],
    "columns apart": lambda a: np.repeat(a, 3, axis=1)[:, ::3],
    "columns backwards": lambda a: a[:, ::-1].copy()[:, ::-1],
    "unaligned": lambda a: np.frombuffer(b"?" + a.tobytes(), np.uint8)[1:].view(np.float64).reshape(a.shape),
    "read-only": lambda a: np.lib.stride_tricks.as_strided(a, a.shape, a.strides, writeable=False),
    "big-endian": lambda a: a.astype(">f8"),
    "lists": lambda a: a.tolist(),
    "through pickle": lambda a: pickle.loads(pickle.dumps(a)),  # whose dtype is equal, but another object
    "a subclass": lambda a: a.view(np.recarray),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_any_layout(run: Executable, layout: str) -> None:
    arrange = LAYOUTS[layout]
    check(run(arrange(X), arrange(Y)), X, Y)
    for i in (0, 20):
        check(run(arrange(X)[i], arrange(Y)[i]), X[i], Y[i])


def test_whole_numbers_and_single_precision_are_taken(run: Executable) -> None:
    check(run([1, 2, 3], np.array([4, 5], np.int8)), np.array([1, 2, 3]), np.array([4, 5]))
    check(run(X.astype(np.float32), Y), X.astype(np.float32), Y)


def test_inputs_by_name(run: Executable) -> None:
    check(run(y=Y, x=X), X, Y)
    check(run(X, y=Y), X, Y)


def test_results_are_fresh(run: Executable) -> None:
    first = run(X[0], Y[0])
    kept = [r.copy() for r in first]
    second = run(X[1], Y[1])
    assert not any(np.may_share_memory(a, b) for a in first for b in second)
    for result, before in zip(first, kept, strict=True):
        np.testing.assert_array_equal(result, before)


def test_results_can_be_written_to_given_arrays(run: Executable) -> None:
    out = (np.empty((21, 3)), np.full((21, 6), 7.0)[:, ::3])
    result = run(X, Y, out=out)
    assert result[0] is out[0]
    assert result[1] is out[1]
    check(out, X, Y)
    assert (out[1].base[:, 1] == 7.0).all()  # type: ignore[union-attr, index]
    odd = (np.empty((2, 3, 4, 3)).transpose(2, 1, 0, 3), np.empty((2, 3, 4, 2)).transpose(2, 1, 0, 3))
    x, y = np.broadcast_to(X[0], (4, 3, 2, 3)), np.broadcast_to(Y[0], (4, 3, 2, 2))
    check(run(x, y, out=odd), x, y)


def test_results_may_overwrite_inputs(run: Executable) -> None:
    x, y = X.copy(), Y.copy()
    check(run(x, y, out=(x[::-1], y)), X, Y)
    one = X[0].copy()
    check(run(one, Y[0], out=(one, np.empty(2))), X[0], Y[0])


def test_inputs_are_not_changed(run: Executable) -> None:
    x, y = X.copy(), Y.copy()
    run(x, y)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run(X[:, :2], Y), r"input 'x' has shape \(21, 2\); expected \(..., 3\)"),
        (lambda run: run(X[0], 3.0), r"input 'y' has shape \(\)"),
        (lambda run: run(X[:4], Y[:5]), r"do not fit together: x: \(4,\), y: \(5,\)"),
        (lambda run: run(X), r"mix\(x, y\): 'y' is missing"),
        (lambda run: run(X, Y, X), "takes 2 inputs, got 3"),
        (lambda run: run(X, Y, x=X), "'x' is given twice"),
        (lambda run: run(X, Y, z=X), "'z' is not an input"),
        (lambda run: run(X.astype(complex), Y), "input 'x' is complex128"),
        (lambda run: run([["a", "b", "c"]], Y), "input 'x' is <U1"),
        (lambda run: run(None, Y), "input 'x' is None, not an array of real numbers"),
        (lambda run: run(X, Y, out=np.empty((21, 3))), "has 2 outputs; out gives 1"),
        (
            lambda run: run(X, Y, out=(np.empty((21, 3)), np.empty((20, 2)))),
            r"out for 'product' must be float64 of \(21",
        ),
        (lambda run: run(X, Y, out=(np.empty((21, 3)), [0.0])), "got list"),
        (lambda run: run(X, Y, out=(np.empty((21, 3), "f4"), np.empty((21, 2)))), "out for 'total' must be float64"),
        (lambda run: run(X, X[:, :2], out=(SHARED, SHARED[:, :2])), "out for 'product' shares its memory"),
        (lambda run: run(X[0], Y[0], out=(np.frombuffer(bytes(24)), np.empty(2))), "out for 'total' is read-only"),
    ],
)
def test_what_is_refused_is_named(run: Executable, call, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        call(run)


@pytest.mark.parametrize("backend", BACKENDS)
def test_double_precision_is_not_squeezed_into_single(backend: str) -> None:
    run = BACKENDS[backend](PROGRAM, np.float32)
    with pytest.raises(GraphError, match=r"'x' is float64; this program runs in float32: convert it with np.asarray"):
        run(X, Y)
    with pytest.raises(GraphError, match="float64 or float32, not int64"):
        BACKENDS[backend](PROGRAM, np.int64)  # type: ignore[arg-type]


def test_numbers_are_checked_where_asked(run: Executable) -> None:
    x, y = X.copy(), Y.copy()
    x[4, 1] = np.nan
    run(x, y)
    with pytest.raises(GraphError, match="input 'x': element 1 of state 4 is nan"):
        run(x, y, check=True)
    with pytest.raises(GraphError, match="input 'x': element 1 is nan"):
        run(x[4], y[4], check=True)
    with pytest.raises(GraphError, match=r"input 'x': element 1 of state \(0, 4\) is nan"):
        run(x[None], y, check=True)
    y[3, 0] = np.inf
    with pytest.raises(GraphError, match="input 'y': element 0 of state 3 is inf"):
        run(X, y, check=True)
    check(run(X, Y, check=True), X, Y)


def test_what_is_ready_to_run_is_not_copied(run: Executable) -> None:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(GraphError, match="cannot be copied or pickled"):
            attempt(run)


def test_a_builder_is_not_a_program() -> None:
    with pytest.raises(GraphError, match="expected a program, got Builder; a Builder's program is its build"):
        compile_program(Builder("b"))  # type: ignore[arg-type]


def test_programs_without_inputs_or_with_empty_ones() -> None:
    b = Builder("constant")
    b.loop(lambda s: setattr(s, "y", np.array([1.0, 2.0])), s=fields(y=b.output("y", 2).at(0, 2)))
    without = b.build()
    b = Builder("empty")
    b.input("nothing", 0)
    b.loop(lambda s: setattr(s, "y", np.array([1.0, 2.0])), s=fields(y=b.output("y", 2).at(0, 2)))
    b.output("none", 0)
    empty = b.build()
    for make in BACKENDS.values():
        np.testing.assert_array_equal(make(without, np.float64)(), [1.0, 2.0])
        for states in ((), (3,), (0,), (20,)):
            y, none = make(empty, np.float64)(np.empty((*states, 0)))
            np.testing.assert_array_equal(y, np.broadcast_to([1.0, 2.0], (*states, 2)))
            assert none.shape == (*states, 0)


def test_the_back_end_is_chosen_by_name() -> None:
    assert type(compile_program(PROGRAM)).__name__ == "Native"
    assert type(compile_program(PROGRAM, backend="interpreter")).__name__ == "Interpreter"
    with pytest.raises(GraphError, match="no back end is called 'fpga'"):
        compile_program(PROGRAM, backend="fpga")  # type: ignore[arg-type]
