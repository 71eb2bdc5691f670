"""A watch on the energy of a simulation that is stepped by hand: it checks rarely, and closely once energy has risen.

A run adds up the work of every step, which takes longer than a short step does. Here a step only pays for comparing two
numbers. Every so many steps, the energy of the state is computed. If it has risen by more than a sound step ever gains,
the following steps are checked one by one, with the work done in them, until that work explains the rise.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from coupler.model.errors import warn
from coupler.simulate.energy_watch import EVERY, GAIN, Ledger, gain_told, is_between_phases, least_gain
from coupler.simulate.engine import Engine

_FIRST, _SELDOM = 10, 500  # steps between checks, doubled each time, up to what costs a step 10 ns
_CLOSELY = 5 * EVERY  # steps that are checked one by one
_MOST_WAIT = 8 * _SELDOM  # if work explains the rise each time


class StepWatch:
    """Checks the energy of a simulation, and warns once if it comes from nowhere.

    Attributes:
        due: the number of steps at which the next check is due.
    """

    due: float
    _ledger: Ledger | None  # of the steps that are looked at one by one

    def __init__(self, engine: Engine) -> None:
        self._engine, self._least = engine, least_gain(engine)
        self.begin(0)

    def begin(self, steps: int) -> None:
        """Restarts after some steps, as when a simulation continues from another state."""
        self._lowest, self._kinetic, self._low, self._high = inf, 0.0, inf, -inf
        self._ledger, self._wait, self._most_wait, self.due = None, _FIRST, _SELDOM, steps + _FIRST

    def look(self, steps: int, before: np.ndarray, after: np.ndarray, tau: Any, f_ext: Any) -> None:
        """Checks a step, with what acted in it: see `EnergyWatch.note`."""
        if self._ledger is not None:
            self._ledger.add_work(before, after, tau, None if f_ext is None else np.asarray(f_ext, dtype=float))
            self.due = steps + 1
            if steps % EVERY == 0:
                self._look_closely(self._ledger, steps, after[: self._engine.layout.state])
            return
        state = after[: self._engine.layout.state]
        if is_between_phases(self._engine, state):
            self.due = steps + 1
            return
        total, rises = self._look(state)
        self._wait = min(2 * self._wait, self._most_wait)
        self.due = steps + self._wait
        if rises:
            self._ledger, self._until, self._began, self.due = Ledger(self._engine), steps + _CLOSELY, total, steps + 1
            self._ledger.gained(state)

    def risen(self, state: np.ndarray) -> str:
        """A message that energy rose before an impossible step; empty if it did not."""
        lowest = self._lowest
        total, rises = self._look(state)
        if not rises:
            return ""
        return f"; its energy has risen by {total - lowest:.3g} J, by work or because steps are too long"

    def _look(self, state: np.ndarray) -> tuple[float, bool]:
        """The energy of a state, J, and whether it has risen, by work or from nowhere."""
        kinetic, potential = (float(energy) for energy in self._engine.energies(state))
        total = kinetic + potential
        self._kinetic = max(self._kinetic, kinetic)
        self._low, self._high = min(self._low, potential), max(self._high, potential)
        rises = total - self._lowest > GAIN * (self._kinetic + self._high - self._low) + self._least
        self._lowest = min(self._lowest, total)
        return total, rises

    def _look_closely(self, ledger: Ledger, steps: int, state: np.ndarray) -> None:
        gained, too_much = ledger.gained(state)
        if np.isnan(gained):
            return
        if too_much:
            text = gain_told(self._engine, steps * self._engine.step, float(gained), state)
            warn(f"{text}; `Simulation.run` stops here")
            self.due = inf  # once
        elif steps >= self._until:
            total, _ = self._look(state)
            if gained > 0.5 * (total - self._began) > 0.0:
                self._until = steps + _CLOSELY
            else:
                self._ledger, self._lowest, self._wait = None, total, self._most_wait
                self._most_wait, self.due = min(2 * self._most_wait, _MOST_WAIT), steps + self._wait
