"""What follows from parameters alone, computed once for many calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.graph import Builder, Parameters, Program, View, compile, constants, fields
from coupler.graph.hoist import hoisted
from coupler.graph.llvm.render import Renderer


def lever(row: View) -> None:
    row.y = row.x * row.arm[0] + row.arm[2] * row.load


def levers(parameters: Parameters, rows: int = 3) -> Program:
    """y = x · arm₀ + arm₂ · load, where arm₁ is not read, and the last load is a number."""
    p = parameters.nodes
    arms = [[p[i] * p[i + 1], p[i] + 1.0, p[i + 1]] for i in range(rows)]
    b = Builder("levers", parameters)
    x, y = b.input("x", rows), b.output("y", rows)
    at = range(rows)
    loads = [*(2.0 * p[: rows - 1]), 0.5]
    b.loop(lever, row=fields(x=x.at(at), y=y.at(at), arm=constants(arms), load=constants(loads)))
    return b.build()


@pytest.mark.parametrize("states", [1, 7, 8, 9, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_prepared_parameters_give_what_parameters_give(states: int, dtype: Any) -> None:
    program, rng = levers(Parameters(4)), np.random.default_rng(states)
    x, p = rng.normal(size=(states, 3)).astype(dtype), rng.uniform(0.5, 2.0, (states, 4))
    executable = compile(program, dtype, prepared=True)
    given = executable.prepared(p).astype(dtype, copy=False)
    expected = compile(program, backend="interpreter")(x.astype(float), p)
    tolerance = 1e-6 if dtype is np.float32 else 1e-15
    np.testing.assert_allclose(executable(x, given), expected, rtol=tolerance, atol=tolerance)
    out = np.empty_like(x)
    executable(x, given, out=out)
    assert (out == executable(x, given)).all()
    for chosen in (slice(1, None), slice(None, None, -1), slice(None, None, 2)):  # which lie in no register
        np.testing.assert_array_equal(executable(x[chosen], given[chosen]), out[chosen])
    one = [executable(x[i], executable.prepared(p[i]).astype(dtype)) for i in range(0, states, 97)]
    np.testing.assert_array_equal(one, out[::97])  # bit for bit


def test_a_long_batch_is_run_in_parts() -> None:
    program, rng = levers(Parameters(4)), np.random.default_rng(0)
    executable = compile(program, prepared=True, threads=2)
    x, p = rng.normal(size=(200_003, 3)), rng.uniform(0.5, 2.0, (200_003, 4))
    given = executable.prepared(p)
    executable(x, given)  # compiles
    found = executable(x, given)
    np.testing.assert_array_equal(found, executable(x, np.array(given)))


def test_batches_of_other_shapes_are_broadcast() -> None:
    program, rng = levers(Parameters(4)), np.random.default_rng(1)
    executable, p = compile(program, prepared=True), rng.uniform(0.5, 2.0, (9, 4))
    x, given = rng.normal(size=(5, 9, 3)), executable.prepared(p)
    np.testing.assert_allclose(executable(x, given), compile(program)(x, p), rtol=1e-15)
    np.testing.assert_allclose(executable(x[0, 0], given), compile(program)(x[0, 0], p), rtol=1e-15)


def test_only_what_is_read_is_prepared_and_nothing_else_is_computed() -> None:
    parts = hoisted(levers(Parameters(4)))
    assert parts is not None
    preparation, rest = parts
    assert rest.inputs[-1].size == 3 * 2 + 3  # arm₀ and arm₂, and loads: the last is a number, in the table of others
    assert [case.kernel.name for case in rest.cases()] == ["lever"]
    assert not rest.scratch
    assert "lever" not in [case.kernel.name for case in preparation.cases()]


def test_batches_fetch_the_parameters_of_the_next_states_once() -> None:
    """Where they are first read: asked for all at once, they are more than memory hands out."""

    def fetched(rows: int, lanes: int) -> tuple[int, int]:
        """How many are written in the text, and how many parameters are prepared."""
        parameters = Parameters(rows + 1)
        p, at, b = parameters.nodes, range(rows), Builder("twice", parameters)
        x, y = b.input("x", rows), b.output("y", rows)
        row = fields(
            x=x.at(at),
            y=y.at(at),
            arm=constants([[p[i] * p[i + 1], p[i] + 1.0, p[i + 1]] for i in at]),
            load=constants(2.0 * p[:rows]),
        )
        b.loop(lever, row=row)
        b.loop(lever, row=row)
        parts = hoisted(b.build())
        assert parts is not None
        return Renderer(parts[1], np.dtype(float), lanes, True).text.count("@llvm.prefetch"), parts[1].inputs[-1].size

    assert fetched(rows=5, lanes=8) == (15, 15)  # spelled out row by row
    assert fetched(rows=500, lanes=8) == (3, 1500)  # in a loop
    assert fetched(rows=5, lanes=1) == (0, 15)


def test_a_program_without_parameters_is_left_as_it_is() -> None:
    b = Builder("plain")
    x, y = b.input("x", 1), b.output("y", 1)

    def twice(row: View) -> None:
        row.y = 2.0 * row.x

    b.loop(twice, row=fields(x=x.at(0), y=y.at(0)))
    assert hoisted(b.build()) is None


def test_called_programs_and_repeats_take_prepared_parameters() -> None:
    parameters = Parameters(4)
    inner = levers(parameters)
    b = Builder("outer", parameters)
    x, y, total = b.input("x", 3), b.output("y", 3), b.output("total", 1)

    def begin(row: View) -> None:
        row.total = np.array(0.0)

    def add(row: View) -> None:
        row.total += row.step + 0.0 * row.y

    def enough(row: View) -> Any:
        return row.total >= row.most

    p = parameters.nodes
    b.loop(begin, row=fields(total=total.at(0)))
    b.call(inner, x=x, y=y)
    most = constants([p[2] + p[3]])
    with b.repeat(until=enough, at_most=50, row=fields(total=total.at(0), most=most)):
        b.call(inner, x=x, y=y)
        b.loop(add, row=fields(total=total.at(0), y=y.at(0), step=constants([p[0] * p[1]])))
    program = b.build()
    parts = hoisted(program)
    assert parts is not None and not any(case.kernel.name == "parameters" for case in parts[1].cases())
    rng = np.random.default_rng(2)
    x_given, p_given = rng.normal(size=(20, 3)), rng.uniform(0.5, 2.0, (20, 4))
    executable = compile(program, prepared=True)
    found = executable(x_given, executable.prepared(p_given))
    for own, expected in zip(found, compile(program, backend="python")(x_given, p_given), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-14)
