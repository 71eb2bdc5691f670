"""Forces and controls that a user gives for a step, checked and brought into the shape of its states."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.step.drives import controls_of
from coupler.model import ModelError, Robot
from coupler.model.actuators import by_actuator
from coupler.model.numbers import numbers


def given_forces(name: str, given: Any, batch: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Forces of one state, or of a batch, which may be the same for all; zeros if not given."""
    values = numbers(name, np.zeros(shape) if given is None else given, shape, batch=bool(batch))
    try:
        return np.broadcast_to(values, (*batch, *shape))
    except ValueError:
        raise ModelError(f"{name} has the shape {values.shape}, for states of {batch}") from None


def given_controls(robot: Robot, motors: Any, rates: Any = None, batch: tuple[int, ...] = ()) -> np.ndarray:
    """What a step takes to control actuators, (..., as many as `controls_of` tells).

    Args:
        robot: the robot with the actuators.
        motors: (..., actuators), a number for each actuator, or by name.
        rates: the same of rates of targets; zero if not given.
        batch: the leading dimensions of states.

    Raises:
        ModelError: for an unknown name, a missing one, a wrong shape, and what is not finite.
    """
    count = len(robot.actuators)
    values = given_forces("motors", by_actuator(robot, "motors", motors), batch, (count,))
    if controls_of(robot) == count:
        if rates is not None:
            raise ModelError(f"rates: robot {robot.name!r} has no position servo, which alone has rates of targets")
        return values
    moving = None if rates is None else by_actuator(robot, "rates", rates)
    return np.concatenate([values, given_forces("rates", moving, batch, (count,))], axis=-1)
