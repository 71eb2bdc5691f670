"""The elementary functions against mpmath: at most 2 units in the last place, and the special values of IEEE 754."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import astuple
from typing import Any

import mpmath
import numpy as np
import pytest

from coupler.graph import elementary
from coupler.graph.elementary import DOUBLE, SINGLE, Precision
from coupler.graph.expr import Node, symbol
from coupler.graph.operations import OPERATIONS
from coupler.graph.walk import topological

FORMATS = [pytest.param(DOUBLE, np.float64, id="double"), pytest.param(SINGLE, np.float32, id="single")]
COUNT = 2000
INF, NAN = math.inf, math.nan

mp: Any = mpmath.MPContext()
mp.prec = 140


def sine(x: Node, precision: Precision) -> Node:
    return elementary.sincos(x, precision)[0]


def cosine(x: Node, precision: Precision) -> Node:
    return elementary.sincos(x, precision)[1]


def evaluate(function: Callable[..., Any], precision: Precision, dtype: Any, *arguments: Any) -> np.ndarray:
    """function(*arguments) as a back end computes it: every constant and operation in the given format."""
    inputs = [symbol(f"x{i}") for i in range(len(arguments))]
    result = function(*inputs, precision)
    values: dict[Node, Any] = {x: np.asarray(a, dtype) for x, a in zip(inputs, arguments, strict=True)}
    with np.errstate(all="ignore"):
        for node in topological([result]):
            if node in values:
                continue
            if node.op == "constant":
                values[node] = dtype(node.value)
                continue
            operands = [values[arg] for arg in node.args]
            check_domain(node.op, operands[0], dtype)
            values[node] = OPERATIONS[node.op].evaluate(*operands)
            assert node.logical or values[node].dtype == dtype
    return np.broadcast_to(values[result], np.shape(arguments[0]))


def check_domain(op: str, x: Any, dtype: Any) -> None:
    """The two operations on the exponent's bits know nothing of subnormals, infinities and NaN."""
    info = np.finfo(dtype)
    if op == "exponent":
        assert np.all((abs(x) >= info.tiny) & (abs(x) <= info.max))
    if op == "power_of_two":
        assert np.all((x == np.rint(x)) & (x >= info.minexp) & (x < info.maxexp))


def ulps(got: Any, exact: Any, dtype: Any) -> float:
    """The distance of `got` from the exact value in units of that value's last place."""
    info = np.finfo(dtype)
    if not np.isfinite(got):
        return 0.0 if got > 0 and exact > mp.mpf(float(info.max)) else INF
    place = mp.mpf(2) ** (max(mp.mag(exact) - 1, info.minexp) - info.nmant) if exact else info.smallest_subnormal
    return float(abs(mp.mpf(float(got)) - exact) / place)


def worst(
    function: Callable[..., Any], reference: Callable[..., Any], precision: Precision, dtype: Any, *x: Any
) -> float:
    got = evaluate(function, precision, dtype, *x)
    points = zip(*(np.asarray(a, float) for a in x), strict=True)
    return max(ulps(g, reference(*map(mp.mpf, p)), dtype) for g, p in zip(got, points, strict=True))


def joined(dtype: Any, *parts: Iterable[float]) -> np.ndarray:
    return np.concatenate([np.asarray(part, dtype) for part in parts])


def log_uniform(rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    return np.exp(rng.uniform(np.log(low), np.log(high), COUNT)) * rng.choice([-1, 1], COUNT)


def angles(rng: np.random.Generator, precision: Precision, dtype: Any) -> np.ndarray:
    limit, least = precision.trig_limit, float(np.finfo(dtype).tiny)
    turns = np.concatenate([np.arange(1, 300), rng.integers(300, int(1e4 / (np.pi / 2)), COUNT)])
    near = np.array([float(k * mp.pi / 2) for k in turns]).astype(dtype)
    return joined(
        dtype,
        rng.uniform(-8, 8, 2 * COUNT),
        rng.uniform(-1e4, 1e4, 2 * COUNT),
        rng.uniform(-limit, limit, COUNT),
        log_uniform(rng, least / 100, 1e4),
        near,
        np.nextafter(near, dtype(0)),
        np.nextafter(-near, dtype(-np.inf)),
        [0.0, np.finfo(dtype).smallest_subnormal, least, 1e4, limit, -limit],
    )


@pytest.mark.parametrize(("precision", "dtype"), FORMATS)
@pytest.mark.parametrize(
    ("function", "reference"),
    [(sine, mp.sin), (cosine, mp.cos), (elementary.tan, mp.tan)],
    ids=["sin", "cos", "tan"],
)
def test_circular(function: Any, reference: Any, precision: Precision, dtype: Any) -> None:
    x = angles(np.random.default_rng(1), precision, dtype)
    assert worst(function, reference, precision, dtype, x) <= 1.2


@pytest.mark.parametrize(("precision", "dtype"), FORMATS)
@pytest.mark.parametrize(
    ("function", "reference"), [(elementary.asin, mp.asin), (elementary.acos, mp.acos)], ids=["asin", "acos"]
)
def test_inverse_circular(function: Any, reference: Any, precision: Precision, dtype: Any) -> None:
    rng, info = np.random.default_rng(2), np.finfo(dtype)
    x = joined(
        dtype,
        rng.uniform(-1, 1, 4 * COUNT),
        log_uniform(rng, float(info.tiny) / 100, 1),
        1 - abs(log_uniform(rng, float(info.eps), 0.5)),
        abs(log_uniform(rng, float(info.eps), 0.5)) - 1,
        0.5 + log_uniform(rng, float(info.eps), 0.05),
        [0.5, -0.5, np.nextafter(dtype(0.5), dtype(1)), info.smallest_subnormal, 1.0, -1.0],
    )
    assert worst(function, reference, precision, dtype, x) <= 1.3


@pytest.mark.parametrize(("precision", "dtype"), FORMATS)
def test_atan2(precision: Precision, dtype: Any) -> None:
    rng, info = np.random.default_rng(3), np.finfo(dtype)
    least, most = 2 * float(info.smallest_subnormal), 0.99 * float(info.max)
    size = np.exp(rng.uniform(-5, 5, 2 * COUNT))
    angle = rng.uniform(-np.pi, np.pi, 2 * COUNT)
    slope = np.concatenate([power * rng.uniform(1, 1.05, 200) for power in (0.25, 0.5, 1, 2, 4)])
    ones = np.ones(COUNT)
    y = joined(dtype, size * np.sin(angle), log_uniform(rng, least, most), slope, log_uniform(rng, least, 1), ones)
    x = joined(dtype, size * np.cos(angle), log_uniform(rng, least, most), slope**0, ones, log_uniform(rng, 1e-9, 1))
    assert worst(elementary.atan2, mp.atan2, precision, dtype, y, x) <= 1.6


@pytest.mark.parametrize(("precision", "dtype"), FORMATS)
def test_exp(precision: Precision, dtype: Any) -> None:
    rng, info = np.random.default_rng(4), np.finfo(dtype)
    zero, subnormal, infinite = (float(np.log(np.float64(v))) for v in (info.smallest_subnormal, info.tiny, info.max))
    x = joined(
        dtype,
        rng.uniform(-1, 1, 2 * COUNT),
        rng.uniform(zero - 1, infinite + 1, 4 * COUNT),
        rng.uniform(zero - 1, subnormal + 1, 2 * COUNT),
        infinite + log_uniform(rng, float(info.eps), 1),
        log_uniform(rng, float(info.tiny) / 100, 1),
        [zero, subnormal, infinite, precision.exp_floor, -1e4, 1e4, -1e30, 1e30],
    )
    assert worst(elementary.exp, mp.exp, precision, dtype, x) <= 1.1


@pytest.mark.parametrize(("precision", "dtype"), FORMATS)
def test_log(precision: Precision, dtype: Any) -> None:
    rng, info = np.random.default_rng(5), np.finfo(dtype)
    least, tiny, most = float(info.smallest_subnormal), float(info.tiny), float(info.max)
    edges = [least, tiny, most, 1.0, 256 / 181, 181 / 256, np.nextafter(dtype(1), dtype(0))]
    x = joined(
        dtype,
        rng.uniform(0.3, 3, 4 * COUNT),
        1 + log_uniform(rng, float(info.eps), 0.5),
        abs(log_uniform(rng, least, 0.99 * most)),
        abs(log_uniform(rng, least, 4 * tiny)),
        edges,
    )
    assert worst(elementary.log, mp.log, precision, dtype, x) <= 1.0


PI = math.pi
SPECIAL = {
    sine: [((0.0,), 0.0), ((-0.0,), -0.0)],
    cosine: [((0.0,), 1.0), ((-0.0,), 1.0)],
    elementary.tan: [((0.0,), 0.0), ((-0.0,), -0.0)],
    elementary.asin: [
        *[((0.0,), 0.0), ((-0.0,), -0.0), ((1.0,), PI / 2), ((-1.0,), -PI / 2)],
        *[((x,), NAN) for x in (1.0000002, -1.0000002, 2.0, -1e30, INF, -INF, NAN)],
    ],
    elementary.acos: [
        *[((1.0,), 0.0), ((-1.0,), PI), ((0.0,), PI / 2), ((-0.0,), PI / 2)],
        *[((x,), NAN) for x in (1.0000002, -1.0000002, 2.0, -1e30, INF, -INF, NAN)],
    ],
    elementary.exp: [
        *[((0.0,), 1.0), ((-0.0,), 1.0), ((INF,), INF), ((-INF,), 0.0), ((NAN,), NAN)],
        *[((1e30,), INF), ((-1e30,), 0.0), ((1e4,), INF), ((-1e4,), 0.0)],
    ],
    elementary.log: [
        *[((1.0,), 0.0), ((0.0,), -INF), ((-0.0,), -INF), ((INF,), INF)],
        *[((x,), NAN) for x in (-1e-45, -1.0, -INF, NAN)],
    ],
    elementary.atan2: [
        *[((0.0, x), 0.0) for x in (0.0, 1e-45, 1.0, 1e38, INF)],
        *[((-0.0, x), -0.0) for x in (0.0, 1e-45, 1.0, 1e38, INF)],
        *[((0.0, x), PI) for x in (-0.0, -1e-45, -1.0, -1e38, -INF)],
        *[((-0.0, x), -PI) for x in (-0.0, -1e-45, -1.0, -1e38, -INF)],
        *[((y, x), math.copysign(PI / 2, y)) for y in (1e-45, -1.0, 1e38, INF, -INF) for x in (0.0, -0.0)],
        *[((y, x), math.copysign(PI / 2, y)) for y in (INF, -INF) for x in (1.0, -1.0, 1e38)],
        *[((1.0, INF), 0.0), ((-1e38, INF), -0.0), ((1.0, -INF), PI), ((-1e38, -INF), -PI)],
        *[((INF, INF), PI / 4), ((-INF, INF), -PI / 4), ((INF, -INF), 3 * PI / 4), ((-INF, -INF), -3 * PI / 4)],
        *[((1.0, 1.0), PI / 4), ((-1e38, -1e38), -3 * PI / 4), ((1e-45, 1e-45), PI / 4)],
        *[((y, x), NAN) for y, x in ((NAN, 1.0), (1.0, NAN), (NAN, NAN), (NAN, INF), (INF, NAN), (0.0, NAN))],
    ],
}


@pytest.mark.parametrize(("precision", "dtype"), FORMATS)
@pytest.mark.parametrize("function", SPECIAL, ids=lambda function: function.__name__)
def test_special_values(function: Any, precision: Precision, dtype: Any) -> None:
    arguments, expected = zip(*SPECIAL[function], strict=True)
    got = evaluate(function, precision, dtype, *zip(*arguments, strict=True))
    expected = np.asarray(expected, dtype)
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])


@pytest.mark.parametrize(("precision", "dtype"), FORMATS)
@pytest.mark.parametrize("function", [elementary.sincos, elementary.tan], ids=["sincos", "tan"])
def test_arguments_beyond_the_limit_do_no_harm(function: Any, precision: Precision, dtype: Any) -> None:
    def first(x: Node, precision: Precision) -> Node:
        result = function(x, precision)
        return result[0] if isinstance(result, tuple) else result

    evaluate(first, precision, dtype, [float(np.finfo(dtype).max), INF, -INF, NAN])


MOST_OPERATIONS = {"sincos": 44, "tan": 44, "asin": 33, "acos": 35, "atan2": 49, "exp": 26, "log": 40}


@pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=["double", "single"])
@pytest.mark.parametrize("name", MOST_OPERATIONS)
def test_few_and_primitive_operations(name: str, precision: Precision) -> None:
    inputs = [symbol("y"), symbol("x")] if name == "atan2" else [symbol("x")]
    result = getattr(elementary, name)(*inputs, precision)
    used = [node.op for node in topological(result if isinstance(result, tuple) else [result]) if node.args]
    assert len(used) <= MOST_OPERATIONS[name]
    assert not {"sin", "cos", "tan", "asin", "acos", "atan2", "exp", "log"} & set(used)


def test_single_precision_constants_are_floats_of_that_format() -> None:
    numbers = np.hstack(astuple(SINGLE))
    np.testing.assert_array_equal(numbers, numbers.astype(np.float32))
