"""Sparsity: where large matrices have known zeros, and orders of elimination that preserve them.

A pattern is an array of booleans: whether an entry may differ from zero. Loops side by side have few joints in common,
so that most entries of their matrices are zero, and remain zero if what they have in common is eliminated last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coupler.grouping import grouped

_GAP = 8  # zeros: shorter gaps between other entries are computed with them

Reflection = tuple[int, tuple[int, ...]]  # a column, and the rows whose entries in it are reflected onto the first


def runs(full: np.ndarray) -> list[tuple[int, int]]:
    """Start and length of each run of entries in the pattern of a row; zeros in short gaps belong to a run."""
    places = np.flatnonzero(full)
    if not places.size:
        return []
    parts = np.split(places, np.flatnonzero(np.diff(places) > _GAP) + 1)
    return [(int(part[0]), int(part[-1] - part[0] + 1)) for part in parts]


def least_fill(full: np.ndarray) -> list[int]:
    """An order of elimination for a symmetric matrix, by minimum degree: the fewest neighbours first."""
    graph = (full | full.T) & ~np.eye(len(full), dtype=bool)
    is_left, order = np.ones(len(full), bool), list[int]()
    for _ in range(len(full)):
        remaining = np.flatnonzero(is_left)
        i = int(remaining[np.argmin(graph[np.ix_(remaining, remaining)].sum(axis=1))])
        is_left[i] = False
        others = np.flatnonzero(graph[i] & is_left)
        graph[np.ix_(others, others)] = True
        graph[others, others] = False
        order.append(i)
    return order


@dataclass(frozen=True, eq=False)
class Factors:
    """The sparsity of the factors L D Lᵀ of a symmetric matrix with known zeros.

    Attributes:
        order: the order in which its unknowns are eliminated.
        full: the pattern of D Lᵀ in that order, n × n.
    """

    order: list[int]
    full: np.ndarray

    @classmethod
    def of(cls, full: np.ndarray) -> Factors:
        """The factors of a matrix, for its pattern or for that of its upper triangle."""
        order = least_fill(full)
        upper = np.triu((full | full.T)[np.ix_(order, order)])
        for i in range(len(order)):
            for k in np.flatnonzero(upper[:i, i]):
                upper[i, i:] |= upper[k, i:]
        return cls(order, upper)

    @property
    def size(self) -> int:
        """The number of entries of D and L that may differ from zero."""
        return int(self.full.sum())

    @property
    def products(self) -> int:
        """The number of products that factorising takes, without divisions."""
        later = self.full.sum(axis=1) - 1
        return int((later * (later + 1) // 2 + later).sum())


def plan_of_reflections(full: np.ndarray) -> tuple[list[Reflection], list[tuple[int, int]], list[int]]:
    """Householder reflections that make a matrix triangular, for its pattern, p × m with p ≥ m.

    The column with the fewest entries comes first. Rows of a kind, with the same zeros now and initially, are reflected
    among themselves, which creates no entries; only one of them takes part in the reflection across kinds. But rows
    that get no further entries from that take part in it at once.

    Returns:
        The reflections; the columns in the order of elimination, each with its pivot row; and the remaining rows.
    """
    at_first, full = full, full.copy()
    remaining, columns = list(range(full.shape[0])), list(range(full.shape[1]))
    reflections, done = list[Reflection](), list[tuple[int, int]]()
    while columns:
        j = columns[int(np.argmin(full[np.ix_(remaining, columns)].sum(axis=0)))]
        with_entry = [i for i in remaining if full[i, j]]
        kinds = grouped(with_entry, lambda i: at_first[i].tobytes() + full[i, columns].tobytes())
        all_now, all_first = full[with_entry].any(axis=0), at_first[with_entry].any(axis=0)
        among, last = list[list[int]](), list[int]()
        for rows in kinds.values():
            fill = (all_now & ~full[rows[0]])[columns].any() or (all_first & ~at_first[rows[0]]).any()
            among += [rows] if fill else []
            last += rows[:1] if fill else rows
        # The first, with the least in common with others, becomes the pivot.
        last = sorted(last, key=lambda i: (full[i, columns].sum(), at_first[i].sum()))
        last = last or remaining[:1]  # structurally singular: the result will not be finite
        for rows in (*among, last):
            if len(rows) > 1:
                reflections.append((j, tuple(rows)))
                full[rows] = full[rows].any(axis=0)
                full[rows[1:], j] = False
        done.append((j, last[0]))
        remaining.remove(last[0])
        columns.remove(j)
    return reflections, done, remaining


def reflected(full: np.ndarray, reflections: Sequence[Reflection]) -> np.ndarray:
    """The pattern after reflections."""
    full = full.copy()
    for j, rows in reflections:
        touched = list(rows)
        full[touched] = full[touched].any(axis=0)
        full[touched[1:], j] = False
    return full


def inverse_pattern(triangular: np.ndarray) -> np.ndarray:
    """The pattern of R⁻ᵀ for that of an upper triangular R."""
    result = np.eye(len(triangular), dtype=bool)
    for i in range(len(triangular)):
        result[i + 1 :][triangular[i, i + 1 :]] |= result[i]
    return result


@dataclass(frozen=True, eq=False)
class NullSpace:
    """The plan by which `coupler.linear` finds the null space of a matrix K with known zeros, m × n: reflections of Kᵀ.

    Attributes:
        full: the pattern of K.
        reflections: see `plan_of_reflections`.
        columns, pivots: the columns of Kᵀ in the order of elimination, and the pivot row of each.
        left: the remaining rows, each of which gives a column of N.
        triangular: the pattern of R, m × m, in the order of elimination.
        inverse: the pattern of R⁻ᵀ.
        basis: the pattern of N, n × (n − m).
    """

    full: np.ndarray
    reflections: list[Reflection]
    columns: list[int]
    pivots: list[int]
    left: list[int]
    triangular: np.ndarray
    inverse: np.ndarray
    basis: np.ndarray

    @classmethod
    def of(cls, full: np.ndarray) -> NullSpace:
        """The plan for a matrix K with this pattern."""
        m, n = full.shape
        reflections, done, left = plan_of_reflections(full.T)
        columns, pivots = [j for j, _ in done], [i for _, i in done]
        triangular = reflected(full.T, reflections)[np.ix_(pivots, columns)]
        basis = np.zeros((n, n - m), bool)
        basis[left, np.arange(n - m)] = True
        for _, rows in reversed(reflections):
            basis[list(rows)] = basis[list(rows)].any(axis=0)
        return cls(full, reflections, columns, pivots, left, triangular, inverse_pattern(triangular), basis)

    @property
    def size(self) -> int:
        """The number of numbers that make up K⁺: normals of reflections, their scales, and R⁻ᵀ."""
        return sum(len(rows) + 1 for _, rows in self.reflections) + int(self.inverse.sum())
