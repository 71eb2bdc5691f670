"""Links and joints of URDF: the same robots as described part by part."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.io.load import load
from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    ModelError,
    ModelWarning,
    Planar,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Spherical,
    Universal,
)
from coupler.spatial import Transform
from saved_robots import dynamics_gap
from urdf_samples import AT, BODY, INERTIAL, PLACE, TURNED, joint, link

Read = Callable[..., Robot]


def hinge(inside: str = "", kind: str = "revolute", more: str = "") -> str:
    """A body on the ground."""
    return link("ground", "") + link("a") + joint("j", kind, "ground", "a", PLACE + inside, more)


def built(kind: Joint, **more: Any) -> Robot:
    b = RobotBuilder("robot")
    b.body("a", **BODY)
    b.joint("j", kind, "ground", "a", AT, TURNED, **more)
    return b.build()


def assert_same(found: Robot, expected: Robot) -> None:
    """Asserts that two robots have the same names, dynamics and poses, to 1e-12."""
    assert (found.body_names, found.joint_names) == (expected.body_names, expected.joint_names)
    assert found.independent_joints == expected.independent_joints
    assert dynamics_gap(expected, found) < 1e-12
    q = expected.random_state(3)[0]
    p = found.pack_q(expected.joint_positions(q))
    for name in (*expected.body_names, *expected.frame_names):
        pose = coupler.frame_pose(expected, q, name)
        np.testing.assert_allclose(coupler.frame_pose(found, p, name), pose, atol=1e-12, err_msg=name)


def figures(robot: Robot, name: str = "j") -> Joint:
    return next(joint.kind for joint in robot.joints if joint.name == name)


# Links


def test_a_link_has_its_inertia_about_its_centre_in_turned_axes(read: Read) -> None:
    inertial = """<inertial><origin xyz="0.1 -0.2 0.05" rpy="0.3 -0.5 0.7"/><mass value="1.3"/>
    <inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.003" izz="0.04"/></inertial>"""
    body = read(link("a", inertial)).bodies["a"]
    moments = np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.003], [-0.002, 0.003, 0.04]])
    np.testing.assert_array_equal(body.centre, (0.1, -0.2, 0.05))
    np.testing.assert_allclose(body.inertia, TURNED @ moments @ TURNED.T, atol=1e-16)


def test_products_of_inertia_may_be_left_out_and_so_may_all_of_it(read: Read) -> None:
    mass = '<inertial><mass value="2"/><inertia ixx="1" iyy="2" izz="3"/></inertial>'
    np.testing.assert_array_equal(read(link("a", mass)).bodies["a"].inertia, np.diag([1.0, 2.0, 3.0]))
    point = read(link("a", '<inertial><mass value="2"/></inertial>')).bodies["a"]
    assert point.mass == 2.0 and not point.inertia.any()
    assert read(link("a", "")).bodies["a"].massless


def test_a_root_stands_on_the_ground_by_a_fixed_joint(read: Read) -> None:
    found = read(link("base") + link("a") + joint("j", "revolute", "base", "a", PLACE))
    b = RobotBuilder("robot")
    b.body("base", **BODY)
    b.body("a", **BODY)
    b.joint("ground_to_base", Fixed(), "ground", "base")
    b.joint("j", Revolute(axis=(1, 0, 0)), "base", "a", AT, TURNED)
    assert_same(found, b.build())
    assert (found.name, found.warnings) == ("robot", ())


def test_a_root_named_ground_is_the_ground(read: Read) -> None:
    found = read(hinge())
    assert_same(found, built(Revolute(axis=(1, 0, 0))))
    assert found.body_names == ["a"]


def test_mass_of_the_ground_is_told(read: Read) -> None:
    with pytest.raises((ModelWarning, ModelError), match="'ground'"):
        read(link("ground") + link("a") + joint("j", "revolute", "ground", "a"))


def test_a_robot_may_float(read: Read) -> None:
    found = read(link("base") + link("a") + joint("j", "revolute", "base", "a"), floating=True)
    b = RobotBuilder("robot")
    b.body("base", **BODY)
    b.body("a", **BODY)
    b.joint("floating_base", Free(), "ground", "base")
    b.joint("j", Revolute(axis=(1, 0, 0)), "base", "a", AT, TURNED)
    assert_same(found, b.build())


def test_the_ground_cannot_float_and_what_floats_cannot_float_twice(read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line 1, <link name='ground'>: the root is the ground"):
        read(hinge(), floating=True)
    world = link("world", "") + link("base") + joint("free", "floating", "world", "base")
    assert read(world).nv == 6
    with pytest.raises(ModelError, match=r"line \d+, <joint name='free'>: .*already: leave out floating=True"):
        read(world, floating=True)


@pytest.mark.parametrize(("name", "floating"), [("ground_to_base", False), ("floating_base", True)])
def test_the_name_of_the_joint_on_the_ground_is_ours_and_taken_from_none(name: str, floating: bool, read: Read) -> None:
    with pytest.warns(ModelWarning, match="floats by") if floating else nullcontext():
        found = read(link("base") + link("a") + joint(name, "revolute", "base", "a"), floating=floating)
    assert (len(found.joints), found.joint_names[1], found.nv) == (2, name, 7 if floating else 1)


def test_frames_and_contact_points_are_links_on_fixed_joints(read: Read) -> None:
    text = hinge() + link("tip", "", 'as="frame"') + link("toe", "", 'as="contact"')
    found = read(text + joint("to_tip", "fixed", "a", "tip") + joint("to_toe", "fixed", "a", "toe"))
    b = RobotBuilder("robot")
    b.body("a", **BODY)
    b.joint("j", Revolute(axis=(1, 0, 0)), "ground", "a", AT, TURNED)
    b.frame("tip", "a", AT, TURNED)
    b.contact("toe", "a", AT)
    assert_same(found, b.build())
    assert (found.frame_names, found.joint_names) == (["tip", "toe"], ["j"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (link("tip", "", 'as="frame"') + joint("k", "revolute", "a", "tip"), "a frame must hang on a fixed joint"),
        (
            link("tip", "", 'as="contact"')
            + link("b")
            + joint("k", "fixed", "a", "tip")
            + joint("l", "fixed", "tip", "b"),
            "a contact must hang on a fixed joint and carry nothing",
        ),
        (link("tip", "", 'as="ghost"'), "as='ghost' must be 'frame' or 'contact'"),
    ],
)
def test_frames_elsewhere_are_refused(text: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=rf"line \d+, <link name='tip'>: {message}"):
        read(hinge() + text)


@pytest.mark.parametrize("inside", [INERTIAL, '<visual><geometry><sphere radius="0.1"/></geometry></visual>'])
def test_what_a_frame_cannot_have_is_not_dropped_in_silence(inside: str, read: Read) -> None:
    with pytest.raises((ModelError, ModelWarning), match="'tip'"):
        read(hinge() + link("tip", inside, 'as="frame"') + joint("k", "fixed", "a", "tip"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('value="1.3"', 'value="-1.3"', "its mass must be"),
        ('value="1.3"', 'value="nan"', "its value must be a finite number"),
        ('value="1.3"', "", "it needs the attribute 'value'"),
        ('<mass value="1.3"/>', "", "there is no <mass> in it"),
        ('ixx="0.02"', 'ixx="-0.02"', "none can be negative"),
        ('ixx="0.02"', "", "it needs the attribute 'ixx'"),
        ('ixy="0"', 'ixy="0.1"', "none can be negative"),
        ('xyz="0.1 -0.2 0.05"', 'xyz="0.1 -0.2"', "its xyz must be 3 numbers, got '0.1 -0.2'"),
        ('xyz="0.1 -0.2 0.05"', 'rpy="x 0 0"', "its rpy must be 3 numbers, got 'x 0 0'"),
    ],
)
def test_an_inertia_that_cannot_be_is_refused_with_its_place(old: str, new: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line \d+, <") as caught:
        read(link("ground", "") + "\n" + link("a", INERTIAL.replace(old, new)) + joint("j", "fixed", "ground", "a"))
    assert message in str(caught.value)


def test_an_inertia_that_no_body_has_is_used_and_told(read: Read) -> None:
    odd = INERTIAL.replace('izz="0.04"', 'izz="0.4"')
    with pytest.warns(ModelWarning, match=r"robot\.urdf: no real body has the inertia of 'a', 'b': the largest"):
        found = read(
            link("a", odd) + link("b", odd) + link("c") + joint("j", "fixed", "a", "b") + joint("k", "fixed", "a", "c")
        )
    np.testing.assert_array_equal(found.bodies["b"].inertia, np.diag([0.02, 0.03, 0.4]))
    assert read(link("a", odd, 'ideal="true"')).warnings == ()


def test_an_inertia_without_mass_is_told_as_such(read: Read) -> None:
    with pytest.warns(ModelWarning, match="'a'.*no mass"):
        read(link("a", INERTIAL.replace("1.3", "0")))
    assert read(link("a", INERTIAL.replace("1.3", "0"), 'ideal="1"')).bodies["a"].mass == 0.0


def test_a_name_is_given_once(read: Read) -> None:
    with pytest.raises(ModelError, match=r"line 3, <link name='a'>: there is a link of this name already, in line 1"):
        read(link("a") + "\n" + link("a"))
    with pytest.raises(ModelError, match=r"<joint name='j'>: there is a joint of this name already, in line \d"):
        read(hinge() + link("b") + joint("j", "fixed", "a", "b"))
    with pytest.raises(ModelError, match=r"line 1, <link>: it needs the attribute 'name'"):
        read("<link/>")


# The tree


def test_a_file_without_links_is_no_robot(read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line 1, <robot name='robot'>: there is no <link> in it"):
        read("")


@pytest.mark.parametrize(("parent", "child", "end"), [("botton", "top", "parent"), ("bottom", "topp", "child")])
def test_an_unknown_link_is_told_with_the_one_that_may_be_meant(parent: str, child: str, end: str, read: Read) -> None:
    meant = {"botton": "bottom", "topp": "top"}
    wrong = parent if end == "parent" else child
    with pytest.raises(
        ModelError,
        match=f"<joint name='j'>: its {end} '{wrong}' is not a link of this file; did you mean '{meant[wrong]}'?",
    ):
        read(link("bottom") + link("top") + joint("j", "fixed", parent, child))
    with pytest.raises(ModelError, match="its child 'xyz' is not a link of this file; there are 'bottom', 'top'"):
        read(link("bottom") + link("top") + joint("j", "fixed", "bottom", "xyz"))


def test_a_link_hangs_on_one_joint(read: Read) -> None:
    text = "".join(map(link, "abc")) + "\n".join(joint(n, "revolute", n, "c") for n in "ab")
    with pytest.raises(ModelError, match=r"<joint name='b'>: link 'c' hangs on joint 'a' already \(line 4\); .*<loop>"):
        read(text)


def test_there_is_one_root(read: Read) -> None:
    with pytest.raises(ModelError, match=r"line \d+, <link name='b'>: links 'a', 'b', 'c' hang on no joint"):
        read("".join(map(link, "abc")))


def test_a_cycle_is_refused(read: Read) -> None:
    text = "".join(map(link, "abc")) + joint("x", "fixed", "b", "c") + joint("y", "fixed", "c", "b")
    with pytest.raises(ModelError, match=r"<joint name='[xy]'>: joints '[xy]', '[xy]' carry each other in a cycle"):
        read(text)
    with pytest.raises(ModelError, match="<joint name='x'>: its parent and its child are the same link, 'a'"):
        read(link("a") + joint("x", "fixed", "a", "a"))


def test_names_and_order_are_the_files(read: Read) -> None:
    text = (
        link("z") + link("b") + link("a") + joint("second", "revolute", "b", "z") + joint("first", "revolute", "a", "b")
    )
    found = read(text)
    assert found.body_names == ["z", "b", "a"]
    assert found.joint_names == ["ground_to_a", "second", "first"]
    assert found.position_joints == ["second", "first"]


def test_a_robot_without_a_name_is_called_as_its_file(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(f"<robot>{link('a')}</robot>")
    assert load(str(path)).name == "arm"


# Joints

AXIS = '<axis xyz="1 2 -2"/>'
UNIT = (1 / 3, 2 / 3, -2 / 3)
KINDS: dict[str, tuple[str, Joint]] = {
    "revolute": (AXIS, Revolute(axis=UNIT)),
    "continuous": (AXIS, Continuous(axis=UNIT)),
    "prismatic": (AXIS, Prismatic(axis=UNIT)),
    "planar": (AXIS, Planar(normal=UNIT)),
    "floating": (AXIS, Free()),
    "spherical": ("", Spherical()),
    "ball": ("", Spherical()),
    "universal": (AXIS + '<axis2 xyz="0 0 3"/>', Universal(first=UNIT, second=(0, 0, 1))),
    "cylindrical": (AXIS, Cylindrical(axis=UNIT)),
    "helical": (AXIS + '<pitch value="0.07"/>', Helical(axis=UNIT, pitch=0.07)),
    "screw": (AXIS + '<pitch value="-0.07"/>', Helical(axis=UNIT, pitch=-0.07)),
}


@pytest.mark.parametrize("word", KINDS)
def test_a_joint_of_every_type(word: str, read: Read) -> None:
    inside, kind = KINDS[word]
    found = read(hinge(inside, word))
    assert type(figures(found)) is type(kind)
    assert_same(found, built(kind))


def test_a_fixed_joint_holds(read: Read) -> None:
    found = read(
        hinge() + link("b") + joint("weld", "fixed", "a", "b", PLACE + '<axis xyz="0 0 0"/><limit effort="1"/>')
    )
    b = RobotBuilder("robot")
    b.body("a", **BODY)
    b.body("b", **BODY)
    b.joint("j", Revolute(axis=(1, 0, 0)), "ground", "a", AT, TURNED)
    b.joint("weld", Fixed(), "a", "b", AT, TURNED)
    assert_same(found, b.build())


@pytest.mark.parametrize("word", ["revolute", "continuous", "prismatic", "planar", "cylindrical", "helical"])
def test_an_axis_is_x_by_default(word: str, read: Read) -> None:
    kind = figures(read(hinge(kind=word)))
    np.testing.assert_array_equal(getattr(kind, "axis", getattr(kind, "normal", None)), (1, 0, 0))


def test_each_axis_of_a_universal_joint_has_its_own_default(read: Read) -> None:
    for inside, axes in (
        ("", [(1, 0, 0), (0, 1, 0)]),
        ('<axis xyz="0 0 1"/>', [(0, 0, 1), (0, 1, 0)]),
        ('<axis2 xyz="0 0 1"/>', [(1, 0, 0), (0, 0, 1)]),
    ):
        kind = figures(read(hinge(inside, "universal")))
        assert isinstance(kind, Universal)
        np.testing.assert_array_equal([kind.first, kind.second], axes, err_msg=inside)


def test_an_origin_may_be_turned_by_a_quaternion_of_any_length(read: Read) -> None:
    """Half of (1, 1, 1, 1) takes x to y, y to z and z to x."""
    text = link("ground", "") + link("a")
    for quaternion in ("0.5 0.5 0.5 0.5", "2 2 2 2"):
        turned = read(text + joint("j", "revolute", "ground", "a", f'<origin quat_xyzw="{quaternion}"/>'))
        np.testing.assert_array_equal(turned.joints[0].placement.E, [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    for wrong, told in (('quat_xyzw="0 0 0 0"', "no length"), ('quat_xyzw="0 0 0 1" rpy="0 0 0"', "keep one")):
        with pytest.raises(ModelError, match=told):
            read(text + joint("j", "revolute", "ground", "a", f"<origin {wrong}/>"))


def test_an_origin_is_the_parents_own_by_default_and_noise_in_it_is_zero(read: Read) -> None:
    text = link("ground", "") + link("a")
    bare = read(text + joint("j", "revolute", "ground", "a", "")).joints[0].placement
    noisy = read(text + joint("j", "revolute", "ground", "a", '<origin xyz="1e-17 0 -3e-16" rpy="0 0 1e-17"/>'))
    for X in (bare, noisy.joints[0].placement):
        np.testing.assert_array_equal(X.E, np.eye(3))
        np.testing.assert_array_equal(X.r, np.zeros(3))
    quarter = joint("j", "revolute", "ground", "a", '<origin rpy="1.5707963267948966 0 0"/>')
    np.testing.assert_array_equal(read(text + quarter).joints[0].placement.E, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])


@pytest.mark.parametrize(
    ("inside", "kind", "message"),
    [
        ('<axis xyz="0 0 0"/>', "revolute", "its axis must not be zero"),
        ('<axis xyz="0 0 0"/>', "planar", "its axis must not be zero"),
        ('<axis xyz="0 1"/>', "revolute", "its xyz must be 3 numbers, got '0 1'"),
        ("<axis/>", "revolute", "it needs the attribute 'xyz'"),
        ('<axis xyz="0 1 0"/><axis xyz="0 1 0"/>', "revolute", "there is more than one <axis>"),
        ("", "hinge", "there is no joint type 'hinge'; there are revolute, continuous, prismatic"),
        ('<limit lower="1" upper="-1"/>', "revolute", "nothing lies between its limits"),
        ('<limit lower="a"/>', "revolute", "its lower must be numbers, got 'a'"),
        ('<limit lower="nan"/>', "revolute", "its lower must be numbers"),
        ('<limit effort="-1"/>', "revolute", "effort_limit must be"),
        ('<limit lower="0 1" upper="2 3"/>', "revolute", "lower must be"),
        ('<dynamics damping="-1"/>', "revolute", "damping must be"),
        ('<dynamics damping="1 2"/>', "revolute", "damping must be"),
        ('<dynamics rest="1 2"/>', "revolute", "rest must be"),
        (AXIS + '<axis2 xyz="2 4 -4"/>', "universal", "its two axes are parallel"),
        (AXIS + "<pitch/>", "helical", "it needs the attribute 'value'"),
    ],
)
def test_a_joint_that_cannot_be_is_refused_with_its_place(inside: str, kind: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line [34], <") as caught:
        read(hinge("\n" + inside, kind))
    assert message in str(caught.value)
    assert str(caught.value).count("robot.urdf") == 1


@pytest.mark.parametrize("end", ["parent", "child"])
def test_a_joint_needs_both_ends(end: str, read: Read) -> None:
    with pytest.raises(ModelError, match=rf"line \d+, <joint name='j'>: there is no <{end}> in it"):
        read(re.sub(rf"<{end} [^>]*>", "", hinge()))


# Their figures


def test_limits_are_read(read: Read) -> None:
    kind = figures(read(hinge('<limit lower="-1" upper="2" velocity="3" effort="4"/>')))
    found = [*kind.lower, *kind.upper, *kind.velocity_limit, *kind.effort_limit]
    assert found == [-1, 2, 3, 4]


@pytest.mark.parametrize(
    ("limit", "lower", "upper"),
    [
        ('effort="1" velocity="1"', -np.inf, np.inf),
        ('lower="-1" effort="1"', -1.0, 0.0),
        ('upper="1" effort="1"', 0.0, 1.0),
        ('lower="-1e30" upper="1e30"', -np.inf, np.inf),
        ('lower="-inf" upper="1"', -np.inf, 1.0),
        ('lower="-9e29" upper="2e308"', -9e29, np.inf),
    ],
)
def test_a_limit_that_is_missing_or_huge(limit: str, lower: float, upper: float, read: Read) -> None:
    kind = figures(read(hinge(f"<limit {limit}/>")))
    assert (kind.lower[0], kind.upper[0]) == (lower, upper)


def test_huge_speeds_and_efforts_are_no_limits(read: Read) -> None:
    kind = figures(read(hinge('<limit lower="-1" upper="1" velocity="1e30" effort="1e31"/>', "prismatic")))
    assert np.isinf([*kind.velocity_limit, *kind.effort_limit]).all()


@pytest.mark.parametrize("word", ["continuous", "floating", "spherical"])
def test_positions_without_bounds_have_no_limits_but_speeds_do(word: str, read: Read) -> None:
    kind = figures(read(hinge('<limit lower="-1" upper="1" velocity="3" effort="4"/>', word)))
    assert np.isinf([*kind.lower, *kind.upper]).all()
    assert set(kind.velocity_limit) == {3.0} and set(kind.effort_limit) == {4.0}


def test_passive_figures_make_the_same_robot(read: Read) -> None:
    found = read(hinge('<dynamics damping="0.1" friction="0.2" armature="0.3" stiffness="4" rest="0.5"/>'))
    kind = Revolute(axis=(1, 0, 0), damping=0.1, friction=0.2, armature=0.3, stiffness=4.0, rest=0.5)
    assert_same(found, built(kind))
    assert figures(found).friction == 0.2


def test_passive_figures_may_be_lists(read: Read) -> None:
    lists = '<dynamics damping="0.1 0.2" friction="1 2" armature="0.3 0.4" stiffness="4 5" rest="0.5 0.6"/>'
    found = read(hinge(AXIS + lists, "cylindrical"))
    both: dict[str, Any] = {"damping": (0.1, 0.2), "friction": (1, 2), "armature": (0.3, 0.4)}
    assert_same(found, built(Cylindrical(axis=UNIT, stiffness=(4, 5), rest=(0.5, 0.6), **both)))
    np.testing.assert_array_equal(figures(found).friction, (1, 2))


def test_joint_properties_are_figures_too_and_come_later(read: Read) -> None:
    both = '<dynamics damping="0" friction="0.5"/><joint_properties damping="1 2" />'
    kind = figures(read(hinge(both, "cylindrical")))
    np.testing.assert_array_equal(kind.damping, (1, 2))
    np.testing.assert_array_equal(kind.friction, (0.5, 0.5))


def test_marks_and_starts_are_read(read: Read) -> None:
    text = hinge(more='independent="true" actuated="1" start="0.4"')
    text += link("b") + joint("k", "floating", "a", "b", "", 'independent="false" start="1 2 3 0 0 0 2"')
    j, k = read(text).joints
    assert (j.independent, j.actuated, k.independent, k.actuated) == (True, True, False, False)
    np.testing.assert_array_equal(j.start, [0.4])  # type: ignore[arg-type]
    np.testing.assert_array_equal(k.start, [1, 2, 3, 0, 0, 0, 1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        ('independent="maybe"', "revolute", "its independent must be true or false, got 'maybe'"),
        ('start="1 2"', "revolute", "its start must be"),
        ('start="nan"', "revolute", "its start must be finite numbers, got 'nan'"),
        ('start="0 0 0 0 0 0 0"', "floating", "start"),
        ('actuated="true"', "fixed", "a fixed joint can be neither independent nor actuated"),
    ],
)
def test_wrong_marks_are_refused(more: str, kind: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=rf"robot\.urdf, line \d+, <joint name='j'>: .*{message}"):
        read(hinge(kind=kind, more=more))


def test_where_a_joint_meets_its_child_moves_everything_on_it(read: Read) -> None:
    """URDF's link frame is the joint's end; coupler's body frame lies where <meets> says."""
    meets = '<meets xyz="0.2 -0.1 0.4" rpy="0.3 -0.5 0.7"/>'
    text = link("ground", "") + link("a") + joint("j", "revolute", "ground", "a", PLACE + meets)
    text += link("b") + joint("k", "revolute", "a", "b", '<origin xyz="0.5 0 0"/>')
    text += link("tip", "", 'as="frame"') + joint("t", "fixed", "a", "tip", '<origin xyz="0 0.6 0"/>')
    text += '<spring name="s" stiffness="7"><predecessor link="ground"/>'
    text += '<successor link="a"><origin xyz="0 0 0.7"/></successor></spring>'
    found = read(text)
    seat = Transform(TURNED.T, np.array([0.2, -0.1, 0.4]))  # from the body's frame to the joint's end
    b = RobotBuilder("robot")
    b.body("a", 1.3, seat.r + TURNED @ np.array(BODY["centre"]), TURNED @ np.diag(BODY["inertia"]) @ TURNED.T)
    b.body("b", **BODY)
    b.joint("j", Revolute(axis=(1, 0, 0)), "ground", "a", AT, TURNED, meets=seat)
    b.joint("k", Revolute(axis=(1, 0, 0)), "a", "b", seat.r + TURNED @ np.array([0.5, 0, 0]), TURNED)
    b.frame("tip", "a", seat.r + TURNED @ np.array([0, 0.6, 0]), TURNED)
    b.spring("s", "ground", "a", (0, 0, 0), seat.r + TURNED @ np.array([0, 0, 0.7]), stiffness=7.0)
    assert_same(found, b.build())
    # Readers that know nothing of <meets> see the joint's end as the link: the second link is the same for both.
    plain = read(text.replace(meets, ""))
    q = [0.4, -0.9]
    for name in ("b", "tip"):
        np.testing.assert_allclose(coupler.frame_pose(found, q, name), coupler.frame_pose(plain, q, name), atol=1e-15)
    np.testing.assert_allclose(coupler.mass_matrix(found, q), coupler.mass_matrix(plain, q), rtol=1e-13)


# Joints that URDF lacks, as chains


def chain(
    kind: str, parts: list[tuple[str, str]], part: str = "", first: str = "", more: str = "", last: str = ""
) -> str:
    """A joint j in parts: types and axes. Properties stand on the first."""
    text, parent = link("ground", ""), "ground"
    for i, (word, axis) in enumerate(parts, 1):
        child = "a" if i == len(parts) else f"j_{i}"
        text += link(child, INERTIAL if child == "a" else "")
        inside = (PLACE + first if i == 1 else "") + f'<axis xyz="{axis}"/>' + (last if child == "a" else "")
        inside += f'<part of="j" kind="{kind}" {part if i == 1 else ""}/>'
        text += joint(f"j_{i}", word, parent, child, inside, more if i == 1 else "")
        parent = child
    return text


CHAINS: dict[str, tuple[list[tuple[str, str]], str, str, Joint]] = {
    "spherical": (
        [("continuous", "1 0 0"), ("continuous", "0 1 0"), ("continuous", "0 0 1")],
        'velocity="1 2 3"',
        '<dynamics damping="1 2 3" armature="0.1"/>',
        Spherical(velocity_limit=(1, 2, 3), damping=(1, 2, 3), armature=0.1),
    ),
    "universal": (
        [("continuous", "1 2 -2"), ("revolute", "0 1 1")],
        'lower="-1 -2" upper="1e30 2"',
        '<dynamics friction="0.1 0.2"/>',
        Universal(first=UNIT, second=(0, 1, 1), friction=(0.1, 0.2), lower=(-1, -2), upper=(np.inf, 2)),
    ),
    "cylindrical": (
        [("continuous", "1 2 -2"), ("prismatic", "1 2 -2")],
        'lower="-1 -0.2" upper="1 0.2" effort="5 6"',
        '<dynamics damping="0.1 0.2"/>',
        Cylindrical(axis=UNIT, damping=(0.1, 0.2), lower=(-1, -0.2), upper=(1, 0.2), effort_limit=(5, 6)),
    ),
    "helical": (
        [("continuous", "1 2 -2"), ("prismatic", "1 2 -2")],
        'pitch="0.07" lower="-3"',
        '<dynamics stiffness="2" rest="0.3"/>',
        Helical(axis=UNIT, pitch=0.07, stiffness=2.0, rest=0.3, lower=-3.0),
    ),
}


@pytest.mark.parametrize("kind", CHAINS)
def test_a_chain_is_one_joint_again(kind: str, read: Read) -> None:
    parts, part, first, expected = CHAINS[kind]
    last = '<mimic joint="j_1" multiplier="0.07"/>' if kind == "helical" else ""
    found = read(chain(kind, parts, part, first, 'actuated="true"', last))
    assert_same(found, built(expected))
    assert found.actuated_joints == ["j"]
    assert found.couplings == () and found.warnings == ()
    for name in ("lower", "upper", "velocity_limit", "effort_limit", "damping", "friction", "armature", "stiffness"):
        np.testing.assert_array_equal(getattr(figures(found), name), getattr(expected, name), err_msg=name)


def test_a_chain_moves_as_its_parts_do(read: Read) -> None:
    """Other readers see the parts: the same poses, for the same angles."""
    parts = CHAINS["universal"][0]
    text = chain("universal", parts)
    plain = read(re.sub(r"<part [^>]*>", "", text))
    for q in ([0.3, -0.4], [1.2, 2.0]):
        np.testing.assert_allclose(
            coupler.frame_pose(read(text), q, "a"), coupler.frame_pose(plain, q, "a"), atol=1e-15
        )


def test_a_chain_may_meet_its_child_and_carry_others(read: Read) -> None:
    last = '<meets xyz="0.2 -0.1 0.4" rpy="0.3 -0.5 0.7"/>'
    text = chain("cylindrical", CHAINS["cylindrical"][0], last=last, more='start="0.1 0.2"') + link("b")
    found = read(text + joint("k", "revolute", "a", "b", ""))
    direct = link("ground", "") + link("a") + link("b")
    direct += joint("j", "cylindrical", "ground", "a", PLACE + AXIS + last, 'start="0.1 0.2"')
    assert_same(found, read(direct + joint("k", "revolute", "a", "b", "")))
    np.testing.assert_array_equal(found.joints[0].start, (0.1, 0.2))  # type: ignore[arg-type]


XYZ = [("continuous", "1 0 0"), ("continuous", "0 1 0"), ("continuous", "0 0 1")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (chain("spherical", XYZ[:2]), "a spherical joint is made of 3 parts, but 'j' has 2 parts"),
        (chain("universal", XYZ), "a universal joint is made of 2 parts, but 'j' has 3 parts"),
        (chain("wobbly", XYZ[:2]), "wobbly"),
        (chain("revolute", XYZ[:2]), "revolute"),
        (chain("universal", XYZ[:2]).replace('<part of="j" ', "<part "), "it needs the attribute 'of'"),
        (chain("universal", XYZ[:2]).replace('kind="universal"', ""), "it needs the attribute 'kind'"),
        (
            chain("universal", XYZ[:2]).replace('<parent link="j_1"/>', '<parent link="ground"/>'),
            "it is a part of joint 'j', but does not follow 'j_1'",
        ),
    ],
)
def test_a_chain_that_is_none_is_refused(text: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line \d+, <(joint|part).*: ") as caught:
        read(text)
    assert message in str(caught.value)


def test_a_chain_cannot_take_another_joints_name(read: Read) -> None:
    text = chain("universal", XYZ[:2]) + link("b") + joint("j", "revolute", "a", "b")
    with pytest.raises(ModelError, match=r"line \d+, <(joint|part).*>: there is a joint .*already"):
        read(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<link name="j_1" ></link>', link("j_1")),  # a mass between the parts
        ('<axis xyz="0 1 0"/>', '<origin xyz="0.1 0 0"/><axis xyz="0 1 0"/>'),  # parts that are apart
        ('<link name="j_1" ></link>', link("j_1", '<visual><geometry><sphere radius="1"/></geometry></visual>')),
    ],
)
def test_what_a_joint_cannot_keep_of_a_chain_is_not_dropped_in_silence(old: str, new: str, read: Read) -> None:
    text = chain("universal", XYZ[:2])
    assert old in text
    with pytest.raises((ModelError, ModelWarning), match="'j_"):
        read(text.replace(old, new))


# What is not modelled


def test_what_is_not_modelled_is_told_once_and_counted(read: Read) -> None:
    inside = '<backlash value="0"/><hysteresis k="1"/>'
    text = hinge(inside) + link("b", INERTIAL + "<thruster/>")
    text += joint("k", "revolute", "a", "b", inside) + "<fluid><current/></fluid>"
    with pytest.warns(ModelWarning) as caught:
        found = read(text.replace("<dynamics/>", ""))
    assert len(caught) == 1
    for told in ("2 × <backlash>", "2 × <hysteresis>", "1 × <thruster>", "1 × <fluid>"):
        assert told in str(caught[0].message) and told in found.warnings[0]
    assert "current" not in found.warnings[0]


def test_unknown_attributes_are_told(read: Read) -> None:
    with pytest.warns(ModelWarning, match=r"not modelled, and left out: 1 × soft_lower= of <limit>"):
        read(hinge('<limit effort="1" velocity="1" soft_lower="2"/>'))


LIMIT_OF_1_2 = '<limit effort="1" velocity="1" acceleration="2" deceleration="3" jerk="4"/>'


def test_what_means_nothing_for_a_robot_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(
        '<?xml version="1.0"?><robot name="r" version="1.0" xmlns:xacro="http://ros.org/wiki/xacro">'
        f"{link('a', INERTIAL + '<origin/><sensor/><self_collision_checking/>')}{link('b')}"
        f"{joint('j', 'fixed', 'a', 'b', LIMIT_OF_1_2)}"
        '<ros2_control name="x"><joint/>'
        '</ros2_control><material name="red"><color rgba="1 0 0 1"/></material><gazebo reference="a"><kp>1e6</kp>'
        "<selfCollide>true</selfCollide><turnGravityOff>false</turnGravityOff></gazebo></robot>"
    )
    assert load(path).warnings == ()


# Gravity and named states


def test_gravity_is_the_files_unless_another_is_asked_for(read: Read) -> None:
    assert list(read(hinge()).gravity) == [0, 0, -9.81]
    text = hinge() + '<gravity xyz="1 2 3"/>'
    assert list(read(text).gravity) == [1, 2, 3]
    assert list(read(text, gravity=(0, 0, -1.62)).gravity) == [0, 0, -1.62]
    with pytest.raises(ModelError, match=r"<gravity>: its xyz must be 3 numbers, got '9.81'"):
        read(hinge() + '<gravity xyz="9.81"/>')


def test_a_keyframe_is_a_named_state(read: Read) -> None:
    text = hinge() + link("b") + joint("k", "floating", "a", "b")
    text += '<keyframe name="up"><joint name="j" position="0.5" velocity="2"/>'
    text += '<joint name="k" position="1 2 3 0 1 0 0" velocity="1 2 3 4 5 6"/></keyframe><keyframe name="zero"/>'
    found = read(text)
    q, v = found.keyframes["up"]
    np.testing.assert_array_equal(q, [0.5, 1, 2, 3, 0, 1, 0, 0])
    np.testing.assert_array_equal(v, [2, 1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(found.keyframes["zero"][0], found.neutral())


def test_keyframes_that_cannot_be(read: Read) -> None:
    with pytest.warns(ModelWarning, match="keyframe 'up' is left out: robot 'robot' has no joint 'elbow'"):
        found = read(hinge() + '<keyframe name="up"><joint name="elbow" position="1"/></keyframe>')
    assert not found.keyframes
    with pytest.raises(ModelError, match=r"<keyframe name='up'>: there is a keyframe 'up' already"):
        read(hinge() + '<keyframe name="up"/>' * 2)
    with pytest.raises(ModelError, match=r"<keyframe>: it needs the attribute 'name'"):
        read(hinge() + "<keyframe/>")


@pytest.mark.parametrize("figure", ["position", "velocity"])
def test_a_keyframe_with_too_many_numbers_is_no_batch(figure: str, read: Read) -> None:
    text = hinge() + f'<keyframe name="up"><joint name="j" {figure}="1 2"/></keyframe>'
    with pytest.raises((ModelError, ModelWarning), match="'up'"):
        read(text)


def test_a_robot_that_cannot_move_so_is_told_with_the_line_of_the_joint(read: Read) -> None:
    with pytest.raises(
        ModelError, match=r"robot\.urdf, line 3, <joint name='j'>: nothing resists a motion of joint 'j'"
    ):
        read(hinge().replace(INERTIAL, ""))
