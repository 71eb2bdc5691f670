"""How a program is called from Python, whatever runs it: arguments checked, batches laid out, results fresh."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.graph.errors import GraphError
from coupler.graph.program import Program
from coupler.graph.window import Buffer

__all__ = ["Executable"]


class Executable(ABC):
    """A program ready to run: call it with its inputs, in order or by name, and get its outputs.

    An input of shape (..., size) is a batch over its leading dimensions; those of all inputs are broadcast. Arrays may
    have any strides and be read-only. One output is returned as an array, several as a tuple in the program's order.

    Attributes:
        program: what is run.
        dtype: float64 or float32; inputs must convert to it without loss of kind.
    """

    def __init__(self, program: Program, dtype: Any = np.float64) -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float64, np.float32):
            raise GraphError(f"programs run in float64 or float32, not {self.dtype}")

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
        buffers = self.program.inputs
        arrays = [self._input(b, value) for b, value in zip(buffers, self._bind(inputs, named), strict=True)]
        try:
            batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
        except ValueError:
            shapes = ", ".join(f"{b.name}: {a.shape[:-1]}" for b, a in zip(buffers, arrays, strict=True))
            raise GraphError(f"the inputs' leading (batch) dimensions do not fit together: {shapes}") from None
        if check:
            for buffer, values in zip(buffers, arrays, strict=True):
                _check_finite(buffer, values)
        results = self._outputs(out, batch)
        if out is not None:
            # A result may be written while another state still reads: an input that shares its memory is copied.
            arrays = [a.copy() if any(np.may_share_memory(a, r) for r in results) else a for a in arrays]
        states = int(np.prod(batch, dtype=int))
        flat = [np.broadcast_to(a, batch + a.shape[-1:]).reshape(states, a.shape[-1]) for a in arrays]
        targets = [_flat_view(r, states) for r in results]
        self._run(flat, targets)
        for result, target in zip(results, targets, strict=True):
            if not np.may_share_memory(result, target):  # strides that no flat view can express
                result[...] = target.reshape(result.shape)
        return results[0] if len(results) == 1 else tuple(results)

    def _bind(self, inputs: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        names = [b.name for b in self.program.inputs]
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
        values = np.asarray(value)
        if not np.can_cast(values.dtype, self.dtype, "safe") and values.dtype.kind not in "iu":
            raise GraphError(
                f"input {buffer.name!r} is {values.dtype}; this program runs in {self.dtype}: "
                f"convert it with .astype({str(self.dtype)!r})"
            )
        if values.ndim == 0 or values.shape[-1] != buffer.size:
            raise GraphError(f"input {buffer.name!r} has shape {values.shape}; expected (..., {buffer.size})")
        return values.astype(self.dtype, copy=False)

    def _outputs(self, out: Any, batch: tuple[int, ...]) -> list[np.ndarray]:
        buffers = self.program.outputs
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
                found = f"{target.dtype} of {target.shape}" if isinstance(target, np.ndarray) else type(target).__name__
                raise GraphError(
                    f"out for {buffer.name!r} must be {self.dtype} of {(*batch, buffer.size)}, got {found}"
                )
            if not target.flags.writeable:
                raise GraphError(f"out for {buffer.name!r} is read-only")
        return given


def _flat_view(values: np.ndarray, states: int) -> np.ndarray:
    return values.reshape(states, values.shape[-1])


def _check_finite(buffer: Buffer, values: np.ndarray) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size:
        *state, element = (int(i) for i in wrong[0])
        where = f" of state {tuple(state) if len(state) > 1 else state[0]}" if state else ""
        raise GraphError(f"input {buffer.name!r}: element {element}{where} is {values[tuple(wrong[0])]}")
