"""Motion over a span of time: steps of one length or by tolerance, what is recorded, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError
from coupler.model import Free, Held, Revolute, Robot, RobotBuilder
from coupler.simulate import MotionError, integrate_motion, rk4


def pendulum(damping: float = 0.0, gravity: Any = (0, 0, -9.81)) -> Robot:
    b = RobotBuilder("pendulum", gravity)
    b.body("body", 1.5, (0, 0, -0.5), (0.1, 0.1, 0.1))
    b.joint("hinge", Revolute(axis=(0, 1, 0), damping=damping), "ground", "body")
    return b.build()


def tumbling() -> tuple[Robot, np.ndarray, np.ndarray]:
    b = RobotBuilder("tumbling")
    b.body("body", 1.5, (0.2, -0.1, 0.3), (0.4, 0.9, 1.1))
    b.joint("joint", Free(), "ground", "body")
    robot = b.build()
    return robot, robot.neutral(), np.array([0.3, 4.0, -0.2, 0.5, 1.0, -2.0])


# What is recorded


def test_every_step_is_recorded() -> None:
    robot = pendulum()
    motion = integrate_motion(robot, [0.5], [0.0], 0.3, 0.1)
    assert np.allclose(motion.times, [0.0, 0.1, 0.2, 0.3], atol=1e-15) and motion.times[-1] == 0.3
    q, v = np.array([0.5]), np.array([0.0])
    for i in range(1, 4):
        q, v = rk4(robot, q, v, None, 0.1)
        assert np.abs(motion.q[i] - q).max() < 1e-15 and np.abs(motion.v[i] - v).max() < 1e-15
    assert motion.steps == 3 and motion.rejected == 0


@pytest.mark.parametrize(("duration", "h", "steps"), [(1.0, 0.1, 10), (0.25, 0.1, 3), (0.05, 0.1, 1), (0.3, 0.1, 3)])
def test_the_last_step_ends_with_the_duration(duration: float, h: float, steps: int) -> None:
    motion = integrate_motion(pendulum(), [0.5], [0.0], duration, h)
    assert motion.times[-1] == duration and motion.steps == steps
    exact = integrate_motion(pendulum(), [0.5], [0.0], duration, tolerance=1e-12)
    assert np.abs(motion.q[-1] - exact.q[-1]).max() < 1e-3


def test_some_steps_are_recorded_and_the_end() -> None:
    robot = pendulum()
    everything = integrate_motion(robot, [0.5], [0.0], 1.0, 0.1)
    some = integrate_motion(robot, [0.5], [0.0], 1.0, 0.1, record=4)
    assert np.array_equal(some.times, everything.times[[0, 4, 8, 10]])
    assert np.array_equal(some.q, everything.q[[0, 4, 8, 10]]) and np.array_equal(some.v, everything.v[[0, 4, 8, 10]])


@pytest.mark.parametrize("given", [{"h": 0.01}, {"tolerance": 1e-9}])
def test_times_are_met(given: dict[str, Any]) -> None:
    robot, times = pendulum(), [0.0, 0.105, 0.2, 0.73]
    motion = integrate_motion(robot, [0.5], [0.0], 1.0, record=times, **given)
    assert motion.times.tolist() == times
    for t, q in zip(times[1:], motion.q[1:], strict=True):
        exact = integrate_motion(robot, [0.5], [0.0], t, tolerance=1e-13).q[-1]
        assert np.abs(q - exact).max() < 1e-8


def test_batches_are_recorded_with_time_first() -> None:
    robot, q, v = tumbling()
    V = v + np.random.default_rng(0).normal(size=(2, 3, 6))
    motion = integrate_motion(robot, q, V, 0.5, 0.05)
    assert motion.q.shape == (11, 2, 3, 7) and motion.v.shape == (11, 2, 3, 6)
    for i in np.ndindex(2, 3):
        one = integrate_motion(robot, q, V[i], 0.5, 0.05)
        assert np.abs(motion.q[:, *i] - one.q).max() < 1e-14
        assert np.abs(motion.v[:, *i] - one.v).max() < 1e-13  # of velocities up to 10


def test_what_is_given_is_left_as_it_is() -> None:
    robot, q, v = tumbling()
    q0, v0, tau = q.copy(), v.copy(), np.ones(6)
    motion = integrate_motion(robot, q, v, 0.1, 0.05, tau=tau)
    motion.q[0] += 1.0
    motion.v[0] += 1.0
    assert np.array_equal(q, q0) and np.array_equal(v, v0) and np.array_equal(tau, np.ones(6))


def test_a_robot_may_be_large_and_loops_many() -> None:
    robot = coupler.robots.load("tello")
    q = robot.neutral()
    motion = integrate_motion(robot, q, np.zeros(robot.nv), 0.01, 1e-3)
    assert max(error.max() for error in robot.loop_errors(motion.q).values()) < 1e-12


# Steps by tolerance


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8, 1e-10])
def test_a_tolerance_is_met(tolerance: float) -> None:
    """At each step, and with errors that add up over a second to no more than 20 of them."""
    four_bar, leg = coupler.robots.load("four_bar"), coupler.robots.load("planar_leg_linkage")
    starts = [tumbling(), (pendulum(), np.array([2.5]), np.array([1.0]))]
    starts.append((four_bar, four_bar.pack_q({"joint1": np.radians(80.0)}), np.array([0.5])))
    starts.append((leg, leg.neutral(), np.array([1.0, -2.0])))
    for (robot, q, v), T in zip(starts, (1.0, 1.0, 0.2, 0.1), strict=True):
        found = integrate_motion(robot, q, v, T, tolerance=tolerance)
        exact = integrate_motion(robot, q, v, T, tolerance=1e-13)
        missed = np.abs(found.q[-1] - exact.q[-1]).max()
        missed = max(missed, (np.abs(found.v[-1] - exact.v[-1]) / np.maximum(np.abs(exact.v[-1]), 1.0)).max())
        assert missed < 20.0 * tolerance


def test_more_is_done_where_more_happens() -> None:
    """A pendulum that gets a short push: steps are short there, found by some that are rejected."""

    def push(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.full(1, 50.0 * np.exp(-(((t - 1.0) / 0.01) ** 2)))

    motion = integrate_motion(pendulum(), [0.1], [0.0], 2.0, tolerance=1e-8, tau=push)
    lengths = np.diff(motion.times)
    middle = np.abs(motion.times[1:] - 1.0) < 0.02
    assert motion.rejected > 0 and motion.steps == len(lengths)
    assert lengths[middle].max() < 0.2 * np.median(lengths[~middle])
    finer = integrate_motion(pendulum(), [0.1], [0.0], 2.0, 1e-4, tau=push)
    assert np.abs(motion.v[-1] - finer.v[-1]).max() < 1e-6


def test_the_first_step_may_be_given() -> None:
    robot = pendulum()
    motion = integrate_motion(robot, [0.5], [0.0], 1.0, tolerance=1e-6, first_step=1e-4)
    assert motion.times[1] == 1e-4
    motion = integrate_motion(robot, [0.5], [0.0], 1.0, tolerance=1e-6, first_step=100.0)  # no longer than the whole
    assert motion.rejected > 0 and motion.times[-1] == 1.0


def test_nothing_to_do_takes_few_steps() -> None:
    robot = pendulum(gravity=(0, 0, 0))
    assert integrate_motion(robot, [0.5], [0.0], 1e3, tolerance=1e-8).steps < 20


def test_a_step_too_small_is_refused() -> None:
    """A force that grows beyond all bounds."""

    def force(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.full(1, 1.0 / (1.0 - t) ** 2)

    with pytest.raises(MotionError, match=r"stops at 0\.9.* s: steps become smaller than 0\.0001 s") as told:
        integrate_motion(pendulum(), [0.5], [0.0], 2.0, tolerance=1e-8, tau=force, smallest_step=1e-4)
    assert 0.9 < told.value.time == told.value.motion.times[-1] < 1.0
    assert np.diff(told.value.motion.times).min() >= 1e-4
    assert len(told.value.motion.times) == told.value.motion.steps + 1


# Motions that cannot be finished


@pytest.mark.parametrize("given", [{"h": 0.01}, {"tolerance": 1e-6}])
def test_a_nan_stops_the_motion_and_what_was_computed_is_kept(given: dict[str, Any]) -> None:
    def force(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.full(1, 0.1 if t <= 0.5 else np.nan)

    robot = pendulum()
    with pytest.raises(MotionError, match=r"robot 'pendulum' stops at 0\.5 s: .*tau must be finite") as told:
        integrate_motion(robot, [0.5], [0.0], 1.0, tau=force, record=7, **given)
    motion = told.value.motion
    assert told.value.time == motion.times[-1] == pytest.approx(0.5, abs=1e-6)
    assert np.isfinite(motion.q).all() and np.isfinite(motion.v).all()
    exact = integrate_motion(robot, [0.5], [0.0], motion.times[-1], tolerance=1e-12, tau=[0.1])
    assert np.abs(motion.q[-1] - exact.q[-1]).max() < 1e-6


@pytest.mark.parametrize("method", ["explicit_euler", "semi_implicit_euler", "rk4", "dormand_prince"])
def test_a_motion_that_explodes_is_stopped(method: str) -> None:
    """A damper far too strong for the step: velocities grow until they are not finite."""
    with pytest.raises(MotionError, match="stops at") as told:
        integrate_motion(pendulum(damping=100.0), [0.5], [1.0], 100.0, 0.1, method=method)
    motion = told.value.motion
    assert 1.0 < told.value.time < 100.0
    assert np.isfinite(motion.q).all() and np.isfinite(motion.v).all() and np.abs(motion.v[-1]).max() > 1e10


@pytest.mark.parametrize("given", [{"h": 1e-3}, {"tolerance": 1e-10}], ids=["steps", "tolerance"])
def test_a_loop_turns_back_at_its_end(given: dict[str, Any]) -> None:
    """A crank longer than its rod, whose end slides along x: it reaches no further than 30°, and swings back."""
    b, turn = RobotBuilder("slide", (0, 0, 0)), Revolute(axis=(0, 0, 1))
    b.body("crank", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
    b.body("rod", 0.5, (0.25, 0, 0), (0.02, 0.02, 0.02))
    b.joint("shaft", turn, "ground", "crank", independent=True)
    b.joint("pin", turn, "crank", "rod", (1, 0, 0), start=-0.5)
    b.loop("slide", Held([[0, 0, 0, 0, 1, 0]]), "ground", "rod", meets=(0.5, 0, 0))
    robot = b.build()
    motion = integrate_motion(robot, robot.pack_q({"shaft": 0.1}), [1.0], 2.0, **given)
    assert robot.loop_errors(motion.q)["slide"].max() < 1e-12
    shaft = motion.q[:, 0]
    assert shaft.max() == pytest.approx(np.arcsin(0.5), abs=1e-5) and shaft.min() < -0.4
    energy = coupler.kinetic_energy(robot, motion.q, motion.v, motion.loop_velocities)
    assert np.ptp(energy) < 1e-7 * energy[0]


# Bad input

GOOD: dict[str, Any] = {"q": [0.5], "v": [0.0], "duration": 1.0, "h": 0.1}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"h": 0.0}, "h must be above zero, got 0"),
    ({"h": -0.1}, "h must be above zero, got -0.1"),
    ({"h": np.nan}, "h must be a finite number, got nan"),
    ({"h": np.inf}, "h must be a finite number"),
    ({"h": 1e-300}, "h = 1e-300 s is too small for 1 s"),
    ({"h": "fast"}, "h must be a finite number, got 'fast'"),
    ({"h": None}, "give either h, the length of a step, or a tolerance"),
    ({"tolerance": 1e-6}, "give either h, the length of a step, or a tolerance"),
    ({"h": None, "tolerance": 0.0}, "tolerance must be above zero"),
    ({"h": None, "tolerance": -1.0}, "tolerance must be above zero"),
    ({"h": None, "tolerance": np.nan}, "tolerance must be a finite number"),
    ({"h": None, "tolerance": 1e-6, "method": "rk4"}, "method 'rk4' has no estimate of its error"),
    ({"h": None, "tolerance": 1e-6, "first_step": 0.0}, "first_step must be above zero"),
    ({"h": None, "tolerance": 1e-6, "smallest_step": -1.0}, "smallest_step must be above zero"),
    ({"h": None, "tolerance": 1e-6, "first_step": 0.1, "smallest_step": 0.2}, "first_step, 0.1 s, is below"),
    ({"first_step": 0.1}, "first_step goes with a tolerance"),
    ({"smallest_step": 0.1}, "smallest_step goes with a tolerance"),
    ({"duration": 0.0}, "duration must be above zero"),
    ({"duration": -1.0}, "duration must be above zero"),
    ({"duration": np.nan}, "duration must be a finite number"),
    ({"duration": np.inf}, "duration must be a finite number"),
    ({"q": [np.nan]}, "q must be an array of one finite number"),
    ({"v": [np.inf]}, "v must be an array of one finite number"),
    ({"q": [0.5, 0.5]}, "q must be an array of one finite number"),
    ({"v": [0.5, 0.5]}, "v must be an array of one finite number"),
    ({"q": np.zeros((2, 1)), "v": np.zeros((3, 1))}, r"leading \(batch\) dimensions do not fit"),
    ({"tau": np.zeros(2)}, r"tau must have the shape \(1,\).*got the shape \(2,\)"),
    ({"tau": np.zeros((3, 1))}, r"tau must have the shape \(1,\)"),
    ({"tau": lambda t, q, v: np.zeros(3)}, r"tau must have the shape \(1,\)"),
    ({"tau": "strong"}, r"tau must have the shape \(1,\).*got 'strong'"),
    ({"tau": [np.nan]}, "tau must be finite"),
    ({"method": "rk5"}, "method must be one of 'explicit_euler', .* got 'rk5'"),
    ({"method": 4}, "method must be one of .* got 4"),
    ({"record": 0}, "record must be 1 or more"),
    ({"record": True}, "record must be a whole number of steps, or a list of times"),
    ({"record": 0.5}, "record must be a whole number of steps, or a list of times"),
    ({"record": []}, "record must be a whole number of steps, or a list of times"),
    ({"record": [0.5, 0.2]}, "times must ascend"),
    ({"record": [0.5, 2.0]}, "not exceed the duration of 1 s"),
    ({"record": [-0.5, 0.2]}, "record must be 2 finite numbers, 0 or more"),
    ({"record": [0.5, np.nan]}, "record must be 2 finite numbers"),
]


@pytest.mark.parametrize(("changed", "told"), BAD)
def test_bad_input(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        integrate_motion(pendulum(), **(GOOD | changed))


def test_an_open_loop_is_refused() -> None:
    robot = coupler.robots.load("four_bar")
    with pytest.raises(ModelError, match="does not close"):
        integrate_motion(robot, robot.neutral() + np.array([0.1, 0.0, 0.0]), [0.0], 1.0, 0.1)


def test_a_quaternion_that_is_none_is_refused() -> None:
    robot, q, v = tumbling()
    with pytest.raises(ModelError, match="quaternion has the length 2"):
        integrate_motion(robot, q * 2.0, v, 1.0, 0.1)
