"""The algorithms as functions of a robot and arrays: programs are made and compiled when they are first needed.

Leading dimensions of q, v, ... are a batch, computed in lanes and threads. Numbers are float64, or float32 where q is.
Results are fresh arrays and depend on arguments alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import Executable, GraphError, compile
from coupler.model import ModelError, Robot
from coupler.model.words import in_state

__all__ = ["bias_force", "forward_dynamics", "inverse_dynamics"]

_OPEN = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}  # from here on a loop counts as open; m or rad


def forward_dynamics(robot: Robot, q: Any, v: Any, tau: Any, f_ext: Any = None) -> np.ndarray:
    """Accelerations that forces cause, by the cluster-based articulated-body algorithm (C-ABA).

    H(q) a + c(q, v) = τ + forces of f_ext, where springs, dampers and armatures of the robot are part of H and c.

    Args:
        robot: which.
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints.
        tau: (..., nv), forces at independent joints, N m or N.
        f_ext: (..., bodies, 6), a spatial force (moment, force) on each body, about the world's origin in the world's
            axes, in the order of `robot.body_names`.

    Returns:
        (..., nv), accelerations of independent joints.
    """
    return _run(robot, forward_dynamics_program, q, {"v": v, "tau": tau}, f_ext)


def inverse_dynamics(robot: Robot, q: Any, v: Any, a: Any, f_ext: Any = None) -> np.ndarray:
    """Forces that accelerations need, by the cluster-based recursive Newton-Euler algorithm (C-RNEA).

    Args:
        robot: which.
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints.
        a: (..., nv), accelerations of independent joints.
        f_ext: (..., bodies, 6), as in `forward_dynamics`.

    Returns:
        (..., nv), forces at independent joints, N m or N.
    """
    return _run(robot, inverse_dynamics_program, q, {"v": v, "a": a}, f_ext)


def bias_force(robot: Robot, q: Any, v: Any, f_ext: Any = None) -> np.ndarray:
    """c(q, v): forces at independent joints that keep them from accelerating; (..., nv), N m or N."""
    return inverse_dynamics(robot, q, v, np.zeros(robot.nv, np.asarray(q).dtype), f_ext)


_compiled: WeakKeyDictionary[Robot, dict[Any, tuple[Executable, int | None]]] = WeakKeyDictionary()


def _executable(robot: Robot, make: Callable[..., Any], external: bool, dtype: Any) -> tuple[Executable, int | None]:
    """The compiled program of a robot, and which of its outputs tells whether loops are closed."""
    programs = _compiled.setdefault(robot, {})
    key = make, external, dtype
    if key not in programs:
        program = make(robot, external)
        outputs = [buffer.name for buffer in program.outputs]
        gap = outputs.index("gap") if "gap" in outputs else None
        programs[key] = compile(program, dtype, threads=_threads()), gap
    return programs[key]


def _threads() -> int:
    """How many threads share a batch: COUPLER_THREADS, or as many as there are processors for this process."""
    given = os.environ.get("COUPLER_THREADS", "")
    return max(int(given), 1) if given.isdigit() else len(os.sched_getaffinity(0))


def _run(robot: Robot, make: Callable[..., Any], q: Any, vectors: dict[str, Any], f_ext: Any) -> np.ndarray:
    dtype = np.dtype(np.float32 if getattr(q, "dtype", None) == np.float32 else np.float64)
    run, gap = _executable(robot, make, f_ext is not None, dtype)
    forces = () if f_ext is None else (_flat(robot, f_ext),)
    try:
        result = run(q, *vectors.values(), *forces)
    except GraphError as error:
        raise ModelError(f"robot {robot.name!r}: {error}") from None
    if gap is not None:
        opening, result = result[gap], result[1 - gap]
        if not (opening < _OPEN[dtype]).all():
            _explain(robot, q, vectors)
            _refuse_open(robot, opening)
    if not np.isfinite(result).all():
        _explain(robot, q, vectors)
        where = np.argwhere(~np.isfinite(result).all(axis=-1))[0] if result.ndim > 1 else ()
        raise ModelError(f"robot {robot.name!r}: the result is not finite{in_state([int(i) for i in where])}")
    return result


def _flat(robot: Robot, f_ext: Any) -> np.ndarray:
    forces = np.asarray(f_ext)
    wanted = len(robot.bodies), 6
    if forces.shape[-2:] != wanted:
        raise ModelError(f"f_ext has the shape {forces.shape}; robot {robot.name!r} takes (..., {wanted[0]}, 6)")
    return forces.reshape(*forces.shape[:-2], -1)


def _explain(robot: Robot, q: Any, vectors: dict[str, Any]) -> None:
    """Raises what is wrong with the arguments of a call that failed, if it is found."""
    for name, vector in {"q": q, **vectors}.items():
        values = np.asarray(vector, dtype=float)
        wrong = np.argwhere(~np.isfinite(values))
        if wrong.size:
            *state, entry = (int(i) for i in wrong[0])
            raise ModelError(f"{name} must be finite; entry {entry}{in_state(state)} is {values[tuple(wrong[0])]}")
    if np.asarray(q).dtype != np.float32:
        robot.check(q)


def _refuse_open(robot: Robot, opening: np.ndarray) -> None:
    worst = np.argwhere(~(opening < _OPEN[np.dtype(opening.dtype)]))[0][:-1]
    raise ModelError(
        f"robot {robot.name!r}: its loops are open by {float(opening.max()):.3g}{in_state([int(i) for i in worst])}; "
        "close(q) closes them"
    )
