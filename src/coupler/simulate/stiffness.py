"""Whether springs and dampers of joints, and servos, are too stiff for an explicit method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler.actuation import actuator_jacobian
from coupler.contact.scheme import SCHEMES
from coupler.inertia import mass_matrix
from coupler.model import ModelError, Robot

_MOST_GROWTH = 1.0 + 1e-3 * np.log(2.0)  # of an oscillation in a step, so that a thousand steps do not double it
_HALVINGS = 40


def check_stiffness(robot: Robot, q: np.ndarray, step: float, integrator: str, *, servos: bool = False) -> None:
    """Refuses explicit steps in which springs and dampers make a robot's oscillations around q, (nq,), grow.

    With K and D of joints, ÿ = −H⁻¹ (K y + D ẏ) has the eigenvalues λ, and a step multiplies each mode by R(hλ), which
    for the fourth order is 1 + hλ + (hλ)²/2 + (hλ)³/6 + (hλ)⁴/24. It must not exceed 1 by much: the trapezoidal rule
    makes all springs oscillate a little more, by (hω)⁴/8 a step. Of inertia only H counts, and gravity does not.

    Args:
        q: (nq,), a closed configuration.
        step: h, s.
        integrator: one of `SCHEMES`.
        servos: whether servos act, too, as springs and dampers at what they drive.

    Raises:
        ModelError: naming the joint that moves most in the growing mode, and a step that is short enough.
    """
    given: Mapping[str, Any] = {} if robot.given is None else robot.given.values
    stiffness, damping = (_of_joints(robot, quantity, given) for quantity in ("stiffness", "damping"))
    driven = robot.actuators if servos else ()
    servo_stiffness: list[Any] = [given.get(f"servo_stiffness:{servo.name}", servo.stiffness) for servo in driven]
    servo_damping: list[Any] = [given.get(f"servo_damping:{servo.name}", servo.most_damping) for servo in driven]
    stiffness, damping = np.append(stiffness, servo_stiffness), np.append(damping, servo_damping)
    if not (stiffness.any() or damping.any()):
        return
    try:
        G, H = robot.explicit_constraint(q)[0], mass_matrix(robot, q)
        G = np.concatenate([G, actuator_jacobian(robot, q)]) if driven else G
    except ModelError:  # at a dead point, which a motion passes
        return
    K, D = (np.linalg.solve(H, G.T @ (values[:, None] * G)) for values in (stiffness, damping))
    rates, modes = np.linalg.eig(np.block([[np.zeros_like(K), np.eye(robot.nv)], [-K, -D]]))
    growth = SCHEMES[integrator].growth(step * rates)
    if growth.max() <= _MOST_GROWTH:
        return
    moving = np.abs(modes[robot.nv :, int(growth.argmax())])
    joint = max(robot.independent_joints, key=lambda name: moving[robot.v_slice(name)].max(initial=0.0))
    shortest, longest = 0.0, step
    for _ in range(_HALVINGS):
        middle = 0.5 * (shortest + longest)
        stable = SCHEMES[integrator].growth(middle * rates).max() <= _MOST_GROWTH
        shortest, longest = (middle, longest) if stable else (shortest, middle)
    raise ModelError(
        f"robot {robot.name!r}: {'servos, ' if servos else ''}springs and dampers about joint {joint!r} are too strong "
        f'for steps of {step:g} s with integrator="{integrator}", which is explicit; steps of {shortest:.2g} s would '
        'do, or integrator="midpoint", for which none is too strong'
    )


def _of_joints(robot: Robot, quantity: str, given: Mapping[str, Any]) -> np.ndarray:
    """(Σ nv,): the stiffness or damping of all joints, with the robot's parameters as given."""
    values = [given.get(f"{quantity}:{link.joint}", getattr(link.kind, quantity)) for link in robot.tree.links]
    return np.concatenate([np.atleast_1d(value) for value in values])
