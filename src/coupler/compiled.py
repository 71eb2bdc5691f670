"""Programs of robots, compiled when they are first needed, and called with what a user gives.

A control loop calls these thousands of times a second: what is done around the machine code counts. Programs are kept
in a dictionary of their robot, and a result is seen to be finite by its product with zeros.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.graph import GraphError, compile
from coupler.model import ModelError, Robot
from coupler.model.words import in_state

__all__ = ["remembered", "run"]

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_OPEN = {_FLOAT64: 1e-6, _FLOAT32: 1e-3}  # from here on a loop counts as open; m or rad


def run(robot: Robot, make: Callable[..., Any], q: Any, *vectors: Any, options: tuple[Any, ...] = ()) -> Any:
    """The results of a program at q and further vectors, as arrays; one of them by itself.

    Args:
        robot: which.
        make: gives the program for a robot and the options.
        q: (..., nq), float32 for results in float32.
        vectors: the program's other inputs.
        options: of the program.

    Raises:
        ModelError: for arguments of a wrong shape, for open loops, and for results that are not finite, naming what is
            wrong and, in a batch, where.
    """
    dtype = _FLOAT32 if getattr(q, "dtype", None) is _FLOAT32 else _FLOAT64
    compiled = remembered(robot, (make, options, dtype), _Compiled, make, options, dtype)
    try:
        found = compiled.executable(q, *vectors)
    except GraphError as error:
        raise ModelError(f"robot {robot.name!r}: {error}") from None
    if compiled.single:
        if not _is_finite(found, compiled.zeros[0]):
            compiled.explain(q, vectors, found)
        return found
    if compiled.gap is not None and not _is_closed(found[compiled.gap], _OPEN[dtype]):
        compiled.explain(q, vectors, found[compiled.gap])
    results = [found[i] for i in compiled.results]
    for result, zeros in zip(results, compiled.zeros, strict=True):
        if not _is_finite(result, zeros):
            compiled.explain(q, vectors, result)
    return results[0] if len(results) == 1 else tuple(results)


def remembered(robot: Robot, key: Any, make: Callable[..., Any], *arguments: Any) -> Any:
    """What is made once for a robot, of it and the arguments, and kept as long as it."""
    memory = robot.__dict__.get("_memory")
    if memory is None:
        memory = robot.__dict__["_memory"] = {}
    found = memory.get(key)
    if found is None:
        found = memory[key] = make(robot, *arguments)
    return found


class _Compiled:
    """A program of a robot, ready to run.

    Attributes:
        executable: the program.
        gap: which of its outputs tells how far loops are open, if any does.
        results: the others.
        zeros: for each result as many zeros as it has entries.
        single: whether there is one output alone.
    """

    def __init__(self, robot: Robot, make: Callable[..., Any], options: tuple[Any, ...], dtype: np.dtype) -> None:
        program = make(robot, *options)
        names = [buffer.name for buffer in program.outputs]
        self.robot_name, self._check = robot.name, robot.check
        self.executable = compile(program, dtype, threads=_threads())
        self.gap = names.index("gap") if "gap" in names else None
        self.results = [i for i in range(len(names)) if i != self.gap]
        self.zeros = [np.zeros(program.outputs[i].size, dtype) for i in self.results]
        self.single = len(names) == 1

    def explain(self, q: Any, vectors: tuple[Any, ...], result: np.ndarray) -> None:
        """Raises what is wrong with a call that gave no good result."""
        for buffer, given in zip(self.executable.program.inputs, (q, *vectors), strict=True):
            values = np.asarray(given, dtype=float)
            wrong = np.argwhere(~np.isfinite(values))
            if wrong.size:
                *state, entry = (int(i) for i in wrong[0])
                value = values[tuple(wrong[0])]
                raise ModelError(f"{buffer.name} must be finite; entry {entry}{in_state(state)} is {value}")
        self._check(np.asarray(q, dtype=float))
        state = [int(i) for i in np.argwhere(~np.isfinite(result).all(axis=-1))[0]] if result.ndim > 1 else []
        raise ModelError(
            f"robot {self.robot_name!r}: there is no finite result{in_state(state)}; is a loop singular, a mass zero?"
        )


def _is_finite(result: np.ndarray, zeros: np.ndarray) -> bool:
    """Whether all entries are finite: what is not gives NaN times zero."""
    return bool(result.dot(zeros) == 0.0 if result.ndim == 1 else np.isfinite(result).all())


def _is_closed(opening: np.ndarray, limit: float) -> bool:
    return bool(opening[0] < limit if opening.ndim == 1 else (opening < limit).all())


def _threads() -> int:
    """How many threads share a batch: COUPLER_THREADS, or as many as there are processors for this process."""
    given = os.environ.get("COUPLER_THREADS", "")
    if given.isdigit():
        return max(int(given), 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
