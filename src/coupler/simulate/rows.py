"""The rows that a running simulation hands to its log."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.simulate.engine import Engine
from coupler.simulate.log import LogWriter

__all__ = ["Rows"]

_BLOCK = 256  # rows that are handed over together


class Rows:
    """Rows of a log, kept as steps give them, and handed over in blocks."""

    def __init__(self, writer: LogWriter, engine: Engine) -> None:
        self._writer, self._engine, self._count = writer, engine, 0
        nv, layout = engine.robot.nv, engine.layout
        self._times, self._states = np.empty(_BLOCK), np.empty((_BLOCK, layout.state))
        self._tau, self._after = np.empty((_BLOCK, nv)), np.empty((_BLOCK, layout.size))

    def add(self, time: float, state: np.ndarray, tau: Any, after: np.ndarray | None) -> None:
        """A state, with the forces that act from there on, and what they led to, or what led there."""
        k = self._count
        self._times[k], self._states[k] = time, state
        self._tau[k] = 0.0 if tau is None else tau
        self._after[k] = 0.0 if after is None else after
        self._count = k + 1
        if self._count == _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Hands over what there is."""
        n, places, engine = self._count, self._engine.layout.places, self._engine
        if not n:
            return
        after = self._after[:n]
        self._writer.extend(
            times=self._times[:n],
            q=self._states[:n, places["q"]],
            v=self._states[:n, places["v"]],
            tau=self._tau[:n],
            gaps=after[:, places["gaps"]],
            forces=engine.forces(after),
            points=engine.points(after),
            residuals=after[:, places["residual"]][:, 0],
            sweeps=after[:, places["sweeps"]][:, 0],
        )
        self._count = 0
