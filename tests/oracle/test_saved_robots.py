"""Saved robots as other libraries read them: the mass matrix of the spanning tree, in their coordinates.

An element that is unknown to a library must not stop it. Joints that a format lacks are several simple ones there.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import robots
from coupler.io.mjcf.write import mjcf_text
from coupler.io.urdf.write import urdf_text
from coupler.model import Free, Helical, ModelError, ModelWarning, Planar, Robot, Spherical
from coupler.model.compose import compose
from coupler.model.tree import TreeJoint
from coupler.rotation import about_y, about_z, quaternion_from_matrix
from peers import gap
from random_robots import sample
from saved_robots import every_kind, everything

EXACT = 1e-12  # relative to the largest entry; 1e-15 is reached
NO_REAL_BODY = ("jvrc1", "mini_cheetah", "geared_chain", "belt_chain", "planar_leg_linkage")  # has inertias like theirs
TREES = {f"{'off' if meets else 'on'} origins {seed}": (meets, seed) for meets in (False, True) for seed in range(3)}
HERE = Path()


@pytest.fixture
def pin() -> Any:
    return pytest.importorskip("pinocchio", reason="Pinocchio is not installed (pip install pin)")


@pytest.fixture
def mujoco() -> Any:
    return pytest.importorskip("mujoco", minversion="4.0", reason="MuJoCo is not installed (pip install mujoco)")


def saved_urdf(robot: Robot) -> str:
    """The whole robot, or its tree, where it has a function that no file holds."""
    try:
        return urdf_text(robot, HERE)
    except ModelError:
        return urdf_text(robot.spanning_tree(), HERE)


def saved_mjcf(robot: Robot) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return mjcf_text(robot, HERE)


# Pinocchio


def angles_of(joint: TreeJoint, p: np.ndarray) -> np.ndarray:
    """A position as other readers of URDF have it: a ball is three turns, about x, y and z."""
    kind = joint.kind
    if isinstance(kind, Spherical):
        R = kind.transform(p).E.T  # Rx Ry Rz
        return np.array(
            [np.arctan2(-R[1, 2], R[2, 2]), np.arcsin(np.clip(R[0, 2], -1, 1)), np.arctan2(-R[0, 1], R[0, 0])]
        )
    if isinstance(kind, Planar):
        return np.array([*p[:2], np.cos(p[2]), np.sin(p[2])])
    if isinstance(kind, Free):
        return p[[0, 1, 2, 4, 5, 6, 3]]
    return np.array([p[0], kind.pitch * p[0]]) if isinstance(kind, Helical) else p


def rates_of(joint: TreeJoint, p: np.ndarray) -> np.ndarray:
    """The matrix that takes a joint's velocity to that of Pinocchio's joints."""
    kind = joint.kind
    if isinstance(kind, Spherical):
        _, y, z = angles_of(joint, p)
        back = about_z(z).T
        return np.linalg.inv(np.stack([back @ about_y(y).T @ [1, 0, 0], back @ [0, 1, 0], [0, 0, 1]], axis=1))
    if isinstance(kind, Planar):  # along the child's axes
        return about_z(p[2]).T
    if isinstance(kind, Free):
        return np.eye(6)[[3, 4, 5, 0, 1, 2]]
    return np.array([[1.0], [kind.pitch]]) if isinstance(kind, Helical) else np.eye(kind.nv)


def pinocchio_gap(pin: Any, robot: Robot, text: str) -> float:
    """How far the mass matrix of the spanning tree is from Pinocchio's, for the file."""
    tree = robot.spanning_tree()
    q = tree.random_state(1)[0]
    model = pin.buildModelFromXML(text)
    p, B = pin.neutral(model), np.zeros((model.nv, tree.nv))
    for joint in tree.joints:
        if not joint.kind.nv:
            continue
        position = np.atleast_1d(tree.joint_positions(q)[joint.name])
        names = [joint.name] if model.existJointName(joint.name) else [f"{joint.name}_{i}" for i in range(1, 4)]
        parts = [model.joints[model.getJointId(name)] for name in names if model.existJointName(name)]
        rows = [row for part in parts for row in range(part.idx_v, part.idx_v + part.nv)]
        entries = [entry for part in parts for entry in range(part.idx_q, part.idx_q + part.nq)]
        own = angles_of(joint, position)
        if len(own) < len(entries):  # a joint that turns without end has a cosine and a sine there
            turns = [part.nq > part.nv for part in parts]
            own = np.concatenate([[np.cos(x), np.sin(x)] if turn else [x] for x, turn in zip(own, turns, strict=True)])
        p[entries] = own
        B[np.ix_(rows, range(*tree.v_slice(joint.name).indices(tree.nv)))] = rates_of(joint, position)
    H = np.triu(pin.crba(model, model.createData(), p))
    H = H + np.triu(H, 1).T
    armature = np.diag(np.concatenate([tree.tree.links[i].kind.armature for i in range(1, len(tree.tree.links))]))
    order = np.concatenate(
        [np.arange(*tree.v_slice(link.joint).indices(tree.nv)) for link in tree.tree.links[1:] if link.kind.nv]
    )
    expected = coupler.mass_matrix(tree.with_backend("interpreter"), q)
    expected[np.ix_(order, order)] -= armature
    return gap(B.T @ H @ B, expected)


@pytest.mark.parametrize("name", robots.names())
def test_pinocchio_reads_the_urdf_of_a_bundled_robot(name: str, pin: Any) -> None:
    robot = robots.load(name)
    assert pinocchio_gap(pin, robot, saved_urdf(robot)) < EXACT


@pytest.mark.parametrize("name", ["revolute loop", "rod loop", "held loop", "locked rod", "belt", "polynomial"])
def test_pinocchio_passes_over_loops_and_couplings(name: str, pin: Any) -> None:
    robot = sample(name).robot
    assert pinocchio_gap(pin, robot, saved_urdf(robot)) < EXACT


def upright(robot: Robot) -> Robot:
    """With planar joints in the plane that Pinocchio knows: it takes no notice of their normals."""
    joints = [
        replace(joint, kind=Planar(armature=joint.kind.armature)) if isinstance(joint.kind, Planar) else joint
        for joint in robot.joints
    ]
    return compose(robot.name, robot.gravity, robot.bodies, joints, (), (), ())


@pytest.mark.parametrize("tree", TREES)
def test_pinocchio_reads_the_urdf_of_every_kind_of_joint(tree: str, pin: Any) -> None:
    meets, seed = TREES[tree]
    robot = upright(every_kind(np.random.default_rng(seed), meets=meets, floating=seed == 1))
    assert pinocchio_gap(pin, robot, saved_urdf(robot)) < EXACT


def test_pinocchio_passes_over_all_that_is_ours(pin: Any, tmp_path: Path) -> None:
    robot = everything(tmp_path / "crank.stl").build()
    assert pinocchio_gap(pin, robot, saved_urdf(robot)) < EXACT


# MuJoCo


def mujoco_rates(joint: TreeJoint, p: np.ndarray) -> np.ndarray:
    """The matrix that takes a joint's velocity to that of MuJoCo's joints: linear first, along the parent's axes."""
    kind, none = joint.kind, np.zeros((3, 3))
    if isinstance(kind, Free):
        turned = kind.transform(p).E.T
        turned = joint.placement.E.T @ turned if joint.parent == "ground" else turned
        return np.block([[none, turned], [np.eye(3), none]])
    return np.array([[1.0], [kind.pitch]]) if isinstance(kind, Helical) else np.eye(kind.nv)


def mujoco_positions(joint: TreeJoint, p: np.ndarray) -> np.ndarray:
    if isinstance(joint.kind, Free) and joint.parent == "ground":
        X = joint.kind.transform(p) @ joint.placement
        return np.concatenate([X.r, quaternion_from_matrix(X.E.T)])
    return np.array([p[0], joint.kind.pitch * p[0]]) if isinstance(joint.kind, Helical) else p


def mujoco_gap(mujoco: Any, robot: Robot, text: str) -> float:
    """How far the mass matrix of the spanning tree is from MuJoCo's, for the file."""
    tree = robot.spanning_tree()
    q = tree.random_state(1)[0]
    model = mujoco.MjModel.from_xml_string(text)
    data, B, M = mujoco.MjData(model), np.zeros((model.nv, tree.nv)), np.zeros((model.nv, model.nv))
    known = {model.jnt(i).name: i for i in range(model.njnt)}
    for joint in tree.joints:
        if not joint.kind.nv:
            continue
        position = np.atleast_1d(tree.joint_positions(q)[joint.name])
        names = [joint.name] if joint.name in known else [f"{joint.name}_{i}" for i in range(1, 5)]
        parts = [known[name] for name in names if name in known]
        sizes = [((7, 6), (4, 3), (1, 1), (1, 1))[model.jnt_type[i]] for i in parts]
        entries = [model.jnt_qposadr[i] + k for i, (nq, _) in zip(parts, sizes, strict=True) for k in range(nq)]
        rows = [model.jnt_dofadr[i] + k for i, (_, nv) in zip(parts, sizes, strict=True) for k in range(nv)]
        data.qpos[entries] = mujoco_positions(joint, position)
        B[np.ix_(rows, range(*tree.v_slice(joint.name).indices(tree.nv)))] = mujoco_rates(joint, position)
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, M)
    return gap(B.T @ M @ B, coupler.mass_matrix(tree.with_backend("interpreter"), q))


@pytest.mark.parametrize("name", [name for name in robots.names() if name not in ("jvrc1", "charmie")])
def test_mujoco_reads_the_mjcf_of_a_bundled_robot(name: str, mujoco: Any) -> None:
    robot = robots.load(name)
    try:
        text = saved_mjcf(robot)
    except ModelError:  # for a coupling that MJCF lacks
        text = saved_mjcf(robot.spanning_tree())
    assert mujoco_gap(mujoco, robot, text) < EXACT


@pytest.mark.parametrize("tree", TREES)
def test_mujoco_reads_the_mjcf_of_every_kind_of_joint(tree: str, mujoco: Any) -> None:
    meets, seed = TREES[tree]
    robot = every_kind(np.random.default_rng(seed), meets=meets, floating=seed == 1)
    assert mujoco_gap(mujoco, robot, saved_mjcf(robot)) < EXACT


@pytest.mark.parametrize("name", [name for name in robots.names() if name not in NO_REAL_BODY])
def test_mujoco_reads_the_urdf_of_a_bundled_robot(name: str, mujoco: Any) -> None:
    robot = robots.load(name)
    text = saved_urdf(robot)
    if any(body.mass == 0.0 for body in robot.bodies.values()):
        with pytest.raises(ValueError, match="mass and inertia of moving bodies must be larger than mjMINVAL"):
            mujoco.MjModel.from_xml_string(text)
    else:
        assert mujoco.MjModel.from_xml_string(text).nv == robot.tree.nv


@pytest.mark.parametrize("name", ["revolute loop", "spherical loop", "rod loop", "belt", "polynomial"])
def test_mujoco_passes_over_loops_and_couplings_of_urdf(name: str, mujoco: Any) -> None:
    robot = sample(name).robot
    if any(joint.kind.nv in (2, 3) for joint in robot.joints):
        pytest.skip("a chain has links without mass, which MuJoCo refuses")
    assert mujoco.MjModel.from_xml_string(saved_urdf(robot)).nv == robot.tree.nv
