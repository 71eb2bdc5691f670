"""Steps of motion: their order, what they keep, and batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.model import Free, Revolute, Robot, RobotBuilder, Spherical
from coupler.rotation import matrix_from_quaternion, quaternion_exp, quaternion_product
from coupler.simulate import METHODS, dormand_prince, explicit_euler, integrate_motion, rk4, semi_implicit_euler
from effort import every
from random_robots import sample


def one_body(kind: Any, inertia: Any, centre: Any = (0, 0, 0), gravity: Any = (0, 0, -9.81)) -> Robot:
    b = RobotBuilder("body", gravity=gravity)
    b.body("body", 1.5, centre, inertia)
    b.joint("joint", kind, "ground", "body")
    return b.build()


def spinning() -> tuple[Robot, np.ndarray, np.ndarray]:
    """An asymmetric body about its middle axis, which is unstable, with its centre off the origin of its frame."""
    robot = one_body(Free(), (0.4, 0.9, 1.1), (0.2, -0.1, 0.3), (0, 0, 0))
    return robot, robot.neutral(), np.array([0.3, 4.0, -0.2, 0.5, 1.0, -2.0])


def spherical_pendulum() -> tuple[Robot, np.ndarray, np.ndarray]:
    robot = one_body(Spherical(), (0.4, 0.9, 1.1), (0.2, -0.1, 0.6))
    return robot, np.array([0.6, 0.8, 0.0, 0.0]), np.array([1.0, -2.0, 3.0])


def four_bar() -> tuple[Robot, np.ndarray, np.ndarray]:
    robot = coupler.robots.load("four_bar")
    return robot, robot.pack_q({"joint1": np.radians(80.0)}), np.array([1.0])


def mini_cheetah() -> tuple[Robot, np.ndarray, np.ndarray]:
    robot = coupler.robots.load("mini_cheetah")
    return robot, robot.neutral(), np.random.default_rng(1).normal(size=robot.nv)


def random_robot(name: str) -> tuple[Robot, np.ndarray, np.ndarray]:
    """Slow, so that it does not run into the ends of its loops."""
    robot = sample(name).robot
    q, v = robot.random_state(0)
    return robot, q, 0.5 * v


STARTS: dict[str, Callable[[], tuple[Robot, np.ndarray, np.ndarray]]] = {
    "spinning body": spinning,
    "spherical pendulum": spherical_pendulum,
    "four-bar": four_bar,
    "mini cheetah": mini_cheetah,
    # Balls of which one or two velocities are independent:
    "spherical loop afloat": lambda: random_robot("spherical loop afloat"),
    "delta": lambda: random_robot("delta"),
}
TIMES = {"spinning body": 0.8, "spherical pendulum": 0.8, "four-bar": 0.2, "mini cheetah": 0.8, "delta": 0.1}
TIMES["spherical loop afloat"] = 0.3


def swung(robot: Robot) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
    """Forces by time and velocity."""
    phase = np.arange(robot.nv)
    return lambda t, q, v: 0.3 * np.sin(5.0 * t + phase) - 0.1 * v


@cache
def reference(name: str, forced: bool) -> tuple[np.ndarray, np.ndarray]:
    robot, q, v = STARTS[name]()
    motion = integrate_motion(robot, q, v, TIMES[name], tolerance=1e-13, tau=swung(robot) if forced else None)
    return motion.q[-1], motion.v[-1]


def order(name: str, method: str, steps: Any, forced: bool = False) -> float:
    """The power of h with which the error at the end falls."""
    robot, q, v = STARTS[name]()
    goal, errors = np.concatenate(reference(name, forced)), []
    for n in steps:
        tau = swung(robot) if forced else None
        motion = integrate_motion(robot, q, v, TIMES[name], TIMES[name] / n, method=method, tau=tau)
        errors.append(np.abs(np.concatenate([motion.q[-1], motion.v[-1]]) - goal).max())
    return -float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


@pytest.mark.parametrize("forced", [False, True], ids=["free", "forced"])
@pytest.mark.parametrize("name", every(2, STARTS))
def test_runge_kutta_is_of_fourth_order(name: str, forced: bool) -> None:
    assert abs(order(name, "rk4", (16, 24, 32, 48), forced) - 4.0) < 0.3


@pytest.mark.parametrize("name", every(2, STARTS, first=1))
def test_dormand_prince_is_of_fifth_order(name: str) -> None:
    assert abs(order(name, "dormand_prince", (12, 16, 24)) - 5.0) < 0.3


@pytest.mark.parametrize("method", ["explicit_euler", "semi_implicit_euler"])
@pytest.mark.parametrize("name", every(2, STARTS, first=1))
def test_the_methods_of_euler_are_of_first_order(name: str, method: str) -> None:
    assert abs(order(name, method, (400, 600, 800), forced=True) - 1.0) < 0.1


def test_a_symmetric_top_moves_as_the_formula_says() -> None:
    """It turns steadily about its momentum L in the world, and about its own axis: exp(L/A t) R exp(Ω t)."""
    A, C, T = 0.5, 0.8, 2.0
    robot = one_body(Free(), (A, A, C), gravity=(0, 0, 0))
    start, v = quaternion_exp(np.array([0.3, -0.2, 0.5])), np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    L = matrix_from_quaternion(start) @ (np.array([A, A, C]) * v[:3])
    own = quaternion_exp(np.array([0.0, 0.0, v[2] * (A - C) / A * T]))
    goal = quaternion_product(quaternion_product(quaternion_exp(L / A * T), start), own)
    errors = []
    for n in (50, 100, 200):
        motion = integrate_motion(robot, np.concatenate([np.zeros(3), start]), v, T, T / n)
        found = motion.q[-1, 3:]
        errors.append(np.abs(found * np.sign(found @ goal) - goal).max())
    assert abs(np.log2(errors[0] / errors[2]) / 2 - 4.0) < 0.3
    assert errors[-1] < 1e-7


def test_a_constant_velocity_is_followed_exactly_by_all_methods() -> None:
    """A ball that spins freely: one step of any length gives its screw motion."""
    robot = one_body(Free(), (0.7, 0.7, 0.7), gravity=(0, 0, 0))
    v = np.array([1.0, 0.5, -0.7, 0.0, 0.0, 0.0])
    q = robot.neutral()
    for step in METHODS.values():
        q1, v1 = step(robot, q, v, None, 1.5)
        assert np.abs(q1 - robot.integrate(q, v, 1.5)).max() < 1e-15
        assert np.abs(v1 - v).max() < 1e-15


# What is kept


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", every(2, STARTS))
def test_loops_stay_closed_and_quaternions_of_unit_length(name: str, method: str) -> None:
    robot, q, v = STARTS[name]()
    motion = integrate_motion(robot, q, v, TIMES[name], TIMES[name] / 50, method=method)
    for error in robot.loop_errors(motion.q).values():
        assert error.max() < 1e-12
    for joint, position in robot.joint_positions(motion.q).items():
        kind = next(j.kind for j in robot.joints if j.name == joint)
        if isinstance(kind, Free | Spherical):
            assert np.abs(np.linalg.norm(position[1:, -4:], axis=-1) - 1.0).max() < 1e-15


def energies(robot: Robot, motion: Any) -> np.ndarray:
    return coupler.kinetic_energy(robot, motion.q, motion.v) + coupler.potential_energy(robot, motion.q)


@pytest.mark.parametrize("name", ["spinning body", "spherical pendulum", "four-bar"])
def test_drift_of_energy_falls_with_the_fourth_power_of_the_step(name: str) -> None:
    """Or with a higher one: the fifth, where errors of the fourth do not add up."""
    robot, q, v = STARTS[name]()
    drifts = []
    for n in (40, 80):
        energy = energies(robot, integrate_motion(robot, q, v, TIMES[name], TIMES[name] / n))
        drifts.append(np.abs(energy - energy[0]).max())
    assert 3.7 < np.log2(drifts[0] / drifts[1]) < 5.3


def pendulum() -> Robot:
    return one_body(Revolute(axis=(0, 1, 0)), (0.1, 0.1, 0.1), (0, 0, -0.5))


def test_semi_implicit_euler_keeps_the_energy_of_a_pendulum_within_bounds() -> None:
    """For 100 s, where the explicit method doubles the swing."""
    robot, T, h = pendulum(), 100.0, 0.01
    spread = {}
    for method in ("semi_implicit_euler", "explicit_euler"):
        energy = energies(robot, integrate_motion(robot, [1.0], [0.0], T, h, method=method))
        half = len(energy) // 2
        spread[method] = [np.ptp(energy[:half]), np.ptp(energy[half:])]
    early, late = spread["semi_implicit_euler"]
    assert late < 1.01 * early and early < 0.1 * 1.5 * 9.81 * 0.5
    assert spread["explicit_euler"][0] > 10.0 * early


@pytest.mark.parametrize(("method", "power"), [("rk4", 4), ("dormand_prince", 5)])
def test_motion_can_be_run_back(method: str, power: int) -> None:
    """With v turned around, a robot without dampers goes back, up to the errors of the method."""
    robot, q, v = spherical_pendulum()
    missed = []
    for n in (40, 80):
        there = integrate_motion(robot, q, v, 1.0, 1.0 / n, method=method)
        back = integrate_motion(robot, there.q[-1], -there.v[-1], 1.0, 1.0 / n, method=method)
        missed.append(max(np.abs(back.q[-1] - q).max(), np.abs(back.v[-1] + v).max()))
    assert missed[1] < 1e-4
    assert np.log2(missed[0] / missed[1]) > power - 0.3


def test_a_step_of_negative_length_undoes_the_other_euler() -> None:
    """q ⊕ h v', v + h a(q) backwards: v is found from a at the same q, so the adjoint methods undo each other."""
    robot = pendulum()
    q, v = np.array([0.7]), np.array([-0.4])
    q1, v1 = semi_implicit_euler(robot, q, v, None, 0.05)
    before = robot.integrate(q1, v1, -0.05)
    assert np.abs(before - q).max() < 1e-15
    _, v0 = explicit_euler(robot, before, v1, None, -0.05)
    assert np.abs(v0 - v).max() < 1e-14


# Batches and forces


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", every(2, STARTS, first=1))
def test_batches_are_single_states(name: str, method: str) -> None:
    robot, q, v = STARTS[name]()
    h, step, tau = TIMES[name] / 50, METHODS[method], swung(robot)
    V = v + 0.1 * np.random.default_rng(0).normal(size=(3, 2, robot.nv))
    Q1, V1 = step(robot, q, V, tau, h, 0.3)
    assert Q1.shape == (3, 2, robot.nq) and V1.shape == V.shape
    for i in np.ndindex(3, 2):
        q1, v1 = step(robot, q, V[i], tau, h, 0.3)
        assert np.abs(Q1[i] - q1).max() < 1e-14
        assert np.abs(V1[i] - v1).max() < 1e-14 * max(1.0, np.abs(v1).max())


def test_forces_may_be_numbers_or_a_function() -> None:
    robot = pendulum()
    q, v = np.array([0.7]), np.array([-0.4])
    constant = rk4(robot, q, v, [0.3], 0.1)
    assert np.array_equal(constant, rk4(robot, q, v, lambda t, q, v: np.array([0.3]), 0.1))
    assert not np.array_equal(constant, rk4(robot, q, v, None, 0.1))
    several = rk4(robot, np.tile(q, (2, 1)), v, [[0.3], [0.0]], 0.1)
    assert np.abs(several[1][0] - constant[1]).max() < 1e-15


def test_functions_of_time_see_the_time() -> None:
    """Of a body of inertia 1 about its hinge without gravity, that is pushed by t³: exact with methods of order 4."""
    robot = one_body(Revolute(axis=(0, 1, 0)), (1.0, 1.0, 1.0), gravity=(0, 0, 0))
    for step in (rk4, dormand_prince):
        _, v = step(robot, [0.0], [0.0], lambda t, q, v: np.array([t**3]), 2.0, 1.0)
        assert abs(v[0] - (3.0**4 - 1.0) / 4.0) < 1e-13


@pytest.mark.parametrize("tau", [np.zeros(2), np.zeros((2, 1)), [[1.0], [1.0, 2.0]], "one", True, None])
def test_forces_that_do_not_fit(tau: Any) -> None:
    robot = pendulum()
    with pytest.raises(coupler.ModelError, match=r"tau must have the shape \(1,\)"):
        rk4(robot, [0.1], [0.0], (lambda *_: tau) if tau is None else tau, 0.1)


@pytest.mark.parametrize("step", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("name", ["pendulum", "mini_cheetah", "four_bar"])
def test_states_that_do_not_fit(name: str, step: Any) -> None:
    robot = pendulum() if name == "pendulum" else coupler.robots.load(name)
    q, v = robot.neutral(), np.zeros(robot.nv)
    bad: list[Any] = [(np.zeros(robot.nq + 1), v, 0.1), (q, np.zeros(robot.nv + 1), 0.1), ("here", v, 0.1)]
    bad += [(q, v + np.nan, 0.1), (q + np.nan, v, 0.1), (q, v + 1.0, np.nan), (q, v, "long"), (q, v, [0.1, 0.2])]
    bad += [(np.tile(q, (2, 1)), np.tile(v, (3, 1)), 0.1)]
    for q, v, h in bad:
        with pytest.raises(coupler.ModelError):
            step(robot, q, v, None, h)
