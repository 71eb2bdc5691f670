"""Where known zeros of large matrices are, and orders of elimination in which they last.

A pattern is an array of truth values: whether a number may be anything but zero. Loops side by side have few joints in
common, so that most of their matrices are zeros, and stay so if what they have in common is eliminated last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["Reflection", "inverse_pattern", "least_fill", "null_space_patterns", "plan_of_reflections", "runs"]

_GAP = 8  # zeros, fewer of which are computed with what is around them

Reflection = tuple[int, tuple[int, ...]]  # a column, and rows whose entries in it are taken onto the first of them


def runs(full: np.ndarray) -> list[tuple[int, int]]:
    """First place and length of each run of a row's pattern; zeros in short gaps belong to it."""
    places = np.flatnonzero(full)
    if not places.size:
        return []
    parts = np.split(places, np.flatnonzero(np.diff(places) > _GAP) + 1)
    return [(int(part[0]), int(part[-1] - part[0] + 1)) for part in parts]


def least_fill(full: np.ndarray) -> list[int]:
    """An order of elimination for a symmetric matrix: next is always the unknown that the fewest others depend on."""
    graph = (full | full.T) & ~np.eye(len(full), dtype=bool)
    left, order = np.ones(len(full), bool), list[int]()
    for _ in range(len(full)):
        waiting = np.flatnonzero(left)
        i = int(waiting[np.argmin(graph[np.ix_(waiting, waiting)].sum(axis=1))])
        left[i] = False
        others = np.flatnonzero(graph[i] & left)
        graph[np.ix_(others, others)] = True
        graph[others, others] = False
        order.append(i)
    return order


def plan_of_reflections(full: np.ndarray) -> tuple[list[Reflection], list[tuple[int, int]], list[int]]:
    """Householder's reflections that make a matrix triangular, for its pattern, p × m with p ≥ m.

    The column with the fewest entries comes first. Rows with the same zeros, now and at first, are reflected among
    themselves, which fills nothing; only one row of each kind is left for the reflection across kinds.

    Returns:
        The reflections; columns in the order in which they are done with, each with the row that it leaves; and the
        rows that are left in the end.
    """
    at_first, full = full, full.copy()
    left, waiting = list(range(full.shape[0])), list(range(full.shape[1]))
    reflections, done = list[Reflection](), list[tuple[int, int]]()
    while waiting:
        j = waiting[int(np.argmin(full[np.ix_(left, waiting)].sum(axis=0)))]
        kinds: dict[bytes, list[int]] = {}
        for i in left:
            if full[i, j]:
                kinds.setdefault(at_first[i].tobytes() + full[i, waiting].tobytes(), []).append(i)
        own = [rows[0] for rows in kinds.values()]
        own.sort(key=lambda i: (full[i, waiting].sum(), at_first[i].sum()))  # what has least in common with others goes
        own = own or left[:1]  # singular wherever one looks: the result shows it
        for rows in (*kinds.values(), own):
            if len(rows) > 1:
                reflections.append((j, tuple(rows)))
                full[rows] = full[rows].any(axis=0)
                full[rows[1:], j] = False
        done.append((j, own[0]))
        left.remove(own[0])
        waiting.remove(j)
    return reflections, done, left


def reflected(full: np.ndarray, reflections: Sequence[Reflection]) -> np.ndarray:
    """The pattern after reflections."""
    full = full.copy()
    for j, rows in reflections:
        own = list(rows)
        full[own] = full[own].any(axis=0)
        full[own[1:], j] = False
    return full


def inverse_pattern(triangular: np.ndarray) -> np.ndarray:
    """The pattern of R⁻ᵀ for that of an upper triangular R."""
    result = np.eye(len(triangular), dtype=bool)
    for i in range(len(triangular)):
        result[i + 1 :][triangular[i, i + 1 :]] |= result[i]
    return result


def null_space_patterns(full: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The patterns of N and K⁺ as `coupler.linear.null_space` finds them, for that of K, m × n."""
    m, n = full.shape
    reflections, done, left = plan_of_reflections(full.T)
    columns, pivots = [j for j, _ in done], [i for _, i in done]
    result = np.zeros((n, n), bool)
    result[pivots, :m] = inverse_pattern(reflected(full.T, reflections)[np.ix_(pivots, columns)])
    result[left, m + np.arange(n - m)] = True
    for _, own in reversed(reflections):
        result[list(own)] = result[list(own)].any(axis=0)
    return result[:, m:], result[:, np.argsort(columns)]
