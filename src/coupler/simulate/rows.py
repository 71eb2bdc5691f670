"""The rows that a running simulation hands to its log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.simulate.engine import Engine
from coupler.simulate.logs import LogWriter

__all__ = ["Rows"]

_BLOCK = 256  # rows that are handed over at once


class Rows:
    """Rows of a log, kept as steps give them, and handed over in blocks."""

    def __init__(self, writer: LogWriter, engine: Engine) -> None:
        self._writer, self._engine, self._count = writer, engine, 0
        nv, layout = engine.robot.nv, engine.layout
        self._times, self._states = np.empty(_BLOCK), np.empty((_BLOCK, layout.state))
        self._tau, self._results = np.empty((_BLOCK, nv)), np.empty((_BLOCK, layout.size))

    def add(self, time: float, state: np.ndarray, tau: Any, result: np.ndarray | None) -> None:
        """Adds a row.

        Args:
            time: s.
            state: (layout.state,), the state at that time.
            tau: (nv,), forces in the step that starts there, or at the end of a run in the one before; None for none.
            result: (layout.size,), the result of that step; None if there was none.
        """
        k = self._count
        self._times[k], self._states[k] = time, state
        self._tau[k] = 0.0 if tau is None else tau
        self._results[k] = 0.0 if result is None else result
        self._count = k + 1
        if self._writer.is_due():
            self.flush()
            self._writer.flush()
        elif self._count == _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Hands the rows so far to the log."""
        n, places, engine = self._count, self._engine.layout.places, self._engine
        if not n:
            return
        results = self._results[:n]
        columns: dict[str, Callable[[], np.ndarray]] = {
            "times": lambda: self._times[:n],
            "q": lambda: self._states[:n, places["q"]],
            "v": lambda: self._states[:n, places["v"]],
            "tau": lambda: self._tau[:n],
            "gaps": lambda: results[:, places["gaps"]],
            "forces": lambda: engine.forces(results),
            "points": lambda: engine.points(results),
            "kinetic": lambda: self._kinetic_energies(n),
            "residuals": lambda: results[:, places["residual"]][:, 0],
            "sweeps": lambda: results[:, places["sweeps"]][:, 0] + results[:, places["iterations"]][:, 0],
        }
        self._writer.extend(**{name: columns[name]() for name in self._writer.columns})
        self._count = 0

    def _kinetic_energies(self, n: int) -> np.ndarray:
        """Those of the first rows, where v cannot tell them: of loops without a solution, at a dead point."""
        if not self._engine.layout.loop_links:
            return np.full(n, np.nan)
        return self._engine.kinetic_energy(self._states[:n])
