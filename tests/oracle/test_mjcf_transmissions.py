"""Actuators of files in MJCF whose gear depends on the pose: cables, slider-cranks, and wrenches at sites."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.model import Cable, ModelWarning, SliderCrank, Wrench
from mjcf_controls import agree, controlled
from mjcf_peer import Peer

pytest.importorskip("mujoco")

ROBOT = """<mujoco><compiler angle="radian"/><option integrator="implicitfast"/><worldbody>
  <site name="peg" pos="0.3 0.1 0.4" euler="0.1 0.2 0.3"/><site name="rail" pos="-0.4 0 0.2" euler="0.3 1.2 0.1"/>
  <body name="upper" pos="0 0 1" euler="0.2 0 0.4"><joint name="a" axis="0 1 0.2"/>
    <geom size="0.1" pos="0 0 -0.5"/>
    <site name="hip" pos="0.1 0.05 -0.3" euler="0.4 0.1 0"/>
    <geom name="drum" type="cylinder" size="0.2 0.1" pos="0 0.1 -0.1" euler="0.3 1.2 0.3"/>
    <body name="lower" pos="0 0.1 -1" euler="0 0.3 0.1"><joint name="b" axis="1 0.3 0"/>
      <geom size="0.1" pos="0 0 -0.3"/>
      <geom name="ball" size="0.25" pos="0.1 0 -0.4"/>
      <site name="knee" pos="0.05 0 -0.2" euler="0 0.2 0.6"/>
      <body name="foot" pos="0 0 -0.6" euler="0.3 0.5 0"><joint name="c" type="ball"/><geom size="0.1" pos="0.1 0 0"/>
        <site name="toe" pos="0.2 0.1 0" euler="0.2 0.1 0.5"/></body></body></body>
  <body name="box" pos="1 0 0"><freejoint name="f"/><geom type="box" size="0.1 0.2 0.3"/>
    <site name="corner" pos="0.1 0.2 0.3" euler="0.5 0.1 0"/></body></worldbody>
  <tendon>
    <spatial name="rope"><site site="peg"/><site site="hip"/><site site="knee"/><site site="toe"/></spatial>
    <spatial name="tackle"><site site="peg"/><site site="hip"/><pulley divisor="2"/>
      <site site="hip"/><site site="knee"/>
      <pulley divisor="3"/><site site="toe"/><site site="corner"/></spatial>
    <spatial name="belt"><site site="peg"/><geom geom="drum"/><site site="hip"/><geom geom="ball"/><site site="toe"/>
      <pulley divisor="2"/><site site="peg"/><geom geom="drum"/><site site="knee"/></spatial>
  </tendon>
  <actuator>{}</actuator></mujoco>"""

ACTUATORS = """
    <motor name="pull" tendon="rope" gear="-2"/>
    <position name="hold" tendon="tackle" kp="30" kv="2" gear="1.5" forcerange="-9 8"/>
    <damper name="slow" tendon="rope" kv="3" ctrlrange="0 2"/>
    <velocity name="wind" tendon="tackle" kv="2"/>
    <motor name="wrap" tendon="belt" gear="0.8"/>
    <position name="grip" tendon="belt" kp="40" kv="3"/>
    <motor name="crank" cranksite="toe" slidersite="rail" cranklength="4" gear="0.7"/>
    <position name="drive" cranksite="knee" slidersite="rail" cranklength="4" kp="12" kv="0.5"/>
    <motor name="thrust" site="toe" gear="0.1 0.2 1 0.3 0 -0.02"/>
    <velocity name="drag" site="knee" gear="1 0 0" kv="0.4"/>
    <motor name="fly" site="corner" gear="0 0 1 0 0 0.1"/>
    <motor name="push" site="toe" refsite="peg" gear="1 2 3 0.3 0.1 0.2"/>
    <position name="move" site="knee" refsite="rail" gear="1 0 2" kp="5" kv="1"/>
    <motor name="lift" joint="f" gear="1 2 3"/>
    <motor name="both" jointinparent="f" gear="1 2 3 4 5 6"/>
    <motor name="turn" jointinparent="c" gear="1 2 3"/>
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT.format(ACTUATORS))
    return path


def test_forces_are_those_of_mujoco(path: Path) -> None:
    robot = coupler.load(path)
    assert not robot.warnings and len(robot.actuators) == 16
    kinds = [type(actuator.along) for actuator in robot.actuators]
    assert kinds == [Cable] * 6 + [SliderCrank] * 2 + [Wrench] * 2 + [type(None)] + [Wrench] * 5
    agree(robot, path)
    agree(robot, path, 10.0)


def test_positions_and_velocities_are_those_of_mujoco(path: Path) -> None:
    robot, peer = coupler.load(path), Peer(path)
    robot = robot.with_actuators(x for x in robot.actuators if x.along is not None and x.along.has_position)
    numbers = [peer.model.actuator(name).id for name in robot.actuator_names]
    still = [robot.actuator_names.index(name) for name in ("lift", "both")]  # lengths of free joints are zero there
    for seed in range(3):
        q, v = robot.random_state(seed)
        peer.move(robot, q, v)
        peer._mujoco.mj_forward(peer.model, peer.data)
        ours = np.stack([coupler.actuator_positions(robot, q), coupler.actuator_velocities(robot, q, v)])
        theirs = np.stack([peer.data.actuator_length[numbers], peer.data.actuator_velocity[numbers]])
        ours[0, still] = 0.0
        np.testing.assert_allclose(ours, theirs, atol=1e-13 * np.abs(theirs).max())


@pytest.mark.filterwarnings("ignore:.*which reserves its name")
@pytest.mark.parametrize("suffix", [".xml", ".urdf", ".sdf"])
def test_saved_and_loaded_they_are_the_same(path: Path, tmp_path: Path, suffix: str) -> None:
    robot = coupler.load(path)
    saved = coupler.load(robot.save(tmp_path / f"saved{suffix}"))
    assert saved.actuator_names == robot.actuator_names
    for seed in range(3):
        q, v = robot.random_state(seed)
        positions, velocities = robot.joint_positions(q), robot.joint_velocities(q, v)
        other = saved.pack_q(positions), saved.pack_v(velocities)
        np.testing.assert_allclose(
            coupler.actuator_velocities(saved, *other), coupler.actuator_velocities(robot, q, v), atol=1e-12
        )
        own = [a for a, x in enumerate(robot.actuators) if x.along is not None and x.along.has_position]
        ours, theirs = (r.with_actuators(r.actuators[a] for a in own) for r in (robot, saved))
        np.testing.assert_allclose(
            coupler.actuator_positions(theirs, other[0]), coupler.actuator_positions(ours, q), atol=1e-12
        )


def test_motion_is_that_of_mujoco(path: Path) -> None:
    """Servos, a damper and motors against MuJoCo's own steps, shorter ones."""
    lines = [line for line in ACTUATORS.splitlines() if not any(word in line for word in ("fly", "lift", "both"))]
    text = ROBOT.format("\n".join(lines)).replace('integrator="implicitfast"', 'integrator="RK4" timestep="2e-4"')
    path.write_text(text)
    robot, peer = coupler.load(path), Peer(path)
    ctrl = np.array([0.5, 1.5, 1.0, 0.2, -0.4, 1.7, 0.3, -0.5, 0.2, 0.1, 0.4, 0.2, 0.1])
    controls = controlled(robot, peer, ctrl)
    with pytest.warns(ModelWarning, match="can touch nothing"):
        simulation = coupler.Simulation(robot, 5e-4, contacts=())
    for _ in range(400):
        simulation.step(motors=controls)
    peer.move(robot, robot.neutral(), np.zeros(robot.nv))
    peer.data.ctrl[:] = ctrl
    for _ in range(1000):
        peer._mujoco.mj_step(peer.model, peer.data)
    ours = robot.joint_positions(simulation.q)
    for i, name in enumerate("ab"):
        assert float(ours[name]) == pytest.approx(float(peer.data.qpos[i]), abs=2e-5)


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
@pytest.mark.parametrize("sided", [False, True])
def test_a_cable_runs_around_shapes_as_in_mujoco(kind: str, sided: bool, tmp_path: Path) -> None:
    """Where the straight way is blocked, or the side is not given. Elsewhere a side means more to us; see docs."""
    mujoco: Any = pytest.importorskip("mujoco")
    rng, wrapped = np.random.default_rng(0), 0
    side = '<site name="side" pos="0.1 0.9 0.2"/>' if sided else ""
    path = tmp_path / "cable.xml"
    path.write_text(
        f"""<mujoco><worldbody><body name="drum"><joint name="turn" type="ball"/>{side}
        <geom name="drum" type="{kind}" size="0.3 1" pos="0.05 0.02 0.1" euler="20 30 40" contype="0"/></body>
        <body name="a"><freejoint name="a"/><geom size="0.1" contype="0"/><site name="a" pos="0.1 0.2 0.3"/></body>
        <body name="b"><freejoint name="b"/><geom size="0.1" contype="0"/><site name="b"/></body></worldbody>
        <tendon><spatial name="t"><site site="a"/><geom geom="drum" {'sidesite="side"' if sided else ""}/>
        <site site="b"/></spatial></tendon><actuator><motor tendon="t"/></actuator></mujoco>"""
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = coupler.load(path)
        saved = [coupler.load(robot.save(tmp_path / f"saved{suffix}")) for suffix in (".xml", ".urdf", ".sdf")]
    peer = Peer(path)
    for seed in range(60):
        q, v = robot.random_state(seed)
        ends = {name: np.append(rng.normal(size=3), [1.0, 0, 0, 0]) for name in "ab"}
        q = robot.pack_q(robot.joint_positions(q) | ends)
        peer.move(robot, q, v)
        mujoco.mj_forward(peer.model, peer.data)
        first, centre, second = peer.data.site("a").xpos, peer.data.geom(0).xpos.reshape(3), ends["b"][:3]
        gap, axis = second - first, peer.data.geom(0).xmat.reshape(3, 3)[:, 2] * (kind == "cylinder")
        flat = [x - (x @ axis) * axis for x in (first - centre, gap)]
        nearest = flat[0] + np.clip(-(flat[0] @ flat[1]) / (flat[1] @ flat[1]), 0.0, 1.0) * flat[1]
        if sided and np.linalg.norm(nearest) > 0.3:
            continue
        length, speed = coupler.actuator_positions(robot, q)[0], coupler.actuator_velocities(robot, q, v)[0]
        assert length == pytest.approx(peer.data.ten_length[0], abs=1e-13)
        for other in saved:
            lengths = coupler.actuator_positions(other, other.pack_q(robot.joint_positions(q)))
            assert length == pytest.approx(lengths[0], abs=1e-12)
        assert speed == pytest.approx(peer.data.ten_velocity[0], abs=1e-12)
        wrapped += length > np.linalg.norm(gap) + 1e-6
    assert wrapped >= 5
