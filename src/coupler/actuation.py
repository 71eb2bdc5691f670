"""Positions, velocities, accelerations and forces of actuators from those of joints, and back. [003, §II-III]

Actuators are those of `robot.actuators`, in that order. Leading dimensions are a batch, as in dynamics.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.algorithms.actuation import (
    actuator_accelerations_program,
    actuator_jacobian_program,
    actuator_positions_program,
    actuator_velocities_program,
    generalized_forces_program,
)
from coupler.algorithms.inverse_actuation import actuated_motion_program, actuator_forces_program
from coupler.compiled import attempted, driven_through_joints, refuse_adhesions, run, zeros
from coupler.dynamics import inverse_dynamics
from coupler.model import ModelError, Robot
from coupler.model.actuators import by_actuator
from coupler.model.numbers import batch_of, numbers
from coupler.model.wording import in_state

__all__ = [
    "accelerations_of_actuators",
    "actuator_accelerations",
    "actuator_forces",
    "actuator_jacobian",
    "actuator_positions",
    "actuator_velocities",
    "generalized_forces",
    "motor_forces",
    "velocities_of_actuators",
]

# By the bytes of a number:
_RANK = {8: 1e-10, 4: 1e-5}  # singular values below this part of the largest count as zero
_STEEP = {8: 1e9, 4: 1e4}  # results larger than this multiple of what is asked for come from a singular system
_MISSED = {8: 1e-8, 4: 1e-3}  # how far results may miss what is asked for, relative to it


def actuator_positions(robot: Robot, q: Any) -> np.ndarray:
    """The positions u of all actuators: for each, the sum of gear × position over the joints that it drives.

    Those of cables are their lengths; see `coupler.Cable`, `coupler.SliderCrank` and `coupler.Wrench`.

    Args:
        q: (..., nq), closed configurations.

    Returns:
        (..., actuators), rad or m.

    Raises:
        ModelError: for an actuator on a ball joint, which has a velocity but no angle.
    """
    check_positions(driven_through_joints(robot))
    return run(robot, actuator_positions_program, q)


def actuator_velocities(robot: Robot, q: Any, v: Any) -> np.ndarray:
    """The velocities u̇ = A(q) v of all actuators, (..., actuators), rad/s or m/s; see `actuator_jacobian`.

    Args:
        q: (..., nq), closed configurations.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
    """
    return run(driven_through_joints(robot), actuator_velocities_program, q, v)


def actuator_accelerations(robot: Robot, q: Any, v: Any, a: Any) -> np.ndarray:
    """The accelerations ü = A(q) a + Ȧ v of all actuators, (..., actuators), rad/s² or m/s².

    Args:
        q: (..., nq), closed configurations.
        v: (..., nv), velocities of independent joints, rad/s or m/s.
        a: (..., nv), accelerations of independent joints, rad/s² or m/s².
    """
    return run(driven_through_joints(robot), actuator_accelerations_program, q, v, a)


def actuator_jacobian(robot: Robot, q: Any) -> np.ndarray:
    """The Jacobian A(q) from independent joints to actuators, (..., actuators, nv).

    It gives the velocities of actuators, u̇ = A v, and, by virtual work, the effect of their forces f at independent
    joints, τ = Aᵀ f.

    Args:
        q: (..., nq), closed configurations.
    """
    A = run(driven_through_joints(robot), actuator_jacobian_program, q)
    return A.reshape(*A.shape[:-1], len(robot.actuators), robot.nv)


def generalized_forces(robot: Robot, q: Any, forces: Any) -> np.ndarray:
    """The forces at independent joints that forces f of actuators amount to: τ = A(q)ᵀ f.

    Args:
        q: (..., nq), closed configurations.
        forces: (..., actuators), or a dictionary by name, forces of actuators, N m or N.

    Returns:
        (..., nv), N m or N.
    """
    return run(driven_through_joints(robot), generalized_forces_program, q, by_actuator(robot, "forces", forces))


def possible_forces(robot: Robot, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """`generalized_forces`, with NaN for states at which independent joints do not determine the others."""
    return attempted(driven_through_joints(robot), generalized_forces_program, q, forces)


def actuator_forces(robot: Robot, q: Any, tau: Any, weights: Any = None, *, exact: bool = True) -> np.ndarray:
    """Actuator forces f that amount to given forces τ at independent joints: A(q)ᵀ f = τ.

    If there are more actuators than freedoms, Σ weight · f² is minimal.

    Args:
        q: (..., nq), closed configurations.
        tau: (..., nv), forces at independent joints.
        weights: (actuators,), or by name, positive, the cost of each actuator's force; 1 if None.
        exact: whether to raise an error if the actuators cannot produce τ. Otherwise Aᵀ f is as close to τ as possible:
            in a floating robot, whose base nothing drives, the joints get what they need, and the base gets nothing.

    Returns:
        (..., actuators), N m or N, without regard to effort limits.

    Raises:
        ModelError: if the actuators cannot produce τ, naming the joint.
    """
    cost = _weights(robot, weights)
    forces, missed = _answered(robot, actuator_forces_program, q, tau, cost)
    if forces is None:
        A = actuator_jacobian(robot, q)
        root = (1.0 / np.sqrt(cost)).astype(A.dtype)
        forces = root * _solved(np.swapaxes(A * root[:, None], -1, -2), _given("tau", tau, robot.nv, A[..., 0]))
    if exact and missed:
        _check_forces(robot, q, forces, np.asarray(tau))
    return forces


def _weights(robot: Robot, weights: Any) -> np.ndarray:
    """The cost of each actuator's force."""
    count = len(driven_through_joints(robot).actuators)
    cost = np.ones(count) if weights is None else numbers("weights", by_actuator(robot, "weights", weights), (count,))
    if not (cost > 0.0).all():
        raise ModelError(f"weights must be above zero, got {cost.tolist()}")
    return cost


def _check_forces(robot: Robot, q: Any, forces: np.ndarray, tau: np.ndarray) -> None:
    """Raises a ModelError if actuator forces do not amount to τ, naming the joint where most is missing."""
    missing, allowed = np.abs(generalized_forces(robot, q, forces) - tau), _allowed(tau)
    if (wrong := np.argwhere(~(missing <= allowed))).size:
        *state, entry = (int(i) for i in wrong[0])
        entry = int(missing[tuple(state)].argmax())
        joint = robot.tree.joint_of(int(robot.embedding.v_index[entry]))
        raise ModelError(
            f"robot {robot.name!r}: its actuators cannot produce tau{in_state(state)}: at joint {joint!r} "
            f"{missing[(*state, entry)]:.3g} N m or N is missing; exact=False returns the closest forces"
        )


def motor_forces(
    robot: Robot, q: Any, v: Any, a: Any, f_ext: Any = None, weights: Any = None, *, exact: bool = True
) -> np.ndarray:
    """Actuator forces for given accelerations: `actuator_forces` for the result of `inverse_dynamics`.

    Args:
        q, v, a, f_ext: as in `inverse_dynamics`.
        weights, exact: as in `actuator_forces`.

    Returns:
        (..., actuators), N m or N.
    """
    return actuator_forces(robot, q, inverse_dynamics(robot, q, v, a, f_ext), weights, exact=exact)


def velocities_of_actuators(robot: Robot, q: Any, rates: Any, near: Any = None) -> np.ndarray:
    """Velocities v of independent joints for which actuators have given velocities u̇: A(q) v = u̇.

    Args:
        q: (..., nq), closed configurations.
        rates: (..., actuators), or a dictionary by name, u̇, rad/s or m/s.
        near: (..., nv), the velocities that v is closest to where actuators leave a choice; zero if None.

    Returns:
        (..., nv), rad/s or m/s.

    Raises:
        ModelError: if no motion of the robot gives all actuators these rates, naming one of them.
    """
    return _moved(robot, q, by_actuator(driven_through_joints(robot), "rates", rates), near, "velocity")


def accelerations_of_actuators(robot: Robot, q: Any, v: Any, rates: Any, near: Any = None) -> np.ndarray:
    """Accelerations a of independent joints for which actuators have given accelerations ü: A(q) a + Ȧ v = ü.

    Args:
        q, v: (..., nq) and (..., nv), states.
        rates: (..., actuators), or a dictionary by name, ü, rad/s² or m/s².
        near: (..., nv), the accelerations that a is closest to where actuators leave a choice; zero if None.

    Returns:
        (..., nv), rad/s² or m/s².

    Raises:
        ModelError: if no motion of the robot gives all actuators these rates, naming one of them.
    """
    bias = actuator_accelerations(robot, q, v, zeros(robot, q))
    rates = by_actuator(robot, "rates", rates)
    return _moved(robot, q, _given("rates", rates, len(robot.actuators), bias) - bias, near, "acceleration")


def check_positions(robot: Robot) -> None:
    """Raises a ModelError for actuators on ball joints, which have a velocity but no position."""
    refuse_adhesions(robot)
    kinds = {joint.name: joint.kind for joint in robot.joints}
    for actuator in robot.actuators:
        if actuator.along is not None and not actuator.along.has_position:
            raise ModelError(
                f"actuator {actuator.name!r}: a {type(actuator.along).__name__} that is against no other body has no "
                "position"
            )
        for joint in actuator.joints:
            if kinds[joint].nq != kinds[joint].nv:
                raise ModelError(
                    f"actuator {actuator.name!r}: joint {joint!r} turns as a ball does, and has no position to sum up"
                )


def _moved(robot: Robot, q: Any, rates: Any, near: Any, what: str) -> np.ndarray:
    """The motion closest to `near` that gives actuators these rates."""
    if near is None:
        near = zeros(robot, q)
    count = len(driven_through_joints(robot).actuators)
    motion, missed = _answered(robot, actuated_motion_program, q, near, rates)
    if motion is not None and not missed:
        return motion
    A = actuator_jacobian(robot, q)
    rates, near = _given("rates", rates, count, A[..., 0]), _given("near", near, robot.nv, A[..., 0])
    batch_of({"rates": rates, "near": near})
    size = np.abs(A).max(axis=-1, initial=0.0, keepdims=True)  # large gears must not hide small ones
    size = np.where(size > 0.0, size, 1.0).astype(A.dtype)
    motion = near + _solved(A / size, (rates - _times(A, near)) / size[..., 0])
    missing = np.abs(_times(A, motion) - rates)
    if (wrong := np.argwhere(~(missing <= _allowed(rates)))).size:
        *state, _ = (int(i) for i in wrong[0])
        name = robot.actuators[int(missing[tuple(state)].argmax())].name
        raise ModelError(
            f"robot {robot.name!r}: its actuators cannot move like this{in_state(state)}: no motion of independent "
            f"joints gives {name!r} its {what} and all others theirs"
        )
    return motion


def _answered(robot: Robot, make: Callable[[Robot], Any], q: Any, *vectors: Any) -> tuple[np.ndarray | None, bool]:
    """The result of a program that solves a linear system for each group of clusters, and whether it misses its target.

    The result is None if a system is singular. Pseudoinverses then find out what is wrong, or the closest result.
    """
    try:
        result = run(robot, make, q, *vectors)
    except ModelError:
        return None, True
    answer, (largest, answered, missed) = result[..., :-3], np.moveaxis(result[..., -3:], -1, 0)
    size = result.dtype.itemsize
    if not (answered <= _STEEP[size] * largest).all():
        return None, True
    return np.ascontiguousarray(answer), not (missed <= _MISSED[size] * largest).all()


def _given(what: str, values: Any, size: int, other: np.ndarray) -> np.ndarray:
    """Finite numbers, (..., size), whose batch fits another array's; in float32 only if they are given so."""
    given = numbers(what, values, (size,), batch=True)
    batch_of({"q": other, what: given})
    return given.astype(np.float32) if np.asarray(values).dtype == np.float32 else given


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The shortest x for which A x is closest to b."""
    return _times(np.linalg.pinv(A, rcond=_RANK[A.dtype.itemsize]), b)


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[..., None])[..., 0]


def _allowed(wanted: np.ndarray) -> np.ndarray:
    """The largest allowed error of a result, (..., 1), given what is wanted."""
    size = _MISSED[4 if wanted.dtype == np.float32 else 8]
    return size * np.maximum(np.abs(wanted).max(axis=-1, initial=0.0, keepdims=True), 1.0)
