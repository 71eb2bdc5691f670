"""Loops that are described beside a URDF file, and the YAML they are written in."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.io.load import load
from coupler.io.yaml import line_of, parse_yaml
from coupler.model import (
    Fixed,
    Held,
    Joint,
    LoopKind,
    ModelError,
    ModelWarning,
    Robot,
    RobotBuilder,
    Spherical,
    Universal,
)
from coupler.rotation import about_y
from saved_robots import dynamics_gap
from urdf_samples import FOUR_BAR, add_hinges, hinges

# A knuckle at the coupler's end.
JOINTS = {
    "crank": FOUR_BAR["crank"],
    "coupler": FOUR_BAR["coupler"],
    "knuckle": ("coupler", 0.5, 0.0, 0.3),
    "rocker": FOUR_BAR["rocker"],
}
TIPS = {"tip_a": ("knuckle", 0.02, 0.03, 0.5), "tip_b": ("rocker", 0.35, 0.0, 0.0)}

Load = Callable[..., Robot]


@pytest.fixture
def robot(tmp_path: Path) -> Load:
    """Loads the four-bar, with files written beside it before."""

    def robot(beside: dict[str, str] | None = None, frames: str = "", **options: Any) -> Robot:
        (tmp_path / "leg.urdf").write_text(f'<robot name="leg">{hinges(JOINTS | TIPS, TIPS)}{frames}</robot>')
        for name, content in (beside or {}).items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
        if isinstance(options.get("closures"), str):
            options["closures"] = str(tmp_path / options["closures"])
        return load(tmp_path / "leg.urdf", **options)

    return robot


def described(knuckle: Joint | None = None) -> RobotBuilder:
    """The robot of the file without its loop, described part by part."""
    b = RobotBuilder("leg")
    add_hinges(b, JOINTS | TIPS, TIPS, {"knuckle": knuckle} if knuckle else {})
    return b


def closed(kind: LoopKind, knuckle: Joint | None = None) -> Robot:
    b = described(knuckle)
    b.loop("tips", kind, "tip_a", "tip_b")
    return b.build()


def assert_same(found: Robot, expected: Robot) -> None:
    assert found.independent_joints == expected.independent_joints
    assert dynamics_gap(expected, found) < 1e-12


# Pairs of frames


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ([], Spherical()),
        (["3d"], Spherical()),
        (["3D"], Spherical()),
        (["ball"], Spherical()),
        (["6d"], Fixed()),
        (["weld"], Fixed()),
    ],
)
def test_pairs_may_be_given(word: list[str], kind: LoopKind, robot: Load) -> None:
    found = robot(closures=[["tip_a", "tip_b", *word]])
    assert_same(found, closed(kind))
    assert (found.nv, found.warnings) == (1 if isinstance(kind, Fixed) else 2, ())


def test_pairs_may_be_tuples_and_name_joints_whose_ends_are_meant(robot: Load) -> None:
    assert_same(robot(closures=(("j_tip_a", "tip_b"),)), closed(Spherical()))


def test_a_file_lists_pairs_and_how_they_are_held(robot: Load) -> None:
    found = robot({"leg.yaml": "closed_loop: [[tip_a, tip_b]]\ntype: ['3d']\nname_mot: [j_rocker, j_knuckle]\n"})
    assert found.actuated_joints == ["j_knuckle", "j_rocker"]
    assert set(found.independent_joints) == {"j_knuckle", "j_rocker"}
    assert [(loop.predecessor, loop.successor) for loop in found.loops] == [("tip_a", "tip_b")]
    q = found.pack_q({"j_rocker": 0.2, "j_knuckle": 0.1})
    p = closed(Spherical()).pack_q(found.joint_positions(q))
    np.testing.assert_allclose(p, q, atol=1e-10)


def test_a_pair_is_welded_unless_a_file_says_otherwise(robot: Load) -> None:
    assert_same(robot({"leg.yaml": "closed_loop:\n- [tip_a, tip_b]\n"}), closed(Fixed()))


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("SPHERICAL", Spherical()),
        ("UJOINT_ZY", Universal(first=(0, 0, 1), second=(0, 1, 0))),
        ("UJOINT_YX", Universal(first=(0, 1, 0), second=(1, 0, 0))),
    ],
)
def test_a_file_may_say_what_a_joint_is(word: str, kind: Joint, robot: Load) -> None:
    text = f"closed_loop: [[tip_a, tip_b]]\ntype: [6d]\njoint_name: [j_knuckle]\njoint_type: [{word}]\n"
    assert_same(robot({"leg.yaml": text}), closed(Fixed(), kind))


def test_a_joint_keeps_its_damping_when_a_file_says_what_it_is(robot: Load, tmp_path: Path) -> None:
    robot()
    path = tmp_path / "leg.urdf"
    path.write_text(
        path.read_text().replace(
            '<joint name="j_knuckle" type="revolute" >',
            '<joint name="j_knuckle" type="revolute"><dynamics damping="0.3"/>',
        )
    )
    (tmp_path / "leg.yaml").write_text("closed_loop: []\njoint_name: [j_knuckle]\njoint_type: [SPHERICAL]\n")
    kind = next(joint.kind for joint in load(path).joints if joint.name == "j_knuckle")
    np.testing.assert_array_equal(kind.damping, (0.3, 0.3, 0.3))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("closed_loop:\n- [tip_a, tip_c]", 2, "leg.urdf has no frame 'tip_c'; it has 'ground', 'crank'"),
        ("closed_loop:\n- [tip_a]", 2, "a closed loop is a pair of frames, got ['tip_a']"),
        ("closed_loop:\n- tip_a", 2, "a closed loop is a pair of frames, got 'tip_a'"),
        ("closed_loop:\n  tip_a: tip_b", 2, "closed_loop must be a list, got {'tip_a': 'tip_b'}"),
        ("closed_loop: [[tip_a, tip_b]]\ntype:\n  3d", 3, "type must be a list, got '3d'"),
        ("closed_loop: [[tip_a, tip_b]]\ntype: [3d, 3d]", 2, "'type' names 2 kinds for 1 loop"),
        ("closed_loop:\n- [tip_a, tip_b]\ntype: [4d]", 2, "there is no closure of type '4d'; there are '3d', '6d'"),
        ("closed_loop:\n- [tip_a, 3]", 2, "a closure is two frames and how they are held"),
        ("closed_loop: []\nname_mot: [j_crank,\n [j_x]]", 3, "leg.urdf has no joint ['j_x']; it has 'j_crank'"),
        ("closed_loop: []\njoint_name: [j_crank]\njoint_type: [WOBBLY]", 3, "there is no joint type 'WOBBLY'"),
        ("closed_loop: []\njoint_name: [j_crank]\njoint_type: [UJOINT_ZZ]", 3, ""),
        ("closed_loop: []\njoint_name: [j_crank]\njoint_type: []", 2, "joint_name has 1 entry and joint_type 0"),
        ("closed_loop: [\n[tip_a, tip_b]", 3, "it is not YAML: "),
        ("x: &a [1]\nclosed_loop:\n- *a", 3, "aliases are refused; write out what it stands for"),
        ("closed_loop: [[tip_a,\n !!python/name:os.system x]]", 2, "it is not YAML: "),
        ("a: 1\n---\nb: 2", 2, "it is not YAML: "),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_line(text: str, line: int, message: str, robot: Load) -> None:
    with pytest.raises(ModelError, match=rf"leg\.yaml, line {line}: ") as caught:
        robot({"leg.yaml": text + "\n"})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "closures",
    [
        ["tip_a", "tip_b"],
        [["tip_a"]],
        [["tip_a", "tip_b", "3d", "x"]],
        [["tip_a", 3]],
        [["tip_a", "tip_b", "4d"]],
        [["tip_a", "tip_c"]],
        [3],
        [None],
    ],
)
def test_pairs_that_are_none_are_refused(closures: Any, robot: Load) -> None:
    with pytest.raises(ModelError, match=r"closures\[0\]: "):
        robot(closures=closures)


@pytest.mark.parametrize("closures", [{("tip_a", "tip_b")}, {"tip_a": "tip_b"}, 3])
def test_closures_that_are_neither_a_file_nor_pairs_are_refused(closures: Any, robot: Load) -> None:
    with pytest.raises(ModelError, match=r"^closures"):
        robot(closures=closures)


# Where they are found

PAIR = "closed_loop: [[tip_a, tip_b]]\ntype: [3d]\n"
NONE = "submechanisms: []\n"


@pytest.mark.parametrize("name", ["leg.yaml", "leg.yml", "submechanisms.yml", "submechanisms.yaml"])
def test_a_file_beside_the_robots_is_found_unless_there_shall_be_none(name: str, robot: Load) -> None:
    assert [loop.name for loop in robot({name: PAIR}).loops] == ["tip_a-tip_b"]
    assert robot(closures=False).loops == ()


def test_the_file_of_the_same_name_comes_first(robot: Load) -> None:
    assert robot({"leg.yaml": NONE, "submechanisms.yml": PAIR}).loops == ()


def test_a_file_about_something_else_is_not_minded(robot: Load) -> None:
    found = robot({"leg.yaml": "gains: {kp: 100}\n", "submechanisms.yml": PAIR, "other.yaml": "["})
    assert len(found.loops) == 1
    assert robot({"leg.yaml": "", "submechanisms.yml": "- 1\n"}).loops == ()


def test_a_key_that_is_misspelt_is_told(robot: Load) -> None:
    """With `types` unread, pairs would be welded in silence; and with `closed_loops` unread, nothing would close."""
    with pytest.warns(ModelWarning, match=r"leg\.yaml has keys that are not read: 'types'; .* 'type', 'name_mot'"):
        robot({"leg.yaml": PAIR.replace("type:", "type: ['3d']\ntypes:")})
    with pytest.warns(ModelWarning, match="is its key 'closed_loops' meant to be 'closed_loop'"):
        assert robot({"leg.yaml": PAIR.replace("closed_loop:", "closed_loops:")}).loops == ()


def test_a_file_elsewhere_is_named(robot: Load, tmp_path: Path) -> None:
    found = robot({"leg.yaml": NONE, "loops/knee.yaml": PAIR}, closures="loops/knee.yaml")
    assert len(found.loops) == 1
    assert len(robot(closures=tmp_path / "loops" / "knee.yaml").loops) == 1


def test_a_named_file_must_be_there_and_describe_loops(robot: Load, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.yaml: it cannot be read: No such file"):
        robot(closures="gone.yaml")
    with pytest.raises(ModelError, match="it cannot be read: Is a directory"):
        robot(closures=tmp_path)
    for content in ("gains: 3\n", "", "- closed_loop\n"):
        with pytest.raises(ModelError, match=r"gains\.yaml: it describes no loops: it has neither 'closed_loop'"):
            robot({"gains.yaml": content}, closures="gains.yaml")


def test_a_file_that_is_no_text_is_no_yaml(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    for content in (b"\xff\xfe\xff", b"a: \x00", b"[" * 40):
        path.write_bytes(content)
        with pytest.raises(ModelError, match=r"x\.yaml.*: it is not YAML"):
            parse_yaml(path)


def test_words_know_their_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a:\n- b\n- [1, c]\nd: {e: 2.5}\n")
    content = parse_yaml(path)
    assert content == {"a": ["b", [1, "c"]], "d": {"e": 2.5}}
    assert (line_of(content), line_of(content["a"]), line_of(content["d"]), line_of(1)) == (
        ", line 1",
        ", line 2",
        ", line 4",
        "",
    )


# Frames that come in pairs


def closing(*names: str, as_frame: str = "") -> str:
    """Links on fixed joints, the first of a pair on the knuckle and the second on the rocker."""
    text = ""
    for name in names:
        parent, x, z, turn = TIPS["tip_a" if name.endswith("1") else "tip_b"]
        text += f'<link name="{name}" {as_frame}/><joint name="to_{name}" type="fixed"><parent link="{parent}"/>'
        text += f'<child link="{name}"/><origin xyz="{x} 0 {z}" rpy="0 {turn} 0"/></joint>'
    return text


@pytest.mark.parametrize("as_frame", ["", 'as="frame"'])
def test_closing_frames_are_a_ball(as_frame: str, robot: Load) -> None:
    frames = closing("closing_knee_1", "closing_knee_2", as_frame=as_frame)
    with pytest.warns(ModelWarning, match="between frames such as closing_knee_1 and closing_knee_2"):
        found = robot(frames=frames)
    (loop,) = found.loops
    assert loop.name == "closing_knee" and isinstance(loop.kind, Spherical)
    assert dynamics_gap(closed(Spherical()), found) < 1e-12
    assert robot(frames=frames, closures=False).loops == ()


@pytest.mark.parametrize("beside", ["frames", "a file"])
def test_a_robot_that_was_saved_with_its_loops_has_them_once(beside: str, robot: Load, tmp_path: Path) -> None:
    """Its closing frames, or the file beside it, describe them again."""
    frames = closing("closing_knee_1", "closing_knee_2", as_frame='as="frame"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        found = robot(frames=frames, closures=None if beside == "frames" else [("closing_knee_1", "closing_knee_2")])
    path = found.save(tmp_path / "again.urdf")
    if beside == "a file":
        text = path.read_text().replace("closing_knee", "tip")
        path.write_text(text)
        path.with_suffix(".yml").write_text('closed_loop: [["tip_1", "tip_2"]]\ntype: ["3d"]\n')
    again = load(path)
    assert len(found.loops) == len(again.loops) == 1 and again.warnings == ()
    assert "1 loop beside the file left out, which the file has itself" in again.remarks


def test_a_closing_frame_alone_is_a_link_like_others(robot: Load) -> None:
    assert robot(frames=closing("closing_knee_1", "closing_hip_2", "closing__1")).loops == ()


def test_frames_may_be_pairs_too(robot: Load) -> None:
    found = robot(frames=closing("x_1", "x_2", as_frame='as="frame"'), closures=[("x_1", "x_2")])
    assert dynamics_gap(closed(Spherical()), found) < 1e-12


# Submechanisms

ROWS = np.eye(6)
CONSTRAINT = """submechanisms:
- name: knee
  type: NUMERICAL
  jointnames_active: [j_rocker]
  jointnames_independent: [j_crank]
  loop_constraints:
  - cut_joint: j_tip_a
    predecessor_body: knuckle
    successor_body: rocker
    constraint_axes:
"""


def constraint(rows: Any) -> str:
    return CONSTRAINT + "".join(f"    - {{name: n, axis: {list(map(float, row))}}}\n" for row in rows)


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (ROWS, Fixed()),
        (ROWS[3:], Spherical()),
        (ROWS[[3, 5]], Held(ROWS[[3, 5]])),
        (ROWS[[1, 3, 5]], Held(ROWS[[1, 3, 5]])),
    ],
)
def test_bodies_are_held_along_axes_of_a_cut_joint(rows: np.ndarray, kind: LoopKind, robot: Load) -> None:
    found = robot({"submechanisms.yml": constraint(rows)})
    b = RobotBuilder("leg")
    add_hinges(b, JOINTS | TIPS, TIPS, marks={"crank": {"independent": True}, "rocker": {"actuated": True}})
    # By hand, where all joints are at zero: the coupler is turned by 0.2 there, the knuckle by 0.5, its tip by 1.0.
    coupler = about_y(1.0) @ (0.3, 0, 0)
    knuckle = coupler + about_y(0.2) @ (0.5, 0, 0)
    tip = knuckle + about_y(0.5) @ (0.02, 0, 0.03)
    meets = about_y(1.3).T @ (tip - (0.5, 0, 0.1))
    turned: dict[str, Any] = {"turned": about_y(0.5), "meets_turned": about_y(1.0 - 1.3)}
    b.loop("j_tip_a_loop", kind, "knuckle", "rocker", (0.02, 0, 0.03), meets, **turned)
    assert type(found.loops[0].kind) is type(kind)
    assert found.loops[0].name == "j_tip_a_loop"
    assert found.actuated_joints == ["j_rocker"] and found.independent_joints[0] == "j_crank"
    assert_same(found, b.build())


def test_a_transmission_is_read_from_its_file(robot: Load) -> None:
    text = "submechanisms:\n- {type: TRANSMISSION, file_path: sub/knee.urdf}\n"
    depends = '<joint name="j_knuckle"><depends_on joint="j_coupler" multiplier="-2" offset="0.1"/></joint>'
    own = f'<robot name="knee"><link name="x"/><transmission name="t">{depends}</transmission></robot>'
    found = robot({"leg.yaml": text, "sub/knee.urdf": own})
    assert found.independent_joints == ["j_crank", "j_coupler", "j_rocker"] and found.warnings == ()
    p = found.joint_positions(found.pack_q({"j_coupler": 0.3}))
    assert p["j_knuckle"] == pytest.approx(0.1 - 0.6, abs=1e-15)


@pytest.mark.parametrize("name", ["knee.urdf", "../sub/knee.urdf"])
def test_the_folder_of_a_transmission_can_be_named(name: str, robot: Load, tmp_path: Path) -> None:
    text = f"submechanisms:\n- {{type: TRANSMISSION, file_path: {name}}}\n"
    depends = '<joint name="j_knuckle"><depends_on joint="j_coupler" multiplier="-2"/></joint>'
    own = f'<robot name="knee"><link name="x"/><transmission name="t">{depends}</transmission></robot>'
    beside, named = {"loops/x.yaml": text, "sub/knee.urdf": own}, {"any name": tmp_path / "sub"}
    with pytest.warns(ModelWarning, match=r"is left out: .*; name its folder in packages="):
        assert robot(beside, closures="loops/x.yaml").nv == 4
    assert robot(beside, closures="loops/x.yaml", packages=named).nv == 3


@pytest.mark.parametrize("name", ["gone.urdf", "../leg.urdf", "/etc/hostname"])
def test_a_transmission_whose_file_is_not_there_is_told(name: str, robot: Load, tmp_path: Path) -> None:
    (tmp_path / "loops").mkdir()
    text = f"submechanisms:\n- {{type: TRANSMISSION, file_path: {name}}}\n"
    with pytest.warns(ModelWarning, match=f"the transmission that '{name}' describes is left out"):
        robot({"loops/x.yaml": text}, closures="loops/x.yaml")


@pytest.mark.parametrize(
    "part",
    [
        "{name: knee, type: TRANSMISSION, jointnames_active: [j_coupler], jointnames_independent: [j_knuckle]}",
        "{name: knee, type: 2SPU+1U, jointnames_independent: [j_crank], jointnames_spanningtree: [j_crank, j_rocker]}",
    ],
)
def test_a_submechanism_whose_relation_is_not_described_is_told(part: str, robot: Load) -> None:
    """More joints than independent ones, and nothing that binds them: the robot would be an open tree in silence."""
    with pytest.raises((ModelWarning, ModelError), match="knee"):
        robot({"leg.yaml": f"submechanisms:\n- {part}\n"})


def edited(old: str, new: str) -> str:
    text = constraint(ROWS[3:])
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("submechanisms:\n  x: 1", 2, "submechanisms must be a list, got {'x': 1}"),
        ("submechanisms:\n- knee", 2, "a submechanism must be a mapping, got 'knee'"),
        (edited("[j_crank]", "j_crank"), 5, "jointnames_independent must be a list, got 'j_crank'"),
        (edited("cut_joint: j_tip_a", "cut_joint: j_z"), 7, "leg.urdf has no joint 'j_z'"),
        (edited("successor_body: rocker", "successor_body: rock"), 7, "leg.urdf has no frame 'rock'"),
        (edited("    successor_body: rocker\n", ""), 7, "a loop constraint needs 'cut_joint', 'predecessor_body'"),
        (edited("- cut_joint: j_tip_a", "- x"), None, ""),
        (edited("[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]", "[1, 0, 0]"), 11, "a constraint axis is six numbers, got [1, 0, 0]"),
        (edited("[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]", "x"), 11, "a constraint axis is six numbers, got 'x'"),
        (edited("[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]", "[0, 0, 0, .nan, 0, 0]"), None, ""),
        (edited("[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]", "[0, 0, 0, 0, 0, 1]"), 7, "held: its axes must be independent"),
        (CONSTRAINT.replace("constraint_axes:", "constraint_axes: []"), 7, "held: its axes must be"),
        (CONSTRAINT, 7, ""),
    ],
)
def test_a_submechanism_that_does_not_fit_is_refused(text: str, line: int | None, message: str, robot: Load) -> None:
    with pytest.raises(ModelError, match=r"submechanisms\.yml" if line is None else rf"\.yml, line {line}: ") as caught:
        robot({"submechanisms.yml": text})
    assert message in str(caught.value)


def test_names_of_loops_are_made_unique(robot: Load) -> None:
    found = robot(
        closures=[("tip_a", "tip_b"), ("tip_a", "tip_b")],
        frames='<loop name="closure_1" type="spherical"><predecessor link="tip_a"/><successor link="tip_b"/></loop>',
    )
    assert [loop.name for loop in found.loops] == ["closure_1", "closure_1_", "closure_2"]
