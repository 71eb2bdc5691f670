"""States of a rollout that one thread simulates together, from start to end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from coupler.simulate.energy_watch import EVERY, Ledger, gain_told
from coupler.simulate.engine import Engine
from coupler.simulate.failures import why_not

_TOLD = "residual", "sweeps", "iterations", "jammed"  # one number of a step each


class Chunk:
    """States that are simulated together.

    Attributes:
        reasons: why states could not continue, by their number.
        gained: messages on states that have gained energy and continue, by their number.
        jammed: the deepest overlap that was left as it is, m; see `StepStatus`.
    """

    def __init__(
        self,
        engine: Engine,
        room: Sequence[np.ndarray],
        states: np.ndarray,
        stops: np.ndarray,
        gaps: np.ndarray,
        least: np.ndarray,
        gains: str,
    ) -> None:
        """Starts from some states.

        Args:
            room: two arrays for the results of a step and the one before, for at least these states; see `Engine.room`.
            states: (n, layout.state), the states to start from.
            stops: (n,), filled with the times at which states stop, s.
            gaps: (contacts,), filled with the least gaps at the start of any state, m.
            least: (n,), filled with the least gap of each state there, m.
            gains: what to do with states that gain energy.
        """
        self._engine, self._stops, self._gaps, self._least = engine, stops, gaps, least
        lanes = math.prod(room[0].shape[1:-1])
        self._results = [array[: -(-len(states) // lanes)] for array in room]
        self._batch = self._results[0].shape[:-1]
        self._states = self._start = self._laid_out(states)
        self.reasons: dict[int, str] = {}
        self.gained: dict[int, str] = {}
        self.jammed = 0.0
        self._driven: np.ndarray | None = None  # entries of controls that are not all zero
        self._ledger, self._gains = None if gains == "ignore" else Ledger(engine, self._batch), gains

    def _laid_out(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of states, (n, ...), in the layout of steps; spare lanes repeat the last state."""
        spare = math.prod(self._batch) - len(rows)
        padded = rows if not spare else np.concatenate([rows, np.repeat(rows[-1:], spare, axis=0)])
        return padded.reshape(*self._batch, *rows.shape[1:])

    def _rows(self, array: np.ndarray) -> np.ndarray:
        """The inverse of `_laid_out`: the numbers of all states, (n, ...)."""
        if len(self._batch) == 1:
            return array
        return array.reshape(math.prod(self._batch), *array.shape[len(self._batch) :])[: len(self._stops)]

    def _record(self, rows: np.ndarray, array: np.ndarray) -> None:
        """Writes numbers in the layout of steps to contiguous rows of all states; without spare lanes in one copy."""
        if math.prod(self._batch) == len(rows):
            rows.reshape(*self._batch, *rows.shape[1:])[...] = array
        else:
            rows[:] = self._rows(array)

    def simulate(self, controls: Sequence[np.ndarray], hold: int, recorded: dict[str, np.ndarray]) -> Iterator[None]:
        """Simulates from start to end, and writes the results of each control to `recorded`; yields after each step."""
        engine, places = self._engine, self._engine.layout.places
        if self._ledger is not None:
            self._driven = np.flatnonzero((controls[0] != 0.0).any(axis=(0, 1)))
        controls = [self._laid_out(x) for x in controls]
        for name in ("q", "v"):
            self._record(recorded[name][0], self._states[..., places[name]])
        for t in range(controls[0].shape[-2]):
            residual, sweeps = recorded["residual"][t + 1, :, 0], recorded["sweeps"][t + 1, :, 0]
            residual[:] = sweeps[:] = 0.0
            for i in range(hold):
                self._step([x[..., t, :] for x in controls], t * hold + i)
                result = self._results[0]
                if not t and not i:
                    gaps = self._rows(result[..., places["gaps"]])
                    self._gaps[:], self._least[:] = gaps.min(axis=0), gaps.min(axis=1, initial=np.inf)
                told = {name: result[..., places[name].start] for name in _TOLD}
                np.maximum(residual, self._rows(told["residual"]), out=residual)
                np.maximum(sweeps, self._rows(told["sweeps"] + told["iterations"]), out=sweeps)
                self.jammed = max(self.jammed, float(told["jammed"].max()))
                yield
            for name in ("q", "v", "touching"):
                self._record(recorded[name][t + 1], self._results[0][..., places[name]])
            if "forces" in recorded:
                self._record(recorded["forces"][t + 1], engine.forces(self._results[0]))
            if (self._stops < np.inf).any():
                for array in recorded.values():
                    array[t + 1, self._stops < np.inf] = np.nan

    def _step(self, controls: Sequence[np.ndarray], steps: int) -> None:
        """Makes one step of all states. States that cannot continue restart from their first state, to stay finite."""
        self._results.reverse()
        result, size, time = self._results[0], self._engine.layout.state, steps * self._engine.step
        failed = self._engine.advance_batch(self._states, controls[0], result, *controls[1:])
        if failed is not None and self._ledger is not None:  # what has failed may have gained energy before
            self._look_at_energy(self._ledger, self._states, time)
        if self._ledger is not None:
            self._ledger.add_work(self._states, result, controls[0], driven=self._driven)
        if failed is not None:
            for i in np.flatnonzero(self._rows(failed) & (self._stops == np.inf)):
                self._stops[i], at = time, np.unravel_index(i, self._batch)
                one = self._engine.of_states((len(self._stops),), int(i))
                self.reasons[int(i)] = why_not(one, self._states[at], result[at])
            result[failed] = 0.0
            result[failed, :size] = self._start[failed]
        if self._ledger is not None and (steps + 1) % EVERY == 0:
            self._look_at_energy(self._ledger, result[..., :size], time + self._engine.step)
        self._states = result[..., :size]

    def _look_at_energy(self, ledger: Ledger, states: np.ndarray, time: float) -> None:
        """Stops states that have gained energy, or notes them."""
        gained, too_much = (self._rows(array) for array in ledger.gained(states))
        for i in np.flatnonzero(too_much & (self._stops == np.inf)):
            message = gain_told(self._engine, time, float(gained[i]), states[np.unravel_index(i, self._batch)])
            if self._gains == "warn":
                self.gained.setdefault(int(i), message)
            else:
                self._stops[i] = time
                self.reasons[int(i)] = f'{message}; on_energy_gain="warn" goes on'
