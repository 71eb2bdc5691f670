"""How well the contacts of a step were solved, and a warning where they were not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from coupler.model import ModelWarning, Robot
from coupler.model.wording import counted

_TOLD_RESIDUAL = 1e-6  # m/s: solved contacts are below by far; what is above is no rounding


@dataclass(frozen=True)
class StepStatus:
    """How the contacts, limits and dry friction of a step were solved.

    Attributes:
        residual: by how much the step missed their laws, m/s.
        contacts: how many contacts pressed.
        sweeps: over all blocks of the problem.
        iterations: of the rules that follow the sweeps where these have not solved it.
        rounds: how often forces that depend on velocities were taken until the middle's velocities were found.
        solved: whether the residual is within the tolerance, or in fast motion that part of the largest velocity. If
            not, no impulses were found that keep the laws, and there may be none: where overlaps or limits exclude each
            other.
    """

    residual: float
    contacts: int
    sweeps: int
    iterations: int
    rounds: int
    solved: bool


class Unsolved:
    """The steps of a run whose contacts were not solved."""

    def __init__(self) -> None:
        self.count, self.worst, self.time = 0, 0.0, 0.0

    def note(self, residual: float, time: float) -> None:
        """Counts a step that starts at a time, if its contacts miss their laws."""
        if residual > _TOLD_RESIDUAL:
            self.count += 1
            if residual > self.worst:
                self.worst, self.time = residual, time

    def note_all(self, residuals: np.ndarray, times: np.ndarray) -> None:
        """The same for steps of many states: (T, ...), NaN where there were none, with T times."""
        unsolved = residuals > _TOLD_RESIDUAL
        if unsolved.any():
            worst = np.unravel_index(np.argmax(np.where(unsolved, residuals, 0.0)), residuals.shape)
            self.count, self.worst, self.time = int(unsolved.sum()), float(residuals[worst]), float(times[worst[0]])

    def warn(self, robot: Robot, steps: int) -> None:
        """Warns of them, once."""
        if self.count:
            warnings.warn(
                f"robot {robot.name!r}: in {self.count} of {counted(steps, 'step')} no impulses were found that keep "
                f"the laws of contact: they are missed by up to {self.worst:.2g} m/s, at {self.time:.6g} s. Where "
                "overlaps or limits exclude each other there are none; otherwise shorter steps may help",
                ModelWarning,
                stacklevel=3,
            )
