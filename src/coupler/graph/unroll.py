"""Unrolling: runs a program's loops at compile time, which leaves one straight line.

A pass from program to program. Constants of tables are folded in, intermediate results stay in registers, and unused
results are dropped. For small robots, and on GPUs, that is faster than looping. The code grows with the robot, and the
time to compile it grows faster: beyond some 10,000 operations it takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.graph.builder import Builder
from coupler.graph.errors import GraphError
from coupler.graph.expr import Node, constant, symbol
from coupler.graph.program import Loop, Program, Repeat, Step
from coupler.graph.records import fields
from coupler.graph.tracing import View
from coupler.graph.walk import substitute
from coupler.graph.window import Buffer


def unroll(program: Program) -> Program:
    """A program unrolled: a single kernel from its inputs to its outputs.

    Raises:
        GraphError: if the program repeats steps until a condition holds, or skips rows: what it does is known only when
            it runs.
    """
    memory = {
        b: [symbol(f"{b.name}[{i}]") if b.role == "input" else None for i in range(b.size)] for b in program.buffers
    }
    _run(program, program.steps, memory)

    b = Builder(program.name)
    slots = {}
    for buffer in (*program.inputs, *program.outputs):
        make = b.input if buffer.role == "input" else b.output
        slots[buffer.name] = make(buffer.name, buffer.size).at(0, buffer.size)

    def straight(state: View) -> None:
        loaded = {x: node for i in program.inputs for x, node in zip(memory[i], getattr(state, i.name), strict=True)}
        for buffer in program.outputs:
            setattr(state, buffer.name, np.array(substitute(memory[buffer], loaded), dtype=object))  # type: ignore[arg-type]

    straight.__name__ = program.name
    b.loop(straight, state=fields(**slots))
    return b.build()


def _run(program: Program, steps: Sequence[Step], memory: dict[Buffer, list[Node | None]]) -> None:
    """Runs the steps of a program on nodes, as the interpreter does on arrays."""
    for step in steps:
        if isinstance(step, Repeat):
            raise GraphError(f"program {program.name!r} cannot be unrolled: it repeats until {step.until.kernel.name}")
        for case, row in step.turns() if isinstance(step, Loop) else ():
            if case.flags:
                raise GraphError(f"program {program.name!r} cannot be unrolled: states leave out {case.kernel.name}")
            kernel = case.kernel
            values: dict[Node, Node] = {n: constant(case.constants[row, c]) for n, c in kernel.constants.items()}
            for node, at in kernel.loads.items():
                buffer, element = case.element(row, at)
                values[node] = memory[buffer][element]  # type: ignore[assignment]
            for at, node in zip(kernel.stores, substitute(kernel.outputs, values), strict=True):
                buffer, element = case.element(row, at)
                memory[buffer][element] = node
