"""Programs: kernels looped over tables, in sequence, and repeated until a condition holds.

A `Program` is data and knows no back end: buffers, and steps. A `Loop` runs kernels over rows in a given order; a
`Repeat` runs steps again and again, each state with its own ending; a `Listing` spares loops the rows that all states
leave out. Every state of a batch runs the same steps; lanes and threads are different states. builder.py writes
programs down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        order: which case is run at each turn; each case takes its own rows one after the other.
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
        """The listed flags of all turns, in order, where the cases have such."""
        (buffer,) = {case.among.buffer if case.among else None for case in self.cases}
        if buffer is None:
            return None
        elements = np.empty(len(self.order), np.int64)
        for i, case in enumerate(self.cases):
            elements[self.order == i] = case.among.elements if case.among else ()
        return Flags(buffer, elements)


@dataclass(frozen=True, eq=False)
class Owners:
    """Flags that own others: these count only where their owners hold.

    Attributes:
        flags: the owners, which are listed.
        first: of each the first flag that it owns, and, behind them, the number of all flags.
        always: (owners,), of which it is known that they always hold.
    """

    flags: Buffer
    first: np.ndarray
    always: np.ndarray

    @cached_property
    def of_flags(self) -> np.ndarray:
        """The owner of each flag."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


@dataclass(frozen=True, eq=False)
class Listing:
    """Lists the flags that are not zero in any of the states that run together.

    Loops `among` these flags then take the rows of those that are listed, one flag after the other, and do not ask the
    others: what rows that are left out cost no longer grows with their number. Results do not depend on it.

    Attributes:
        flags: what is listed. Nobody may write it between this step and a loop that counts on the list.
        listed: memory for the list, of one element more.
        owners: what they count by, if given. Flags whose owners do not hold become zero; where these hold in no state,
            nobody reads the flags, and back ends need not look at them.
    """

    flags: Buffer
    listed: Buffer
    owners: Owners | None = None


@dataclass(frozen=True, eq=False)
class Repeat:
    """Steps run while `until` does not hold, `at_most` times. A state that is done is not touched any more.

    Where it is `rare`, few states run them at all, and back ends keep their code short rather than fast.
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
        name: what it is called.
        buffers: all that its steps read and write; inputs and outputs in the order in which they are given.
        steps: what is run, in order.
        leading: how many steps come first that depend on parameters alone; nobody else writes what they write.
    """

    name: str
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    leading: int = 0

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The buffers that a call reads, in the order in which it takes them."""
        return tuple(b for b in self.buffers if b.role == "input")

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers that a call returns, in order."""
        return tuple(b for b in self.buffers if b.role == "output")

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """The buffers that steps use in between."""
        return tuple(b for b in self.buffers if b.role == "scratch")

    @cached_property
    def scratch_size(self) -> int:
        """How many numbers of memory a state needs besides inputs and outputs."""
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
