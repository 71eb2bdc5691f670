"""A million steps of every bundled robot: energy swings and does not drift, and loops stay closed."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import Robot, Simulation
from effort import sweep

STEPS = 1_000_000
BLOCK = 1000  # steps between two looks
SPEED = 0.5  # of random velocities

# Of the largest kinetic energy. Joints of Tello have no limits, and its differentials come near poses at which they
# have more freedoms than elsewhere: there no step of this length keeps energy, and a motion may end.
ENERGY = {"five_bar": 0.05, "six_bar": 0.05, "planar_leg_linkage": 0.05}
USUAL = 0.01
ROBOTS = [name for name in coupler.robots.names() if not name.startswith("tello")]


def passive(name: str) -> tuple[Robot, np.ndarray, np.ndarray]:
    """A robot without motors, that nothing touches; without gravity, if it floats."""
    robot = coupler.robots.load(name)
    if any(joint.kind.floats for joint in robot.joints):
        robot = robot.with_gravity((0.0, 0.0, 0.0))
    q, v = robot.random_state(1)
    return robot, q, SPEED * v


@pytest.mark.parametrize("name", sweep(ROBOTS, []))
def test_passive_robots_keep_their_energy_for_a_million_steps(name: str) -> None:
    robot, q, v = passive(name)
    simulation = Simulation(robot, q=q, v=v, contacts=[], limits=False)
    engine, kinetic, total, gap = simulation._engine, [], [], 0.0
    for _ in range(STEPS // BLOCK):
        for _ in range(BLOCK):
            simulation.step()
        kinetic.append(float(engine.kinetic_energy(simulation._state)))
        total.append(kinetic[-1] + float(coupler.potential_energy(robot, simulation.q)))
        residual = robot.embedding.closure.at(robot.embedding.positions(np.array(simulation.q)))[0]
        gap = max(gap, float(np.abs(residual).max(initial=0.0)))
    assert gap <= 1e-10
    part = np.ptp(total) / max(kinetic)
    assert part < ENERGY.get(name, USUAL)
    half = len(total) // 2
    drift = abs(np.mean(total[half:]) - np.mean(total[:half])) / max(kinetic)
    assert drift < ENERGY.get(name, USUAL) / 2
