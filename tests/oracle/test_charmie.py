"""CHARMIE against MuJoCo's spanning tree of 37 joints: inverse dynamics, projected by G, and forces in all joints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.io.mjcf.write import mjcf_text
from coupler.model import ModelWarning
from coupler.model.loops import LoopJoint
from coupler.robots.charmie import SPRINGS, charmie
from coupler.studies.charmie_loops import PAPER_RULE

EXACT = 1e-12  # relative to the largest force; 1e-15 is reached


@pytest.fixture
def mujoco() -> Any:
    return pytest.importorskip("mujoco", minversion="4.0", reason="MuJoCo is not installed (pip install mujoco)")


class Tree:
    """CHARMIE with its loops cut, in MuJoCo.

    Without springs, since MJCF has none with a pretension. MuJoCo's solver is left out: massless bodies stop it.
    """

    def __init__(self, mujoco: Any) -> None:
        self.mujoco, self.robot = mujoco, charmie(springs=dict.fromkeys(SPRINGS)).with_closure("numerical")
        with pytest.warns(
            ModelWarning, match="not in MJCF: 7 bodies without mass between joints, 9 start positions of joints"
        ):
            text = mjcf_text(self.robot.spanning_tree(), Path())
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        joints = [link.joint for link in self.robot.tree.links[1:]]
        self.joints, self.at = joints, [self.model.joint(joint).qposadr[0] for joint in joints]
        self.order = np.concatenate([self.robot.tree.velocities(self.robot.tree.number[joint]) for joint in joints])
        assert sorted(self.at) == list(range(37)) and self.model.nv == 37

    def states(self, count: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Random q, v, a, at which the tree then is; and G."""
        rng, robot, data = np.random.default_rng(3), self.robot, self.data
        for _ in range(count):
            independent = dict(zip(robot.independent_joints, rng.uniform(-0.1, 0.05, 21), strict=True))
            q, (v, a) = robot.pack_q(independent), rng.normal(size=(2, 21))
            G, g = robot.explicit_constraint(q, v)
            positions = robot.joint_positions(q)
            data.qpos[self.at] = [positions[joint] for joint in self.joints]
            data.qvel[self.at], data.qacc[self.at] = (G @ v)[self.order], (G @ a + g)[self.order]
            for compute in (self.mujoco.mj_kinematics, self.mujoco.mj_comPos, self.mujoco.mj_comVel):
                compute(self.model, data)
            yield q, v, a, G

    def put_on(self, loop: LoopJoint, force: np.ndarray) -> None:
        """Puts on its two bodies what a loop joint transmits, told in its frame on the second."""
        body = self.data.body(loop.successor)
        R, at = body.xmat.reshape(3, 3), body.xpos
        point, (moment, push) = (
            at + R @ loop.successor_frame.r,
            (R @ loop.successor_frame.E.T @ force.reshape(2, 3).T).T,
        )
        for sign, name in ((1.0, loop.successor), (-1.0, loop.predecessor)):
            own = self.data.body(name)
            about = np.cross(point - own.xipos, push)
            self.data.xfrc_applied[own.id] += sign * np.concatenate([push, moment + about])

    def transmitted(self, name: str) -> np.ndarray:
        """What a body gets from the one that carries it, about its own origin and along its own axes."""
        body = self.data.body(name)
        moment, push = self.data.cfrc_int[body.id].reshape(2, 3)
        about = self.data.subtree_com[self.model.body_rootid[body.id]] - body.xpos
        R = body.xmat.reshape(3, 3)
        return np.concatenate([R.T @ (moment + np.cross(about, push)), R.T @ push])


@pytest.fixture
def tree(mujoco: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.chdir(tmp_path)  # where MuJoCo logs that bodies are massless
    return Tree(mujoco)


def test_inverse_dynamics_is_that_of_mujoco(tree: Tree) -> None:
    for q, v, a, G in tree.states(3):
        forces, spanning = np.zeros(37), np.zeros(37)
        tree.mujoco.mj_rne(tree.model, tree.data, 1, forces)
        spanning[tree.order] = forces[tree.at]
        expected, found = G.T @ spanning, coupler.inverse_dynamics(tree.robot, q, v, a)
        np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * np.abs(expected).max())


@pytest.mark.parametrize("rule", ["kept_rows", "minimum_norm", PAPER_RULE])
def test_reactions_are_those_of_mujoco(tree: Tree, rule: Any) -> None:
    """Loops are cut, and what they transmit is put on: MuJoCo's joints then transmit the same as ours.

    Along their freedoms these are the forces of actuators, and nothing where there is none: so the forces in loops are
    right, too.
    """
    robot = tree.robot
    for q, v, a, _ in tree.states(2):
        found = coupler.joint_forces(robot, q, v, a, actuators=["4d2", "5d2"], rule=rule)
        tree.data.xfrc_applied[:] = 0.0
        for loop in robot.loops:
            tree.put_on(loop, found.loops[loop.name])
        tree.mujoco.mj_rnePostConstraint(tree.model, tree.data)
        largest = max(np.abs(force).max() for force in found.joints.values())
        known = {
            tree.model.body(i).name for i in range(tree.model.nbody)
        }  # massless ones between joints are none there
        compared = [joint for joint in robot.joints if joint.name in found.joints and joint.child in known]
        assert len(compared) >= 30
        for joint in compared:
            expected = tree.transmitted(joint.child)
            np.testing.assert_allclose(found.joints[joint.name], expected, rtol=0, atol=EXACT * largest)
            drive = expected @ np.asarray(joint.kind.subspace(joint.kind.neutral()))[:, 0]
            geared = sum(own.get(joint.name, 0.0) for own in found.couplings.values())
            assert drive == pytest.approx(found.actuators.get(joint.name, 0.0) + geared, abs=EXACT * largest)
