"""The operations of nodes, and their meaning in NumPy.

This table is the definition: constants are folded with it, the interpreter runs it, and every back end is tested
against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        arity: number of arguments.
        evaluate: its meaning on NumPy arrays of any floating type.
        logical: whether the result is a truth value instead of a number.
        of_truths: whether the arguments are truth values instead of numbers.
        commutes: whether the first two arguments may be swapped.
    """

    arity: int
    evaluate: Callable[..., Any]
    logical: bool = False
    of_truths: bool = False
    commutes: bool = False


def _minimum(x: Any, y: Any) -> Any:
    # Spelled out, not np.minimum, so that every back end agrees on NaN (it wins) and on signed zeros (y wins).
    return np.where((x < y) | (x != x), x, y)


def _maximum(x: Any, y: Any) -> Any:
    return np.where((x > y) | (x != x), x, y)


def _fma(x: Any, y: Any, z: Any) -> Any:
    """x y + z rounded once, by error-free splitting: NumPy has no fused multiply-add.

    A sum rounded to odd keeps the trace of what it lost, so that rounding it again is rounding once (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    if np.result_type(x, y, z) == np.float32:
        return np.float32(_sum_to_odd(np.float64(x) * np.float64(y), np.float64(z)))  # this product is exact
    plain = x * y + z
    product, low = _two_product(x, y)
    middle, lowest = _two_sum(z, low)
    high, rest = _two_sum(product, middle)
    result = high + _sum_to_odd(rest, lowest)
    return np.where(np.isfinite(result) & (result != 0), result, plain)  # which knows the signs of zeros


def _sum_to_odd(a: Any, b: Any) -> Any:
    """a + b in float64; where it is inexact, the neighbour on the side of the exact sum whose last bit is 1."""
    total, error = _two_sum(a, b)
    even = (np.asarray(total).view(np.int64) & 1) == 0
    neighbour = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even & np.isfinite(total), neighbour, total)


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    def split(x: Any) -> tuple[Any, Any]:
        scaled = 134217729.0 * x  # 2^27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a1, a0), (b1, b0) = split(a), split(b)
    return product, a0 * b0 - (((product - a1 * b1) - a0 * b1) - a1 * b0)


def _exponent(x: Any) -> Any:
    return np.asarray(np.frexp(x)[1] - 1).astype(np.result_type(x))


def _power_of_two(n: Any) -> Any:
    return np.ldexp(np.ones_like(n), np.asarray(n).astype(np.int32))


OPERATIONS: dict[str, Operation] = {
    "add": Operation(2, np.add, commutes=True),
    "sub": Operation(2, np.subtract),
    "mul": Operation(2, np.multiply, commutes=True),
    "div": Operation(2, np.true_divide),
    "neg": Operation(1, np.negative),
    "fma": Operation(3, _fma, commutes=True),  # x y + z
    "sqrt": Operation(1, np.sqrt),
    "abs": Operation(1, np.abs),
    "copysign": Operation(2, np.copysign),
    "min": Operation(2, _minimum),
    "max": Operation(2, _maximum),
    "sin": Operation(1, np.sin),
    "cos": Operation(1, np.cos),
    "tan": Operation(1, np.tan),
    "asin": Operation(1, np.arcsin),
    "acos": Operation(1, np.arccos),
    "atan2": Operation(2, np.arctan2),
    "exp": Operation(1, np.exp),
    "log": Operation(1, np.log),
    # Three that the elementary functions are made of (elementary.py).
    "round": Operation(1, np.rint),  # to the nearest integer, ties to even
    "exponent": Operation(1, _exponent),  # floor(log2 |x|) of a normal x
    "power_of_two": Operation(1, _power_of_two),  # 2^n of a whole n whose power is normal
    "lt": Operation(2, np.less, logical=True),
    "le": Operation(2, np.less_equal, logical=True),
    "eq": Operation(2, np.equal, logical=True, commutes=True),
    "and": Operation(2, np.logical_and, logical=True, of_truths=True, commutes=True),
    "or": Operation(2, np.logical_or, logical=True, of_truths=True, commutes=True),
    "not": Operation(1, np.logical_not, logical=True, of_truths=True),
    "select": Operation(3, np.where),  # a truth value ? a number : a number
}
