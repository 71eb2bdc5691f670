"""Scenes that sweeps alone do not solve, with answers that are known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from coupler import Robot, RobotBuilder, Simulation, rollout
from coupler.model import Box, Free, Plane, Prismatic, Sphere
from effort import every, sweep

TOWERS = [(1.0, 1e3), (1.0, 1e3, 1e6)]  # kg, from the ground up
MORE_TOWERS = [(1.0, 1e4), (1e4, 1.0), (1e6, 1e3, 1.0)]


def balls(*masses: float) -> tuple[Robot, np.ndarray]:
    """Balls of 0.2 m on each other, on the ground."""
    b = RobotBuilder("balls")
    b.shape("ground", Plane(), friction=0.5)
    for i, mass in enumerate(masses):
        b.body(f"ball{i}", mass, inertia=(0.004 * mass,) * 3)
        b.joint(f"ball{i}", Free(), "ground", f"ball{i}")
        b.shape(f"ball{i}", Sphere(0.1))
    robot = b.build()
    return robot, robot.pack_q({f"ball{i}": [0, 0, 0.1 + 0.2 * i, 1, 0, 0, 0] for i in range(len(masses))})


@pytest.mark.parametrize("masses", [*TOWERS, *(pytest.param(masses, marks=pytest.mark.long) for masses in MORE_TOWERS)])
def test_a_tower_of_unequal_balls_stands(masses: tuple[float, ...]) -> None:
    robot, q = balls(*masses)
    simulation = Simulation(robot, q=q)
    log = simulation.run(0.2)
    np.testing.assert_allclose(simulation.q, q, atol=1e-8)
    assert log.residuals.max() <= 1e-8
    grounded = ["ground" in name for name in log.contacts]
    assert abs(log.forces[-1][grounded, 2]).sum() == pytest.approx(sum(masses) * 9.81, rel=1e-6)


@pytest.mark.parametrize("step", every(2, [1e-5, 1e-4, 2e-2]))
def test_balls_rest_on_each_other_in_steps_of_any_length(step: float) -> None:
    """Not even in the first steps does the upper one sink in, to be pushed out again."""
    robot, q = balls(1.0, 1.0)
    simulation = Simulation(robot, step, q=q)
    for _ in range(200):
        simulation.step()
        assert np.abs(simulation.v).max() < 1e-9
    np.testing.assert_allclose(simulation.q, q, rtol=0, atol=1e-9)


@pytest.mark.parametrize("points", every(2, [12, 4, 64]))
@pytest.mark.parametrize("friction", every(2, [0.4, 0.0, 1.5]))
def test_a_plate_lands_on_many_points(points: int, friction: float) -> None:
    """It falls with 1 m/s and slides with 1 m/s: friction takes µ m/s of that at once, and µ g of what is left."""
    b = RobotBuilder("plate")
    b.shape("ground", Plane(), friction=friction)
    b.body("plate", 1.0, inertia=(0.3, 0.3, 0.5))
    b.joint("plate", Free(), "ground", "plate")
    for turn in 2 * np.pi * np.arange(points) / points:
        b.shape("plate", Sphere(1e-3), at=(np.cos(turn), np.sin(turn), -0.5))
    robot = b.build()
    q, v = robot.pack_q({"plate": [0, 0, 0.501, 1, 0, 0, 0]}), robot.pack_v({"plate": [0, 0, 0, 1, 0, -1]})
    simulation = Simulation(robot, q=q, v=v)
    residuals, speeds = [], []
    for _ in range(50):
        simulation.step()
        residuals.append(simulation.residual)
        speeds.append(float(simulation.v[3]))
    assert max(residuals) <= 1e-8
    assert simulation.q[2] == pytest.approx(0.501, abs=1e-8)
    fallen = 1.0 + 9.81e-3 * np.arange(1, 51)  # impulse of the ground so far, N s
    np.testing.assert_allclose(speeds, np.maximum(1.0 - friction * fallen, 0.0), atol=1e-7)


@pytest.mark.parametrize("count", sweep([2, 5, 20], [2, 5]))
def test_a_stack_of_boxes_stands(count: int) -> None:
    b = RobotBuilder("stack")
    b.shape("ground", Plane(), friction=0.5)
    for i in range(count):
        b.body(f"box{i}", 1.0, inertia=(0.04 / 6,) * 3)
        b.joint(f"box{i}", Free(), "ground", f"box{i}")
        b.shape(f"box{i}", Box((0.2, 0.2, 0.2)))
    robot = b.build()
    q = robot.pack_q({f"box{i}": [0, 0, 0.1 + 0.2 * i, 1, 0, 0, 0] for i in range(count)})
    simulation = Simulation(robot, q=q)
    for _ in range(20 if count < 20 else 3):
        simulation.step()
        assert simulation.status.solved
    np.testing.assert_allclose(simulation.q, q, atol=1e-8)
    assert np.abs(simulation.v).max() <= 1e-6


@pytest.mark.parametrize("integrator", every(2, ["rk4", "midpoint", "trapezoid", "euler"]))
@pytest.mark.parametrize("mass", sweep([1e4, 1e6], [1e6]))
def test_a_light_box_bears_a_heavy_one(mass: float, integrator: str) -> None:
    """Steps of several stages let it turn over, with forces that moved along with it."""
    b = RobotBuilder("heavy on light")
    b.floor(0.5)
    b.object("light", Box((0.2, 0.2, 0.2)), at=(0, 0, 0.1), mass=1.0)
    b.object("heavy", Box((0.2, 0.2, 0.2)), at=(0, 0, 0.3), mass=mass)
    simulation = Simulation(b.build(), integrator=integrator)
    q = simulation.q.copy()
    log = simulation.run(0.2)
    np.testing.assert_allclose(simulation.q, q, atol=1e-8)
    assert log.residuals.max() <= 1e-8


def gripper(*points: tuple[float, float]) -> Robot:
    """Two fingers on rails, that squeeze a box of 1 kg between them in mid-air, with some points each."""
    b = RobotBuilder("gripper")
    for side, axis in (("left", (1, 0, 0)), ("right", (-1, 0, 0))):
        b.body(side, 0.2, inertia=(1e-3,) * 3)
        b.joint(side, Prismatic(axis=axis), "ground", side)
        for y, z in points:
            b.shape(side, Sphere(0.01), at=(-0.06 * axis[0], y, z), friction=0.6, group=2, meets=1)
    b.body("box", 1.0, inertia=(2e-3,) * 3)
    b.joint("box", Free(), "ground", "box")
    b.shape("box", Box((0.1, 0.2, 0.2)), friction=0.6)
    return b.build()


@pytest.mark.parametrize(("force", "falls"), [(12.0, False), (5.0, True)])
def test_a_gripper_holds_what_friction_can_hold(force: float, falls: bool) -> None:
    """The box weighs 9.81 N, and two fingers hold 2 µ F: 14.4 N or 6 N. What is missing makes it fall.

    On a single point each, for on several ones it may turn while it falls: what each of them bears is not determined.
    """
    robot = gripper((0, 0)) if falls else gripper((-0.05, -0.05), (-0.05, 0.05), (0.05, -0.05), (0.05, 0.05))
    q = robot.pack_q({"left": 0.0, "right": 0.0, "box": [0, 0, 0, 1, 0, 0, 0]})
    controls = np.full((100, robot.nv), 0.0)
    controls[:, robot.v_slice("left")] = controls[:, robot.v_slice("right")] = force
    result = rollout(robot, q[None], np.zeros(robot.nv), controls, friction=0.6)
    assert result.residuals.max() <= 1e-8
    speed = result.v[0, -1, robot.v_slice("box")][5]
    assert speed == pytest.approx(-(9.81 - 2 * 0.6 * force) * 0.1 if falls else 0.0, abs=1e-6)
