"""How well the contacts of a step were solved, and a warning where they were not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from coupler.model import ModelWarning, Robot
from coupler.model.wording import counted

_TOLD_RESIDUAL = 1e-6  # m/s: solved contacts are below by far; what is above is no rounding
_TOLD_DEPTH = 1e-5  # m or rad: what parts wedge themselves into each other is below by far


@dataclass(frozen=True)
class StepStatus:
    """How the contacts, limits and dry friction of a step were solved.

    Attributes:
        residual: by how much the step missed their laws, m/s.
        contacts: how many contacts pressed.
        sweeps: over all blocks of the problem.
        iterations: of the rules that follow the sweeps where these have not solved it.
        rounds: how often forces that depend on velocities were taken until the middle's velocities were found.
        solved: whether the residual is within the tolerance of the simulation, 1e-9 m/s unless given, or in fast motion
            that part of 2 v, with the largest entry v of joint velocities, m/s or rad/s. If not, no impulses were found
            that keep the laws.
        jammed: the depth of the deepest overlap, m, or of the joint furthest beyond a limit, m or rad, of those that no
            impulses part, because friction wedges it, or because it excludes others: the step keeps it from growing,
            and its residual counts it as touching. 0 if there are none.
    """

    residual: float
    contacts: int
    sweeps: int
    iterations: int
    rounds: int
    solved: bool
    jammed: float


class Unsolved:
    """The steps of a run whose contacts were not solved, and the deepest overlap that was left as it is."""

    def __init__(self) -> None:
        self.count, self.worst, self.time, self.jammed = 0, 0.0, 0.0, 0.0

    def note(self, residual: float, jammed: float, time: float) -> None:
        """Counts a step that starts at a time, if its contacts miss their laws; the others as `StepStatus` has them."""
        self.jammed = max(self.jammed, jammed)
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
                f"the laws of contact: they are missed by up to {self.worst:.2g} m/s, at {self.time:.6g} s. Shorter "
                "steps may help",
                ModelWarning,
                stacklevel=3,
            )
        if self.jammed > _TOLD_DEPTH:
            warnings.warn(
                f"robot {robot.name!r}: overlaps of up to {self.jammed:.2g} m, or joints so far beyond limits, m or "
                "rad, were left as they are: no impulses part them, because they exclude each other or jam",
                ModelWarning,
                stacklevel=3,
            )
