"""States that are converted for MuJoCo: its bodies are where coupler's are, move alike and weigh the same."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import RobotBuilder, convert
from coupler.model import ModelError, ModelWarning, Robot, Sphere, Spherical
from models_folder import ABSENT, FOLDER, loaded
from peers import gap, random_tree

mujoco: Any = pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed (pip install 'mujoco>=4')")

EXACT = 1e-10
BUNDLED = ["mini_cheetah", "tello", "mit_humanoid_leg", "geared_chain", "four_bar", "rh5_manus"]


def saved(robot: Robot, folder: Path) -> Any:
    """The robot as MuJoCo reads it from its file; of one whose loops MJCF cannot hold, the spanning tree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of what MJCF does not hold
        try:
            path = robot.save(folder / "robot.xml")
        except ModelError:
            path = robot.spanning_tree().save(folder / "robot.xml")
    return mujoco.MjModel.from_xml_path(str(path))


def agree(robot: Robot, model: Any, seed: int = 0) -> None:
    """Poses and velocities of bodies, and the mass matrix."""
    q, v = robot.random_state(seed)
    data, poses = mujoco.MjData(model), coupler.body_poses(robot, q)
    data.qpos[:], data.qvel[:] = convert.to_mujoco(robot, q, v, model)
    mujoco.mj_forward(model, data)
    for i, body in enumerate(robot.body_names):
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body)
        if number < 0:
            continue  # a body between the parts of a joint, or one that is welded to another
        pose, V = poses[i], np.zeros(6)
        np.testing.assert_allclose(data.xpos[number], pose[:3, 3], atol=EXACT)
        np.testing.assert_allclose(data.xmat[number].reshape(3, 3), pose[:3, :3], atol=EXACT)
        if i % 8 == 0:
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, number, V, 1)
            np.testing.assert_allclose(V, coupler.frame_velocity(robot, q, v, body), atol=1e-8)
    A, M = convert.mujoco_jacobian(robot, q, model), np.zeros((model.nv, model.nv))
    for column, unit in zip(M, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    assert gap(A @ v, data.qvel) < EXACT
    assert gap(A.T @ M @ A, coupler.mass_matrix(robot, q)) < 1e-9


def returns(robot: Robot, model: Any, seed: int = 1) -> None:
    """There and back, for one state and for a batch."""
    q, v = map(np.array, zip(*(robot.random_state(seed + i) for i in range(3)), strict=True))
    again = convert.from_mujoco(robot, *convert.to_mujoco(robot, q, v, model), model)
    np.testing.assert_allclose(again[0], q, atol=1e-9)
    np.testing.assert_allclose(again[1], v, atol=1e-9)
    one = convert.from_mujoco(robot, *convert.to_mujoco(robot, q[0], v[0], model), model)
    np.testing.assert_allclose(one[0], q[0], atol=1e-9)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_robots(name: str, tmp_path: Path) -> None:
    robot = coupler.robots.load(name)
    model = saved(robot, tmp_path)
    agree(robot, model)
    returns(robot, model)
    q, v = robot.random_state(2)
    for found, expected in zip(
        convert.to_mujoco(robot, q, v), convert.to_mujoco(robot, q, v, model), strict=True
    ):  # in the order of the file, without a model
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("floating", [False, True], ids=["on the ground", "afloat"])
def test_every_kind_of_joint(floating: bool, tmp_path: Path) -> None:
    """Those of several freedoms are several in a row in MuJoCo."""
    kinds = "revolute planar prismatic helical spherical cylindrical continuous universal"
    robot = random_tree(np.random.default_rng(3), kinds.split(), 10, floating)
    model = saved(robot, tmp_path)
    agree(robot, model)
    returns(robot, model)


def test_free_joints_that_are_placed_in_a_scene(tmp_path: Path) -> None:
    """MuJoCo counts from the world, whatever a free joint is placed at."""
    b = RobotBuilder("yard")
    turned = coupler.robots.load("mini_cheetah")
    b.attach(turned, prefix="dog/", at=(0.1, 0.2, 0.45), turned=[[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    b.object("ball", Sphere(0.1), at=(0, 0.5, 0.1), mass=0.3)
    robot = b.build()
    model = saved(robot, tmp_path)
    agree(robot, model)
    returns(robot, model)


def test_a_urdf_that_mujoco_reads_itself(tmp_path: Path) -> None:
    robot = coupler.robots.load("six_bar")
    model = mujoco.MjModel.from_xml_path(str(robot.save(tmp_path / "robot.urdf")))
    agree(robot, model)
    returns(robot, model)


def test_a_ball_that_is_three_hinges_there_is_refused(tmp_path: Path) -> None:
    b = RobotBuilder("ball")
    b.body("ball", mass=1.0, centre=(0.1, 0, 0), inertia=(1.0, 1.0, 1.0))
    b.joint("socket", Spherical(), "ground", "ball")
    robot = b.build()
    text = robot.save(
        tmp_path / "robot.urdf"
    ).read_text()  # as three hinges, with bodies between them that weigh nothing
    (tmp_path / "robot.urdf").write_text(
        text.replace("</robot>", '<mujoco><compiler boundmass="1e-6" boundinertia="1e-9"/></mujoco></robot>')
    )
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.urdf"))
    assert model.nv == 3 and model.nq == 3
    with pytest.raises(ModelError, match="has a joint 'socket_1' that robot 'ball' does not have"):
        convert.to_mujoco(robot, robot.neutral(), None, model)


@pytest.mark.parametrize("file", ["cassie_menagerie/cassie.xml"])
def test_files_of_others(file: str) -> None:
    if ABSENT or not (FOLDER / file).is_file():
        pytest.skip(ABSENT or f"no {file} among the robots of others")
    robot = loaded(file)
    spec = mujoco.MjSpec.from_file(str(FOLDER / file))
    for geom in [geom for geom in spec.geoms if geom.meshname]:
        spec.delete(geom)
    for material in spec.materials:
        material.textures = [""] * len(list(material.textures))
    for asset in (*spec.meshes, *spec.textures):
        spec.delete(asset)
    model = spec.compile()
    agree(robot, model)
    returns(robot, model)


def test_joints_that_do_not_move_here_stay_where_the_model_has_them(tmp_path: Path) -> None:
    """A weld makes a free joint fixed, and an equality holds a hinge at 0.3 rad."""
    (tmp_path / "held.xml").write_text("""<mujoco><worldbody>
        <body name="arm"><joint name="shoulder" axis="0 1 0"/><geom size="0.1" mass="1"/>
          <body name="wrist" pos="0.4 0 0"><joint name="wrist" axis="0 1 0"/><geom size="0.1" mass="1"/></body></body>
        <body name="tool" pos="0.4 0 0"><freejoint name="loose"/><geom size="0.1" mass="1"/></body></worldbody>
      <equality><weld body1="arm" body2="tool"/><joint joint1="wrist" polycoef="0.3 0 0 0 0"/></equality></mujoco>""")
    with pytest.warns(coupler.ModelWarning):
        robot = coupler.load(tmp_path / "held.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "held.xml"))
    assert robot.nv == 1
    agree(robot, model)
    returns(robot, model)


def test_soft_loops_are_closed_and_open_ones_refused(tmp_path: Path) -> None:
    robot = coupler.robots.load("four_bar")
    model = saved(robot, tmp_path)
    q, v = robot.random_state(4)
    qpos, qvel = convert.to_mujoco(robot, q, v, model)
    softly = convert.from_mujoco(robot, qpos + 1e-3, qvel, model)[0]
    robot.check_closed(softly)
    assert 1e-5 < np.abs(softly - q).max() < 1e-2
    with pytest.raises(ModelError, match="pass a tolerance above"):
        convert.from_mujoco(robot, qpos + np.array([0.4, 0.0, 0.0]), qvel, model)
