"""`coupler info` describes a robot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coupler import robots
from coupler.cli import main

BAR = """
<robot name="bar">
  <link name="rail"/>
  <link name="bar">
    <inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="bar.stl"/></geometry></visual>
    <collision><geometry><box size="1 1 1"/></geometry></collision>
  </link>
  <joint name="slide" type="prismatic" actuated="true">
    <parent link="rail"/><child link="bar"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/>
  </joint>
</robot>
"""

KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "mass": float,
    "gravity": list,
    "positions": int,
    "freedoms": int,
    "bodies": list,
    "joints": list,
    "independent": list,
    "actuated": list,
    "actuators": list,
    "clusters": list,
    "loops": list,
    "couplings": list,
    "springs": list,
    "frames": list,
    "keyframes": list,
    "shapes": dict,
    "notes": list,
    "warnings": list,
}


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["info", *arguments]) == 0
    captured = capsys.readouterr()
    assert not captured.err
    return captured.out


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(told(capsys, *arguments, "--json"))


@pytest.fixture
def bar(tmp_path: Path) -> str:
    path = tmp_path / "bar.urdf"
    path.write_text(BAR)
    return str(path)


@pytest.mark.parametrize("name", robots.names())
def test_bundled_robots_in_words_fit_a_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, name)
    assert text.startswith(f"{name}: ")
    assert max(map(len, text.splitlines())) <= 100


def test_a_loop_is_told_with_its_kind_and_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "planar_leg_linkage")
    assert "\n1 loop, closed at neutral to " in text
    assert "\n  linkage  revolute, foot to shank_support\n" in text
    assert "\nnotes\n- 3 of the 5 rows of 'linkage' follow from the others\n" in text
    assert "\nindependent  thigh_joint, shank_driver_joint\n" in text


def test_long_branches_are_broken_inside_their_tree(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "tello").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("   ├─ 2: "))
    assert lines[first + 1] == "   │     torso-to-left-hip-clamp (revolute)"


@pytest.mark.parametrize("name", robots.names())
def test_json_has_the_documented_keys(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    about = data(capsys, name)
    assert list(about) == list(KEYS)
    assert all(isinstance(about[key], kind) for key, kind in KEYS.items())
    page = (Path(__file__).parents[3] / "docs" / "command_line.md").read_text()
    assert all(f"`{key}`" in page for key in KEYS)


def test_json_of_a_robot_with_gears_and_one_with_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    about, robot = data(capsys, "mini_cheetah"), robots.load("mini_cheetah")
    assert about["mass"] == robot.mass and about["gravity"] == [0.0, 0.0, -9.81]
    assert (about["positions"], about["freedoms"]) == (robot.nq, robot.nv)
    assert [body["name"] for body in about["bodies"]] == robot.body_names
    assert about["independent"] == robot.independent_joints and about["actuated"] == robot.actuated_joints
    assert about["clusters"][1] == {
        "parent": 1,
        "bodies": ["HR_abad_link", "HR_abad_rotor"],
        "joints": ["HR_abad_link_joint", "HR_abad_rotor_joint"],
    }
    assert about["couplings"][0]["name"] == "HR_abad" and about["couplings"][0]["error"] == 0.0
    (loop,) = data(capsys, "planar_leg_linkage")["loops"]
    assert loop.pop("error") < 1e-12
    assert loop == {"name": "linkage", "kind": "revolute", "predecessor": "foot", "successor": "shank_support"}


def test_a_file_with_a_missing_mesh_is_told_without_a_python_warning(
    bar: str, capsys: pytest.CaptureFixture[str]
) -> None:
    about = data(capsys, bar)
    assert about["name"] == "bar" and about["actuated"] == ["slide"]
    assert [actuator["name"] for actuator in about["actuators"]] == ["slide"]
    assert about["shapes"] == {"count": 2, "visible": 1, "touching": 1}
    assert len(about["warnings"]) == 1 and "bar.stl" in about["warnings"][0]
    text = told(capsys, bar)
    assert "\nbodies       2, 1 without mass\n" in text
    assert "\nshapes       2: 1 visible, 1 for contact\n" in text
    assert "\nwarnings\n- " in text and "bar.stl" in text


def test_a_base_can_float(bar: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert data(capsys, bar)["freedoms"] == 1
    inertial = BAR[BAR.index("<inertial>") : BAR.index("<visual>")]
    Path(bar).write_text(BAR.replace('<link name="rail"/>', f'<link name="rail">{inertial}</link>'))
    assert data(capsys, bar, "--floating")["freedoms"] == 7


def test_closures_are_read_from_a_file_or_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turn = '<axis xyz="0 1 0"/></joint>'
    inertial = '<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="{name}">{inertial}</link>' for name in ("base", "crank", "coupler", "rocker"))
    ends = "".join(
        f'<link name="{name}"/><joint name="{name}_fix" type="fixed"><parent link="{body}"/><child link="{name}"/>'
        f'<origin xyz="{at} 0 0"/></joint>'
        for name, body, at in (("one", "coupler", 0.5), ("two", "rocker", 0.4))
    )
    joints = "".join(
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at} 0 0"/>{turn}'
        for name, parent, child, at in (
            ("a", "base", "crank", 0.0),
            ("b", "crank", "coupler", 0.2),
            ("c", "base", "rocker", 0.6),
        )
    )
    robot, closures = tmp_path / "four.urdf", tmp_path / "closures.yaml"
    robot.write_text(f'<robot name="four">{links}{ends}{joints}</robot>')
    closures.write_text("closed_loop: [[one, two]]\ntype: ['3d']\n")
    assert data(capsys, str(robot))["freedoms"] == 3
    about = data(capsys, str(robot), "--closures", str(closures))
    assert (about["freedoms"], len(about["loops"])) == (1, 1)
    closures.rename(robot.with_suffix(".yaml"))
    assert data(capsys, str(robot))["freedoms"] == 1
    assert data(capsys, str(robot), "--closures", "none")["freedoms"] == 3


def test_macros_are_expanded_with_trust_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xacrodoc", reason="xacrodoc expands xacro files, and is not installed")
    inertial = '<inertial><mass value="${1 + 1}"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    path = tmp_path / "arm.xacro"
    space = "http://www.ros.org/wiki/xacro"
    path.write_text(f'<robot name="arm" xmlns:xacro="{space}"><link name="a">{inertial}</link></robot>')
    assert main(["info", str(path)]) == 1
    assert "--trust" in capsys.readouterr().err
    assert main(["info", str(path), "--trust"]) == 0
    assert "2 kg" in capsys.readouterr().out


def test_a_log_is_no_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.clog"
    path.write_bytes(b"coupler log 1\n")
    assert main(["info", str(path)]) == 1
    assert f"it is a log, not a robot; `coupler log {path}` describes it" in capsys.readouterr().err
