"""Robots from tables: CHARMIE in every format, small mechanisms, units, and rows that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from charmie_tables import charmie_tables, published_tables, save_tables
from coupler.io.tables.units import heading
from coupler.model import ModelError, ModelWarning, Revolute, Robot
from coupler.rotation import about_x, about_y, about_z
from effort import sweep
from models_folder import ABSENT, FOLDER

LID: dict[str, Any] = {
    "bodies": [["body", "mass (kg)", "x (mm)", "Ixx (kg mm^2)", "Iyy (kg mm^2)", "Izz (kg mm^2)"]],
    "points": [["body", "point", "x (mm)", "y (mm)", "z (mm)"], ["ground", "foot", 100, 0, -300]],
    "joints": [["body", "type", "axis", "parent", "damping"], ["lid", "R", "-y", "ground", 0.2]],
    "struts": [["strut", "from", "to", "axis", "actuated"], ["lift", "ground.foot", "lid.pin", "y", "yes"]],
}
LID["bodies"].append(["lid", 4, 300, 20000, 120000, 140000])
LID["points"].append(["lid", "pin", 400, 0, 0])


def loaded(tables: dict[str, Any], folder: Path, suffix: str = ".json", **options: Any) -> Robot:
    return coupler.load(save_tables(tables, folder, suffix), **options)


def changed(table: str, row: int, cell: int, value: Any) -> dict[str, Any]:
    """The lid with another cell in a row, of which the first has the headings."""
    tables = json.loads(json.dumps(LID))
    tables[table][row][cell] = value
    return tables


@pytest.mark.parametrize("suffix", sweep([".yaml", ".json", ".csv"], [".csv"]))
def test_charmie_from_tables_is_the_bundled_robot(suffix: str, tmp_path: Path) -> None:
    robot, bundled = loaded(charmie_tables(), tmp_path, suffix, closure="analytical"), coupler.robots.load("charmie")
    assert robot.body_names != bundled.body_names and sorted(robot.body_names) == sorted(bundled.body_names)
    assert robot.independent_joints == bundled.independent_joints and len(robot.loops) == 7
    assert robot.mass == pytest.approx(62.4) and robot.actuator_names == bundled.actuator_names
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-0.1, 0.05, (3, 21))
    expected = coupler.inverse_dynamics(bundled, q, v, a)
    found = coupler.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    at, there = (coupler.frame_pose(own, q, "12a.D") for own in (robot, bundled))
    np.testing.assert_allclose(at, there, rtol=0, atol=1e-14)


@pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
def test_tables_that_others_read_from_the_paper(tmp_path: Path) -> None:
    """Main bodies alone; what coupler has of them is the same. What is misprinted is refused first."""
    file = FOLDER / "charmie" / "charmie_tables.json"
    with pytest.raises(
        ModelError, match=r"row 3 \(3\): .* none can be negative; the nearest that a body can have: Ixx"
    ):
        coupler.load(file)
    robot = loaded(published_tables(file), tmp_path)
    assert robot.name == "CHARMIE" and "5.G" in robot.frame_names
    bundled = coupler.robots.load("charmie")
    assert (len(robot.bodies), robot.nv) == (26, 23) and robot.mass == pytest.approx(62.4)
    for name, body in robot.bodies.items():
        own = bundled.bodies[name]
        np.testing.assert_allclose(body.inertia, own.inertia, rtol=1e-12, atol=1e-18)
        np.testing.assert_allclose(body.centre, own.centre, rtol=1e-12)
    q = robot.pack_q({"4": -0.05, "5": -0.2, "8a": 0.4, "13a1": 0.1, "13a2": -0.1})
    poses = coupler.body_poses(robot, q), coupler.body_poses(bundled, bundled.pack_q(robot.joint_positions(q)))
    for i, name in enumerate(robot.body_names):
        np.testing.assert_allclose(poses[0][i], poses[1][bundled.body_names.index(name)], rtol=0, atol=1e-12)


def written_out(**changes: Any) -> dict[str, Any]:
    """A tree that is written out body by body: a lid that is turned on a table."""
    inertia = {"Ixx": 0.02, "Iyy": 0.12, "Izz": 0.14}
    place = {"placement_in_parent_m": [0, 0, 0.7], "com_in_body_origin_m": [0.3, 0, 0]}
    turned = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]  # about z, by a quarter
    lid = {"name": "lid", "parent": "world", "joint_type": "revolute", "axis": [0, -1, 0], "mass_kg": 4.0} | place
    lid |= {"inertia_about_com_kgm2": inertia, "fixed_rotation_parent_from_body": turned, "notes": ["heavy"]}
    points = {"pin_lid": [0.4, 0.0, 0.0], "edge": [0.6, 0.0, 0.0]}
    return {"robot": "table", "source": "us", "table1_bodylid_points_m": points, "tree_expanded": [lid | changes]}


def test_a_tree_that_is_written_out(tmp_path: Path) -> None:
    robot = loaded(written_out(), tmp_path)
    assert robot.name == "table" and robot.nv == 1 and robot.frame_names == ["lid.pin", "lid.edge"]
    np.testing.assert_allclose(coupler.frame_pose(robot, [0.0], "lid.edge")[:3, 3], [0.0, 0.6, 0.7], atol=1e-15)
    tau = coupler.inverse_dynamics(robot, [0.0], [0.0], [0.0])
    np.testing.assert_allclose(tau, [4 * 9.81 * 0.3], rtol=1e-12)  # the lid hangs along y, and its axis is −x


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"parent": "shelf"}, "there is no body 'shelf'"),
        ({"placement_in_parent_m": [0, 0]}, r"tree_expanded, row 1: expected the three numbers of a place"),
        ({"fixed_rotation_parent_from_body": [[1, 0, 0], [0, 1, 0], [0, 0, -1]]}, "must be a rotation"),
        ({"fixed_rotation_parent_from_body": [[10**400, 0, 0], [0, 1, 0], [0, 0, 1]]}, "must be a rotation"),
        ({"inertia_about_com_kgm2": [1, 2, 3]}, "its inertia must be a mapping"),
        ({"inertia_about_com_kgm2": {"Ixx": 20000, "Iyy": 120000, "Izz": 140000}}, "mm"),
        ({"joint_type": "hinge"}, "there is no type 'hinge'"),
        ({"axis": [0, 0]}, "axis"),
        ({"mass_kg": "four"}, "is not a number: 'four'"),
    ],
)
def test_mistakes_in_a_tree_that_is_written_out(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=told):
        loaded(written_out(**changes), tmp_path)


@pytest.mark.parametrize("suffix", [".yaml", ".json", ".csv"])
def test_a_lid_on_a_strut(suffix: str, tmp_path: Path) -> None:
    robot = loaded(LID, tmp_path, suffix)
    assert robot.body_names == ["lid", "lift1", "lift2"] and robot.actuator_names == ["lift"]
    assert robot.bodies["lid"].inertia[1, 1] == pytest.approx(0.12)
    length = float(np.hypot(0.3, 0.3))
    assert coupler.actuator_positions(robot, robot.neutral())[0] == pytest.approx(length)
    weight = 4 * 9.81 * 0.3 / (0.4 * 0.3 / length)  # over the strut's lever arm about the hinge
    zero = np.zeros(1)
    assert coupler.motor_forces(robot, robot.neutral(), zero, zero)[0] == pytest.approx(weight)


def test_rows_may_be_mappings_and_have_names_that_are_numbers(tmp_path: Path) -> None:
    tables = {
        "robot": "arm",
        "gravity": [0, 0, -1.62],
        "bodies": [{"body": 1, "mass": 2.0, "x": 0.1, "Ixx": 0.01, "Iyy": 0.02, "Izz": 0.02, "Pxy": 0.001}],
        "joints": [{"joint": "turn", "body": 1, "type": "revolute", "axis": [0, 1, 0], "parent": "ground"}],
    }
    for suffix in (".json", ".yaml"):
        robot = loaded(tables, tmp_path, suffix)
        assert (robot.name, robot.joint_names, robot.body_names) == ("arm", ["turn"], ["1"])
        assert robot.bodies["1"].inertia[0, 1] == -0.001 and robot.gravity[2] == -1.62
    assert loaded(tables, tmp_path, gravity=(0, 0, -3.7)).gravity[2] == -3.7


def test_names_may_have_dots(tmp_path: Path) -> None:
    tables = json.loads(json.dumps(LID).replace('"lid"', '"a.lid"').replace("lid.pin", "a.lid.pin.1"))
    tables["points"][2][1] = "pin.1"
    assert loaded(tables, tmp_path).frame_names == ["a.lid.pin.1"]


def test_properties_of_joints_with_units(tmp_path: Path) -> None:
    tables = changed("joints", 1, 4, 0.2)
    tables["joints"][0] += ["lower (deg)", "upper (deg)", "speed (rpm)", "effort (N m)", "stiffness (N m/deg)", "at"]
    tables["joints"][1] += [-90, 45, 30, 12, np.pi / 180, "base"]
    tables["points"].append(["ground", "base", 0, 0, 0])
    hinge = loaded(tables, tmp_path).joints[0].kind
    assert isinstance(hinge, Revolute)
    assert (hinge.lower[0], hinge.upper[0]) == pytest.approx((-np.pi / 2, np.pi / 4))
    assert (hinge.velocity_limit[0], hinge.effort_limit[0]) == pytest.approx((np.pi, 12.0))
    assert hinge.stiffness[0] == pytest.approx(1.0)


@pytest.mark.parametrize(("order", "expected"), [("ZXZ", "6a"), ("zyx", None)])
def test_euler_angles(order: str, expected: str | None, tmp_path: Path) -> None:
    """Capital letters turn about the turned axes, small ones about fixed ones."""
    tables = json.loads(json.dumps(LID))
    tables["joints"][0] += ["euler", "e1 (deg)", "e2 (deg)", "e3 (deg)"]
    tables["joints"][1] += [order, 90, -90, 180]
    tables.pop("struts")
    robot = loaded(tables, tmp_path)
    pose = coupler.frame_pose(robot, robot.neutral(), "lid")[:3, :3]
    if expected:
        charmie = coupler.robots.load("charmie")
        R = coupler.frame_pose(charmie, np.zeros(21), expected)[:3, :3]
    else:
        R = about_x(np.pi) @ about_y(-np.pi / 2) @ about_z(np.pi / 2)
    np.testing.assert_allclose(pose, R, atol=1e-15)


def test_struts_in_space_and_springs(tmp_path: Path) -> None:
    """Without an axis, a strut has a universal joint and a ball."""
    tables = changed("struts", 1, 3, "")
    tables["points"][1][3] = 50
    tables["struts"][0] += ["stiffness (N/mm)", "free length (mm)", "pretension", "mass 1", "mass 2 (g)"]
    tables["struts"][1] += [2.0, 100, 5.0, 0.3, 200]
    tables["springs"] = [["spring", "from", "to", "stiffness"], ["pull", "ground", "lid.pin", 10.0]]
    robot = loaded(tables, tmp_path)
    assert robot.nv == 1 and robot.mass == pytest.approx(4.5)
    spring = {spring.name: spring for spring in robot.elements}["lift"]
    assert (spring.stiffness, spring.free_length, spring.pretension) == pytest.approx((2000.0, 0.1, 5.0))
    assert {spring.name for spring in robot.elements} == {"lift", "pull"}


def test_numbers_with_points_among_numbers_with_commas_are_refused(tmp_path: Path) -> None:
    """1.500 may be one and a half, or a thousand and a half."""
    (tmp_path / "bodies.csv").write_text("body;mass;x\nlid;1.500;0,3\n", "utf-8")
    with pytest.raises(ModelError, match=r"line 2: 1\.500 has a decimal point, and 0,3 a decimal comma"):
        coupler.load(tmp_path / "bodies.csv")


def test_a_row_that_lacks_a_cell_is_refused(tmp_path: Path) -> None:
    """Without x, the first moment of inertia would be it."""
    (tmp_path / "lid.yaml").write_text("bodies:\n- [body, mass, x, Ixx, Iyy, Izz]\n- [lid, 4, 0.02, 0.12, 0.14]\n")
    with pytest.raises(ModelError, match=r"bodies, row 2 \(lid\): it has 5 cells below 6 headings"):
        coupler.load(tmp_path / "lid.yaml")


def test_spreadsheets_with_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    (tmp_path / "bodies.csv").write_text("\ufeffbody;mass;x;Ixx;Iyy;Izz\nlid;4,5;0,3;0,02;0,12;0,14\n\n", "utf-8")
    (tmp_path / "joints.csv").write_text("body;type;axis;parent\nlid;R;y;ground\n", "utf-8")
    robot = coupler.load(tmp_path / "bodies.csv")
    assert robot.mass == 4.5 and robot.bodies["lid"].inertia[2, 2] == 0.14


@pytest.mark.parametrize(
    ("table", "row", "cell", "value", "told"),
    [
        ("joints", 1, 3, "grund", r"joints, row 2 \(lid\): its 'parent': there is no body 'grund'; there are 'ground'"),
        ("struts", 1, 2, "lit.pin", "its 'to': there is no body 'lit'; a point is written BODY.POINT"),
        ("struts", 1, 2, "lid.pn", "there is no point 'pn' on body 'lid'; there are 'pin'"),
        ("points", 1, 0, "box", r"points, row 2 \(box\): its 'body': there is no body 'box'"),
        ("bodies", 1, 1, "1.87+3", "its 'mass' is not a number: '1.87\\+3'"),
        ("bodies", 1, 1, -4, "mass must be a finite number, 0 or more"),
        ("bodies", 1, 1, True, "its 'mass' is not a number"),
        ("bodies", 1, 1, 1e308, "its 'mass' must be a number below 1e\\+30, got 1e\\+308"),
        ("bodies", 0, 2, "colour", "there is no column 'colour' in bodies\\. There are 'body'"),
        ("joints", 1, 3, "lid", "joints carry bodies in a circle: 'lid' on 'lid'"),
        ("bodies", 0, 1, "mas (kg)", "there is no column 'mas' in bodies; did you mean 'mass'"),
        ("bodies", 0, 1, "mass (mm)", "column 'mass': its unit is 'mm'; it may be 'kg'"),
        ("bodies", 1, 0, "", "its 'body' is missing"),
        ("joints", 1, 1, "hinge", "there is no type 'hinge'; there are 'r', 'revolute'"),
        ("joints", 1, 2, "", "a revolute joint needs an 'axis'"),
        ("joints", 1, 2, "w", "its 'axis' must be x, y, z"),
        ("joints", 1, 1, "F", "a fixed joint has no 'axis'"),
        ("struts", 1, 4, "perhaps", "its 'actuated' must be yes or no, got 'perhaps'"),
        ("struts", 1, 3, "z", "apart along the axis of its pins"),
        ("bodies", 1, 3, 1e6, "exceeds the sum of the other two.*the nearest that a body can have: Ixx = 0.7533"),
        ("bodies", 1, 3, -1e6, "none can be negative.*the nearest that a body can have"),
    ],
)
def test_wrong_rows_are_told(table: str, row: int, cell: int, value: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=told) as error:
        loaded(changed(table, row, cell, value), tmp_path)
    assert str(tmp_path) in str(error.value) and str(error.value).count(str(tmp_path)) == 1


def test_lines_of_csv_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"joints.csv, line 2 \(lid\): its 'parent': there is no body 'grund'"):
        loaded(changed("joints", 1, 3, "grund"), tmp_path, ".csv")


def test_inertias_in_kg_mm2_among_metres_are_detected(tmp_path: Path) -> None:
    tables = json.loads(json.dumps(LID))
    tables["bodies"][0][3:] = ["Ixx", "Iyy", "Izz"]
    with pytest.raises(ModelError, match=r"its units cannot be: with 4 kg and 140000 kg m².*Ixx \(kg mm\^2\)"):
        loaded(tables, tmp_path)


def test_lengths_in_mm_without_a_unit_are_told(tmp_path: Path) -> None:
    tables = json.loads(json.dumps(LID))
    tables["bodies"][0][2], tables["points"][0][2:] = "x", ["x", "y", "z"]
    with pytest.warns(ModelWarning, match="are lengths given in mm"):
        loaded(tables, tmp_path)


def test_one_table_in_mm_among_others_in_metres_is_told(tmp_path: Path) -> None:
    tables = json.loads(json.dumps(LID))
    tables["points"][0][2:] = ["x", "y", "z"]
    with pytest.warns(ModelWarning, match="lengths in points of 'robot' reach 400 m, in its other tables 0.3 m"):
        loaded(tables, tmp_path)


def test_positions_have_units_of_their_joint(tmp_path: Path) -> None:
    tables = json.loads(json.dumps(LID))
    tables["joints"][0] += ["position (mm)", "position (deg)"]
    tables["joints"][1] += ["", 10]
    assert loaded(tables, tmp_path).neutral()[0] == pytest.approx(np.pi / 18)
    tables["joints"][1][-2:] = [10, ""]
    with pytest.raises(ModelError, match="its 'position' is in mm, but a revolute joint turns"):
        loaded(tables, tmp_path)
    tables["joints"][1][-2:] = [10, 10]
    with pytest.raises(ModelError, match="its 'position' is given twice, in mm and in deg"):
        loaded(tables, tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.json", "{", "it is not JSON"),
        ("a.json", '{"bodies": [], "bodies": []}', "the key 'bodies' appears twice"),
        ("a.json", '{"bodies": NaN}', "NaN is not a number"),
        ("a.json", "[" * 100_000, "it is not JSON"),
        ("a.json", '{"joints": []}', "expected the tables of a robot"),
        ("a.json", '{"bodies": 3}', "bodies must be a list of rows"),
        ("a.json", '{"bodies": [3]}', "it must be a list of cells"),
        ("a.json", '{"bodies": [["body"], ["a", 1]]}', "it has 2 cells below 1 headings"),
        ("a.json", '{"bodies": [["body", "body"]]}', "a heading appears twice"),
        ("a.json", '{"bodies": [], "motors": []}', "there is no table 'motors'; there are 'bodies'"),
        ("a.json", '{"bodies": [], "robot": 3}', "'robot' must be a name"),
        ("a.json", '{"bodies": [], "gravity": 3}', "gravity must be 3 finite numbers"),
        ("a.yaml", "- 3", "expected the tables of a robot"),
        ("a.yaml", "bodies: &a [*a]", "aliases are refused"),
        ("masses.csv", "body\n", "name bodies.csv"),
        ("bodies.csv", "body\na,b\n", "it has 2 cells below 1 headings"),
        ("bodies.csv", "body,body\n", "a heading appears twice"),
        ("bodies.csv", "body\n" + "a" * 200_000, "it is not CSV"),
        ("bodies.csv", "body\n" + "a\n" * 60_000, "more than 50000 cells"),
    ],
)
def test_files_of_strangers(name: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=told):
        coupler.load(tmp_path / name)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    inside = tmp_path / "robot"
    inside.mkdir()
    save_tables(LID, inside, ".csv")
    (inside / "joints.csv").replace(tmp_path / "secret.csv")
    (inside / "joints.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(ModelError, match="leads out of its folder"):
        coupler.load(inside / "bodies.csv")


@pytest.mark.parametrize("option", [{"floating": True}, {"closures": "a.yml"}, {"packages": {"a": "."}}])
def test_options_of_other_formats_are_refused(option: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not for tables"):
        loaded(LID, tmp_path, **option)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mass", ("mass", "")),
        ("Ixx [kg·mm²]", ("Ixx", "kgmm^2")),
        ("Ixx (kg.mm2)", ("Ixx", "kgmm^2")),
        (" free  length ( mm )", ("free length", "mm")),
    ],
)
def test_headings(text: str, expected: tuple[str, str]) -> None:
    assert heading(text) == expected


ARM = {  # as CAD has it, in mm and kg mm²
    "bodies": "body,mass (kg),x (mm),Ixx (kg mm^2),Iyy (kg mm^2),Izz (kg mm^2)\nboom,120,1000,2e6,60e6,60e6\n",
    "joints": "body,type,axis,parent\nboom,R,-y,ground\n",
}


def arm_in_csv(folder: Path, **changes: tuple[str, str]) -> Path:
    """Writes the arm as CSV, with texts replaced in some tables."""
    for table, text in ARM.items():
        (folder / f"{table}.csv").write_text(text.replace(*changes.get(table, ("", ""))), encoding="utf-8")
    return folder / "bodies.csv"


@pytest.mark.parametrize(
    ("units", "told"),
    [((" (kg mm^2)", " (g mm^2)"), "inertias in another unit"), ((" (mm)", ""), "are lengths given in mm")],
)
def test_a_unit_that_is_missing_or_wrong_is_told(units: tuple[str, str], told: str, tmp_path: Path) -> None:
    with pytest.warns(ModelWarning, match=told):
        coupler.load(arm_in_csv(tmp_path, bodies=units))


def test_a_robot_that_is_consistent_but_a_thousand_times_too_large_is_told(tmp_path: Path) -> None:
    file = arm_in_csv(tmp_path)
    file.write_text(ARM["bodies"].replace(" (kg mm^2)", "").replace(" (mm)", ""))
    with pytest.warns(ModelWarning, match="reaches 1000 m: are lengths given in mm"):
        coupler.load(file)


def test_tabs_separate_cells_too(tmp_path: Path) -> None:
    assert coupler.load(arm_in_csv(tmp_path, bodies=(",", "\t"))).mass == 120.0


def test_a_file_that_is_not_utf_8_says_how_to_save_it(tmp_path: Path) -> None:
    file = arm_in_csv(tmp_path)
    (tmp_path / "joints.csv").write_bytes("body,type,axis,parent,lower (°)\nboom,R,-y,ground,-20\n".encode("latin-1"))
    with pytest.raises(ModelError, match=r"joints\.csv: it is not UTF-8 .*: save it as CSV UTF-8"):
        coupler.load(file)
