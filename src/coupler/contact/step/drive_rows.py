"""The rows of actuators in the contact problem of a step, and what is known of them beforehand; see drives.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.algorithms.actuation import actuator_jacobian_program
from coupler.compiled import run
from coupler.contact.scene import ContactScene
from coupler.contact.servos import at_joint
from coupler.graph import is_known
from coupler.inertia import mass_matrix_solve
from coupler.model import ModelError, Robot
from coupler.model.actuator_limits import SharedLimit
from coupler.model.actuators import Actuator, terms_of

_ENDLESS = 1e12  # N m or N: stands for no limit of effort, so that all numbers stay finite
_LARGE = 1e6  # N m or N: the same where one side alone has a limit
_FAR = 1e10  # rad/s or m/s: stands for a speed limit that there is not
_CONFIGURATIONS = 64  # in which it is looked at how easily actuators move


@dataclass(frozen=True)
class DriveRow:
    """A row of the contact problem: a servo, or an actuator at its speed limit.

    Attributes:
        actuator: its number.
        servo: which of the two.
        scale: the row's velocity is so many times the actuator's, and its impulse so many times smaller, so that rows
            of weak servos and of large gears have numbers like others.
    """

    actuator: int
    servo: bool
    scale: float


def drive_rows(
    robot: Robot, scene: ContactScene, actuators: Sequence[Actuator], damping: Sequence[Any], spared: set[int]
) -> list[DriveRow]:
    """The rows of actuators, of which some are spared, as others stand for them."""
    rows, h = [], scene.step
    for number, actuator in enumerate(actuators):
        gear = float(np.linalg.norm([gear for _, _, gear in terms_of(robot, actuator)]))
        own = scene.implicit and actuator.servo and number not in spared
        if own and not at_joint(robot, actuator, yielding=scene.yielding):
            softest = float(np.sqrt(h * damping[number])) if is_known(damping[number]) else np.inf
            rows.append(DriveRow(number, True, min(1.0 / gear, softest)))
        if actuator.speed < np.inf:
            rows.append(DriveRow(number, False, 1.0 / gear))
    return rows


def effort_limits(actuator: Actuator) -> tuple[float, float]:
    """The limits of effort, as finite numbers."""
    low, high = actuator.effort
    if low == -np.inf and high == np.inf:
        return -_ENDLESS, _ENDLESS
    large = max(_LARGE, 1e3 * min(abs(low), abs(high)))
    return max(low, -large), min(high, large)


def damping_of(group: SharedLimit, damping: Sequence[Any]) -> Any:
    """D of servos of one joint together."""
    return sum(gear**2 * damping[number] for gear, number in zip(group.gears[0], group.members, strict=True))


def mobilities_of(robot: Robot) -> np.ndarray:
    """Of all actuators, how easily each is moved at most in some configurations: the diagonal of A H⁻¹ Aᵀ."""
    rng, count = np.random.default_rng(0), len(robot.actuators)
    largest = np.zeros(count)
    for _ in range(_CONFIGURATIONS):
        q = robot.random_state(rng)[0]
        try:
            A = run(robot, actuator_jacobian_program, q).reshape(count, robot.nv)
            largest = np.maximum(largest, np.sum(A * mass_matrix_solve(robot, q, A), axis=1))
        except ModelError:  # at a dead point
            continue
    return np.where(largest > 0.0, largest, _FAR)
