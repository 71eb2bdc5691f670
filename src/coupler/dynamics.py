"""Forces and accelerations of a robot, which satisfy its equation of motion

    H(q) a + c(q, v) = τ + Jᵀ f_ext,

where q is a configuration with closed loops, v and a are velocities and accelerations of the independent joints, and τ
are forces at these. H is the mass matrix, armatures included. c contains Coriolis, centrifugal and gravitational
forces, and those of springs and dampers. Loops are accounted for exactly in H and c; their forces do not appear.

Leading dimensions of q, v, ... are a batch, computed in lanes and threads. Numbers are float64, or float32 if q is.
Results are new arrays and depend on the arguments alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.actuation import generalized_forces_program
from coupler.algorithms.control_forces import control_forces_program
from coupler.algorithms.efpa import inverse_osim_program
from coupler.algorithms.loop_dynamics import loop_dynamics_program, loop_velocities_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.compiled import driven_through_joints, on_bodies, run, run_on_state, zeros
from coupler.kinematics import frame_place
from coupler.model import ModelError, Robot
from coupler.model.actuators import by_actuator
from coupler.model.names import names_given
from coupler.model.numbers import as_array, batch_of

__all__ = [
    "bias_force",
    "control_forces",
    "forward_dynamics",
    "inverse_dynamics",
    "inverse_osim",
    "loop_dynamics",
    "loop_velocities",
]


def forward_dynamics(
    robot: Robot, q: Any, v: Any, tau: Any = None, f_ext: Any = None, motors: Any = None, rates: Any = None
) -> np.ndarray:
    """The accelerations a that forces cause, by the cluster-based articulated-body algorithm (C-ABA).

    Solves H(q) a + c(q, v) = τ + Jᵀ f_ext in linear time. Springs, dampers and armatures of the robot are part of H and
    c.

    Args:
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
        tau: (..., nv), forces at independent joints, N m or N; zero if None.
        f_ext: (..., bodies, 6), a spatial force (moment, force) on each body, about the world's origin in the world's
            axes, in the order of `robot.body_names`.
        motors: (..., actuators), or a dictionary by name, the controls of actuators, as in `Simulation.step`: the force
            of a motor, the target of a servo. Their forces, see `control_forces`, are added to tau. To apply given
            forces whatever kind the actuators are, pass `tau=generalized_forces(robot, q, forces)`.
        rates: (..., actuators), or by name, the velocities of the targets of position servos; zero if None.

    Returns:
        (..., nv), accelerations of independent joints, rad/s² or m/s².
    """
    if motors is not None:
        of_motors = run(robot, generalized_forces_program, q, control_forces(robot, q, v, motors, rates))
        tau = of_motors if tau is None else of_motors + _fitting(robot, of_motors, tau)
    elif rates is not None:
        raise ModelError("rates are the velocities of targets; give motors as well")
    elif tau is None:
        tau = zeros(robot, q)
    if f_ext is None:
        return run_on_state(robot, forward_dynamics_program, q, v, tau)
    return run(robot, forward_dynamics_program, q, v, tau, on_bodies(robot, f_ext), options=(True,))


def _fitting(robot: Robot, of_motors: np.ndarray, tau: Any) -> np.ndarray:
    """Forces at independent joints, (..., nv), to be added to those of motors."""
    forces = as_array("tau", tau)
    if forces.dtype.kind not in "fiub" or forces.shape[-1:] != (robot.nv,):
        given = f"shape {forces.shape}" if forces.dtype.kind in "fiub" else f"type {forces.dtype}"
        raise ModelError(f"tau has the {given}; robot {robot.name!r} takes numbers (..., {robot.nv})")
    batch_of({"motors": of_motors, "tau": forces})
    return forces


def control_forces(robot: Robot, q: Any, v: Any, motors: Any, rates: Any = None) -> np.ndarray:
    """The forces of actuators in a state under given controls, within their limits, as a simulation step starts with.

    Args:
        robot: the robot.
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
        motors: (..., actuators), or a dictionary by name: the force of a motor, the target of a servo.
        rates: (..., actuators), or by name, the velocities of the targets of position servos; zero if None.

    Returns:
        (..., actuators), N m or N, in the order of `robot.actuators`.
    """
    controls = by_actuator(driven_through_joints(robot, "motors: "), "motors", motors)
    moving = np.zeros(len(robot.actuators), getattr(q, "dtype", float))
    if rates is not None:
        if not any(actuator.kind == "position" for actuator in robot.actuators):
            raise ModelError(f"rates: robot {robot.name!r} has no position servos; only their targets have rates")
        moving = by_actuator(robot, "rates", rates)
    return run(robot, control_forces_program, q, v, controls, moving)


def loop_dynamics(
    robot: Robot, q: Any, v: Any, w: Any, tau: Any, f_ext: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The accelerations that forces cause, as `forward_dynamics`, but valid at dead points of loops as well.

    At a dead point the independent joints do not determine how the others move, so that velocities of all joints are
    needed. This concerns loops that are closed numerically, that is, without a solution γ.

    Args:
        q, v, tau, f_ext: as in `forward_dynamics`; entries of v that belong to such loops are ignored.
        w: (..., n), velocities of all joints in such loops, in the order of `robot.embedding.unsolved_entries`.
            Components that would open a loop are removed.

    Returns:
        Four arrays: accelerations of the independent joints, (..., nv), and of all joints in such loops, (..., n); then
        v and w without the components that would open a loop.
    """
    if f_ext is None:
        return run(robot, loop_dynamics_program, q, v, w, tau)
    return run(robot, loop_dynamics_program, q, v, w, tau, on_bodies(robot, f_ext), options=(True,))


def loop_velocities(robot: Robot, q: Any, v: Any, w: Any) -> tuple[np.ndarray, np.ndarray]:
    """Velocities v and w, as `loop_dynamics` takes them, without the components that would open a loop.

    With the Jacobian K of the loops, these are w − K⁺ K w, and its entries that belong to independent joints.

    Returns:
        v, (..., nv), and w, (..., n), rad/s or m/s.
    """
    return run(robot, loop_velocities_program, q, v, w)


def inverse_dynamics(robot: Robot, q: Any, v: Any, a: Any, f_ext: Any = None) -> np.ndarray:
    """The forces τ that cause given accelerations, by the cluster-based recursive Newton-Euler algorithm (C-RNEA).

    Evaluates τ = H(q) a + c(q, v) − Jᵀ f_ext in linear time: the inverse of `forward_dynamics`.

    Args:
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
        a: (..., nv), accelerations of independent joints, rad/s² or m/s².
        f_ext: (..., bodies, 6), as in `forward_dynamics`.

    Returns:
        (..., nv), forces at independent joints, N m or N.
    """
    if f_ext is None:
        return run_on_state(robot, inverse_dynamics_program, q, v, a)
    return run(robot, inverse_dynamics_program, q, v, a, on_bodies(robot, f_ext), options=(True,))


def bias_force(robot: Robot, q: Any, v: Any, f_ext: Any = None) -> np.ndarray:
    """The bias force c(q, v) − Jᵀ f_ext: the forces at independent joints for which these do not accelerate.

    This is `inverse_dynamics` for a = 0: Coriolis, centrifugal and gravitational forces, springs and dampers.

    Args:
        q: (..., nq), a closed configuration.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
        f_ext: (..., bodies, 6), as in `forward_dynamics`.

    Returns:
        (..., nv), N m or N.
    """
    return inverse_dynamics(robot, q, v, zeros(robot, q), f_ext)


def inverse_osim(robot: Robot, q: Any, frames: Iterable[str]) -> np.ndarray:
    """J H⁻¹ Jᵀ: the inverse operational-space inertia of frames, by the extended force propagator algorithm (C-EFPA).

    Args:
        q: (..., nq), a closed configuration.
        frames: names of frames, contact points or bodies.

    Returns:
        Ω, (..., 6 frames, 6 frames), symmetric and positive semidefinite. Each frame has six rows and columns, angular
        first, about its origin and along its axes: forces f at the frames, N m and N, change their accelerations,
        rad/s² and m/s², by Ω f.
    """
    names = names_given("frames", frames)
    omega = run(robot, _inverse_osim_program, q, options=names)
    size = 6 * len(names)
    return omega.reshape(*omega.shape[:-1], size, size)


def _inverse_osim_program(robot: Robot, *frames: str) -> Any:
    return inverse_osim_program(robot, [frame_place(robot, frame) for frame in frames])
