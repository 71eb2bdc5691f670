"""Numbers of tables that a program is given, on every back end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.graph import Builder, GraphError, Parameters, Program, View, compile, constants, fields, unroll
from coupler.graph.c import render

BACKENDS = ["llvm", "interpreter", "python"]


def scale(row: View) -> None:
    row.y = row.x * row.factor + row.both[0] * row.both[1]


def scaling(parameters: Parameters | None, factor: Any, both: Any) -> Program:
    """y = x · factor + both₀ · both₁, row by row."""
    b = Builder("scaling", parameters)
    x, y = b.input("x", 3), b.output("y", 3)
    rows = range(3)
    b.loop(scale, row=fields(x=x.at(rows), y=y.at(rows), factor=constants(factor), both=constants(both)))
    return b.build()


def mixed(p: Any) -> tuple[Any, Any]:
    """Rows that are numbers, parameters as they come, and formulas alike and not."""
    factor = [2.0 * p[0] + 3.0, 4.0 * p[1] + 5.0, 0.0]
    return factor, [[1.0, p[2]], [1.0, p[3]], [1.0, p[4] / p[0]]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_programs_compute_with_parameters_as_with_numbers(backend: Any, dtype: Any) -> None:
    parameters, rng = Parameters(5), np.random.default_rng(0)
    program = scaling(parameters, *mixed(parameters.nodes))
    assert [buffer.name for buffer in program.inputs] == ["x", "parameters"]
    x, p = rng.normal(size=(7, 3)).astype(dtype), rng.uniform(0.5, 2.0, (7, 5)).astype(dtype)
    found = compile(program, dtype, backend=backend)(x, p)
    for own, values, y in zip(x, p, found, strict=True):
        expected = compile(scaling(None, *mixed(values.astype(float))), backend="interpreter")(own.astype(float))
        np.testing.assert_allclose(y, expected, rtol=0.0, atol=1e-5 if dtype is np.float32 else 1e-14)


def test_rows_alike_are_computed_by_one_kernel() -> None:
    parameters = Parameters(12)
    p = parameters.nodes.reshape(3, 4)
    factor = [row[0] + (i + 2.0) * row[1] for i, row in enumerate(p)]
    program = scaling(parameters, factor, [[row[2], row[3]] for row in p])
    computing = [case for case in program.cases() if case.kernel.name == "parameters"]
    assert [case.rows for case in computing] == [3]  # and `both` is taken from the input as it is


def test_what_no_result_needs_is_not_computed() -> None:
    parameters = Parameters(2)
    b = Builder("half", parameters)
    x, y = b.input("x", 1), b.output("y", 1)

    def half(row: View) -> None:
        row.y = row.x * row.used

    unused = constants([2.0 * parameters.nodes[1]])
    b.loop(half, row=fields(x=x.at(0), y=y.at(0), used=constants([0.5]), unused=unused))
    program = b.build()
    assert [buffer.name for buffer in program.inputs] == ["x"]
    assert [case.kernel.name for case in program.cases()] == ["half"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_parameters_reach_into_repeats_and_called_programs(backend: Any) -> None:
    parameters = Parameters(5)
    inner = scaling(parameters, *mixed(parameters.nodes))
    b = Builder("outer", parameters)
    x, y, z = b.input("x", 3), b.output("y", 3), b.output("z", 1)
    b.call(inner, x=x, y=y)

    def begin(row: View) -> None:
        row.z = np.array(0.0)

    def add(row: View) -> None:
        row.z += row.step

    def enough(row: View) -> Any:
        return row.z >= 3.0

    b.loop(begin, row=fields(z=z.at(0)))
    with b.repeat(until=enough, at_most=20, row=fields(z=z.at(0))):
        b.loop(add, row=fields(z=z.at(0), step=constants([parameters.nodes[0] * parameters.nodes[1]])))
    p = np.array([0.5, 2.0, 0.3, 0.4, 0.6])
    own, total = compile(b.build(), backend=backend)(np.ones(3), p)
    np.testing.assert_allclose(own, compile(inner)(np.ones(3), p), rtol=1e-15)
    np.testing.assert_allclose(total, [3.0])


def test_unrolled_programs_and_c_take_parameters() -> None:
    parameters = Parameters(5)
    program = scaling(parameters, *mixed(parameters.nodes))
    p = np.array([0.5, 2.0, 0.3, 0.4, 0.6])
    expected = compile(program)(np.ones(3), p)
    np.testing.assert_allclose(compile(unroll(program))(np.ones(3), p), expected, rtol=1e-14)
    assert "parameters" in render(program).header


def test_nodes_that_are_no_parameters_are_refused() -> None:
    parameters, others = Parameters(2), Parameters(2)
    with pytest.raises(GraphError, match="no parameter of its program"):
        scaling(parameters, 2.0 * others.nodes[[0, 0, 1]], np.ones((3, 2)))
    with pytest.raises(GraphError, match=r"row\.factor depends on parameters, which the program does not have"):
        scaling(None, 2.0 * parameters.nodes[[0, 0, 1]], np.ones((3, 2)))
