"""Friction of second order: what slides is compared with what mechanics says in closed form, or by short steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from coupler import Robot, RobotBuilder, Simulation
from coupler.contact.sliding import slides_on
from coupler.model import Plane, Prismatic, Sphere

G, MU, MASS = 9.81, 0.3, 2.0
ORDERS = {"euler": 1.0, "midpoint": 1.0, "trapezoid": 2.0, "rk4": 2.0}


@cache
def puck(stiffness: float = 0.0) -> Robot:
    """A mass that slides on the ground in any direction and does not turn, on a spring along x."""
    b, parent = RobotBuilder("puck"), "ground"
    for i, axis in enumerate("xyz"):
        b.body(axis, MASS if axis == "z" else 0.0, inertia=(0.1, 0.1, 0.1) if axis == "z" else (0, 0, 0))
        spring = stiffness if axis == "x" else 0.0
        b.joint(f"along {axis}", Prismatic(axis=np.eye(3)[i], stiffness=spring), parent, axis)
        parent = axis
    b.shape("z", Sphere(0.1))
    b.shape("ground", Plane(), friction=MU)
    return b.build()


def ended(robot: Robot, integrator: str, v: list[float], tau: list[float], duration: float, steps: int) -> np.ndarray:
    simulation = Simulation(robot, duration / steps, q=[0.0, 0.0, 0.1], v=v, integrator=integrator)
    for _ in range(steps):
        simulation.step(tau)
    assert abs(simulation.q[2] - 0.1) < 1e-9
    return np.concatenate([simulation.q[:2], simulation.v[:2]])


def exact(rate: Callable[[np.ndarray], np.ndarray], start: list[float], duration: float) -> np.ndarray:
    """(x, y, their velocities) after some time, by 4,000 steps of the classical method of Runge and Kutta."""
    y, h = np.array(start), duration / 4000
    for _ in range(4000):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
    return y


@pytest.mark.parametrize("integrator", ORDERS)
def test_the_order_on_a_curved_way(integrator: str) -> None:
    """2 m/s along x and a force across: friction turns with the velocity. Errors at 2.5 ms: 1.7e-3 m/s, or 2e-6."""

    def rate(y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[2:], -MU * G * y[2:] / np.hypot(*y[2:]) + np.array([0.0, 5.0 / MASS])])

    goal = exact(rate, [0.0, 0.0, 2.0, 0.0], 0.5)
    errors = [
        np.abs(ended(puck(), integrator, [2.0, 0, 0], [0, 5.0, 0], 0.5, steps) - goal).max() for steps in (50, 100, 200)
    ]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), ORDERS[integrator], rtol=0, atol=0.02)
    assert errors[-1] < {1.0: 2e-3, 2.0: 3e-6}[ORDERS[integrator]]


@pytest.mark.parametrize("integrator", ORDERS)
def test_a_mass_on_a_spring_slides_to_rest(integrator: str) -> None:
    """Half swings about ±µ m g / k, each a cosine, until it turns where friction holds it: all in closed form.

    It rests at a distance from there that is of second order in h, whatever part of a step its turns come at; with
    Euler's method of first order.
    """
    k, pull = 50.0, MU * MASS * G
    x, shift, sign = -0.55, pull / k, 1.0
    while abs(x) > shift:  # from turn to turn, about where spring and friction balance
        x, sign = 2.0 * -sign * shift - x, -sign
    for steps in (400, 800, 1600):
        h = 3.0 / steps
        simulation = Simulation(puck(k), h, q=[-0.55, 0.0, 0.1], integrator=integrator)
        simulation.run(3.0)
        assert abs(simulation.v[0]) < 1e-9
        error = abs(simulation.q[0] - x)
        assert 4.0 * h < error < 5.0 * h if integrator == "euler" else error < 4.0 * h**2


def test_what_is_held_stays_and_what_stops_does_not_turn_back() -> None:
    for integrator in ("trapezoid", "rk4"):
        np.testing.assert_allclose(ended(puck(), integrator, [0, 0, 0], [3.0, 4.0, 0], 0.1, 100), 0.0, atol=1e-12)
        simulation = Simulation(puck(), q=[0, 0, 0.1], v=[0.0312, 0.01, 0], integrator=integrator)
        log = simulation.run(0.05)
        assert (log.v[:, 0] > -1e-12).all() and np.abs(log.v[-1]).max() < 1e-12


def test_contacts_slide_on_if_a_tenth_of_their_velocity_is_left() -> None:
    assert slides_on(np.array([1.0, 0.0]), np.array([0.2, 3.0]))
    assert not slides_on(np.array([1.0, 0.0]), np.array([0.05, 3.0]))
    assert not slides_on(np.array([1.0, 1.0]), np.array([-1.0, -1.0]))
    assert not slides_on(np.zeros(2), np.ones(2) * 0.0)
