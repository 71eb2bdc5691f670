"""Programs run as machine code: one state at once, or batches in lanes and threads."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from coupler.graph.errors import GraphError
from coupler.graph.executable import STATE_BY_STATE, Executable, ShortWay, no_short_way
from coupler.graph.interning import uncollected
from coupler.graph.llvm.bound import Entry, builtin, c_function
from coupler.graph.llvm.copying import LARGE
from coupler.graph.llvm.entry import (
    FINITE,
    REFUSED,
    array_layout_is_known,
    batch_entry,
    fits_on_stack,
    one_state_entry,
    piece,
)
from coupler.graph.llvm.jit import Code, compile_text
from coupler.graph.llvm.lanes import InLanes, for_machine_code, in_registers, registers
from coupler.graph.llvm.render import Renderer
from coupler.graph.llvm.target import Effort, Target, chosen
from coupler.graph.parameters import PARAMETERS
from coupler.graph.program import Program
from coupler.graph.window import Buffer
from coupler.threads import together

_LARGE = 7_500  # lines of a kernel, which would take seconds to compile with all effort: not worth it for one state
_HUGE = 10_000  # lines of a kernel, which would take seconds even with less effort
_LONG = 40_000  # lines of a module, which take the better part of a second to compile with all effort
_TICK = 1e-9  # s: no part of a batch takes less
_CALM = 0.05  # s that a part of a batch may run while Ctrl-C waits
_FIRST = 16  # pieces in the first part of a batch, before its speed is known
_COUNTER = np.dtype(np.int64)  # of states that threads have taken
_ARRAYS_ARE_READABLE = array_layout_is_known()  # else a single state is run as a batch of one


class Native(Executable):
    """A program compiled for this processor; see `Executable` for how to call it.

    Compilation happens at the first call of each kind (one state, batch), or in `prepare`, and is cached on disk.
    Calls from several Python threads are safe. The interpreter lock is released while a batch or a long program runs.

    Attributes:
        threads: how many threads share a batch.
        target: the processor to compile for; by default this one, or what COUPLER_TARGET names.
        lanes: how many states of a batch share a register.
    """

    def __init__(
        self, program: Program, dtype: Any = np.float64, *, threads: int = 1, target: Target | None = None
    ) -> None:
        super().__init__(program, dtype)
        if threads < 1:
            raise GraphError(f"threads must be 1 or more, got {threads}")
        self.threads = threads
        self.target = target or chosen()
        self.lanes = self.target.lanes(self.dtype)
        self._piece = piece(program, self.lanes)
        self._calm = _FIRST * self._piece  # states of a batch that run at once
        self._output_sizes = [b.size for b in program.outputs]
        self._may_be_in_lanes = any(b.name == PARAMETERS for b in program.inputs)
        self._one: Entry | None = None
        self._batch: Entry | None = None

    def prepare(self, *, batch: bool = False) -> Code:
        """Compiles now what the first call with one state, or with a batch, would compile."""
        return (self._batch_entry() if batch else self._one_entry()).code

    def __call__(self, *inputs: Any, out: Any = None, check: bool = False, **named: Any) -> Any:
        if out is None and not check and not named and len(inputs) == len(self._inputs):
            result = self.one(*inputs)
            return self.answer(*inputs)[0] if result is None else result
        return super().__call__(*inputs, out=out, check=check, **named)

    __call__.__doc__ = Executable.__call__.__doc__

    def room(self, states: int, size: int) -> np.ndarray:
        """See `Executable.room`."""
        if size < LARGE or self.lanes == 1 or not _ARRAYS_ARE_READABLE:
            return super().room(states, size)
        return registers(-(-states // self.lanes), self.lanes, size, self.dtype)

    def fill(self, out: np.ndarray, *inputs: np.ndarray) -> bool:
        """See `Executable.fill`; plain arrays, and those of `room`, go straight to machine code."""
        arrays = [*inputs, out]
        plain = all(type(a) is np.ndarray and a.dtype == self.dtype and a.ndim == out.ndim for a in inputs)
        shapes = [(*out.shape[:-1], b.size) for b in (*self._inputs, *self._outputs)]
        if plain and [a.shape for a in arrays] == shapes and not any(np.may_share_memory(a, out) for a in inputs):
            if out.ndim == 3 and (in_place := in_registers(out, self.lanes)) is not None:
                arrays = [_flat_or_in_registers(a, self.lanes) for a in inputs] + [in_place]
            if arrays[-1].ndim == 2 and (code := self._share(self._batch_entry(), len(arrays[-1]), tuple(arrays))):
                return code == FINITE
        return super().fill(out, *inputs)

    def answer(self, *inputs: Any) -> tuple[Any, bool]:
        """See `Executable.answer`.

        One state, or a batch with one leading dimension, in plain arrays goes straight to machine code.
        """
        first = inputs[0] if inputs else None
        if _ARRAYS_ARE_READABLE and type(first) is np.ndarray and 0 < first.ndim < 3:
            entry = self._one if first.ndim == 1 else self._batch
            if entry is not None:  # else it is compiled first
                results = [np.empty((*first.shape[:-1], size), self.dtype) for size in self._output_sizes]
                arrays = (*inputs, *results)
                code = entry.run(*arrays) if first.ndim == 1 else self._share(entry, len(first), arrays)
                if code:
                    return results[0] if len(results) == 1 else tuple(results), code == FINITE
        return super().__call__(*inputs), False

    @property
    def fast(self) -> ShortWay:
        """See `Executable.fast`."""
        return self._short_way(self._many) if len(self._output_sizes) == 1 else no_short_way

    def _short_way(self, otherwise: ShortWay) -> ShortWay:
        """The fast path for one state; for arrays that its machine code refuses, or that are not finite, `otherwise`.

        Three inputs are spelled out, because collecting arguments costs 100 ns.
        """
        run = _refuse if self._one is None else self._one.run
        empty, size, dtype = np.empty, self._output_sizes[0], self.dtype

        def of_any(*inputs: Any) -> np.ndarray | None:
            result = empty(size, dtype)
            return result if run(*inputs, result) == FINITE else otherwise(*inputs)

        def of_three(q: Any, v: Any, x: Any) -> np.ndarray | None:
            result = empty(size, dtype)
            return result if run(q, v, x, result) == FINITE else otherwise(q, v, x)

        way = of_three if len(self._inputs) == 3 else of_any
        way.__dict__["entry"] = self._one  # keeps the code and its tables alive
        return way

    def _many(self, *inputs: Any) -> np.ndarray | None:
        """The fast path for a batch with one leading dimension."""
        first = inputs[0]
        if self._batch is None or type(first) is not np.ndarray or first.ndim != 2 or not _ARRAYS_ARE_READABLE:
            return None
        result = np.empty((len(first), self._output_sizes[0]), self.dtype)
        code = self._share(self._batch, len(first), (*inputs, result))
        return result if code == FINITE else None

    def prepared(self, parameters: np.ndarray) -> np.ndarray:
        """See `Executable.prepared`; for a batch, the result also has a copy in the layout of registers."""
        rows = super().prepared(parameters)
        in_lanes = rows.ndim == 2 and rows.size and rows.dtype == self.dtype and self.lanes > 1 and _ARRAYS_ARE_READABLE
        return InLanes.of(rows, self.lanes) if in_lanes else rows

    def _input(self, buffer: Buffer, value: Any) -> np.ndarray:
        in_lanes = isinstance(value, InLanes) and value.dtype == self.dtype and value.shape[1:] == (buffer.size,)
        return value if in_lanes else super()._input(buffer, value)

    def _share(self, entry: Entry, states: int, arrays: tuple[np.ndarray, ...]) -> int:
        """Runs a batch in as many threads as pay off; a batch that takes long runs in parts."""
        if states > self._calm:
            return self._share_parts(entry, states, arrays)
        if self._may_be_in_lanes:
            arrays = tuple(map(for_machine_code, arrays))
        arguments = (*arrays, np.zeros(1, _COUNTER))
        if self.threads == 1 or states <= self._piece:
            return entry.run(*arguments)
        return max(together(entry.run, arguments, min(self.threads, -(-states // self._piece))))

    def _share_parts(self, entry: Entry, states: int, arrays: tuple[np.ndarray, ...]) -> int:
        """Runs a batch in parts of some hundredths of a second each, so that Python can handle Ctrl-C between them.

        The size of a part follows from the speed of the part before.
        """
        if self._may_be_in_lanes:
            arrays = tuple(map(for_machine_code, arrays))
        if any(type(array) is not np.ndarray or array.ndim != 2 or len(array) != states for array in arrays):
            return REFUSED
        first, answer = 0, FINITE
        while first < states and answer:
            last, start = min(first + self._calm, states), perf_counter()
            answer_of_part = self._share(entry, last - first, tuple(array[first:last] for array in arrays))
            self._calm = self._states_in(_CALM / max(perf_counter() - start, _TICK) * (last - first))
            first, answer = last, max(answer, answer_of_part) if answer_of_part else REFUSED
        return answer

    def _states_in(self, states: float) -> int:
        """A number of states, rounded down to multiples of what a thread takes at a time."""
        return max(int(states) // self._piece, 1) * self._piece

    def _run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        states = len(outputs[0]) if outputs else 0
        if _ARRAYS_ARE_READABLE and (states == 1 or (self._batch is None and STATE_BY_STATE.get())):
            plain = [np.empty(a.shape[1], self.dtype) for a in (*inputs, *outputs)]
            for state in range(states):
                for copy, given in zip(plain, inputs, strict=False):
                    copy[:] = given[state]
                if not self._one_entry().run(*plain):
                    raise GraphError("machine code refuses arrays as this NumPy makes them")
                for target, result in zip(outputs, plain[len(inputs) :], strict=True):
                    target[state] = result
        elif states:
            # A view, because machine code compares dtypes by address, and equal ones may be different objects.
            arrays = tuple(for_machine_code(a).view(self.dtype) for a in (*inputs, *outputs))
            if not self._share(self._batch_entry(), states, arrays):
                raise GraphError("machine code refuses arrays as this NumPy makes them")

    def _one_entry(self) -> Entry:
        if self._one is None:
            with uncollected():
                renderer = Renderer(self.program, self.dtype, 1, self.target.fused, self.lanes)
                text = renderer.text + one_state_entry(renderer)
            effort = _effort(text) if renderer.largest <= _LARGE else Effort.SPARING
            effort = effort if renderer.largest <= _HUGE else Effort.QUICK
            code = compile_text(text, "one", self.target, effort, renderer.library)
            shared, bind = fits_on_stack(renderer), partial(builtin, code.address, self.dtype)
            size = 0 if shared else self.program.scratch_size * self.dtype.itemsize
            self._one = Entry(code, renderer.tables, size, bind, shared)
            if len(self._output_sizes) == 1:
                self.one = self._short_way(no_short_way)
        return self._one

    def _batch_entry(self) -> Entry:
        if self._batch is None:
            with uncollected():
                renderer = Renderer(self.program, self.dtype, self.lanes, self.target.fused)
                text = renderer.text + batch_entry(renderer)
            entry = "batch" if _ARRAYS_ARE_READABLE else "states"
            code = compile_text(text, entry, self.target, _effort(text), renderer.library)
            numbers = sum(b.size for b in (*self.program.inputs, *self.program.outputs)) + self.program.scratch_size
            size = numbers * self.lanes * self.dtype.itemsize
            bind = partial(builtin, code.address, self.dtype) if _ARRAYS_ARE_READABLE else partial(c_function, code)
            self._batch = Entry(code, renderer.tables, size, bind)
        return self._batch


def _flat_or_in_registers(array: np.ndarray, lanes: int) -> np.ndarray:
    """An input of (registers, lanes, n) as a batch."""
    in_place = in_registers(array, lanes)
    return array.reshape(-1, array.shape[2]) if in_place is None else in_place


def _effort(text: str) -> Effort:
    return Effort.SPARING if text.count("\n") > _LONG else Effort.FULL


def _refuse(*arguments: Any) -> int:
    """Stands in for machine code where there is none: it refuses all arrays."""
    return REFUSED
