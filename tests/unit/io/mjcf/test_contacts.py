"""Contacts of MJCF: which geoms touch and with what friction, against MuJoCo and against the motion on a slope."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.contact.pairs import pairs_of
from coupler.model import ContactPair, ModelError, ModelWarning, Robot, RobotBuilder, Sphere

mujoco: Any = pytest.importorskip("mujoco", "4.0", reason="MuJoCo 4 is not installed (pip install 'mujoco>=4')")

SLOPE = 0.5  # rad
NOTHING = 'contype="0" conaffinity="0"'
PAIR = '<pair geom1="floor" geom2="box" friction="0.3 0.3 0.01 0.002 0.002" condim="{}"/>'


def scene(folder: Path, pair: str = "", floor: str = "", box: str = "") -> Path:
    """A box on a slope."""
    path = folder / "slope.xml"
    path.write_text(
        f"""<mujoco><option gravity="{9.81 * np.sin(SLOPE)} 0 {-9.81 * np.cos(SLOPE)}"/><worldbody>
        <geom name="floor" type="plane" size="1 1 1" {floor}/>
        <body name="box" pos="0 0 0.1"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.1" {box}/></body>
        </worldbody><contact>{pair}</contact></mujoco>"""
    )
    return path


def slides(robot: Robot) -> float:
    """The coefficient of friction with which a box slides down the slope."""
    simulation = coupler.Simulation(robot)
    simulation.run(0.1)
    return np.tan(SLOPE) - float(simulation.v[3]) / 0.1 / (9.81 * np.cos(SLOPE))


def peers(path: Path) -> tuple[float, int]:
    """The coefficient and the condim of MuJoCo's contacts."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    condim = int(data.contact.dim[0])
    return float(data.contact.friction[0, 0]) if condim > 1 else 0.0, condim


@pytest.mark.parametrize(
    ("pair", "floor", "box"),
    [
        (PAIR.format(3), NOTHING, NOTHING),
        (PAIR.format(1), "", ""),
        (PAIR.format(6), "", ""),
        ("", 'friction="1"', 'friction="0.2" priority="1"'),
        ("", 'friction="0.1" priority="2"', 'friction="0.2" priority="1"'),
        ("", 'condim="1"', 'condim="1"'),
        ("", 'condim="1" friction="0.1"', 'friction="0.25"'),
    ],
)
def test_friction_is_that_of_mujoco(pair: str, floor: str, box: str, tmp_path: Path) -> None:
    path = scene(tmp_path, pair, floor, box)
    robot, (friction, _) = coupler.load(path), peers(path)
    assert not robot.warnings
    assert slides(robot) == pytest.approx(friction, abs=1e-9)


TURNING = [
    ("", 'condim="4" friction="1 0.02"'),
    ("", 'condim="6" friction="1 0.02 0.003"'),
    ('condim="4" friction="0.5 0.03"', 'condim="6" friction="0.4 0.02 0.003"'),
    ('condim="6" friction="0.5 0.03 0.004" priority="1"', 'condim="4" friction="0.4 0.05"'),
    ('priority="1"', 'condim="6" friction="0.4 0.05 0.01"'),
]


@pytest.mark.parametrize(("floor", "box"), TURNING)
def test_friction_against_spin_and_rolling_is_that_of_mujoco(floor: str, box: str, tmp_path: Path) -> None:
    path = scene(tmp_path, "", floor, box)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    condim, (slide, _, spin, roll, _) = int(data.contact.dim[0]), data.contact.friction[0]
    robot = coupler.load(path)
    (pair,) = pairs_of(robot)
    assert not robot.warnings
    assert pair.friction == slide
    assert (pair.torsion, pair.rolling) == (spin if condim > 3 else None, roll if condim > 4 else None)


@pytest.mark.parametrize(("floor", "box"), TURNING)
@pytest.mark.parametrize("suffix", [".xml", ".urdf", ".sdf"])
def test_friction_against_spin_and_rolling_is_saved(floor: str, box: str, suffix: str, tmp_path: Path) -> None:
    robot = coupler.load(scene(tmp_path, "", floor, box))
    saved = coupler.load(robot.save(tmp_path / f"saved{suffix}"))
    assert not saved.warnings
    for own, other in zip(robot.shapes, saved.shapes, strict=True):
        assert (own.friction, own.torsion, own.rolling) == (other.friction, other.torsion, other.rolling)


@pytest.mark.parametrize(("integrator", "error"), [("midpoint", 1e-6), ("rk4", 2e-5)])
def test_a_ball_rolls_out_as_its_file_says(integrator: str, error: float, tmp_path: Path) -> None:
    """A ball that rolls without sliding is slowed by ρ g / (1 + 2/5) / r; ρ = 0, as an option, lets it roll on."""
    path = tmp_path / "ball.xml"
    path.write_text(
        """<mujoco><worldbody><geom name="floor" type="plane" size="9 9 1"/><body pos="0 0 0.1"><freejoint/>
        <geom name="ball" size="0.1" mass="1" condim="6" friction="1 0.005 0.002"/></body></worldbody></mujoco>"""
    )
    robot = coupler.load(path)
    for rolling, slower in ((None, 0.002 * 9.81 / 1.4 / 0.1), (0.0, 0.0)):
        simulation = coupler.Simulation(robot, v=[0, 10.0, 0, 1.0, 0, 0], rolling=rolling, integrator=integrator)
        simulation.run(0.5)
        pose = coupler.frame_velocity(robot, simulation.q, simulation.v, robot.body_names[-1])
        assert np.linalg.norm(pose[3:]) == pytest.approx(1.0 - 0.5 * slower, abs=error)


@pytest.mark.parametrize("condim", [3, 4, 6])
@pytest.mark.parametrize("suffix", [".xml", ".urdf", ".sdf"])
def test_pairs_and_priorities_are_saved(condim: int, suffix: str, tmp_path: Path) -> None:
    robot = coupler.load(scene(tmp_path, PAIR.format(condim), NOTHING, 'priority="3"'))
    torsion, rolling = 0.01 if condim > 3 else None, 0.002 if condim > 4 else None
    assert robot.contact_pairs == (ContactPair("floor", "box", 0.3, torsion, rolling),)
    saved = coupler.load(robot.save(tmp_path / f"saved{suffix}"))
    assert saved.contact_pairs == robot.contact_pairs
    assert {shape.name: shape.priority for shape in saved.shapes} == {"floor": 0, "box": 3}


def test_a_pair_touches_where_joints_and_exclusions_say_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(
        """<mujoco><worldbody><body name="a"><joint range="-1 1"/><geom name="one" size="0.1"/>
        <body name="b" pos="0 0 0.1"><joint axis="0 1 0" range="-1 1"/><geom name="two" size="0.1"/></body></body>
        </worldbody><contact><exclude body1="a" body2="b"/><pair geom1="one" geom2="two"/></contact></mujoco>"""
    )
    robot = coupler.load(path)
    (pair,) = pairs_of(robot)
    assert (pair.name, pair.listed, pair.friction) == ("one on two", True, 1.0)
    with pytest.warns(ModelWarning, match="overlaps at the start in 1 contact, one on two"):
        assert coupler.Simulation(robot).left_out == {}
    two = RobotBuilder("two")
    two.attach(robot, prefix="left/")
    two.attach(robot, prefix="right/", at=(1.0, 0.0, 0.0))
    assert [own.first for own in two.build().contact_pairs] == ["left/one", "right/one"]


@pytest.mark.parametrize(
    ("pair", "box", "told"),
    [
        ('<pair geom1="floor" geom2="box" friction="0.3 0.4"/>', "", "1 contact pair with different friction along"),
        (
            "",
            'condim="4" friction="1 0.001"',
            "friction against spin of 1 geom with a condim below 4 where others have",
        ),
        ("", 'condim="1" friction="2"', "friction of 1 geom with a condim below 3 where others have 3 or more"),
    ],
)
def test_friction_that_is_lost_is_told(pair: str, box: str, told: str, tmp_path: Path) -> None:
    with pytest.warns(ModelWarning, match=told):
        coupler.load(scene(tmp_path, pair, "", box))


def test_the_friction_of_a_pair_is_a_parameter(tmp_path: Path) -> None:
    robot = coupler.load(scene(tmp_path, PAIR.format(3)))
    assert slides(robot.with_parameters({"friction:floor on box": 0.1})) == pytest.approx(0.1, abs=1e-9)
    both = {"friction:floor": 0.4, "friction:floor on box": 0.2}
    assert slides(robot.with_parameters(both)) == pytest.approx(0.2, abs=1e-9)
    with pytest.raises(
        ModelError, match="has a friction of its own, which this would not change; give 'friction:floor"
    ):
        robot.with_parameters({"friction:floor": 0.1})


def test_a_pair_needs_two_shapes_by_name() -> None:
    b = RobotBuilder("scene")
    b.shape("ground", Sphere(1.0), name="ball")
    b.contact_pair("ball", "bat", 0.5)
    with pytest.raises(ModelError, match="there are 0 shapes called 'bat'"):
        b.build()
    with pytest.raises(ModelError, match="cannot touch itself"):
        b.contact_pair("ball", "ball", 0.5)
    with pytest.raises(ModelError, match="its friction"):
        b.contact_pair("ball", "bat", -0.5)
