"""The data flow of a program, checked element by element before it is handed out."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence

import numpy as np

from coupler.graph.errors import GraphError
from coupler.graph.kernel import Case
from coupler.graph.program import Listing, Loop, Program, Step
from coupler.graph.window import Buffer

_NEVER = np.iinfo(np.int64).max

# The turn at which each element of a buffer is first written. A repeat has its own map for what it writes.
Written = ChainMap[Buffer, np.ndarray]


def check_data_flow(program: Program) -> None:
    """Raises where an element is read before it is written, or an output is not written at all.

    Turns are counted over the whole program. Within a turn a kernel loads before it stores, so an element read at turn
    t must have been written before turn t. What is written inside a repeat may be read there, but not after it, because
    the repeat may end before its first round. What a skippable row writes counts as written, as it is read only where
    the same flags hold. Flags must have been listed, and not written since, before a loop runs among them.
    """
    first = {b: np.full(b.size, -1 if b.role == "input" else _NEVER, np.int64) for b in program.buffers}
    written = ChainMap(first)
    _check_steps(program.steps, written, 0)
    _check_lists(program.steps, set())
    for buffer in program.outputs:
        missing = np.flatnonzero(written[buffer] == _NEVER)
        if missing.size:
            raise GraphError(
                f"program {program.name!r} may end without having written element {missing[0]} of its output "
                f"{buffer.name!r}"
            )


def _check_steps(steps: Sequence[Step], written: Written, turn: int) -> int:
    for step in steps:
        if isinstance(step, Loop):
            turn = _check_loop(step, written, turn)
        elif isinstance(step, Listing):
            turn = _check_listing(step, written, turn)
        else:
            _check_reads(step.until, np.array([turn]), written)
            turn = _check_steps(step.body, written.new_child(), turn + 1)
    return turn


def _check_loop(loop: Loop, written: Written, turn: int) -> int:
    turns = [turn + np.flatnonzero(loop.order == i) for i in range(len(loop.cases))]
    for case, when in zip(loop.cases, turns, strict=True):
        for pointer, buffer in enumerate(case.buffers):
            if not case.kernel.stored[pointer]:
                continue
            elements = case.bases[:, pointer, None] + np.array(case.kernel.stored[pointer], np.int64)
            if buffer not in written.maps[0]:
                written[buffer] = written[buffer].copy()
            np.minimum.at(written[buffer], elements.ravel(), np.repeat(when, elements.shape[1]))
    for case, when in zip(loop.cases, turns, strict=True):
        _check_reads(case, when, written)
    return turn + len(loop.order)


def _check_reads(case: Case, when: np.ndarray, written: Written) -> None:
    read = [
        (buffer, case.bases[:, pointer, None] + np.array(case.kernel.loaded[pointer], np.int64))
        for pointer, buffer in enumerate(case.buffers)
    ]
    read += [(flags.buffer, flags.elements[:, None]) for flags in case.flags]
    for buffer, elements in read:
        early = written[buffer][elements] >= when[:, None]
        if early.any():
            row, column = np.argwhere(early)[0]
            raise GraphError(
                f"kernel {case.kernel.name!r} reads element {elements[row, column]} of buffer {buffer.name!r} "
                f"before it is written (turn {row + 1} of its loop)"
            )


def _check_listing(step: Listing, written: Written, turn: int) -> int:
    early = np.flatnonzero(written[step.flags] >= turn)
    if early.size:
        raise GraphError(f"element {early[0]} of the flags {step.flags.name!r} is listed before it is written")
    return turn + 1


def _check_lists(steps: Sequence[Step], listed: set[Buffer]) -> set[Buffer]:
    """The flags whose lists are up to date after some steps, given those before them."""
    for step in steps:
        if isinstance(step, Listing):
            listed = listed | {step.flags}
        elif isinstance(step, Loop):
            if step.among is not None and step.among.buffer not in listed:
                raise GraphError(
                    f"kernel {step.cases[0].kernel.name!r} runs among the flags {step.among.buffer.name!r}, which are "
                    f"not listed, or have been written since: see list_flags"
                )
            listed = listed - {
                b for case in step.cases for b, stored in zip(case.buffers, case.kernel.stored, strict=True) if stored
            }
        else:  # a repeat, whose second round starts with what the first one leaves
            for _ in range(2):
                listed = listed & _check_lists(step.body, listed)
    return listed
