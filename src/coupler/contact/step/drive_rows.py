"""The rows of actuators in the contact problem of a step; see drives.py."""

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

ENDLESS = 1e12  # N m or N: stands for no limit of effort, so that all numbers stay finite
_LARGE = 1e6  # N m or N: stands for the missing limit if only one side has one
_FREE = 1e10  # stands for the mobility of an actuator that was not found to move
_CONFIGURATIONS = 64  # samples from which the mobilities of actuators are taken


@dataclass(frozen=True)
class DriveRow:
    """A row of the contact problem: a servo, or an actuator at its speed limit.

    Attributes:
        actuator: the number of the actuator.
        servo: whether it is the row of a servo rather than of a speed limit.
        scale: the row's velocity over the actuator's, and the actuator's impulse over the row's. It makes rows of weak
            servos and of large gears comparable with others.
    """

    actuator: int
    servo: bool
    scale: float


def drive_rows(
    robot: Robot, scene: ContactScene, actuators: Sequence[Actuator], damping: Sequence[Any], members: set[int]
) -> list[DriveRow]:
    """The rows of actuators.

    Args:
        robot: the robot as it is described.
        actuators: all actuators, stand-ins included.
        damping: the damping D of each actuator.
        members: the numbers of servos that have no row, because a stand-in has it for them.
    """
    rows, h = [], scene.step
    for number, actuator in enumerate(actuators):
        gear = 1.0
        if actuator.along is None:
            gear = float(np.linalg.norm([gear for _, _, gear in terms_of(robot, actuator)]))
        servo = scene.implicit and actuator.servo and number not in members
        if servo and not at_joint(robot, actuator, yielding=scene.yielding):
            softest = float(np.sqrt(h * damping[number])) if is_known(damping[number]) else np.inf
            rows.append(DriveRow(number, True, min(1.0 / gear, softest)))
        if actuator.speed < np.inf:
            rows.append(DriveRow(number, False, 1.0 / gear))
    return rows


def effort_limits(actuator: Actuator) -> tuple[float, float]:
    """The limits of effort of an actuator, as finite numbers."""
    low, high = actuator.effort
    if low == -np.inf and high == np.inf:
        return -ENDLESS, ENDLESS
    large = max(_LARGE, 1e3 * min(abs(low), abs(high)))
    return max(low, -large), min(high, large)


def damping_of(group: SharedLimit, damping: Sequence[Any]) -> Any:
    """The damping D of the servos of one joint together."""
    return sum(gear**2 * damping[number] for gear, number in zip(group.gears[0], group.members, strict=True))


def mobilities_of(robot: Robot) -> np.ndarray:
    """The largest mobility of each actuator in some configurations: the diagonal of A H⁻¹ Aᵀ."""
    rng, count = np.random.default_rng(0), len(robot.actuators)
    largest = np.zeros(count)
    for _ in range(_CONFIGURATIONS):
        q = robot.random_state(rng)[0]
        try:
            A = run(robot, actuator_jacobian_program, q).reshape(count, robot.nv)
            largest = np.maximum(largest, np.sum(A * mass_matrix_solve(robot, q, A), axis=1))
        except ModelError:  # at a dead point
            continue
    return np.where(largest > 0.0, largest, _FREE)
