"""Forces and accelerations of a robot.

Leading dimensions of q, v, ... are a batch, computed in lanes and threads. Numbers are float64, or float32 where q is.
Results are fresh arrays and depend on arguments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.actuation import generalized_forces_program
from coupler.algorithms.efpa import inverse_osim_program
from coupler.algorithms.loop_dynamics import loop_dynamics_program, loop_velocities_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.compiled import on_bodies, run, run_on_state
from coupler.kinematics import frame_place
from coupler.model import ModelError, Robot
from coupler.model.actuators import by_actuator

__all__ = ["bias_force", "forward_dynamics", "inverse_dynamics", "inverse_osim", "loop_dynamics", "loop_velocities"]


def forward_dynamics(
    robot: Robot, q: Any, v: Any, tau: Any = None, f_ext: Any = None, *, motors: Any = None
) -> np.ndarray:
    """Accelerations that forces cause, by the cluster-based articulated-body algorithm (C-ABA).

    H(q) a + c(q, v) = τ + forces of f_ext, where springs, dampers and armatures of the robot are part of H and c.

    Args:
        robot: the robot.
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints.
        tau: (..., nv), forces at independent joints, N m or N; none if not given.
        f_ext: (..., bodies, 6), a spatial force (moment, force) on each body, about the world's origin in the world's
            axes, in the order of `robot.body_names`.
        motors: (..., actuators), or by name, forces of actuators, N m or N, which act besides tau; none if not given.
            They are forces of servos, too, and limits are not looked at.

    Returns:
        (..., nv), accelerations of independent joints.
    """
    if motors is not None:
        own = run(robot, generalized_forces_program, q, by_actuator(robot, "motors", motors))
        tau = own if tau is None else own + np.asarray(tau)
    elif tau is None:
        tau = np.zeros(robot.nv, getattr(q, "dtype", float))
    if f_ext is None:
        return run_on_state(robot, forward_dynamics_program, q, v, tau)
    return run(robot, forward_dynamics_program, q, v, tau, on_bodies(robot, f_ext), options=(True,))


def loop_dynamics(
    robot: Robot, q: Any, v: Any, w: Any, tau: Any, f_ext: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Accelerations that forces cause, at dead points of loops, too.

    Args:
        robot: the robot.
        q, v, tau, f_ext: as in `forward_dynamics`; entries of v in loops without a solution do not count.
        w: (..., n), velocities of all joints in such loops, in the order of `robot.embedding.unsolved_entries`; what of
            them the loops do not allow is left out.

    Returns:
        (..., nv) and (..., n), accelerations of independent joints, and of all in such loops; then velocities v and w
        as the loops allow them.
    """
    if f_ext is None:
        return run(robot, loop_dynamics_program, q, v, w, tau)
    return run(robot, loop_dynamics_program, q, v, w, tau, on_bodies(robot, f_ext), options=(True,))


def loop_velocities(robot: Robot, q: Any, v: Any, w: Any) -> tuple[np.ndarray, np.ndarray]:
    """Velocities v and w, as for `loop_dynamics`, as the loops allow them: w − K⁺ K w, and v a part of that."""
    return run(robot, loop_velocities_program, q, v, w)


def inverse_dynamics(robot: Robot, q: Any, v: Any, a: Any, f_ext: Any = None) -> np.ndarray:
    """Forces that accelerations need, by the cluster-based recursive Newton-Euler algorithm (C-RNEA).

    Args:
        robot: the robot.
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints.
        a: (..., nv), accelerations of independent joints.
        f_ext: (..., bodies, 6), as in `forward_dynamics`.

    Returns:
        (..., nv), forces at independent joints, N m or N.
    """
    if f_ext is None:
        return run_on_state(robot, inverse_dynamics_program, q, v, a)
    return run(robot, inverse_dynamics_program, q, v, a, on_bodies(robot, f_ext), options=(True,))


def bias_force(robot: Robot, q: Any, v: Any, f_ext: Any = None) -> np.ndarray:
    """c(q, v): forces at independent joints that keep them from accelerating; (..., nv), N m or N."""
    return inverse_dynamics(robot, q, v, np.zeros(robot.nv, getattr(q, "dtype", float)), f_ext)


def inverse_osim(robot: Robot, q: Any, frames: Sequence[str]) -> np.ndarray:
    """J H⁻¹ Jᵀ: the inverse operational-space inertia of frames, by the extended force propagator algorithm (C-EFPA).

    Args:
        robot: the robot.
        q: (..., nq), a closed configuration.
        frames: names of frames, contact points or bodies.

    Returns:
        (..., 6 frames, 6 frames): accelerations of frames by forces at them, angular first, along each frame's axes.
    """
    if isinstance(frames, str):
        raise ModelError(f"frames must be a list of names, got {frames!r}")
    omega = run(robot, _inverse_osim_program, q, options=tuple(frames))
    size = 6 * len(frames)
    return omega.reshape(*omega.shape[:-1], size, size)


def _inverse_osim_program(robot: Robot, *frames: str) -> Any:
    return inverse_osim_program(robot, [frame_place(robot, frame) for frame in frames])
