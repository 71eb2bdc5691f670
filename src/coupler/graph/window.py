"""Where a kernel finds its data: buffers, fields in them, and windows that name these fields row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

from coupler.forks import cached_property
from coupler.graph.array import is_known
from coupler.graph.errors import GraphError

Role = Literal["input", "output", "scratch"]


@dataclass(frozen=True, eq=False)
class Buffer:
    """A named vector of `size` numbers per state."""

    name: str
    size: int
    role: Role

    def at(self, bases: Any, shape: int | tuple[int, ...] | Field = ()) -> Slot:
        """A field of this buffer that starts at element bases[row] in each row."""
        return Slot(self, whole_numbers(bases, f"the bases in buffer {self.name!r}"), 0, Field.of(shape))

    def __repr__(self) -> str:
        return f"{self.role} {self.name}[{self.size}]"


@dataclass(frozen=True)
class Part:
    """Consecutive elements of a buffer, used as a vector."""

    buffer: Buffer
    start: int
    size: int

    def at(self, bases: Any, shape: int | tuple[int, ...] | Field = ()) -> Slot:
        """A field of this part that starts at element bases[row] of it in each row."""
        return self.buffer.at(self.start + whole_numbers(bases, f"the bases in {self!r}"), shape)

    def __repr__(self) -> str:
        return f"{self.buffer.name}[{self.start}:{self.start + self.size}]"


Vector = Buffer | Part


@dataclass(frozen=True)
class Field:
    """The shape of a field and where each of its elements is stored; a symmetric matrix stores one triangle."""

    shape: tuple[int, ...]
    places: tuple[int, ...]  # of each element, row-major

    def __hash__(self) -> int:
        return hash((self.shape, len(self.places)))  # cheap, because schedulers hash fields row by row

    @cached_property
    def size(self) -> int:
        """The number of elements that the field extends over."""
        return max(self.places, default=-1) + 1

    @staticmethod
    def of(shape: int | tuple[int, ...] | Field) -> Field:
        """The field stored element by element, given its shape."""
        if isinstance(shape, Field):
            return shape
        return _plain_field((int(shape),) if isinstance(shape, int | np.integer) else tuple(shape))


@lru_cache(maxsize=1024)
def _plain_field(shape: tuple[int, ...]) -> Field:
    return Field(shape, tuple(range(prod(shape))))


def symmetric(n: int) -> Field:
    """A symmetric matrix of n rows: one triangle is stored, the other is its mirror image."""
    place = {(i, j): i * (i + 1) // 2 + j for i in range(n) for j in range(i + 1)}
    return Field((n, n), tuple(place[max(i, j), min(i, j)] for i in range(n) for j in range(n)))


@dataclass(frozen=True, eq=False)
class Slot:
    """A field in a buffer: in row r it starts at element bases[r] + offset."""

    buffer: Buffer
    bases: np.ndarray
    offset: int
    field: Field

    def __post_init__(self) -> None:
        bases = self.bases
        first, last = -self.offset, self.buffer.size - self.offset - self.field.size
        if bases.size and (bases.min() < first or bases.max() > last):
            row = int(np.flatnonzero((bases < first) | (bases > last))[0])
            raise GraphError(
                f"row {row}: a field of {self.field.size} elements at {int(bases[row]) + self.offset} lies outside "
                f"buffer {self.buffer.name!r}, which has {self.buffer.size} elements"
            )

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.bases)

    def backwards(self) -> Slot:
        """This field with its rows in reverse order."""
        return replace(self, bases=self.bases[::-1])

    def rebound(self, new: Mapping[Buffer, Buffer]) -> Slot:
        """This field in the replacement of its buffer; `new` maps buffers to replacements."""
        return replace(self, buffer=new[self.buffer])


@dataclass(frozen=True, eq=False)
class Constants:
    """A field of known values: values[r] in row r.

    Attributes:
        values: numbers; or nodes, if some depend on parameters of the program (parameters.py).
        place: returns the place, row by row, of values that depend on parameters; a program computes those it needs.
    """

    values: np.ndarray
    place: Callable[[], Slot | None] = lambda: None

    def __post_init__(self) -> None:
        values = np.array(self.values)
        if values.dtype != object or all(map(is_known, values.ravel())):
            values = values.astype(np.float64)
            if not np.isfinite(values).all():
                raise GraphError(f"constants must be finite; row {int(np.argwhere(~np.isfinite(values))[0][0])} is not")
        if values.ndim == 0:
            raise GraphError("constants need one value per row, got a single number; use np.full(rows, value)")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def varies(self) -> bool:
        """Whether some of its values depend on parameters."""
        return self.values.dtype == object

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.values)

    @property
    def field(self) -> Field:
        """The shape of a row's value."""
        return Field.of(self.values.shape[1:])

    def backwards(self) -> Constants:
        """This field with its rows in reverse order."""
        return Constants(self.values[::-1], lambda: (slot := self.place()) and slot.backwards())

    def rebound(self, new: Mapping[Buffer, Buffer]) -> Constants:
        """This field, with its place in the replacement of its buffer if it has one."""
        return Constants(self.values, lambda: (slot := self.place()) and slot.rebound(new)) if self.varies else self

    def column(self, element: int) -> np.ndarray | None:
        """The values of one element in all rows; None if one of them depends on parameters."""
        column = self.values.reshape(self.rows, self.field.size)[:, element]
        if not self.varies:
            return column
        return column.astype(np.float64) if all(map(is_known, column)) else None


@dataclass(frozen=True)
class Window:
    """A kernel's parameter: named fields, each with a place or a value per row. `|` joins two windows."""

    fields: Mapping[str, Slot | Constants]

    def __post_init__(self) -> None:
        for name, slot in self.fields.items():
            if isinstance(slot, Buffer):
                raise GraphError(f"field {name!r} is the whole buffer {slot.name!r}; say where it lies, with .at(...)")
            if not isinstance(slot, Slot | Constants):
                raise GraphError(f"field {name!r} must be buffer.at(...) or constants(...), got {type(slot).__name__}")
            if name.startswith("_"):
                raise GraphError(f"field {name!r}: a name that starts with an underscore is not for fields")

    def __or__(self, other: Window) -> Window:
        both = self.fields.keys() & other.fields.keys()
        if both:
            raise GraphError(f"both windows have a field {min(both)!r}")
        return Window({**self.fields, **other.fields})

    def backwards(self) -> Window:
        """This window with its rows in reverse order."""
        return Window({name: slot.backwards() for name, slot in self.fields.items()})

    def rebound(self, new: Mapping[Buffer, Buffer]) -> Window:
        """This window with its buffers replaced; `new` maps buffers to replacements."""
        return Window({name: slot.rebound(new) for name, slot in self.fields.items()})


def each(windows: Mapping[str, Any], make: Callable[[str, Any], Any]) -> dict[str, Any]:
    """`make(name, window)` for each window, as a list for a list of windows."""

    def of(name: str, window: Any) -> Any:
        return [make(f"{name}[{i}]", w) for i, w in enumerate(window)] if _several(window) else make(name, window)

    return {name: of(name, window) for name, window in windows.items()}


def _several(window: Any) -> bool:
    return isinstance(window, list | tuple)


def whole_numbers(values: Any, what: str) -> np.ndarray:
    """The values as a vector of int64; anything but whole numbers is refused."""
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise GraphError(f"{what} must be a list of whole numbers, got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)
