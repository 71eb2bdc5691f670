"""How programs are called, whatever back end runs them: checks arguments, lays out batches, makes results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from coupler.graph.errors import GraphError
from coupler.graph.program import Program
from coupler.graph.window import Buffer

STATE_BY_STATE = ContextVar("STATE_BY_STATE", default=False)

ShortWay = Callable[..., "np.ndarray | None"]  # inputs → the result, or None


def no_short_way(*inputs: Any) -> None:
    """A fast path that never has a result, for programs without one."""


@contextmanager
def state_by_state() -> Iterator[None]:
    """Runs batches as single states one after another, unless their code is compiled already.

    Meant for the few batches that are needed before a robot first moves, which take longer to compile than to run.
    """
    before = STATE_BY_STATE.set(True)
    try:
        yield
    finally:
        STATE_BY_STATE.reset(before)


class Executable(ABC):
    """A program ready to run: call it with its inputs, in order or by name, and get its outputs.

    An input of shape (..., size) is a batch over its leading dimensions; those of all inputs are broadcast. Arrays may
    have any strides and be read-only. One output is returned as an array, several as a tuple in the program's order.

    Attributes:
        program: what is run.
        dtype: float64 or float32; inputs must convert to it without loss of kind.
        one: the fast path for a program with one output and one state in plain arrays of the right type. It returns the
            result, or None for other arrays, if not all numbers are finite, or as long as no code is compiled.
        preparation: computes, in float64, what takes the place of parameters as the last input; None if parameters are
            passed as they are.
    """

    def __init__(self, program: Program, dtype: Any = np.float64) -> None:
        self.program = program
        if not isinstance(program, Program):
            raise GraphError(f"expected a program, got {type(program).__name__}; a Builder's program is its build()")
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise GraphError(f"programs run in float64 or float32, not {np.dtype(dtype)}")
        self.dtype = np.dtype(np.float64 if np.dtype(dtype) == np.float64 else np.float32)  # NumPy's own instance
        self._inputs, self._outputs = program.inputs, program.outputs
        self.one: ShortWay = no_short_way
        self.preparation: Executable | None = None

    @property
    def fast(self) -> ShortWay:
        """As `one`, but also for batches with one leading dimension.

        It uses only code that is compiled by now: ask for it again after a call of another kind.
        """
        return self.one

    @abstractmethod
    def _run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        """Fills outputs from inputs, all of shape (states, size) and of the right type, with any strides."""

    def __call__(self, *inputs: Any, out: Any = None, check: bool = False, **named: Any) -> Any:
        """Runs the program.

        Args:
            inputs: arrays of shape (..., size), in the order of `program.inputs`.
            named: the rest of the inputs by name.
            out: the array to write to, or a tuple of them; made anew if not given.
            check: whether inputs that are infinite or not a number are refused.
        """
        arrays = [self._input(b, value) for b, value in zip(self._inputs, self._bind(inputs, named), strict=True)]
        batch = self._batch_shape(arrays)
        if check:
            for buffer, values in zip(self._inputs, arrays, strict=True):
                _check_finite(buffer, values)
        results = self._results(out, batch)
        if out is not None:
            # A result may be written while another state still reads: an input that shares its memory is copied.
            arrays = [a.copy() if any(np.may_share_memory(a, r) for r in results) else a for a in arrays]
        states = math.prod(batch)
        flat = [a if a.shape[:-1] == (states,) else _flat(np.broadcast_to(a, batch + a.shape[-1:])) for a in arrays]
        targets = [r if r.ndim == 2 else _flat(r) for r in results]
        self._run(flat, targets)
        for result, target in zip(results, targets, strict=True):
            if target is not result and not np.may_share_memory(result, target):  # no flat view has these strides
                result[...] = target.reshape(result.shape)
        return results[0] if len(results) == 1 else tuple(results)

    def fill(self, out: np.ndarray, *inputs: np.ndarray) -> bool:
        """Runs a batch of a program with one output into an array; returns whether all are known to be finite."""
        self(*inputs, out=out)
        return False

    def room(self, states: int, size: int) -> np.ndarray:
        """Memory for `size` numbers of each state, in the layout in which a batch runs fastest.

        Returns:
            (states, size); or (registers, lanes, size), where the last register may have lanes to spare.
        """
        return np.empty((states, size), self.dtype)

    def prepared(self, parameters: np.ndarray) -> np.ndarray:
        """The last input of a call, for parameters of shape (..., n)."""
        return parameters if self.preparation is None else self.preparation(parameters)

    def answer(self, *inputs: Any) -> tuple[Any, bool]:
        """The result of a call with these inputs, and whether inputs and results are known to be finite."""
        return self(*inputs), False

    def _batch_shape(self, arrays: list[np.ndarray]) -> tuple[int, ...]:
        shapes = [a.shape[:-1] for a in arrays]
        if not shapes or all(shape == shapes[0] for shape in shapes):
            return shapes[0] if shapes else ()
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            shapes_by_name = ", ".join(f"{b.name}: {shape}" for b, shape in zip(self._inputs, shapes, strict=True))
            raise GraphError(f"the inputs' leading (batch) dimensions do not fit together: {shapes_by_name}") from None

    def __reduce__(self) -> Any:
        raise GraphError("a program that is ready to run cannot be copied or pickled: compile it where it is needed")

    def _bind(self, inputs: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        names = [b.name for b in self._inputs]
        if not named and len(inputs) == len(names):
            return list(inputs)
        call = f"{self.program.name}({', '.join(names)})"
        if len(inputs) > len(names):
            raise GraphError(f"{call} takes {len(names)} inputs, got {len(inputs)}")
        given = dict(zip(names, inputs, strict=False))
        for name, value in named.items():
            if name not in names or name in given:
                raise GraphError(f"{call}: {name!r} is {'given twice' if name in given else 'not an input'}")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise GraphError(f"{call}: {missing[0]!r} is missing")
        return [given[name] for name in names]

    def _input(self, buffer: Buffer, value: Any) -> np.ndarray:
        try:
            values = np.asarray(value)
        except ValueError:
            raise GraphError(f"input {buffer.name!r} is not an array: its rows have different lengths") from None
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            raise GraphError(f"input {buffer.name!r} has masked entries, which have no value; give them one")
        if values.dtype.kind not in "biuf":
            what = "None" if value is None else values.dtype
            raise GraphError(f"input {buffer.name!r} is {what}, not an array of real numbers")
        if values.dtype != self.dtype and not (np.can_cast(values.dtype, self.dtype) or values.dtype.kind in "iu"):
            raise GraphError(
                f"input {buffer.name!r} is {values.dtype}; this program runs in {self.dtype}: "
                f"convert it with np.asarray(x, dtype=np.{self.dtype})"
            )
        if values.ndim == 0 or values.shape[-1] != buffer.size:
            raise GraphError(f"input {buffer.name!r} has shape {values.shape}; expected (..., {buffer.size})")
        return values.astype(self.dtype, copy=False)

    def _results(self, out: Any, batch: tuple[int, ...]) -> list[np.ndarray]:
        buffers = self._outputs
        if out is None:
            return [np.empty((*batch, b.size), self.dtype) for b in buffers]
        given = list(out) if isinstance(out, tuple | list) else [out]
        if len(given) != len(buffers):
            raise GraphError(f"{self.program.name} has {len(buffers)} outputs; out gives {len(given)} arrays")
        for buffer, target in zip(buffers, given, strict=True):
            if (
                not isinstance(target, np.ndarray)
                or target.dtype != self.dtype
                or target.shape != (*batch, buffer.size)
            ):
                got = f"{target.dtype} of {target.shape}" if isinstance(target, np.ndarray) else type(target).__name__
                raise GraphError(f"out for {buffer.name!r} must be {self.dtype} of {(*batch, buffer.size)}, got {got}")
            if not target.flags.writeable:
                raise GraphError(f"out for {buffer.name!r} is read-only")
        for i, target in enumerate(given):
            if any(np.may_share_memory(target, other) for other in given[:i]):
                raise GraphError(f"out for {buffers[i].name!r} shares its memory with another output")
        return given


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(math.prod(values.shape[:-1]), values.shape[-1])


def _check_finite(buffer: Buffer, values: np.ndarray) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size:
        *state, element = (int(i) for i in wrong[0])
        where = f" of state {tuple(state) if len(state) > 1 else state[0]}" if state else ""
        raise GraphError(f"input {buffer.name!r}: element {element}{where} is {values[tuple(wrong[0])]}")
