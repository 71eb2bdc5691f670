"""The contact problem of a robot, set up by the mass matrix and by recursions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.contact import ContactProblem, solve
from coupler.contact.formulations import recursive_problem, touches, traditional_problem
from coupler.contact.pairs import pairs_of
from coupler.model import Box, Capsule, Free, ModelError, Plane, Prismatic, Robot, RobotBuilder, Shape, Sphere
from coupler.spatial import Transform
from effort import sweep
from random_robots import place, sample

SAME = 1e-10  # relative to the largest entry; 1e-12 is reached
ROBOTS = ("tree", "floating tree", "revolute loop", "spherical loop afloat", "rod loop", "belt", "series")


@cache
def shaped(robot: Robot, seed: int = 0) -> Robot:
    """With a floor, and something on each body; on the interpreter."""
    rng = np.random.default_rng(seed)
    forms = (Sphere(0.1), Capsule(0.05, 0.3), Box((0.1, 0.2, 0.3)))
    shapes = [Shape("floor", "ground", Plane(), Transform.translation((0.0, 0.0, -1.0)), friction=0.6)]
    for i, body in enumerate(robot.bodies):
        form = forms[i % 2] if i else forms[2]  # boxes touch what is not the ground in floats only, and slowly
        shapes.append(Shape(body, body, form, place(rng), group=1, meets=1 if i else 0))
    return replace(robot, shapes=tuple(shapes)).with_backend("interpreter")


def gap(one: Any, other: Any) -> float:
    return float(np.abs(one - other).max() / max(np.abs(one).max(), 1e-300))


@pytest.mark.parametrize("name", sweep(ROBOTS, ["tree", "spherical loop afloat", "rod loop"]))
def test_both_ways_give_the_same_problem(name: str) -> None:
    robot = shaped(sample(name).robot)
    pairs = pairs_of(robot)
    rng = np.random.default_rng(1)
    for seed in range(3):
        q, v = robot.random_state(seed)
        tau = rng.normal(size=robot.nv)
        (one, found), (other, again) = (
            make(robot, q, v, tau, 1e-3, pairs) for make in (traditional_problem, recursive_problem)
        )
        assert len(found) == len(again) == sum(pair.count for pair in pairs) > 0
        assert gap(one.A, other.A) < SAME
        assert gap(one.b, other.b) < SAME
        assert one.blocks == other.blocks


@pytest.mark.parametrize("name", sweep(["floating tree", "revolute loop"], ["revolute loop"]))
def test_gaps_close_as_fast_as_the_normal_rows_say(name: str) -> None:
    """b without impulses, at a step so small that nothing but v matters: ġ = w_n, by differences of the gaps."""
    robot = shaped(sample(name).robot)
    pairs = pairs_of(robot)
    q, v = robot.random_state(2)
    h, e = 1e-9, 1e-6
    problem, found = recursive_problem(robot, q, v, np.zeros(robot.nv), h, pairs)
    rate = problem.b[::3] - np.array([touch.contact.gap for touch in found]) / h
    there, back = (touches(robot, robot.integrate(q, v, sign * e), pairs) for sign in (1.0, -1.0))
    seen = [(a.contact.gap - b.contact.gap) / (2 * e) for a, b in zip(there, back, strict=True)]
    np.testing.assert_allclose(rate, seen, atol=2e-5 * max(1.0, np.abs(seen).max()))


def ball(height: float, speed: tuple[float, float]) -> tuple[ContactProblem, Robot]:
    """A ball of 2 kg that falls, and slides along x."""
    b = RobotBuilder("ball")
    b.body("ball", 2.0, inertia=(0.02, 0.02, 0.02))
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1))
    b.shape("ground", Plane(), friction=0.3)
    robot = b.build()
    q = robot.pack_q({"free": [0, 0, height, 1, 0, 0, 0]})
    v = robot.pack_v({"free": [0, 0, 0, speed[0], 0, speed[1]]})
    return recursive_problem(robot, q, v, np.zeros(6), 0.01, pairs_of(robot))[0], robot


def test_a_ball_that_would_sink_in_is_stopped_at_the_ground() -> None:
    problem, _ = ball(0.105, (0.0, -1.0))
    (impulse, *_) = solve(problem).impulses
    # It may still fall the 5 mm that are left: w_n + g/h = 0 with w_n = v_n − 9.81 h + λ/m.
    assert impulse == pytest.approx(2.0 * (1.0 + 9.81 * 0.01 - 0.005 / 0.01), rel=1e-12)


def test_a_ball_that_stays_above_the_ground_is_left_alone() -> None:
    problem, _ = ball(0.2, (0.0, -1.0))
    np.testing.assert_array_equal(solve(problem).impulses, 0.0)


def test_a_ball_that_slides_is_slowed_down_by_friction() -> None:
    problem, robot = ball(0.1, (3.0, 0.0))
    found = solve(problem).impulses
    normal = 2.0 * 9.81 * 0.01
    assert found[0] == pytest.approx(normal, rel=1e-9)
    assert np.hypot(found[1], found[2]) == pytest.approx(0.3 * normal, rel=1e-9)
    (touch,) = touches(robot, robot.pack_q({"free": [0, 0, 0.1, 1, 0, 0, 0]}), pairs_of(robot))
    assert touch.contact.frame[1:].T @ found[1:] == pytest.approx([-0.3 * normal, 0.0, 0.0], abs=1e-9)


def test_a_robot_that_can_touch_nothing_has_an_empty_problem() -> None:
    robot = sample("tree").robot
    q, v = robot.random_state(0)
    for make in (traditional_problem, recursive_problem):
        problem, found = make(robot, q, v, np.zeros(robot.nv), 1e-3, pairs_of(robot))
        assert (problem.A.shape, found) == ((0, 0), [])


def test_a_step_must_be_a_time() -> None:
    robot = shaped(sample("tree").robot)
    q, v = robot.random_state(0)
    for step in (0.0, -1e-3, np.nan):
        with pytest.raises(ModelError, match="step must be a finite number"):
            recursive_problem(robot, q, v, np.zeros(robot.nv), step, pairs_of(robot))


def test_a_piston_on_the_ground_carries_its_weight_and_its_motor() -> None:
    b = RobotBuilder("piston")
    b.body("rod", 3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(), "ground", "rod")
    b.shape("rod", Sphere(0.1))
    b.shape("ground", Plane())
    robot = b.build()
    problem, _ = recursive_problem(robot, [0.1], [0.0], [-5.0], 1e-3, pairs_of(robot))
    assert solve(problem).impulses[0] == pytest.approx(1e-3 * (3.0 * 9.81 + 5.0), rel=1e-12)
    assert coupler.forward_dynamics(robot, [0.1], [0.0], [-5.0]) == pytest.approx(-9.81 - 5.0 / 3.0)
