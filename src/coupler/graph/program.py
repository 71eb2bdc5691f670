"""Programs: kernels looped over tables, in sequence, and repeated until a condition holds.

A `Program` is plain data, buffers and steps, and knows no back end. A `Loop` runs kernels over rows in a given order. A
`Repeat` runs steps until a condition holds, for each state separately. A `Listing` lets loops pass over rows that all
states skip. Every state of a batch runs the same steps; lanes and threads are different states. builder.py writes
programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coupler.forks import cached_property
from coupler.graph.expr import Node
from coupler.graph.kernel import Case, Flags, Kernel
from coupler.graph.measure import depths
from coupler.graph.window import Buffer


@dataclass(frozen=True, eq=False)
class Loop:
    """Kernels run over the rows of their tables.

    Attributes:
        cases: the kernels with their tables.
        order: the case that runs at each turn, on its next row.
    """

    cases: tuple[Case, ...]
    order: np.ndarray

    def turns(self) -> Iterator[tuple[Case, int]]:
        """Each case with the row that it takes, in the order in which they run."""
        row = [0] * len(self.cases)
        for i in self.order:
            yield self.cases[i], row[i]
            row[i] += 1

    @cached_property
    def among(self) -> Flags | None:
        """The listed flags of all turns, in order, if the cases have some."""
        (buffer,) = {case.among.buffer if case.among else None for case in self.cases}
        if buffer is None:
            return None
        elements = np.empty(len(self.order), np.int64)
        for i, case in enumerate(self.cases):
            elements[self.order == i] = case.among.elements if case.among else ()
        return Flags(buffer, elements)


@dataclass(frozen=True, eq=False)
class Listing:
    """Lists the flags that are not zero in any of the states that run together.

    Loops `among` these flags then visit only the rows whose flags are listed, so that skipped rows cost nothing.
    Results do not depend on it.

    Attributes:
        flags: the flags. They must not be written between this step and a loop among them.
        listed: memory for the list, of one element more.
    """

    flags: Buffer
    listed: Buffer


@dataclass(frozen=True, eq=False)
class Repeat:
    """Steps that run until a condition holds, at most `at_most` times. States that are done are not touched any more.

    If it is `rare`, few states run the steps at all, and back ends make their code short rather than fast.
    """

    until: Case
    at_most: int
    body: tuple[Step, ...]
    rare: bool = False


Step = Loop | Repeat | Listing


@dataclass(frozen=True, eq=False)
class Program:
    """A finished program; see the module's text.

    Attributes:
        name: the name of the program.
        buffers: all buffers; inputs and outputs are in the order of a call.
        steps: what runs, in order.
        leading: the number of first steps that depend on parameters only; no other step writes what they write.
    """

    name: str
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    leading: int = 0

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The buffers that a call takes, in order."""
        return tuple(b for b in self.buffers if b.role == "input")

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers that a call returns, in order."""
        return tuple(b for b in self.buffers if b.role == "output")

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """The buffers for intermediate results."""
        return tuple(b for b in self.buffers if b.role == "scratch")

    @cached_property
    def scratch_size(self) -> int:
        """The memory of a state besides inputs and outputs, in numbers."""
        workspace = max((case.kernel.workspace for case in self.cases()), default=0)
        return sum(buffer.size for buffer in self.scratch) + workspace

    def cases(self) -> Iterator[Case]:
        """Every case of every step, in order, conditions included."""
        yield from _cases(self.steps)

    def kernels(self) -> list[Kernel]:
        """The different kernels, in order of first use."""
        return list({case.kernel.text: case.kernel for case in self.cases()}.values())

    def operations(self) -> Counter[str]:
        """How often each operation is computed for one state; a repeated step counts once."""
        count: Counter[str] = Counter()
        for case in self.cases():
            for op, n in case.kernel.operations.items():
                count[op] += n * case.rows
        return count

    def depth(self) -> int:
        """The longest chain of dependent operations through all loops; a repeated step counts once."""
        level = {buffer: np.zeros(buffer.size, np.int64) for buffer in self.buffers}
        for case, row in _turns(self.steps):
            start: dict[Node, int] = {}
            for node, at in case.kernel.loads.items():
                buffer, element = case.element(row, at)
                start[node] = int(level[buffer][element])
            for at, deep in zip(case.kernel.stores, depths(case.kernel.outputs, start), strict=True):
                buffer, element = case.element(row, at)
                level[buffer][element] = deep
        return max((int(values.max()) for values in level.values() if values.size), default=0)

    def __str__(self) -> str:
        lines = [f"program {self.name}: " + ", ".join(map(repr, self.buffers))]
        return "\n".join(lines + _outline(self.steps, "  "))


def rebound(step: Step, new: Mapping[Buffer, Buffer]) -> Step:
    """A step with its buffers replaced: `new` maps each buffer to its replacement."""

    def case(old: Case) -> Case:
        flags = {"where": old.where, "among": old.among}
        new_flags = {name: replace(flag, buffer=new[flag.buffer]) if flag else None for name, flag in flags.items()}
        buffers = tuple(new[b] for b in old.buffers)
        return replace(old, buffers=buffers, source=old.source.rebound(new), **new_flags)

    if isinstance(step, Loop):
        return replace(step, cases=tuple(map(case, step.cases)))
    if isinstance(step, Listing):
        return Listing(new[step.flags], new[step.listed])
    return replace(step, until=case(step.until), body=tuple(rebound(inner, new) for inner in step.body))


def _cases(steps: Sequence[Step]) -> Iterator[Case]:
    for step in steps:
        if isinstance(step, Loop):
            yield from step.cases
        elif isinstance(step, Repeat):
            yield step.until
            yield from _cases(step.body)


def _turns(steps: Sequence[Step]) -> Iterator[tuple[Case, int]]:
    for step in steps:
        if isinstance(step, Loop):
            yield from step.turns()
        elif isinstance(step, Repeat):
            yield from _turns(step.body)


def _outline(steps: Sequence[Step], indent: str) -> list[str]:
    lines: list[str] = []
    for step in steps:
        if isinstance(step, Repeat):
            lines.append(f"{indent}repeat until {step.until.kernel.name}, at most {step.at_most} times")
            lines += _outline(step.body, indent + "  ")
            continue
        if isinstance(step, Listing):
            lines.append(f"{indent}list where {step.flags.name} holds")
            continue
        if len(step.cases) > 1:
            lines.append(f"{indent}interleave {len(step.order)} rows of")
        for case in step.cases:
            count = case.kernel.operations.total()
            inner = indent + ("  " if len(step.cases) > 1 else "")
            flags = "".join(f", where {flags.buffer.name} holds" for flags in case.flags)
            lines.append(f"{inner}loop {case.kernel.name} over {case.rows} rows, {count} operations each{flags}")
    return lines
