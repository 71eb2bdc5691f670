"""Forces and controls from the user for a step, checked and brought to the shape of its states."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.step.drives import controls_of
from coupler.model import ModelError, Robot
from coupler.model.actuators import by_actuator
from coupler.model.numbers import numbers


def checked_forces(name: str, given: Any, batch: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Forces of one state, or of a batch, which may be the same for all states; zeros if None."""
    values = numbers(name, np.zeros(shape) if given is None else given, shape, batch=bool(batch))
    try:
        return np.broadcast_to(values, (*batch, *shape))
    except ValueError:
        raise ModelError(f"{name} has the shape {values.shape}, for states of {batch}") from None


def checked_controls(robot: Robot, motors: Any, rates: Any = None, batch: tuple[int, ...] = ()) -> np.ndarray:
    """The controls of actuators as a step takes them, (..., `controls_of(robot)`).

    Args:
        robot: the robot with the actuators.
        motors: (..., actuators), a number for each actuator, or a mapping from their names.
        rates: the rates of targets, likewise; zero if None.
        batch: the leading dimensions of states.

    Raises:
        ModelError: for an unknown or a missing name, a wrong shape, and numbers that are not finite.
    """
    count = len(robot.actuators)
    values = checked_forces("motors", by_actuator(robot, "motors", motors), batch, (count,))
    if controls_of(robot) == count:
        if rates is not None:
            raise ModelError(f"rates: robot {robot.name!r} has no position servos; only their targets have rates")
        return values
    moving = None if rates is None else by_actuator(robot, "rates", rates)
    return np.concatenate([values, checked_forces("rates", moving, batch, (count,))], axis=-1)
