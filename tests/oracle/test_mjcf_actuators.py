"""Actuators of files in MJCF: what MuJoCo's do at joints, ours do as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Simulation
from coupler.model import ModelWarning
from effort import sweep
from mjcf_controls import agree, controlled
from mjcf_peer import Peer
from models_folder import ABSENT, FOLDER, loaded

pytest.importorskip("mujoco")

CASSIE = "cassie_menagerie/cassie_nomesh.xml"
MODELS = (CASSIE, "ufactory_xarm7/xarm7_nomesh.xml", "reachy_mini/mjcf/reachy_mini_nomesh.xml")

ARM = """<mujoco><compiler angle="radian"/><option integrator="implicitfast"/><worldbody>
  <body><joint name="a" axis="0 1 0" damping="0.1"/><geom size="0.1" pos="0 0 -0.5"/>
    <body pos="0 0 -1"><joint name="b" axis="0 1 0" ref="0.2"/><geom size="0.1" pos="0 0 -0.3"/>
      <body pos="0 0 -0.6"><joint name="c" type="slide" axis="0 0 1"/><geom size="0.1"/>
        <body pos="0 0.3 0"><joint name="d" type="ball"/><geom size="0.1" pos="0.1 0 0"/></body>
        <body><joint name="e" actuatorfrcrange="-3 3"/><geom size="0.1" pos="0.1 0 0"/></body>
      </body>
    </body>
  </body></worldbody>
  <tendon><fixed name="sum"><joint joint="a" coef="0.7"/><joint joint="b" coef="-1.5"/></fixed></tendon>
  <actuator>
    <motor joint="a" gear="-4" ctrlrange="-1 1"/>
    <general name="strong" jointinparent="b" gainprm="3" forcerange="-2 5"/>
    <position joint="b" kp="20" kv="1" gear="2" forcerange="-30 30"/>
    <velocity joint="c" kv="5" ctrlrange="-2 1" gear="0.5"/>
    <damper joint="a" kv="2" ctrlrange="0 1"/>
    <position name="both" tendon="sum" kp="10" dampratio="1" gear="1.2"/>
    <general name="odd" joint="c" biastype="affine" gainprm="2" biasprm="1 -4 -0.5" forcerange="-6 6"/>
    <velocity joint="e" kv="2" gear="4"/>
    <motor name="turn" joint="d" gear="1 -2 0.5"/>
  </actuator></mujoco>"""


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
@pytest.mark.parametrize("name", sweep(MODELS, [CASSIE]))
def test_models_of_others(name: str) -> None:
    robot = loaded(name)
    agree(robot, FOLDER / name, 10.0 if name == CASSIE else 1.0)
    assert len(robot.actuators) == {CASSIE: 10, MODELS[1]: 8, MODELS[2]: 9}[name]


def test_every_kind_of_law_and_transmission(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    robot = coupler.load(path)
    kinds = [actuator.kind for actuator in robot.actuators]
    assert kinds == ["motor", "motor", "position", "velocity", "damper", "position", "position", "velocity", "motor"]
    assert robot.actuator_names == ["a", "strong", "b", "c", "a_2", "both", "odd", "e", "turn"]
    assert not robot.warnings
    for scale in (0.1, 1.0, 10.0):
        agree(robot, path, scale)


DRONE = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="drone" pos="0 0 1"><freejoint name="free"/><geom type="box" size="0.2 0.1 0.05" pos="0.03 0 0"/>
    <site name="left" pos="0.2 0.1 0.02"/><site name="right" pos="-0.2 0.1 0.02" euler="0.2 0.4 0.6"/>
    <body pos="0 0.1 0.2" euler="0 0.5 0.2"><geom size="0.05" mass="0.2"/>
      <site name="welded" pos="0.1 0.2 0.3" euler="0.7 0 0.3"/></body></body>
  <body name="door" pos="1 0 0"><joint name="hinge" axis="0.3 0.2 1" pos="0.1 0.2 0"/><geom size="0.1" pos="0.3 0 0"/>
    <site name="knob" pos="0.4 0.1 0" euler="0 0 0.5"/></body>
  <body name="cart" pos="2 0 0"><joint name="slide" type="slide" axis="1 1 0"/><geom size="0.1"/>
    <site name="hook" euler="0 0.7 0.5"/></body>
  <body name="eye" pos="3 0 0" euler="0 0 0.7"><joint name="ball" type="ball" pos="0.1 0 0"/><geom size="0.1"/>
    <site name="pupil" pos="0.1 0.2 0" euler="0 0.7 0.5"/></body></worldbody>
  <actuator>
    <motor name="thrust" site="left" gear="0 0 1 0 0 -0.02" ctrlrange="0 5"/>
    <motor name="lift" site="right" gear="0 0 1 0 0 0.02"/>
    <motor name="wrench" site="welded" gear="1 2 3 0.1 0.2 0.3"/>
    <motor name="push" site="knob" gear="1 2 3 0 0 0.5"/>
    <motor name="pull" site="hook" gear="1 2 3"/>
    <motor name="look" site="pupil" gear="1 2 3 1 2 3"/>
    <position name="hold" site="hook" gear="0 1 0" kp="3"/>
    <motor name="spin" joint="free" gear="0 0 0 1 2 3"/>
  </actuator></mujoco>"""


def test_sites_of_bodies_that_one_joint_moves(tmp_path: Path) -> None:
    """Drones, doors and carts, which a site pushes with the same generalized force in every pose."""
    path = tmp_path / "drone.xml"
    path.write_text(DRONE)
    robot = coupler.load(path)
    assert not robot.warnings and len(robot.actuators) == 8
    agree(robot, path)
    for suffix in (".xml", ".urdf", ".sdf"):
        saved = coupler.load(robot.save(tmp_path / f"saved{suffix}"))
        for own, other in zip(saved.actuators, robot.actuators, strict=True):
            assert own.name == other.name
            assert [*own.gears] == [*other.gears]
            np.testing.assert_allclose(np.hstack([*own.gears.values()]), np.hstack([*other.gears.values()]), atol=1e-12)


@pytest.mark.parametrize(
    ("actuator", "told"),
    [
        ('<motor tendon="rope"/>', "1 actuator at a tendon that runs through a shape"),
        ('<muscle joint="a" lengthrange="0 1"/>', "1 muscle, which is a motor here"),
    ],
)
def test_other_transmissions_are_told(actuator: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(
        """<mujoco><worldbody><site name="foot"/><body name="arm"><joint name="a"/><geom size="0.1"/>
        <body pos="0 0 1"><joint name="b" axis="0 1 0"/><geom name="ball" size="0.1"/><site name="tip" pos="1 0 0"/>
        <site name="mid"/></body></body></worldbody><tendon><spatial name="rope">
        <site site="foot"/><geom geom="ball" sidesite="mid"/><site site="tip"/></spatial></tendon>"""
        f"<actuator>{actuator}</actuator></mujoco>"
    )
    with pytest.warns(ModelWarning, match=f"left out: .*{told}"):
        coupler.load(path)


def test_motion_is_that_of_mujoco(tmp_path: Path) -> None:
    """Servos, saturated at first, against MuJoCo's own steps, shorter ones."""
    text = ARM.replace('<option integrator="implicitfast"/>', '<option integrator="implicitfast" timestep="2e-5"/>')
    left_out = ("<damper", 'name="turn"', 'name="odd"', 'name="both"', "<tendon")
    text = "\n".join(line for line in text.splitlines() if not any(word in line for word in left_out))
    path = tmp_path / "arm.xml"
    path.write_text(text)
    robot = coupler.load(path)
    peer = Peer(path)
    ctrl = np.array([0.5, -0.1, 0.8, -0.4, 0.3])
    simulation = Simulation(robot, 2e-4)
    simulation.run(0.5, motors=controlled(robot, peer, ctrl))
    peer.move(robot, robot.neutral(), np.zeros(robot.nv))
    peer.data.ctrl[:] = ctrl
    for _ in range(25000):
        peer._mujoco.mj_step(peer.model, peer.data)
    ours = robot.joint_positions(simulation.q)
    for i, name in enumerate("abc"):
        assert float(ours[name]) == pytest.approx(float(peer.data.qpos[i]), abs=2e-3)


SHARED = """<mujoco><worldbody>
  <body name="upper"><joint name="a" axis="0 1 0" actuatorfrcrange="-3 3"/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.04" contype="0" conaffinity="0"/>
    <body name="lower" pos="0.5 0 0"><joint name="b" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" contype="0" conaffinity="0"/></body></body></worldbody>
  <actuator><motor name="m1" joint="a" gear="2"/><motor name="m2" joint="a" ctrlrange="-1 9" ctrllimited="true"/>
    <position name="p" joint="b" kp="20" kv="1" forcerange="-2 2"/></actuator></mujoco>"""
SERVED = SHARED.replace('<motor name="m2" joint="a"', '<velocity name="m2" joint="a" kv="3"')


@pytest.mark.parametrize("text", [SHARED, SERVED], ids=["motors", "servo"])
def test_controls_in_dynamics_are_mujocos(text: str, tmp_path: Path) -> None:
    """Of two motors, or a motor and a servo, that share the limit of a joint, and of a servo with one of its own."""
    mujoco: Any = pytest.importorskip("mujoco")
    path = tmp_path / "shared.xml"
    path.write_text(text)
    model, robot, rng = mujoco.MjModel.from_xml_path(str(path)), coupler.load(path), np.random.default_rng(0)
    data = mujoco.MjData(model)
    for _ in range(100):
        (q, v), controls = rng.normal(size=(2, 2)), rng.normal(size=3) * [5.0, 8.0, 1.0]
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, controls
        mujoco.mj_forward(model, data)
        ours = coupler.forward_dynamics(robot, q, v, motors=controls)
        np.testing.assert_allclose(ours, data.qacc, rtol=0, atol=1e-11 * np.abs(data.qacc).max())
