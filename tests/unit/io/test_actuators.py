"""Actuators in files: transmissions of URDF, and what is written and read again in each format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.model import Actuator, ModelWarning, Prismatic, Revolute, Robot, RobotBuilder, Spherical, Universal

LINKS = '<link name="base"/>' + "".join(
    f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    "</inertial></link>"
    for name in ("one", "two")
)
LIMIT = '<limit lower="-1" upper="1" effort="6" velocity="3"/>'
JOINTS = (
    f'<joint name="a" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 1 0"/>{LIMIT}</joint>'
    f'<joint name="b" type="revolute"><parent link="one"/><child link="two"/><axis xyz="0 1 0"/>{LIMIT}</joint>'
)


def loaded(tmp_path: Path, rest: str) -> Robot:
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="robot">{LINKS}{JOINTS}{rest}</robot>')
    return coupler.load(path)


def gears(robot: Robot) -> dict[str, dict[str, float]]:
    return {actuator.name: dict(actuator.gears) for actuator in robot.actuators}


def transmission(kind: str, joints: str, actuators: str) -> str:
    word = f"transmission_interface/{kind}Transmission"
    return f'<transmission name="t"><type>{word}</type>{joints}{actuators}</transmission>'


def motor(name: str, reduction: float = 1.0, role: str = "") -> str:
    role = f"<role>{role}</role>" if role else ""
    return f'<actuator name="{name}">{role}<mechanicalReduction>{reduction}</mechanicalReduction></actuator>'


def test_a_simple_transmission_is_a_motor_behind_its_reduction(tmp_path: Path) -> None:
    robot = loaded(tmp_path, transmission("Simple", '<joint name="a"/>', motor("m", -4)))
    assert gears(robot) == {"m": {"a": -4.0}}
    assert robot.actuators[0].effort == (-1.5, 1.5)
    assert robot.actuators[0].speed == 12.0
    assert robot.actuated_joints == ["a"]
    assert not robot.warnings


def test_two_joints_share_two_motors(tmp_path: Path) -> None:
    joints = '<joint name="a"><role>joint1</role><mechanicalReduction>2</mechanicalReduction></joint>'
    joints += '<joint name="b"><role>joint2</role><mechanicalReduction>3</mechanicalReduction></joint>'
    motors = motor("right", 5, "actuator2") + motor("left", 10, "actuator1")
    robot = loaded(tmp_path, transmission("Differential", joints, motors))
    assert gears(robot) == {"left": {"a": 20.0, "b": 30.0}, "right": {"a": 10.0, "b": -15.0}}
    robot = loaded(tmp_path, transmission("FourBarLinkage", joints, motors))
    assert gears(robot) == {"left": {"a": 20.0}, "right": {"a": 5.0, "b": 15.0}}
    assert not robot.warnings


def test_what_is_no_known_transmission_marks_its_joints(tmp_path: Path) -> None:
    robot = loaded(tmp_path, transmission("Strange", '<joint name="a"/><joint name="b"/>', motor("m", 7)))
    assert gears(robot) == {"a": {"a": 1.0}, "b": {"b": 1.0}}
    again = transmission("Simple", '<joint name="a"/>', motor("m")) + transmission(
        "Simple", '<joint name="b"/>', motor("m")
    ).replace('name="t"', 'name="u"')
    assert gears(loaded(tmp_path, again)) == {"m": {"a": 1.0}, "m_": {"b": 1.0}}


def test_actuators_of_our_own_in_a_urdf(tmp_path: Path) -> None:
    robot = loaded(
        tmp_path,
        '<actuator name="s" type="position" effort="-1 2" stiffness="20" damping="1" control="-0.5 0.5">'
        '<joint name="a" gear="2"/><joint name="b"/></actuator>',
    )
    (servo,) = robot.actuators
    assert servo == Actuator("s", {"a": 2.0, "b": 1.0}, "position", (-1.0, 2.0), np.inf, 20.0, 1.0, (-0.5, 0.5))
    for rest, message in (
        ('<actuator name="s"><joint name="c"/></actuator>', "no joint 'c'"),
        ('<actuator name="s"/>', "go by names of joints"),
        ('<actuator name="s" type="odd"><joint name="a"/></actuator>', "its kind must be one of .* got 'odd'"),
        ('<actuator name="s" effort="x"><joint name="a"/></actuator>', "its effort must be numbers"),
    ):
        with pytest.raises(coupler.ModelError, match=message):
            loaded(tmp_path, rest)


def driven() -> Robot:
    b = RobotBuilder("driven")
    kinds: dict[str, Any] = {
        "hinge": Revolute(axis=(0, 1, 0), effort_limit=8.0, velocity_limit=9.0),
        "slide": Prismatic(axis=(1, 0, 0), lower=-1, upper=1),
        "wrist": Universal(first=(1, 0, 0), second=(0, 1, 0)),
        "ball": Spherical(),
        "free": Revolute(axis=(0, 0, 1)),
    }
    parent = "ground"
    for name, kind in kinds.items():
        b.body(f"{name}_link", 1.0, (0.1, 0.05, -0.2), (0.1, 0.12, 0.09))
        b.joint(name, kind, parent, f"{name}_link", (0.1, 0, -0.3), actuated=name == "wrist")
        parent = f"{name}_link"
    b.actuator("motor", {"hinge": -3.0}, control=2.0, effort=2.0)
    b.actuator("sum", {"hinge": 1.0, "slide": 0.5}, "position", stiffness=10.0, damping=1.0, effort=(-1.0, 3.0))
    b.actuator("spin", "slide", "velocity", damping=2.0, control=(-1.0, np.inf))
    b.actuator("brake", {"hinge": 2.0}, "damper", damping=0.5, control=(0.0, 4.0))
    b.actuator("turn", {"ball": (1.0, 0.0, -2.0)}, effort=5.0)
    return b.build()


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml"])
def test_what_is_saved_is_loaded_again(suffix: str, tmp_path: Path) -> None:
    if suffix == "xml":
        pytest.importorskip("mujoco")
    robot = driven()
    path = tmp_path / f"robot.{suffix}"
    if suffix == "xml":
        with pytest.warns(ModelWarning, match="velocity limit"):
            robot.save(path)
    else:
        robot.save(path)
    if suffix == "xml":
        with pytest.warns(ModelWarning, match="1 actfrcrange of several actuators"):
            again = coupler.load(path)
    else:
        again = coupler.load(path)
    assert again.actuator_names == robot.actuator_names
    for one, other in zip(robot.actuators, again.actuators, strict=True):
        assert (one.kind, one.stiffness, one.damping) == (other.kind, other.stiffness, other.damping)
        if suffix != "xml":
            assert one == other
        else:
            assert one.effort == other.effort
    q, v = robot.random_state(0)
    if suffix != "xml":  # which has a joint for each axis
        f = np.random.default_rng(0).normal(size=len(robot.actuators))
        np.testing.assert_allclose(
            coupler.generalized_forces(again, q, f), coupler.generalized_forces(robot, q, f), atol=1e-12
        )
    assert len(v) == again.nv


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
def test_marks_alone_say_what_motors_of_joints_are(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"robot.{suffix}"
    coupler.robots.load("mini_cheetah").save(path)
    text = path.read_text()
    assert "actuator" not in text
    assert len(coupler.load(path).actuators) == 12


def test_speed_limits_of_actuators_are_not_in_mjcf(tmp_path: Path) -> None:
    robot = driven().with_actuators([Actuator("fast", "slide", speed=2.0)])
    with pytest.warns(ModelWarning, match="1 speed limit of an actuator"):
        robot.save(tmp_path / "robot.xml")
