"""What acts on a robot in a step, according to the user's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from coupler.model import ModelError

Controller = Callable[[float, np.ndarray, np.ndarray], Any]


class Acting(NamedTuple):
    """The forces and controls in a step, as arguments of `Simulation.step`; None for none."""

    tau: Any
    f_ext: Any
    motors: Any
    rates: Any


class Control:
    """A controller of joints, which may also push bodies, and one of actuators; see `Simulation.run`."""

    def __init__(self, controller: Controller | None, motors: Any) -> None:
        """Takes functions of (t, q, v); instead of a function, `motors` may be constant controls of actuators."""
        if controller is not None and not callable(controller):
            raise ModelError(
                f"the controller must be a function of (t, q, v), got {type(controller).__name__}; for forces known "
                "beforehand use coupler.rollout, and for controls of actuators motors=..."
            )
        self._controller = controller
        self._driver: Controller | None = motors if callable(motors) or motors is None else (lambda t, q, v: motors)

    def at(self, time: float, q: np.ndarray, v: np.ndarray) -> Acting:
        """Calls the controllers at a state."""
        tau, f_ext = None if self._controller is None else self._controller(time, q, v), None
        if type(tau) is tuple and len(tau) == 2 and (tau[1] is None or np.ndim(tau[1]) == 2):
            tau, f_ext = tau
        motors, rates = None, None
        if self._driver is not None:
            motors = self._driver(time, q, v)
            if type(motors) is tuple and len(motors) == 2 and _are_several(motors[0]):
                motors, rates = motors
        return Acting(tau, f_ext, motors, rates)


def _are_several(controls: Any) -> bool:
    """Whether these are controls of several actuators rather than of one."""
    return isinstance(controls, Mapping) or np.ndim(controls) > 0
