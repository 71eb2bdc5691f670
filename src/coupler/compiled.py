"""The programs of a robot, compiled when they are first needed, and called with a user's arrays.

A control loop calls these thousands of times a second, so that the time spent around the machine code matters. Programs
are kept in a dictionary of their robot, next to the functions that take a single state straight to machine code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from coupler.graph import Executable, compile
from coupler.graph.interning import uncollected
from coupler.model import ModelError, Robot
from coupler.model.actuators import adhesions, too_short_rods
from coupler.model.numbers import as_array
from coupler.model.robot import check_robot
from coupler.model.wording import clipped, in_state, listed

_FLOAT32 = np.dtype(np.float32)


def run(robot: Robot, make: Callable[..., Any], *vectors: Any, options: tuple[Any, ...] = ()) -> Any:
    """The results of a program: an array, or a tuple of arrays if it has several outputs.

    Args:
        make: returns the program for a robot and the options.
        vectors: the program's inputs; results are float32 if the first, (..., nq), is.
        options: further arguments of `make`.

    Raises:
        ModelError: for arguments of a wrong shape, open loops, and results that are not finite, saying what is wrong
            and, in a batch, in which state.
    """
    key = (make, options) if options else make
    try:
        result = robot.__dict__["_memory"][key](*vectors)
    except (KeyError, AttributeError, TypeError):  # the first call, or no robot, or a name that cannot be one
        result = None
    return _run_with_checks(robot, make, vectors, options) if result is None else result


def _run_with_checks(robot: Robot, make: Callable[..., Any], vectors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    """`run` for what machine code does not take as it is, and for the first call, after which it may."""
    check_robot(robot)
    for option in options:
        if not isinstance(option, Hashable):
            raise ModelError(f"robot {robot.name!r}: a name must be a string, got {clipped(option)}")
    single = getattr(vectors[0], "dtype", None) is _FLOAT32
    compiled = _compiled(robot, make, options, single)
    dtype = compiled.executable.dtype
    given = tuple(values.astype(dtype, copy=False) for values in inputs_given(robot, compiled.executable))
    try:
        result, finite = compiled.executable.answer(*vectors, *given)
    except ValueError as error:
        raise ModelError(f"robot {robot.name!r}: {error}") from None
    results = result if isinstance(result, tuple) else (result,)
    for values in () if finite else (*results, *vectors):
        if not np.isfinite(values).all():
            compiled.explain(robot, vectors, np.asarray(values))
    if not single:  # from now on
        fast = compiled.executable.fast
        memory = robot.__dict__.setdefault("_memory", {})
        memory[(make, options) if options else make] = (lambda *vectors: fast(*vectors, *given)) if given else fast
    return result


def _compiled(robot: Robot, make: Callable[..., Any], options: tuple[Any, ...], single: bool) -> _Compiled:
    """The compiled program of a robot; robots that differ only in the values of parameters share it."""
    owner = robot if robot.given is None else robot.given.variant
    return remembered(owner, (make, options, single), _Compiled, make, options, single)


def inputs_given(robot: Robot, executable: Executable) -> tuple[np.ndarray, ...]:
    """The inputs of a program that a robot's given parameters provide: one array if it depends on any, else none."""
    return robot.states.tree.inputs_of(executable)


def attempted(robot: Robot, make: Callable[..., Any], *vectors: np.ndarray, options: tuple[Any, ...] = ()) -> Any:
    """The results of `run` in float64, but with NaN instead of an error for states that have no result."""
    executable = _compiled(robot, make, options, False).executable
    return executable(*vectors, *inputs_given(robot, executable))


def run_on_state(robot: Robot, make: Callable[..., Any], q: Any, v: Any, x: Any) -> Any:
    """`run` for a program (q, v, x) → one output: the shortest way of a single state to machine code, 0.25 µs."""
    try:
        result = robot.__dict__["_memory"][make](q, v, x)
    except (KeyError, AttributeError):  # the first call, or no robot
        result = None
    return run(robot, make, q, v, x) if result is None else result


def remembered(robot: Robot, key: Any, make: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `make` for a robot and the arguments, computed once for a key and kept as long as the robot."""
    memory = robot.__dict__.get("_memory")
    if memory is None:
        memory = robot.__dict__["_memory"] = {}
    result = memory.get(key)
    if result is None:
        with uncollected():
            result = memory[key] = make(robot, *arguments)
    return result


def driven(robot: Robot, what: str = "") -> Robot:
    """The robot; a ModelError if it has no actuators."""
    check_robot(robot)
    if not robot.actuators:
        raise ModelError(
            f"{what}robot {robot.name!r} has no actuators: mark joints as actuated, or describe actuators "
            "(RobotBuilder.actuator, Robot.with_actuators)"
        )
    return robot


def driven_through_joints(robot: Robot, what: str = "") -> Robot:
    """The robot; a ModelError if it has no actuators, or if some of them act on contacts."""
    refuse_adhesions(driven(robot, what), what)
    return robot


def refuse_adhesions(robot: Robot, what: str = "") -> None:
    """Raises a ModelError if some actuators act on contacts."""
    if names := adhesions(robot):
        raise ModelError(
            f"{what}adhesion {listed(names)} acts where bodies touch, which only a step of a simulation knows; "
            "robot.with_actuators([...]) gives a robot without it"
        )


def zeros(robot: Robot, q: Any) -> np.ndarray:
    """(nv,): zeros in the precision of q."""
    if type(robot) is not Robot:  # which is quicker to ask
        check_robot(robot)
    return np.zeros(robot.nv, getattr(q, "dtype", float))


def on_bodies(robot: Robot, f_ext: Any) -> np.ndarray:
    """Forces on all bodies, (..., bodies, 6), as a program takes them: (..., 6 bodies)."""
    check_robot(robot)
    wanted, forces = (len(robot.bodies), 6), as_array("f_ext", f_ext)
    if forces.shape[-2:] != wanted:
        raise ModelError(f"f_ext has the shape {forces.shape}; robot {robot.name!r} takes (..., {wanted[0]}, 6)")
    return forces.reshape(*forces.shape[:-2], 6 * wanted[0])


class _Compiled:
    """A program of a robot, ready to run.

    Attributes:
        executable: the program.
    """

    def __init__(self, robot: Robot, make: Callable[..., Any], options: tuple[Any, ...], single: bool) -> None:
        dtype, program = np.float32 if single else np.float64, make(robot, *options)
        self.executable = compile(program, dtype, backend=robot.backend, threads=thread_count(), prepared=True)

    def explain(self, robot: Robot, vectors: tuple[Any, ...], result: np.ndarray) -> None:
        """Raises a ModelError that explains why a result, or an argument, is not finite."""
        for buffer, given in zip(self.executable.program.inputs, vectors, strict=False):  # and parameters, which are
            values = np.asarray(given, dtype=float)
            wrong = np.argwhere(~np.isfinite(values))
            if wrong.size:
                *state, entry = (int(i) for i in wrong[0])
                value = values[tuple(wrong[0])]
                raise ModelError(f"{buffer.name} must be finite; entry {entry}{in_state(state)} is {value}")
        state = [int(i) for i in np.argwhere(~np.isfinite(result).all(axis=-1))[0]] if result.ndim > 1 else []
        q = np.asarray(vectors[0], dtype=float)
        every = np.broadcast_to(q, (*result.shape[:-1], q.shape[-1]))
        try:
            if robot.given is None:
                robot.check(every[tuple(state)])
            else:  # each state may be another robot's
                state = []
                robot.check(every)
        except ModelError as error:
            raise ModelError(f"{error}{in_state(state)}") from None
        raise ModelError(
            f"robot {robot.name!r}: there is no finite result{in_state(state)}; is a loop singular, a mass zero,"
            f"{too_short_rods(robot)} or a number too large?"
        )


def thread_count() -> int:
    """The number of threads that share a batch: COUPLER_THREADS, or the number of processors of this process."""
    given = os.environ.get("COUPLER_THREADS", "")
    if given.isdigit():
        return max(int(given), 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
