"""Motion over a span of time, in steps of fixed length or as long as a tolerance allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from coupler.contact.step.dead_points import DEAD_POINT, loops_near_dead_points
from coupler.model import ModelError, Robot
from coupler.model.numbers import batch_of, numbers
from coupler.model.wording import listed
from coupler.simulate.adaptive import Control, adaptive_steps
from coupler.simulate.chart import carried_velocities
from coupler.simulate.integrators import METHODS, STEPPERS, Rates

_MOST_STEPS = 10**9  # weeks of computing: more means a wrong h
_SMALLEST_STEP = 1e-9  # of the duration: shorter steps would take weeks as well
_ROUNDING = 1e-9  # of a step: a smaller remainder of the duration is rounding, and gets no step of its own


@dataclass(frozen=True, eq=False)
class Motion:
    """States of a robot over time.

    Attributes:
        times: (T,), s, from 0.
        q: (T, ..., nq), configurations.
        v: (T, ..., nv), velocities.
        loop_velocities: (T, ..., n), the velocities of all joints in loops without a solution, as `kinetic_energy`
            takes them: at a dead point, v does not determine them.
        steps: the number of steps taken.
        rejected: with a tolerance, the number of steps rejected as too long.
    """

    times: np.ndarray
    q: np.ndarray
    v: np.ndarray
    loop_velocities: np.ndarray
    steps: int
    rejected: int


class MotionError(ModelError):
    """A motion that could not be computed to its end.

    Attributes:
        time: the time reached, s.
        motion: the motion up to there; its last state is the one at that time.
    """

    def __init__(self, message: str, time: float, motion: Motion) -> None:
        super().__init__(message)
        self.time, self.motion = time, motion

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.time, self.motion), self.__dict__


def integrate_motion(
    robot: Robot,
    q: Any,
    v: Any,
    duration: float,
    h: float | None = None,
    *,
    tolerance: float | None = None,
    tau: Any = None,
    method: str | None = None,
    record: int | Sequence[float] | np.ndarray = 1,
    first_step: float | None = None,
    smallest_step: float | None = None,
) -> Motion:
    """The motion of a robot from a state, under gravity, its springs and dampers, and forces at its joints.

    Args:
        robot: the robot that moves.
        q: (..., nq), the closed configuration to start from.
        v: (..., nv), the velocity there.
        duration: the time to integrate over, s.
        h: the length of all steps, s; the last one ends with the duration, and may be shorter.
        tolerance: instead of h: the largest estimated error of a step. It holds for every joint, dependent ones
            included: for positions in rad or m, for velocities above 1 relative to them. All states of a batch take the
            same steps.
        tau: (..., nv), forces at independent joints, or a function of (t, q, v) that gives them; None for none.
        method: one of `METHODS`; by default "rk4", or "dormand_prince" with a tolerance, which needs it.
        record: keep every so many steps, or the states at these times (s), ascending; steps are cut to end there. The
            start is always kept, and so is the end, unless times are given.
        first_step: with a tolerance, the step to try first, s.
        smallest_step: with a tolerance, the step below which the integration stops, s; 1e-9 of the duration by default.

    Raises:
        MotionError: if it cannot continue: numbers are no longer finite, a loop cannot close, or steps become too
            small. It holds the motion up to there.
        ModelError: for impossible arguments.
    """
    q, v = _start(robot, q, v)
    duration = _span("duration", duration)
    times = _times(record, duration)
    targets = [duration] if times is None else times
    rates, x = Rates(robot, tau), carried_velocities(robot, q, v)
    rates(0.0, q, x)  # refuses forces that do not fit, before anything moves
    if (h is None) == (tolerance is None):
        raise ModelError("give either h, the length of a step, or a tolerance")
    if h is not None:
        for name, value in (("first_step", first_step), ("smallest_step", smallest_step)):
            if value is not None:
                raise ModelError(f"{name} goes with a tolerance; all steps have the length h")
        name = _method(method or "rk4")
        steps = _fixed_steps(rates, q, x, name, _length(h, duration), targets)
    else:
        if _method(method or "dormand_prince") != "dormand_prince":
            raise ModelError(f"method {method!r} has no estimate of its error: give h, or use 'dormand_prince'")
        smallest = _SMALLEST_STEP * duration if smallest_step is None else _span("smallest_step", smallest_step)
        first = None if first_step is None else _span("first_step", first_step)
        if first is not None and first < smallest:
            raise ModelError(f"first_step, {first:g} s, is below the smallest_step of {smallest:g} s")
        control = Control(_span("tolerance", tolerance), first, smallest)
        steps = adaptive_steps(rates, q, x, control, targets)
    asked = set(targets)
    every = 0 if times is not None else int(record)  # type: ignore[arg-type]
    return _recorded(robot, (0.0, q, x), steps, lambda t, count: t in asked or (every > 0 and count % every == 0))


def _start(robot: Robot, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
    q, v = numbers("q", q, (robot.nq,), batch=True), numbers("v", v, (robot.nv,), batch=True)
    robot.check_closed(q)
    shape = batch_of({"q": q, "v": v})
    return np.broadcast_to(q, (*shape, robot.nq)), np.broadcast_to(v, (*shape, robot.nv))


def _span(what: str, value: Any) -> float:
    span = float(numbers(what, value, ()))
    if span <= 0.0:
        raise ModelError(f"{what} must be above zero, got {span:g}")
    return span


def _length(h: Any, duration: float) -> float:
    h = _span("h", h)
    if duration / h > _MOST_STEPS:
        raise ModelError(f"h = {h:g} s is too small for {duration:g} s: that takes more than {_MOST_STEPS:g} steps")
    return h


def _method(name: Any) -> str:
    if not isinstance(name, str) or name not in METHODS:
        raise ModelError(f"method must be one of {listed(METHODS)}, got {name!r}")
    return name


def _times(record: Any, duration: float) -> list[float] | None:
    """The times to record; None if steps are counted instead."""
    if isinstance(record, int | np.integer) and not isinstance(record, bool):
        if record < 1:
            raise ModelError(f"record must be 1 or more, to keep every so many steps, got {record}")
        return None
    if not isinstance(record, list | tuple | np.ndarray) or np.ndim(record) != 1 or not len(record):
        raise ModelError(f"record must be a whole number of steps, or a list of times, got {record!r}")
    times = numbers("record", record, (len(record),), least=0.0)
    if (np.diff(times) <= 0.0).any() or times[-1] > duration:
        raise ModelError(f"record: times must ascend and not exceed the duration of {duration:g} s, got {record!r}")
    return [float(t) for t in times if t > 0.0]


Step = tuple[float, np.ndarray, np.ndarray, int]  # time, q, carried velocities, and how many attempts failed before


def _fixed_steps(
    rates: Rates, q: np.ndarray, x: np.ndarray, method: str, h: float, targets: Sequence[float]
) -> Iterator[Step]:
    step, t = STEPPERS[method], 0.0
    for target in targets:
        start, count = t, max(ceil((target - t) / h - _ROUNDING), 1)
        for k in range(1, count + 1):
            q, x = step(rates, q, x, h if k < count else target - t, t)
            t = start + k * h if k < count else target
            yield t, q, x, 0


def _recorded(
    robot: Robot,
    start: tuple[float, np.ndarray, np.ndarray],
    steps: Iterator[Step],
    keep: Callable[[float, int], bool],
) -> Motion:
    """Runs through all steps and keeps the start and the steps asked for, by time and number."""
    kept, last, count, rejected = [start], start, 0, 0

    def motion() -> Motion:
        t, q, x = map(np.array, zip(*kept, strict=True))
        return Motion(t, q, x[..., : robot.nv], x[..., robot.nv :], count, rejected)

    try:
        with np.errstate(all="ignore"):  # numbers that are not finite raise one error below, with the time
            for t, q, x, failed in steps:
                if not (np.isfinite(q).all() and np.isfinite(x).all()):
                    raise ModelError("the next step leads to numbers that are not finite")
                if loops := loops_near_dead_points(robot, last[1], q, limits=False):
                    raise ModelError(f"{loops} comes to {DEAD_POINT}")
                last, count, rejected = (t, q, x), count + 1, rejected + failed
                if keep(t, count):
                    kept.append(last)
    except ModelError as error:
        if last is not kept[-1]:
            kept.append(last)
        message = f"the motion of robot {robot.name!r} stops at {last[0]:.6g} s: {error}"
        raise MotionError(message, last[0], motion()) from error
    return motion()
