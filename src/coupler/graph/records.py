"""What a builder hands out for loops to run over: records, single fields and constants, as windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.graph.errors import GraphError
from coupler.graph.window import Buffer, Constants, Field, Slot, Window, whole_numbers


class Records:
    """A buffer of equal rows with named fields; indexing it gives the window of a loop."""

    def __init__(self, buffer: Buffer, rows: int, layout: Mapping[str, Field]) -> None:
        self.buffer, self.rows, self.layout = buffer, rows, layout
        self.stride = sum(field.size for field in layout.values())

    def __getitem__(self, rows: Any) -> Window:
        """The rows to loop over: a slice, a mask, or whole numbers (which may repeat, but not be negative)."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
        if isinstance(rows, slice) or (rows.dtype == bool and rows.shape == (self.rows,)):
            index = np.arange(self.rows)[rows]
        else:
            index = whole_numbers(rows, f"the rows of records {self.buffer.name!r}")
        outside = index[(index < 0) | (index >= self.rows)]
        if outside.size:
            raise GraphError(f"row {int(outside[0])} is outside records {self.buffer.name!r} of {self.rows} rows")
        slots: dict[str, Slot | Constants] = {}
        bases, offset = index * self.stride, 0
        for name, field in self.layout.items():
            slots[name] = Slot(self.buffer, bases, offset, field)
            offset += field.size
        return Window(slots)


def constants(values: Any) -> Constants:
    """A field of known values, one per row along the first axis."""
    return Constants(np.asarray(values))


def fields(**slots: Slot | Constants) -> Window:
    """A window made of single fields: `fields(q=q.at(range(n)), mass=constants(masses))`."""
    return Window(slots)
