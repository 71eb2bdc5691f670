"""Tracing: a Python function is called once on nodes, and becomes a kernel that runs over the rows of a table.

A kernel reads and writes *fields* of its parameters as attributes: `link.q`, `parent.IA += ...`. A `Window` says where
fields lie: it maps their names to places in buffers (a base per row) or to constants of the model (a value per row).
Tracing turns the function into straight-line code between loads and stores:

    def backward(link, parent):
        parent.IA += link.X.T @ link.IA @ link.X

All loads of a row come before its stores, so the windows of a kernel must not overlap within a row if one of them is
written there; `trace` checks that. Constants that are exactly 0, 1 or -1 in every row are folded into the kernel. All
others stay in the table, so that robots that differ only in numbers share kernels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.graph.array import Array, nodes_of
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, constant, symbol
from coupler.graph.interning import uncollected
from coupler.graph.kernel import Case, Kernel, Location, Source, Untraced
from coupler.graph.table import Table
from coupler.graph.walk import topological
from coupler.graph.window import Buffer, Constants, Slot, Window, each
from coupler.grouping import grouped

Written = dict[tuple[str, str], dict[int, Node]]  # by window and field, in the order of writing, the node at each place


class View:
    """A kernel's parameter during tracing. Its attributes are fields; see `Window`."""

    def __init__(self, name: str, window: Window, leaves: Callable[[str, str, int], Node], written: Written) -> None:
        values: dict[str, Any] = {}
        self.__dict__.update(_name=name, _window=window, _leaves=leaves, _values=values, _written=written)

    def __getattr__(self, field: str) -> Any:
        if field not in self._window.fields:
            names = ", ".join(self._window.fields)
            raise GraphError(f"parameter {self._name!r} has no field {field!r}; it has {names or 'none'}")
        if field not in self._values:
            layout = self._window.fields[field].field
            leaf = [self._leaves(self._name, field, place) for place in range(layout.size)]
            self._values[field] = _shaped([leaf[place] for place in layout.places], layout.shape)
        return self._values[field]

    def __setattr__(self, field: str, value: Any) -> None:
        slot = self._window.fields.get(field)
        if slot is None:
            raise GraphError(f"parameter {self._name!r} has no field {field!r} to write")
        if isinstance(slot, Constants):
            raise GraphError(f"{self._name}.{field} is a constant of the table and cannot be written")
        if slot.buffer.role == "input":
            raise GraphError(f"{self._name}.{field} lies in the input {slot.buffer.name!r} and cannot be written")
        if np.shape(value) != slot.field.shape:
            raise GraphError(f"{self._name}.{field} has shape {slot.field.shape}; got a value of {np.shape(value)}")
        stored: dict[int, Node] = {}
        for place, node in zip(slot.field.places, nodes_of(value), strict=True):
            if node.logical:
                raise GraphError(f"{self._name}.{field} holds numbers; got the truth value {node!r}: use np.where")
            stored.setdefault(place, node)  # the first element of a mirrored pair counts
        self._written[self._name, field] = stored
        self._values[field] = _shaped([stored[place] for place in slot.field.places], slot.field.shape)


def trace(
    function: Callable[..., Any], windows: Mapping[str, Window | Sequence[Window]], *, condition: bool = False
) -> Case:
    """Calls a function on views of its windows and returns it as a kernel bound to their rows.

    Args:
        function: takes one parameter for each window, or list of windows, by name.
        windows: the window of each parameter: where its fields lie.
        condition: whether the function returns a truth value and writes nothing.
    """
    name = getattr(function, "__name__", "kernel")
    single: dict[str, Window] = {}
    each(windows, single.__setitem__)
    rows = _common_rows(name, single)
    _check_parameters(name, function, windows)
    slots = {(w, f): slot for w, window in single.items() for f, slot in window.fields.items()}
    leaves: dict[Node, tuple[str, str, int]] = {}
    known: dict[tuple[str, str, int], Node] = {}

    def leaf(window: str, field: str, place: int) -> Node:
        slot = slots[window, field]
        if isinstance(slot, Constants) and (column := slot.column(place)) is not None:
            bits = column.copy().view(np.int64)  # not the values: -0.0 is not 0.0
            if rows and column[0] in (0.0, 1.0, -1.0) and (bits == bits[0]).all():
                return constant(column[0])
        key = (window, field, place)
        if key not in known:
            known[key] = symbol(f"{window}.{field}[{place}]")
            leaves[known[key]] = key
        return known[key]

    by_field: Written = {}
    with uncollected():
        answer = function(**each(windows, lambda w, window: View(w, window, leaf, by_field)))
    written = {(*field, place): node for field, stored in by_field.items() for place, node in stored.items()}
    if condition:
        outputs = [_truth(name, answer, written)]
    else:
        if answer is not None:
            raise GraphError(f"kernel {name!r} returns a value; write results to fields of its parameters instead")
        written = {key: node for key, node in written.items() if leaves.get(node) != key}  # unchanged: no store
        outputs = list(written.values())
    return _bind(name, Source(function, windows), rows, slots, leaves, list(written), outputs)


def untraced(function: Callable[..., Any], windows: Mapping[str, Window | Sequence[Window]]) -> Case:
    """A function bound to the rows of its windows, but not called before it runs, in Python."""
    name = getattr(function, "__name__", "kernel")
    single: dict[str, Window] = {}
    each(windows, single.__setitem__)
    _check_parameters(name, function, windows)
    for window in single.values():
        for slot in window.fields.values():
            if isinstance(slot, Constants) and slot.varies:
                slot.place()
    nothing = np.empty((_common_rows(name, single), 0), np.int64)
    return Case(Untraced(name), (), nothing, nothing.astype(float), Source(function, windows))


def _bind(
    name: str,
    source: Source,
    rows: int,
    slots: Mapping[tuple[str, str], Slot | Constants],
    leaves: Mapping[Node, tuple[str, str, int]],
    written: list[tuple[str, str, int]],
    outputs: list[Node],
) -> Case:
    """Numbers the pointers and columns that the kernel uses, and lays out its table."""
    pointers: dict[tuple[int, bytes | int], int] = {}
    pointer_of: dict[Slot, int] = {}
    buffers: list[Buffer] = []
    bases: list[np.ndarray] = []
    columns: list[np.ndarray] = []

    def locate(slot: Slot, place: int) -> Location:
        if slot not in pointer_of:
            key = (id(slot.buffer), slot.bases.tobytes() if rows else id(slot))  # without rows all bases are equal
            if key not in pointers:
                pointers[key] = len(buffers)
                buffers.append(slot.buffer)
                bases.append(slot.bases)
            pointer_of[slot] = pointers[key]
        return Location(pointer_of[slot], slot.offset + place)

    loads: dict[Node, Location] = {}
    constants: dict[Node, int] = {}
    tables: dict[Table, None] = {}
    nodes = topological(outputs)
    for node in nodes:
        if node.op == "lookup":
            tables[node.table] = None
        if node.op != "symbol":
            continue
        if node not in leaves:
            raise GraphError(f"kernel {name!r} uses {node!r}, which is not a field of its parameters")
        window, field, place = leaves[node]
        slot = slots[window, field]
        if not isinstance(slot, Constants):
            loads[node] = locate(slot, place)
        elif (column := slot.column(place)) is not None:
            constants[node] = len(columns)
            columns.append(column)
        else:
            computed = slot.place()
            if computed is None:
                raise GraphError(f"{window}.{field} depends on parameters, which the program does not have")
            loads[node] = locate(computed, place)
    owner = {location: leaves[node] for node, location in loads.items()}
    stores: list[Location] = []
    for key in written:
        slot = slots[key[:2]]
        assert isinstance(slot, Slot)  # View refuses to write constants
        stores.append(locate(slot, key[2]))
        if owner.setdefault(stores[-1], key) != key:
            other = owner[stores[-1]]
            raise GraphError(
                f"kernel {name!r} writes {key[0]}.{key[1]}, which is the same place as {other[0]}.{other[1]}"
            )
    kernel = Kernel(name, loads, constants, tuple(stores), tuple(outputs), len(buffers), nodes, tuple(tables))
    case = Case(kernel, tuple(buffers), _table(bases, rows, np.int64), _table(columns, rows, np.float64), source)
    _check_overlap(case)
    return case


def _table(columns: Iterable[np.ndarray], rows: int, dtype: type) -> np.ndarray:
    columns = list(columns)
    table = np.ascontiguousarray(np.stack(columns, axis=1) if columns else np.empty((rows, 0)), dtype=dtype)
    table.setflags(write=False)
    return table


def _common_rows(name: str, windows: Mapping[str, Window]) -> int:
    counts = {f"{w}.{f}": slot.rows for w, window in windows.items() for f, slot in window.fields.items()}
    if not counts:
        raise GraphError(f"kernel {name!r} has no fields to work on")
    if len(set(counts.values())) > 1:
        few, many = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
        raise GraphError(f"kernel {name!r}: {few} has {counts[few]} rows, but {many} has {counts[many]}")
    return next(iter(counts.values()))


def _check_parameters(name: str, function: Callable[..., Any], windows: Mapping[str, Any]) -> None:
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in windows]
    if missing:
        raise GraphError(f"kernel {name!r} needs a window for its parameter {missing[0]!r}")
    unknown = [w for w in windows if w not in parameters]
    if unknown:
        raise GraphError(f"kernel {name!r} has no parameter {unknown[0]!r}; it takes {', '.join(parameters)}")


def _truth(name: str, answer: Any, written: Mapping[Any, Any]) -> Node:
    nodes = nodes_of(answer) if answer is not None else []
    if written or len(nodes) != 1 or not nodes[0].logical:
        raise GraphError(f"condition {name!r} must return one truth value such as x < y, and write nothing")
    return nodes[0]


def _shaped(nodes: list[Node], shape: tuple[int, ...]) -> Any:
    if not shape:
        return nodes[0]
    result = np.empty(len(nodes), dtype=object)
    result[:] = nodes
    result = result.reshape(shape).view(Array)
    result.setflags(write=False)
    return result


def _check_overlap(case: Case) -> None:
    """Refuses windows that overlap in a row if one is written there: back ends may reorder loads and stores."""
    kernel, by_buffer = case.kernel, grouped(range(len(case.buffers)), lambda pointer: case.buffers[pointer])
    for buffer, pointers in by_buffer.items():
        if len(pointers) > 1 and any(kernel.stored[pointer] for pointer in pointers) and len(case.bases):
            _check_buffer(case, buffer, pointers)


def _check_buffer(case: Case, buffer: Buffer, pointers: Sequence[int]) -> None:
    bases, stored = case.bases[:, pointers], [{*case.kernel.stored[pointer]} for pointer in pointers]
    touched = [sorted(s.union(case.kernel.loaded[pointer])) for s, pointer in zip(stored, pointers, strict=True)]
    first, last = (bases + np.array([offsets[end] for offsets in touched]) for end in (0, -1))
    order = np.argsort(first, axis=1)
    first, last = np.take_along_axis(first, order, 1), np.take_along_axis(last, order, 1)
    if (first[:, 1:] > np.maximum.accumulate(last, axis=1)[:, :-1]).all():
        return  # spans do not overlap, as in most kernels
    all_offsets = np.array([offset for offsets in touched for offset in offsets], np.int64)
    written = np.array([offset in s for offsets, s in zip(touched, stored, strict=True) for offset in offsets])
    owner = np.repeat(np.arange(len(pointers)), [len(offsets) for offsets in touched])
    elements = bases[:, owner] + all_offsets
    order = np.argsort(elements, axis=1)
    elements, written = np.take_along_axis(elements, order, 1), written[order]
    overlaps = (elements[:, 1:] == elements[:, :-1]) & (written[:, 1:] | written[:, :-1])
    if overlaps.any():
        row, place = np.argwhere(overlaps)[0]
        raise GraphError(
            f"kernel {case.kernel.name!r}, row {row}: two windows meet at element {elements[row, place]} of buffer "
            f"{buffer.name!r}, and one of them is written"
        )
