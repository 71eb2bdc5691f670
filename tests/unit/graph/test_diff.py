"""Derivatives against numerical ones in 50 digits, forward against reverse, and what both do at the edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

from coupler.graph import Array, GraphError, Node, array, jacobian, jvp, second_directional, symbol, symbols, vjp
from coupler.graph.array import nodes_of
from coupler.graph.diff import pull, push
from coupler.graph.expr import apply, as_node, constant, where
from coupler.graph.operations import OPERATIONS
from coupler.graph.walk import topological

mp: Any = mpmath.mp  # whose functions are put together at run time


def assert_close(result: Any, expected: Any) -> None:
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-14)


def evaluate(result: Any, values: Mapping[Node, float]) -> np.ndarray:
    value: dict[Node, Any] = dict(values)
    outputs = nodes_of(result)
    with np.errstate(all="ignore"):
        for node in topological(outputs):
            if node.op == "constant":
                value[node] = node.value if node.logical else np.float64(node.value or 0.0)
            elif node not in value:
                value[node] = OPERATIONS[node.op].evaluate(*(value[arg] for arg in node.args))
    return np.array([value[node] for node in outputs], dtype=float).reshape(np.shape(result))


# One operation at a time

Reference = Callable[..., Any]
SMOOTH: dict[str, tuple[Reference, list[tuple[float, ...]]]] = {
    "add": (lambda x, y: x + y, [(0.3, -2.0)]),
    "sub": (lambda x, y: x - y, [(0.3, -2.0)]),
    "mul": (lambda x, y: x * y, [(0.3, -2.0), (0.0, 3.0)]),
    "div": (lambda x, y: x / y, [(0.3, -2.0), (-1e3, 1e-2)]),
    "neg": (lambda x: -x, [(0.3,)]),
    "fma": (lambda x, y, z: x * y + z, [(0.3, -2.0, 5.0)]),
    "sqrt": (mp.sqrt, [(0.3,), (1e-8,), (1e8,)]),
    "abs": (abs, [(0.3,), (-0.3,)]),
    "copysign": (lambda x, y: abs(x) * mp.sign(y), [(0.3, 2.0), (0.3, -2.0), (-0.3, 2.0), (-0.3, -2.0)]),
    "min": (min, [(0.3, 2.0), (2.0, 0.3)]),
    "max": (max, [(0.3, 2.0), (2.0, 0.3)]),
    "sin": (mp.sin, [(0.3,), (-2.0,), (100.0,)]),
    "cos": (mp.cos, [(0.3,), (-2.0,), (100.0,)]),
    "tan": (mp.tan, [(0.3,), (-2.0,), (1.5,)]),
    "asin": (mp.asin, [(0.3,), (-0.9,)]),
    "acos": (mp.acos, [(0.3,), (-0.9,)]),
    "atan2": (mp.atan2, [(0.3, 2.0), (0.3, -2.0), (-3.0, -0.1), (-3.0, 0.1), (1e-8, 1.0)]),
    "exp": (mp.exp, [(0.3,), (-20.0,), (20.0,)]),
    "log": (mp.log, [(0.3,), (1e-8,), (1e8,)]),
    "round": (mp.nint, [(0.3,), (-2.7,)]),
    "exponent": (lambda x: mp.floor(mp.log(abs(x), 2)), [(0.3,), (-5.0,)]),
    "power_of_two": (lambda n: mp.mpf(2) ** mp.nint(n), [(3.0,)]),
    "select": (lambda c, x, y: x if c > 0 else y, [(1.0, 0.3, 2.0), (-1.0, 0.3, 2.0)]),
}
POINTS = [(op, point) for op, (_, points) in SMOOTH.items() for point in points]


def applied(op: str) -> Callable[[Any], Node]:
    return lambda x: where(x[0] > 0.0, x[1], x[2]) if op == "select" else apply(op, *x)


def test_every_operation_on_numbers_is_covered() -> None:
    assert set(SMOOTH) == {op for op, operation in OPERATIONS.items() if not operation.logical}


@pytest.mark.parametrize(("op", "point"), POINTS)
def test_derivative_of_an_operation(op: str, point: tuple[float, ...]) -> None:
    reference = SMOOTH[op][0]
    with mp.workdps(50):
        orders = np.eye(len(point), dtype=int)
        expected = [float(mp.diff(reference, point, tuple(order), h=mp.mpf(10) ** -20)) for order in orders.tolist()]
    np.testing.assert_allclose(jacobian(applied(op), point), expected, rtol=1e-13)
    np.testing.assert_allclose(vjp(applied(op), point, 1.0), expected, rtol=1e-13)


@pytest.mark.parametrize("op", [op for op, operation in OPERATIONS.items() if operation.logical])
def test_truth_values_do_not_move(op: str) -> None:
    def chosen(x: Array) -> Any:
        truths = [x[0] < 0.0, x[1] < 0.0] if op in ("and", "or", "not") else list(x)
        return where(apply(op, *truths[: OPERATIONS[op].arity]), 2.0 * x[0], 3.0 * x[1])

    x = symbols("x", 2)
    assert {node.value for node in topological(nodes_of(jacobian(chosen, x))) if node.op == "constant"} >= {2.0, 3.0}
    assert "add" not in {node.op for node in topological(nodes_of(jacobian(chosen, x)))}


# Composed functions, written once for floats, nodes and numbers of 50 digits

NUMPY = SimpleNamespace(
    sin=np.sin, cos=np.cos, exp=np.exp, log=np.log, sqrt=np.sqrt, atan2=np.arctan2, asin=np.arcsin, tan=np.tan
)


def _wave(x: Any, m: Any) -> list[Any]:
    return [m.sin(x[0] * x[1]) / (2.0 + m.cos(x[2])), m.exp(-x[0] * x[0]) * x[2] ** 3]


def _angle(x: Any, m: Any) -> list[Any]:
    return [m.atan2(x[0] - x[1], x[2] * x[2]) + m.asin(x[0] / 3.0)]


def _root(x: Any, m: Any) -> list[Any]:
    r = m.sqrt(x[0] * x[0] + x[1] * x[1] + 1.0)
    return [r, x[2] / r, m.log(r) * m.tan(x[1] / 4.0), x[0] - x[1]]


def _closure(q: Any, m: Any) -> list[Any]:
    """The opening of a four-bar linkage: crank, coupler and rocker against the ground line."""
    return [
        0.3 * m.cos(q[0]) + 1.0 * m.cos(q[1]) - 0.8 * m.cos(q[2]) - 1.1,
        0.3 * m.sin(q[0]) + 1.0 * m.sin(q[1]) - 0.8 * m.sin(q[2]),
    ]


COMPOSED = [_wave, _angle, _root, _closure]
X, W = np.array([0.7, -0.4, 1.3]), np.array([0.2, 1.1, -0.6])


def on_nodes(f: Callable[[Any, Any], list[Any]]) -> Callable[[Any], np.ndarray]:
    return lambda x: np.array(f(x, NUMPY))


def along(f: Callable[[Any, Any], list[Any]], path: Callable[[Any], list[Any]], order: int) -> list[float]:
    """d^order/dt^order f(path(t)) at t = 0 in 50 digits."""
    with mp.workdps(50):
        count = len(f([mp.mpf(1)] * 3, mp))
        return [float(mp.diff(lambda t, i=i: f(path(t), mp)[i], 0, order)) for i in range(count)]


def line(t: Any) -> list[Any]:
    return [x + t * w for x, w in zip(X.tolist(), W.tolist(), strict=True)]


@pytest.mark.parametrize("f", COMPOSED)
def test_directional_derivative(f: Any) -> None:
    assert_close(jvp(on_nodes(f), X, W), along(f, line, 1))


@pytest.mark.parametrize("f", COMPOSED)
def test_second_directional_derivative(f: Any) -> None:
    assert_close(second_directional(on_nodes(f), X, W), along(f, line, 2))


@pytest.mark.parametrize("f", COMPOSED)
def test_second_directional_derivative_is_the_jacobian_of_the_jacobian_contracted(f: Any) -> None:
    second = jacobian(lambda x: jacobian(on_nodes(f), x), X)
    assert_close(second_directional(on_nodes(f), X, W), second @ W @ W)


@pytest.mark.parametrize("f", COMPOSED)
def test_forward_and_reverse_agree(f: Any) -> None:
    function = on_nodes(f)
    J = jacobian(function, X)
    forward = np.stack([jvp(function, X, unit) for unit in np.eye(3)], axis=1)
    reverse = np.stack([vjp(function, X, unit) for unit in np.eye(len(J))])
    assert_close(forward, J)
    assert_close(reverse, J)


def test_the_direction_of_the_sweeps_does_not_show_in_the_jacobian() -> None:
    def few(x: Any) -> Any:
        return np.array([np.sum(np.sin(x)), np.prod(x)])

    def many(x: Any) -> Any:
        return np.concatenate([few(x), x])  # forward, where the former goes in reverse

    x = np.linspace(0.5, 1.5, 7)
    assert_close(jacobian(many, x)[:2], jacobian(few, x))


def test_acceleration_of_a_loop_constraint() -> None:
    # φ(q(t)) = 0 twice differentiated is K q̈ = k with K = ∂φ/∂q and k = −K̇ q̇.
    a = np.array([0.5, -0.2, 0.9])

    def motion(t: Any) -> list[Any]:
        return [q + t * v + t * t * w / 2 for q, v, w in zip(X.tolist(), W.tolist(), a.tolist(), strict=True)]

    K = jacobian(on_nodes(_closure), X)
    k = -second_directional(on_nodes(_closure), X, W)
    assert_close(K @ W, along(_closure, motion, 1))
    assert_close(K @ a - k, along(_closure, motion, 2))


# Shapes and kinds of arguments


@pytest.mark.parametrize("y_shape", [(), (2,), (2, 3)])
@pytest.mark.parametrize("x_shape", [(), (4,), (2, 2), (0,)])
def test_shape_of_a_jacobian(x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        return np.full(y_shape, np.sum(x)) if np.size(x) else np.zeros(y_shape)

    J = jacobian(f, np.ones(x_shape))
    assert J.shape == y_shape + x_shape
    np.testing.assert_array_equal(J, 1.0)


def test_jacobian_of_no_outputs() -> None:
    assert jacobian(lambda x: x[:0], np.ones(3)).shape == (0, 3)


def test_a_single_number_may_go_into_an_array() -> None:
    np.testing.assert_array_equal(jacobian(lambda x: np.array([x, x * x]), 3.0), [1.0, 6.0])


@pytest.mark.parametrize("u_shape", [(), (2, 3)])
def test_products_have_the_shapes_of_input_and_output(u_shape: tuple[int, ...]) -> None:
    def f(x: Any) -> Any:
        return np.sum(x) * np.ones(u_shape)

    assert jvp(f, np.ones((2, 2)), np.ones((2, 2))).shape == u_shape
    assert vjp(f, np.ones((2, 2)), np.ones(u_shape)).shape == (2, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: jvp(np.sin, np.ones(3), np.ones(2)),
        lambda: jvp(np.sin, np.ones(3), 1.0),
        lambda: second_directional(np.sin, np.ones(3), np.ones((3, 1))),
        lambda: vjp(np.sum, np.ones(3), np.ones(3)),
    ],
)
def test_a_direction_of_the_wrong_shape_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(GraphError, match=r"has shape .*; expected"):
        call()


def test_numbers_in_numbers_out() -> None:
    for result in (jacobian(np.sin, [0.1, 0.2]), jvp(np.sin, [1, 2], [1, 0]), vjp(np.sin, [1, 2], [1, 0])):
        assert result.dtype == np.float64


def test_nodes_in_nodes_out() -> None:
    x = symbols("x", 2)
    for result in (jacobian(np.sin, x), jvp(np.sin, x, [1.0, 0.0]), vjp(np.sin, x, [1.0, 0.0])):
        assert type(result) is Array


def test_nodes_give_what_numbers_give() -> None:
    x, w = symbols("x", 3), symbols("w", 3)
    values = dict(zip([*x, *w], [*X, *W], strict=True))
    for f in map(on_nodes, COMPOSED):
        assert_close(evaluate(jacobian(f, x), values), jacobian(f, X))
        assert_close(evaluate(second_directional(f, x, w), values), second_directional(f, X, W))


def test_the_same_node_twice_in_the_point_is_two_inputs() -> None:
    x = symbol("x")
    J = jacobian(lambda z: z[0] * z[1] * z[1], [x, x])
    np.testing.assert_allclose(evaluate(J, {x: 3.0}), [9.0, 18.0], rtol=0)


def test_numbers_and_nodes_mix_in_the_point() -> None:
    x = symbol("x")
    assert jacobian(lambda z: z[0] * z[1], [x, 2.0])[1] is x


def test_other_nodes_are_held_fixed() -> None:
    x, p = symbol("x"), symbol("p")
    assert jacobian(lambda z: p * z[0] + p * p, [x])[0] is p
    assert jacobian(lambda z: x * z[0], [x])[0] is x  # the point itself, used from outside
    assert jvp(lambda z: p * z[0], [2.0], [3.0])[()] is p * 3.0


@pytest.mark.parametrize("f", [lambda x: 1.0, lambda x: symbol("p"), lambda x: np.rint(x[0])])
def test_a_constant_has_no_derivative(f: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(jacobian(f, [1.0, 2.0]), [0.0, 0.0])
    np.testing.assert_array_equal(vjp(f, [1.0, 2.0], 1.0), [0.0, 0.0])


@pytest.mark.parametrize("outputs", [1, 6])
def test_what_does_not_depend_is_the_constant_zero(outputs: int) -> None:
    x = symbols("x", 6)
    J = jacobian(lambda z: np.sin(z)[:outputs] * z[0], x)  # in reverse for one output, forward for six
    zero = {(i, j) for i in range(outputs) for j in range(6) if J[i, j] is constant(0.0)}
    assert zero == {(i, j) for i in range(outputs) for j in range(1, 6) if j != i}


def test_push_and_pull_stop_at_inner_nodes() -> None:
    x = symbol("x")
    y = apply("sin", x)
    z = y * y
    assert push([z, y], {y: constant(1.0)}) == [y + y, constant(1.0)]
    assert pull([z], [constant(1.0)], [y, x]) == [y + y, constant(0.0)]


# Branches

SINGULAR: dict[str, tuple[Callable[[Any], Any], float, float, float]] = {
    # function of x with a singular branch that is not taken at the point; the point, value, derivative
    "sqrt": (lambda x: np.where(x > 0.0, np.sqrt(x), 2.0 * x), 0.0, 0.0, 2.0),
    "1/x": (lambda x: np.where(x != 0.0, 1.0 / x, 3.0 * x), 0.0, 0.0, 3.0),
    "log": (lambda x: np.where(x > 0.0, np.log(x), x), 0.0, 0.0, 1.0),
    "log of a negative": (lambda x: np.where(x > 0.0, np.log(x), x), -1.0, -1.0, 1.0),
    "asin": (lambda x: np.where(x < 1.0, np.arcsin(x), x), 1.0, 1.0, 1.0),
    "acos": (lambda x: np.where(x < 1.0, np.arccos(x), x), 2.0, 2.0, 1.0),
    "atan2": (lambda x: np.where(x > 0.0, np.arctan2(x, x), x), 0.0, 0.0, 1.0),
    "exp": (lambda x: np.where(x < 700.0, np.exp(x), x), 1e4, 1e4, 1.0),
    "product": (lambda x: np.where(x > 0.0, x * (1.0 / x), x), 0.0, 0.0, 1.0),
    "sin(1/x)": (lambda x: np.where(x != 0.0, np.sin(1.0 / x), x), 0.0, 0.0, 1.0),
    "x cos(1/x)": (lambda x: np.where(x != 0.0, x * np.cos(1.0 / x), x), 0.0, 0.0, 1.0),
    "|1/x|": (lambda x: np.where(x != 0.0, np.abs(1.0 / x), x), 0.0, 0.0, 1.0),
    "composed": (lambda x: np.where(x > 0.0, np.exp(np.sin(x) / np.sqrt(x)) ** 2, x), 0.0, 0.0, 1.0),
    "minimum": (lambda x: np.minimum(np.sqrt(np.abs(x)) + 1.0, 5.0 * x), 0.0, 0.0, 5.0),
    "nested": (
        lambda x: np.where(x > 1.0, np.where(x > 2.0, np.log(x - 2.0), np.sqrt(x - 1.0)), np.where(x > 0.0, 1 / x, x)),
        0.0,
        0.0,
        1.0,
    ),
    "branch within a branch's argument": (
        lambda x: np.where(x > 0.0, np.sqrt(np.where(x > 1.0, np.log(x), x)), x),
        0.0,
        0.0,
        1.0,
    ),
}


@pytest.mark.parametrize("as_number", [True, False])
@pytest.mark.parametrize("name", SINGULAR)
def test_a_singular_branch_that_is_not_taken_does_no_harm(name: str, as_number: bool) -> None:
    f, point, value, slope = SINGULAR[name]
    x = symbol("x")

    def at_point(result: Any) -> np.ndarray:
        return evaluate(result, {x: np.float64(point)})

    at = [point] if as_number else [x]
    np.testing.assert_array_equal(at_point(f(x)), value)
    np.testing.assert_array_equal(at_point(jvp(lambda z: f(z[0]), at, [1.0])), slope)
    np.testing.assert_array_equal(at_point(vjp(lambda z: f(z[0]), at, 1.0)), [slope])


def test_second_derivatives_through_a_branch_are_right_where_the_first_is_zero() -> None:
    def f(x: Any) -> Any:
        return np.where(x[0] > -1.0, (np.exp(x[0]) - 1.0) ** 2 / 2.0, 0.0)  # f'' = e^x (2 e^x - 1)

    np.testing.assert_allclose(second_directional(f, [0.0], [1.0]), 1.0, rtol=1e-15)
    np.testing.assert_allclose(jacobian(lambda x: vjp(f, x, 1.0), [0.0]), [[1.0]], rtol=1e-15)


@pytest.mark.parametrize("name", SINGULAR)
def test_branches_are_differentiated_where_they_are_taken(name: str) -> None:
    f = SINGULAR[name][0]
    point = 0.37
    step = 1e-6
    with np.errstate(all="ignore"):
        numerical = (f(np.float64(point + step)) - f(np.float64(point - step))) / (2 * step)
    np.testing.assert_allclose(jvp(lambda z: f(z[0]), [point], [1.0]), numerical, rtol=1e-8)
    np.testing.assert_allclose(vjp(lambda z: f(z[0]), [point], 1.0), [numerical], rtol=1e-8)


def test_reverse_mode_needs_few_operations() -> None:
    def f(x: Array) -> Any:
        total = as_node(1.0)
        for node in x:  # a chain, each product of which its neighbours need
            total = total * node
        return total

    gradient = vjp(f, symbols("x", 50), 1.0)
    assert sum(node.op == "mul" for node in topological(nodes_of(gradient))) <= 3 * 50


def test_array_accepts_what_jacobian_returns() -> None:
    x = symbols("x", 2)
    assert array(jacobian(np.sin, x)).shape == (2, 2)


def test_a_function_may_assign_to_its_argument() -> None:
    def f(x: Any) -> Any:
        x[0] *= 2.0
        return x * x

    np.testing.assert_array_equal(jacobian(f, np.array([1.0, 3.0])), [[8.0, 0.0], [0.0, 6.0]])
    np.testing.assert_array_equal(jvp(f, np.array([1.0, 3.0]), np.ones(2)), [8.0, 6.0])
    np.testing.assert_array_equal(vjp(f, np.array([1.0, 3.0]), np.ones(2)), [8.0, 6.0])
