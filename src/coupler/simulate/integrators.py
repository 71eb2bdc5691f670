"""One step of motion without contact, by methods of different orders.

All have the same signature: step(robot, q, v, tau, h, t) gives q and v after the time h. q and v may be a batch; tau is
an array or a function of (t, q, v). Loops stay closed to 1e-12, and quaternions of unit length.

Runge-Kutta methods work in a chart around q (see chart.py), where they keep their order, as Munthe-Kaas found. They use
the velocities of all joints in loops, and so pass dead points; a motion of several steps hands these on from step to
step (`STEPPERS`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from coupler.dynamics import forward_dynamics, loop_dynamics
from coupler.model import ModelError, Robot
from coupler.model.numbers import batch_of, check_unmasked, numbers
from coupler.simulate.chart import Chart, carried_velocities, fitted

State = tuple[np.ndarray, np.ndarray]  # q and v, or carried velocities (see chart.py) in place of v


class Rates:
    """The accelerations of a robot under forces tau, an array or a function of (t, q, v); None for no forces.

    Forces on bodies, f_ext as in `forward_dynamics`, are given in the same ways.
    """

    def __init__(self, robot: Robot, tau: Any, f_ext: Any = None) -> None:
        self.robot, constant = robot, np.zeros(robot.nv) if tau is None else tau
        self._forces = tau if callable(tau) else lambda t, q, v: constant
        self._on_bodies = f_ext if callable(f_ext) else lambda t, q, v: f_ext

    def __call__(self, t: float, q: np.ndarray, x: np.ndarray) -> State:
        """Carried velocities x, projected onto those that loops allow, and their rates."""
        robot, v = self.robot, x[..., : self.robot.nv]
        tau, f_ext = _forces(robot, self._forces(t, q, v), v), self._on_bodies(t, q, v)
        if x.shape[-1] == robot.nv:
            return x, forward_dynamics(robot, q, v, tau, f_ext)
        a, w_rate, v, w = loop_dynamics(robot, q, v, x[..., robot.nv :], tau, f_ext)
        return np.concatenate([v, w], axis=-1), np.concatenate([a, w_rate], axis=-1)


Stepper = Callable[[Rates, np.ndarray, np.ndarray, float, float], State]  # of rates, q, x, h and t


def _forces(robot: Robot, tau: Any, v: np.ndarray) -> np.ndarray:
    """Forces that fit a state, or a batch of states with these velocities."""
    if type(tau) is np.ndarray and tau.shape == v.shape and tau.dtype == v.dtype:
        return tau
    check_unmasked("tau", tau)
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
    """q and v, broadcast to the same leading dimensions; refuses arrays, or a step h, that do not fit."""
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


def _explicit_euler(rates: Rates, q: np.ndarray, x: np.ndarray, h: float, t: float) -> State:
    after = Chart(rates.robot, q).at(h * x)
    return after, fitted(rates.robot, after, x + h * rates(t, q, x)[1])


def _semi_implicit_euler(rates: Rates, q: np.ndarray, x: np.ndarray, h: float, t: float) -> State:
    x = x + h * rates(t, q, x)[1]
    after = Chart(rates.robot, q).at(h * x)
    return after, fitted(rates.robot, after, x)


@dataclass(frozen=True)
class _Tableau:
    """An explicit Runge-Kutta method.

    Attributes:
        rows: for each stage after the first, the weights of the stages before it.
        weights: the weights of all stages in the result.
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
# Weights of all stages, with the result as one more, for a result of fourth order.
_ROUGH = (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)


class _Stages:
    """The stages of a method: rates of u and x in the chart around q."""

    def __init__(self, rates: Rates, q: np.ndarray, x: np.ndarray, t: float, a: Any = None) -> None:
        self.rates, self.q, self.x, self.t = rates, q, x, t
        self.chart = Chart(rates.robot, q)
        self.u_rates, self.x_rates = [x], [rates(t, q, x)[1] if a is None else a]

    def reach(self, weights: Sequence[float], h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, u and x from the stages so far, with these weights; x need not satisfy the loops at q."""
        u = h * _combined(weights, self.u_rates)
        return self.chart.at(u), u, self.x + h * _combined(weights, self.x_rates)

    def end(self, weights: Sequence[float], h: float) -> State:
        """q and x after all stages."""
        q, _, x = self.reach(weights, h)
        return q, fitted(self.rates.robot, q, x)

    def add(self, weights: Sequence[float], h: float) -> State:
        """Adds a stage, and returns its q and x."""
        q, u, x = self.reach(weights, h)
        x, rate = self.rates(self.t + h * sum(weights), q, x)
        self.u_rates.append(self.chart.rate(q, u, x))
        self.x_rates.append(rate)
        return q, x


def _combined(weights: Sequence[float], rates: Sequence[np.ndarray]) -> np.ndarray:
    """Σ wᵢ rᵢ, in the same order for one state as for a batch."""
    terms = [weight * rate for weight, rate in zip(weights, rates, strict=True) if weight]
    return sum(terms[1:], terms[0])


def _runge_kutta(tableau: _Tableau) -> Stepper:
    def step(rates: Rates, q: np.ndarray, x: np.ndarray, h: float, t: float) -> State:
        stages = _Stages(rates, q, x, t)
        for row in tableau.rows:
            stages.add(row, h)
        return stages.end(tableau.weights, h)

    return step


STEPPERS: dict[str, Stepper] = {
    "explicit_euler": _explicit_euler,
    "semi_implicit_euler": _semi_implicit_euler,
    "rk4": _runge_kutta(_RK4),
    "dormand_prince": _runge_kutta(_DORMAND_PRINCE),
}


def _step(method: str, robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float, f_ext: Any = None) -> State:
    q, v = _state(robot, q, v, h)
    q, x = STEPPERS[method](Rates(robot, tau, f_ext), q, carried_velocities(robot, q, v), h, t)
    return q, x[..., : robot.nv]


def explicit_euler(robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float = 0.0) -> State:
    """Explicit Euler, of first order: position and velocity move with their rates at the start.

    It adds energy to swinging robots, and is here for comparison.
    """
    return _step("explicit_euler", robot, q, v, tau, h, t)


def semi_implicit_euler(robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float = 0.0) -> State:
    """Euler's method with positions that move with the new velocity: of first order, and stable for small steps."""
    return _step("semi_implicit_euler", robot, q, v, tau, h, t)


def rk4(robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float = 0.0, f_ext: Any = None) -> State:
    """The classical Runge-Kutta method, of fourth order; f_ext is an array or a function of (t, q, v), like tau."""
    return _step("rk4", robot, q, v, tau, h, t, f_ext)


def dormand_prince(robot: Robot, q: Any, v: Any, tau: Any, h: float, t: float = 0.0) -> State:
    """The method of Dormand and Prince, of fifth order."""
    return _step("dormand_prince", robot, q, v, tau, h, t)


@dataclass(frozen=True, eq=False)
class Pair:
    """A step of Dormand and Prince's two methods.

    Attributes:
        q, x: the state after it, of fifth order: configuration and carried velocities.
        a: the rates of x there, with which the next step starts.
        rough_q, rough_x: the state by the method of fourth order.
    """

    q: np.ndarray
    x: np.ndarray
    a: np.ndarray
    rough_q: np.ndarray
    rough_x: np.ndarray


def pair_step(rates: Rates, q: np.ndarray, x: np.ndarray, a: np.ndarray, h: float, t: float) -> Pair:
    """A step of `dormand_prince` and a less accurate one beside it, from a state whose rates are a."""
    stages = _Stages(rates, q, x, t, a)
    for row in _DORMAND_PRINCE.rows:
        stages.add(row, h)
    q, x = stages.add(_DORMAND_PRINCE.weights, h)
    return Pair(q, x, stages.x_rates[-1], *stages.end(_ROUGH, h))


METHODS: dict[str, Callable[..., State]] = {
    "explicit_euler": explicit_euler,
    "semi_implicit_euler": semi_implicit_euler,
    "rk4": rk4,
    "dormand_prince": dormand_prince,
}
