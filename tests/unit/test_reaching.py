"""Configurations of given positions of actuators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coupler
from coupler import UnreachableError
from coupler.model import Actuator, ModelError


@pytest.mark.parametrize("name", ["tello", "five_bar", "six_bar", "mini_cheetah"])
def test_actuators_get_where_they_are_sent(name: str) -> None:
    robot = coupler.robots.load(name)
    if not robot.actuators:
        robot = robot.with_actuators(Actuator(joint, joint) for joint in robot.independent_joints)
    near = np.stack([robot.random_state(seed)[0] for seed in range(4)])
    moves = np.random.default_rng(0).uniform(-0.2, 0.2, (4, robot.nv))
    targets = coupler.actuator_positions(robot, robot.integrate(near, moves))
    q = coupler.configuration_of_actuators(robot, targets, near)
    assert coupler.actuator_positions(robot, q) == pytest.approx(targets, abs=1e-9)
    robot.check(q)
    assert coupler.configuration_of_actuators(robot, targets[1], near[1]) == pytest.approx(q[1], abs=1e-12)


def test_dependent_actuators_are_followed_on_their_branch() -> None:
    robot = coupler.robots.load("slider_crank")
    slider = next(joint for joint in robot.joint_names if "slid" in joint)
    crank = next(joint for joint in robot.joint_names if "crank" in joint)
    robot = robot.with_actuators([Actuator("piston", slider)])
    for side in (1.0, -1.0):
        near = robot.pack_q({crank: side * 1.0})
        target = coupler.actuator_positions(robot, robot.pack_q({crank: side * 1.4}))
        q = coupler.configuration_of_actuators(robot, target, near)
        assert robot.joint_positions(q)[crank] == pytest.approx(side * 1.4, abs=1e-8)


def test_what_is_out_of_reach_offers_the_nearest() -> None:
    robot = coupler.robots.load("slider_crank")
    slider = next(joint for joint in robot.joint_names if "slid" in joint)
    crank = next(joint for joint in robot.joint_names if "crank" in joint)
    robot = robot.with_actuators([Actuator("piston", {slider: 2.0})])
    angles = np.linspace(-np.pi, np.pi, 721)
    reach = coupler.actuator_positions(robot, robot.pack_q({crank: angles}))[:, 0]
    for end, beyond in ((reach.max(), 0.5), (reach.min(), -0.5)):
        with pytest.raises(UnreachableError, match=r"'piston' does not reach.*nearest") as caught:
            coupler.configuration_of_actuators(robot, [end + beyond], robot.pack_q({crank: 1.0}))
        assert caught.value.nearest == pytest.approx([end], abs=1e-4)
        assert coupler.actuator_positions(robot, caught.value.q) == pytest.approx(caught.value.nearest)
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), UnreachableError)


def test_wrong_shapes_are_told() -> None:
    robot = coupler.robots.load("mini_cheetah")
    with pytest.raises(ModelError, match="positions must be 12"):
        coupler.configuration_of_actuators(robot, np.zeros(3))
    with pytest.raises(ModelError, match="do not fit"):
        coupler.configuration_of_actuators(robot, np.zeros((2, 12)), np.tile(robot.neutral(), (3, 1)))
    assert coupler.configuration_of_actuators(robot, np.zeros((0, 12))).shape == (0, robot.nq)
