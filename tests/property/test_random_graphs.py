"""Random graphs: machine code against the interpreter, lanes against one state, loops against their unrolling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from coupler.graph import (
    Builder,
    Interpreter,
    Node,
    Program,
    View,
    constants,
    fields,
    jvp,
    unroll,
    vjp,
)
from coupler.graph.expr import apply, as_node, where
from coupler.graph.llvm import Native
from coupler.graph.measure import operations
from coupler.graph.operations import OPERATIONS
from coupler.graph.rewrite import PASSES, rewrite
from coupler.graph.walk import topological
from effort import examples


@pytest.fixture(autouse=True, scope="module")
def no_disk_cache() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COUPLER_CACHE", "off")
        yield


def drawn(short: int, long: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return examples(short, long, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


# Graphs are drawn as recipes: a list of operations, each with numbers that choose among the nodes made before it.


@dataclass(frozen=True)
class Recipe:
    """A function from inputs to outputs, drawn at random.

    Attributes:
        kind: which operations are used, and how their arguments are kept in range.
        steps: an operation and the choice of its arguments, for each node.
        inputs: how many numbers go in.
        outputs: how many numbers come out: the ones made last.
        constants: numbers that nodes may use besides the inputs.
    """

    kind: dict[str, Callable[..., Node]]
    steps: Sequence[tuple[str, tuple[int, int, int]]]
    inputs: int
    outputs: int
    constants: Sequence[float]

    def __call__(self, inputs: Sequence[Node], constants: Sequence[Any] | None = None) -> list[Node]:
        numbers = [*inputs, *map(as_node, self.constants if constants is None else constants)]
        truths = [numbers[0] < numbers[-1]]
        for op, chosen in self.steps:
            first = truths if op in ("and", "or", "not", "select") else numbers
            rest = truths if op in ("and", "or") else numbers
            pools = [first, rest, rest][: OPERATIONS[op].arity]
            args = [pool[-1 - i % len(pool)] for pool, i in zip(pools, chosen, strict=False)]  # new ones are likelier
            node = self.kind[op](*args)
            (truths if OPERATIONS[op].logical else numbers).append(node)
        return [numbers[-1 - i % len(numbers)] for i in range(self.outputs)]

    def program(self, passes: Sequence[str] = ()) -> Program:
        """The function as one kernel over one row."""
        b = Builder("random")
        x, y = b.input("x", self.inputs), b.output("y", self.outputs)

        def kernel(s: View) -> None:
            s.y = np.array(rewrite(self(list(s.x)), passes))

        b.loop(kernel, s=fields(x=x.at(0, self.inputs), y=y.at(0, self.outputs)))
        return b.build()


@st.composite
def recipes(draw: st.DrawFn, kind: dict[str, Callable[..., Node]], most: int = 60) -> Recipe:
    index = st.integers(0, 30)
    often = [op for op in ("add", "sub", "mul", "div", "select") * 3 if op in kind]
    step = st.tuples(st.sampled_from([*often, *kind]), st.tuples(index, index, index))
    size = draw(st.integers(1, most))
    steps = draw(st.lists(step, min_size=size, max_size=size))
    constant = st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.1, -3.7, 100.0])
    return Recipe(kind, steps, draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.lists(constant, max_size=3)))


# Every operation, its arguments kept to where it is defined to the last bit: exponent and power_of_two want what the
# elementary functions give them, and the sign of NaN is nobody's business. Factors are neither huge nor tiny, so that
# the interpreter's fused multiply-add, made of many operations, does not overflow on the way.


def _moderate(x: Node) -> Node:
    size = abs(x)
    return where(size < 1e-6, 0.0, apply("min", apply("max", x, as_node(-1e6)), as_node(1e6)))


def _sign(x: Node) -> Node:
    return where(x == x, x, 1.0)


ALL: dict[str, Callable[..., Node]] = {op: (lambda *args, op=op: apply(op, *args)) for op in OPERATIONS}
ALL["mul"] = lambda x, y: _moderate(x) * _moderate(y)
ALL["fma"] = lambda x, y, z: apply("fma", _moderate(x), _moderate(y), z)
ALL["copysign"] = lambda x, y: apply("copysign", x, _sign(y))
ALL["atan2"] = lambda y, x: apply("atan2", _sign(y), _sign(x))
ALL["exponent"] = lambda x: apply("exponent", where((abs(x) > 1e-30) & (abs(x) < 1e30), x, 1.0))
ALL["power_of_two"] = lambda x: apply("power_of_two", where(abs(x) < 30.0, apply("round", x), 3.0))

ELEMENTARY = {"sin", "cos", "tan", "asin", "acos", "atan2", "exp", "log"}
ARITHMETIC = {op: function for op, function in ALL.items() if op not in ELEMENTARY}


# Smooth operations, each arranged so that an error of its arguments is not made larger: errors add up and no more.


CALM: dict[str, Callable[..., Node]] = {
    "add": lambda x, y: 0.5 * (x + y),
    "sub": lambda x, y: 0.5 * (x - y),
    "mul": lambda x, y: 0.5 * _sin(x) * _cos(y),
    "div": lambda x, y: _sin(x) / (2.5 + _cos(y)),
    "fma": lambda x, y, z: apply("fma", 0.3 * _sin(x), _cos(y), 0.4 * z),
    "neg": lambda x: -x,
    "sqrt": lambda x: (1.0 + x * x) ** 0.5,
    "sin": lambda x: _sin(x),
    "cos": lambda x: _cos(x),
    "tan": lambda x: apply("tan", 0.7 * _sin(x)),
    "asin": lambda x: apply("asin", 0.7 * _sin(x)),
    "acos": lambda x: apply("acos", 0.7 * _sin(x)),
    "atan2": lambda y, x: apply("atan2", _sin(y), 3.0 + _cos(x)),
    "exp": lambda x: apply("exp", 0.3 * _sin(x)),
    "log": lambda x: apply("log", 2.0 + _sin(x)),
}


def _sin(x: Node) -> Node:
    return apply("sin", x)


def _cos(x: Node) -> Node:
    return apply("cos", x)


def states(recipe: Recipe, count: int, dtype: type, seed: int = 0) -> np.ndarray:
    """Numbers of many sizes; signed zeros, infinities and NaN among them."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, recipe.inputs)) * 10.0 ** rng.integers(-3, 4, (count, recipe.inputs))
    special = rng.choice([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5], values.shape)
    return np.where(rng.random(values.shape) < 0.3, special, values).astype(dtype)


def assert_same_bits(result: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(result, expected)  # NaN equals NaN here
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[known]), np.signbit(expected[known]))


BOTH = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@BOTH
@drawn(30, 600)
@given(recipe=recipes(ARITHMETIC))
def test_arithmetic_in_machine_code_is_that_of_the_interpreter_bit_for_bit(dtype: type, recipe: Recipe) -> None:
    # Rewritten beforehand, so that the interpreter, too, multiplies by reciprocals and fuses products and sums.
    program = recipe.program([*PASSES, *PASSES])
    inputs = states(recipe, 37, dtype)
    assert_same_bits(Native(program, dtype)(inputs), Interpreter(program, dtype)(inputs))


@BOTH
@drawn(12, 240)
@given(recipe=recipes(ALL, most=30))
def test_lanes_equal_one_state_bit_for_bit(dtype: type, recipe: Recipe) -> None:
    run = Native(recipe.program(), dtype)
    inputs = states(recipe, 19, dtype)
    together = run(inputs)
    for i, state in enumerate(inputs):
        assert_same_bits(together[i], run(state))


@BOTH
@drawn(12, 240)
@given(recipe=recipes(CALM, most=40))
def test_machine_code_is_near_the_interpreter(dtype: type, recipe: Recipe) -> None:
    program = recipe.program()
    inputs = np.random.default_rng(1).uniform(-2, 2, (11, recipe.inputs)).astype(dtype)
    near = 4 * operations(program.kernels()[0].outputs).total() * np.finfo(dtype).eps  # each rounds by itself
    expected = Interpreter(program, dtype)(inputs)
    scale = 1 + np.abs(recipe.constants).max(initial=2.0)
    for run in (Native(program, dtype), Native(unroll(program), dtype)):
        np.testing.assert_allclose(run(inputs), expected, rtol=0, atol=near * scale)


def looped(recipe: Recipe, table: np.ndarray) -> Program:
    """The recipe as a recurrence: each row of the table makes the next state of the last one and an input."""
    rows, width = len(table), recipe.outputs
    b = Builder("looped")
    x, y = b.input("x", rows), b.output("y", width)
    state = b.records("state", rows + 1, value=width)

    def begin(now: View) -> None:
        now.value = np.zeros(width)

    def step(now: View, then: View, row: View) -> None:
        then.value = np.array(recipe([*now.value, row.x], list(row.c)))

    def end(now: View, out: View) -> None:
        out.y = now.value

    b.loop(begin, now=state[0])
    row = fields(x=x.at(range(rows)), c=constants(table))
    b.loop(step, now=state[:-1], then=state[1:], row=row)
    b.loop(end, now=state[-1:], out=fields(y=y.at(0, width)))
    return b.build()


@drawn(36, 360)
@given(recipe=recipes(CALM, most=20), rows=st.integers(1, 6), seed=st.integers(0, 1000))
def test_unrolled_loops_compute_the_same(recipe: Recipe, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    simple, any_number = rng.choice([0.0, 1.0, -1.0, 2.0], (rows, 2)), rng.normal(size=(rows, 2))
    table = np.where(rng.random((rows, 2)) < 0.5, simple, any_number)
    program = looped(recipe, table)
    straight = unroll(program)
    inputs = rng.normal(size=(5, rows))
    np.testing.assert_allclose(Interpreter(straight)(inputs), Interpreter(program)(inputs), rtol=0, atol=1e-13)
    assert straight.operations().total() <= program.operations().total()
    assert straight.depth() <= program.depth()


@drawn(6, 60)
@given(recipe=recipes(CALM, most=10), seed=st.integers(0, 1000))
def test_unrolled_loops_compute_the_same_in_machine_code(recipe: Recipe, seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = looped(recipe, rng.normal(size=(4, 2)))
    inputs = rng.normal(size=(9, 4))
    np.testing.assert_allclose(Native(unroll(program))(inputs), Native(program)(inputs), rtol=0, atol=1e-12)


@drawn(48, 480)
@given(recipe=recipes(CALM), seed=st.integers(0, 1000))
def test_forward_and_reverse_derivatives_pair(recipe: Recipe, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, v = rng.uniform(-2, 2, (2, recipe.inputs))
    u = rng.uniform(-2, 2, recipe.outputs)

    def f(z: Any) -> np.ndarray:
        return np.array(recipe(list(z)))

    forward, reverse = u @ jvp(f, x, v), v @ vjp(f, x, u)
    np.testing.assert_allclose(forward, reverse, rtol=0, atol=1e-12)


@drawn(48, 480)
@given(recipe=recipes(CALM), seed=st.integers(0, 1000))
def test_derivatives_are_those_of_differences(recipe: Recipe, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, v = rng.uniform(-1, 1, (2, recipe.inputs))
    run, step = Interpreter(recipe.program()), 1e-5
    numerical = (run(x + step * v) - run(x - step * v)) / (2 * step)

    def f(z: Any) -> np.ndarray:
        return np.array(recipe(list(z)))

    np.testing.assert_allclose(jvp(f, x, v), numerical, rtol=0, atol=1e-6)


@drawn(36, 360)
@given(recipe=recipes(ALL))
def test_tracing_twice_gives_the_same_kernel(recipe: Recipe) -> None:
    first, again = recipe.program(), recipe.program()
    assert first.kernels()[0].text == again.kernels()[0].text
    assert len(topological(first.kernels()[0].outputs)) == len(topological(again.kernels()[0].outputs))
