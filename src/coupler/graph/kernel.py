"""Kernels: straight-line code, bound to the rows of tables that it runs over; see tracing.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node
from coupler.graph.measure import operations
from coupler.graph.table import Table
from coupler.graph.walk import listing
from coupler.graph.window import Buffer, Slot, Window, each


@dataclass(frozen=True)
class Location:
    """Element `offset` after the base of pointer number `pointer`."""

    pointer: int
    offset: int


@dataclass(frozen=True, eq=False)
class Kernel:
    """Straight-line code: loads, then operations, then stores.

    Attributes:
        name: the traced function's name.
        loads: by symbol, the location that it is loaded from.
        constants: by symbol, the column of the table that it is loaded from.
        stores: the location of each result. A condition has none; its only output is a truth value.
        outputs: the node of each store, in order.
        pointers: the number of pointers that locations use.
        nodes: all nodes that outputs depend on, each after its arguments.
        tables: the lookup tables, in the order in which the text names them.
    """

    name: str
    loads: Mapping[Node, Location]
    constants: Mapping[Node, int]
    stores: tuple[Location, ...]
    outputs: tuple[Node, ...]
    pointers: int
    nodes: Sequence[Node]
    tables: tuple[Table, ...] = ()

    @property
    def is_condition(self) -> bool:
        return bool(self.outputs) and not self.stores

    @cached_property
    def text(self) -> str:
        """The kernel as a listing; two kernels with the same text are the same kernel."""
        leaf = {node: f"p{at.pointer}[{at.offset}]" for node, at in self.loads.items()}
        leaf |= {node: f"c[{column}]" for node, column in self.constants.items()}
        names = ["until"] if self.is_condition else [f"p{at.pointer}[{at.offset}]" for at in self.stores]
        return listing(self.outputs, names, leaf, self.nodes)

    @cached_property
    def operations(self) -> Counter[str]:
        """How often each operation occurs; a row runs each of them once."""
        return operations(self.outputs, self.nodes)

    @cached_property
    def workspace(self) -> int:
        """The size of the memory for its operations on rows, in numbers."""
        if "rows" not in self.operations:
            return 0
        return sum(node.table.size for node in self.nodes if node.op == "rows")

    @cached_property
    def loaded(self) -> list[list[int]]:
        """For each pointer the offsets that are loaded from, in order."""
        return self._by_pointer(self.loads.values())

    @cached_property
    def stored(self) -> list[list[int]]:
        """For each pointer the offsets that are stored to, in order."""
        return self._by_pointer(self.stores)

    def _by_pointer(self, locations: Iterable[Location]) -> list[list[int]]:
        by_pointer = [set[int]() for _ in range(self.pointers)]
        for at in locations:
            by_pointer[at.pointer].add(at.offset)
        return [sorted(offsets) for offsets in by_pointer]


class Untraced(Kernel):
    """Stands in for a kernel that only Python can run: it has a name, and raises if it is asked for anything else."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)

    def __repr__(self) -> str:
        return f"Untraced({self.name!r})"

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        raise GraphError(f"kernel {self.name!r} is not traced: its program is for the back end 'python' only")


@dataclass(frozen=True, eq=False)
class Source:
    """The origin of a kernel, from which it can also run in Python.

    Attributes:
        function: takes one parameter for each window, or list of windows, by name.
        windows: the window of each parameter: where its fields lie in every row.
    """

    function: Callable[..., Any]
    windows: Mapping[str, Window | Sequence[Window]]

    def rebound(self, new: Mapping[Buffer, Buffer]) -> Source:
        """This source with its windows in other buffers: `new` maps each buffer to its replacement."""
        return Source(self.function, each(self.windows, lambda _, window: window.rebound(new)))


@dataclass(frozen=True, eq=False)
class Flags:
    """For each row of a table whether a state runs it: if element elements[row] of a buffer is not zero."""

    buffer: Buffer
    elements: np.ndarray

    @staticmethod
    def of(slot: Slot) -> Flags:
        return Flags(slot.buffer, slot.bases + slot.offset)


@dataclass(frozen=True, eq=False)
class Case:
    """A kernel bound to a table: the rows that it is run over.

    Attributes:
        kernel: what is computed.
        buffers: the buffer of each of the kernel's pointers.
        bases: element index of each pointer in each row, int64 of shape (rows, pointers).
        constants: the constants of each row, float64 of shape (rows, columns).
        source: the Python function behind the kernel, over the same rows.
        where: flags of the rows that run; all do if None.
        among: further flags that must hold, of groups of rows, which are listed (see `Listing`).
    """

    kernel: Kernel
    buffers: tuple[Buffer, ...]
    bases: np.ndarray
    constants: np.ndarray
    source: Source
    where: Flags | None = None
    among: Flags | None = None

    @property
    def flags(self) -> tuple[Flags, ...]:
        """All flags that must hold for a row to run."""
        return tuple(flags for flags in (self.among, self.where) if flags is not None)

    @property
    def rows(self) -> int:
        return len(self.bases)

    def element(self, row: int, at: Location) -> tuple[Buffer, int]:
        """The buffer and the element that a location of the kernel means in a row."""
        return self.buffers[at.pointer], int(self.bases[row, at.pointer]) + at.offset
