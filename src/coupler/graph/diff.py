"""Exact derivatives of traced functions, forward and reverse.

Every function here takes a Python function f of one array and the point x at which to differentiate it. f is traced on
new symbols, the graph is differentiated by the chain rule, and x is substituted for the symbols. The result has nodes,
or floats if it depends on no node. f may use other nodes besides x, which are held fixed.

A loop constraint φ needs K = ∂φ/∂q and k = −K̇ q̇: `jacobian(phi, q)` and `-second_directional(phi, q, v)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.graph.array import Array, array, nodes_of, numbers_or_nodes, symbols
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, apply, constant, where
from coupler.graph.rewrite import spelled_out
from coupler.graph.walk import substitute, topological

Function = Callable[[Any], Any]

_ZERO, _ONE = constant(0.0), constant(1.0)
_FALSE, _TRUE = constant(False), constant(True)


def jvp(f: Function, x: Any, v: Any) -> Any:
    """The directional derivative J v of f at x, by forward mode.

    Args:
        f: a function of an array of the shape of x.
        x: the point, numbers or nodes.
        v: the direction, of the shape of x.

    Returns:
        An array of the shape of f(x).
    """
    return _differentiate(f, x, _like(v, x, "direction"), _push_along)


def vjp(f: Function, x: Any, u: Any) -> Any:
    """The transposed product Jᵀ u of f at x, by reverse mode.

    Args:
        f: a function of an array of the shape of x.
        x: the point, numbers or nodes.
        u: weights of the shape of f(x). For a scalar f, u = 1 gives the gradient.

    Returns:
        An array of the shape of x.
    """

    def pull_back(z: Array, y: np.ndarray, u: Array) -> Any:
        return np.array(pull(nodes_of(y), nodes_of(_like(u, y, "weights")), nodes_of(z)), dtype=object).reshape(z.shape)

    return _differentiate(f, x, array(u), pull_back)


def jacobian(f: Function, x: Any) -> Any:
    """The Jacobian ∂f/∂x, forward or reverse, whichever needs fewer sweeps.

    Returns:
        An array of the shape of f(x) followed by the shape of x.
    """

    def all_partials(z: Array, y: np.ndarray, _: Array) -> Any:
        inputs, outputs = nodes_of(z), nodes_of(y)
        if len(inputs) <= 2 * len(outputs):  # a reverse sweep costs about twice a forward one
            columns = [push(outputs, {node: _ONE}) for node in inputs]
            rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in outputs]
        else:
            rows = [pull([node], [_ONE], inputs) for node in outputs]
        result = np.empty((len(outputs), len(inputs)), dtype=object)
        for i, row in enumerate(rows):
            result[i] = row
        return result.reshape(y.shape + z.shape)

    return _differentiate(f, x, array([]), all_partials)


def second_directional(f: Function, x: Any, v: Any) -> Any:
    """The second derivative of f along v, d²/dε² f(x + ε v) at ε = 0, which is J̇ v for ẋ = v constant."""

    def twice(z: Array, y: np.ndarray, v: Array) -> Any:
        return _push_along(z, _push_along(z, y, v), v)

    return _differentiate(f, x, _like(v, x, "direction"), twice)


def push(outputs: Sequence[Node], tangents: Mapping[Node, Node]) -> list[Node]:
    """Forward mode on nodes: derivatives of the outputs when each key of `tangents` moves at its value."""
    dot: dict[Node, Node] = dict(tangents)
    for node in topological(outputs, frozenset(tangents)):
        if node in dot:
            continue
        if not node.args or node.logical or all(dot.get(arg, _ZERO) is _ZERO for arg in node.args):
            dot[node] = _ZERO
        elif (choice := _choice(node)) is not None:
            condition, x, y = choice
            dot[node] = where(condition, dot.get(x, _ZERO), dot.get(y, _ZERO))
        else:
            total = _ZERO
            for arg, partial in zip(node.args, _PARTIALS[node.op](node, *node.args), strict=True):
                total = total + dot.get(arg, _ZERO) * partial
            dot[node] = total
    return [dot[node] for node in outputs]


def pull(outputs: Sequence[Node], cotangents: Sequence[Node], inputs: Sequence[Node]) -> list[Node]:
    """Reverse mode on nodes: derivatives of Σ cotangent · output by each input."""
    adjoint: dict[Node, Node] = {}
    taken: dict[Node, Node] = {}  # the condition under which a node matters, as it may be in a branch that is not taken

    def add(node: Node, value: Node, condition: Node) -> None:
        adjoint[node] = adjoint.get(node, _ZERO) + value
        taken[node] = taken.get(node, _FALSE) | condition

    for output, cotangent in zip(outputs, cotangents, strict=True):
        add(output, cotangent, _TRUE)
    leaves = frozenset(inputs)
    for node in reversed(topological(outputs, leaves)):
        bar = adjoint.get(node, _ZERO)
        if bar is _ZERO or not node.args or node.logical or node in leaves:
            continue
        if (choice := _choice(node)) is not None:
            condition, x, y = choice
            add(x, where(condition, bar, _ZERO), taken[node] & condition)
            add(y, where(condition, _ZERO, bar), taken[node] & ~condition)
            continue
        for arg, partial in zip(node.args, _PARTIALS[node.op](node, *node.args), strict=True):
            product = bar * partial
            if partial.op != "constant":  # it may be infinite in a branch not taken, and 0 · ∞ is not 0
                product = where(taken[node], product, _ZERO)
            add(arg, product, taken[node])
    return [adjoint.get(node, _ZERO) for node in inputs]


def _differentiate(f: Function, x: Any, direction: Array, rule: Callable[[Array, np.ndarray, Array], Any]) -> Any:
    point = array(x)
    z = symbols("x", point.shape)
    given = z.copy() if z.ndim else z[()]  # a copy, because f may assign to its elements
    y = np.asarray(f(given), dtype=object).view(np.ndarray)
    y = np.array(spelled_out(nodes_of(y), frozenset(nodes_of(z))), dtype=object).reshape(y.shape)
    result = np.asarray(rule(z, y, direction), dtype=object)
    values = substitute(nodes_of(result), dict(zip(nodes_of(z), nodes_of(point), strict=True)))
    return numbers_or_nodes(values, result.shape)


def _push_along(z: Array, y: np.ndarray, v: Array) -> np.ndarray:
    tangents = push(nodes_of(y), dict(zip(nodes_of(z), nodes_of(v), strict=True)))
    return np.array(tangents, dtype=object).reshape(y.shape)


def _like(value: Any, model: Any, what: str) -> Array:
    value = array(value)
    if value.shape != np.shape(model):
        raise GraphError(f"the {what} has shape {value.shape}; expected {np.shape(model)}")
    return value


def _choice(node: Node) -> tuple[Node, Node, Node] | None:
    """(condition, x, y) of a node that is x or y and not a mixture of both."""
    if node.op == "select":
        return node.args  # type: ignore[return-value]
    if node.op in ("min", "max"):
        x, y = node.args
        return (apply("lt", x, y) if node.op == "min" else apply("lt", y, x)), x, y
    return None


def _sign(x: Node) -> Node:
    return apply("copysign", _ONE, x)


def _partials_of_atan2(z: Node, y: Node, x: Node) -> tuple[Node, Node]:
    square = x * x + y * y
    return x / square, -y / square


# ∂(operation)/∂(each argument), given the node itself and its arguments.
_PARTIALS: dict[str, Callable[..., tuple[Node, ...]]] = {
    "add": lambda z, x, y: (_ONE, _ONE),
    "sub": lambda z, x, y: (_ONE, -_ONE),
    "mul": lambda z, x, y: (y, x),
    "div": lambda z, x, y: (1.0 / y, -z / y),
    "neg": lambda z, x: (-_ONE,),
    "fma": lambda z, x, y, w: (y, x, _ONE),
    "sqrt": lambda z, x: (0.5 / z,),
    "abs": lambda z, x: (_sign(x),),
    "copysign": lambda z, x, y: (_sign(x) * _sign(y), _ZERO),
    "sin": lambda z, x: (apply("cos", x),),
    "cos": lambda z, x: (-apply("sin", x),),
    "tan": lambda z, x: (1.0 + z * z,),
    "asin": lambda z, x: (1.0 / apply("sqrt", 1.0 - x * x),),
    "acos": lambda z, x: (-1.0 / apply("sqrt", 1.0 - x * x),),
    "atan2": _partials_of_atan2,
    "exp": lambda z, x: (z,),
    "log": lambda z, x: (1.0 / x,),
    "round": lambda z, x: (_ZERO,),  # constant between its steps, as are those below
    "exponent": lambda z, x: (_ZERO,),
    "power_of_two": lambda z, x: (_ZERO,),
    "lookup": lambda z, x: (_ZERO,),
}
