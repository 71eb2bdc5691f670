"""How much the tests try: `make test` takes some of the samples, `make test-long` the rest of them and more.

Sweeps mark what the short run leaves out as `long`. Tests that draw at random are marked as `sampled`, and draw more in
the long run, which sets COUPLER_TEST_EFFORT=long.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings

LONG = os.environ.get("COUPLER_TEST_EFFORT") == "long"


def sweep(values: Iterable[Any], short: Collection[Any]) -> list[Any]:
    """Parameters of a test, of which the short run takes those that are listed in `short`; tuples are several."""

    def marked(value: Any) -> Any:
        return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long)

    return [value if value in short else marked(value) for value in values]


def every(n: int, values: Iterable[Any], first: int = 0) -> list[Any]:
    """Parameters of a test, of which the short run takes each n-th, from the `first` on."""
    values = list(values)
    return sweep(values, values[first::n])


def samples(short: int, long: int) -> int:
    """How many samples to draw in this run. The test is to be marked as `sampled`."""
    return long if LONG else short


def examples(short: int, long: int, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How many examples Hypothesis draws for a test, the same ones in every run.

    Set derandomize to False to search for new ones.
    """
    chosen = settings(max_examples=samples(short, long), deadline=None, derandomize=True, **options)
    return lambda test: pytest.mark.sampled(chosen(test))
