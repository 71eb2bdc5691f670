"""Householder's reflections of long matrices, as operations on rows; see reflections.py.

A reflection takes the entries of a column, in some rows, onto the first of them. Which ones follow each other is
planned beforehand, so that known zeros last: see `coupler.zeros.plan_of_reflections`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.rows import Rows, pattern
from coupler.zeros import plan_of_reflections, runs

__all__ = ["null_space_by_rows", "solve_by_rows"]

Array = Any  # an ndarray of floats, or of nodes
_Made = tuple[list[int], list[int], int]  # rows that were reflected, and the places of the normal and its scale


def solve_by_rows(A: Array, B: Array) -> Array:
    """A⁻¹ B, n × n and n × c: R X = Qᵀ B, where Q R = A with its columns in another order."""
    n, c = B.shape
    reflections, done, _ = plan_of_reflections(pattern(A))
    columns, pivots = [j for j, _ in done], [i for _, i in done]
    place = {j: k for k, j in enumerate(columns)}
    full = np.concatenate([pattern(A), pattern(B)], axis=1)[:, [*columns, *range(n, n + c)]]
    rows, width = Rows(), n + c
    M, writer, reciprocal = rows.take(n * width), _Reflections(rows, width), rows.take(1)
    rows.put_matrix(M, np.concatenate([A[:, columns], B], axis=1), width)
    for j, own in reflections:
        k, at = place[j], [M + i * width for i in own]
        full[list(own)] = full[list(own)].any(axis=0)
        full[list(own[1:]), k] = False
        normal = [x + k for x in at]
        scale, length = writer.begin(normal)
        writer.reflect(at, normal, scale, [(k + 1 + first, size) for first, size in runs(full[own[0], k + 1 :])])
        rows.copy(at[0] + k, length, 1)
    for k in reversed(range(n)):
        at = M + pivots[k] * width
        for other in np.flatnonzero(full[pivots[k], k + 1 : n]) + k + 1:
            for first, size in runs(full[pivots[other], n:]):
                rows.subtract(at + n + first, at + int(other), M + pivots[other] * width + n + first, size)
            full[pivots[k], n:] |= full[pivots[other], n:]
        rows.invert(reciprocal, at + k)
        rows.scale(at + n, reciprocal, at + n, c)
    memory, X = rows.run(), np.empty((n, c), dtype=object)
    for k, j in enumerate(columns):
        X[j] = np.where(full[pivots[k], n:], memory.matrix(M + pivots[k] * width + n, 1, c, c)[0], 0.0)
    return np.array(X.tolist())


def null_space_by_rows(K: Array, full: np.ndarray) -> tuple[Array, Array]:
    """N and K⁺ as `coupler.linear.null_space` has them.

    Reflections of Kᵀ leave R. Then the same ones, the last one first, take R⁻ᵀ to K⁺ and unit vectors to N. These are
    fewer numbers than all of Q.

    Args:
        K: m × n, with m ≤ n.
        full: where it may be anything but zero.
    """
    m, n = K.shape
    reflections, done, left = plan_of_reflections(full.T)
    columns, pivots = [j for j, _ in done], [i for _, i in done]
    rows = Rows()
    R, Z, E, writer = rows.take(n * m), rows.take(m * m), rows.take(n * n), _Reflections(rows, n)
    rows.put_matrix(R, K.T[:, columns], m)
    for k in range(m):
        rows.put(Z + k * m + k, 1.0)
    for a, i in enumerate(left):
        rows.put(E + i * n + m + a, 1.0)
    place, made = {j: k for k, j in enumerate(columns)}, list[_Made]()
    entries = {(i, k): R + i * m + k for i in range(n) for k in range(m)}  # normals stay where they were
    full = full.T[:, columns]
    for j, own in reflections:
        k, chosen = place[j], list(own)
        normal = [entries[i, k] for i in own]
        full[chosen] = full[chosen].any(axis=0)
        full[chosen[1:], k] = False
        scale, entries[own[0], k] = writer.begin(normal)
        parts = [(k + 1 + first, size) for first, size in runs(full[own[0], k + 1 :])]
        writer.reflect([R + i * m for i in own], normal, scale, parts)
        made.append((chosen, normal, scale))
    diagonal = [entries[i, k] for k, i in enumerate(pivots)]
    inverse = _inverted(rows, Z, [R + i * m for i in pivots], diagonal, full[pivots])
    reached = np.zeros((n, n), bool)
    reached[left, m + np.arange(n - m)] = True
    for k, i in enumerate(pivots):
        reached[i, :m] = inverse[k]
        rows.copy(E + i * n, Z + k * m, k + 1)
    for own, normal, scale in reversed(made):
        reached[own] = reached[own].any(axis=0)
        writer.reflect([E + i * n for i in own], normal, scale, runs(reached[own[0]]))
    result = np.where(reached, rows.run().matrix(E, n, n, n), 0.0)
    return result[:, m:], result[:, np.argsort(columns)]


def _inverted(rows: Rows, Z: int, R: Sequence[int], diagonal: Sequence[int], full: np.ndarray) -> np.ndarray:
    """R⁻ᵀ into Z, which is 1 at first: as soon as a row of it is known, all others get their part of it.

    Args:
        rows: what it is written with.
        Z: where that is.
        R: where rows of R are.
        diagonal: where its diagonal is.
        full: its pattern.

    Returns:
        The pattern of R⁻ᵀ.
    """
    m, reciprocal = len(R), rows.take(1)
    inverse = np.eye(m, dtype=bool)
    for i, at in enumerate(R):
        rows.invert(reciprocal, diagonal[i])
        rows.scale(Z + i * m, reciprocal, Z + i * m, i + 1)
        further = (np.flatnonzero(full[i, i + 1 :]) + i + 1).tolist()
        for first, width in runs(inverse[i]):
            for k in further:
                rows.subtract(Z + k * m + first, at + k, Z + i * m + first, width)
        inverse[further] |= inverse[i]
    return inverse


class _Reflections:
    """Writes reflections down."""

    def __init__(self, rows: Rows, width: int) -> None:
        self._rows, self._shift, self._square = rows, rows.take(width), rows.take(1)

    def begin(self, entries: Sequence[int]) -> tuple[int, int]:
        """Makes a normal of entries, in their places; returns those of its scale and of what the first becomes."""
        rows = self._rows
        scale, length = rows.take(1), rows.take(1)
        rows.clear(self._square, 1)
        for x in entries:
            rows.add(self._square, x, x, 1)
        rows.reflect(entries[0], self._square, scale, length)
        return scale, length

    def reflect(self, at: Sequence[int], normal: Sequence[int], scale: int, parts: Sequence[tuple[int, int]]) -> None:
        """Reflects rows, in some parts of them."""
        rows, shift = self._rows, self._shift
        for first, size in parts:
            rows.clear(shift + first, size)
            for x, factor in zip(at, normal, strict=True):
                rows.add(shift + first, factor, x + first, size)
            rows.scale(shift + first, scale, shift + first, size)
            for x, factor in zip(at, normal, strict=True):
                rows.subtract(x + first, factor, shift + first, size)
