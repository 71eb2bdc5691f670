"""Starts that overlap, or are beyond a joint's limit: let out gently, and told once."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Simulation, SimulationError
from coupler.contact.pairs import pairs_of
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Free,
    Geometry,
    ModelError,
    ModelWarning,
    Plane,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Sphere,
    Spherical,
)
from effort import every
from reference.stepping import contact_step

G, DEPTH = 9.81, 3.45e-3


@cache
def ball() -> Robot:
    """2 kg, of radius 0.1 m, and a floor."""
    b = RobotBuilder("ball")
    b.body("ball", 2.0, inertia=(0.008,) * 3)
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1), friction=0.5, name="ball")
    b.shape("ground", Plane(), name="floor")
    return b.build()


@cache
def slider() -> Robot:
    """A block that slides along x, and an arm that turns about x, with limits from -1 to 0.2, without gravity."""
    b = RobotBuilder("slider", (0.0, 0.0, 0.0))
    b.body("block", 2.0, inertia=(0.1,) * 3)
    b.joint("slide", Prismatic(axis=(1, 0, 0), lower=-1.0, upper=0.2), "ground", "block")
    b.body("arm", 2.0, inertia=(0.1,) * 3)
    b.joint("hinge", Revolute(axis=(1, 0, 0), lower=-1.0, upper=0.2), "block", "arm")
    return b.build()


def low(depth: float = DEPTH) -> np.ndarray:
    return ball().pack_q({"free": [0, 0, 0.1 - depth, 1, 0, 0, 0]})


@pytest.mark.parametrize("step", [1e-3, 5e-3])
def test_a_ball_in_the_floor_is_let_out_gently_and_comes_to_rest(step: float) -> None:
    """With 0.1 m/s; it rises no higher than that throws it."""
    with pytest.warns(ModelWarning, match=r"ball on floor by 3.45 mm, which is let out with 0.1 m/s"):
        simulation = Simulation(ball(), step, q=low())
    fastest = top = 0.0
    for _ in range(round(0.4 / step)):
        simulation.step()
        fastest, top = max(fastest, simulation.v[5]), max(top, simulation.q[2] - 0.1)
    assert fastest == pytest.approx(0.1, abs=1e-9)
    assert top < 0.1**2 / (2.0 * G) + 0.1 * step
    assert abs(simulation.q[2] - 0.1) < 1e-14
    assert np.abs(simulation.v).max() < 1e-12


def test_joints_beyond_their_limits_come_back_gently() -> None:
    told = r"joint 'slide' 0.3 m beyond its limit, from where it comes back with 0.1 m/s, and 1 other joint beyond"
    with pytest.warns(ModelWarning, match=told):
        simulation = Simulation(slider(), 1e-3, q=np.array([0.5, 0.4]))
    simulation.step()
    np.testing.assert_allclose(simulation.v, [-0.1, -1.0], atol=1e-12)
    for _ in range(3200):
        simulation.step()
    assert simulation.q[0] <= 0.2 + 1e-12 and simulation.q[1] <= 0.2


@pytest.mark.parametrize(
    ("options", "told", "speed"),
    [
        ({"recovery": 0.02}, "let out with 0.02 m/s", 0.02),
        ({"recovery": float("inf")}, "which the first step parts with 3.45 m/s", 3.45),
        ({"penetration": "limited"}, "which steps part with 0.01 m/s", 0.01),
        ({"penetration": "velocity"}, "which is kept from growing", 0.0),
    ],
)
def test_what_is_told_is_what_happens(options: dict[str, Any], told: str, speed: float) -> None:
    with pytest.warns(ModelWarning, match=told):
        simulation = Simulation(ball(), 1e-3, q=low(), **options)
    simulation.step()
    assert simulation.v[5] == pytest.approx(speed, abs=1e-9)


@pytest.mark.parametrize(
    ("penetration", "told", "speed"),
    [
        ("limited", "comes back with 0.01 m/s", 0.01),
        ("velocity", "goes no further", 0.0),
        ("position", "comes back with 0.1 m/s", 0.1),
    ],
)
def test_joints_are_told_what_steps_of_several_stages_do(penetration: str, told: str, speed: float) -> None:
    with pytest.warns(ModelWarning, match=f"joint 'slide' 0.3 m beyond its limit, from where it {told}"):
        simulation = Simulation(slider(), q=np.array([0.5, 0.0]), integrator="trapezoid", penetration=penetration)
    simulation.step()
    assert simulation.v[0] == pytest.approx(-speed, abs=1e-9)


def test_a_batch_is_told_once() -> None:
    q = np.stack([low(0.0), low(), low(1e-3)])
    message = (
        r"overlaps at the start in 2 of 3 states \(1, 2\), in 1 contact, ball on floor by 3\.45 mm in state 1, which"
    )
    with pytest.warns(ModelWarning, match=message) as told:
        found = coupler.rollout(ball(), q, np.zeros(6), np.zeros((5, 6)))
    assert len(told) == 1
    with pytest.warns(ModelWarning, match=r"in 2 of 3 states \(\(1, 0\), \(2, 0\)\), .* in state \(1, 0\), which"):
        coupler.rollout(ball(), q[:, None], np.zeros(6), np.zeros((5, 6)))
    assert found.v[..., 5].max() < 0.12


def test_a_batch_is_told_of_joints_beyond_their_limits() -> None:
    q = np.array([[0.0, 0.0], [0.3, 0.0], [0.0, -1.5], [0.5, 0.0]])
    message = r"joint 'hinge' 0\.5 rad beyond its limit in state 2, .*, and 1 other joint beyond"
    with pytest.warns(ModelWarning, match=message) as told:
        coupler.rollout(slider(), q, np.zeros(2), np.zeros((5, 2)))
    assert len(told) == 1


def test_what_a_motion_makes_is_undone_at_once() -> None:
    """A ball that comes from inside the floor at 2 m/s may leave it at 2.1 m/s: 1 mm within a step."""
    with pytest.warns(ModelWarning):
        simulation = Simulation(ball(), 1e-3, q=low(1e-3), v=np.array([0, 0, 0, 0, 0, -2.0]))
    simulation.step()
    assert abs(simulation.q[2] - 0.1) < 1e-14


@pytest.mark.parametrize("integrator", every(3, ["midpoint", "euler", "rk4", "trapezoid"]))
@pytest.mark.parametrize("force", every(1, [1e3, 1e5]))
def test_what_is_pressed_into_the_floor_parts_as_gently_and_its_work_is_counted(integrator: str, force: float) -> None:
    """The contact lifts weight and force by the overlap, and that is no energy from nowhere."""
    tau = np.array([0, 0, 0, 0, 0, -force])
    with pytest.warns(ModelWarning, match="let out|which steps part"):
        simulation = Simulation(ball(), q=low(), integrator=integrator)
    start = simulation.state
    parting, fastest, work = simulation._engine.layout.places["parting"], 0.0, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation.run(0.5, lambda t, q, v: tau)
        simulation.restore(start)
        for _ in range(500):
            simulation.step(tau)
            assert simulation._last_result is not None
            fastest, work = max(fastest, simulation.v[5]), work + float(simulation._last_result[parting][0])
    assert fastest < 0.1 + 1e-9
    assert simulation.q[2] == pytest.approx(0.1, abs=1e-6)
    assert work == pytest.approx((force + 2.0 * G) * DEPTH, rel=0.1)
    with pytest.warns(ModelWarning, match="overlaps") as told:
        found = coupler.rollout(ball(), np.stack([low(0.0), low()]), np.zeros(6), np.tile(tau, (500, 1)))
    assert np.isinf(found.stops).all() and len(told) == 1


def test_joints_that_springs_press_beyond_their_limits_come_back_as_gently() -> None:
    b = RobotBuilder("press")
    b.body("block", 2.0)
    b.joint("slide", Prismatic(axis=(0, 0, 1), lower=0.0, stiffness=1e4, rest=-0.5), "ground", "block")
    with pytest.warns(ModelWarning, match="comes back with 0.1 m/s") as told:
        log = Simulation(b.build(), q=[-0.03]).run(0.5)
    assert len(told) == 1
    assert log.v.max() < 0.1 + 1e-9
    assert log.q[-1, 0] == pytest.approx(0.0, abs=1e-9)


def test_energy_from_nowhere_is_told_beside_what_is_let_out() -> None:
    """A pendulum that turns too fast for Euler's method, beside a ball that is pressed into the floor."""
    b = RobotBuilder("both")
    b.attach(ball(), "", to="ground")
    b.body("link", 1.0, (0, 0, -0.5), (0.02, 0.015, 0.01))
    b.joint("joint", Spherical(), "ground", "link", at=(2.0, 0.0, 2.0))
    robot = b.build()
    q, v = robot.pack_q({"free": low()}), robot.pack_v({"joint": [60.0, 3.0, 80.0]})
    tau = robot.pack_v({"free": [0, 0, 0, 0, 0, -1e3]})
    with pytest.warns(ModelWarning, match="let out"):
        simulation = Simulation(robot, q=q, v=v, integrator="euler")
    with pytest.raises(SimulationError, match=r"that nobody put in: .* joint 'joint'"):
        simulation.run(1.0, lambda t, q, v: tau)


def test_numpy_lets_out_the_same() -> None:
    robot, q, v = slider(), np.array([0.5, 0.4]), np.array([0.3, -0.2])
    with pytest.warns(ModelWarning):
        simulation = Simulation(robot, 1e-3, q=q, v=v, recovery=0.05)
    for _ in range(20):
        done = contact_step(robot, q, v, np.zeros(2), 1e-3, [], recovery=0.05)
        q, v = done.q, done.v
        simulation.step()
        np.testing.assert_allclose(simulation.v, v, atol=1e-10)
    done = contact_step(ball(), low(), np.zeros(6), np.zeros(6), 1e-3, pairs_of(ball()), recovery=0.05)
    assert done.v[5] == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Box((0.2,) * 3), Box((0.2,) * 3)),
        (Box((0.2,) * 3), Cylinder(0.1, 0.2)),
        (Cylinder(0.1, 0.2), Cylinder(0.1, 0.2)),
        (Capsule(0.1, 0.2), Sphere(0.1)),
        (Ellipsoid((0.1, 0.12, 0.15)), Cylinder(0.1, 0.2)),
    ],
)
def test_bodies_at_one_place_part(one: Geometry, other: Geometry) -> None:
    """No line joins their centres; of equal masses, each moves with half the speed."""
    b = RobotBuilder("twins", (0.0, 0.0, 0.0))
    for name, shape in (("one", one), ("other", other)):
        b.object(name, shape, (0.0, 0.0, 0.0), mass=1.0)
    with pytest.warns(ModelWarning, match="let out with 0.1 m/s"):
        simulation = Simulation(b.build(), q=[0, 0, 0, 1, 0, 0, 0] * 2, contacts="one on other")
    for _ in range(20):
        simulation.step()
    v = simulation.v.reshape(2, 6)[:, 3:]
    assert np.linalg.norm(v[0]) == pytest.approx(0.05, rel=1e-6)
    np.testing.assert_allclose(v[1], -v[0], atol=1e-9)


def test_a_capsule_leaves_a_box_that_it_is_in() -> None:
    b = RobotBuilder("capsule_in_box", (0.0, 0.0, 0.0))
    b.shape("ground", Box((0.4, 0.4, 0.5)), name="box")
    b.object("capsule", Capsule(0.05, 0.4), (0.01, 0.0, 0.0), mass=1.0)
    with pytest.warns(ModelWarning, match="let out with 0.1 m/s"):
        simulation = Simulation(b.build(), 1e-2, contacts="capsule on box")
    for _ in range(250):
        simulation.step()
        assert simulation.status.jammed == 0.0
    np.testing.assert_allclose(simulation.q[:3], [0.01 + 0.1 * 2.5, 0.0, 0.0], atol=1e-6)


def test_starts_that_touch_are_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for robot, q in ((ball(), low(1e-6)), (slider(), np.array([0.2, -1.0]))):
            np.testing.assert_array_equal(Simulation(robot, q=q).q, q)


def test_a_bound_must_be_a_speed() -> None:
    with pytest.raises(ModelError, match="recovery"):
        Simulation(ball(), q=low(0.0), recovery=-1.0)
