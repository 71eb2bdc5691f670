"""Sine, cosine and their kind in machine code: within 2 units in the last place, and never wrong beyond."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
import pytest

from coupler.graph import Builder, View, fields
from coupler.graph.llvm import Native, Target, chosen
from machines import lesser_targets

ONE_ARGUMENT = ("sin", "cos", "tan", "arcsin", "arccos", "exp", "log")
TARGETS = {t.cpu: t for t in (chosen(), *lesser_targets())}


@cache
def compiled(name: str, dtype: type, target: Target) -> Native:
    b = Builder(name)
    slots = fields(x=b.input("x", 1).at(0), y=b.input("y", 1).at(0), z=b.output("z", 1).at(0))

    def kernel(s: View) -> None:
        function = getattr(np, name)
        s.z = function(s.y, s.x) if name == "arctan2" else function(s.x)

    b.loop(kernel, s=slots)
    return Native(b.build(), dtype, target=target)


def values(name: str, x: np.ndarray, y: np.ndarray, target: Target) -> np.ndarray:
    return compiled(name, x.dtype.type, target)(x[:, None], y[:, None])[:, 0]


def arguments(name: str, dtype: type, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(len(name))
    sign = rng.choice([-1.0, 1.0], count)
    if name in ("sin", "cos", "tan"):
        # A third each: over the range, tiny, and next to multiples of π/2, where little is left of the argument.
        turns = np.round(rng.uniform(0, 1e4 / (np.pi / 2), count)) * (np.pi / 2)
        tiny = 10.0 ** rng.uniform(-12, 0, count)
        x = sign * np.choose(np.arange(count) % 3, [rng.uniform(0, 1e4, count), tiny, turns])
    elif name in ("arcsin", "arccos"):
        x = sign * np.where(np.arange(count) % 2, rng.uniform(0, 1, count), 1 - 10.0 ** rng.uniform(-7, 0, count))
    elif name == "exp":
        x = rng.uniform(-80, 80, count) if dtype == np.float32 else rng.uniform(-700, 700, count)
    else:
        x = 10.0 ** rng.uniform(-30, 30, count)
    return x.astype(dtype), (sign * 10.0 ** rng.uniform(-30, 30, count)).astype(dtype)


def exact(name: str, x: float, y: float) -> mpmath.mpf:
    function = {"arcsin": "asin", "arccos": "acos", "arctan2": "atan2"}.get(name, name)
    with mpmath.workprec(300):
        arguments = (y, x) if name == "arctan2" else (x,)
        return getattr(mpmath, function)(*(mpmath.mpf(float(a)) for a in arguments))


def error_in_last_place(value: np.floating, truth: mpmath.mpf) -> float:
    unit = np.spacing(np.abs(value.dtype.type(float(truth))))
    return float(abs(mpmath.mpf(float(value)) - truth) / mpmath.mpf(float(unit)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*ONE_ARGUMENT, "arctan2"])
def test_within_two_units_in_the_last_place(name: str, dtype: type, target: str) -> None:
    x, y = arguments(name, dtype, 600)
    z = values(name, x, y, TARGETS[target])
    worst = max(error_in_last_place(z[i], exact(name, x[i], y[i])) for i in range(len(x)))
    assert worst <= 2.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles_are_right_whatever_is_in_the_other_lanes(name: str, dtype: type) -> None:
    rng = np.random.default_rng(3)
    x = np.where(np.arange(150) % 4, 10.0 ** rng.uniform(4, 38 if dtype == np.float32 else 300, 150), 0.5).astype(dtype)
    z = values(name, x, x, chosen())
    assert max(error_in_last_place(z[i], exact(name, x[i], x[i])) for i in range(len(x))) <= 2.0
    alone = np.array([values(name, x[i : i + 1], x[i : i + 1], chosen())[0] for i in range(len(x))])
    np.testing.assert_array_equal(z, alone)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*ONE_ARGUMENT, "arctan2"])
def test_special_values_are_those_of_numpy(name: str, dtype: type) -> None:
    info = np.finfo(dtype)
    special = [0.0, 1.0, 2.0, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 0.5]
    x, y = (a.ravel() for a in np.meshgrid([*special, *(-v for v in special)], [*special, *(-v for v in special)]))
    x, y = x.astype(dtype), y.astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.arctan2(y, x) if name == "arctan2" else getattr(np, name)(x)
    z = values(name, x, y, chosen())
    np.testing.assert_array_equal(np.isnan(z), np.isnan(expected))
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(z[known]), np.signbit(expected[known]))
    np.testing.assert_array_max_ulp(z[known], expected[known], maxulp=2, dtype=dtype)
