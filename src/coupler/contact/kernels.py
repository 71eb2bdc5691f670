"""Steps of programs that move numbers between vectors, in parts of limited size, so that their kernels stay short."""

from __future__ import annotations

import numpy as np

from coupler.graph import Builder, Vector, View, fields

_AT_ONCE = 16


def copy(builder: Builder, source: Vector, target: Vector, count: int, first: int = 0, to: int = 0) -> None:
    """Writes the steps that copy `count` numbers of a vector from entry `first` on, to another from entry `to` on."""
    for starts, size in in_parts(count):
        window = fields(source=source.at(first + starts, size), target=target.at(to + starts, size))
        builder.loop(assign, row=window)


def clear(builder: Builder, target: Vector) -> None:
    """Writes the steps that set all numbers of a vector to zero."""
    for starts, size in in_parts(target.size):
        builder.loop(_clear, row=fields(target=target.at(starts, size)))


def in_parts(count: int) -> list[tuple[np.ndarray, int]]:
    """A vector of `count` numbers cut into parts of equal size and a rest: starts and size of both kinds."""
    whole = count - count % _AT_ONCE
    parts = [(np.arange(0, whole, _AT_ONCE), _AT_ONCE), (np.array([whole]), count - whole)]
    return [(starts, size) for starts, size in parts if len(starts) and size]


def assign(row: View) -> None:
    """Copies `source` to `target`; a kernel."""
    row.target = row.source


def _clear(row: View) -> None:
    row.target = np.zeros(np.shape(row.target))
