"""The compiler: traces NumPy functions once, differentiates them, and runs them anywhere. It knows nothing of robots.

    operations, expr, fold      scalar nodes, folded and shared (interning)
    walk                        graphs in the order of computation, with nodes replaced, as text
    array                       NumPy arrays of nodes
    diff, rewrite, measure      derivatives, named passes, operation counts and depth
    template                    functions with their numbers taken out
    table                       numbers that are looked up at computed places
    window, kernel, tracing     a function traced over the fields of its parameters
    parameters, hoist           numbers of tables that are inputs of a program
    program, records, builder   kernels looped over tables (checked by check)
    unroll                      a program as one straight line
    interpret, eager, llvm, c   the back ends, which run or render a program (executable, elementary, cache)

`compile` is the way to the back ends.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

import coupler.graph.fold  # noqa: F401  fills in the rules
from coupler.forks import imports
from coupler.graph.array import Array, array, is_known, may_differ, symbols
from coupler.graph.builder import Builder
from coupler.graph.diff import jacobian, jvp, second_directional, vjp
from coupler.graph.eager import Eager
from coupler.graph.errors import GraphError
from coupler.graph.executable import Executable, state_by_state
from coupler.graph.expr import Node, constant, symbol
from coupler.graph.hoist import hoisted
from coupler.graph.interpret import Interpreter
from coupler.graph.parameters import PARAMETERS, Parameters
from coupler.graph.program import Program
from coupler.graph.records import Records, constants, fields
from coupler.graph.table import Table
from coupler.graph.template import Template, template
from coupler.graph.tracing import View
from coupler.graph.unroll import unroll
from coupler.graph.window import Buffer, Constants, Field, Part, Slot, Vector, Window, symmetric

__all__ = [
    "PARAMETERS",
    "Array",
    "Backend",
    "Buffer",
    "Builder",
    "Constants",
    "Eager",
    "Executable",
    "Field",
    "GraphError",
    "Interpreter",
    "Node",
    "Parameters",
    "Part",
    "Program",
    "Records",
    "Slot",
    "Table",
    "Template",
    "Vector",
    "View",
    "Window",
    "array",
    "compile",
    "constant",
    "constants",
    "fields",
    "is_known",
    "jacobian",
    "jvp",
    "may_differ",
    "second_directional",
    "state_by_state",
    "symbol",
    "symbols",
    "symmetric",
    "template",
    "unroll",
    "vjp",
]


Backend = Literal["llvm", "interpreter", "python"]


def compile(
    program: Program,
    dtype: Any = np.float64,
    *,
    backend: Backend = "llvm",
    threads: int = 1,
    prepared: bool = False,
) -> Executable:
    """The program, ready to be called.

    Args:
        program: what to run.
        dtype: float64 or float32.
        backend: "llvm" for machine code, "interpreter" for the NumPy reference, "python" to call the functions of the
            kernels row by row on floats, for a debugger.
        threads: how many threads share a batch (machine code only).
        prepared: whether parameters will be given as `Executable.preparation` returns them (machine code only), so that
            whatever depends on parameters alone is computed once for many calls.
    """
    if backend == "interpreter":
        return Interpreter(program, dtype)
    if backend == "python":
        return Eager(program, dtype)
    if backend == "llvm":
        with imports():
            from coupler.graph.llvm import Native  # imported here: the rest works without LLVM

        parts = hoisted(program) if prepared else None
        if parts is None:
            return Native(program, dtype, threads=threads)
        executable = Native(parts[1], dtype, threads=threads)
        executable.preparation = Native(parts[0], threads=threads)
        return executable
    raise GraphError(f"no back end is called {backend!r}; there are 'llvm', 'interpreter' and 'python'")
