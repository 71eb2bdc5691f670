"""A watch on the energy of a run: what nobody has put in is an error of the method, and goes on growing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from coupler.kinematics import potential_energy
from coupler.model import ModelError, ModelWarning, Robot
from coupler.simulate.engine import Engine

__all__ = ["GAINS", "EnergyWatch"]

GAINS = ("stop", "warn", "ignore")  # what a run does about energy from nowhere

_EVERY = 10  # steps between two looks
_GAIN = 0.1  # of the largest kinetic energy and the range of the potential: what a sound step never gains
_CREEP = 0.02  # m/s: the energy of a robot that moves so fast is nothing to be told
_TURN = 0.1  # rad or m of the fastest joint in a step: what a step should not exceed


class EnergyWatch:
    """Compares the energy of a running simulation with the work that is done on it.

    Contacts, dampers and dry friction take energy away. So the sum of kinetic and potential energy, less the work of
    motors, may fall, but not rise: by how much it has risen since it was lowest is what the method has made up.
    """

    def __init__(self, engine: Engine, gains: str, stacklevel: int = 4) -> None:
        """Args: what computes, one of `GAINS`, and the stack's depth of whoever is to be warned."""
        self._engine, self._gains, self._stacklevel = engine, gains, stacklevel
        self._work, self._lowest, self._kinetic = 0.0, np.inf, 0.0
        self._potential = [np.inf, -np.inf]
        self._least = 0.5 * engine.robot.mass * _CREEP**2
        self.on = gains != "ignore"

    def note(self, steps: int, time: float, before: np.ndarray, after: np.ndarray, tau: Any) -> None:
        """Looks at a step.

        Args:
            steps: how many were taken, with this one.
            time: when it ended, s.
            before, after: the states.
            tau: (nv,), forces at independent joints; None for none.

        Raises:
            ModelError: where energy comes from nowhere, if the run is to stop then.
        """
        if tau is not None:
            v = self._engine.layout.places["v"]
            self._work += 0.5 * self._engine.step * float(np.dot(tau, before[v] + after[v]))
        if steps % _EVERY:
            return
        engine, q = self._engine, after[self._engine.layout.places["q"]]
        try:
            kinetic, potential = float(engine.kinetic_energy(after)), float(potential_energy(engine.robot, q))
        except ModelError:  # of a pose that is no longer one; the next step will tell
            return
        gained = kinetic + potential - self._work - self._lowest
        self._lowest = min(self._lowest, kinetic + potential - self._work)
        self._kinetic = max(self._kinetic, kinetic)
        self._potential = [min(self._potential[0], potential), max(self._potential[1], potential)]
        known = self._kinetic + self._potential[1] - self._potential[0]
        if gained > _GAIN * known + self._least:
            self._tell(time, gained, after)

    def _tell(self, time: float, gained: float, state: np.ndarray) -> None:
        robot, engine = self._engine.robot, self._engine
        joint, speed = _fastest(robot, state[engine.layout.places["v"]])
        better = min(_TURN / max(speed, 1e-9), 0.5 * engine.step)
        text = (
            f"robot {robot.name!r} has gained {gained:.3g} J by {time:.6g} s that nobody put in: the step of "
            f"{engine.step:g} s is too long for how fast joint {joint!r} moves, {speed:.3g} rad/s or m/s; steps of "
            f"{better:.2g} s may do"
        )
        if engine.scene.integrator == "euler":
            text += ', or integrator="midpoint"'
        if self._gains == "stop":
            raise ModelError(f'{text}; on_energy_gain="warn" goes on')
        warnings.warn(text, ModelWarning, stacklevel=self._stacklevel)
        self.on = False  # once


def _fastest(robot: Robot, v: np.ndarray) -> tuple[str, float]:
    """The independent joint that moves fastest, and its velocity."""
    speeds = {joint: float(np.abs(v[robot.v_slice(joint)]).max(initial=0.0)) for joint in robot.independent_joints}
    joint = max(speeds, key=lambda name: speeds[name])
    return joint, speeds[joint]
