"""Loops, gearboxes and mimics of SDFormat: a four-bar, a Stewart platform, a biped with gearboxes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import coupler
from coupler.io.sdf.spanning import Edge, spanning_tree
from coupler.mechanisms import linear
from coupler.model import Free, ModelError, ModelWarning, Prismatic, Revolute, Robot, RobotBuilder, Spherical, Universal
from saved_robots import dynamics_gap
from sdf_samples import BIPED, FOUR_BAR, STEWART, add_body, joint, link, sdf

Read = Callable[..., Robot]
EXACT = 1e-12
HINGE = Revolute(axis=(0, 1, 0))


# Loops


def test_a_four_bar(read: Read) -> None:
    found = read(FOUR_BAR)
    b = RobotBuilder("four_bar")
    for name in ("crank", "coupler", "rocker"):
        add_body(b, name)
    b.joint("shoulder", HINGE, "ground", "crank")
    b.joint("bend", HINGE, "crank", "coupler", (0, 0, 0.2))
    b.joint("pivot", HINGE, "ground", "rocker", (0.4, 0, 0))
    b.loop("pin", HINGE, "coupler", "rocker", (0.4, 0, 0.05), (0, 0, 0.25))
    robot = b.build()
    assert (found.name, found.nv, found.warnings) == ("four_bar", 1, ())
    assert "loops are closed by 'pin'; the other joints make a tree" in found.remarks
    assert found.joint_names == robot.joint_names and [loop.name for loop in found.loops] == ["pin"]
    np.testing.assert_allclose(found.neutral(), 0.0, atol=1e-15)  # it is closed as the file poses it
    assert dynamics_gap(robot, found) < EXACT


def test_a_stewart_platform(read: Read) -> None:
    robot = read(STEWART).with_backend("interpreter")
    kinds = {type(one.kind) for one in robot.joints[:-1]}
    assert robot.nv == 6 and robot.warnings == () and len(robot.loops) == 5
    assert kinds <= {Universal, Prismatic, Spherical} and {type(loop.kind) for loop in robot.loops} == {Spherical}
    assert set(robot.independent_joints) == {f"slide{i}" for i in range(1, 7)}
    q, v = robot.random_state(0)
    tau = np.linspace(-1, 1, 6)
    a = coupler.forward_dynamics(robot, q, v, tau)
    np.testing.assert_allclose(coupler.inverse_dynamics(robot, q, v, a), tau, atol=1e-9)
    for i in range(1, 7):  # every ball holds its rod to the platform
        rod, platform = (coupler.frame_pose(robot, robot.neutral(), name) for name in (f"rod{i}", "platform"))
        moved_rod, moved_platform = (coupler.frame_pose(robot, q, name) for name in (f"rod{i}", "platform"))
        point = platform[:3, :3].T @ (rod[:3, 3] - platform[:3, 3])
        np.testing.assert_allclose(moved_platform[:3, :3] @ point + moved_platform[:3, 3], moved_rod[:3, 3], atol=1e-9)


def test_a_file_may_say_which_joint_closes_a_loop(read: Read) -> None:
    mark = "<physics><simbody><must_be_loop_joint>true</must_be_loop_joint></simbody></physics>"
    robot = read(FOUR_BAR.replace('<joint name="bend" type="revolute">', f'<joint name="bend" type="revolute">{mark}'))
    assert [loop.name for loop in robot.loops] == ["bend"] and robot.warnings == ()
    usual = read(FOUR_BAR)
    assert robot.independent_joints == usual.independent_joints == ["shoulder"]
    H, expected = (coupler.mass_matrix(one, one.neutral()) for one in (robot, usual))
    np.testing.assert_allclose(H, expected, rtol=EXACT)


def edges(*joints: str, loaded: str = "", closes: str = "", balls: str = "") -> list[Edge]:
    return [Edge(j, j[0], j[1], 3 if j in balls.split() else 1, j in loaded, j in closes) for j in joints]


@pytest.mark.parametrize(
    ("given", "closing"),
    [
        (edges("ab", "bc", "ca"), ["ca"]),
        (edges("ab", "bc", "ca", balls="ab"), ["ab"]),
        (edges("ab", "bc", "ca", balls="ab", loaded="ab"), ["ca"]),
        (edges("ab", "bc", "ca", loaded="ca"), ["bc"]),
        (edges("ab", "bc", "ca", closes="bc"), ["bc"]),
        (edges("ab", "ab", "bc"), ["ab"]),
        (edges("ab", "bc", "cd", "da", "ac"), ["da", "ac"]),
    ],
)
def test_what_closes_loops(given: list[Edge], closing: list[str]) -> None:
    unique = [Edge(f"{e.name}{i}", e.parent, e.child, e.freedoms, e.loaded, e.closes) for i, e in enumerate(given)]
    tree = spanning_tree(["a", "b", "c", "d"], unique, ["c"])
    assert [name[:2] for name in tree.closing] == closing
    assert tree.roots[0] == "c" and len(tree.carried) + len(tree.roots) == 4


# Gearboxes


def test_a_biped_with_gearboxes(read: Read) -> None:
    """θ₂ = −ratio θ₁, where the axes of the knees' motors point the other way."""
    found = read(BIPED)
    assert found.nv == 10 and found.warnings == ()
    assert found.joint_names[0] == "floating_base" and len(found.couplings) == 4
    b = RobotBuilder("biped")
    b.gravity = found.gravity
    add_body(b, "pelvis", 8.0)
    b.joint("floating_base", Free(), "ground", "pelvis", start=(0, 0, 1, 1, 0, 0, 0))
    for side, y in (("left", 0.1), ("right", -0.1)):
        for part, mass in (("thigh", 2.0), ("shank", 1.5), ("hip_rotor", 0.2), ("knee_rotor", 0.1)):
            add_body(b, f"{side}_{part}", mass)
        b.joint(f"{side}_hip", HINGE, "pelvis", f"{side}_thigh", (0, y, 0))
        b.joint(f"{side}_knee", HINGE, f"{side}_thigh", f"{side}_shank", (0, 0, -0.4))
        b.joint(f"{side}_hip_motor", HINGE, "pelvis", f"{side}_hip_rotor", (0.05, y, 0.1))
        b.joint(f"{side}_knee_motor", Revolute(axis=(0, -1, 0)), f"{side}_thigh", f"{side}_knee_rotor", (0, 0, -0.1))
        for name, factor in (("hip", -9.0), ("knee", 9.0)):
            pair = [f"{side}_{name}", f"{side}_{name}_motor"]
            b.couple(f"{side}_{name}_gearbox", pair, linear([[1.0], [factor]]), [pair[0]])
    robot = b.build()
    assert found.independent_joints == robot.independent_joints
    assert dynamics_gap(robot, found) < EXACT
    np.testing.assert_allclose(found.neutral(), robot.neutral())


TRAIN = (
    link("frame")
    + link("one", "0.1 0 0 0 0 0")
    + link("two", "0.2 0 0 0 0 0")
    + link("three", "0.3 0 0 0 0 0")
    + joint("stand", "fixed", "world", "frame")
    + joint("a", "revolute", "frame", "one", "0 0 1")
    + joint("b", "revolute", "frame", "two", "0 0 1")
    + joint("c", "revolute", "two", "three", "0 0 1")
)


def gearbox(
    name: str, parent: str, child: str, ratio: float, reference: str = "frame", axes: str = "0 0 1;0 0 1"
) -> str:
    inside = f"<gearbox_ratio>{ratio}</gearbox_ratio><gearbox_reference_body>{reference}</gearbox_reference_body>"
    return joint(name, "gearbox", parent, child, axes, "", inside)


def positions(robot: Robot, **given: float) -> dict[str, float]:
    return {name: float(x) for name, x in robot.joint_positions(robot.pack_q(given)).items()}  # type: ignore[arg-type]


def test_gears_in_a_row(read: Read) -> None:
    robot = read(sdf(TRAIN + gearbox("g", "one", "two", 2.0) + gearbox("h", "two", "three", 3.0)))
    assert robot.nv == 1
    # θ of two is −2 θ of one; that of three against the frame, b + c, is −3 b.
    assert positions(robot, a=0.1) == pytest.approx({"a": 0.1, "b": -0.2, "c": 0.8})


def test_a_gearbox_on_a_moving_reference(read: Read) -> None:
    """A planet: the carrier is the reference body, and the sun stands."""
    robot = read(sdf(TRAIN + gearbox("g", "frame", "three", 2.0, "two")))
    assert robot.nv == 2  # c = −2 × (−b)
    found = positions(robot, a=0.5, b=0.1)
    assert found["c"] == pytest.approx(0.2)


def test_a_gearbox_of_one_axis(read: Read) -> None:
    robot = read(sdf(TRAIN + gearbox("g", "one", "two", 2.0, axes="0 0 -1")))
    assert positions(robot, a=0.1, c=0.0)["b"] == pytest.approx(-0.2)


def test_a_gearbox_whose_axes_point_the_other_way(read: Read) -> None:
    robot = read(sdf(TRAIN + gearbox("g", "one", "two", 2.0, axes="0 0 1;0 0 -1")))
    assert positions(robot, a=0.1, c=0.0)["b"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            gearbox("g", "one", "two", 2.0, "one"),
            "its parent 'one' does not turn against its gearbox_reference_body 'one'",
        ),
        (gearbox("g", "one", "one", -1.0), "must each turn by a joint of their own against its gearbox_reference_body"),
        (gearbox("g", "one", "two", 2.0, axes="1 0 0;0 0 1"), "is joint 'a', which does not turn about its axis"),
        (gearbox("g", "one", "two", 2.0, "nobody"), "there is no frame 'nobody'"),
        (gearbox("g", "one", "free", 2.0) + link("free"), "do not hang together"),
        (joint("g", "gearbox", "one", "two", "0 0 1;0 0 1"), "there is no <gearbox_reference_body> in it"),
        (gearbox("g", "one", "two", 2.0, axes="0 0 0;0 0 1"), "its axes must not be zero"),
    ],
)
def test_gearboxes_that_are_wrong(text: str, told: str, read: Read) -> None:
    with pytest.raises(ModelError) as error:
        read(sdf(TRAIN + text))
    assert told in str(error.value) and "robot.sdf, line " in str(error.value)


# Mimics


def mimic(inside: str = "", name: str = "a", **attributes: str) -> str:
    more = "".join(f' {word}="{value}"' for word, value in attributes.items())
    return f'<xyz>0 0 1</xyz><mimic joint="{name}"{more}>{inside}</mimic>'


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("", 0.3),
        ("<multiplier>2</multiplier>", 0.6),
        ("<multiplier>-2</multiplier><offset>0.1</offset><reference>0.2</reference>", -0.1),
    ],
)
def test_a_joint_that_mimics_another(inside: str, expected: float, read: Read) -> None:
    """multiplier × (leader − reference) + offset"""
    robot = read(sdf(TRAIN.replace(_hinge("c"), joint("c", "revolute", "two", "three", mimic(inside)))))
    assert robot.nv == 2 and robot.couplings[0].name == "c_mimic"
    assert positions(robot, a=0.3, b=0.0)["c"] == pytest.approx(expected)


def _hinge(name: str) -> str:
    return next(line for line in TRAIN.splitlines(keepends=True) if f'<joint name="{name}"' in line)


@pytest.mark.parametrize(
    ("axis", "told"),
    [
        (mimic(name="c"), "joint 'c' cannot mimic itself"),
        (mimic(name="x"), "there is no joint 'x' in the tree of joints; there are"),
        (mimic(axis="axis2"), "only joints of one freedom can be coupled"),
        (mimic("<multiplier>x</multiplier>"), "must be a number"),
    ],
)
def test_mimics_that_are_wrong(axis: str, told: str, read: Read) -> None:
    with pytest.raises(ModelError) as error:
        read(sdf(TRAIN.replace(_hinge("c"), joint("c", "revolute", "two", "three", axis))))
    assert told in str(error.value) and "robot.sdf, line " in str(error.value)


@pytest.mark.parametrize(
    ("fixed", "told"),
    [
        ("b", r"1 joint made fixed, because what they mimic is: 'c' at -0.6"),
        ("c", r"<mimic> has no effect on 1 fixed joint: 'c'"),
    ],
    ids=["leader", "follower"],
)
def test_a_mimic_of_fixed_joints_is_told(fixed: str, told: str, read: Read) -> None:
    """The follower of a fixed joint stands where the relation puts it."""
    kinds = {name: "fixed" if name == fixed else "revolute" for name in "bc"}
    follows = mimic("<multiplier>2</multiplier><reference>0.3</reference>", name="b")
    text = TRAIN.replace(_hinge("c"), joint("c", kinds["c"], "two", "three", follows))
    with pytest.warns(ModelWarning, match=told):
        robot = read(sdf(text.replace(_hinge("b"), joint("b", kinds["b"], "frame", "two", "<xyz>0 0 1</xyz>"))))
    free = read(sdf(TRAIN))
    assert robot.independent_joints == [name for name in "ab" if name != fixed]
    at = free.pack_q({"a": 0.2, "c": -0.6 if fixed == "b" else 0.0})
    expected = coupler.frame_pose(free, at, "three")
    assert np.abs(coupler.frame_pose(robot, robot.pack_q({"a": 0.2}), "three") - expected).max() < 1e-15


def test_a_joint_that_mimics_stays_in_the_tree(read: Read) -> None:
    """Whatever else closes the loop."""
    axis = mimic("<multiplier>-1</multiplier>", "shoulder").replace("0 0 1", "0 1 0")
    last = next(line for line in FOUR_BAR.splitlines(keepends=True) if '<joint name="pin"' in line)
    other = joint("pin", "revolute", "coupler", "rocker", axis, "0 0 0.25 0 0 0")
    with pytest.raises(ModelError, match="'pin_mimic'"):  # a four-bar that could not move
        read(FOUR_BAR.replace(last, other))
