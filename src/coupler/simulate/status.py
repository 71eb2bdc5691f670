"""How well the contacts of a step were solved, and a warning if they were not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.model import Robot
from coupler.model.errors import warn
from coupler.model.wording import counted

_TOLD_RESIDUAL = 1e-6  # m/s: solved contacts are far below; what is above is not rounding
_TOLD_DEPTH = 1e-5  # m or rad: parts that wedge themselves into each other are far below


@dataclass(frozen=True)
class StepStatus:
    """How the contacts, limits and dry friction of a step were solved.

    Attributes:
        residual: the violation of the laws of contacts, limits and friction in the step, m/s.
        contacts: the number of pressing contacts.
        sweeps: the number of sweeps over all blocks of the problem.
        iterations: the number of iterations of the methods that follow the sweeps if these have not solved it.
        rounds: how often velocity-dependent forces were evaluated until the velocities at the middle of the step were
            found.
        solved: whether the residual is within ten times the tolerance of the simulation, 1e-9 m/s unless given, or in
            fast motion within ten times that fraction of 2 v, with the largest entry v of joint velocities, m/s or
            rad/s. If not, no impulses were found that satisfy the laws.
        jammed: the depth of the deepest overlap, m, or of the joint furthest beyond a limit, m or rad, among those that
            no impulses part, because friction wedges them, or because they exclude each other: the step keeps them from
            growing, and its residual counts them as touching. 0 if there are none.
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
        """Counts a step that starts at a time, if its contacts violate their laws; see `StepStatus` for the others."""
        self.jammed = max(self.jammed, jammed)
        if residual > _TOLD_RESIDUAL:
            self.count += 1
            if residual > self.worst:
                self.worst, self.time = residual, time

    def note_all(self, residuals: np.ndarray, times: np.ndarray) -> None:
        """`note` for steps of many states: residuals are (T, ...), NaN where a state took no step, with T times."""
        unsolved = residuals > _TOLD_RESIDUAL
        if unsolved.any():
            worst = np.unravel_index(np.argmax(np.where(unsolved, residuals, 0.0)), residuals.shape)
            self.count, self.worst, self.time = int(unsolved.sum()), float(residuals[worst]), float(times[worst[0]])

    def warn(self, robot: Robot, steps: int) -> None:
        """Warns of the counted steps, once."""
        if self.count:
            warn(
                f"robot {robot.name!r}: in {self.count} of {counted(steps, 'step')} no impulses were found that "
                f"satisfy the laws of contact; the largest violation is {self.worst:.2g} m/s, at {self.time:.6g} s. "
                "Shorter steps may help"
            )
        if self.jammed > _TOLD_DEPTH:
            warn(
                f"robot {robot.name!r}: overlaps of up to {self.jammed:.2g} m, or joints so far beyond limits, m or "
                "rad, were left as they are: no impulses can part them, because they contradict each other or jam"
            )
