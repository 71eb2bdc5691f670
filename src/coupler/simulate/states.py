"""The state that a simulation can be restored from, and the error of a run that ends early."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coupler.model import ModelError
from coupler.model.outputs import check_target
from coupler.simulate.archive import load_arrays, save_arrays
from coupler.simulate.logs import Log


class SimulationError(ModelError):
    """A run that could not continue.

    Attributes:
        time: the time of the last state, s.
        log: the log up to then.
    """

    def __init__(self, message: str, time: float, log: Log) -> None:
        super().__init__(message)
        self.time, self.log = time, log

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.time, self.log), self.__dict__


@dataclass(frozen=True, eq=False)
class SimulationState:
    """Everything that the future of a simulation depends on, to the last bit.

    States compare by value. They have no hash, because arrays can change.

    Attributes:
        steps: the number of steps since the start.
        values: q, v, and what contacts remember of the previous step.
    """

    steps: int
    values: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimulationState):
            return NotImplemented
        return self.steps == other.steps and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]

    def save(self, path: str | Path) -> Path:
        """Writes the state as an npz file, and returns its path."""
        path = check_target(path)
        save_arrays(path, {"steps": self.steps, "values": self.values})
        return path

    @classmethod
    def load(cls, path: str | Path) -> SimulationState:
        """Reads a state from a file."""
        arrays = load_arrays(Path(path), ["steps", "values"])
        return cls(int(arrays["steps"]), np.asarray(arrays["values"], dtype=float))
