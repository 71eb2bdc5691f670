"""Steps with contact, against what is known of blocks, balls and robots that stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coupler import momentum, robots
from coupler.contact.formulations import recursive_problem, traditional_problem
from coupler.contact.pairs import pairs_of
from coupler.model import Box, Free, Plane, Robot, RobotBuilder, Shape, Sphere
from coupler.rotation import matrix_from_quaternion
from coupler.spatial import Transform
from effort import sweep
from reference.stepping import contact_step

G = 9.81


def loose(form: Box | Sphere, inertia: float, friction: float, gravity: tuple[float, float, float]) -> Robot:
    """A body of 2 kg on a plane."""
    b = RobotBuilder("loose", gravity)
    b.body("body", 2.0, inertia=(inertia,) * 3)
    b.joint("free", Free(), "ground", "body")
    b.shape("body", form)
    b.shape("ground", Plane(), friction=friction)
    return b.build()


def slid(slope: float, friction: float, steps: int, h: float) -> np.ndarray:
    """The velocity of a block on an incline, from rest: the plane is level, and gravity leans."""
    robot = loose(Box((0.4, 0.4, 0.1)), 0.02, friction, (G * np.sin(slope), 0.0, -G * np.cos(slope)))
    pairs = pairs_of(robot)
    q, v = robot.pack_q({"free": [0, 0, 0.05, 1, 0, 0, 0]}), np.zeros(6)
    start = None
    for _ in range(steps):
        done = contact_step(robot, q, v, np.zeros(6), h, pairs, start=start, tolerance=1e-11)
        q, v, start = done.q, done.v, done.solution.impulses
    return v


def test_a_block_sticks_on_a_slope_below_the_angle_of_friction() -> None:
    v = slid(np.arctan(0.5) - 0.02, 0.5, 20, 1e-2)
    assert np.abs(v).max() < 1e-9


def test_a_block_slides_down_a_steeper_slope_with_the_right_acceleration() -> None:
    slope, friction, steps, h = np.arctan(0.5) + 0.2, 0.5, 20, 1e-2
    v = slid(slope, friction, steps, h)
    expected = G * (np.sin(slope) - friction * np.cos(slope)) * steps * h
    assert v == pytest.approx([0, 0, 0, expected, 0, 0], abs=1e-8)


def test_a_ball_that_slides_rolls_in_the_end() -> None:
    """A full ball, I = 2/5 m r²: it rolls from t = 2 v/(7 µ g) on, with 5/7 of its speed."""
    radius, friction, speed, h = 0.1, 0.2, 1.0, 1e-3
    robot = loose(Sphere(radius), 0.4 * 2.0 * radius**2, friction, (0.0, 0.0, -G))
    pairs = pairs_of(robot)
    q, v = robot.pack_q({"free": [0, 0, radius, 1, 0, 0, 0]}), np.zeros(6)
    v[3] = speed
    rolls = 2.0 * speed / (7.0 * friction * G)
    for k in range(int(1.3 * rolls / h)):
        done = contact_step(robot, q, v, np.zeros(6), h, pairs)
        slip = _slip(done.q, done.v, radius)
        if k * h < 0.95 * rolls:
            assert slip > 0.02 * speed
        elif k * h > 1.05 * rolls:
            assert abs(slip) < 1e-8
        q, v = done.q, done.v
    assert np.linalg.norm(v[3:]) == pytest.approx(5.0 / 7.0 * speed, rel=2e-3)  # of first order in the step


def _slip(q: np.ndarray, v: np.ndarray, radius: float) -> float:
    """How fast the lowest point of a ball moves along x."""
    R = matrix_from_quaternion(q[3:])
    omega, speed = R @ v[:3], R @ v[3:]
    return float(speed[0] - radius * omega[1])


def test_balls_that_collide_keep_their_momentum_and_stay_together() -> None:
    b = RobotBuilder("balls", (0.0, 0.0, 0.0))
    for name, mass in (("one", 1.0), ("two", 3.0)):
        b.body(name, mass, inertia=(0.01, 0.01, 0.01))
        b.joint(name, Free(), "ground", name)
        b.shape(name, Sphere(0.1), friction=0.5)
    robot = b.build()
    q = robot.pack_q({"one": [-0.3, 0, 0, 1, 0, 0, 0], "two": [0.1, 0.05, 0, 1, 0, 0, 0]})
    v = robot.pack_v({"one": [0, 0, 0, 2.0, 0, 0], "two": [0, 0, 0, -0.5, 0, 0]})
    before, pairs = momentum(robot, q, v), pairs_of(robot)
    hit = False
    for _ in range(120):
        done = contact_step(robot, q, v, np.zeros(12), 2e-3, pairs)
        q, v = done.q, done.v
        hit = hit or bool(done.solution.impulses[0] > 0.0)
        assert done.touches[0].contact.gap > -1e-3
    assert hit
    np.testing.assert_allclose(momentum(robot, q, v)[3:], before[3:], atol=1e-12)


@pytest.mark.parametrize("formulation", sweep([traditional_problem, recursive_problem], [recursive_problem]))
def test_a_quadruped_with_all_its_rotors_lands_and_carries_its_weight(formulation: object) -> None:
    cheetah = robots.load("mini_cheetah")
    floor = Shape("floor", "ground", Plane(), Transform.identity(), friction=0.8)
    robot = replace(cheetah, shapes=(floor,))
    pairs = [pair for pair in pairs_of(robot) if "foot" in pair.one.name]
    assert len(pairs) == 4
    bent = {"hip": -0.8, "knee": 1.6}
    legs = {name: angle for name in robot.independent_joints for part, angle in bent.items() if part in name}
    q = robot.pack_q({**legs, "floating_base": [0, 0, 0.31, 1, 0, 0, 0]})
    v, wanted, h, start = np.zeros(robot.nv), q[7:].copy(), 2e-3, None
    weight = robot.mass * G
    forces = []
    for _ in range(250):
        tau = np.concatenate([np.zeros(6), -60.0 * (q[7:] - wanted) - 4.0 * v[6:]])
        done = contact_step(robot, q, v, tau, h, pairs, formulation=formulation, start=start)  # type: ignore[arg-type]
        q, v, start = done.q, done.v, done.solution.impulses
        assert done.solution.residual < 1e-10
        assert min(touch.contact.gap for touch in done.touches) > -1e-3
        forces.append(done.force(h))
    assert np.abs(v).max() < 0.1
    assert np.mean(forces[-50:], axis=0) == pytest.approx([0, 0, weight], abs=0.03 * weight)
    assert max(robot.loop_errors(q).values(), default=0.0) < 1e-10
