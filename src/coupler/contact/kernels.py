"""Steps of programs that move numbers from vector to vector, some of them at a time: so their kernels stay short."""

from __future__ import annotations

import numpy as np

from coupler.graph import Builder, Vector, View, fields

_AT_ONCE = 16


def copy(builder: Builder, source: Vector, target: Vector, count: int, first: int = 0, to: int = 0) -> None:
    """Writes the steps that copy so many numbers, from the first one of a vector on, to a place of another one."""
    for starts, size in in_parts(count):
        window = fields(source=source.at(first + starts, size), target=target.at(to + starts, size))
        builder.loop(assign, row=window)


def clear(builder: Builder, target: Vector) -> None:
    """Writes the steps that make all numbers of a vector zero."""
    for starts, size in in_parts(target.size):
        builder.loop(_clear, row=fields(target=target.at(starts, size)))


def in_parts(count: int) -> list[tuple[np.ndarray, int]]:
    """Where parts of one size start, and that size: as many as there are, and one with the rest."""
    whole = count - count % _AT_ONCE
    parts = [(np.arange(0, whole, _AT_ONCE), _AT_ONCE), (np.array([whole]), count - whole)]
    return [(starts, size) for starts, size in parts if len(starts) and size]


def assign(row: View) -> None:
    """A kernel: target becomes source."""
    row.target = row.source


def _clear(row: View) -> None:
    row.target = np.zeros(np.shape(row.target))
