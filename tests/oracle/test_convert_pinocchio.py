"""States that are converted for Pinocchio: its frames are where coupler's are, move alike and weigh the same."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import convert
from coupler.model import ModelError, ModelWarning, Robot
from models_folder import ABSENT, FOLDER
from peers import gap, random_tree

pin: Any = pytest.importorskip("pinocchio", reason="Pinocchio is not installed (pip install pin)")

EXACT = 1e-10
ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]
BUNDLED = ["mini_cheetah", "tello", "mit_humanoid_leg", "geared_chain", "four_bar", "rh5_manus"]

# A floating base, branches that are not in the order of the alphabet, and every type of joint that URDF has.
BRANCHES = """<robot name="branches">
  <link name="base"><inertial><mass value="2"/><origin xyz="0.1 0 0"/>
    <inertia ixx="1" iyy="1.2" izz="1.4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="wheel" type="continuous"><parent link="base"/><child link="rim"/><origin xyz="0 0.3 0" rpy="0.4 0 0"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="arm" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0.2 0 0" rpy="0 0.3 0"/>
    <axis xyz="0 0.6 0.8"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="skid" type="planar"><parent link="arm"/><child link="skid"/><origin xyz="0.2 0 0" rpy="0 0.5 0"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="bolt" type="fixed"><parent link="arm"/><child link="plate"/><origin xyz="0 0 0.1"/></joint>
  <joint name="rail" type="prismatic"><parent link="plate"/><child link="cart"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  {}
</robot>""".format(
    "".join(
        f'<link name="{name}"><inertial><mass value="{mass}"/><origin xyz="0.05 0.02 0"/>'
        '<inertia ixx="0.1" iyy="0.12" izz="0.14" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, mass in (("rim", 1), ("arm", 2), ("skid", 0.5), ("plate", 0.3), ("cart", 0.7))
    )
)


def agree(robot: Robot, model: Any, seed: int = 0) -> None:
    """Poses and velocities of bodies, and the mass matrix."""
    q, v = robot.random_state(seed)
    p, w = convert.to_pinocchio(robot, q, v, model)
    data, local = model.createData(), pin.ReferenceFrame.LOCAL
    pin.forwardKinematics(model, data, p, w)
    pin.updateFramePlacements(model, data)
    for i, (body, pose) in enumerate(zip(robot.body_names, coupler.body_poses(robot, q), strict=True)):
        if not model.existFrame(body, pin.FrameType.BODY):
            continue
        number = model.getFrameId(body, pin.FrameType.BODY)
        np.testing.assert_allclose(data.oMf[number].homogeneous, pose, atol=EXACT)
        if i % 8 == 0:
            V = pin.getFrameVelocity(model, data, number, local).vector[ANGULAR_FIRST]
            np.testing.assert_allclose(V, coupler.frame_velocity(robot, q, v, body), atol=1e-8)
    A = convert.pinocchio_jacobian(robot, q, model)
    inertia = np.array([pin.rnea(model, data, p, 0 * w, unit) for unit in np.eye(model.nv)])
    M = inertia - pin.rnea(model, data, p, 0 * w, 0 * w)
    assert gap(A @ v, w) < EXACT
    assert gap(A.T @ M @ A, coupler.mass_matrix(robot, q)) < 1e-9


def returns(robot: Robot, model: Any, seed: int = 1) -> None:
    """There and back, for one state and for a batch."""
    q, v = map(np.array, zip(*(robot.random_state(seed + i) for i in range(3)), strict=True))
    there = convert.to_pinocchio(robot, q, v, model)
    again = convert.from_pinocchio(robot, *there, model)
    for found, expected in zip(convert.to_pinocchio(robot, *again, model), there, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(again[1], v, atol=1e-9)
    one = convert.from_pinocchio(robot, there[0][0], there[1][0], model)
    np.testing.assert_allclose(one[0], again[0][0], atol=1e-9)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_robots(name: str, tmp_path: Path) -> None:
    robot = coupler.robots.load(name)
    model = pin.buildModelFromUrdf(str(robot.spanning_tree().save(tmp_path / "robot.urdf")))
    agree(robot, model)
    returns(robot, model)
    q, v = robot.random_state(2)
    for found, expected in zip(
        convert.to_pinocchio(robot, q, v), convert.to_pinocchio(robot, q, v, model), strict=True
    ):  # in the order of the file, without a model
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("floating", [False, True], ids=["on the ground", "afloat"])
def test_all_joints_of_a_urdf(floating: bool, tmp_path: Path) -> None:
    (tmp_path / "branches.urdf").write_text(BRANCHES)
    robot = coupler.load(tmp_path / "branches.urdf", floating=floating)
    model = pin.buildModelFromXML(BRANCHES, *([pin.JointModelFreeFlyer()] if floating else []))
    agree(robot, model)
    returns(robot, model)
    q, v = robot.random_state(3)
    for found, expected in zip(
        convert.to_pinocchio(robot, q, v), convert.to_pinocchio(robot, q, v, model), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(robot.neutral(), convert.from_pinocchio(robot, pin.neutral(model), None, model)[0])


def test_joints_that_urdf_has_in_parts(tmp_path: Path) -> None:
    kinds = "revolute helical cylindrical prismatic universal continuous"
    robot = random_tree(np.random.default_rng(3), kinds.split(), 8, True)
    model = pin.buildModelFromUrdf(str(robot.save(tmp_path / "robot.urdf")))
    agree(robot, model)
    returns(robot, model)


def test_mimics_may_have_no_entries_of_their_own(tmp_path: Path) -> None:
    text = BRANCHES.replace(
        '<parent link="plate"/><child link="cart"/>',
        '<parent link="plate"/><child link="cart"/><mimic joint="arm" multiplier="0.5" offset="0.1"/>',
    )
    (tmp_path / "mimic.urdf").write_text(text)
    robot = coupler.load(tmp_path / "mimic.urdf")
    for mimic in (False, True):
        model = pin.buildModelFromXML(text, mimic=mimic)
        q, v = robot.random_state(0)
        p, _ = convert.to_pinocchio(robot, q, v, model)
        data = model.createData()
        pin.framesForwardKinematics(model, data, p)
        pose = data.oMf[model.getFrameId("cart", pin.FrameType.BODY)].homogeneous
        np.testing.assert_allclose(pose, coupler.frame_pose(robot, q, "cart"), atol=EXACT)
        returns(robot, model)


def test_a_base_that_floats_in_one_of_the_two_is_told(tmp_path: Path) -> None:
    (tmp_path / "branches.urdf").write_text(BRANCHES)
    robot = coupler.load(tmp_path / "branches.urdf")
    floating = coupler.load(tmp_path / "branches.urdf", floating=True)
    model = pin.buildModelFromXML(BRANCHES, pin.JointModelFreeFlyer())
    with pytest.raises(ModelError, match="has a joint 'root_joint' that robot 'branches' does not have"):
        convert.to_pinocchio(robot, robot.neutral(), None, model)
    with pytest.raises(ModelError, match="'floating_base'; load both from the same file"):
        convert.to_pinocchio(floating, floating.neutral(), None, pin.buildModelFromXML(BRANCHES))


@pytest.mark.parametrize("file", ["grbda/mini_cheetah.urdf", "grbda/jvrc1_humanoid.urdf"])
def test_files_of_others(file: str) -> None:
    if ABSENT or not (FOLDER / file).is_file():
        pytest.skip(ABSENT or f"no {file} among the robots of others")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = coupler.load(FOLDER / file)
    model = pin.buildModelFromUrdf(str(FOLDER / file))  # the file itself has a floating joint
    agree(robot, model)
    returns(robot, model)
