"""The rows that a running simulation hands to its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.actuation import possible_forces
from coupler.simulate.engine import Engine
from coupler.simulate.logs import LogWriter

_BLOCK = 256  # rows that are handed over together


class Rows:
    """Rows of a log, collected step by step and handed over in blocks."""

    def __init__(self, writer: LogWriter, engine: Engine) -> None:
        self._writer, self._engine, self._count, self._handed = writer, engine, 0, len(writer)
        nv, layout = engine.robot.nv, engine.layout
        self._times, self._states = np.empty(_BLOCK), np.empty((_BLOCK, layout.state))
        self._tau, self._results = np.empty((_BLOCK, nv)), np.empty((_BLOCK, layout.size))
        self._motors = np.zeros((_BLOCK, len(engine.robot.actuators)))

    def add(self, time: float, state: np.ndarray, tau: Any, result: np.ndarray | None) -> None:
        """Adds a row.

        Args:
            time: s.
            state: (layout.state,), the state at that time.
            tau: (nv,), forces in the step that starts there, or for the last row of a run in the step before, except
                those of actuators; None for none.
            result: (layout.size,), the result of that step; None if there was none.
        """
        k = self._count
        self._times[k], self._states[k] = time, state
        self._tau[k] = 0.0 if tau is None else tau
        self._results[k], self._motors[k] = 0.0, 0.0
        if result is not None:
            self._results[k] = result[: self._engine.layout.size]
            if len(result) > self._engine.layout.size:
                self._motors[k] = result[self._engine.motor_layout.places["motors"]]
        self._count = k + 1
        if self._writer.is_due():
            self.flush()
            self._writer.flush()
        elif self._count == _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Hands the collected rows to the log."""
        places, engine = self._engine.layout.places, self._engine
        done = len(self._writer) - self._handed  # not zero if an interrupt came right after rows were handed over
        rows = slice(done, self._count)
        results = self._results[rows]
        columns: dict[str, Callable[[], np.ndarray]] = {
            "times": lambda: self._times[rows],
            "q": lambda: self._states[rows, places["q"]],
            "v": lambda: self._states[rows, places["v"]],
            "tau": lambda: self._all_forces(rows),
            "gaps": lambda: results[:, places["gaps"]],
            "forces": lambda: engine.forces(results),
            "points": lambda: engine.points(results),
            "kinetic": lambda: self._kinetic_energies(self._states[rows]),
            "residuals": lambda: results[:, places["residual"]][:, 0],
            "sweeps": lambda: results[:, places["sweeps"]][:, 0] + results[:, places["iterations"]][:, 0],
        }
        if len(results):
            self._writer.extend(**{name: columns[name]() for name in self._writer.columns})
        self._handed, self._count = len(self._writer), 0

    def _all_forces(self, rows: slice) -> np.ndarray:
        """Forces at independent joints, with those of actuators; NaN where they are not determined."""
        motors, q = self._motors[rows], self._states[rows, self._engine.layout.places["q"]]
        return self._tau[rows] + possible_forces(self._engine.robot, q, motors) if motors.any() else self._tau[rows]

    def _kinetic_energies(self, states: np.ndarray) -> np.ndarray:
        """Kinetic energies of states with loops without a solution, which v may not determine; NaN for other robots."""
        if not self._engine.layout.loop_links:
            return np.full(len(states), np.nan)
        return self._engine.kinetic_energy(states)
