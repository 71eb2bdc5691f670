"""Tables that nodes are looked up in; tests/samples.py has a program for every back end."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import Builder, GraphError, Table, View, fields, jacobian, symbols, template, unroll
from coupler.graph.walk import listing

SQUARES = Table(np.arange(10.0) ** 2)


def test_floats_and_constants_give_numbers() -> None:
    places = np.array([-1.0, 0.0, 2.0, 2.9, 9.0, 12.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(SQUARES.look_up(places), [0, 0, 4, 4, 81, 81, 81, 0, 0])
    assert SQUARES.look_up(3.5) == 9.0
    assert SQUARES.look_up(np.float32(3.5)).dtype == np.float32
    x = symbols("x", 1)[0]
    assert float(SQUARES.look_up(0.0 * x + 5.0)) == 25.0


def test_the_same_place_is_one_node_and_another_table_another_one() -> None:
    x = symbols("x", 2)
    assert SQUARES.look_up(x[0]) is SQUARES.look_up(x[0])
    assert SQUARES.look_up(x[0]) is not Table(SQUARES.values).look_up(x[0])
    assert SQUARES.look_up(x).shape == (2,)
    y = SQUARES.look_up(x[0]) + Table([1.0]).look_up(x[0])
    assert listing([y]).splitlines()[:2] == ["%0 = lookup(t0, x[0])", "%1 = lookup(t1, x[0])"]


def test_kernels_that_differ_in_their_tables_alone_are_the_same_kernel() -> None:
    b = Builder("heights")
    x, y = b.input("x", 2), b.output("y", 2)
    for i, table in enumerate((SQUARES, Table([3.0, 4.0]))):

        def look(row: View, table: Table = table) -> None:
            row.y = np.array(table.look_up(row.x))

        b.loop(look, row=fields(x=x.at(i), y=y.at(i)))
    program = b.build()
    kernels = [step.cases[0].kernel for step in program.steps]  # type: ignore[union-attr]
    assert kernels[0].text == kernels[1].text
    assert [len(kernel.tables[0].values) for kernel in kernels] == [10, 2]
    straight = unroll(program)
    assert len(straight.steps[0].cases[0].kernel.tables) == 2  # type: ignore[union-attr]


def test_derivatives_see_a_constant_between_its_steps() -> None:
    found = jacobian(lambda x: np.array([SQUARES.look_up(x[0]) * x[1]]), np.array([3.2, 5.0]))
    np.testing.assert_array_equal(found, [[0.0, 9.0]])


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(GraphError, match=r"1 to 16777216 numbers, got 0"):
        Table([])
    with pytest.raises(GraphError, match=r"number 1 is not"):
        Table([1.0, np.nan])
    x = symbols("x", 1)
    with pytest.raises(GraphError, match="must be a number"):
        SQUARES.look_up(x[0] < 1.0)
    with pytest.raises(GraphError, match="no place in a template"):
        template(lambda x: np.array([SQUARES.look_up(x[0])]), 1)
