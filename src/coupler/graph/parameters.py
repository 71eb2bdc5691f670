"""Numbers of tables that a program is given: parameters, and what is computed of them before anything else.

A table may hold nodes in place of numbers, as long as these depend on `Parameters` alone. A builder that knows the
parameters gives its program one more input, the last, and writes the steps that compute such entries from it; kernels
load them where they would have taken constants. So a model whose numbers are nodes has the same programs as one of
floats, and nothing is compiled again when its numbers change.
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

PARAMETERS = "parameters"  # what programs call this input


class Parameters:
    """Numbers that are not known before a program is called.

    Attributes:
        nodes: one for each of them.
    """

    def __init__(self, size: int) -> None:
        self.nodes = symbols("parameter", size)
        self._number = {node: i for i, node in enumerate(self.nodes)}

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return len(self.nodes)

    def number(self, node: Node) -> int:
        """Which of them a symbol is."""
        if node not in self._number:
            raise GraphError(f"a table holds {node!r}, which is no number and no parameter of its program")
        return self._number[node]

    def __contains__(self, node: Node) -> bool:
        return node in self._number


class Lowering:
    """Makes room in a program for entries of tables that depend on parameters, once for those that are the same.

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
        """Args: the parameters, the input that holds them, what makes buffers, and what writes a loop of one window."""
        self._parameters, self._given, self._scratch, self._loop = parameters, given, scratch, loop
        self._known: dict[tuple[Any, ...], Slot] = {}
        self.done = False

    def lowered(self, window: Window) -> Window:
        """The same fields, with a place for each entry of a table that is a node."""
        if not any(isinstance(slot, Constants) and slot.varies for slot in window.fields.values()):
            return window
        return Window({name: self._with_place(slot) for name, slot in window.fields.items()})

    def _with_place(self, slot: Slot | Constants) -> Slot | Constants:
        if isinstance(slot, Slot) or not slot.varies:
            return slot
        return Constants(slot.values, partial(self._place, slot.values))

    def _place(self, values: np.ndarray) -> Slot | None:
        """Where the rows of a table are; None if no kernel has asked for them while the program was written."""
        rows = [nodes_of(row) for row in values]
        key = (
            tuple(node for row in rows for node in row),
            values.shape,
        )  # equal nodes are one object, as long as it lives
        if key not in self._known and not self.done:
            self._known[key] = self._as_given(rows) or self._computed(rows)
        return self._known.get(key)

    def _as_given(self, rows: Sequence[Sequence[Node]]) -> Slot | None:
        """Where rows are in the input, if each is a stretch of parameters as they come."""
        if not all(node in self._parameters for row in rows for node in row):
            return None
        numbers = np.array([[self._parameters.number(node) for node in row] for row in rows])
        if (np.diff(numbers, axis=1) != 1).any():
            return None
        return self._given().at(numbers[:, 0], len(rows[0]))

    def _computed(self, rows: Sequence[Sequence[Node]]) -> Slot:
        """Where rows are once they are computed: those alike but for numbers and parameters by one kernel."""
        size = len(rows[0])
        entries = [j for j in range(size) if any(row[j].op != "constant" for row in rows)]
        place = self._scratch(size * len(rows)).at(size * np.arange(len(rows)), size)
        groups: dict[str, list[tuple[int, _Formula]]] = {}
        for i, row in enumerate(rows):
            formula = _Formula([row[j] for j in entries], self._parameters)
            groups.setdefault(formula.text, []).append((i, formula))
        for alike in groups.values():
            first, numbers = alike[0][1], [formula.numbers for _, formula in alike]
            slots: dict[str, Slot | Constants] = {"numbers": Constants(np.array(numbers))}
            for k in range(len(first.parameters)):
                slots[f"parameter{k}"] = self._given().at([formula.parameters[k] for _, formula in alike])
            for k, entry in enumerate(entries):
                slots[f"entry{k}"] = place.buffer.at([size * i + entry for i, _ in alike])
            self._loop(first.kernel(), Window(slots))
        return place


class _Formula:
    """Entries of one row that depend on parameters.

    Attributes:
        text: what is computed; equal for rows that differ in numbers and in which parameters they take.
        numbers: the row's own.
        parameters: the numbers of the parameters that it takes.
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
