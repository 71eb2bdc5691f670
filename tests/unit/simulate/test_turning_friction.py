"""Torsion and rolling friction in the compiled step, against analytic answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler import ModelError, RobotBuilder, Simulation, rollout
from coupler.kinematics import frame_velocity, momentum
from coupler.model import Box, Free, Plane, Robot, Sphere

G, H = 9.81, 1e-3
MASS, RADIUS, INERTIA = 2.0, 0.1, 0.02


def ball(tilt: float = 0.0) -> Robot:
    """A ball on a plane, which is level; gravity is tilted about the y axis, as on a slope that falls along x."""
    b = RobotBuilder("ball", gravity=(G * np.sin(tilt), 0.0, -G * np.cos(tilt)))
    b.body("ball", MASS, inertia=(INERTIA, INERTIA, INERTIA))
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(RADIUS), name="ball")
    b.shape("ground", Plane(), name="floor", friction=0.8)
    return b.build()


def motion(simulation: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Angular and linear velocity of the ball's centre, along the world's axes."""
    turning, straight = np.split(frame_velocity(simulation.robot, simulation.q, simulation.v, "ball", "world"), 2)
    return turning, straight


@pytest.mark.parametrize("integrator", ["euler", "midpoint"])
def test_a_ball_that_rolls_and_spins_slows_evenly_and_stops(integrator: str) -> None:
    """Rolling: (I + m R²) dω/dt = −ρ m g; spin: I dω/dt = −τ m g. Where they would turn round they stop."""
    torsion, rolling, speed, spin = 0.01, 0.02, 0.1, 0.5
    robot = ball()
    start = robot.pack_q({"free": [0, 0, RADIUS, 1, 0, 0, 0]})
    v = robot.pack_v({"free": [0, speed / RADIUS, spin, speed, 0, 0]})
    simulation = Simulation(robot, step=H, q=start, v=v, torsion=torsion, rolling=rolling, integrator=integrator)
    slowing = rolling * MASS * G * RADIUS / (INERTIA + MASS * RADIUS**2)
    for k in range(1, 131):
        simulation.step()
        assert simulation.status.solved
        turning, straight = motion(simulation)
        left = max(speed - slowing * k * H, 0.0)
        np.testing.assert_allclose(straight, [left, 0, 0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(turning[:2], [0, left / RADIUS], rtol=0, atol=1e-8)
        assert turning[2] == pytest.approx(max(spin - torsion * MASS * G / INERTIA * k * H, 0.0), abs=1e-9)
        if k == 5:
            bounds = [0.0, -rolling * MASS * G, -torsion * MASS * G]
            np.testing.assert_allclose(simulation.contact_moments, [bounds], rtol=0, atol=1e-9)
    assert speed - slowing * 0.13 < 0.0 > spin - torsion * MASS * G / INERTIA * 0.13  # both have stopped


@pytest.mark.parametrize(("part", "stays"), [(0.99, True), (1.01, False)])
def test_rolling_friction_holds_a_ball_on_a_slope_up_to_its_angle(part: float, stays: bool) -> None:
    """The weight's moment about the contact, R m g sin α, against ρ m g cos α: it rests up to tan α = ρ/R."""
    rolling = 0.02
    tilt = float(np.arctan(part * rolling / RADIUS))
    robot = ball(tilt)
    simulation = Simulation(robot, step=H, q=[0, 0, RADIUS, 1, 0, 0, 0], rolling=rolling)
    simulation.run(0.5)
    _, straight = motion(simulation)
    lever = RADIUS * np.sin(tilt) - rolling * np.cos(tilt)
    expected = 0.0 if stays else RADIUS * MASS * G * lever / (INERTIA + MASS * RADIUS**2) * 0.5
    np.testing.assert_allclose(straight, [expected, 0, 0], rtol=0, atol=1e-8)


def test_without_a_coefficient_a_ball_rolls_and_spins_for_ever() -> None:
    robot = ball()
    v = robot.pack_v({"free": [0, 10.0, 3.0, 1.0, 0, 0]})
    for torsion, rolling in ((None, None), (0.0, None), (0.0, 0.0)):
        q = [0, 0, RADIUS, 1, 0, 0, 0]
        simulation = Simulation(robot, step=H, q=q, v=v, torsion=torsion, rolling=rolling)
        simulation.run(0.2)
        turning, straight = motion(simulation)
        np.testing.assert_allclose([*turning, *straight], [0, 10, 3, 1, 0, 0], rtol=0, atol=1e-9)


def test_coefficients_go_by_patterns_of_names() -> None:
    b = RobotBuilder("two")
    for name in ("left", "right"):
        b.body(name, MASS, inertia=(INERTIA, INERTIA, INERTIA))
        b.joint(name, Free(), "ground", name)
        b.shape(name, Sphere(RADIUS), name=name)
    b.shape("ground", Plane(), name="floor")
    robot = b.build()
    q = robot.pack_q({"left": [0, 0, RADIUS, 1, 0, 0, 0], "right": [1, 0, RADIUS, 1, 0, 0, 0]})
    v = robot.pack_v({"left": [0, 0, 2.0, 0, 0, 0], "right": [0, 0, 2.0, 0, 0, 0]})
    simulation = Simulation(robot, step=H, q=q, v=v, torsion={"left on floor": 0.01})
    simulation.run(0.1)
    spins = [simulation.v[robot.v_slice(name)][2] for name in ("left", "right")]
    assert spins == pytest.approx([2.0 - 0.01 * MASS * G / INERTIA * 0.1, 2.0], abs=1e-9)
    with pytest.raises(ModelError, match="rolling: nothing that may touch is called 'wheel'"):
        Simulation(robot, rolling={"wheel": 0.1})
    with pytest.raises(ModelError, match="rolling must be a finite number, 0 or more"):
        Simulation(robot, rolling=-0.1)


def test_a_spinning_box_with_torsion_rebounds_and_settles() -> None:
    """Impacts that travel, with contacts of four rows: no energy from nowhere, and it comes to rest."""
    b = RobotBuilder("box")
    b.body("box", 1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("free", Free(), "ground", "box")
    b.shape("box", Box((0.1, 0.1, 0.1)), name="box")
    b.shape("ground", Plane(), name="floor", friction=0.3)
    robot = b.build()
    start = robot.pack_q({"free": [0, 0, 0.1, 0.95, 0.1, 0.2, 0.1]})
    v = robot.pack_v({"free": [1.0, 2.0, 30.0, 0.2, 0.0, -0.5]})
    simulation = Simulation(robot, step=H, q=start, v=v, restitution=0.5, torsion=0.01, rolling=0.01)
    simulation.run(2.0)
    assert simulation.status.solved
    np.testing.assert_allclose(simulation.v, 0.0, atol=1e-6)
    np.testing.assert_allclose(simulation.contact_forces.sum(axis=0), [0, 0, G], rtol=0, atol=1e-6)


def test_balls_that_resist_turning_meet_those_that_do_not() -> None:
    """Contacts of three, four and six rows that may pass each other: momentum is kept, and all are solved."""
    b = RobotBuilder("balls", gravity=(0.0, 0.0, 0.0))
    names = ("plain", "spinning", "rolling", "other")
    for name in names:
        b.body(name, MASS, inertia=(INERTIA, INERTIA, INERTIA))
        b.joint(name, Free(), "ground", name)
        b.shape(name, Sphere(RADIUS), name=name, friction=0.5)
    robot = b.build()
    q = robot.pack_q({name: [0.25 * i, 0.05 * i, 0, 1, 0, 0, 0] for i, name in enumerate(names)})
    v = robot.pack_v({name: [3.0 * i, 2.0, 1.0, 1.0 - i, 0, 0] for i, name in enumerate(names)})
    arms: dict[str, Any] = {"torsion": {"spinning": 0.01, "rolling": 0.02}, "rolling": {"rolling": 0.02}}
    simulation = Simulation(robot, step=H, q=q, v=v, **arms)
    before = momentum(robot, q, v)
    for _ in range(300):
        simulation.step()
        assert simulation.status.solved
    assert np.abs(simulation.v - v).max() > 0.5
    after = momentum(robot, simulation.q, simulation.v)
    np.testing.assert_allclose(after[3:], before[3:], rtol=0, atol=1e-11)
    np.testing.assert_allclose(after[:3], before[:3], rtol=0, atol=1e-3)  # contacts act where they are before a step


def test_states_of_a_rollout_turn_each_by_itself() -> None:
    robot, batch = ball(), 9
    speeds = np.linspace(0.0, 1.0, batch)
    q = np.tile(robot.pack_q({"free": [0, 0, RADIUS, 1, 0, 0, 0]}), (batch, 1))
    v = np.array([robot.pack_v({"free": [0, speed / RADIUS, 5 * speed, speed, 0, 0]}) for speed in speeds])
    rolled = rollout(robot, q, v, np.zeros((batch, 50, 6)), step=H, torsion=0.01, rolling=0.02)
    for i in (0, 4, 8):
        simulation = Simulation(robot, step=H, q=q[i], v=v[i], torsion=0.01, rolling=0.02)
        simulation.run(0.05)
        np.testing.assert_array_equal(rolled.v[i, -1], simulation.v)


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
def test_steps_of_several_stages_slow_a_ball_with_second_order(integrator: str) -> None:
    """Rolling and spin slow with errors of h², since that is how exact the normal force is; both stop."""
    torsion, rolling, speed, spin = 0.01, 0.002, 1.0, 0.5
    robot, errors, options = ball(), [], {"torsion": torsion, "rolling": rolling, "integrator": integrator}
    start = robot.pack_q({"free": [0, 0, RADIUS, 1, 0, 0, 0]})
    v = robot.pack_v({"free": [0, speed / RADIUS, spin, speed, 0, 0]})
    slowing = rolling * MASS * G * RADIUS / (INERTIA + MASS * RADIUS**2)
    for h in (2e-3, 1e-3):
        simulation = Simulation(robot, step=h, q=start, v=v, **options)
        simulation.run(0.04)
        turning, straight = motion(simulation)
        errors.append(
            [straight[0] - (speed - slowing * 0.04), turning[2] - (spin - torsion * MASS * G / INERTIA * 0.04)]
        )
    coarse, fine = np.abs(errors)
    assert (fine < 2e-5).all() and (coarse > 3.0 * fine).all()
    simulation = Simulation(robot, step=H, q=start, v=0.1 * v, **options)
    simulation.run(1.2)
    np.testing.assert_allclose(simulation.v, 0.0, atol=1e-8)


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
def test_torsion_on_a_body_that_falls_free_of_the_floor_ends_with_the_contact(integrator: str) -> None:
    """A ball that spins and flies off keeps the spin it has: moments act only where contacts press."""
    robot = ball()
    v = robot.pack_v({"free": [0, 0, 3.0, 0, 0, 1.0]})
    simulation = Simulation(robot, step=H, q=[0, 0, RADIUS, 1, 0, 0, 0], v=v, torsion=0.01, integrator=integrator)
    simulation.run(0.1)
    np.testing.assert_allclose(simulation.v[:3], [0, 0, 3.0], atol=1e-12)
