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
    """What can hold two frames together and so close a loop: a joint, a `Rod`, `Held`, or a kind of the user's own.

    Attributes:
        connects: whether it ties two points to each other, so that a picture draws a line between them.
        directed: whether it matters how its frames are turned on their bodies.
    """

    connects: ClassVar[bool] = True
    directed: ClassVar[bool] = True
    _passive: ClassVar[frozenset[str]] = frozenset()  # attributes that no trace reads: they are numbers in tables
    _lengths: ClassVar[tuple[str, ...]] = ()  # attributes that its residual reads, and that are numbers in tables

    @property
    def kind(self) -> str:
        """What it is called: "revolute", "free", "rod", ..."""
        return type(self).__name__.lower()

    @abstractmethod
    def residual(self, X: Transform) -> Array:
        """What must be zero of the transform X between two frames for this kind to hold them.

        There is one row for each freedom that it takes away, in m or, for small angles, rad, and no more. With
        X = (E, r), r is the successor's origin and Eᵀ a the successor's direction a, both seen from the predecessor.
        """

    def aligned(self) -> tuple[np.ndarray, Self]:
        """The rotation A into axes in which it has its standard form, and what it is in those axes.

        A vector u has coordinates A u there. Kinds that differ only in direction have one standard form, so that one
        trace serves them all.
        """
        return np.eye(3), self

    def lengths(self) -> dict[str, Any]:
        """Numbers that its residual reads and in which two of one form may differ, by name."""
        return {name: getattr(self, name) for name in self._lengths}

    def with_lengths(self, lengths: Any) -> Self:
        """The same with other numbers, or nodes, which are attributes of `lengths`."""
        if not self._lengths:
            return self
        other = copy(self)
        for name in self._lengths:
            object.__setattr__(other, name, getattr(lengths, name))
        return other

    def form(self) -> Hashable:
        """What distinguishes its trace: two kinds of equal form share one.

        It is the class and all attributes but passive properties, which are numbers in tables: arrays and numbers by
        value, and what has no value that could be compared by identity.
        """
        given, in_tables = attributes_of(self).items(), self._passive.union(self._lengths)
        own = tuple([(name, comparable(value)) for name, value in given if name not in in_tables])
        return vars(type(self)).get("_traced_as", type(self)), own
