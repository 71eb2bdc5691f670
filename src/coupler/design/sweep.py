"""Many designs of one robot, measured by one function: in batches, on all cores or machines, resumed if stopped."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from coupler.design.designs import Designs
from coupler.design.identity import identity
from coupler.design.record import Results, SweepFile
from coupler.design.workers import WORKERS, computed
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers, positive_integer, switch
from coupler.model.wording import listed

Measure = Callable[[Robot], Any]

_PATIENCE, _PAUSE = 1.0, 0.2  # s: shorter sweeps show nothing; the time between updates
_WIDTH = 24  # characters of the bar
_ERRORS = ("raise", "nan")


def sweep(
    robot: Robot,
    parameters: Mapping[str, Any],
    measure: Measure,
    *,
    grid: bool = False,
    at_once: int = 64,
    on: str = "here",
    workers: int | None = None,
    file: str | Path | None = None,
    errors: str = "raise",
    progress: bool | None = None,
) -> Designs:
    """Measures many designs of a robot.

        def effort(robot):  # a robot with the parameters of n designs, (n, 1) of each
            tau = coupler.inverse_dynamics(robot, q, v, a)  # of a motion of T states: (n, T, nv)
            return {"peak": np.abs(tau).max(axis=(1, 2))}

        designs = coupler.sweep(robot, {"stiffness:spring": np.linspace(100, 900, 81)}, effort)
        robot.with_parameters(designs.design(designs.best("peak")))

    Args:
        robot: the robot whose numbers vary.
        parameters: by name, as in `Robot.parameters`, arrays (n, ...) with one row for each design. With `grid`, each
            parameter has its own number of values, and the designs are all combinations.
        measure: takes the robot with given parameters of leading dimensions (n, 1), so that a batch of states of a
            motion can lie along the second. Returns results by name, each (n, ...), or one such array, which is then
            called "result".
        grid: whether to combine all values of each parameter with all values of the others.
        at_once: how many designs are measured in one call.
        on: "here", in this process, whose batches use all cores; "processes", in several; or "ray", on the machines of
            a Ray cluster: the connected one, or a new one on this machine (extra `coupler[ray]`).
        workers: how many processes to use, or how many shares to give to Ray at a time; chosen automatically if None.
        file: where to keep results. An interrupted sweep continues from its file. A file of another robot, other
            parameters, another function, or a function that uses other numbers, raises an error.
        errors: what to do with designs that are impossible, because their loops do not close, say: "raise" the error of
            the function, or "nan" to make the results of designs for which it raises a `ModelError` NaN.
        progress: whether to show the progress; None shows it on a terminal only.

    Raises:
        ModelError: for parameters that do not exist or do not fit together, and for results of a wrong shape. Errors of
            the function come through.
    """
    for option, given, known in (("on", on, WORKERS), ("errors", errors, _ERRORS)):
        if given not in known:
            raise ModelError(f"{option} must be one of {listed(known)}, got {given!r}")
    at_once = positive_integer("at_once", at_once)
    workers = None if workers is None else positive_integer("workers", workers)
    if not callable(measure):
        raise ModelError(f"measure must be a function of a robot, got {measure!r}")
    values = _designs(robot, parameters, switch("grid", grid))
    count = len(next(iter(values.values())))
    shares = math.ceil(count / at_once)
    task = _Share(robot, values, measure, at_once, errors)
    kept = None if file is None else SweepFile(file, identity(robot, values, measure, at_once))
    done: dict[int, Results] = {} if kept is None else kept.done()
    with _Progress(shares, len(done), progress) as shown:
        for number, results in computed(task, (i for i in range(shares) if i not in done), on, workers):
            if kept is not None:
                kept.add(number, results)
            done[number] = results
            shown.update(len(done))
    lengths = [len(range(i * at_once, min((i + 1) * at_once, count))) for i in range(shares)]
    results = _in_a_row([done[i] for i in range(shares)], lengths)
    for name in results:
        if name in values or name == "design":
            raise ModelError(f"the function measures {name!r}, which is the name of something else; choose another")
    if not results:
        task.measure(robot.with_parameters({name: value[:1, None] for name, value in values.items()}))  # and tells why
        raise ModelError("the function raises errors for all designs")
    return Designs(values, results)


@dataclass(frozen=True)
class _Share:
    """Measures a share of the designs, by its number."""

    robot: Robot
    values: Mapping[str, np.ndarray]
    measure: Measure
    at_once: int
    errors: str

    def __call__(self, number: int) -> Results:
        count = len(next(iter(self.values.values())))
        return self._measured(number * self.at_once, min((number + 1) * self.at_once, count))

    def _measured(self, first: int, last: int) -> Results:
        """The results of designs from first to last, exclusive; empty if all of them are impossible."""
        robot = self.robot.with_parameters({name: value[first:last, None] for name, value in self.values.items()})
        try:
            given = self.measure(robot)
        except ModelError:
            if self.errors == "raise":
                raise
            if last - first == 1:
                return {}
            middle = (first + last) // 2
            halves = self._measured(first, middle), self._measured(middle, last)
            return _in_a_row(halves, (middle - first, last - middle))
        results = dict(given) if isinstance(given, Mapping) else {"result": given}
        if not results:
            raise ModelError("the function measures nothing: it must give numbers by name")
        return {str(name): _by_design(str(name), value, last - first) for name, value in results.items()}


def _in_a_row(parts: Sequence[Results], lengths: Sequence[int]) -> Results:
    """The results of consecutive parts of that many designs, joined; NaN for parts without results."""
    measured = [part for part in parts if part]
    first = measured[0] if measured else {}
    for part in measured:
        if list(part) != list(first):
            others = listed(part)
            raise ModelError(f"the function measures {listed(first)} of the first designs, and {others} of others")
    joined = {}
    for name in first:
        if len({part[name].shape[1:] for part in measured}) > 1:
            raise ModelError(f"the function gives {name!r} of different shapes for different designs")
        shape = first[name].shape[1:]
        joined[name] = np.concatenate(
            [part[name] if part else np.full((n, *shape), np.nan) for part, n in zip(parts, lengths, strict=True)]
        )
    return joined


def _by_design(name: str, value: Any, count: int) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        raise ModelError(f"the function gives {value!r} as {name!r}, which are not real numbers")
    array = array.astype(float)
    if array.ndim == 0 or len(array) != count:
        raise ModelError(f"the function gives {name!r} of the shape {array.shape} for {count} designs: one row each")
    return array


def _designs(robot: Robot, parameters: Mapping[str, Any], grid: bool) -> dict[str, np.ndarray]:
    """The parameters of all designs, one row each."""
    if not isinstance(parameters, Mapping) or not parameters:
        raise ModelError(f"parameters must go by name, such as {{'mass:tool': [1.0, 2.0]}}, got {parameters!r}")
    for name in parameters:
        if name not in robot.parameters:
            robot.with_parameters({name: parameters[name]})  # which says what there is
    values = {
        name: numbers(f"parameter {name!r}", value, robot.parameters[name].shape, batch=True)
        for name, value in parameters.items()
    }
    for name, value in values.items():
        if value.ndim != robot.parameters[name].ndim + 1 or not len(value):
            raise ModelError(f"parameter {name!r} must have one row for each design, got the shape {value.shape}")
        robot.with_parameters({name: value})  # which refuses what cannot be
    if grid:
        index = np.meshgrid(*(np.arange(len(value)) for value in values.values()), indexing="ij")
        values = {name: value[which.ravel()] for (name, value), which in zip(values.items(), index, strict=True)}
    if len({len(value) for value in values.values()}) > 1:
        counts = ", ".join(f"{name}: {len(value)}" for name, value in values.items())
        raise ModelError(f"parameters are those of different numbers of designs ({counts}); grid=True combines them")
    return values


class _Progress:
    """A line on stderr that shows the progress of a long sweep."""

    def __init__(self, shares: int, before: int, shown: bool | None) -> None:
        self._shares, self._before, self._done = shares, before, before
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._begin = self._last = monotonic()
        self._drawn = False

    def update(self, done: int) -> None:
        self._done, now = done, monotonic()
        if self._shown and now - self._begin > _PATIENCE and (now - self._last > _PAUSE or done == self._shares):
            self._last, self._drawn = now, True
            part = done / self._shares
            bar = ("=" * round(_WIDTH * part)).ljust(_WIDTH)
            remaining = (now - self._begin) * (self._shares - done) / max(done - self._before, 1)
            sys.stderr.write(f"\r[{bar}] {done} of {self._shares} shares, {remaining:.0f} s left   ")
            sys.stderr.flush()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\n")
