"""Tables of numbers that are looked up at computed places.

The constants of a row are in the kernel's own table, at places that are known while tracing. The tables here are for
places that are computed, such as that of a terrain's height under a foot. All rows and states share a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.graph.array import array, nodes_of
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, constant, known
from coupler.graph.interning import share, shared

MAX_SIZE = 2**24  # numbers: float32 represents all whole numbers up to here


class Table:
    """A vector of numbers that can be looked up at places given as floats or nodes.

    Attributes:
        values: the numbers, float64.
    """

    def __init__(self, values: Any) -> None:
        """Args: finite numbers, 1 to 2²⁴ of them."""
        self.values = np.array(values, dtype=np.float64).ravel()
        if not 0 < self.values.size <= MAX_SIZE:
            raise GraphError(f"a table has 1 to {MAX_SIZE} numbers, got {self.values.size}")
        if not np.isfinite(self.values).all():
            raise GraphError(
                f"a table's numbers must be finite; number {int(np.argmin(np.isfinite(self.values)))} is not"
            )
        self.values.setflags(write=False)
        self._packed: dict[np.dtype, np.ndarray] = {}

    def look_up(self, place: Any) -> Any:
        """The number at a place, or at each of an array of them. Places are truncated and clamped; NaN counts as 0."""
        if isinstance(place, Node):
            return self._node(place)
        place = np.asarray(place)
        if place.dtype == object:
            return array([self._node(node) for node in nodes_of(place)]).reshape(place.shape)
        values = self.values if place.dtype != np.float32 else self.packed(place.dtype)[1:]
        last = len(values) - 1
        positive = np.where(place > 0, place, 0)
        return values[np.where(positive < last, positive, last).astype(np.int64)]

    def _node(self, place: Node) -> Node:
        """The node of the number at a place, folded and shared."""
        if place.logical:
            raise GraphError(f"a place in a table must be a number, got the truth value {place!r}")
        if place.op == "constant":
            return constant(self.look_up(known(place)).item())
        key = ("lookup", id(self), id(place))
        node = shared(key)
        return share(key, Node("lookup", (place,), table=self)) if node is None else node

    def packed(self, dtype: np.dtype) -> np.ndarray:
        """The table as machine code reads it: the last place, then the numbers."""
        if dtype not in self._packed:
            with np.errstate(over="ignore"):
                self._packed[dtype] = np.concatenate([[self.values.size - 1.0], self.values]).astype(dtype)
        return self._packed[dtype]

    def __repr__(self) -> str:
        return f"Table({self.values.size} numbers)"
