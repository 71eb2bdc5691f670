"""Tables that nodes are looked up in: numbers known beforehand, of which a trace needs some that it computes which.

A row of a loop has its constants in the kernel's own table, at places that are known while tracing. What is here is for
places that are not: the height of a terrain under a foot. A table belongs to no row and no state; all share it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.graph.array import array, nodes_of
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, look_up

MOST = 2**24  # numbers of a table: what float32 can count


class Table:
    """A vector of numbers, to be looked up at places that are floats or nodes.

    Attributes:
        values: the numbers, float64.
    """

    def __init__(self, values: Any) -> None:
        """Args: finite numbers, 1 to 2²⁴ of them."""
        self.values = np.array(values, dtype=np.float64).ravel()
        if not 0 < self.values.size <= MOST:
            raise GraphError(f"a table has 1 to {MOST} numbers, got {self.values.size}")
        if not np.isfinite(self.values).all():
            raise GraphError(
                f"a table's numbers must be finite; number {int(np.argmin(np.isfinite(self.values)))} is not"
            )
        self.values.setflags(write=False)
        self._packed: dict[np.dtype, np.ndarray] = {}

    def look_up(self, place: Any) -> Any:
        """The number at a place, or at each of an array of them: its whole part, brought into the table; NaN is 0."""
        if isinstance(place, Node):
            return look_up(self, place)
        place = np.asarray(place)
        if place.dtype == object:
            return array([look_up(self, node) for node in nodes_of(place)]).reshape(place.shape)
        values = self.values if place.dtype != np.float32 else self.packed(place.dtype)[1:]
        last = len(values) - 1
        positive = np.where(place > 0, place, 0)
        return values[np.where(positive < last, positive, last).astype(np.int64)]

    def packed(self, dtype: np.dtype) -> np.ndarray:
        """As machine code wants it: the last place there is, then the numbers."""
        if dtype not in self._packed:
            with np.errstate(over="ignore"):
                self._packed[dtype] = np.concatenate([[self.values.size - 1.0], self.values]).astype(dtype)
        return self._packed[dtype]

    def __repr__(self) -> str:
        return f"Table({self.values.size} numbers)"
