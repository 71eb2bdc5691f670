"""Programs of robots, compiled when they are first needed, and called with what a user gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from coupler.graph import Executable, GraphError, compile
from coupler.model import ModelError, Robot
from coupler.model.words import in_state

__all__ = ["remembered", "run"]

_OPEN = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}  # from here on a loop counts as open; m or rad


@dataclass(frozen=True, eq=False)
class _Compiled:
    """A program, which of its outputs tells how far loops are open, and the others."""

    executable: Executable
    gap: int | None
    results: tuple[int, ...]


_memory: WeakKeyDictionary[Robot, dict[Any, Any]] = WeakKeyDictionary()


def remembered(robot: Robot, key: Any, make: Callable[[], Any]) -> Any:
    """What is made once for a robot, and kept as long as it."""
    own = _memory.setdefault(robot, {})
    if key not in own:
        own[key] = make()
    return own[key]


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
    dtype = np.dtype(np.float32 if getattr(q, "dtype", None) == np.float32 else np.float64)
    compiled = _find(robot, make, options, dtype)
    try:
        found = compiled.executable(q, *vectors)
    except GraphError as error:
        raise ModelError(f"robot {robot.name!r}: {error}") from None
    if compiled.gap is None and len(compiled.results) == 1:
        if not np.isfinite(found).all():
            _explain(robot, compiled, q, vectors, found)
        return found
    if compiled.gap is not None and not (found[compiled.gap] < _OPEN[dtype]).all():
        _explain(robot, compiled, q, vectors, found[compiled.gap])
    results = tuple(found[i] for i in compiled.results)
    for result in results:
        if not np.isfinite(result).all():
            _explain(robot, compiled, q, vectors, result)
    return results[0] if len(results) == 1 else results


def _find(robot: Robot, make: Callable[..., Any], options: tuple[Any, ...], dtype: np.dtype) -> _Compiled:
    def compiled() -> _Compiled:
        program = make(robot, *options)
        names = [buffer.name for buffer in program.outputs]
        gap = names.index("gap") if "gap" in names else None
        results = tuple(i for i in range(len(names)) if i != gap)
        return _Compiled(compile(program, dtype, threads=_threads()), gap, results)

    return remembered(robot, (make, options, dtype), compiled)


def _threads() -> int:
    """How many threads share a batch: COUPLER_THREADS, or as many as there are processors for this process."""
    given = os.environ.get("COUPLER_THREADS", "")
    if given.isdigit():
        return max(int(given), 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _explain(robot: Robot, compiled: _Compiled, q: Any, vectors: tuple[Any, ...], result: np.ndarray) -> None:
    """Raises what is wrong with a call that gave no good result."""
    for buffer, given in zip(compiled.executable.program.inputs, (q, *vectors), strict=True):
        values = np.asarray(given, dtype=float)
        wrong = np.argwhere(~np.isfinite(values))
        if wrong.size:
            *state, entry = (int(i) for i in wrong[0])
            raise ModelError(
                f"{buffer.name} must be finite; entry {entry}{in_state(state)} is {values[tuple(wrong[0])]}"
            )
    robot.check(np.asarray(q, dtype=float))
    state = [int(i) for i in np.argwhere(~np.isfinite(result).all(axis=-1))[0]] if result.ndim > 1 else []
    raise ModelError(
        f"robot {robot.name!r}: there is no finite result{in_state(state)}; is a loop singular, or a mass zero there?"
    )
