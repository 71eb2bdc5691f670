"""What can close a loop: the facts that a joint, a rod and a user's own kind of loop have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from coupler.model.identity import attributes_of, comparable
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes


class LoopKind(ABC):
    """Something that holds two frames together and so closes a loop: a joint, a `Rod`, `Held`, or a user's own class.

    Attributes:
        connects: whether it ties two points to each other, so that pictures draw a line between them.
        directed: whether the orientations of its frames on their bodies matter.
    """

    connects: ClassVar[bool] = True
    directed: ClassVar[bool] = True
    _passive: ClassVar[frozenset[str]] = frozenset()  # attributes that no trace reads
    _lengths: ClassVar[tuple[str, ...]] = ()  # attributes that its residual reads from tables

    @property
    def kind(self) -> str:
        """Its name: "revolute", "free", "rod", ..."""
        return type(self).__name__.lower()

    @abstractmethod
    def residual(self, X: Transform) -> Array:
        """φ(X), which is zero where the transform X between the two frames is one that this kind allows.

        It has exactly one row for each freedom that is taken away, in m or, for small angles, rad. With X = (E, r), r
        is the successor's origin and Eᵀ a the successor's direction a, both in the predecessor's frame.
        """

    def aligned(self) -> tuple[np.ndarray, Self]:
        """A rotation A into the axes of its standard form, and the standard form.

        A vector u has coordinates A u in those axes. Kinds that differ only in direction have the same standard form,
        so that one trace serves them all.
        """
        return np.eye(3), self

    def lengths(self) -> dict[str, Any]:
        """By name, the numbers that its residual reads and in which two kinds of equal form may differ."""
        return {name: getattr(self, name) for name in self._lengths}

    def with_lengths(self, lengths: Any) -> Self:
        """A copy of this kind with other lengths, numbers or nodes, which are attributes of the argument."""
        if not self._lengths:
            return self
        other = copy(self)
        for name in self._lengths:
            object.__setattr__(other, name, getattr(lengths, name))
        return other

    def form(self) -> Hashable:
        """A key for everything that its trace depends on: kinds of equal form share one trace.

        That is its class and all attributes except those that are read from tables. Arrays and numbers are compared by
        value, other objects by identity.
        """
        given, in_tables = attributes_of(self).items(), self._passive.union(self._lengths)
        in_trace = tuple([(name, comparable(value)) for name, value in given if name not in in_tables])
        return vars(type(self)).get("_traced_as", type(self)), in_trace
