"""CHARMIE's inverse dynamics against MuJoCo's: forces of the spanning tree, of all 37 joints, projected by G."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.io.mjcf.write import mjcf_text
from coupler.model import ModelWarning
from coupler.robots.charmie import SPRINGS, charmie

EXACT = 1e-12  # relative to the largest force; 1e-15 is reached


@pytest.fixture
def mujoco() -> Any:
    return pytest.importorskip("mujoco", minversion="4.0", reason="MuJoCo is not installed (pip install mujoco)")


def test_inverse_dynamics_is_that_of_mujoco(mujoco: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without springs, since MJCF has none with a pretension. MuJoCo's solver is left out: massless bodies stop it."""
    monkeypatch.chdir(tmp_path)  # where MuJoCo logs that bodies are massless
    robot = charmie(springs=dict.fromkeys(SPRINGS))
    with pytest.warns(ModelWarning, match="not in MJCF: 9 start positions of joints"):
        text = mjcf_text(robot.spanning_tree(), Path())
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    joints = [link.joint for link in robot.tree.links[1:]]
    at = [model.joint(joint).qposadr[0] for joint in joints]
    order = np.concatenate([robot.tree.velocities(robot.tree.number[joint]) for joint in joints])
    assert sorted(at) == list(range(37)) and model.nv == 37
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, v, a = rng.uniform(-0.1, 0.05, 21), *rng.normal(size=(2, 21))
        G, g = robot.explicit_constraint(q, v)
        positions = robot.joint_positions(q)
        data.qpos[at] = [positions[joint] for joint in joints]
        data.qvel[at], data.qacc[at] = (G @ v)[order], (G @ a + g)[order]
        forces = np.zeros(model.nv)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 1, forces)
        spanning = np.zeros(37)
        spanning[order] = forces[at]
        expected, found = G.T @ spanning, coupler.inverse_dynamics(robot, q, v, a)
        np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * np.abs(expected).max())
