"""How well the contacts of a step were solved, and a warning if they were not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.solution import ENOUGH
from coupler.model import Robot
from coupler.model.errors import warn
from coupler.model.wording import counted

_TOLD_RESIDUAL = 1e-8  # m/s: what is below is not told, however small a tolerance was asked for
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
            fast motion within that fraction of 2 v, with the largest entry v of joint velocities, m/s or rad/s. If not,
            no impulses were found that satisfy the laws.
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


def solved_within(tolerance: float, speed: Any) -> Any:
    """The largest residual of a solved step, m/s, given the largest entry of joint velocities; see `StepStatus`.

    The solver scales its own tolerance by contact velocities without impulses, which a step does not report.
    """
    return tolerance * np.maximum(ENOUGH, 2.0 * speed)


def are_solved(residuals: np.ndarray, v: np.ndarray, tolerance: float) -> np.ndarray:
    """(T, ...): which steps of many states are solved; see `StepStatus`.

    Args:
        residuals: (T, ...), m/s; NaN where a state took no step.
        v: (T + 1, ..., nv), joint velocities at the start, and after each step.
        tolerance: that of the simulation, m/s.
    """
    solved = residuals <= solved_within(tolerance, 0.0)
    t, *states = np.nonzero(~solved & np.isfinite(residuals))
    if len(t):
        speeds = [np.abs(v[(k, *states)]).max(axis=-1, initial=0.0) for k in (t, t + 1)]
        solved[(t, *states)] = residuals[(t, *states)] <= solved_within(tolerance, np.maximum(*speeds))
    return solved


class Unsolved:
    """The steps of a run whose contacts were not solved, and the deepest overlap that was left as it is.

    Args:
        tolerance: that of the simulation, m/s.
    """

    def __init__(self, tolerance: float) -> None:
        self._tolerance, self._least = tolerance, max(_TOLD_RESIDUAL, float(solved_within(tolerance, 0.0)))
        self.count, self.worst, self.time, self.jammed = 0, 0.0, 0.0, 0.0

    def note(self, residual: float, jammed: float, time: float, speed: Callable[[], float]) -> None:
        """Counts a step that starts at a time, if it is not solved.

        Args:
            residual, jammed: see `StepStatus`.
            time: s.
            speed: returns the largest entry of joint velocities in the step.
        """
        self.jammed = max(self.jammed, jammed)
        if residual > self._least and residual > solved_within(self._tolerance, speed()):
            self.count += 1
            if residual > self.worst:
                self.worst, self.time = residual, time

    def note_all(self, residuals: np.ndarray, solved: np.ndarray, times: np.ndarray) -> None:
        """`note` for steps of many states: residuals, (T, ...), NaN where a state took no step, and T times, s."""
        unsolved = (residuals > self._least) & ~solved
        if unsolved.any():
            worst = np.unravel_index(np.argmax(np.where(unsolved, residuals, 0.0)), residuals.shape)
            self.count, self.worst, self.time = int(unsolved.sum()), float(residuals[worst]), float(times[worst[0]])

    def warn(self, robot: Robot, steps: int, unit: str = "step") -> None:
        """Warns of the counted steps, once; the unit is what was counted."""
        if self.count:
            warn(
                f"robot {robot.name!r}: in {self.count} of {counted(steps, unit)} no impulses were found that "
                f"satisfy the laws of contact; the largest violation is {self.worst:.2g} m/s, at {self.time:.6g} s. "
                "Shorter steps may help"
            )
        if self.jammed > _TOLD_DEPTH:
            warn(
                f"robot {robot.name!r}: overlaps of up to {self.jammed:.2g} m, or joints so far beyond limits, m or "
                "rad, were left as they are: no impulses can part them, because they contradict each other or jam"
            )
