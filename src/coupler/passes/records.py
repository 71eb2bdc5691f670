"""Typed records: what an algorithm keeps for a body, a cluster or a pair of bodies from one pass to the next.

An algorithm declares a record as a class, a line for each field:

    class BodyMemory(Record):
        v = entry(6)                     # kept from the pass that writes it
        IA = collected(symmetric(6))     # the sum of what the clusters that a body carries leave for it

and reads and writes `body.memory.v` in its passes. Where a field lies is the sweep's business. A field whose size
depends on the shape of its cluster is given by a function of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coupler.graph import Field

if TYPE_CHECKING:
    from coupler.passes.shape import Shape

Array = Any  # an ndarray of floats, or of nodes of a trace
Size = int | tuple[int, ...] | Field
Lifetime = Literal["kept", "collected", "afterwards", "provided"]


class Record:
    """Fields that are read and written as attributes while a pass runs; see the module's text."""

    def __init__(self, view: Any) -> None:
        """Args: the parameter of a kernel that has these fields."""
        self.view = view

    @classmethod
    def layout(cls, lifetime: Lifetime, shape: Shape | None = None) -> dict[str, Size]:
        """Sizes of all fields of one lifetime, by name, in the order of their declaration."""
        entries: dict[str, Size] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Entry) and value.lifetime == lifetime:
                    size = value.size(shape) if callable(value.size) else value.size
                    entries |= {} if size is None else {name: size}
        return entries


class _Named:
    """What a record declares, by the name that it is given there."""

    name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class Entry(_Named):
    """One field of a record."""

    def __init__(self, size: Size | Callable[[Any], Size | None], lifetime: Lifetime) -> None:
        self.size, self.lifetime = size, lifetime

    def __get__(self, record: Record | None, owner: type | None = None) -> Array:
        return self if record is None else getattr(record.view, self.name)

    def __set__(self, record: Record, value: Array) -> None:
        setattr(record.view, self.name, value)


def entry(size: Size | Callable[[Shape], Size | None]) -> Entry:
    """A field that lasts from the pass that writes it to the end of the program; none where its size is None."""
    return Entry(size, "kept")


def collected(size: Size) -> Entry:
    """A field of a body for the sum of what the clusters that it carries leave for it on the way inwards.

    It lasts until the body's own cluster has been passed; its memory is then used for other bodies. So little memory
    stays in the processor's first cache.
    """
    return Entry(size, "collected")


def afterwards(size: Size) -> Entry:
    """A field of a body that is written once nothing collected is needed any more, in the memory of that."""
    return Entry(size, "afterwards")


def provided() -> Entry:
    """A field whose place is told by whoever adds it to the windows of a cluster."""
    return Entry(0, "provided")


class Indexed(_Named):
    """Fields of a record that are numbered: `body.memory.Omega[other.number]`. Their places are provided."""

    def __get__(self, record: Record, owner: type | None = None) -> _Numbered:
        return _Numbered(record.view, self.name)


class _Numbered:
    def __init__(self, fields: Any, name: str) -> None:
        self._fields, self._name = fields, name

    def __getitem__(self, index: int) -> Array:
        return getattr(self._fields, numbered(self._name, index))

    def __setitem__(self, index: int, value: Array) -> None:
        setattr(self._fields, numbered(self._name, index), value)


def numbered(name: str, index: int) -> str:
    """What a field of an `Indexed` is called in a window."""
    return f"{name}{index}"


class ClusterRecord(Record):
    """A record of a cluster, with its parts of vectors over independent velocities: see `Coordinate`."""

    def __init__(self, view: Any, joints: Sequence[tuple[Any, int]]) -> None:
        """Args: its own parameter of a kernel, and of each independent joint its parameter and number of freedoms."""
        super().__init__(view)
        self.vectors = _Vectors(joints)


class _Vectors:
    """A cluster's parts of vectors, by their names as attributes."""

    def __init__(self, joints: Sequence[tuple[Any, int]]) -> None:
        object.__setattr__(self, "_joints", joints)

    def __getattr__(self, name: str) -> Array:
        return np.concatenate([getattr(joint, name) for joint, _ in self._joints])

    def __setattr__(self, name: str, value: Array) -> None:
        start = 0
        for joint, size in self._joints:
            setattr(joint, name, value[start : start + size])
            start += size


class Coordinate(_Named):
    """A cluster's part of a vector over independent velocities, by the vector's name: an entry of a `ClusterRecord`."""

    def __get__(self, record: ClusterRecord, owner: type | None = None) -> Array:
        return getattr(record.vectors, self.name)

    def __set__(self, record: ClusterRecord, value: Array) -> None:
        setattr(record.vectors, self.name, value)


class Coordinates(_Named):
    """A cluster's parts of vectors that are numbered, whose places are provided: `cluster.memory.rows[i] = values`."""

    def __get__(self, record: ClusterRecord, owner: type | None = None) -> _Numbered:
        return _Numbered(record.vectors, self.name)
