"""Splits a program: what depends on its parameters only becomes a program that runs once for many calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coupler.graph.expr import symbol
from coupler.graph.kernel import Case, Kernel, Location, Source
from coupler.graph.parameters import PARAMETERS
from coupler.graph.program import Loop, Program, Repeat, Step
from coupler.graph.window import Buffer


def hoisted(program: Program) -> tuple[Program, Program] | None:
    """A program that prepares parameters, and the rest, whose last input is what the first one returns.

    Prepared numbers that one row reads lie side by side, in the order in which rows first need them. Both programs are
    for machine code, and have lost the Python functions of their kernels.

    Returns:
        The two programs, or None for a program without parameters.
    """
    if not program.inputs or program.inputs[-1].name != PARAMETERS:
        return None
    return _Hoisting(program).programs()


class _Hoisting:
    """Splits one program into preparation and rest."""

    def __init__(self, program: Program) -> None:
        self._program, self._given = program, program.inputs[-1]
        self._first = program.steps[: program.leading]
        first = Program(program.name, program.buffers, self._first)
        written = (case.buffers[at.pointer] for case in first.cases() for at in case.kernel.stores)
        self._known = dict.fromkeys((self._given, *written))
        self._rest = Program(program.name, program.buffers, program.steps[program.leading :])
        self._starts: dict[tuple[tuple[Buffer, int], ...], int] = {}  # where the numbers that a row reads start
        self._sources: list[tuple[Buffer, int]] = []  # where each prepared number comes from
        for case in self._rest.cases():
            for pointer in self._pointers(case):
                for read in self._read(case, pointer):
                    if read not in self._starts:
                        self._starts[read] = len(self._sources)
                        self._sources += read
        self._prepared = Buffer(PARAMETERS, len(self._sources), "input")
        self._kernels: dict[tuple[Kernel, tuple[int, ...]], Kernel] = {}

    def programs(self) -> tuple[Program, Program]:
        buffers = (*(b for b in self._program.buffers if b not in self._known), self._prepared)
        steps = tuple(map(self._taking, self._rest.steps))
        return self._preparation(), replace(self._rest, buffers=buffers, steps=steps)

    def _preparation(self) -> Program:
        """The first steps, and a copy of what the rest reads of their results."""
        result, x = Buffer("prepared", len(self._sources), "output"), symbol("x")
        kernel, copies = Kernel("prepare", {x: Location(0, 0)}, {}, (Location(1, 0),), (x,), 2, [x]), list[Step]()
        for buffer in self._known:
            bases = [(element, i) for i, (owner, element) in enumerate(self._sources) if owner is buffer]
            if bases:
                table = np.array(bases, np.int64)
                case = Case(kernel, (buffer, result), table, np.empty((len(bases), 0)), Source(_nothing, {}))
                copies.append(Loop((case,), np.zeros(len(bases), np.int32)))
        return Program(f"{self._program.name}_parameters", (*self._known, result), (*self._first, *copies))

    def _pointers(self, case: Case) -> list[int]:
        """The pointers of a case that lead to prepared numbers."""
        return [pointer for pointer, buffer in enumerate(case.buffers) if buffer in self._known]

    def _read(self, case: Case, pointer: int) -> Iterator[tuple[tuple[Buffer, int], ...]]:
        """The elements that each row reads at a pointer."""
        buffer, offsets = case.buffers[pointer], case.kernel.loaded[pointer]
        for base in case.bases[:, pointer].tolist():
            yield tuple((buffer, base + offset) for offset in offsets)

    def _taking(self, step: Step) -> Step:
        """The step, which reads prepared numbers in place of parameters and of what was computed from them."""
        if isinstance(step, Loop):
            return replace(step, cases=tuple(map(self._case, step.cases)))
        if isinstance(step, Repeat):
            return replace(step, until=self._case(step.until), body=tuple(map(self._taking, step.body)))
        return step

    def _case(self, case: Case) -> Case:
        pointers = self._pointers(case)
        if not pointers:
            return case
        bases = case.bases.copy()
        for pointer in pointers:
            bases[:, pointer] = [self._starts[read] for read in self._read(case, pointer)]
        bases.setflags(write=False)
        buffers = tuple(self._prepared if i in pointers else buffer for i, buffer in enumerate(case.buffers))
        return replace(case, kernel=self._kernel(case.kernel, tuple(pointers)), buffers=buffers, bases=bases)

    def _kernel(self, kernel: Kernel, pointers: tuple[int, ...]) -> Kernel:
        """The kernel, in which numbers that it reads at these pointers lie side by side."""
        if (kernel, pointers) not in self._kernels:
            loads = {
                node: Location(at.pointer, kernel.loaded[at.pointer].index(at.offset)) if at.pointer in pointers else at
                for node, at in kernel.loads.items()
            }
            self._kernels[kernel, pointers] = replace(kernel, loads=loads)
        return self._kernels[kernel, pointers]


def _nothing() -> None:
    """Stands for the function of a kernel that was not traced from one."""
