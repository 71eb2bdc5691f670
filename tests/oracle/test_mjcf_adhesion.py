"""Adhesion actuators of files in MJCF: what they hold, and with what forces, beside MuJoCo's soft contacts."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Adhesion, Simulation
from coupler.model import ModelWarning

pytest.importorskip("mujoco")

CRANE = """<mujoco><option timestep="0.001" integrator="implicitfast"/>
  <default><geom solref="0.02 1" friction="1 0.005 0.0001" condim="3"/></default>
  <worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="hand" pos="0 0 0.15"><joint name="slide" type="slide" axis="0 0 1"/>
    <geom type="box" size="0.02 0.02 0.01"/>
    <body name="cup" pos="0 0 -0.02"><geom name="cup" type="box" size="0.03 0.03 0.01" mass="0.1"/></body></body>
  <body name="box" pos="0 0 0.06"><freejoint name="free"/>
    <geom name="box" type="box" size="0.06 0.06 0.06" mass="0.5"/></body></worldbody>
  <actuator><position name="lift" joint="slide" kp="2000" kv="100"/>
    <adhesion name="suck" body="cup" ctrlrange="0 1" gain="{gain}"/></actuator></mujoco>"""


def lifted(path: Path, suction: float) -> tuple[Any, Any]:
    """MuJoCo's model and data, after the hand went down to the box, and up with it."""
    mujoco: Any = import_module("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    for i in range(2200):
        data.ctrl[:] = _target(i), suction
        mujoco.mj_step(model, data)
    return model, data


def _target(i: int) -> float:
    return -0.0005 if i < 300 else -0.0005 + 0.08 * min((i - 300) / 1500.0, 1.0)


@pytest.mark.parametrize("gain", [4.0, 20.0])
def test_a_cup_holds_a_box_as_in_mujoco(gain: float, tmp_path: Path) -> None:
    """Twice: with a suction that is too weak for the box's weight of 4.9 N, and with one that holds it."""
    path = tmp_path / "crane.xml"
    path.write_text(CRANE.format(gain=gain))
    robot = coupler.load(path)
    assert not robot.warnings
    assert robot.actuators["suck"].along == Adhesion("cup", gain)
    model, data = lifted(path, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the box starts in the floor, as MuJoCo's contacts like it
        simulation = Simulation(robot)
        for i in range(2200):
            simulation.step(motors=[_target(i), 1.0])
            assert simulation.status.solved
    box = robot.q_slice("free").start + 2
    height = data.qpos[model.jnt_qposadr[model.joint("free").id] + 2]
    assert (height > 0.1) == (gain > 5.0)
    assert simulation.q[box] == pytest.approx(height, abs=1e-3)
    lift, suck = simulation.motor_forces
    assert lift == pytest.approx(data.actuator_force[0], rel=0.01)
    assert suck == (1.0 if gain > 5.0 else 0.0)
    if gain > 5.0:
        rows = [i for i, name in enumerate(simulation.contacts) if "cup" in name]
        pressing = np.abs(simulation.contact_forces[rows, 2].sum())
        assert pressing == pytest.approx(gain - 0.5 * 9.81, rel=1e-4)
        forces = np.zeros((data.ncon, 6))
        for i in range(data.ncon):
            import_module("mujoco").mj_contactForce(model, data, i, forces[i])
        assert pressing == pytest.approx(forces[:, 0].sum(), rel=1e-3)


def test_what_adhesion_of_a_file_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "pusher.xml"
    text = CRANE.format(gain=1.0).replace("<adhesion", "<general").replace('gain="1.0"', 'gainprm="-3"')
    path.write_text(text)
    with pytest.warns(ModelWarning, match="left out: 1 adhesion that pushes"):
        robot = coupler.load(path)
    assert robot.actuator_names == ["lift"]
    path.write_text(text.replace('gainprm="-3"', 'gainprm="3" forcerange="-1 2"').replace('"0 1"', '"-1 1"'))
    actuator = coupler.load(path).actuators["suck"]
    assert actuator.along == Adhesion("cup", 3.0)
    assert actuator.control == (0.0, 1.0)
    np.testing.assert_allclose(actuator.effort, (0.0, 2.0 / 3.0))
