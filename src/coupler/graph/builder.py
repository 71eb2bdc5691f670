"""The builder of programs, step by step.

For example, with kernels as in tracing.py:

    b = Builder("chain")
    q, qdd = b.input("q", n), b.output("qdd", n)
    links = b.records("link", n + 1, IA=symmetric(6), pA=6)
    b.loop(backward, link=links[1:], parent=links[parents], backwards=True)
    program = b.build()

A kernel's parameter gets a window: rows of records, or single fields of buffers, joined by `|` (records.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coupler.forks import cached_property
from coupler.graph.check import check_data_flow
from coupler.graph.errors import GraphError
from coupler.graph.kernel import Case, Flags
from coupler.graph.parameters import PARAMETERS, Lowering, Parameters
from coupler.graph.program import Listing, Loop, Program, Repeat, Step, rebound
from coupler.graph.records import Records
from coupler.graph.tracing import trace, untraced
from coupler.graph.window import Buffer, Field, Slot, Window, each, whole_numbers

_RESERVED = {"out", "check"}  # keyword arguments of a program's call


class Builder:
    """Writes a program, step by step; `build` checks and returns it."""

    def __init__(self, name: str, parameters: Parameters | None = None, traced: bool = True) -> None:
        """Begins a program.

        Args:
            name: the name of the program.
            parameters: the parameters that its tables may depend on.
            traced: whether kernels are traced, and the data flow is checked. Only Python can run a program without.
        """
        if not name.isidentifier():
            raise GraphError(f"a program's name must be an identifier, got {name!r}")
        self.name = name
        self._buffers: dict[str, Buffer] = {}
        self._lists: dict[Buffer, Buffer] = {}  # by flags, the buffer in which they are listed
        self._steps: list[Step] = []  # of the innermost open block
        self._written: dict[Hashable, list[Step]] = {}  # by key, the steps that `once` has written
        self._open = 0
        self._parameters, self._traced = parameters, traced
        self._first_steps: list[Step] = []  # what depends on parameters alone

    def input(self, name: str, size: int) -> Buffer:
        """A vector that the caller gives."""
        return self._add(Buffer(name, _whole(size, f"the size of {name!r}"), "input"))

    def output(self, name: str, size: int) -> Buffer:
        """A vector that the program returns; every element must be written."""
        return self._add(Buffer(name, _whole(size, f"the size of {name!r}"), "output"))

    def scratch(self, name: str, size: int) -> Buffer:
        """A vector for the program's own use."""
        return self._add(Buffer(name, _whole(size, f"the size of {name!r}"), "scratch"))

    def records(self, name: str, rows: int, **layout: int | tuple[int, ...] | Field) -> Records:
        """Scratch of `rows` records with the given fields: `IA=(6, 6)`, `pA=6`, `d=()`, `I=symmetric(6)`."""
        as_fields = {field: Field.of(shape) for field, shape in layout.items()}
        size = rows * sum(field.size for field in as_fields.values())
        return Records(self.scratch(name, size), rows, as_fields)

    def loop(
        self,
        kernel: Callable[..., None],
        /,
        *,
        backwards: bool = False,
        where: Slot | None = None,
        among: Slot | None = None,
        **windows: Window | Sequence[Window],
    ) -> None:
        """Runs the kernel over the rows of its windows, first to last, or last to first if `backwards`.

        A parameter may also be a list of windows.

        With `where`, a flag for each row, a state skips the rows whose flag is zero, and a row that all states skip
        costs next to nothing. What a skipped row would write counts as written: only rows with the same flag may read
        it. `among` does the same for flags that have been listed (see `list_flags`), in their order or backwards; a row
        that all states skip then costs nothing at all. Rows with both flags run if both hold.
        """
        if backwards:
            windows = each(windows, lambda _, window: window.backwards())
            where, among = (slot.backwards() if slot is not None else None for slot in (where, among))
        case = self._trace(kernel, windows)
        case = replace(case, where=self._flags(case, where), among=self._flags(case, among))
        self._steps.append(_in_order_of_flags(Loop((case,), np.zeros(case.rows, np.int32))))

    def list_flags(self, flags: Buffer) -> None:
        """Lists the flags that are not zero, for loops `among` them. Needed again after each write to the flags."""
        self._check_own(flags, "list_flags")
        if flags not in self._lists:
            self._lists[flags] = self.scratch(self._free_name(f"{flags.name}.listed"), flags.size + 1)
        self._steps.append(Listing(flags, self._lists[flags]))

    @contextmanager
    def interleave(self, order: ArrayLike) -> Iterator[None]:
        """Merges the loops written inside into one that takes their next rows in this order (0 is the first loop)."""
        with self._block() as inner:
            yield
        if any(not isinstance(step, Loop) or len(step.cases) != 1 for step in inner):
            raise GraphError("interleave joins plain loops; it cannot hold repeat or interleave")
        cases = tuple(step.cases[0] for step in inner if isinstance(step, Loop))
        turns = whole_numbers(order, "the order of interleave").astype(np.int32)
        unknown = turns[(turns < 0) | (turns >= len(cases))]
        if unknown.size:
            raise GraphError(f"interleave has {len(cases)} loops; its order names loop {int(unknown[0])}")
        for i, case in enumerate(cases):
            if (turns == i).sum() != case.rows:
                raise GraphError(
                    f"loop {i} ({case.kernel.name}) has {case.rows} rows, but comes {(turns == i).sum()} times"
                )
        if len({case.among.buffer if case.among else None for case in cases}) > 1:
            raise GraphError("interleave joins loops that are all among the same flags, or all among none")
        turns.setflags(write=False)
        self._steps.append(_in_order_of_flags(Loop(cases, turns)))

    @contextmanager
    def repeat(
        self, *, until: Callable[..., Any], at_most: int, rare: bool = False, **windows: Window
    ) -> Iterator[None]:
        """Repeats the steps written inside until a condition holds, which is checked before each round.

        Args:
            until: the condition, a function of one-row windows that returns a truth value.
            at_most: the largest number of rounds.
            rare: whether few states run the steps at all, so that short code is better than fast code.
            windows: the condition's parameters.
        """
        at_most = _whole(at_most, "at_most of a repeat", least=1)
        condition = self._trace(until, windows, condition=True)
        if condition.rows != 1:
            raise GraphError(f"condition {condition.kernel.name!r} must look at one row, got {condition.rows}")
        with self._block() as inner:
            yield
        self._steps.append(Repeat(condition, at_most, tuple(inner), rare))

    @contextmanager
    def recorded(self) -> Iterator[list[Step]]:
        """Yields a list that gets the steps written inside, for `replay`."""
        with self._block() as inner:
            yield inner
        self._steps += inner

    def replay(self, steps: Sequence[Step]) -> None:
        """Writes recorded steps again, without tracing them again."""
        self._steps += steps

    def once(self, key: Hashable, write: Callable[[], None]) -> None:
        """Calls `write` to write steps, or replays the steps that it wrote for the same key before."""
        if key in self._written:
            self.replay(self._written[key])
        else:
            with self.recorded() as self._written[key]:
                write()

    def call(self, program: Program, scratch: Mapping[str, Buffer] | None = None, /, **bindings: Buffer) -> None:
        """Runs another program in place, its inputs, outputs and some of its scratch bound by name to buffers."""
        for name, buffer in bindings.items():
            if not isinstance(buffer, Buffer):
                raise GraphError(f"calling {program.name!r}: {name!r} must be a buffer, got {type(buffer).__name__}")
        wanted = {b.name: b for b in (*program.inputs, *program.outputs)}
        if PARAMETERS in wanted and PARAMETERS not in bindings and self._parameters is not None:
            bindings[PARAMETERS] = self._given
        for name in wanted.keys() ^ bindings.keys():
            raise GraphError(f"calling {program.name!r}: {name!r} is {'not bound' if name in wanted else 'unknown'}")
        for name, buffer in wanted.items():
            if bindings[name].size != buffer.size:
                raise GraphError(f"calling {program.name!r}: {name!r} has {buffer.size} elements, {bindings[name]!r}")
            self._check_own(bindings[name], f"calling {program.name!r}")
        targets = [bindings[b.name] for b in program.outputs]
        for target in targets:
            if target.role == "input":
                raise GraphError(f"calling {program.name!r}: its output would overwrite the input {target.name!r}")
            if targets.count(target) > 1 or any(bindings[b.name] is target for b in program.inputs):
                raise GraphError(f"calling {program.name!r}: {target.name!r} is bound twice, once as an output")
        new = {buffer: bindings[name] for name, buffer in wanted.items()}
        for buffer in program.scratch:
            bound = (scratch or {}).get(buffer.name)
            new[buffer] = bound or self.scratch(self._free_name(f"{program.name}.{buffer.name}"), buffer.size)
        steps = [rebound(step, new) for step in program.steps]
        self._first_steps += steps[: program.leading]
        self._steps += steps[program.leading :]

    def build(self) -> Program:
        """The finished program, checked: nothing is read before it is written, and every output is written."""
        if self._open:
            raise GraphError("build is called inside a repeat or interleave that is still open")
        if self._parameters is not None:
            self._lowering.done = True
        buffers = sorted(self._buffers.values(), key=lambda buffer: buffer.name == PARAMETERS)  # the last input
        steps = *self._first_steps, *self._steps
        program = Program(self.name, tuple(buffers), steps, len(self._first_steps))
        if self._traced:
            check_data_flow(program)
        return program

    def _flags(self, case: Case, slot: Slot | None) -> Flags | None:
        if slot is None:
            return None
        self._check_own(slot.buffer, f"the flags of kernel {case.kernel.name!r}")
        if slot.rows != case.rows or slot.field.shape:
            raise GraphError(
                f"kernel {case.kernel.name!r} runs over {case.rows} rows and needs as many flags, each a number; "
                f"got {slot.rows} of the shape {slot.field.shape}"
            )
        return Flags.of(slot)

    def _trace(self, function: Callable[..., Any], windows: Mapping[str, Any], condition: bool = False) -> Case:
        each(windows, _check_window)
        if self._parameters is not None:
            windows = each(windows, lambda _, window: self._lowering.lowered(window))
        case = trace(function, windows, condition=condition) if self._traced else untraced(function, windows)
        for buffer in case.buffers:
            self._check_own(buffer, f"kernel {case.kernel.name!r}")
        return case

    @cached_property
    def _given(self) -> Buffer:
        """The input that holds parameters. A program whose tables depend on none has no such input."""
        assert self._parameters is not None
        return self.input(PARAMETERS, self._parameters.size)

    @cached_property
    def _lowering(self) -> Lowering:
        assert self._parameters is not None

        def loop(kernel: Callable[..., None], row: Window) -> None:
            case = trace(kernel, {"row": row}) if self._traced else untraced(kernel, {"row": row})
            self._first_steps.append(Loop((case,), np.zeros(case.rows, np.int32)))

        def scratch(size: int) -> Buffer:
            return self.scratch(self._free_name("given"), size)

        return Lowering(self._parameters, lambda: self._given, scratch, loop)

    def _check_own(self, buffer: Buffer, user: str) -> None:
        if self._buffers.get(buffer.name) is not buffer:
            raise GraphError(f"{user}: {buffer!r} is not a buffer of program {self.name!r}")

    def _add(self, buffer: Buffer) -> Buffer:
        if buffer.name in self._buffers:
            raise GraphError(f"program {self.name!r} has a buffer {buffer.name!r} already")
        if not all(part.isidentifier() for part in buffer.name.split(".")) or buffer.name.startswith("_"):
            raise GraphError(f"a buffer's name must be an identifier without leading underscore, got {buffer.name!r}")
        if buffer.role == "input" and buffer.name in _RESERVED:
            raise GraphError(f"an input cannot be called {buffer.name!r}: calls of the program use that word")
        self._buffers[buffer.name] = buffer
        return buffer

    def _free_name(self, name: str) -> str:
        tries = [name, *(f"{name}.n{i}" for i in range(2, len(self._buffers) + 3))]
        return next(candidate for candidate in tries if candidate not in self._buffers)

    @contextmanager
    def _block(self) -> Iterator[list[Step]]:
        outer, self._steps = self._steps, []
        inner = self._steps
        self._open += 1
        try:
            yield inner
        finally:
            self._steps = outer
            self._open -= 1


def _check_window(name: str, window: Any) -> None:
    if not isinstance(window, Window):
        hint = ": take its rows, as in links[:]" if isinstance(window, Records) else ""
        raise GraphError(f"parameter {name!r} must be a window, got {type(window).__name__}{hint}")


def _whole(value: Any, what: str, least: int = 0) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise GraphError(f"{what} must be a whole number, got {value!r}") from None
    if not least <= number < 2**62:
        raise GraphError(f"{what} must be {least} or more, got {number}")
    return number


def _in_order_of_flags(loop: Loop) -> Loop:
    """The loop, checked: rows among flags come in the order of the flags, or backwards."""
    steps = [] if loop.among is None else np.diff(loop.among.elements)
    if np.any(np.less(steps, 0)) and np.any(np.greater(steps, 0)):
        raise GraphError(
            f"kernel {loop.cases[0].kernel.name!r}: rows among flags must come in the order of the flags, or backwards"
        )
    return loop
