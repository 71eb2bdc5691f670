"""Typed records: what an algorithm stores for a body, a cluster or a pair of bodies from one pass to the next.

An algorithm declares a record as a class, with a line for each field:

    class BodyMemory(Record):
        v = entry(6)                     # lasts from the pass that writes it
        IA = collected(symmetric(6))     # a sum over the clusters that the body carries

and reads and writes `body.memory.v` in its passes. The sweep decides where a field lies in memory. If the size of a
field depends on the shape of its cluster, it is given as a function of the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coupler.graph import Field

if TYPE_CHECKING:
    from coupler.passes.shape import ClusterShape

Array = Any  # an ndarray of floats, or of nodes of a trace
Size = int | tuple[int, ...] | Field
Lifetime = Literal["kept", "collected", "afterwards", "provided"]


class Record:
    """Fields that are read and written as attributes while a pass runs; see the module's text."""

    def __init__(self, view: Any) -> None:
        """Args: the kernel's parameter that has these fields."""
        self.view = view

    @classmethod
    def layout(cls, lifetime: Lifetime, shape: ClusterShape | None = None) -> dict[str, Size]:
        """The sizes of all fields of one lifetime by name, in the order of their declaration."""
        entries: dict[str, Size] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Entry) and value.lifetime == lifetime:
                    size = value.size(shape) if callable(value.size) else value.size
                    entries |= {} if size is None else {name: size}
        return entries


class _Named:
    """A descriptor that knows the name of the attribute it is assigned to."""

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


def entry(size: Size | Callable[[ClusterShape], Size | None]) -> Entry:
    """A field that lasts from the pass that writes it to the end of the program. A size of None stands for no field."""
    return Entry(size, "kept")


def collected(size: Size) -> Entry:
    """A field of a body for a sum over the clusters that it carries, collected on the way inward.

    It lasts until the body's own cluster has been visited. Its memory is then reused for other bodies, so that the sums
    of a whole robot fit into the processor's first-level cache.
    """
    return Entry(size, "collected")


def afterwards(size: Size) -> Entry:
    """A field of a body that is written when no collected field is needed any more, and reuses their memory."""
    return Entry(size, "afterwards")


def provided() -> Entry:
    """A field whose place is given by whoever adds it to the windows of a cluster."""
    return Entry(0, "provided")


class Indexed(_Named):
    """Numbered fields of a record: `body.memory.Omega[other.number]`. Their places are provided."""

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
    """The name of a field of an `Indexed` in a window."""
    return f"{name}{index}"


class ClusterRecord(Record):
    """A record of a cluster, with the cluster's parts of vectors over independent velocities; see `Coordinate`."""

    def __init__(self, view: Any, joints: Sequence[tuple[Any, int]]) -> None:
        """Args: the cluster's parameter of a kernel, and for each independent joint its parameter and its freedoms."""
        super().__init__(view)
        self.vectors = _Vectors(joints)


class _Vectors:
    """A cluster's parts of vectors as attributes, concatenated over its independent joints."""

    def __init__(self, joints: Sequence[tuple[Any, int]]) -> None:
        self.__dict__["_joints"] = joints  # not by our own __setattr__

    def __getattr__(self, name: str) -> Array:
        return np.concatenate([getattr(joint, name) for joint, _ in self._joints])

    def __setattr__(self, name: str, value: Array) -> None:
        start = 0
        for joint, size in self._joints:
            setattr(joint, name, value[start : start + size])
            start += size


class Coordinate(_Named):
    """A field of a `ClusterRecord`: the cluster's part of the vector over independent velocities of that name."""

    def __get__(self, record: ClusterRecord, owner: type | None = None) -> Array:
        return getattr(record.vectors, self.name)

    def __set__(self, record: ClusterRecord, value: Array) -> None:
        setattr(record.vectors, self.name, value)


class Coordinates(_Named):
    """The cluster's parts of numbered vectors, whose places are provided: `cluster.memory.rows[i] = values`."""

    def __get__(self, record: ClusterRecord, owner: type | None = None) -> _Numbered:
        return _Numbered(record.vectors, self.name)
