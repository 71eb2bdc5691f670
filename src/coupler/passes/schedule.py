"""The scheduler: rows of several kernels, in any order, as one loop of a program.

A pass over a robot adds row after row. Rows that can share a trace are grouped, so that each kernel is traced once; the
loop runs them in the order in which they were added.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coupler.graph import Buffer, Builder, Constants, Field, Slot, View, constants, fields

Windows = Mapping[str, Any]  # windows and lists of windows
Kernel = Callable[..., None]


class Place(NamedTuple):
    """A matrix, vector or number in a buffer."""

    buffer: Buffer
    start: int
    field: Field

    @staticmethod
    def of(buffer: Buffer, start: int, shape: int | tuple[int, ...] | Field) -> Place:
        return Place(buffer, start, Field.of(shape))

    def transposed(self) -> Place:
        """The transpose of this matrix, in the same place."""
        rows, columns = self.field.shape
        places = np.array(self.field.places).reshape(rows, columns).T.ravel().tolist()
        return Place(self.buffer, self.start, Field((columns, rows), tuple(places)))

    @staticmethod
    def block(buffer: Buffer, start: int, shape: tuple[int, int], width: int) -> Place:
        """A block of a matrix of `width` columns, which is stored row by row in a buffer."""
        rows, columns = shape
        places = (np.arange(rows)[:, None] * width + np.arange(columns)).ravel().tolist()
        return Place(buffer, start, Field(shape, tuple(places)))

    @staticmethod
    def whole(buffer: Buffer, shape: int | tuple[int, ...] | Field) -> Place:
        """A place that is a whole buffer."""
        return Place.of(buffer, 0, shape)


@dataclass(frozen=True, eq=False)
class Places:
    """Matrices, vectors or numbers of one shape in a buffer, for several rows at once; see `Schedule.call`."""

    buffer: Buffer
    start: np.ndarray
    field: Field

    @staticmethod
    def of(buffer: Buffer, start: np.ndarray, shape: int | tuple[int, ...] | Field) -> Places:
        return Places(buffer, start, Field.of(shape))


class Store:
    """Matrices of any size by key, one after the other in a buffer."""

    def __init__(self, allocate: Callable[[int], Buffer]) -> None:
        """Args: a function that makes the buffer, given its size; it is called when the buffer is first needed."""
        self._allocate, self._buffer = allocate, None
        self.size, self.starts, self.fields = 0, dict[Hashable, int](), dict[Hashable, Field]()

    def add(self, key: Hashable, shape: int | tuple[int, ...] | Field) -> None:
        """Makes room for a matrix, unless the key has one already."""
        if key not in self.starts:
            self.starts[key], self.fields[key] = self.size, Field.of(shape)
            self.size += self.fields[key].size

    @property
    def buffer(self) -> Buffer:
        if self._buffer is None:
            self._buffer = self._allocate(self.size)
        return self._buffer

    def place(self, key: Hashable) -> Place:
        return Place(self.buffer, self.starts[key], self.fields[key])

    def at(self, keys: Sequence[Hashable]) -> Slot:
        """A field with one row for each key; their matrices have the same shape."""
        return self.buffer.at([self.starts[key] for key in keys], self.fields[keys[0]])


@dataclass
class _Group:
    number: int
    loop: Callable[[list[Any]], tuple[Kernel, Windows]]
    rows: list[Any] = field(default_factory=list)


class Schedule:
    """Rows of kernels, run in the order in which they are added; see the module's text."""

    def __init__(self, builder: Builder, seen_before: bool = True, known_velocities: bool = True) -> None:
        """Args: the program's builder, and whether earlier passes have visited clusters and stored velocities."""
        self._builder, self.seen_before, self.known_velocities = builder, seen_before, known_velocities
        self._groups: dict[Hashable, _Group] = {}
        self._order: list[int] = []

    def add(self, key: Hashable, row: Any, loop: Callable[[list[Any]], tuple[Kernel, Windows]], count: int = 1) -> None:
        """Adds one row, or several at once.

        Args:
            key: equal for rows that share a trace.
            row: any description of the row; `loop` gets a list of all those with the same key.
            loop: returns the kernel and its windows for all rows of a key.
            count: how many rows the description stands for.
        """
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(len(self._groups), loop)
        group.rows.append(row)
        self._order += [group.number] * count

    def call(
        self,
        function: Callable[..., Any],
        *given: Any,
        out: Place | Places | Sequence[Place | Places],
        where: Place | Places | None = None,
        among: Place | Places | None = None,
    ) -> None:
        """Adds one row that calls a function of matrices and stores what it returns.

        If some arguments or results are `Places`, it adds as many rows as these have, one after the other.

        Args:
            function: takes and returns arrays, of floats or of nodes.
            given: for each parameter a `Place`, a constant array, or a list of such.
            out: where each of its results goes; an argument may be overwritten.
            where, among: flags of the states that run the row; all do by default. See `Builder.loop`.
        """
        targets = [out] if isinstance(out, Place | Places) else list(out)
        places: dict[Any, str] = {}  # a place that occurs twice is one field
        shape = tuple([_named(value, places) for value in given])
        results = tuple([_named(place, places) for place in targets])
        flags = tuple([flag for flag in (where, among) if flag is not None])
        buffers = where and where.buffer, among and among.buffer
        several = [value.start.size for value in (*places, *flags) if isinstance(value, Places)]
        count = several[0] if several else 1

        def loop(rows: list[Any]) -> tuple[Kernel, Windows]:
            counts, columns = [count for count, *_ in rows], zip(*(row_places for _, *row_places in rows), strict=True)
            slots = [_slot(column, counts) for column in columns]
            windows: dict[str, Any] = {"row": fields(**dict(zip(places.values(), slots, strict=False)))}
            names = [name for name, buffer in zip(("where", "among"), buffers, strict=True) if buffer is not None]
            return _kernel(function, shape, results), windows | dict(zip(names, slots[len(places) :], strict=True))

        key = function, shape, results, tuple([_layout(value) for value in places]), buffers
        self.add(key, (count, *places, *flags), loop, count)

    def clear(self, out: Place | Places) -> None:
        """Adds a row that sets a matrix, vector or number to zero."""
        self.call(_zeros(out.field.shape), out=out)

    def copy(self, source: Place | Places, out: Place | Places) -> None:
        """Adds a row that copies a matrix, vector or number."""
        self.call(_copy, source, out=out)

    def run(self) -> None:
        """Writes the loop into the program."""
        if not self._order:
            return
        with self._builder.interleave(self._order):
            for group in self._groups.values():
                kernel, windows = group.loop(group.rows)
                self._builder.loop(kernel, **windows)


@cache
def _zeros(shape: tuple[int, ...]) -> Callable[[], Any]:
    """A function that returns zeros; always the same one for a shape, so that rows share a trace."""

    def clear() -> Any:
        return np.zeros(shape)

    return clear


def _copy(x: Any) -> Any:
    return x


class _Number:
    """Wraps a constant array as a key that is equal only to itself."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values


def _named(value: Any, places: dict[Any, str]) -> Any:
    """The name of the field for an argument, or a tuple of names for a list; new places are added to `places`."""
    if isinstance(value, Place | Places):
        return places.setdefault(value, f"x{len(places)}")
    if isinstance(value, np.ndarray):
        return places.setdefault(_Number(value), f"x{len(places)}")
    return tuple([_named(part, places) for part in value])


def _layout(value: Any) -> Hashable:
    """A key for what a trace depends on in a field's place."""
    return ("constant", value.values.shape) if isinstance(value, _Number) else (value.buffer, value.field)


def _slot(column: Sequence[Any], counts: Sequence[int]) -> Slot | Constants:
    """One field of all rows of a group. Each entry of the column stands for as many rows as its count says."""
    first = column[0]
    if isinstance(first, _Number):
        return constants(np.repeat([number.values for number in column], counts, axis=0))
    if not any(isinstance(place, Places) for place in column) and sum(counts) == len(column):
        return first.buffer.at([place.start for place in column], first.field)
    starts = [np.broadcast_to(place.start, count) for place, count in zip(column, counts, strict=True)]
    return first.buffer.at(np.concatenate(starts), first.field)


def _kernel(function: Callable[..., Any], shape: Sequence[Any], results: Sequence[str]) -> Kernel:
    def kernel(row: View) -> None:
        answer = function(*(_values(row, part) for part in shape))
        for name, value in zip(results, answer if len(results) > 1 else [answer], strict=True):
            setattr(row, name, value)

    kernel.__name__ = function.__name__
    return kernel


def _values(row: View, names: Any) -> Any:
    return getattr(row, names) if isinstance(names, str) else [_values(row, part) for part in names]
