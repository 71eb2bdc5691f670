"""Prints the tables of src/coupler/graph/elementary.py: minimax polynomials, and constants split into parts.

Each polynomial p minimises the largest |(p - f) w| on an interval, where w turns the polynomial's error into the
relative error of the function it serves. It is found by Remez' exchange: solve for the polynomial whose weighted
error has equal size and alternating sign at n + 1 points, move the points to the extrema of that error, repeat.

Run with: python tools/minimax.py
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 60


@dataclass(frozen=True)
class Fit:
    """A polynomial to find.

    Attributes:
        f: the function that it approximates.
        weight: the factor from its error to the relative error of the whole function.
        low, high: the interval.
        sizes: how many coefficients in double and in single precision.
    """

    f: Callable[[Any], Any]
    weight: Callable[[Any], Any]
    low: float
    high: float
    sizes: tuple[int, int]


def of_square(function: Callable[[Any], Any], leading: float, high: float, sizes: tuple[int, int]) -> Fit:
    """function(r) / r = leading + z p(z) with z = r^2 <= high, for an odd function."""

    def ratio(z: Any) -> Any:
        return function(mp.sqrt(z)) / mp.sqrt(z)

    return Fit(lambda z: (ratio(z) - leading) / z, lambda z: z / ratio(z), 0.0, high, sizes)


# A reduced angle goes a little beyond pi/4, since the multiple of pi/2 is found from a rounded quotient.
ANGLE = 0.8**2
LOG_ARGUMENT = ((mp.mpf(256) / 181 - 1) / (mp.mpf(256) / 181 + 1)) ** 2  # (f / (2 + f))^2 at 1 + f = 256/181
LN2_HALF = 0.3466

FITS = {
    "sine": of_square(mp.sin, 1, ANGLE, (6, 3)),
    # cos r = 1 + z (-1/2 + z p(z))
    "cosine": Fit(
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(mp.sqrt(z)), 0.0, ANGLE, (6, 3)
    ),
    # r cot r = 1 + z p(z): unlike tan r / r, it has no pole before r = pi.
    "cotangent": of_square(lambda r: r**2 * mp.cot(r), 1, ANGLE, (9, 5)),
    "arcsine": of_square(mp.asin, 1, 0.25, (13, 5)),
    "arctangent": of_square(mp.atan, 1, 1.0, (20, 9)),
    # exp r = 1 + r + r^2 p(r)
    "exponential": Fit(lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: r**2 / mp.exp(r), -LN2_HALF, LN2_HALF, (10, 5)),
    # log((1 + s) / (1 - s)) = 2 s + s z p(z) with z = s^2
    "logarithm": of_square(lambda s: 2 * mp.atanh(s), 2, float(LOG_ARGUMENT), (7, 3)),
}


def remez(fit: Fit, size: int, rounds: int = 12) -> tuple[list[Any], Any]:
    """The minimax polynomial's coefficients, constant first, and its largest weighted error."""
    middle, radius = mp.mpf(fit.low + fit.high) / 2, mp.mpf(fit.high - fit.low) / 2
    count = 40 * size
    grid = [middle - radius * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]  # never the ends
    f, weight = [fit.f(t) for t in grid], [fit.weight(t) for t in grid]
    points = [int(count * (i + 0.5) / (size + 1)) for i in range(size + 1)]
    coefficients: list[Any] = []
    worst = mp.mpf(0)
    for _ in range(rounds):
        rows = [[*(grid[i] ** k for k in range(size)), (-1) ** j / weight[i]] for j, i in enumerate(points)]
        coefficients = list(mp.lu_solve(mp.matrix(rows), mp.matrix([f[i] for i in points])))[:size]
        error = [(mp.polyval(coefficients[::-1], t) - y) * w for t, y, w in zip(grid, f, weight, strict=True)]
        worst = max(map(abs, error))
        starts = [0, *(i for i in range(1, count) if error[i] * error[i - 1] < 0), count]
        peaks = [max(range(a, b), key=lambda i: abs(error[i])) for a, b in itertools.pairwise(starts)]
        while len(peaks) > size + 1:  # keep the larger end
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        if peaks == points or len(peaks) <= size:
            break
        points = peaks
    return coefficients, worst


def parts(value: Any, lengths: list[int]) -> list[Any]:
    """`value` as a sum of floats with so many bits."""
    result = []
    for bits in lengths:
        unit = mp.mpf(2) ** (mp.floor(mp.log(abs(value), 2)) + 1 - bits)
        result.append(mp.nint(value / unit) * unit)
        value -= result[-1]
    return result


def table(name: str, values: list[Any], dtype: Any) -> str:
    """The line of a Precision: shortest decimals of the floats of type `dtype` next to the values."""
    numbers = ", ".join(repr(float(dtype(float(value)))) for value in values)
    numbers = f"({numbers})" if len(values) > 1 else numbers
    return textwrap.fill(
        f"{name}={numbers},", 120, initial_indent="    ", subsequent_indent=" " * 8, break_on_hyphens=False
    )


def main() -> None:
    for index, (title, dtype, digits, exponent) in enumerate(
        (("DOUBLE", np.float64, 53, 11), ("SINGLE", np.float32, 24, 8))
    ):
        print(title)
        print(table("two_over_pi", [2 / mp.pi], dtype))
        print(table("half_pi", parts(mp.pi / 2, [digits] * 3), dtype))
        print(table("log2_e", [1 / mp.ln(2)], dtype))
        # The first part leaves room for the exponent of a float, so that their product is exact.
        print(table("ln2", parts(mp.ln(2), [digits - exponent, digits]), dtype))
        for name, fit in FITS.items():
            coefficients, worst = remez(fit, fit.sizes[index])
            print(f"    # relative error 2^{float(mp.log(worst, 2)):.1f}")
            print(table(name, coefficients, dtype))


if __name__ == "__main__":
    main()
