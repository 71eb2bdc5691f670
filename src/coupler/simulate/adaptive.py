"""Steps as long as a tolerance allows, by Dormand and Prince's pair of methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model import ModelError, Robot
from coupler.simulate.integrators import Pair, Rates, pair_step

_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 5.0  # how the next step is chosen
_SMALLEST_RATIO = 1e-10  # of an error to the tolerance: far below where the step grows by the most, and not zero
_SLOWEST = 1e-3  # 1/s: the first step is chosen as if rates were at least this fast, so that it is finite at rest
_STRETCH = 1.01  # a step may be longer by this factor if that saves another one


@dataclass(frozen=True)
class Control:
    """Bounds on steps whose length is controlled.

    Attributes:
        tolerance: the largest error of a step; see `integrate_motion`.
        first: the step to try first, s; chosen automatically if None.
        smallest: the step below which the integration stops, s.
    """

    tolerance: float
    first: float | None
    smallest: float


def adaptive_steps(
    rates: Rates, q: np.ndarray, x: np.ndarray, control: Control, targets: Sequence[float]
) -> Iterator[tuple[float, np.ndarray, np.ndarray, int]]:
    """Yields after each step: time, q, carried velocities (see chart.py), and the number of failed attempts before it.

    Steps are cut to end at the targets.

    Raises:
        ModelError: if steps become too small.
    """
    t, a, failed, why = 0.0, rates(0.0, q, x)[1], 0, ""
    h = control.first or _first(x, a, control)
    for target in targets:
        while t < target:
            last = t + _STRETCH * h >= target
            step = target - t if last else h
            if step < control.smallest and not last:
                raise ModelError(f"steps become smaller than {control.smallest:g} s{why}{_hint(rates.robot, q)}")
            pair, ratio, why = _tried(control, rates, q, x, a, step, t)
            factor = float(np.clip(_SAFETY * max(ratio, _SMALLEST_RATIO) ** -0.2, _SHRINK, 1.0 if failed else _GROW))
            if pair is None:
                h, failed = factor * step, failed + 1
                continue
            t, q, x, a = target if last else t + step, pair.q, pair.x, pair.a
            yield t, q, x, failed
            failed, h = 0, max(factor * step, h if step < h else 0.0)  # a step that was cut says nothing against h


def _tried(control: Control, rates: Rates, *arguments: Any) -> tuple[Pair | None, float, str]:
    """The step if it is accurate enough, else None; its error over the tolerance; and why it was rejected."""
    try:
        pair = pair_step(rates, *arguments)
        ratio = _error(rates.robot, pair) / control.tolerance
    except ModelError as error:  # a shorter step may be possible
        return None, np.inf, f"; {error}"
    if ratio <= 1.0:
        return pair, ratio, ""
    return None, ratio, f"; the error of the last one tried is {ratio:.3g} times the tolerance"


def _error(robot: Robot, pair: Pair) -> float:
    """The largest difference of any joint between the two results of a step; infinite if it is not a number.

    Dependent joints count as well.
    """
    p, rough_p = (robot.embedding.positions(q) for q in (pair.q, pair.rough_q))
    w, rough_w = (
        robot.embedding.velocities(positions, x[..., : robot.nv], x[..., robot.nv :])
        for positions, x in ((p, pair.x), (rough_p, pair.rough_x))
    )
    scale = np.maximum(np.maximum(np.abs(w), np.abs(rough_w)), 1.0)
    errors = np.abs(p - rough_p).max(initial=0.0), (np.abs(w - rough_w) / scale).max(initial=0.0)
    return float(max(errors)) if np.isfinite(errors).all() else np.inf


def _hint(robot: Robot, q: np.ndarray) -> str:
    """A hint if a loop is near a pose in which it has more freedoms than elsewhere."""
    p = robot.embedding.positions(q)
    loops = (robot.states.extra_freedoms(positions) for positions in p.reshape(-1, p.shape[-1]))
    loop = next(filter(None, loops), "")
    return f"; {loop} is near a pose at which it has more freedoms than elsewhere" if loop else ""


def _first(x: np.ndarray, a: np.ndarray, control: Control) -> float:
    """A first step in which velocities change as little as the tolerance suggests; longer ones are soon found."""
    rates = np.abs(x).max(initial=0.0), (np.abs(a) / np.maximum(np.abs(x), 1.0)).max(initial=0.0)
    return max(0.2 * control.tolerance**0.2 / max(*rates, _SLOWEST), control.smallest)
