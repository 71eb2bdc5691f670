"""Explicit methods of several stages, and the progress of a program through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.graph import Builder, View, Window, fields


@dataclass(frozen=True)
class Scheme:
    """An explicit method in which each stage starts from the one before.

    Attributes:
        reaches: for each stage after the first, how far ahead it is, as a fraction of the step.
        weights: the weights of all stages in the result.
    """

    reaches: tuple[float, ...]
    weights: tuple[float, ...]

    def growth(self, z: np.ndarray) -> np.ndarray:
        """|R(z)|: the factor by which a step of length h multiplies a motion exp(λ t), with z = h λ."""
        rate = np.ones_like(z)
        total = 1.0 + self.weights[0] * z * rate
        for reach, weight in zip(self.reaches, self.weights[1:], strict=True):
            rate = 1.0 + reach * z * rate
            total = total + weight * z * rate
        return np.abs(total)


SCHEMES = {  # by the names of integrators
    "rk4": Scheme(reaches=(0.5, 0.5, 1.0), weights=(1 / 6, 1 / 3, 1 / 3, 1 / 6)),
    "trapezoid": Scheme(reaches=(1.0,), weights=(0.5, 0.5)),
}


class Progress:
    """The stage of a step that a program is in."""

    def __init__(self, builder: Builder, scheme: Scheme, h: float) -> None:
        """Makes the buffer, in a program for steps of length h, s."""
        self._builder, self._scheme, self._h = builder, scheme, h
        self._numbers = builder.scratch("stage", 3)

    def at(self, rows: int = 1) -> Window:
        """`done`, how many stages after the first are complete; `ahead`, how far ahead the next is, s; and `weight`."""
        return fields(**{name: self._numbers.at([i] * rows) for i, name in enumerate(("done", "ahead", "weight"))})

    def begin(self) -> None:
        """Writes the step that completes the first stage."""
        self._builder.loop(_begin(self._scheme), progress=self.at())

    @contextmanager
    def each_stage(self) -> Iterator[None]:
        """Repeats the steps written inside it for each stage after the first."""
        stages = len(self._scheme.reaches)
        with self._builder.repeat(until=_after(stages), at_most=stages, progress=self.at()):
            self._builder.loop(_next(self._scheme, self._h), progress=self.at())
            yield

    def end(self) -> None:
        """Writes the step that moves on to the end of the whole step."""
        self._builder.loop(_end(self._h), progress=self.at())


def _chosen(values: Sequence[float], number: Any) -> Any:
    """The value with this number."""
    chosen = np.array(values[0])
    for i, value in enumerate(values[1:], 1):
        chosen = np.where(number > i - 0.5, value, chosen)
    return chosen


def _begin(scheme: Scheme) -> Callable[[View], None]:
    def begin(progress: View) -> None:
        progress.done, progress.ahead, progress.weight = np.array(0.0), np.array(0.0), np.array(scheme.weights[0])

    return begin


def _next(scheme: Scheme, h: float) -> Callable[[View], None]:
    def next_stage(progress: View) -> None:
        progress.ahead = _chosen([h * part for part in scheme.reaches], progress.done)
        progress.weight = _chosen(scheme.weights[1:], progress.done)
        progress.done += 1.0

    return next_stage


def _after(stages: int) -> Callable[..., Any]:
    return lambda progress: progress.done > stages - 0.5


def _end(h: float) -> Callable[[View], None]:
    def end(progress: View) -> None:
        progress.ahead = np.array(h)

    return end
