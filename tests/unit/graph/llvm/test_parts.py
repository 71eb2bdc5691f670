"""Long programs become several functions; what they compute does not depend on it."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import Builder, Program, View, fields
from coupler.graph.llvm import Native
from coupler.graph.llvm.render import Renderer

DOUBLE = np.dtype(np.float64)
SIZE = 5


def _far(state: View) -> None:
    state.y = state.x * 3.0


def _near(state: View):
    return abs(state.y) < 1.0


def _halve(row: View) -> None:
    row.y = row.y * 0.5 + 0.01 * row.x


def _turn(row: View) -> None:
    row.y = row.y * -0.9 + 0.3 * row.x


def _add(row: View) -> None:
    row.y = row.y + row.x * row.x


def approaching(rare: bool) -> Program:
    """Every state repeats its steps as often as its first number asks for."""
    b = Builder("approaching")
    x, y = b.input("x", SIZE), b.output("y", SIZE)
    each = fields(x=x.at(range(SIZE)), y=y.at(range(SIZE)))
    b.loop(_far, state=each)
    with b.repeat(until=_near, at_most=20, rare=rare, state=fields(y=y.at(0))):
        for kernel in (_halve, _turn, _halve):
            b.loop(kernel, row=each)
    b.loop(_add, row=each)
    return b.build()


def parts(program: Program, lanes: int) -> int:
    return Renderer(program, DOUBLE, lanes, True).text.count("define internal fastcc void @part")


@pytest.mark.parametrize("rare", [False, True])
def test_steps_in_parts_give_the_same_bits(rare: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    program = approaching(rare)
    x = np.random.default_rng(0).normal(size=(37, SIZE)) * 10.0 ** np.arange(-1, 2).repeat(13)[:37, None]
    monkeypatch.setattr("coupler.graph.llvm.control._LONG", 10**9)
    expected = Native(program)(x)
    monkeypatch.setattr("coupler.graph.llvm.control._LONG", 1)
    assert parts(program, 1) > 2
    native = Native(program)
    np.testing.assert_array_equal(native(x), expected)
    np.testing.assert_array_equal([native(state) for state in x], expected)
    y = 3.0 * x  # by hand: lanes that are done wait for the others, unchanged
    for state, own in zip(y, x, strict=True):
        for _ in range(20):
            if abs(state[0]) < 1.0:
                break
            state[:] = state * 0.5 + 0.01 * own
            state[:] = state * -0.9 + 0.3 * own
            state[:] = state * 0.5 + 0.01 * own
    np.testing.assert_allclose(expected, y + x * x, rtol=1e-13)


@pytest.mark.parametrize("lanes", [1, 8])
def test_rare_loops_that_differ_in_kernels_and_tables_share_a_function(lanes: int) -> None:
    assert parts(approaching(rare=False), lanes) == 0
    assert parts(approaching(rare=True), lanes) == 1


def test_a_long_module_is_compiled_sparingly_and_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    program, x = approaching(rare=True), np.random.default_rng(1).normal(size=(20, SIZE)) * 10.0
    full = Native(program)
    expected = full(x), [full(state) for state in x]
    monkeypatch.setattr("coupler.graph.llvm.native._LONG", 10)
    sparing = Native(program)
    np.testing.assert_array_equal(sparing(x), expected[0])
    np.testing.assert_array_equal([sparing(state) for state in x], expected[1])
    assert sparing.prepare().address != full.prepare().address
