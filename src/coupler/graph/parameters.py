"""Parameters: numbers of tables that are inputs of a program, and what is computed from them first.

A table may hold nodes in place of numbers, if they depend on `Parameters` only. A builder that knows the parameters
gives its program one more input, the last, and writes steps that compute such entries from it. Kernels load these
entries instead of constants. So a model whose numbers are nodes has the same programs as one of floats, and nothing is
compiled again when its numbers change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from coupler.graph.array import nodes_of, numbers_or_nodes, symbols
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, as_node, symbol
from coupler.graph.template import lifted
from coupler.graph.tracing import View
from coupler.graph.walk import listing, substitute, topological
from coupler.graph.window import Buffer, Constants, Slot, Window

PARAMETERS = "parameters"  # the name of this input in programs


class Parameters:
    """Numbers that become known when a program is called.

    Attributes:
        nodes: one for each of them.
    """

    def __init__(self, size: int) -> None:
        self.nodes = symbols("parameter", size)
        self._number = {node: i for i, node in enumerate(self.nodes)}

    @property
    def size(self) -> int:
        """The number of parameters."""
        return len(self.nodes)

    def number(self, node: Node) -> int:
        """The number of a symbol among the parameters."""
        if node not in self._number:
            raise GraphError(f"a table holds {node!r}, which is no number and no parameter of its program")
        return self._number[node]

    def __contains__(self, node: Node) -> bool:
        return node in self._number


class Lowering:
    """Makes room in a program for table entries that depend on parameters; equal entries share it.

    Attributes:
        done: whether the program is written.
    """

    def __init__(
        self,
        parameters: Parameters,
        given: Callable[[], Buffer],
        scratch: Callable[[int], Buffer],
        loop: Callable[[Callable[..., None], Window], None],
    ) -> None:
        """Args: the parameters, and functions that return their input, make a scratch buffer and write a loop."""
        self._parameters, self._given, self._scratch, self._loop = parameters, given, scratch, loop
        self._known: dict[tuple[Any, ...], Slot] = {}
        self.done = False

    def lowered(self, window: Window) -> Window:
        """A window's fields, with places in memory instead of table entries that are nodes."""
        if not any(isinstance(slot, Constants) and slot.varies for slot in window.fields.values()):
            return window
        return Window({name: self._with_place(slot) for name, slot in window.fields.items()})

    def _with_place(self, slot: Slot | Constants) -> Slot | Constants:
        if isinstance(slot, Slot) or not slot.varies:
            return slot
        return Constants(slot.values, partial(self._place, slot.values))

    def _place(self, values: np.ndarray) -> Slot | None:
        """The place of a table's rows; None if no kernel needed them while the program was written."""
        rows = [nodes_of(row) for row in values]
        key = tuple(node for row in rows for node in row), values.shape  # equal nodes are one object while it lives
        if key not in self._known and not self.done:
            self._known[key] = self._as_given(rows) or self._computed(rows)
        return self._known.get(key)

    def _as_given(self, rows: Sequence[Sequence[Node]]) -> Slot | None:
        """The place of rows in the input, if each is a run of consecutive parameters."""
        if not all(node in self._parameters for row in rows for node in row):
            return None
        numbers = np.array([[self._parameters.number(node) for node in row] for row in rows])
        if (np.diff(numbers, axis=1) != 1).any():
            return None
        return self._given().at(numbers[:, 0], len(rows[0]))

    def _computed(self, rows: Sequence[Sequence[Node]]) -> Slot:
        """The place of computed rows. One kernel computes all rows that differ only in numbers and parameters."""
        size = len(rows[0])
        entries = [j for j in range(size) if any(row[j].op != "constant" for row in rows)]
        place = self._scratch(size * len(rows)).at(size * np.arange(len(rows)), size)
        groups: dict[str, list[tuple[int, _Formula]]] = {}
        for i, row in enumerate(rows):
            formula = _Formula([row[j] for j in entries], self._parameters)
            groups.setdefault(formula.text, []).append((i, formula))
        for group in groups.values():
            first, numbers = group[0][1], [formula.numbers for _, formula in group]
            slots: dict[str, Slot | Constants] = {"numbers": Constants(np.array(numbers))}
            for k in range(len(first.parameters)):
                slots[f"parameter{k}"] = self._given().at([formula.parameters[k] for _, formula in group])
            for k, entry in enumerate(entries):
                slots[f"entry{k}"] = place.buffer.at([size * i + entry for i, _ in group])
            self._loop(first.kernel(), Window(slots))
        return place


class _Formula:
    """The entries of one row that depend on parameters.

    Attributes:
        text: the computation as text; equal for rows that differ only in numbers and in the choice of parameters.
        numbers: the numbers of this row.
        parameters: the indices of the parameters that this row depends on.
    """

    def __init__(self, outputs: Sequence[Node], parameters: Parameters) -> None:
        taken = [node for node in topological(outputs) if node.op == "symbol"]
        self.parameters = [parameters.number(node) for node in taken]
        stand_ins = [symbol(f"p[{k}]") for k in range(len(taken))]
        outputs = substitute(outputs, dict(zip(taken, stand_ins, strict=True)))
        self.numbers, numbers, self._outputs = lifted(outputs)
        self._inputs = [*stand_ins, *numbers]
        self.text = listing(self._outputs, [f"y[{i}]" for i in range(len(outputs))])

    def kernel(self) -> Callable[[View], None]:
        """Computes the entries, on nodes or on floats."""

        def parameters(row: View) -> None:
            given = (getattr(row, f"parameter{k}") for k in range(len(self.parameters)))
            values = [as_node(x) for x in (*given, *row.numbers)]
            answers = substitute(self._outputs, dict(zip(self._inputs, values, strict=True)))
            for k, answer in enumerate(answers):
                setattr(row, f"entry{k}", numbers_or_nodes([answer], ())[()])

        return parameters
