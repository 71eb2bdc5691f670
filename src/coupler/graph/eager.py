"""The Python back end, for debugging: calls the functions of kernels row by row on NumPy floats.

Nothing is traced, so print and pdb work in every function of every pass, and a wrong number can be followed to the line
that computes it. It runs one state at a time, and much slower than the interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coupler.graph.errors import GraphError
from coupler.graph.executable import Executable
from coupler.graph.kernel import Case
from coupler.graph.program import Loop, Repeat, Step
from coupler.graph.window import Buffer, Constants, Slot, Window, each

Memory = Mapping[Buffer, np.ndarray]  # of shape (size,)


class Eager(Executable):
    """A program run by Python; see `Executable` for how to call it."""

    def _run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        states = next((len(a) for a in (*inputs, *outputs)), 1)
        for state in range(states):
            memory = {b: np.full(b.size, np.nan, self.dtype) for b in self.program.buffers}
            for buffer, values in zip(self.program.inputs, inputs, strict=True):
                memory[buffer][:] = values[state]
            with np.errstate(all="ignore"):  # the machine does not stop at a division by zero either
                _run_steps(self.program.steps, memory)
            for buffer, values in zip(self.program.outputs, outputs, strict=True):
                values[state] = memory[buffer]


def _run_steps(steps: Sequence[Step], memory: Memory) -> None:
    for step in steps:
        if isinstance(step, Loop):
            for case, row in step.turns():
                if all(memory[flags.buffer][flags.elements[row]] != 0.0 for flags in case.flags):
                    _call(case, row, memory)
            continue
        if not isinstance(step, Repeat):
            continue
        for _ in range(step.at_most):
            if _call(step.until, 0, memory):
                break
            _run_steps(step.body, memory)


def _call(case: Case, row: int, memory: Memory) -> Any:
    rows = each(case.source.windows, lambda name, window: Row(name, window, row, memory))
    return case.source.function(**rows)


class Row:
    """A kernel's parameter in one row: attributes are fields, read from memory and written to it at once."""

    def __init__(self, name: str, window: Window, row: int, memory: Memory) -> None:
        self.__dict__.update(_name=name, _window=window, _row=row, _memory=memory)  # not by our own __setattr__

    def __getattr__(self, field: str) -> Any:
        if field.startswith("_") or field not in self._window.fields:
            raise AttributeError(f"parameter {self._name!r} has no field {field!r}")
        slot = self._window.fields[field]
        if isinstance(slot, Constants):
            return self._constant(slot).astype(next(iter(self._memory.values())).dtype)[()]
        return self._memory[slot.buffer][self._elements(slot)].reshape(slot.field.shape)[()]

    def _constant(self, slot: Constants) -> np.ndarray:
        """The values of a table in this row."""
        if not slot.varies:
            return slot.values[self._row]
        place = slot.place()
        if place is None:  # no result depends on it, except perhaps times zero
            return np.ones(slot.field.shape)
        stored = self._memory[place.buffer][self._elements(place)]
        columns = [slot.column(element) for element in range(slot.field.size)]
        values = [x if column is None else column[self._row] for x, column in zip(stored, columns, strict=True)]
        return np.array(values).reshape(slot.field.shape)

    def __setattr__(self, field: str, value: Any) -> None:
        slot = self._window.fields[field]
        if not isinstance(slot, Slot):
            raise GraphError(f"{self._name}.{field} is a constant of the table and cannot be written")
        if np.shape(value) != slot.field.shape:
            raise GraphError(f"{self._name}.{field} has shape {slot.field.shape}; got a value of {np.shape(value)}")
        # Backwards, so that the first element of a mirrored pair counts, as in a trace.
        values = np.asarray(value, dtype=float).ravel()
        self._memory[slot.buffer][self._elements(slot)[::-1]] = values[::-1]

    def _elements(self, slot: Slot) -> np.ndarray:
        return slot.bases[self._row] + slot.offset + np.array(slot.field.places, np.int64)
