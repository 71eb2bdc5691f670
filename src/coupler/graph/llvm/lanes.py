"""Numbers of many states in the layout of registers, which machine code reads in place."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from coupler.graph.llvm.copying import IN_LANES, LARGE

ALIGNMENT = 64  # bytes: a cache line, and the widest register


class InLanes(np.ndarray):
    """Numbers of a batch, (states, n), with a copy in the layout of registers: states innermost.

    Attributes:
        registers: (states, n) as well, with strides that only machine code understands (see `copy_unless_in_lanes`).
            Parts and copies of the array have none.
    """

    registers: np.ndarray | None = None

    @staticmethod
    def of(rows: np.ndarray, lanes: int) -> InLanes:
        """Args: numbers of at least one state, (states, n), and the number of states in a register."""
        (states, n), size = rows.shape, rows.itemsize
        count = -(-states // lanes)
        laid_out = _aligned(count * n * lanes * size).view(rows.dtype).reshape(count, n, lanes)
        whole = states // lanes
        laid_out[:whole] = rows[: whole * lanes].reshape(whole, lanes, n).swapaxes(1, 2)
        if whole < count:  # the last register is filled up with copies of the last state
            laid_out[-1] = rows[np.minimum(np.arange(whole * lanes, count * lanes), states - 1)].T
        result = rows.view(InLanes)
        result.registers = as_strided(laid_out, rows.shape, (n * size, IN_LANES), writeable=False)
        return result


def registers(count: int, lanes: int, size: int, dtype: np.dtype) -> np.ndarray:
    """Memory for `count` registers of states: (count, lanes, size), states innermost."""
    memory = _aligned(count * lanes * size * dtype.itemsize).view(dtype)
    return memory.reshape(count, size, lanes).swapaxes(1, 2)


def in_registers(array: np.ndarray, lanes: int) -> np.ndarray | None:
    """An array of (count, lanes, n) in the layout of `registers`, whole or in part, as machine code takes it.

    That is (count · lanes, n), with the strides of `InLanes`; None for another layout.
    """
    count, array_lanes, n = array.shape
    register = lanes * array.itemsize
    fits = array_lanes == lanes and n >= LARGE and array.strides[1:] == (array.itemsize, register)
    if not fits or array.strides[0] % register or array.ctypes.data % register:
        return None
    return as_strided(array, (count * lanes, n), (array.strides[0] // lanes, IN_LANES))


def _aligned(size: int) -> np.ndarray:
    """Memory of that many bytes, aligned to a cache line."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def for_machine_code(array: np.ndarray) -> np.ndarray:
    """The array that a batch's machine code reads."""
    if not isinstance(array, InLanes):
        return array
    return np.asarray(array) if array.registers is None else array.registers
