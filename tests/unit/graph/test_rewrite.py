"""Rewrite passes keep what a graph computes; operation counts and depth are those counted by hand."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from coupler.graph import Builder, GraphError, Node, Program, View, fields, symbol, symbols
from coupler.graph.array import nodes_of
from coupler.graph.expr import apply, constant
from coupler.graph.measure import depth, depths, operations
from coupler.graph.operations import OPERATIONS
from coupler.graph.rewrite import PASSES, explain, rewrite
from coupler.graph.walk import listing, topological
from samples import SAMPLES, chain

EXACT: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "fma": lambda x, y, z: x * y + z,
}


def evaluate(
    outputs: Sequence[Node], values: Mapping[Node, Any], number: Callable[[Any], Any], functions: Mapping[str, Any]
) -> list[Any]:
    value = dict(values)
    for node in topological(outputs):
        if node.op == "constant":
            value[node] = number(node.value)
        elif node not in value:
            value[node] = functions[node.op](*(value[arg] for arg in node.args))
    return [value[node] for node in outputs]


def exactly(outputs: Sequence[Node], values: Mapping[Node, Fraction]) -> list[Fraction]:
    """What a graph means without any rounding."""
    return evaluate(outputs, values, Fraction, EXACT)


def random_graph(seed: int, size: int = 40) -> tuple[list[Node], list[Node]]:
    """Inputs and outputs of sums, products, quotients and signs of four inputs and small constants."""
    rng = np.random.default_rng(seed)
    inputs = list(symbols("x", 4))
    nodes = [*inputs, constant(2.0), constant(-3.0), constant(0.5)]
    for _ in range(size):
        op = rng.choice(["add", "sub", "mul", "mul", "div", "neg"])
        x, y = (nodes[i] for i in rng.integers(0, len(nodes), 2))
        if op == "div":
            y = inputs[rng.integers(0, 4)]  # nonzero, and its reciprocal is not folded to a rounded constant
        nodes.append(apply(op, *(x, y)[: OPERATIONS[op].arity]))
    return inputs, nodes[-6:]


SEEDS = range(60)


@pytest.mark.parametrize("passes", [["share_reciprocals"], ["fuse_multiply_add"], list(PASSES)])
def test_passes_keep_the_exact_value(passes: list[str]) -> None:
    for seed in SEEDS:
        inputs, outputs = random_graph(seed)
        values = {x: Fraction(n, 7) for x, n in zip(inputs, (3, -5, 11, 2), strict=True)}
        assert exactly(rewrite(outputs, passes), values) == exactly(outputs, values), f"seed {seed}"


@pytest.mark.parametrize("passes", [["share_reciprocals"], ["fuse_multiply_add"], list(PASSES)])
def test_passes_keep_the_rounded_value_to_a_few_units_in_the_last_place(passes: list[str]) -> None:
    a, b, c, d = symbols("x", 4)
    outputs = [(a * b + c * d) / d, (a + b) / d, a / d + b * c, 1.0 / d]  # no cancellation between positive numbers
    values = dict(zip((a, b, c, d), np.random.default_rng(0).uniform(0.1, 10, (4, 1000)), strict=True))
    functions = {op: operation.evaluate for op, operation in OPERATIONS.items()}
    before = evaluate(outputs, values, np.float64, functions)
    after = evaluate(rewrite(outputs, passes), values, np.float64, functions)
    np.testing.assert_allclose(after, before, rtol=4 * np.finfo(float).eps)


def test_other_operations_pass_unchanged() -> None:
    x, y = symbol("x"), symbol("y")
    outputs = [apply("select", x < y, apply("sin", x), apply("atan2", x, y)), constant(3.0), x]
    assert listing(rewrite(outputs, PASSES)) == listing(outputs)


# What each pass does


def test_sines_of_arctangents_are_quotients() -> None:
    y, x, q = symbol("y"), symbol("x"), symbol("q")
    angle = apply("atan2", y, x)
    angles = [angle, -angle, angle - q, q - angle, angle + q + angle]
    outputs = [apply(op, own) for own in angles for op in ("sin", "cos")]
    after = rewrite(outputs, ["spare_sines"])
    assert set(operations(after)) >= {"sin", "cos", "sqrt"} and "atan2" not in operations(after)
    functions = {op: operation.evaluate for op, operation in OPERATIONS.items()}
    values = np.random.default_rng(0).normal(size=(3, 200)) * [[1.0], [1e-3], [2.0]]
    values[:2, :4] = [[0.0, 0.0, 1.0, -1.0], [0.0, -2.0, 0.0, 0.0]]  # also where there is no direction
    at = dict(zip((y, x, q), values, strict=True))
    before, now = (evaluate(own, at, np.float64, functions) for own in (outputs, after))
    np.testing.assert_allclose(now, before, rtol=0, atol=8 * np.finfo(float).eps)


def test_other_sines_stay() -> None:
    x = symbol("x")
    outputs = [apply("sin", x), apply("cos", 2.0 * apply("atan2", x, 1.0 + x))]
    assert rewrite(outputs, ["spare_sines"]) == outputs


def test_quotients_by_the_same_denominator_share_one_division() -> None:
    x, y, d = symbol("x"), symbol("y"), symbol("d")
    r = 1.0 / d
    assert rewrite([x / d, y / d], ["share_reciprocals"]) == [x * r, y * r]


def test_a_single_quotient_stays() -> None:
    x, y, d = symbol("x"), symbol("y"), symbol("d")
    assert rewrite([x / d, y / x], ["share_reciprocals"]) == [x / d, y / x]


def test_sharing_reciprocals_leaves_one_division_per_denominator_and_adds_at_most_one_operation_for_it() -> None:
    for seed in SEEDS:
        _, outputs = random_graph(seed)
        before, after = operations(outputs), operations(rewrite(outputs, ["share_reciprocals"]))
        denominators = {node.args[1] for node in topological(outputs) if node.op == "div"}
        assert after["div"] <= len(denominators)
        assert after.total() <= before.total() + len(denominators), f"seed {seed}"


@pytest.mark.parametrize(
    ("written", "fused"),
    [
        (lambda x, y, z: x * y + z, lambda x, y, z: apply("fma", x, y, z)),
        (lambda x, y, z: z + x * y, lambda x, y, z: apply("fma", x, y, z)),
        (lambda x, y, z: x * y - z, lambda x, y, z: apply("fma", x, y, -z)),
        (lambda x, y, z: z - x * y, lambda x, y, z: apply("fma", -x, y, z)),
    ],
    ids=["x y + z", "z + x y", "x y - z", "z - x y"],
)
def test_a_product_and_a_sum_become_one_operation(written: Any, fused: Any) -> None:
    x, y, z = symbol("x"), symbol("y"), symbol("z")
    assert rewrite([written(x, y, z)], ["fuse_multiply_add"]) == [fused(x, y, z)]


def test_a_product_that_others_need_is_not_computed_twice() -> None:
    x, y, z = symbol("x"), symbol("y"), symbol("z")
    product = x * y
    for outputs in ([product + z, product], [product + z, apply("sin", product)], [product + product]):
        assert rewrite(outputs, ["fuse_multiply_add"]) == outputs


def test_a_dot_product_of_n_terms_becomes_n_operations() -> None:
    total = nodes_of(symbols("x", 8) @ symbols("y", 8))
    assert operations(rewrite(total, ["fuse_multiply_add"])) == {"fma": 7, "mul": 1}


def test_fusing_never_adds_operations() -> None:
    for seed in SEEDS:
        _, outputs = random_graph(seed)
        fused = rewrite(outputs, ["fuse_multiply_add"])
        assert operations(fused).total() <= operations(outputs).total(), f"seed {seed}"


def test_fusing_does_not_compute_a_difference_in_both_orders() -> None:
    x, y, *rest = symbols("x", 8)
    product, differences = x * y, [a - b for a, b in zip(rest[::2], rest[1::2], strict=True)]
    outputs = [*(product - d for d in differences), *differences]
    fused = rewrite(outputs, ["fuse_multiply_add"])
    assert operations(fused).total() <= operations(outputs).total()


def test_passes_leave_nothing_to_do_for_themselves() -> None:
    for seed in SEEDS:
        _, outputs = random_graph(seed)
        once = rewrite(outputs, PASSES)
        assert listing(rewrite(once, PASSES)) == listing(once), f"seed {seed}"


# The fused operation itself


def correctly_rounded(x: Any, y: Any, z: Any, dtype: type) -> np.ndarray:
    exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in zip(x, y, z, strict=True)]
    if dtype == np.float64:
        return np.array([float(value) for value in exact])
    nearest = np.array([float(value) for value in exact]).astype(np.float32)
    below, above = np.nextafter(nearest, np.float32(-np.inf)), np.nextafter(nearest, np.float32(np.inf))
    # Rounded twice, the nearest may be missed where the first rounding made a tie.
    candidates = [[float(b), float(n), float(a)] for b, n, a in zip(below, nearest, above, strict=True)]
    best = [
        min(group, key=lambda c, value=value: abs(Fraction(c) - value))
        for group, value in zip(candidates, exact, strict=True)
    ]
    return np.array(best, dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fused_multiply_add_rounds_once(dtype: type) -> None:
    rng = np.random.default_rng(4)
    x, y, z = (rng.normal(size=(3, 3000)) * 10.0 ** rng.integers(-4, 4, (3, 3000))).astype(dtype)
    z[::3] = -(x * y)[::3]  # leaves the rounding error of the product alone
    result = OPERATIONS["fma"].evaluate(x, y, z)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, correctly_rounded(x, y, z, dtype))


@pytest.mark.parametrize("sign", [1, -1])
def test_fused_multiply_add_rounds_once_next_to_a_tie(sign: int) -> None:
    # x y = 2^-53 (1 - 2^-60) is a little less than half a unit in the last place of z.
    x, y, z = (np.array([value]) for value in (1 + 2.0**-30, sign * (1 - 2.0**-30) * 2.0**-53, sign * (1 + 2.0**-52)))
    np.testing.assert_array_equal(OPERATIONS["fma"].evaluate(x, y, z), z)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("x", "y", "z", "negative"),
    [(-0.0, 1.0, -0.0, True), (0.0, 1.0, -0.0, False), (1.0, 1.0, -1.0, False), (0.0, 1.0, 0.0, False)],
)
def test_fused_multiply_add_signs_its_zero(x: float, y: float, z: float, negative: bool, dtype: type) -> None:
    result = OPERATIONS["fma"].evaluate(*(np.array([value], dtype) for value in (x, y, z)))
    assert result == 0.0
    assert np.signbit(result) == negative


# Names and explanations


def test_an_unknown_pass_is_refused_with_those_there_are() -> None:
    with pytest.raises(GraphError, match=r"'polish'.*share_reciprocals, fuse_multiply_add"):
        rewrite([symbol("x")], ["polish"])


def test_explain_has_a_line_for_each_stage() -> None:
    x, y, d = symbol("x"), symbol("y"), symbol("d")
    lines = explain([x / d + 1.0, y / d + 2.0]).splitlines()
    assert [line.split(":")[0].split() for line in lines] == [
        ["traced", "4", "operations,", "depth", "2"],
        ["spare_sines", "4", "operations,", "depth", "2"],
        ["share_reciprocals", "5", "operations,", "depth", "3"],
        ["fuse_multiply_add", "3", "operations,", "depth", "2"],
    ]
    assert lines[0].endswith("2 div, 2 add")


def test_explain_runs_the_passes_named() -> None:
    names = [line.split()[0] for line in explain([symbol("x")], ["fuse_multiply_add"]).splitlines()]
    assert names == ["traced", "fuse_multiply_add"]


def test_explain_with_text_lists_every_stage() -> None:
    x, y, z = symbol("x"), symbol("y"), symbol("z")
    text = explain([x * y + z], text=True)
    assert text.count("%0 = mul(x, y)\n%1 = add(%0, z)") == 3
    assert text.endswith("%0 = fma(x, y, z)")


# Counts and depth


def test_operations_counted_by_hand() -> None:
    x, y = symbol("x"), symbol("y")
    shared = x * y
    outputs = [apply("sin", shared) + shared, -shared, constant(2.0), apply("select", x < y, x, y)]
    assert operations(outputs) == {"mul": 1, "sin": 1, "add": 1, "lt": 1, "select": 1}


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x, y: x, 0),
        (lambda x, y: constant(1.0), 0),
        (lambda x, y: -x, 0),
        (lambda x, y: -(x * y), 1),
        (lambda x, y: apply("sin", -(x * y)) + x, 3),
        (lambda x, y: (x * y) * (x + y), 2),
    ],
)
def test_depth_counted_by_hand(build: Callable[[Node, Node], Node], expected: int) -> None:
    assert depth([build(symbol("x"), symbol("y"))]) == expected


def test_depth_of_several_outputs_is_that_of_the_deepest_and_of_none_is_zero() -> None:
    x = symbol("x")
    assert depth([x, x * x, apply("sin", x * x)]) == 2
    assert depth([]) == 0


def test_depths_start_where_their_leaves_come_available() -> None:
    x, y = symbol("x"), symbol("y")
    assert depths([x + y, apply("sin", y), x], {x: 5, y: 1}) == [6, 2, 5]


def _balanced(nodes: list[Node]) -> Node:
    half = len(nodes) // 2
    return nodes[0] if len(nodes) == 1 else _balanced(nodes[:half]) + _balanced(nodes[half:])


def test_a_balanced_sum_is_as_deep_as_its_logarithm_and_a_chain_as_its_length() -> None:
    x = list(symbols("x", 64))
    balanced, chained = [_balanced(x)], nodes_of(sum(x))
    assert depth(balanced) == 6
    assert depth(chained) == 63
    assert operations(balanced) == operations(chained) == {"add": 63}


# Programs


def _pair(s: View) -> None:
    s.out = s.first + s.second


def pairwise_sum(levels: int) -> Program:
    b = Builder("pairwise")
    below = b.input("x", 2**levels)
    for level in reversed(range(levels)):
        above = b.scratch(f"level{level}", 2**level) if level else b.output("sum", 1)
        rows = np.arange(2**level)
        b.loop(_pair, s=fields(first=below.at(2 * rows), second=below.at(2 * rows + 1), out=above.at(rows)))
        below = above
    return b.build()


@pytest.mark.parametrize("levels", [1, 3, 6])
def test_a_pairwise_sum_in_loops_is_as_deep_as_it_has_loops(levels: int) -> None:
    program = pairwise_sum(levels)
    assert program.depth() == levels
    assert program.operations() == {"add": 2**levels - 1}


def test_work_and_depth_of_a_chain_grow_linearly_with_its_length() -> None:
    programs = [chain(n).program for n in (4, 6, 8, 10)]
    for measured in ([p.operations().total() for p in programs], [p.depth() for p in programs]):
        assert measured[0] > 0
        assert len(set(np.diff(measured))) == 1
        assert measured[1] > measured[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_program_is_no_deeper_than_it_has_operations(name: str) -> None:
    program = SAMPLES[name]().program
    assert 0 < program.depth() <= program.operations().total()
    assert max(depth(kernel.outputs) for kernel in program.kernels() if kernel.stores) <= program.depth()


def test_operations_of_a_program_count_each_row() -> None:
    b = Builder("rows")
    x, y = b.input("x", 5), b.output("y", 5)

    def kernel(s: View) -> None:
        s.y = np.sin(s.x) * s.x

    b.loop(kernel, s=fields(x=x.at(range(5)), y=y.at(range(5))))
    program = b.build()
    assert program.operations() == {"sin": 5, "mul": 5}
    assert program.depth() == 2


def test_a_difference_of_equal_products_stays_zero() -> None:
    a, b, c, d = symbol("a"), symbol("b"), symbol("c"), symbol("d")
    (result,) = rewrite([a * d - b * c], PASSES)
    assert result.op == "sub"
