"""Nodes: sharing, folding, order, substitution, and traces that depend on nothing but the traced function."""

from __future__ import annotations

import gc
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from weakref import ref

import numpy as np
import pytest

from coupler.graph import GraphError
from coupler.graph.diff import pull, push
from coupler.graph.expr import Node, apply, as_node, constant, symbol, where
from coupler.graph.interning import INTERNED, sweep
from coupler.graph.operations import OPERATIONS
from coupler.graph.walk import listing, substitute, topological

LOGIC = {"and", "or", "not"}
NUMERIC = [op for op in OPERATIONS if op not in LOGIC and op != "select"]


def evaluate(outputs: Sequence[Node], values: Mapping[Node, Any], dtype: Any = np.float64) -> list[Any]:
    value: dict[Node, Any] = dict(values)
    with np.errstate(all="ignore"):
        for node in topological(outputs):
            if node.op == "constant":
                value[node] = node.value if node.logical else dtype(node.value)
            elif node not in value:
                value[node] = OPERATIONS[node.op].evaluate(*(value[arg] for arg in node.args))
    return [value[node] for node in outputs]


def arguments(op: str) -> list[Node]:
    x = [symbol(label) for label in "xyz"[: OPERATIONS[op].arity]]
    if op in LOGIC:
        return [node < 0.0 for node in x]
    return [x[0] < 0.0, *x[1:]] if op == "select" else x


# Sharing


@pytest.mark.parametrize("op", OPERATIONS)
def test_the_same_operation_on_the_same_arguments_is_the_same_object(op: str) -> None:
    args = arguments(op)
    assert apply(op, *args) is apply(op, *args)


@pytest.mark.parametrize("op", [op for op in OPERATIONS if OPERATIONS[op].arity > 1 and op != "select"])
def test_swapped_arguments_share_a_node_only_if_the_operation_commutes(op: str) -> None:
    x, y, *rest = arguments(op)
    assert (apply(op, x, y, *rest) is apply(op, y, x, *rest)) == OPERATIONS[op].commutes


@pytest.mark.parametrize("op", [op for op in OPERATIONS if OPERATIONS[op].commutes])
def test_operations_that_are_said_to_commute_do(op: str) -> None:
    x, y, z = np.random.default_rng(1).normal(size=(3, 50))
    rest = [z][: OPERATIONS[op].arity - 2]
    evaluate = OPERATIONS[op].evaluate
    np.testing.assert_array_equal(evaluate(x, y, *rest), evaluate(y, x, *rest))


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, math.inf, math.nan, True, False])
def test_equal_constants_are_one_object(value: float) -> None:
    assert constant(value) is constant(value)


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (1.0, True), (0.0, False), (math.nan, -math.nan)])
def test_constants_differ_where_their_bits_do(one: float, other: float) -> None:
    assert constant(one) is not constant(other)


def test_symbols_are_always_new() -> None:
    assert symbol("x") is not symbol("x")


def test_nodes_are_dictionary_keys_by_identity() -> None:
    x, y = symbol("x"), symbol("x")
    assert {x: 1, y: 2}[x] == 1


# Folding


Pair = tuple[Callable[[Node, Node], Any], Callable[[Node, Node], Any]]
FOLDS: dict[str, Pair] = {
    "x + 0 = x": (lambda x, y: x + 0, lambda x, y: x),
    "0 + x = x": (lambda x, y: 0.0 + x, lambda x, y: x),
    "x - 0 = x": (lambda x, y: x - 0, lambda x, y: x),
    "0 - x = -x": (lambda x, y: 0 - x, lambda x, y: -x),
    "x - x = 0": (lambda x, y: x - x, lambda x, y: constant(0.0)),
    "0 * x = 0": (lambda x, y: 0 * x, lambda x, y: constant(0.0)),
    "x * -0.0 = 0": (lambda x, y: x * -0.0, lambda x, y: constant(0.0)),
    "0 / x = 0": (lambda x, y: 0 / x, lambda x, y: constant(0.0)),
    "x * 1 = x": (lambda x, y: x * 1, lambda x, y: x),
    "1 * x = x": (lambda x, y: 1 * x, lambda x, y: x),
    "x / 1 = x": (lambda x, y: x / 1, lambda x, y: x),
    "x * -1 = -x": (lambda x, y: x * -1, lambda x, y: -x),
    "x / -1 = -x": (lambda x, y: x / -1, lambda x, y: -x),
    "x / 4 = x * 0.25": (lambda x, y: x / 4, lambda x, y: x * 0.25),
    "x / -0.5 = x * -2": (lambda x, y: x / -0.5, lambda x, y: x * -2),
    "-(-x) = x": (lambda x, y: apply("neg", -x), lambda x, y: x),
    "-(x - y) = y - x": (lambda x, y: -(x - y), lambda x, y: y - x),
    "x + -y = x - y": (lambda x, y: x + -y, lambda x, y: x - y),
    "-x + y = y - x": (lambda x, y: -x + y, lambda x, y: y - x),
    "-x + -y = -(x + y)": (lambda x, y: -x + -y, lambda x, y: -(x + y)),
    "x - -y = x + y": (lambda x, y: x - -y, lambda x, y: x + y),
    "-x - y = -(x + y)": (lambda x, y: -x - y, lambda x, y: -(x + y)),
    "-x * y = -(x * y)": (lambda x, y: -x * y, lambda x, y: -(x * y)),
    "x * -y = -(x * y)": (lambda x, y: x * -y, lambda x, y: -(x * y)),
    "-x * -y = x * y": (lambda x, y: -x * -y, lambda x, y: x * y),
    "-x * 3 = x * -3": (lambda x, y: -x * 3, lambda x, y: x * -3),
    "-x / y = -(x / y)": (lambda x, y: -x / y, lambda x, y: -(x / y)),
    "x / -y = -(x / y)": (lambda x, y: x / -y, lambda x, y: -(x / y)),
    "sin(-x) = -sin(x)": (lambda x, y: apply("sin", -x), lambda x, y: -apply("sin", x)),
    "tan(-x) = -tan(x)": (lambda x, y: apply("tan", -x), lambda x, y: -apply("tan", x)),
    "asin(-x) = -asin(x)": (lambda x, y: apply("asin", -x), lambda x, y: -apply("asin", x)),
    "cos(-x) = cos(x)": (lambda x, y: apply("cos", -x), lambda x, y: apply("cos", x)),
    "cos(|x|) = cos(x)": (lambda x, y: apply("cos", abs(x)), lambda x, y: apply("cos", x)),
    "|-x| = |x|": (lambda x, y: abs(-x), lambda x, y: abs(x)),
    "||x|| = |x|": (lambda x, y: abs(abs(x)), lambda x, y: abs(x)),
    "|sqrt(x)| = sqrt(x)": (lambda x, y: abs(x**0.5), lambda x, y: x**0.5),
    "|exp(x)| = exp(x)": (lambda x, y: abs(apply("exp", x)), lambda x, y: apply("exp", x)),
    "min(x, x) = x": (lambda x, y: apply("min", x, x), lambda x, y: x),
    "max(x, x) = x": (lambda x, y: apply("max", x, x), lambda x, y: x),
    "fma(x, y, 0) = x * y": (lambda x, y: apply("fma", x, y, constant(0.0)), lambda x, y: x * y),
    "fma(0, x, y) = y": (lambda x, y: apply("fma", constant(0.0), x, y), lambda x, y: y),
    "fma(1, x, y) = x + y": (lambda x, y: apply("fma", constant(1.0), x, y), lambda x, y: x + y),
    "fma(x, -1, y) = y - x": (lambda x, y: apply("fma", x, constant(-1.0), y), lambda x, y: y - x),
    "not not c = c": (lambda x, y: ~~(x < y), lambda x, y: x < y),
    "c and c = c": (lambda x, y: (x < y) & (x < y), lambda x, y: x < y),
    "c or c = c": (lambda x, y: (x < y) | (x < y), lambda x, y: x < y),
    "c and true = c": (lambda x, y: (x < y) & True, lambda x, y: x < y),
    "c and false = false": (lambda x, y: False & (x < y), lambda x, y: constant(False)),
    "c or true = true": (lambda x, y: True | (x < y), lambda x, y: constant(True)),
    "c or false = c": (lambda x, y: (x < y) | False, lambda x, y: x < y),
    "x > y is y < x": (lambda x, y: x > y, lambda x, y: y < x),
    "x >= y is y <= x": (lambda x, y: x >= y, lambda x, y: y <= x),
    "x != y is not (x == y)": (lambda x, y: x != y, lambda x, y: ~(x == y)),
    "where(c, x, x) = x": (lambda x, y: where(x < y, x, x), lambda x, y: x),
    "where(true, x, y) = x": (lambda x, y: where(True, x, y), lambda x, y: x),
    "where(false, x, y) = y": (lambda x, y: where(False, x, y), lambda x, y: y),
    "where(not c, x, y) = where(c, y, x)": (lambda x, y: where(~(x < y), x, y), lambda x, y: where(x < y, y, x)),
    "constants": (lambda x, y: x + (constant(2.0) * 3.0 - 1.0), lambda x, y: x + 5.0),
}


@pytest.mark.parametrize("rule", FOLDS)
def test_folds(rule: str) -> None:
    x, y = symbol("x"), symbol("y")
    written, folded = FOLDS[rule]
    assert written(x, y) is folded(x, y)


@pytest.mark.parametrize("value", [3.0, 0.1, 1e300 * 7, math.inf, math.nan, 0.0])
def test_division_by_what_is_no_power_of_two_stays(value: float) -> None:
    assert (symbol("x") / value).op == "div"


def test_comparing_a_node_with_itself_is_not_decided_because_it_may_be_nan() -> None:
    x = symbol("x")
    assert (x == x).op == "eq"


def forms(x: Node, y: Node, logical: bool) -> list[Node]:
    """What an argument may look like, so that every folding rule finds its case."""
    if logical:
        return [x < y, ~(x < y), y < x, constant(True), constant(False)]
    made = [x, y, -x, abs(x), x - y, x * y, abs(x) ** 0.5, apply("exp", x)]
    return made + [constant(value) for value in (0.0, -0.0, 1.0, -1.0, 2.0, -0.25, 3.0)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("op", OPERATIONS)
def test_folding_does_not_change_values(op: str, dtype: type) -> None:
    rng = np.random.default_rng(2)
    x, y = symbol("x"), symbol("y")
    values = {node: np.concatenate([rng.normal(size=30), rng.integers(1, 4, 10)]).astype(dtype) for node in (x, y)}
    logical = [op in LOGIC or (op == "select" and i == 0) for i in range(OPERATIONS[op].arity)]
    for args in itertools.product(*(forms(x, y, kind) for kind in logical)):
        if op == "power_of_two":
            args = (apply("round", args[0]),)
        if all(arg.op == "constant" for arg in args):
            continue  # rounded to double, whatever the format; see the next test but one
        given = evaluate(args, values, dtype)
        if (op == "div" and np.any(given[1] == 0)) or (op == "exponent" and np.any(given[0] == 0)):
            continue  # a zero is exact, so 0 / 0 is not asked for; zero has no exponent
        folded = evaluate([apply(op, *args)], values, dtype)[0]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(folded, OPERATIONS[op].evaluate(*given), err_msg=repr(args))


@pytest.mark.parametrize("power", [-149, -130, -120, 127])
def test_division_by_a_power_of_two_keeps_its_value_in_single_precision(power: int) -> None:
    x, value = symbol("x"), np.float32(2.0 ** (power // 2))
    (folded,) = evaluate([x / 2.0**power], {x: value}, np.float32)
    assert folded == value / np.float32(2.0**power)


@pytest.mark.parametrize("op", NUMERIC)
def test_constants_fold_to_what_the_operation_computes(op: str) -> None:
    args = [0.75, 3.0, -2.0][: OPERATIONS[op].arity] if op != "power_of_two" else [5.0]
    node = apply(op, *map(constant, args))
    assert node.op == "constant"
    assert node.value == OPERATIONS[op].evaluate(*map(np.float64, args))


@pytest.mark.parametrize(
    ("op", "args", "value"),
    [("div", (1.0, 0.0), math.inf), ("log", (0.0,), -math.inf), ("sqrt", (-1.0,), math.nan), ("exp", (1e4,), math.inf)],
)
def test_constants_fold_to_infinity_and_nan_without_a_warning(op: str, args: tuple[float, ...], value: float) -> None:
    np.testing.assert_array_equal(apply(op, *map(constant, args)).value, value)


# Powers


@pytest.mark.parametrize("exponent", [-3, -2.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 7, np.float64(2.0), np.int64(10)])
def test_whole_and_half_powers(exponent: Any) -> None:
    x, value = symbol("x"), np.array([0.3, 1.0, 2.7])
    (result,) = evaluate([x**exponent], {x: value})
    np.testing.assert_allclose(result, value ** float(exponent), rtol=4e-16 * (1 + abs(exponent)))


def test_a_power_needs_few_products() -> None:
    products = [node for node in topological([symbol("x") ** 16]) if node.op == "mul"]
    assert len(products) == 4


@pytest.mark.parametrize("exponent", [0.3, 1 / 3, math.pi, math.inf, math.nan])
def test_other_powers_are_refused(exponent: float) -> None:
    with pytest.raises(GraphError, match="whole and half exponents"):
        _ = symbol("x") ** exponent


def test_a_node_as_an_exponent_is_refused() -> None:
    with pytest.raises(GraphError, match="exponent"):
        _ = symbol("x") ** symbol("p")


# Errors


def test_the_truth_of_a_node_is_refused_with_advice() -> None:
    with pytest.raises(TypeError, match=r"lt\(x, 0\.0\) is not known while tracing.*np\.where"):
        bool(symbol("x") < 0.0)


def test_the_number_of_a_node_is_refused_with_advice() -> None:
    with pytest.raises(TypeError, match=r"x has no value while tracing.*np\.array"):
        float(symbol("x"))


def test_constants_have_truth_and_number() -> None:
    assert bool(constant(2.0) < 3.0)
    assert float(constant(2.0)) == 2.0


@pytest.mark.parametrize("op", OPERATIONS)
def test_wrong_arity_is_refused(op: str) -> None:
    with pytest.raises(GraphError, match=f"'{op}' takes {OPERATIONS[op].arity} arguments, got 4"):
        apply(op, *[symbol("x")] * 4)


@pytest.mark.parametrize("value", ["1", None, [1.0], 1j, np.complex128(1j)])
def test_only_numbers_become_constants(value: Any) -> None:
    with pytest.raises(GraphError, match="expected a number or a node"):
        as_node(value)


@pytest.mark.parametrize("operation", [operator.add, operator.mul, operator.truediv, operator.lt])
def test_operators_leave_other_objects_to_python(operation: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(TypeError, match="Node"):
        operation(symbol("x"), "1")


def test_where_refuses_a_number_as_its_condition() -> None:
    with pytest.raises(GraphError, match="truth value"):
        where(symbol("x"), 1.0, 2.0)


def test_a_choice_between_truth_values_is_a_truth_value() -> None:
    x, y = symbol("x"), symbol("y")
    assert where(x < y, x < 1.0, y < 1.0).logical


MIXED: dict[str, Callable[[Node, Node], Any]] = {
    "x + c": lambda x, c: x + c,
    "x + true": lambda x, c: x + True,
    "c * 3": lambda x, c: c * 3.0,
    "sin c": lambda x, c: apply("sin", c),
    "c < x": lambda x, c: c < x,
    "not x": lambda x, c: ~x,
    "x and c": lambda x, c: x & c,
    "0.0 and c": lambda x, c: 0.0 & c,
    "5.0 or c": lambda x, c: 5.0 | c,
    "where(c, x, c)": lambda x, c: where(c, x, c),
}


@pytest.mark.parametrize("mixture", MIXED)
def test_numbers_and_truth_values_are_not_mixed(mixture: str) -> None:
    x = symbol("x")
    with pytest.raises(GraphError, match=r"truth value|number"):
        MIXED[mixture](x, x < 1.0)


# Order, substitution, listing


def diamond() -> tuple[Node, Node, Node]:
    x, y = symbol("x"), symbol("y")
    shared = x * y
    return x, y, apply("sin", shared) + apply("cos", shared)


def test_topological_order_has_arguments_first_and_each_node_once() -> None:
    _, _, top = diamond()
    order = topological([top, top.args[0], top])
    assert len({id(node) for node in order}) == len(order) == 6
    place = {node: i for i, node in enumerate(order)}
    assert all(place[arg] < place[node] for node in order for arg in node.args)


def test_topological_order_stops_at_leaves() -> None:
    _, _, top = diamond()
    shared = top.args[0].args[0]
    order = topological([top], frozenset([shared]))
    assert [node.op for node in order] == ["mul", "sin", "cos", "add"]


def test_substitute_folds_anew() -> None:
    x, y, top = diamond()
    (result,) = substitute([top], {x: constant(0.0)})
    assert result is constant(1.0)
    (swapped,) = substitute([x / y], {x: y, y: x})
    assert swapped is y / x


def test_substitute_replaces_inner_nodes_and_outputs() -> None:
    _, y, top = diamond()
    shared = top.args[0].args[0]
    assert substitute([top, shared], {shared: y}) == [apply("sin", y) + apply("cos", y), y]


def test_substitute_of_nothing_gives_the_same_objects() -> None:
    _, _, top = diamond()
    assert substitute([top], {})[0] is top


def test_listing() -> None:
    x, _, top = diamond()
    assert listing([top, x], ["out", "same"], {x: "a[0]"}).splitlines() == [
        "%0 = mul(a[0], y)",
        "%1 = sin(%0)",
        "%2 = cos(%0)",
        "%3 = add(%1, %2)",
        "out = %3",
        "same = a[0]",
    ]


def many_sums() -> str:
    x = [symbol(f"x{i}") for i in range(12)]
    outputs = []
    for i, j in itertools.permutations(range(12), 2):  # each sum is asked for in both orders
        outputs.append(apply("fma", x[i] + x[j], x[j] * x[i], constant(0.1) * j))
    return listing(outputs)


def test_a_listing_depends_on_the_traced_function_alone() -> None:
    first = many_sums()
    kept = [symbol("z") * i + constant(0.1) * i for i in range(500)]
    assert many_sums() == first
    del kept[::2]  # free addresses in another order
    assert many_sums() == first


# Size and memory


def long_chain(n: int = 100_000) -> tuple[Node, Node]:
    x = top = symbol("x")
    for _ in range(n):
        top = apply("sin", top)
    return x, top


@pytest.mark.parametrize(
    ("use", "count"),
    [
        (lambda x, top: topological([top]), 100_001),
        (lambda x, top: topological(substitute([top], {x: symbol("y")})), 100_001),
        (lambda x, top: listing([top]).splitlines(), 100_000),
        (lambda x, top: [n for n in topological(push([top], {x: constant(1.0)})) if n.op == "cos"], 100_000),
        (lambda x, top: [n for n in topological(pull([top], [constant(1.0)], [x])) if n.op == "cos"], 100_000),
    ],
    ids=["topological", "substitute", "listing", "push", "pull"],
)
def test_a_chain_of_a_hundred_thousand_nodes(use: Callable[[Node, Node], list[Any]], count: int) -> None:
    assert len(use(*long_chain())) == count


def test_nodes_are_forgotten_with_their_trace() -> None:
    gc.collect()
    before = sweep()
    x, top = long_chain()
    trace = [x + 12345.678 * i for i in range(1000)]
    assert sweep() > before + 101_000
    del x, top, trace
    gc.collect()
    assert sweep() == before


def test_two_threads_may_sweep_at_once() -> None:
    def swept_by_another() -> None:
        del INTERNED[key]

    def made_again_by_another() -> None:
        INTERNED[other_key] = ref(node)

    key, other_key, node = ("a node that was",), ("a node that is made again",), symbol("x")
    INTERNED[key], INTERNED[other_key] = cast(Any, swept_by_another), cast(Any, made_again_by_another)
    sweep()
    assert key not in INTERNED and INTERNED.pop(other_key)() is node


def test_traces_that_come_and_go_do_not_pile_up() -> None:
    for _ in range(8):
        long_chain()
    gc.collect()
    assert len(INTERNED) < 4 * max(sweep(), 1 << 17)


def test_a_forgotten_node_is_not_taken_for_a_new_one() -> None:
    x = symbol("x")
    for i in range(1000):  # the same addresses come back with other arguments
        y = symbol(f"y{i}")
        assert (x + y).args == (x, y)
        assert (x * y).op == "mul"
