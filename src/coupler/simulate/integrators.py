"""One step of motion, by methods of different orders. No contact.

All have the same face: step(robot, q, v, tau, h, t) gives q and v after the time h. q and v may be a batch; tau is an
array or a function of (t, q, v). Loops stay closed to 1e-12, and quaternions of unit length.

Methods of Runge and Kutta run in a chart around q (see chart.py), where they keep their order, as Munthe-Kaas found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from coupler.dynamics import forward_dynamics
from coupler.model import ModelError, Robot
from coupler.model.embedding.states import batch_of
from coupler.model.numbers import numbers
from coupler.simulate.chart import Chart

__all__ = [
    "METHODS",
    "Acceleration",
    "Pair",
    "accelerations",
    "dormand_prince",
    "explicit_euler",
    "pair_step",
    "rk4",
    "semi_implicit_euler",
]

State = tuple[np.ndarray, np.ndarray]  # q and v
Acceleration = Callable[[float, np.ndarray, np.ndarray], np.ndarray]  # of (t, q, v)


def accelerations(robot: Robot, tau: Any, f_ext: Any = None) -> Acceleration:
    """v̇ as a function of (t, q, v), for forces that are an array, or a function of the same; none for None.

    So are forces on bodies, f_ext as in `forward_dynamics`.
    """
    constant = np.zeros(robot.nv) if tau is None else tau
    forces = tau if callable(tau) else lambda t, q, v: constant
    on_bodies = f_ext if callable(f_ext) else lambda t, q, v: f_ext
    return lambda t, q, v: forward_dynamics(robot, q, v, _forces(robot, forces(t, q, v), v), on_bodies(t, q, v))


def _forces(robot: Robot, tau: Any, v: np.ndarray) -> np.ndarray:
    """Forces that fit a state, or a batch of states with these velocities."""
    if type(tau) is np.ndarray and tau.shape == v.shape and tau.dtype == v.dtype:
        return tau
    try:
        forces = np.asarray(tau)
        if forces.dtype.kind in "fiu" and forces.shape[-1:] == (robot.nv,):
            np.broadcast_to(forces, v.shape)
            return forces
    except ValueError:  # rows of different lengths, or leading dimensions that do not fit
        pass
    got = f"the shape {tau.shape}" if isinstance(tau, np.ndarray) else repr(tau)
    raise ModelError(f"tau must have the shape {v.shape}, or ({robot.nv},) for all states alike, got {got}")


def _state(robot: Robot, q: Any, v: Any, h: Any) -> State:
    """q and v with the same leading dimensions, for a step of the length h; what does not fit is refused."""
    if not (isinstance(h, float) and isfinite(h)):
        numbers("h", h, ())
    if type(q) is not np.ndarray or type(v) is not np.ndarray or q.dtype != float or v.dtype != float:
        q, v = numbers("q", q, (robot.nq,), batch=True), numbers("v", v, (robot.nv,), batch=True)
    if q.shape[-1:] != (robot.nq,) or v.shape[-1:] != (robot.nv,):
        raise ModelError(f"q and v must end with {robot.nq} and {robot.nv} entries, got shapes {q.shape} and {v.shape}")
    if q.shape[:-1] != v.shape[:-1]:
        shape = batch_of({"q": q, "v": v})
        q, v = np.broadcast_to(q, (*shape, robot.nq)), np.broadcast_to(v, (*shape, robot.nv))
    return q, v


def explicit_euler(robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float = 0.0) -> State:
    """Euler's method, of first order: position and velocity move on with what they change by at the start.

    It feeds energy into swinging robots; it is here to be compared with.
    """
    q, v = _state(robot, q, v, h)
    return Chart(robot, q, v).at(h * v, h), v + h * accelerations(robot, tau)(t, q, v)


def semi_implicit_euler(robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float = 0.0) -> State:
    """Euler's method with positions that move with the new velocity: of first order, and stable for small steps."""
    q, v = _state(robot, q, v, h)
    after = v + h * accelerations(robot, tau)(t, q, v)
    return Chart(robot, q, after).at(h * after, h), after


@dataclass(frozen=True)
class _Tableau:
    """An explicit method of Runge and Kutta.

    Attributes:
        rows: for each stage after the first, the weights of those before it.
        weights: of all stages, for the result.
    """

    rows: Sequence[Sequence[float]]
    weights: Sequence[float]


_RK4 = _Tableau(rows=((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)), weights=(1 / 6, 1 / 3, 1 / 3, 1 / 6))
_DORMAND_PRINCE = _Tableau(
    rows=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    weights=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# Of all stages and the result as one more, for a result of fourth order.
_ROUGH = (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)


class _Stages:
    """The stages of a method: rates of u and v in the chart around q."""

    def __init__(
        self, robot: Robot, q: np.ndarray, v: np.ndarray, acceleration: Acceleration, t: float, a: Any
    ) -> None:
        self.q, self.v, self.t, self.acceleration = q, v, t, acceleration
        self.chart = Chart(robot, q, v)
        self.u_rates, self.v_rates = [v], [acceleration(t, q, v) if a is None else a]

    def reach(self, weights: Sequence[float], h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, u and v after the stages so far, with these weights."""
        u = h * _combined(weights, self.u_rates)
        return self.chart.at(u, h * sum(weights)), u, self.v + h * _combined(weights, self.v_rates)

    def add(self, weights: Sequence[float], h: float) -> State:
        """One more stage, at the q and v given back."""
        q, u, v = self.reach(weights, h)
        self.u_rates.append(self.chart.rate(q, u, v))
        self.v_rates.append(self.acceleration(self.t + h * sum(weights), q, v))
        return q, v


def _combined(weights: Sequence[float], rates: Sequence[np.ndarray]) -> np.ndarray:
    """Σ wᵢ rᵢ, in this order for one state as for a batch."""
    terms = [weight * rate for weight, rate in zip(weights, rates, strict=True) if weight]
    return sum(terms[1:], terms[0])


def _runge_kutta(
    tableau: _Tableau, robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float, f_ext: Any = None
) -> State:
    stages = _Stages(robot, *_state(robot, q, v, h), accelerations(robot, tau, f_ext), t, None)
    for row in tableau.rows:
        stages.add(row, h)
    q, _, v = stages.reach(tableau.weights, h)
    return q, v


def rk4(robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float = 0.0, f_ext: Any = None) -> State:
    """The method of Runge and Kutta, of fourth order; with forces on bodies, as in `accelerations`."""
    return _runge_kutta(_RK4, robot, q, v, tau, h, t, f_ext)


def dormand_prince(robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float = 0.0) -> State:
    """The method of Dormand and Prince, of fifth order."""
    return _runge_kutta(_DORMAND_PRINCE, robot, q, v, tau, h, t)


@dataclass(frozen=True, eq=False)
class Pair:
    """A step of Dormand and Prince's two methods.

    Attributes:
        q, v: the state after it, of fifth order.
        a: the acceleration there, with which the next step starts.
        rough_q, rough_v: the state by the method of fourth order.
    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    rough_q: np.ndarray
    rough_v: np.ndarray


def pair_step(
    robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray, acceleration: Acceleration, h: float, t: float
) -> Pair:
    """A step of `dormand_prince` beside one that is less exact, from a state with the acceleration a."""
    stages = _Stages(robot, q, v, acceleration, t, a)
    for row in _DORMAND_PRINCE.rows:
        stages.add(row, h)
    q, v = stages.add(_DORMAND_PRINCE.weights, h)
    rough_q, _, rough_v = stages.reach(_ROUGH, h)
    return Pair(q, v, stages.v_rates[-1], rough_q, rough_v)


METHODS: dict[str, Callable[..., State]] = {
    "explicit_euler": explicit_euler,
    "semi_implicit_euler": semi_implicit_euler,
    "rk4": rk4,
    "dormand_prince": dormand_prince,
}
