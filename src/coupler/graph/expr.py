"""Scalar nodes: the values of a trace, folded as they are made, and shared if they are equal.

A node is a constant, a symbol (a value known later) or an operation on other nodes. Two equal operations on the same
arguments are the same object (hash-consing, interning.py), so a common sub-expression is computed once without anybody
looking for it. Folding (fold.py) simplifies zeros, ones, signs and constants.

Symbols are always new, so a trace depends on the traced function alone, and not on what was traced before.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from numbers import Real
from typing import Any

import numpy as np

from coupler.graph.errors import GraphError
from coupler.graph.interning import INTERNED, share, shared
from coupler.graph.operations import OPERATIONS
from coupler.rows import RowCode


class Node:
    """One scalar of a trace, made by `constant`, `symbol` and the operators; see the module's text."""

    __slots__ = ("__weakref__", "args", "logical", "op", "serial", "table", "value")

    op: str  # "constant", "symbol", "lookup", "rows", "part", or a name in OPERATIONS
    args: tuple[Node, ...]
    value: float | bool | str | int | None  # a constant's value, a symbol's label, the place of a "part"
    logical: bool  # whether this is a truth value instead of a number
    serial: int  # larger than that of every older node, and so than those of its arguments
    table: Any  # the table of a "lookup" (table.py), the code of "rows" (coupler.rows), or None

    def __init__(
        self, op: str, args: tuple[Node, ...] = (), value: float | bool | str | int | None = None, table: Any = None
    ) -> None:
        self.op, self.args, self.value, self.table = op, args, value, table
        plain = args and table is None and op != "part"
        self.logical = OPERATIONS[op].logical if plain else isinstance(value, bool)
        self.serial = next(_SERIALS)

    def __repr__(self) -> str:
        return node_text(self, lambda arg: node_text(arg, lambda _: "…"))

    def __add__(self, other: Any) -> Any:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary("div", other, self)

    def __lt__(self, other: Any) -> Any:
        return _binary("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return _binary("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return _binary("lt", other, self)

    def __ge__(self, other: Any) -> Any:
        return _binary("le", other, self)

    def __eq__(self, other: Any) -> Any:
        if self.logical and isinstance(other, Node | bool | np.bool_):
            other = as_node(other)
            return (self & other) | (~self & ~other)
        return _binary("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else apply("not", equal)

    # Keys by identity: a dictionary compares keys only if their hashes agree, which those of two live nodes never do.
    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Any:
        return _binary("and", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return _binary("or", self, other)

    __ror__ = __or__

    def __invert__(self) -> Node:
        return apply("not", self)

    def __neg__(self) -> Node:
        return apply("neg", self)

    def conjugate(self) -> Node:
        """Itself, as nodes are real. NumPy calls this in np.vdot and np.linalg.norm."""
        return self

    __pos__ = __copy__ = conjugate  # a copy is the same node, because nodes are compared by identity

    def __deepcopy__(self, _: Any) -> Node:
        return self

    def __abs__(self) -> Node:
        return apply("abs", self)

    def __pow__(self, exponent: Any) -> Node:
        return _power(self, exponent)

    def __bool__(self) -> bool:
        if self.op == "constant":
            return bool(self.value)
        raise TypeError(
            f"the truth of {self!r} is not known while tracing: choose between values with np.where(condition, a, b), "
            "where the condition compares nodes or a coupler.graph.array of them"
        )

    def __float__(self) -> float:
        if self.op == "constant":
            return float(known(self))
        raise TypeError(
            f"{self!r} has no value while tracing: use np.sin, not math.sin, and build arrays of nodes with "
            "np.array([...]) or np.stack, not by assignment into an array of floats"
        )

    def on_rows(self, code: RowCode, given: Sequence[Any]) -> RowMemory:
        """The memory after running operations on rows (coupler.rows) on given numbers and nodes."""
        args = tuple(map(as_node, given))
        key = ("rows", code, *map(id, args))
        node = shared(key)
        return RowMemory(share(key, Node("rows", args, table=code)) if node is None else node)

    def __reduce__(self) -> Any:
        raise GraphError("nodes cannot be pickled: trace the function again where it is needed")

    # array.py has NumPy's functions on nodes and arrays of nodes, and fills in these two.
    __array_ufunc__: Any
    __array_function__: Any


class RowMemory:
    """The memory after operations on rows; each of its numbers is a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def __getitem__(self, place: int) -> Node:
        key = ("part", id(self._node), place)
        node = shared(key)
        return share(key, Node("part", (self._node,), value=place)) if node is None else node


FOLD: dict[str, Callable[..., Node | None]] = {}  # by operation, the rule that simplifies it; filled in by fold.py

_SERIALS = count()


def constant(value: float | bool) -> Node:
    """The node of a known number or truth value."""
    if isinstance(value, bool | np.bool_):
        key, value = ("constant", bool(value)), bool(value)
    else:
        value = float(value)
        key = ("constant", struct.pack("<d", value))  # its bits: 0.0 is not -0.0
    node = shared(key)
    return share(key, Node("constant", value=value)) if node is None else node


def symbol(label: str) -> Node:
    """A new value that is known only later. Two symbols differ even if their labels are the same."""
    return Node("symbol", value=label)


def as_node(value: Any) -> Node:
    """The value itself if it is a node, or else the constant with that value."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Real | np.bool_):
        return constant(value)  # type: ignore[arg-type]
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return as_node(value[()])
    raise GraphError(f"expected a number or a node, got {type(value).__name__}: {value!r}")


def apply(op: str, *args: Node) -> Node:
    """The node of operation `op` on `args`, folded and shared."""
    operation = OPERATIONS[op]
    if len(args) != operation.arity:
        raise GraphError(f"operation {op!r} takes {operation.arity} arguments, got {len(args)}")
    for arg in args:
        if arg.logical is not operation.of_truths or op == "select":
            _check_kinds(op, args)
            break
    for arg in args:
        if arg.op != "constant":
            break
    else:
        with np.errstate(all="ignore"):
            return constant(np.asarray(operation.evaluate(*map(known, args))).item())
    fold = FOLD.get(op)
    if fold is not None and (folded := fold(*args)) is not None:
        return folded
    if len(args) == 2:
        x, y = args
        first, second = id(x), id(y)
        key = (op, second, first) if operation.commutes and first > second else (op, first, second)
    else:
        ids = [id(arg) for arg in args]
        if operation.commutes and ids[0] > ids[1]:
            ids[:2] = ids[1], ids[0]
        key = (op, *ids)
    entry = INTERNED.get(key)
    node = None if entry is None else entry()
    return share(key, Node(op, args)) if node is None else node


def _check_kinds(op: str, args: Sequence[Node]) -> None:
    """Refuses truth values in place of numbers, and numbers in place of truth values."""
    for i, arg in enumerate(args):
        if arg.logical is not (OPERATIONS[op].of_truths or (op == "select" and i == 0)):
            wanted, got = ("number", "truth value") if arg.logical else ("truth value", "number")
            raise GraphError(f"argument {i + 1} of {op!r} must be a {wanted}, got the {got} {arg!r}")


def where(condition: Any, x: Any, y: Any) -> Node:
    """`x` where the condition holds, else `y`: the scalar form of np.where."""
    condition, x, y = as_node(condition), as_node(x), as_node(y)
    if x.logical and y.logical:
        return (condition & x) | (~condition & y)
    return apply("select", condition, x, y)


def known(node: Node) -> np.float64 | bool:
    """The value of a constant."""
    assert isinstance(node.value, bool | float)
    return node.value if isinstance(node.value, bool) else np.float64(node.value)


def node_text(node: Node, argument: Callable[[Node], str], tables: Mapping[Any, str] | None = None) -> str:
    """A node as text, given names for its arguments and its tables."""
    if node.op == "constant":
        return repr(node.value)
    if node.op == "symbol":
        return str(node.value)
    source = [] if node.op != "lookup" else [(tables or {}).get(node.table, "a table")]
    if node.op == "rows":
        source = [hashlib.sha256(repr(node.table.key).encode()).hexdigest()[:32]]
    last = [str(node.value)] if node.op == "part" else []
    return f"{node.op}({', '.join([*source, *map(argument, node.args), *last])})"


def _binary(op: str, x: Any, y: Any) -> Any:
    if type(x) is not Node:
        if not isinstance(x, Real):
            return NotImplemented
        x = constant(x)  # type: ignore[arg-type]
    elif type(y) is not Node:
        if not isinstance(y, Real):
            return NotImplemented
        y = constant(y)  # type: ignore[arg-type]
    return apply(op, x, y)


def _power(base: Node, exponent: Any) -> Node:
    """base ** exponent for whole and half exponents, as products and square roots."""
    doubled = 2 * float(exponent) if isinstance(exponent, Real) else math.nan
    if not doubled.is_integer():
        raise GraphError(f"power {exponent!r}: only whole and half exponents are supported; write exp(p * log(x))")
    if doubled < 0:
        return apply("div", constant(1.0), _power(base, -exponent))
    whole, half = divmod(int(doubled), 2)
    result = apply("sqrt", base) if half else None
    while whole:  # square and multiply
        if whole & 1:
            result = base if result is None else apply("mul", result, base)
        whole >>= 1
        base = apply("mul", base, base) if whole else base
    return constant(1.0) if result is None else result
