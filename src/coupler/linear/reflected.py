"""The pseudo-inverse of a long matrix, kept as the reflections that its null space was found with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from coupler.rows import Rows, is_zero
from coupler.zeros import NullSpace

Array = Any  # an ndarray of floats, or of nodes


class Reflected:
    """K⁺ = Q₁ R⁻ᵀ as the reflections that make up Q, and R⁻ᵀ: fewer numbers than K⁺ has, and fewer products.

    Attributes:
        inverse: R⁻ᵀ, in the order of elimination.
    """

    def __init__(
        self, plan: NullSpace, normals: Sequence[Sequence[Any]], scales: Sequence[Any], inverse: Array
    ) -> None:
        """Args: how it was found, the normal of each reflection and its scale 2 / |normal|², and R⁻ᵀ."""
        self._plan, self._normals, self._scales, self.inverse = plan, normals, scales, inverse

    @classmethod
    def stored(cls, numbers: Array, plan: NullSpace) -> Reflected:
        """The pseudo-inverse that has these `numbers`."""
        given, m = iter(numbers), len(plan.pivots)
        inverse = np.zeros((m, m), dtype=object)
        inverse[plan.inverse] = list(islice(given, int(plan.inverse.sum())))
        scales = list(islice(given, len(plan.reflections)))
        return cls(plan, [list(islice(given, len(reflected))) for _, reflected in plan.reflections], scales, inverse)

    @property
    def numbers(self) -> Array:
        """R⁻ᵀ where it may differ from zero, scales, and normals: `plan.size` numbers."""
        normals = (x for normal in self._normals for x in normal)
        return np.array([*self.inverse[self._plan.inverse], *self._scales, *normals])

    def __matmul__(self, b: Array) -> Array:
        """K⁺ b, for a vector."""
        return self.turned(self.inverse @ b[self._plan.columns])

    def matrix(self) -> Array:
        """K⁺, n × m."""
        n, m = len(self._plan.basis), len(self._plan.pivots)
        z = np.zeros((n, m), dtype=object)
        z[np.ix_(self._plan.pivots, self._plan.columns)] = self.inverse
        return self._reflected(z, reversed(range(len(self._scales))))

    def seen(self, K: Array) -> Array:
        """K Q₁, for another K."""
        return self._reflected(K.T, range(len(self._scales)))[self._plan.pivots].T

    def turned(self, z: Array) -> Array:
        """Q₁ z."""
        x: list[Any] = [0.0] * len(self._plan.basis)
        for i, value in zip(self._plan.pivots, z, strict=True):
            x[i] = value
        for (_, reflected), normal, scale in reversed(
            [*zip(self._plan.reflections, self._normals, self._scales, strict=True)]
        ):
            shift = scale * sum((a * x[i] for a, i in zip(normal, reflected, strict=True) if not is_zero(x[i])), 0.0)
            for a, i in zip(normal, reflected, strict=True):
                x[i] = x[i] - a * shift
        return np.array(x)

    def _reflected(self, A: Array, which: Iterable[int]) -> Array:
        """The rows of a matrix after reflections, in their order."""
        (n, c), rows = A.shape, Rows()
        at, writer = rows.take(n * c), ReflectionWriter(rows, c)
        normals, scales = [rows.take(len(entries)) for entries in self._normals], rows.take(len(self._scales))
        rows.put_matrix(at, A, c)
        rows.put_matrix(scales, [self._scales], 0)
        for first, normal in zip(normals, self._normals, strict=True):
            rows.put_matrix(first, [normal], 0)
        for k in which:
            reflected = self._plan.reflections[k][1]
            normal = range(normals[k], normals[k] + len(reflected))
            writer.reflect([at + i * c for i in reflected], normal, scales + k, [(0, c)])
        return rows.run().matrix(at, n, c, c)


class ReflectionWriter:
    """Records reflections of rows as operations."""

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
