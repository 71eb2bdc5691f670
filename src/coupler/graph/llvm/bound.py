"""Machine code bound to memory that it works in, as functions that Python calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.graph.llvm.jit import Code
from coupler.graph.llvm.lanes import ALIGNMENT

Bound = Callable[..., Any]  # machine code with the memory it works in


class Entry:
    """A function in machine code, bound to memory that it works in.

    Concurrent calls use separate bindings with separate arenas. A function that needs no arena has one binding for all.
    """

    def __init__(
        self,
        code: Code,
        tables: list[np.ndarray | int],
        arena_size: int,
        bind: Callable[[np.ndarray], Bound],
        shared: bool = False,
    ) -> None:
        self.code, self._tables, self._arena_size, self._bind = code, tables, arena_size, bind
        addresses = [entry if isinstance(entry, int) else entry.ctypes.data for entry in tables]
        self._table = np.array(addresses, dtype=np.int64)
        self._arenas: list[np.ndarray] = []
        self._free: list[Bound] = []  # list.pop and list.append are atomic
        self.run: Bound = self._new() if shared else self._pooled

    def _pooled(self, *arguments: Any) -> Any:
        try:
            function = self._free.pop()
        except IndexError:
            function = self._new()
        try:
            return function(*arguments)
        finally:
            self._free.append(function)

    def _new(self) -> Bound:
        arena = np.empty(self._arena_size + ALIGNMENT, np.uint8)
        aligned = -(-arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        self._arenas.append(arena)
        return self._bind(np.array([self._table.ctypes.data, aligned], dtype=np.int64))


_NAME = ctypes.create_string_buffer(b"one")
_METH_FASTCALL = 0x0080
_NEW_BUILTIN = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def builtin(address: int, dtype: np.dtype, context: np.ndarray) -> Bound:
    """A Python builtin whose self is the context; see entry.py.

    CPython's PyMethodDef (name, function, flags, documentation) is in the same array, so that it lives as long as self.
    """
    definition = (ctypes.addressof(_NAME), address, _METH_FASTCALL, 0)
    full = np.array([*context, id(np.ndarray), id(dtype), *definition], dtype=np.int64)
    return _NEW_BUILTIN(full[4:].ctypes.data, full, None)


def c_function(code: Code, context: np.ndarray) -> Bound:
    """A function that runs a batch whatever NumPy's array layout: C code that is given addresses and strides."""
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p)(code.address)

    def batch(*arguments: np.ndarray) -> int:
        *arrays, following = arguments
        table = np.array([(a.ctypes.data, *a.strides) for a in arrays], dtype=np.int64)
        return function(context.ctypes.data, table.ctypes.data, len(arrays[-1]), following.ctypes.data)

    return batch
