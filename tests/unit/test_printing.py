"""What print shows of results: names, units, and no walls of numbers."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder
from coupler.model import Revolute


@pytest.fixture(scope="module")
def robot() -> Robot:
    return coupler.robots.load("five_bar")


def test_joint_forces_are_a_table(robot: Robot) -> None:
    q, v = robot.random_state(0)
    forces = coupler.joint_forces(robot, q, v, v)
    head, names, *rows = str(forces).splitlines()
    assert "N m" in head and names.split() == ["mx", "my", "mz", "fx", "fy", "fz"]
    by_name = {tuple(row.split()[:2]): [float(x) for x in row.split()[2:]] for row in rows}
    for kind, own in (("joint", forces.joints), ("loop", forces.loops), ("actuator", forces.actuators)):
        for name, force in own.items():
            np.testing.assert_allclose(by_name[kind, name], np.ravel(force), rtol=1e-3, atol=1e-9)
    assert repr(forces) == "<JointForces: 4 joints, 1 loop>"
    batch = coupler.joint_forces(robot, np.tile(q, (2, 3, 1)), v * np.arange(3.0)[:, None], v)
    assert "of 6 states, each entry where it is largest" in str(batch)
    last = coupler.joint_forces(robot, q, v * 2.0, v).joints["left_elbow"]
    shown = next(line for line in str(batch).splitlines() if "left_elbow" in line).split()[2:]
    sizes = np.abs(batch.joints["left_elbow"]).reshape(6, 6)
    np.testing.assert_allclose(np.abs([float(x) for x in shown]), sizes.max(axis=0), rtol=1e-3, atol=1e-9)
    assert np.abs(last).max() <= sizes.max() + 1e-12
    assert " yes " in str(coupler.determinate_forces(robot))
    assert " - " in str(coupler.joint_forces(robot, np.zeros((0, robot.nq)), v, v))


def test_other_objects_say_what_they_are(robot: Robot) -> None:
    q = robot.neutral()
    simulation = coupler.Simulation(robot, step=2e-3, contacts=())
    simulation.step()
    assert repr(simulation) == "<Simulation of 'five_bar' at 0.002 s, step 0.002 s, 0 possible contacts>"
    b = RobotBuilder("arm")
    b.body("link", 1.0, (0.1, 0, 0), (1e-3, 1e-3, 1e-3))
    b.joint("hinge", Revolute(), "ground", "link")
    assert repr(b) == "<RobotBuilder 'arm': 1 body, 1 joint>"
    still = np.zeros((3, robot.nv))
    sizing = coupler.size_actuators(robot, np.arange(3.0), np.tile(q, (3, 1)), still, still)
    assert repr(sizing) == "<ActuatorSizing: 2 actuators over 2 s>"
    fleet = robot.with_parameters({"mass:left_forearm": [1.0, 2.0]})
    assert "with parameters 'mass:left_forearm', of 2 states" in str(fleet)
