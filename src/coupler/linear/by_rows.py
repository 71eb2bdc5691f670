"""Householder's reflections of long matrices, as operations on rows; see reflections.py.

A reflection takes the entries of a column, in some rows, onto the first of them. Which ones follow each other is
planned beforehand, so that known zeros last: see `coupler.zeros.plan_of_reflections`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.linear.reflected import Reflected, ReflectionWriter
from coupler.rows import Rows, pattern
from coupler.zeros import NullSpace, plan_of_reflections, runs

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
    M, writer, reciprocal = rows.take(n * width), ReflectionWriter(rows, width), rows.take(1)
    rows.put_matrix(M, np.concatenate([A[:, columns], B], axis=1), width)
    for j, reflected in reflections:
        k, at = place[j], [M + i * width for i in reflected]
        full[list(reflected)] = full[list(reflected)].any(axis=0)
        full[list(reflected[1:]), k] = False
        normal = [x + k for x in at]
        scale, length = writer.begin(normal)
        writer.reflect(at, normal, scale, [(k + 1 + first, size) for first, size in runs(full[reflected[0], k + 1 :])])
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


def null_space_by_rows(K: Array, plan: NullSpace) -> tuple[Array, Reflected]:
    """N as `coupler.linear.null_space` returns it, and K⁺ as reflections.

    Reflections of Kᵀ leave R. Then the same ones, the last one first, take unit vectors to N.

    Args:
        K: m × n, with m ≤ n.
        plan: how to find its null space.
    """
    m, n = K.shape
    rows, place = Rows(), {j: k for k, j in enumerate(plan.columns)}
    M, Z, writer = rows.take(n * n), rows.take(m * m), ReflectionWriter(rows, n)  # R and N side by side
    rows.put_matrix(M, K.T[:, plan.columns], n)
    for a, i in enumerate(plan.left):
        rows.put(M + i * n + m + a, 1.0)
    for k in range(m):
        rows.put(Z + k * m + k, 1.0)
    entries = {(i, k): M + i * n + k for i in range(n) for k in range(m)}  # normals stay where they were
    full, made = plan.full.T[:, plan.columns], list[_Made]()
    for j, reflected in plan.reflections:
        k, chosen = place[j], list(reflected)
        normal = [entries[i, k] for i in reflected]
        full[chosen] = full[chosen].any(axis=0)
        full[chosen[1:], k] = False
        scale, entries[reflected[0], k] = writer.begin(normal)
        parts = [(k + 1 + first, size) for first, size in runs(full[reflected[0], k + 1 :])]
        writer.reflect([M + i * n for i in reflected], normal, scale, parts)
        made.append((chosen, normal, scale))
    diagonal = [entries[i, k] for k, i in enumerate(plan.pivots)]
    _invert(rows, Z, [M + i * n for i in plan.pivots], diagonal, plan.triangular)
    reached = np.zeros((n, n - m), bool)
    reached[plan.left, np.arange(n - m)] = True
    for reflected, normal, scale in reversed(made):
        reached[reflected] = reached[reflected].any(axis=0)
        writer.reflect([M + i * n + m for i in reflected], normal, scale, runs(reached[reflected[0]]))
    memory = rows.run()
    N = np.where(plan.basis, memory.matrix(M + m, n, n - m, n), 0.0)
    normals = [[memory.number(x) for x in normal] for _, normal, _ in made]
    inverse = np.where(plan.inverse, memory.matrix(Z, m, m, m), 0.0)
    return N, Reflected(plan, normals, [memory.number(scale) for _, _, scale in made], inverse)


def _invert(rows: Rows, Z: int, R: Sequence[int], diagonal: Sequence[int], full: np.ndarray) -> None:
    """Computes R⁻ᵀ in Z, which is 1 at first: once a row of it is known, all others get their part of it.

    Args:
        rows: records the operations.
        Z: the place of Z in memory.
        R: the places of R's rows.
        diagonal: the places of R's diagonal.
        full: the pattern of R.
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
