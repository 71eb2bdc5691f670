"""`coupler check` finds what is suspicious, and only that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler import robots
from coupler.cli import main
from coupler.cli.checks import CHECKS, Finding, examine
from coupler.cli.checks.masses import size_of
from coupler.mechanisms import linear
from coupler.model import Fixed, Prismatic, Revolute, Robot, RobotBuilder, Rod, Spherical
from coupler.rotation import about_z

Y = (0.0, 1.0, 0.0)


def found(robot: Robot, check: str) -> list[Finding]:
    """What one check finds."""
    assert check in {function.__name__ for function in CHECKS}
    return [finding for name, finding in examine(robot) if name == check]


def arm(*, gravity: Any = (0, 0, -9.81), kind: Callable[..., Any] = Revolute, **last: Any) -> RobotBuilder:
    """Two links of 0.3 m, of which the last can be made suspicious."""
    b = RobotBuilder("arm", gravity=gravity)
    b.body("upper", 1.0, (0, 0, -0.15), (8e-3, 8e-3, 1e-3))
    b.body("lower", **({"mass": 1.0, "centre": (0, 0, -0.15), "inertia": (8e-3, 8e-3, 1e-3)} | last))
    b.joint("shoulder", Revolute(axis=Y), "ground", "upper", (0, 0, 5), actuated=True)
    b.joint("elbow", kind(axis=Y), "upper", "lower", (0, 0, -0.3), actuated=True)
    b.frame("tip", "lower", (0, 0, -0.3))
    return b


def four_bar(crank: float, coupler: float, rocker: float, ground: float, independent: str, **limits: float) -> Robot:
    b = RobotBuilder("four_bar")
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        b.body(name, 1.0, (length / 2, 0, 0), (1e-4, 1e-2, 1e-2))
    for name, parent, child, at in (("a", "ground", "crank", 0.0), ("b", "crank", "coupler", crank)):
        b.joint(
            name, Revolute(axis=Y), parent, child, (at, 0, 0), independent=name == independent, actuated=name == "a"
        )
    b.joint("c", Revolute(axis=Y, **limits), "ground", "rocker", (ground, 0, 0), independent=independent == "c")
    b.loop("tip", Revolute(axis=Y), "coupler", "rocker", at=(coupler, 0, 0), meets=(rocker, 0, 0))
    return b.build()


def rod() -> RobotBuilder:
    """A crank, a rod between two balls and a slider."""
    b = RobotBuilder("rod")
    for name, centre in (("crank", 0.1), ("rod", 0.3), ("slider", 0.0)):
        b.body(name, 1.0, (centre, 0, 0), (1e-3, 1e-2, 1e-2))
    b.joint("turn", Revolute(axis=Y), "ground", "crank", actuated=True)
    b.joint("ball", Spherical(), "crank", "rod", (0.2, 0, 0), start=(np.cos(0.2), 0, np.sin(0.2), 0))
    b.joint("rail", Prismatic(axis=(1, 0, 0)), "ground", "slider", (0.7, 0, 0), actuated=True)
    b.loop("end", Spherical(), "rod", "slider", at=(0.6, 0, 0))
    return b


def test_nothing_is_found_about_a_plain_arm() -> None:
    assert examine(arm().build()) == []


def test_a_robot_that_cannot_move_is_checked_all_the_same() -> None:
    b = RobotBuilder("post")
    b.body("post", 1.0, (0, 0, 1), (1, 1, 0.1))
    b.joint("foot", Fixed(), "ground", "post")
    assert [finding.severity for _, finding in examine(b.build())] == ["note"]  # it has no actuators


def test_the_size_of_a_robot_is_the_way_to_its_tip_wherever_it_stands() -> None:
    assert size_of(arm().build()) == pytest.approx(0.6, abs=1e-12)
    b = RobotBuilder("ball")
    b.body("ball", 2.0, (0, 0, -3), (8, 8, 8))
    b.joint("pivot", Spherical(), "ground", "ball")
    assert size_of(b.build()) == pytest.approx(3.0, abs=1e-12)


def test_inertias_that_no_body_has() -> None:
    (finding,) = found(arm(inertia=(0, 0, 1e-3), ideal=True).build(), "ideal_inertias")
    assert finding.severity == "note" and "'lower'" in finding.what and "'upper'" not in finding.what
    assert not found(arm(ideal=True).build(), "ideal_inertias")


def test_inertias_in_other_units() -> None:
    (finding,) = found(arm(inertia=(8e3, 8e3, 1e3)).build(), "gyration")
    assert finding.severity == "warning"
    assert finding.what == ("body 'lower': its radius of gyration is 89.4 m, on a robot of about 0.6 m")
    assert not found(arm(inertia=(1, 1, 1)).build(), "gyration")


def test_the_inertia_of_a_single_body_in_other_units() -> None:
    b = RobotBuilder("finger")
    b.body("finger", 0.2, (0.05, 0, 0), (20, 200, 200))
    b.joint("knuckle", Revolute(axis=Y), "ground", "finger")
    (finding,) = found(b.build(), "gyration")
    assert "its radius of gyration is 31.6 m, on a robot of about 0.05 m" in finding.what


def test_centres_of_mass_in_other_units() -> None:
    (finding,) = found(arm(centre=(0, 0, -150)).build(), "centres")
    assert finding.severity == "warning" and "'lower': its centre of mass is 150 m from its joint" in finding.what


def test_bodies_without_mass() -> None:
    b = arm(mass=0.0, inertia=(0, 0, 0))
    b.body("hand", 1.0, (0, 0, -0.1), (1e-3, 1e-3, 1e-3))
    b.joint("wrist", Revolute(axis=(1, 0, 0)), "lower", "hand")
    assert [(f.severity, f.what) for f in found(b.build(), "massless")] == [("note", "body 'lower' moves without mass")]
    heavy = arm(mass=0.0, inertia=(0, 0, 0), kind=lambda axis: Revolute(axis=axis, armature=0.1)).build()
    (finding,) = found(heavy, "massless")
    assert finding.severity == "warning" and "'lower' moves, has no mass and carries none" in finding.what


def test_dummy_masses_and_what_they_do_to_the_mass_matrix() -> None:
    robot = arm(mass=1e-14, centre=(0, 0, 0), inertia=(1e-15, 1e-15, 1e-15)).build()
    (finding,) = found(robot, "dummies")
    assert finding.severity == "warning" and "'lower' weighs only 1e-14 kg on a robot of 1 kg" in finding.what
    (finding,) = found(robot, "mass_matrix")
    assert finding.severity == "warning" and "condition number of the mass matrix is 3" in finding.what


def test_a_motion_that_moves_no_mass_at_the_neutral_configuration() -> None:
    b = RobotBuilder("gimbal")
    b.body("ring")
    b.body("point", 1.0, (0, 0, -0.5))
    b.joint("turn", Revolute(axis=(0, 0, 1)), "ground", "ring")
    b.joint("tilt", Revolute(axis=Y), "ring", "point")
    robot = b.build()
    (finding,) = found(robot, "mass_matrix")
    assert finding.severity == "error" and "some motion moves no mass" in finding.what
    (finding,) = found(robot, "warnings")
    assert "nothing resists a motion of joint 'turn'" in finding.what and "armature" in finding.hint
    assert [finding.severity for _, finding in examine(robot)] == ["error", "warning", "note", "note"]


def test_a_singular_start() -> None:
    (finding,) = found(four_bar(0.3, 0.5, 0.3, 0.5, "a"), "warnings")
    assert finding.severity == "warning" and "is singular where its joints start" in finding.what
    assert finding.hint.startswith("start joints elsewhere")


def test_rows_that_follow_from_others_and_a_loop_that_is_open_at_first() -> None:
    robot = four_bar(0.2, 0.5, 0.4, 0.6, "a")
    assert {name: finding.severity for name, finding in examine(robot)} == {"remarks": "note", "open_loops": "note"}
    (finding,) = found(robot, "open_loops")
    assert finding.what == "a loop is open where its joints start: 'tip' by 0.3 m"


def twice(robot: Robot) -> Robot:
    b = RobotBuilder("two")
    for prefix in ("left/", "right/"):
        b.attach(robot, prefix)
    return b.build()


def test_what_is_found_of_several_loops_is_told_once() -> None:
    *_, finding = found(twice(four_bar(0.3, 0.5, 0.3, 0.5, "a")), "warnings")  # after those of the parts
    assert re.fullmatch(
        r"2 loops are singular where their joints start; neutral is elsewhere: "
        r"'left/tip' \(joint 'left/\w' by \S+ rad\), 'right/tip' \(joint 'right/\w' by \S+ rad\)",
        finding.what,
    )
    *_, finding = found(twice(four_bar(0.2, 0.5, 0.4, 0.6, "a", lower=-0.01, upper=0.01)), "warnings")
    assert finding.what == "2 loops were found closed only beyond the limits of joints: 'left/tip', 'right/tip'"
    (finding,) = found(twice(four_bar(0.2, 0.5, 0.4, 0.6, "a")), "open_loops")
    assert finding.what == "2 loops are open where their joints start: 'left/tip' by 0.3 m, 'right/tip' by 0.3 m"


def test_gaps_are_told_in_metres_and_radians() -> None:
    b = RobotBuilder("arms")
    for arm, links in (("a", 3), ("b", 2)):
        for i in range(links):
            b.body(f"{arm}{i}", 1.0, (0.2, 0, 0), (0.01, 0.01, 0.01))
            b.joint(f"{arm}{i}", Revolute(axis=(0, 0, 1)), f"{arm}{i - 1}" if i else "ground", f"{arm}{i}", (0.4, 0, 0))
    b.loop("rail", Prismatic(axis=(1, 0, 0)), "ground", "a2", at=(0, 0.1, 0), turned=about_z(0.3))
    b.loop("stay", Rod(0.6), "ground", "b1")  # which is 0.8 m away
    b.couple("cam", ["b0", "a0"], lambda p: p[:1] - p[1:] - 0.2)
    (finding,) = found(b.build(), "open_loops")
    assert finding.what == (
        "3 loops are open where their joints start: 'rail' by 0.45 m and 0.3 rad, 'stay' by 0.2 m, "
        "'cam' by 0.2 (rad, m, or what its function gives)"
    )


def test_a_coupling_without_a_solution_where_joints_start() -> None:
    b = arm()
    b.couple("root", ["shoulder", "elbow"], lambda y: np.array([y[0], np.sqrt(y[0] - 0.5)]), independent=["shoulder"])
    (finding,) = found(b.build(), "open_loops")
    assert finding.severity == "warning" and "there is no solution" in finding.what


def test_coordinates_that_are_nearly_singular() -> None:
    (finding,) = found(four_bar(3e-3, 1.0, 1.0, 1.0, "c"), "singular_loops")
    assert finding.severity == "warning"
    assert "'tip' of joints 'a', 'b', 'c' is nearly singular in the neutral configuration" in finding.what
    assert not found(four_bar(3e-3, 1.0, 1.0, 1.0, "a"), "singular_loops")


def test_idle_freedoms_until_they_are_locked() -> None:
    (finding,) = found(rod().build(), "idle_freedoms")
    assert finding.severity == "warning" and finding.what == "body 'rod' can move alone, at joint 'ball'"
    assert not found(rod().build(lock_idle=True), "idle_freedoms")


def test_several_idle_freedoms_are_one_finding() -> None:
    b = RobotBuilder("pair")
    b.attach(rod().build(), "left/")
    b.attach(rod().build(), "right/")
    (finding,) = found(b.build(), "idle_freedoms")
    told = "2 bodies can move alone: 'left/rod' at joint 'left/ball', 'right/rod' at joint 'right/ball'"
    assert finding.what == told
    assert finding.hint.startswith("lock them with --lock-idle")


def test_motors_that_are_too_many_and_at_dependent_joints() -> None:
    many, dependent = found(rod().build(lock_idle=True), "actuators")
    assert (many.severity, dependent.severity) == ("warning", "note")
    assert many.what == "2 actuators for 1 freedom"
    assert dependent.what.startswith("motors drive joint 'rail', which is not independent")


def test_no_motors_and_no_gravity() -> None:
    b = RobotBuilder("drift", gravity=(0, 0, 0))
    b.body("a", 1.0, (0, 0, -0.1), (1e-2, 1e-2, 1e-2))
    b.joint("j", Revolute(axis=Y), "ground", "a")
    robot = b.build()
    assert [finding.severity for finding in found(robot, "gravity")] == ["note"]
    assert [finding.what for finding in found(robot, "actuators")] == ["it has no actuators"]


def test_limits_that_exclude_the_neutral_position() -> None:
    robot = four_bar(0.2, 0.5, 0.4, 0.6, "a", lower=-0.1, upper=0.1)
    (finding,) = found(robot, "limits")
    assert finding.severity == "warning" and "joint 'c': its neutral position" in finding.what
    assert any("beyond the limits" in finding.what for finding in found(robot, "warnings"))


def test_limits_that_leave_nothing() -> None:
    stuck = arm(kind=lambda axis: Revolute(axis=axis, lower=0.0, upper=0.0, effort_limit=0.0)).build()
    (finding,) = found(stuck, "limits")
    assert finding.what == "joint 'elbow': both its limits are 0"
    (finding,) = found(stuck, "motors_without_effect")
    assert finding.what == "the effort limit of joint 'elbow' is zero"


def test_whatever_was_warned_of_is_found() -> None:
    robot = replace(arm().build(), warnings=("3 <camera> are not modelled",))
    (finding,) = found(robot, "warnings")
    assert (finding.severity, finding.what) == ("warning", "3 <camera> are not modelled")


@pytest.mark.parametrize("name", [name for name in robots.names() if name != "rh5_manus"])
def test_bundled_robots_are_not_suspicious(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", name]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"{name}: ") and "error" not in first and "warning" not in first


def test_rh5_manus_is_as_its_authors_published_it() -> None:
    """Wrists of next to no mass, and actuators whose lengths depend on the angles that the paper computes with."""
    robot = robots.load("rh5_manus")
    (wrists,), (actuators,) = found(robot, "dummies"), found(robot, "actuators")
    assert "'ALWristRoll_Link', 'ARWristRoll_Link' weigh only 2e-05 kg" in wrists.what
    assert "'BodyActL', 'BodyActR', 'ALElbowAct', 'ARElbowAct', which are not independent" in actuators.what
    assert main(["check", "rh5_manus"]) == 1


URDF = """
<robot name="pair">
  <link name="base"/>
  <link name="upper">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="lower">{inertial}</link>
  <joint name="one" type="continuous" actuated="true"><parent link="base"/><child link="upper"/></joint>
  <joint name="two" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="1 0 0"/></joint>
</robot>
"""


def inertial(mass: float, moments: tuple[float, float, float]) -> str:
    ixx, iyy, izz = moments
    return (
        f'<inertial><mass value="{mass}"/>'
        f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def test_exit_statuses_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pair.urdf"
    path.write_text(URDF.format(inertial=inertial(1, (1, 1, 1))))
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == "pair: nothing to report\n"
    path.write_text(URDF.format(inertial=inertial(1, (1000, 1000, 1000))))
    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("pair: 1 warning\n\nwarning: body 'lower': its radius of gyration is")
    assert "\n  → inertias are in kg m²" in out and max(map(len, out.splitlines())) <= 100
    path.write_text(URDF.format(inertial=inertial(-1, (1, 1, 1))))
    assert main(["check", str(path)]) == 2
    captured = capsys.readouterr()
    assert not captured.out and captured.err.startswith("coupler: ") and "lower" in captured.err
    assert main(["check", str(tmp_path / "nothing.urdf")]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pair.urdf"
    path.write_text(URDF.format(inertial=inertial(1, (1000, 1000, 1000))))
    assert main(["check", str(path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["name", "suspicious", "findings"]
    assert (told["name"], told["suspicious"]) == ("pair", True)
    assert [list(finding) for finding in told["findings"]] == [["check", "severity", "what", "hint"]]
    assert told["findings"][0]["check"] == "gyration"


def test_couplings_are_checked_as_loops_are() -> None:
    b = arm()
    b.couple("belt", ["shoulder", "elbow"], linear([[1.0], [2.0]]), ["shoulder"])
    assert {name for name, _ in examine(b.build())} == {"actuators"}  # two motors for one freedom
