"""Traced functions with their numbers taken out, so that functions that differ only in numbers become the same."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from coupler.graph.array import nodes_of, numbers_or_nodes, symbols
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, apply, constant, known, symbol
from coupler.graph.rewrite import spelled_out
from coupler.graph.walk import listing, substitute, topological

_STRUCTURE = (0.0, 1.0, -1.0)  # numbers that folding simplifies; they stay in the function

_KNOWN: WeakValueDictionary[tuple[str, bytes], Template] = WeakValueDictionary()  # by text and numbers


@dataclass(frozen=True, eq=False)
class Template:
    """A traced function whose numbers are parameters.

    Attributes:
        text: what it computes; functions with the same text differ in their numbers only. Unpickling reads the nodes
            back from it.
        numbers: the numbers of this function.
        shape: the shape of its result.
        function: the traced function; None after unpickling.
    """

    text: str
    numbers: np.ndarray
    shape: tuple[int, ...]
    function: Callable[[Any], Any] | None
    _inputs: tuple[Node, ...]
    _parameters: tuple[Node, ...]
    _outputs: tuple[Node, ...]

    def __post_init__(self) -> None:
        if self.function is not None and self.numbers.dtype == float:
            _KNOWN[self.text, self.numbers.tobytes()] = self

    def __call__(self, x: Any, numbers: Any) -> Any:
        """The function at x, nodes or floats, with other numbers in place of its own.

        For floats, the Python function itself is called if it is known, so that a debugger can step into it.
        """
        if np.asarray(x).dtype == np.asarray(numbers).dtype == float:
            original = _KNOWN.get((self.text, np.asarray(numbers).tobytes()))
            if original is not None and original.function is not None:
                return np.asarray(original.function(np.array(x)), dtype=float).reshape(self.shape)
        return self.by_trace(x, numbers)

    def by_trace(self, x: Any, numbers: Any) -> Any:
        """The function at x with other numbers, from its nodes and without calling the Python function."""
        values = zip((*self._inputs, *self._parameters), (*nodes_of(x), *nodes_of(numbers)), strict=True)
        return numbers_or_nodes(substitute(self._outputs, dict(values)), self.shape)

    def __reduce__(self) -> Any:
        return _from_text, (self.text, self.numbers, self.shape, len(self._inputs))


def template(function: Callable[[Any], Any], size: int, given: Container[Node] = ()) -> Template:
    """Traces a function of `size` numbers and takes its own numbers out, except 0 and ±1.

    Symbols in `given` count as numbers whose values are not known yet.
    """
    x = symbols("x", size)
    result = np.asarray(function(x.copy()), dtype=object).view(np.ndarray)
    outputs, arguments = spelled_out(nodes_of(result)), set(x)
    for node in topological(outputs):
        if node.op == "constant" and not node.logical and not np.isfinite(known(node)):
            raise GraphError(f"the function computes with {known(node)}")
        if node.op == "symbol" and node not in arguments and node not in given:
            raise GraphError(f"the function uses {node!r}, which is none of its {size} arguments")
        if node.table is not None:
            raise GraphError(f"the function uses {node!r}: what is looked up in a table has no place in a template")
    values, numbers, outputs = lifted(outputs, given)
    text = sys.intern(listing(outputs, [f"y[{i}]" for i in range(len(outputs))]))  # many are equal: one string for all
    return Template(text, values, result.shape, function, tuple(x), tuple(numbers), tuple(outputs))


def lifted(outputs: Sequence[Node], given: Container[Node] = ()) -> tuple[np.ndarray, list[Node], list[Node]]:
    """The numbers in outputs except 0 and ±1, new symbols for them, and the outputs with these symbols instead.

    Symbols in `given` count as numbers whose values are not known yet.
    """
    numbers: dict[Node, Node] = {}
    for node in topological(outputs):
        is_number = node.op == "constant" and not node.logical and known(node) not in _STRUCTURE
        if is_number or (node.op == "symbol" and node in given):
            numbers[node] = symbol(f"n[{len(numbers)}]")
    values = numbers_or_nodes(list(numbers), (len(numbers),))
    return values, list(numbers.values()), substitute(outputs, numbers)


def _from_text(text: str, numbers: np.ndarray, shape: tuple[int, ...], size: int) -> Template:
    """The template that has this text, with new nodes."""
    x, n = symbols("x", size), symbols("n", len(numbers))
    named: dict[str, Node] = {f"x[{i}]": node for i, node in enumerate(x)}
    named |= {f"n[{i}]": node for i, node in enumerate(n)}
    named |= {"True": constant(True), "False": constant(False)}

    def value(word: str) -> Node:
        return named[word] if word in named else constant(float(word))

    for line in text.splitlines():
        name, expression = line.split(" = ")
        operation = re.fullmatch(r"(\w+)\((.*)\)", expression)
        if operation is None:
            named[name] = value(expression)
        else:
            named[name] = apply(operation[1], *map(value, operation[2].split(", ")))
    outputs = tuple(named[f"y[{i}]"] for i in range(int(np.prod(shape, dtype=int))))
    return Template(sys.intern(text), numbers, shape, None, tuple(x), tuple(n), outputs)
