"""Small vectors and matrices of nodes that work with NumPy.

A function written with NumPy's operators and functions takes floats or nodes without change: `Array` is an ndarray of
nodes, and np.sin, np.where, np.minimum, `@`, comparisons and reductions of it build the graph. NumPy functions that
only move elements (stack, concatenate, block, transpose, diag, ...) work as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, apply, as_node, constant, symbol, where
from coupler.rows import has_unknown, is_long_product, is_zero, product, times_vector


class Array(np.ndarray):
    """An ndarray (dtype object) of nodes. `a += b` makes a new array, so that no field is changed in part."""

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise GraphError("a field is assigned as a whole: copy it, change the copy, and write that back")
        super().__setitem__(index, value)

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other

    def __itruediv__(self, other: Any) -> Any:
        return self / other

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _ufunc(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in _FUNCTIONS:
            return _FUNCTIONS[func](*args, **kwargs)
        return _of_nodes(super().__array_function__(func, [t for t in types if t is not Node], args, kwargs))


def array(values: Any) -> Array:
    """An Array of `values` (numbers, nodes, nested lists of them): numbers become constants."""
    return _elementwise(as_node, values).view(Array)


def symbols(label: str, shape: int | tuple[int, ...]) -> Array:
    """An Array of new symbols named label[i] or label[i, j]."""
    result = np.empty(shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = symbol(f"{label}[{', '.join(map(str, index))}]" if index else label)
    return result.view(Array)


def nodes_of(values: Any) -> list[Node]:
    """The elements of a scalar, list or array, in row-major order, as nodes."""
    return [as_node(value) for value in _objects(values).ravel()]


def numbers_or_nodes(nodes: Sequence[Node], shape: tuple[int, ...]) -> np.ndarray:
    """Nodes in row-major order as an array of that shape: of floats if all of them are constants, else of nodes."""
    if all(node.op == "constant" for node in nodes):
        return np.array([node.value for node in nodes], dtype=np.float64).reshape(shape)
    return array(np.array(nodes, dtype=object).reshape(shape))


def is_known(value: Any) -> bool:
    """Whether a number or node has a known value."""
    return not isinstance(value, Node) or value.op == "constant"


def may_differ(values: Any, number: float = 0.0, *, by: float = 0.0) -> bool:
    """Whether one of some numbers or nodes differs from a number by more than a little, or may turn out to differ."""
    known = [float(value) for value in _objects(values).ravel() if is_known(value)]
    return len(known) < np.size(values) or any(value != number and not abs(value - number) <= by for value in known)


def _objects(values: Any) -> np.ndarray:
    """The values as a plain array of objects, on which NumPy does not call our overrides."""
    return np.asarray(values, dtype=object).view(np.ndarray)


def _bare(result: Any) -> Any:
    """An Array, or the node itself if there are no dimensions."""
    plain = _objects(result)
    return plain.view(Array) if plain.ndim else plain[()]


def _elementwise(function: Callable[..., Any], *operands: Any) -> np.ndarray:
    arrays = np.broadcast_arrays(*(_objects(operand) for operand in operands))
    result = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(a[index] for a in arrays))
    return result


def _operation(op: str) -> Callable[..., Node]:
    return lambda *args: apply(op, *map(as_node, args))


def _swapped(op: str) -> Callable[..., Node]:
    return lambda x, y: apply(op, as_node(y), as_node(x))


_ELEMENTWISE: dict[np.ufunc, Callable[..., Any]] = {
    np.add: _operation("add"),
    np.subtract: _operation("sub"),
    np.multiply: _operation("mul"),
    np.true_divide: _operation("div"),
    np.negative: _operation("neg"),
    np.positive: as_node,
    np.sqrt: _operation("sqrt"),
    np.absolute: _operation("abs"),
    np.fabs: _operation("abs"),
    np.copysign: _operation("copysign"),
    np.minimum: _operation("min"),
    np.maximum: _operation("max"),
    np.sin: _operation("sin"),
    np.cos: _operation("cos"),
    np.tan: _operation("tan"),
    np.arcsin: _operation("asin"),
    np.arccos: _operation("acos"),
    np.arctan2: _operation("atan2"),
    np.arctan: lambda x: apply("atan2", as_node(x), as_node(1.0)),
    np.exp: _operation("exp"),
    np.log: _operation("log"),
    np.rint: _operation("round"),
    np.hypot: lambda x, y: apply("sqrt", as_node(x) ** 2 + as_node(y) ** 2),
    np.sign: lambda x: where(as_node(x) > 0.0, 1.0, where(as_node(x) < 0.0, -1.0, as_node(x))),
    np.square: lambda x: as_node(x) ** 2,
    np.reciprocal: lambda x: as_node(1.0) / as_node(x),
    np.power: lambda x, p: as_node(x) ** p,
    np.float_power: lambda x, p: as_node(x) ** p,
    np.less: _operation("lt"),
    np.less_equal: _operation("le"),
    np.greater: _swapped("lt"),
    np.greater_equal: _swapped("le"),
    np.equal: lambda x, y: as_node(x) == as_node(y),
    np.not_equal: lambda x, y: as_node(x) != as_node(y),
    np.isnan: lambda x: apply("not", apply("eq", as_node(x), as_node(x))),
    np.logical_and: _operation("and"),
    np.logical_or: _operation("or"),
    np.logical_not: _operation("not"),
    np.bitwise_and: _operation("and"),
    np.bitwise_or: _operation("or"),
    np.invert: _operation("not"),
}


_OPTIONS = {"axis", "keepdims", "dtype", "casting", "order", "subok"}  # supported, or meaningless for nodes
_DEFAULTS = {"where": True, "initial": np._NoValue}


def _ufunc(ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
    what = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if method == "reduce" and ufunc in _ELEMENTWISE:
        result = _reduce(ufunc, inputs[0], options.get("axis", 0), options.get("keepdims", False))
    elif method == "__call__" and ufunc is np.matmul:
        A, B = map(_objects, inputs)
        result = _matmul(A, B) if A.ndim == B.ndim == 2 else _times_vector(A, B)
    elif method == "__call__" and ufunc in _ELEMENTWISE:
        result = _elementwise(_ELEMENTWISE[ufunc], *inputs)
    elif method == "outer" and ufunc in _ELEMENTWISE:
        x, y = map(_objects, inputs)
        result = _elementwise(_ELEMENTWISE[ufunc], x.reshape(x.shape + (1,) * y.ndim), y)
    else:
        names = ", ".join(sorted({f.__name__ for f in _ELEMENTWISE}))
        raise GraphError(f"np.{what} of nodes is not supported; these are: matmul, {names}")
    for name, value in options.items():
        if name not in _OPTIONS and value is not _DEFAULTS.get(name):
            raise GraphError(f"np.{what} of nodes does not take the option {name!r}")
    if out is not None:
        (target,) = out
        if target.dtype != object:
            raise GraphError("nodes cannot be stored into an array of floats; build it with np.array([...])")
        target[...] = result
        return target
    return _bare(result)


def _matmul(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The product A B: by operations on rows if it is long, else term by term without terms that are known zeros."""
    if A.shape[1] != B.shape[0]:
        raise GraphError(f"matrices of {A.shape} and {B.shape} cannot be multiplied")
    if is_long_product(A, B) and has_unknown(A, B):
        return product(A, B)
    rows = [[(j, x) for j, x in enumerate(row) if not is_zero(x)] for row in B.tolist()]
    result = np.full((A.shape[0], B.shape[1]), constant(0.0), dtype=object)
    for i, row in enumerate(A.tolist()):
        total: dict[int, Any] = {}
        for x, others in zip(row, rows, strict=True):
            if not is_zero(x):
                for j, y in others:
                    total[j] = total[j] + x * y if j in total else x * y
        for j, value in total.items():
            result[i, j] = value
    return result


def _times_vector(A: np.ndarray, x: np.ndarray) -> Any:
    """The product A x, by operations on rows if A is long."""
    long = times_vector(A, x) if A.ndim == 2 and x.ndim == 1 and A.shape[1] == len(x) else None
    return np.matmul(A, x) if long is None else long


def _of_nodes(result: Any) -> Any:
    """The result of a NumPy function, with arrays of nodes in it made Arrays."""
    if isinstance(result, np.ndarray) and result.dtype == object:
        return result.view(Array)
    if type(result) in (list, tuple):
        return type(result)([_of_nodes(part) for part in result])
    return result


def _reduce(ufunc: np.ufunc, x: Any, axis: Any, keepdims: bool) -> np.ndarray:
    values = _objects(x)
    axes = normalize_axis_tuple(range(values.ndim) if axis is None else axis, values.ndim)
    kept = [i for i in range(values.ndim) if i not in axes]
    result = np.empty([values.shape[i] for i in kept], dtype=object)
    for index in np.ndindex(result.shape):
        row = _objects(values.transpose(*kept, *axes)[index]).ravel()
        if not row.size and ufunc.identity is None:
            raise GraphError(f"np.{ufunc.__name__}.reduce of no nodes has no value")
        total = as_node(row[0] if row.size else ufunc.identity)
        for value in row[1:]:
            total = _ELEMENTWISE[ufunc](total, value)
        result[index] = total
    return result.reshape([1 if i in axes else n for i, n in enumerate(values.shape)]) if keepdims else result


def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise GraphError("np.where of nodes takes a condition and two choices")
    x, y = choices
    return _bare(_elementwise(where, condition, x, y))


def _clip(x: Any, lower: Any, upper: Any) -> Any:
    return np.minimum(np.maximum(x, lower), upper)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {np.where: _where, np.clip: _clip}


def _node_ufunc(self: Node, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    return _ufunc(ufunc, method, *inputs, **kwargs)


def _node_function(self: Node, func: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if func in _FUNCTIONS:
        return _FUNCTIONS[func](*args, **kwargs)
    return _of_nodes(func(*map(_as_arrays, args), **kwargs))


def _as_arrays(value: Any) -> Any:
    """`value` with every node in it wrapped as an array without dimensions, as NumPy's functions expect."""
    if isinstance(value, Node):
        return array(value)
    return type(value)(map(_as_arrays, value)) if isinstance(value, list | tuple) else value


def _add_methods() -> None:
    """Gives nodes the methods that NumPy calls on elements of plain object arrays, such as np.array([x, y])."""
    for ufunc, function in _ELEMENTWISE.items():
        if ufunc.nin == 1 or ufunc in (np.arctan2, np.copysign):
            setattr(Node, ufunc.__name__, function)


_add_methods()
Node.__array_ufunc__ = _node_ufunc
Node.__array_function__ = _node_function
