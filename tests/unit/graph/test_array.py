"""One function takes floats or nodes: NumPy's functions on nodes against the same on numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from coupler.graph import Array, GraphError, Node, array, symbol, symbols
from coupler.graph.array import nodes_of
from coupler.graph.operations import OPERATIONS
from coupler.graph.walk import topological


def evaluate(result: Any, values: Mapping[Node, Any]) -> np.ndarray:
    """The number or truth value of each node of a result, in its shape."""
    value: dict[Node, Any] = dict(values)
    outputs = nodes_of(result)
    for node in topological(outputs):
        if node.op == "constant":
            value[node] = node.value
        elif node not in value:
            value[node] = OPERATIONS[node.op].evaluate(*(value[arg] for arg in node.args))
    return np.array([value[node] for node in outputs]).reshape(np.shape(result))


def both(function: Callable[..., Any], *shapes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The function on nodes, evaluated, and the function on floats. All numbers are in the domain of arcsin."""
    rng = np.random.default_rng(len(shapes))
    numbers = [rng.uniform(0.1, 0.9, shape) * rng.choice([-1, 1], shape) for shape in shapes]
    nodes = [symbols(f"a{i}", shape) for i, shape in enumerate(shapes)]
    values = {node: x for a, n in zip(nodes, numbers, strict=True) for node, x in zip(a.flat, n.flat, strict=True)}
    arguments = [a if a.ndim else a[()] for a in nodes]
    return evaluate(function(*arguments), values), np.asarray(function(*numbers))


def assert_same_on_nodes_and_floats(function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    on_nodes, on_floats = both(function, *shapes)
    assert on_nodes.shape == on_floats.shape
    np.testing.assert_allclose(on_nodes, on_floats, rtol=1e-14, atol=1e-15)


ONE = {
    "negative": np.negative,
    "positive": np.positive,
    "sqrt": lambda x: np.sqrt(np.square(x)),
    "absolute": np.absolute,
    "fabs": np.fabs,
    "builtin abs": abs,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "exp": np.exp,
    "log": lambda x: np.log(np.abs(x)),
    "rint": lambda x: np.rint(3.0 * x),
    "square": np.square,
    "reciprocal": np.reciprocal,
    "** 3": lambda x: x**3,
    "** -2": lambda x: x**-2.0,
    "power": lambda x: np.power(np.abs(x), 1.5),
    "isnan": np.isnan,
    "not": lambda x: np.logical_not(x < 0),
    "~": lambda x: ~(x < 0),
    "where": lambda x: np.where(x > 0, x, 0.0),
    "where of a number": lambda x: np.where(x > 0, 1.0, -1.0),
}


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument(name: str, shape: tuple[int, ...]) -> None:
    assert_same_on_nodes_and_floats(ONE[name], shape)


TWO = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "copysign": np.copysign,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "arctan2": np.arctan2,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "and": lambda x, y: (x < 0) & (y < 0),
    "or": lambda x, y: (x < 0) | (y < 0),
    "logical_and": lambda x, y: np.logical_and(x < 0, y < 0),
    "logical_or": lambda x, y: np.logical_or(x < 0, y < 0),
    "where": lambda x, y: np.where(x < y, x, y),
}


@pytest.mark.parametrize("shapes", [((), ()), ((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1), (3,))])
@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arguments_broadcast(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    assert_same_on_nodes_and_floats(TWO[name], *shapes)


@pytest.mark.parametrize(
    "other",
    [2, 2.5, np.float64(2.5), np.float32(0.1), np.int64(3), np.array([1, 2, 3]), np.array([[1.5], [2.5]]), [0.5, 1, 2]],
    ids=lambda x: f"{type(x).__name__} {x}",
)
@pytest.mark.parametrize("name", ["add", "subtract", "divide", "minimum", "arctan2", "<", "where"])
def test_numbers_of_every_kind_mix_with_nodes_on_both_sides(name: str, other: Any) -> None:
    other = np.array(other) if isinstance(other, list) and name == "<" else other
    assert_same_on_nodes_and_floats(lambda x: TWO[name](x, other), (3,))
    assert_same_on_nodes_and_floats(lambda x: TWO[name](other, x), (3,))


@pytest.mark.parametrize("other", [2, 2.5, np.float64(2.5), np.float32(0.1), np.array([1.0, 2.0])])
@pytest.mark.parametrize("name", ["add", "subtract", "divide", "<", ">="])
def test_numbers_of_every_kind_mix_with_a_single_node_on_both_sides(name: str, other: Any) -> None:
    assert_same_on_nodes_and_floats(lambda x: TWO[name](x, other), ())
    assert_same_on_nodes_and_floats(lambda x: TWO[name](other, x), ())


MATMUL = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((4, 2, 3), (3,)), ((4, 2, 3), (4, 3, 2))]


@pytest.mark.parametrize("shapes", MATMUL)
def test_matrix_products(shapes: tuple[tuple[int, ...], ...]) -> None:
    assert_same_on_nodes_and_floats(lambda a, b: a @ b, *shapes)


@pytest.mark.parametrize("shapes", MATMUL)
@pytest.mark.parametrize("numbers_first", [True, False])
def test_matrix_products_with_numbers(shapes: tuple[tuple[int, ...], ...], numbers_first: bool) -> None:
    left, right = (np.arange(1.0, 1 + np.prod(shape)).reshape(shape) for shape in shapes)
    if numbers_first:
        assert_same_on_nodes_and_floats(lambda b: left @ b, shapes[1])
    else:
        assert_same_on_nodes_and_floats(lambda a: a @ right, shapes[0])


REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "min": np.min,
    "max": np.max,
    "mean": np.mean,
    "all": lambda x, **k: np.all(x < 0.5, **k),
    "any": lambda x, **k: np.any(x > 0.5, **k),
}


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (2, 0, 1)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, axis: Any, keepdims: bool) -> None:
    assert_same_on_nodes_and_floats(lambda x: REDUCTIONS[name](x, axis=axis, keepdims=keepdims), (2, 3, 4))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_of_a_single_node(name: str) -> None:
    assert_same_on_nodes_and_floats(REDUCTIONS[name], ())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x, initial=5.0),
        lambda x: np.max(x, initial=0.95),
        lambda x: np.sum(x, where=np.array([True, False, True])),
        lambda x: np.add(x, 1.0, where=np.array([True, False, True]), out=x.copy()),
    ],
    ids=["sum from 5", "max from 0.95", "sum of some", "add to some"],
)
def test_options_are_obeyed_or_refused_but_not_ignored(function: Callable[[Any], Any]) -> None:
    with suppress(GraphError):
        assert_same_on_nodes_and_floats(function, (3,))


def test_an_axis_that_is_not_there_is_refused() -> None:
    with pytest.raises((GraphError, np.exceptions.AxisError), match="axis"):
        np.sum(symbols("m", (2, 3)), axis=5)


@pytest.mark.parametrize("name", ["sum", "prod", "all", "any"])
def test_reduction_of_nothing(name: str) -> None:
    assert_same_on_nodes_and_floats(REDUCTIONS[name], (0,))
    assert_same_on_nodes_and_floats(lambda x: REDUCTIONS[name](x, axis=1), (2, 0))


@pytest.mark.parametrize("reduction", [np.min, np.max])
def test_the_extreme_of_nothing_is_refused(reduction: Callable[[Any], Any]) -> None:
    with pytest.raises(GraphError, match="no value"):
        reduction(array([]))


V, M = (3,), (3, 3)
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "cross": (np.cross, (V, V)),
    "cross with numbers": (lambda a: np.cross([1.0, 2.0, 3.0], a), (V,)),
    "dot of vectors": (np.dot, (V, V)),
    "dot of matrices": (np.dot, (M, M)),
    "inner": (np.inner, (V, V)),
    "outer": (np.outer, (V, V)),
    "multiply.outer": (np.multiply.outer, (V, (2, 2))),
    "subtract.outer": (np.subtract.outer, (V, V)),
    "tensordot": (lambda a, b: np.tensordot(a, b, 1), (M, V)),
    "kron": (np.kron, (V, V)),
    "einsum": (lambda a, b, c: np.einsum("i,ij,j->", a, b, c), (V, M, V)),
    "einsum with numbers": (lambda a: np.einsum("ij,jk->ki", a, np.arange(9.0).reshape(3, 3)), (M,)),
    "stack": (lambda a, b: np.stack([a, b], axis=1), (V, V)),
    "stack of nodes": (lambda a, b: np.stack([a, b]), ((), ())),
    "vstack": (lambda a, b: np.vstack([a, b]), (V, M)),
    "concatenate": (lambda a, b: np.concatenate([a, b, np.ones(2)]), (V, V)),
    "append": (lambda a, b: np.append(a, b), (V, ())),
    "block": (lambda a: np.block([[a, np.zeros((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]]), (M,)),
    "diag of a vector": (np.diag, (V,)),
    "diag of a matrix": (np.diag, (M,)),
    "trace": (np.trace, (M,)),
    "transpose": (np.transpose, ((2, 3),)),
    "T": (lambda a: a.T, ((2, 3),)),
    "reshape": (lambda a: a.reshape(3, 2), ((2, 3),)),
    "swapaxes": (lambda a: np.swapaxes(a, 0, 2), ((2, 3, 4),)),
    "roll": (lambda a: np.roll(a, 1), (V,)),
    "flip": (np.flip, (M,)),
    "diff": (np.diff, (V,)),
    "norm": (np.linalg.norm, (V,)),
    "norm of rows": (lambda a: np.linalg.norm(a, axis=1), (M,)),
    "broadcast_to": (lambda a: np.broadcast_to(a, (2, 3)), (V,)),
    "fancy index": (lambda a: a[[2, 0]], (V,)),
    "array of nodes": (lambda a: np.array([[a[0], -a[1]], [a[1], 1.0]]), (V,)),
    "operators on an array of nodes": (lambda a: 2.0 * np.array([a[0], 1.0]) @ np.array([a[1], a[2]]), (V,)),
    "array of nodes and array": (lambda a: np.minimum(np.array([a[0], a[1], 1.0]), a), (V,)),
    "python sum": (lambda a: sum(a), (V,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_vectors_and_matrices(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    assert_same_on_nodes_and_floats(function, *shapes)


MOVES: dict[str, Callable[[Any], Any]] = {
    "stack": lambda a: np.stack([a[0], a[1]]),
    "concatenate": lambda a: np.concatenate([a, np.full(2, 0.5)]),
    "block": lambda a: np.block([a, 0.5]),
    "diag": np.diag,
    "cross": lambda a: np.cross(a, [0.1, 0.2, 0.3]),
    "einsum": lambda a: np.einsum("i,j->ij", a, a),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_numpy_puts_together_goes_on_as_an_array_of_nodes(name: str) -> None:
    def on(x: Any) -> Any:
        return np.where(x < 0.2, np.sin(x), 0.2)

    assert_same_on_nodes_and_floats(lambda a: on(MOVES[name](a)), V)


def _in_place(x: Any) -> Any:
    x = x.copy()
    x += 1.0
    x *= x
    x[0] -= 3.0
    x[1:] /= x[0]
    return x


def test_in_place_operators() -> None:
    assert_same_on_nodes_and_floats(_in_place, (3,))


def test_in_place_operators_on_a_plain_array_of_nodes() -> None:
    assert_same_on_nodes_and_floats(lambda x: _in_place(np.array([x[0], 2.0, x[2]])), (3,))


def test_out_is_filled_and_returned() -> None:
    x = symbols("x", 2)
    out = np.empty(2, dtype=object)
    assert np.add(x, 1.0, out=out) is out
    assert out[1] is x[1] + 1.0


def test_an_array_of_no_dimensions_is_handed_out_as_a_node() -> None:
    assert isinstance(symbols("x", 3) @ symbols("y", 3), Node)
    assert isinstance(np.sin(array(symbol("x"))), Node)


def test_arrays_stay_arrays() -> None:
    x = symbols("x", (2, 2))
    assert all(type(y) is Array for y in (x + 1.0, x.T, x[0], x @ x, np.sin(x), x < 0.0, np.ones(2) * x, 2.0 - x))


def test_symbols_are_named_by_their_place() -> None:
    assert [node.value for node in symbols("q", 2)] == ["q[0]", "q[1]"]
    assert nodes_of(symbols("M", (2, 2)))[2].value == "M[1, 0]"
    assert nodes_of(symbols("x", ()))[0].value == "x"


def test_array_takes_nested_lists_of_numbers_and_nodes() -> None:
    x = symbol("x")
    result = array([[1, x], [True, 2.5]])
    assert result.shape == (2, 2)
    assert result[0, 1] is x
    assert [result[i].value for i in ((0, 0), (1, 0), (1, 1))] == [1.0, True, 2.5]


@pytest.mark.parametrize("values", [[[1.0], [1.0, 2.0]], ["a"], [None]], ids=str)
def test_array_refuses_what_is_not_a_table_of_numbers(values: Any) -> None:
    with pytest.raises((GraphError, ValueError), match="number"):
        array(values)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (np.floor, "np.floor"),
        (np.sinh, "np.sinh"),
        (np.cbrt, "np.cbrt"),
        (np.cumsum, "np.add.accumulate"),
    ],
)
def test_unsupported_functions_are_refused_by_name(function: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(GraphError, match=name):
        function(symbols("x", 3))


def _assign() -> None:
    np.zeros(2)[0] = symbol("x")


def _add_array() -> None:
    a = np.zeros(2)
    a += symbols("x", 2)


def _add_node() -> None:
    a = np.zeros(2)
    a *= symbol("x")


def _matmul() -> None:
    np.matmul(np.eye(2), symbols("x", 2), out=np.zeros(2))


@pytest.mark.parametrize("store", [_assign, _add_array, _add_node, _matmul])
def test_storing_nodes_in_an_array_of_floats_is_refused_with_advice(store: Callable[[], None]) -> None:
    with pytest.raises((GraphError, TypeError), match=r"array of floats.*np\.array|np\.array.*array of floats"):
        store()


def test_where_refuses_numbers_as_conditions() -> None:
    with pytest.raises(GraphError, match="truth value"):
        np.where(symbols("x", 2), 1.0, 2.0)
