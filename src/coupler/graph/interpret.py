"""The reference back end: runs a program with NumPy, one operation at a time, all states at once.

It is slow and simple, and defines what a program means: every other back end is tested against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coupler.graph.executable import Executable
from coupler.graph.kernel import Case
from coupler.graph.operations import OPERATIONS
from coupler.graph.program import Loop, Repeat, Step
from coupler.graph.window import Buffer

Memory = Mapping[Buffer, np.ndarray]  # of shape (size, states)


class Interpreter(Executable):
    """A program run by NumPy; see `Executable` for how to call it."""

    def _run(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        states = next((len(a) for a in (*inputs, *outputs)), 1)
        memory = {b: np.full((b.size, states), np.nan, self.dtype) for b in self.program.buffers}
        for buffer, values in zip(self.program.inputs, inputs, strict=True):
            memory[buffer][:] = values.T
        with np.errstate(all="ignore"):  # the machine does not stop at a division by zero either
            _run_steps(self.program.steps, memory, np.ones(states, bool))
        for buffer, values in zip(self.program.outputs, outputs, strict=True):
            values[:] = memory[buffer].T


def _run_steps(steps: Sequence[Step], memory: Memory, active: np.ndarray) -> None:
    for step in steps:
        if isinstance(step, Loop):
            for case, row in step.turns():
                _run_row(case, row, memory, active)
            continue
        if not isinstance(step, Repeat):
            continue
        going = active
        for _ in range(step.at_most):
            (done,) = _evaluate(step.until, 0, memory)
            going = going & ~done
            if not going.any():
                break
            _run_steps(step.body, memory, going)


def _run_row(case: Case, row: int, memory: Memory, active: np.ndarray) -> None:
    for flags in case.flags:
        active = active & (memory[flags.buffer][flags.elements[row]] != 0.0)
    if not active.any():
        return
    for at, value in zip(case.kernel.stores, _evaluate(case, row, memory), strict=True):
        buffer, element = case.element(row, at)
        target = memory[buffer][element]
        target[:] = np.where(active, value, target)


def _evaluate(case: Case, row: int, memory: Memory) -> list[np.ndarray]:
    dtype = next(iter(memory.values())).dtype
    kernel = case.kernel
    value = {}
    for node, at in kernel.loads.items():
        buffer, element = case.element(row, at)
        value[node] = memory[buffer][element].copy()
    for node, column in kernel.constants.items():
        value[node] = case.constants[row, column].astype(dtype)
    for node in kernel.nodes:
        if node.op == "constant":
            value[node] = np.bool_(node.value) if node.logical else dtype.type(node.value)
        elif node.op == "rows":
            value[node] = node.table.run([value[arg] for arg in node.args])
        elif node.op == "part":
            value[node] = value[node.args[0]][node.value]
        elif node not in value:
            function = OPERATIONS[node.op].evaluate if node.table is None else node.table.look_up
            value[node] = function(*(value[arg] for arg in node.args))
    return [value[node] for node in kernel.outputs]
