"""Folding: the rules that simplify operations as they are made.

Each rule returns a simpler node or None. A zero is exact: 0 · x is 0, whatever x turns out to be. Signs move outward,
so that x and -x share their magnitude.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.graph.expr import FOLD, Node, apply, constant, known


def _is(node: Node, value: float) -> bool:
    return node.op == "constant" and node.value == value


def _fold_add(x: Node, y: Node) -> Node | None:
    of_x, of_y = x.op, y.op
    if of_x == "constant" and x.value == 0:
        return y
    if of_y == "constant" and y.value == 0:
        return x
    if of_y == "neg":
        return apply("sub", x, y.args[0])
    if of_x == "neg":
        return apply("sub", y, x.args[0])
    return None


def _fold_sub(x: Node, y: Node) -> Node | None:
    if x is y:
        return constant(0.0)
    if _is(y, 0):
        return x
    if _is(x, 0):
        return apply("neg", y)
    if y.op == "neg":
        return apply("add", x, y.args[0])
    if x.op == "neg":
        return apply("neg", apply("add", x.args[0], y))
    return None


def _fold_mul(x: Node, y: Node) -> Node | None:
    if y.op == "constant":
        x, y = y, x
    if x.op == "constant":
        if x.value == 0:
            return constant(0.0)
        if x.value == 1:
            return y
        if x.value == -1:
            return apply("neg", y)
        if y.op == "neg":
            return apply("mul", constant(-known(x)), y.args[0])
    if x.op == "neg":
        return apply("neg", apply("mul", x.args[0], y))
    if y.op == "neg":
        return apply("neg", apply("mul", x, y.args[0]))
    return None


def _fold_div(x: Node, y: Node) -> Node | None:
    if _is(x, 0):
        return constant(0.0)
    if y.op == "constant":
        mantissa, exponent = np.frexp(known(y))
        if abs(mantissa) == 0.5 and abs(exponent) < 120:  # a power of two: its reciprocal is exact, in float32, too
            return apply("mul", constant(1.0 / known(y)), x)
    if x.op == "neg":
        return apply("neg", apply("div", x.args[0], y))
    if y.op == "neg":
        return apply("neg", apply("div", x, y.args[0]))
    return None


def _fold_neg(x: Node) -> Node | None:
    if x.op == "neg":
        return x.args[0]
    if x.op == "sub":
        return apply("sub", x.args[1], x.args[0])
    return None


def _fold_fma(x: Node, y: Node, z: Node) -> Node | None:
    if _is(z, 0):
        return apply("mul", x, y)
    for factor in (x, y):
        if factor.op == "constant" and factor.value in (0, 1, -1):
            return apply("add", apply("mul", x, y), z)
    return None


def _fold_odd(op: str) -> Callable[[Node], Node | None]:
    return lambda x: apply("neg", apply(op, x.args[0])) if x.op == "neg" else None


def _fold_even(op: str) -> Callable[[Node], Node | None]:
    return lambda x: apply(op, x.args[0]) if x.op == "neg" or (op == "cos" and x.op == "abs") else None


def _fold_abs(x: Node) -> Node | None:
    if x.op in ("abs", "sqrt", "exp"):
        return x
    return apply("abs", x.args[0]) if x.op == "neg" else None


def _fold_same(x: Node, y: Node) -> Node | None:
    return x if x is y else None


def _fold_not(x: Node) -> Node | None:
    return x.args[0] if x.op == "not" else None


def _fold_logic(absorbing: bool) -> Callable[[Node, Node], Node | None]:
    def fold(x: Node, y: Node) -> Node | None:
        for this, other in ((x, y), (y, x)):
            if this.op == "constant":
                return this if this.value is absorbing else other
        return x if x is y else None

    return fold


def _fold_select(condition: Node, x: Node, y: Node) -> Node | None:
    if x is y:
        return x
    if condition.op == "constant":
        return x if condition.value else y
    if condition.op == "not":
        return apply("select", condition.args[0], y, x)
    return None


FOLD.update(
    {
        "add": _fold_add,
        "sub": _fold_sub,
        "mul": _fold_mul,
        "div": _fold_div,
        "neg": _fold_neg,
        "fma": _fold_fma,
        "sin": _fold_odd("sin"),
        "tan": _fold_odd("tan"),
        "asin": _fold_odd("asin"),
        "cos": _fold_even("cos"),
        "abs": _fold_abs,
        "min": _fold_same,
        "max": _fold_same,
        "and": _fold_logic(absorbing=False),
        "or": _fold_logic(absorbing=True),
        "not": _fold_not,
        "select": _fold_select,
    }
)
