"""Conversions to other libraries, as far as they can be checked without them; tests/oracle compares with both."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import coupler
from coupler import ModelError, RobotBuilder, convert
from coupler.model import Free, Planar, Robot, Spherical
from coupler.rotation import from_euler, matrix_from_quaternion
from coupler.spatial import Transform


def lone(meets: Transform | None = None) -> Robot:
    """A body that floats from a place that is turned."""
    b = RobotBuilder("lone")
    b.body("body", mass=1.0, inertia=(1.0, 1.1, 1.2))
    b.joint("free", Free(), "ground", "body", at=(1.0, 2.0, 3.0), turned=from_euler(0.3, -0.4, 0.5), meets=meets)
    return b.build()


@pytest.mark.parametrize("meets", [None, Transform(from_euler(0.1, 0.7, -0.2).T, np.array([0.1, 0.2, -0.3]))])
def test_mujoco_counts_from_the_world(meets: Transform | None) -> None:
    robot = lone(meets)
    q, v = robot.random_state(0)
    qpos, qvel = convert.to_mujoco(robot, q, v)
    pose = coupler.frame_pose(robot, q, "body")
    np.testing.assert_allclose(qpos[:3], pose[:3, 3], atol=1e-14)
    np.testing.assert_allclose(matrix_from_quaternion(qpos[3:]), pose[:3, :3], atol=1e-14)
    np.testing.assert_allclose(qvel[:3], coupler.frame_velocity(robot, q, v, "body", axes="world")[3:], atol=1e-14)
    np.testing.assert_allclose(qvel[3:], coupler.frame_velocity(robot, q, v, "body")[:3], atol=1e-14)
    for found, expected in zip(convert.from_mujoco(robot, qpos, qvel), (q, v), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_pinocchio_has_w_last_and_linear_velocities_first() -> None:
    robot = lone()
    q, v = robot.random_state(0)
    p, w = convert.to_pinocchio(robot, q, v)
    np.testing.assert_array_equal(p, q[[0, 1, 2, 4, 5, 6, 3]])
    np.testing.assert_array_equal(w, v[[3, 4, 5, 0, 1, 2]])


def test_forces_go_the_other_way() -> None:
    """The power of forces is the same in both."""
    robot = coupler.robots.load("mini_cheetah")
    q, v = robot.random_state(0)
    for jacobian, to in (
        (convert.mujoco_jacobian, convert.to_mujoco),
        (convert.pinocchio_jacobian, convert.to_pinocchio),
    ):
        A, w = jacobian(robot, q), to(robot, q, v)[1]
        force = np.random.default_rng(0).normal(size=len(w))
        assert np.isclose(force @ w, (A.T @ force) @ v)
        batch = jacobian(robot, np.stack([q, robot.neutral()]))
        np.testing.assert_allclose(batch[0], A, atol=1e-14)


def test_batches_and_velocities_that_are_left_out() -> None:
    robot = coupler.robots.load("four_bar")
    q, v = robot.random_state(0)
    many = convert.to_mujoco(robot, np.tile(q, (2, 3, 1)), v)
    assert many[0].shape == many[1].shape == (2, 3, 3)
    np.testing.assert_array_equal(convert.to_mujoco(robot, q)[1], np.zeros(3))
    np.testing.assert_array_equal(convert.from_mujoco(robot, many[0])[1], np.zeros((2, 3, 1)))


def test_quaternions_need_not_be_of_unit_length_but_must_not_vanish() -> None:
    robot = lone()
    q, v = robot.random_state(1)
    qpos, qvel = convert.to_mujoco(robot, q, v)
    np.testing.assert_allclose(convert.from_mujoco(robot, [*qpos[:3], *(2.0 * qpos[3:])], qvel)[0], q, atol=1e-14)
    with pytest.raises(ModelError, match="joint 'free': its quaternion in MuJoCo's state is zero"):
        convert.from_mujoco(robot, np.zeros(7))


def test_errors_say_what_does_not_fit() -> None:
    robot = coupler.robots.load("four_bar")
    q = robot.neutral()
    for function in (convert.to_mujoco, convert.to_pinocchio):
        with pytest.raises(ModelError, match=r"robot must be a Robot, as coupler\.load\(\), .*got '"):
            function("robot.urdf", [0.0])  # pyright: ignore
    with pytest.raises(ModelError, match="must be an MjModel of MuJoCo, got dict"):
        convert.to_mujoco(robot, q, None, {})
    with pytest.raises(ModelError, match=r"must be a pinocchio\.Model, got SimpleNamespace"):
        convert.to_pinocchio(robot, q, None, SimpleNamespace())
    with pytest.raises(ModelError, match="qvel must be 3 finite numbers"):
        convert.from_mujoco(robot, np.zeros(3), np.zeros(2))
    with pytest.raises(ModelError, match="loop"):
        convert.to_mujoco(robot, q + np.array([0.3, 0.0, 0.0]))


def test_what_has_no_counterpart_is_told() -> None:
    b = RobotBuilder("odd")
    b.body("sled", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.body("ball", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.joint("slip", Planar(normal=(1, 0, 0)), "ground", "sled")
    b.joint("socket", Spherical(), "sled", "ball")
    robot = b.build()
    q, v = robot.random_state(0)
    with pytest.raises(ModelError, match="joint 'slip': Pinocchio has planes across z only"):
        convert.to_pinocchio(robot, q, v)
    for found, expected in zip(convert.from_mujoco(robot, *convert.to_mujoco(robot, q, v)), (q, v), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)
