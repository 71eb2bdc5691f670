"""Loops, couplings, mimics, transmissions and springs of URDF files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coupler
import urdf_samples
from coupler.mechanisms import linear
from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
    Held,
    Helical,
    LoopKind,
    ModelError,
    ModelWarning,
    Planar,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Rod,
    Spherical,
    Universal,
)
from coupler.rotation import about_x, about_y, about_z
from coupler.spatial import Transform
from effort import sweep
from saved_robots import dynamics_gap
from urdf_samples import BODY, TURNED, link

Read = Callable[..., Robot]


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = "", more: str = "") -> str:
    """A joint about z and its child, in one line."""
    return link(child).rstrip() + urdf_samples.joint(name, kind, parent, child, f'<axis xyz="0 0 1"/>{inside}', more)


GROUND = '<link name="ground"/>\n'


# Loops

GRAVITY = (1, 2, -9)  # not along an axis, so that it does work on every joint
PAIR = (
    '<link name="ground"/><gravity xyz="1 2 -9"/>\n'
    + joint("j", "ground", "a")
    + joint("free", "ground", "b", "floating")
)
ENDS = """<predecessor link="a"><origin xyz="0.3 0.1 -0.2" rpy="0.3 -0.5 0.7"/></predecessor>
<successor link="b"><origin xyz="-0.1 0.2 0.1" rpy="0.7 0.3 -0.5"/></successor>"""
MEETS_TURNED = about_z(-0.5) @ about_y(0.3) @ about_x(0.7)
AXIS = '<axis xyz="1 2 -2"/>'
UNIT = (1 / 3, 2 / 3, -2 / 3)
HOLD = '<hold linear="1 0 0"/><hold angular="0 0 0" linear="0 1 1"/>'
LOOPS: dict[str, tuple[str, LoopKind]] = {
    "revolute": (AXIS, Revolute(axis=UNIT)),
    "continuous": (AXIS, Continuous(axis=UNIT)),
    "prismatic": (AXIS, Prismatic(axis=UNIT)),
    "fixed": ("", Fixed()),
    "spherical": ("", Spherical()),
    "ball": ("", Spherical()),
    "universal": (AXIS + '<axis2 xyz="0 0 1"/>', Universal(first=UNIT, second=(0, 0, 1))),
    "cylindrical": (AXIS, Cylindrical(axis=UNIT)),
    "helical": (AXIS + '<pitch value="0.07"/>', Helical(axis=UNIT, pitch=0.07)),
    "planar": (AXIS, Planar(normal=UNIT)),
    "rod": ('<length value="0.6"/>', Rod(0.6)),
    "held": (HOLD, Held([[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1]])),
}


def pair_with(word: str, read: Read) -> tuple[Robot, Robot]:
    """Two bodies held by a loop of a type: from a file, and as built."""
    inside, kind = LOOPS[word]
    found = read(PAIR + f'<loop name="pin" type="{word}">{ENDS}{inside}</loop>')
    b = RobotBuilder("robot", GRAVITY)
    b.body("a", **BODY)
    b.body("b", **BODY)
    b.joint("j", Revolute(), "ground", "a")
    b.joint("free", Free(), "ground", "b")
    places: dict[str, Any] = {"turned": TURNED, "meets_turned": MEETS_TURNED}
    b.loop("pin", kind, "a", "b", (0.3, 0.1, -0.2), (-0.1, 0.2, 0.1), **places)
    return found, b.build()


@pytest.mark.parametrize("word", LOOPS)
def test_a_loop_of_every_type(word: str, read: Read) -> None:
    found, expected = pair_with(word, read)
    assert type(found.loops[0].kind) is type(LOOPS[word][1])
    assert (found.nv, found.independent_joints) == (expected.nv, expected.independent_joints)


@pytest.mark.parametrize("word", sweep(LOOPS, ["revolute", "universal", "helical", "rod", "held"]))
def test_a_loop_of_every_type_moves_as_if_it_were_built(word: str, read: Read) -> None:
    found, expected = pair_with(word, read)
    assert dynamics_gap(expected, found) < 1e-12


def test_an_axis_of_a_loop_is_x_by_default(read: Read) -> None:
    (pin,) = read(PAIR + f'<loop name="pin" type="revolute">{ENDS}</loop>').loops
    assert isinstance(pin.kind, Revolute)
    np.testing.assert_array_equal(pin.kind.axis, (1, 0, 0))
    (pin,) = read(PAIR + f'<loop name="pin" type="universal">{ENDS}<axis2 xyz="0 0 1"/></loop>').loops
    assert isinstance(pin.kind, Universal)
    np.testing.assert_array_equal([pin.kind.first, pin.kind.second], [(1, 0, 0), (0, 0, 1)])


def test_a_four_bar_closes_where_its_triangles_do(read: Read) -> None:
    """A parallelogram: the rocker turns with the crank, and the coupler does not turn."""
    text = GROUND + joint("crank", "ground", "a", more='independent="true" start="1"')
    text += joint("coupler", "a", "b", inside='<origin xyz="0.3 0 0"/>', more='start="-1"')
    text += joint("rocker", "ground", "c", inside='<origin xyz="0.5 0 0"/>', more='start="1"')
    text += '<loop name="pin" type="revolute"><axis xyz="0 0 1"/>'
    text += '<predecessor link="b"><origin xyz="0.5 0 0"/></predecessor>'
    found = read(text + '<successor link="c"><origin xyz="0.3 0 0"/></successor></loop>')
    assert found.independent_joints == ["crank"]
    p = found.joint_positions(found.pack_q({"crank": 0.8}))
    assert (p["rocker"], p["coupler"]) == (pytest.approx(0.8, abs=1e-10), pytest.approx(-0.8, abs=1e-10))


def test_ends_of_loops_are_where_the_joints_of_their_links_end(read: Read) -> None:
    """<meets> moves the bodies' own frames, and nothing that moves."""
    loop = PAIR + f'<loop name="pin" type="revolute">{ENDS}{AXIS}</loop>'
    plain, moved = read(loop), loop
    for end in "ab":
        ends = f'<child link="{end}"/>'
        moved = moved.replace(ends, f'{ends}<meets xyz="0.2 -0.1 0.4" rpy="0.{ord(end)} 0.3 -0.5"/>')
    found = read(moved)
    assert [joint.meets is None for joint in found.joints] == [False, False]
    assert dynamics_gap(plain, found) < 1e-12


def test_a_rod_spins_unless_it_is_locked(read: Read) -> None:
    text = GROUND + joint("j", "ground", "a", "universal")
    text += joint("ball", "a", "b", "spherical", '<origin xyz="0.2 0 0"/>')
    text += '<loop name="pin" type="spherical"><predecessor link="ground"><origin xyz="0.2 0.1 0.2"/></predecessor>'
    text += '<successor link="b"><origin xyz="0.4 0 0"/></successor></loop>'
    loose, locked = read(text), read(text, lock_idle=True)
    assert (loose.nv, len(loose.idle), locked.nv, len(locked.idle)) == (2, 1, 1, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'<loop name="pin" type="bent">{ENDS}</loop>', "there is no joint type 'bent'; there are revolute"),
        (f'<loop name="pin">{ENDS}</loop>', "it needs the attribute 'type'"),
        (f'<loop type="fixed">{ENDS}</loop>', "it needs the attribute 'name'"),
        (f'<loop name="pin" type="rod">{ENDS}</loop>', "there is no <length> in it"),
        (f'<loop name="pin" type="rod">{ENDS}<length value="0"/></loop>', "its length must not be zero"),
        (f'<loop name="pin" type="rod">{ENDS}<length value="-1"/></loop>', "rod: its length must be"),
        (f'<loop name="pin" type="held">{ENDS}</loop>', "held: its axes must be"),
        (f'<loop name="pin" type="held">{ENDS}<hold linear="1 0"/></loop>', "its linear must be 3 numbers, got '1 0'"),
        (f'<loop name="pin" type="revolute">{ENDS}<axis xyz="0 0 0"/></loop>', "its axis must not be zero"),
        (f'<loop name="pin" type="revolute">{ENDS}<axis xyz="0 0"/></loop>', "its xyz must be 3 numbers, got '0 0'"),
        ('<loop name="pin" type="fixed"><predecessor link="a"/></loop>', "there is no <successor> in it"),
        (f'<loop name="pin" type="fixed">{ENDS}</loop>'.replace('link="b"', 'link="d"'), "there is no link 'd'"),
        (
            f'<loop name="pin" type="fixed">{ENDS}</loop>'.replace('link="b"', 'link="a"'),
            "both its ends are on body 'a'",
        ),
        (f'<loop name="j" type="fixed">{ENDS}</loop>', "the name 'j' is taken already, by a joint"),
    ],
)
def test_a_loop_that_cannot_be_is_refused_with_its_place(text: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line [56], <") as caught:
        read(PAIR + "\n" + text)
    assert message in str(caught.value)
    assert str(caught.value).count("robot.urdf") == 1, "an element is named once"


def test_a_loop_may_be_held_on_frames(read: Read) -> None:
    """A frame is a place on the body that carries it."""
    frame = '<link name="tip" as="frame"/><joint name="to_tip" type="fixed"><parent link="a"/><child link="tip"/>'
    frame += '<origin xyz="0.3 0.1 -0.2" rpy="0.3 -0.5 0.7"/></joint>'
    ends = '<predecessor link="tip"/><successor link="b"/>'
    (pin,) = read(PAIR + frame + f'<loop name="pin" type="spherical">{ends}</loop>').loops
    assert (pin.predecessor, pin.successor) == ("a", "b")
    np.testing.assert_allclose(pin.predecessor_frame.r, (0.3, 0.1, -0.2), atol=1e-15)


def test_a_loop_that_cannot_close_is_told_with_its_line(read: Read) -> None:
    text = GROUND + joint("j", "ground", "a") + '<loop name="pin" type="spherical"><predecessor link="ground"/>'
    with pytest.raises(ModelError, match=r"robot\.urdf, line 3, <loop name='pin'>: .*'pin'"):
        read(text + '<successor link="a"><origin xyz="1 0 0"/></successor></loop>')


# Couplings by a ratio between links


def branches(marks: dict[str, str], kind: str = "revolute") -> str:
    """A stem with two arms of two joints each; the second has a fixed one in between."""

    def own(name: str, parent: str, child: str, kind: str = kind) -> str:
        return joint(name, parent, child, kind, more=marks.get(name, ""))

    text = GROUND + own("stem", "ground", "s") + own("a1", "s", "la1") + own("a2", "la1", "la2")
    return text + own("b1", "s", "lb1") + own("weld", "lb1", "lw", "fixed") + own("b2", "lw", "lb2")


RATIO = '<coupling name="gears"><predecessor link="la2"/><successor link="lb2"/><ratio value="3"/></coupling>'


@pytest.mark.parametrize(
    ("marks", "dependent"),
    [
        ({}, "b2"),
        ({"b2": 'independent="true"'}, "b1"),
        ({"b1": 'independent="true"', "b2": 'independent="true"'}, "a2"),
        ({"a1": 'independent="false"'}, "a1"),
        ({"b1": 'independent="false"', "b2": 'actuated="true"'}, "b1"),
    ],
)
def test_a_ratio_relates_the_joints_from_where_two_links_part(
    marks: dict[str, str], dependent: str, read: Read
) -> None:
    found = read(branches(marks) + RATIO)
    free = ["stem", *(name for name in ("a1", "a2", "b1", "b2") if name != dependent)]
    assert found.independent_joints == free
    p = found.joint_positions(found.pack_q({"stem": 5.0} | {name: 0.1 * i for i, name in enumerate(free[1:], 1)}))
    assert 3.0 * (p["a1"] + p["a2"]) == pytest.approx(p["b1"] + p["b2"], abs=1e-14)
    np.testing.assert_allclose([p[name] for name in free[1:]], (0.1, 0.2, 0.3), atol=1e-15)


def test_a_ratio_makes_the_same_robot_as_the_relation_it_means(read: Read) -> None:
    found = read(branches({}, "prismatic") + RATIO.replace("gears", "g").replace('value="3"', 'value="-0.5"'))
    b = RobotBuilder("robot")
    for name in ("s", "la1", "la2", "lb1", "lw", "lb2"):
        b.body(name, **BODY)
    for name, parent, child in (("stem", "ground", "s"), ("a1", "s", "la1"), ("a2", "la1", "la2"), ("b1", "s", "lb1")):
        b.joint(name, Prismatic(), parent, child)
    b.joint("weld", Fixed(), "lb1", "lw")
    b.joint("b2", Prismatic(), "lw", "lb2")
    G = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-0.5, -0.5, -1]]
    b.couple("g", ["a1", "a2", "b1", "b2"], linear(G), ["a1", "a2", "b1"])
    assert dynamics_gap(b.build(), found) < 1e-12


def test_a_ratio_along_one_arm(read: Read) -> None:
    """One link carries the other: nothing turns the first from where they part, so the sum to the second is zero."""
    text = '<coupling name="g"><predecessor link="s"/><successor link="la2"/><ratio value="3"/></coupling>'
    p = (found := read(branches({}) + text)).joint_positions(found.pack_q({"a1": 0.4}))
    assert p["a2"] == -0.4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RATIO.replace("la2", "s").replace("lb2", "lb1"), "it must relate two joints or more"),
        (RATIO.replace("la2", "lb2"), "there are none"),
        (RATIO.replace("la2", "lx"), "there is no link 'lx'; there are 'ground', 's'"),
        (RATIO.replace('<ratio value="3"/>', ""), "there is no <ratio> in it"),
        (RATIO.replace('"3"', '"inf"'), "its value must be a finite number"),
        (RATIO.replace('name="gears"', ""), "it needs the attribute 'name'"),
    ],
)
def test_a_ratio_that_cannot_be_is_refused_with_its_place(text: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line 8, <") as caught:
        read(branches({}) + text)
    assert message in str(caught.value)


def test_a_ratio_needs_joints_of_one_freedom_and_one_that_is_not_independent(read: Read) -> None:
    with pytest.raises(
        ModelError, match=r"<coupling name='gears'>: joint 'a1' is spherical; only joints of one freedom"
    ):
        read(branches({}, "spherical") + RATIO)
    marked: dict[str, str] = dict.fromkeys(("a1", "a2", "b1", "b2"), 'independent="true"')
    with pytest.raises(ModelError, match=r"<coupling name='gears'>: .*one of them not marked as independent"):
        read(branches(marked) + RATIO)


# Couplings by joints

GENERAL = """<coupling name="sum"><independent joint="b1"/><joint name="b2" offset="0.5">
<depends_on joint="a1" multiplier="2"/><depends_on joint="b1" multiplier="-1" offset="0.25"/></joint>
<joint name="a2"><depends_on joint="a1"/></joint></coupling>"""


def test_joints_may_depend_on_several_others(read: Read) -> None:
    found = read(branches({}) + GENERAL)
    assert found.independent_joints == ["stem", "a1", "b1"]
    assert found.couplings[0].independent == ("b1", "a1")
    p = found.joint_positions(found.pack_q({"a1": 0.3, "b1": 0.1}))
    assert p["b2"] == pytest.approx(0.5 + 2 * 0.3 + 0.25 - 0.1, abs=1e-15)
    assert p["a2"] == pytest.approx(0.3, abs=1e-15)


def test_a_joint_may_depend_on_another_by_a_polynomial(read: Read) -> None:
    text = '<coupling name="cam"><joint name="b2"><depends_on joint="a1" polynomial="0.1 2 -3 4"/></joint></coupling>'
    found = read(branches({}) + text)
    p = found.joint_positions(found.pack_q({"a1": 0.5}))
    assert p["b2"] == pytest.approx(0.1 + 2 * 0.5 - 3 * 0.25 + 4 * 0.125, abs=1e-15)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('<depends_on joint="a1"/>', '<depends_on joint="a9"/>', "there is no joint 'a9'; there are 'stem', 'a1'"),
        ('<joint name="a2">', '<joint name="weld">', "joint 'weld' is fixed; only joints of one freedom"),
        ('<joint name="a2">', '<joint name="b2">', "names something twice, in b1, a1, b2, b2"),
        ('<joint name="a2">', '<joint name="a1">', "names something twice"),
        ('<joint name="a2">', "<joint>", "it needs the attribute 'name'"),
        ('multiplier="2"', 'multiplier="two"', "its multiplier must be a number, got 'two'"),
        ('<depends_on joint="a1"/>', '<depends_on joint="a1" polynomial="0 1"/>', "write a separate coupling for it"),
    ],
)
def test_a_dependence_that_cannot_be_is_refused_with_its_place(old: str, new: str, message: str, read: Read) -> None:
    assert old in GENERAL
    with pytest.raises(ModelError, match=r"robot\.urdf, line (8|9|10), <") as caught:
        read(branches({}) + GENERAL.replace(old, new))
    assert message in str(caught.value)


def test_a_joint_that_depends_on_nothing_is_refused(read: Read) -> None:
    with pytest.raises(ModelError, match=r"line 8, <joint name='a1'>: it depends on nothing; write <depends_on"):
        read(branches({}) + '<coupling name="c"><joint name="a1"/></coupling>')


@pytest.mark.parametrize("tag", ["coupling", "transmission"])
def test_a_joint_among_others_that_depends_on_nothing_is_not_locked_in_silence(tag: str, read: Read) -> None:
    text = f'<{tag} name="c"><joint name="a1"><depends_on joint="b1"/></joint><joint name="a2"/></{tag}>'
    with pytest.raises((ModelError, ModelWarning), match="'a2'"):
        read(branches({}) + text)


def test_a_joint_that_depends_on_others_cannot_be_independent(read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line \d+, <.*'b2' is marked as independent"):
        read(branches({"b2": 'independent="true"'}) + GENERAL)


# Mimics


def test_a_joint_may_mimic_another(read: Read) -> None:
    text = GROUND + joint("j", "ground", "a")
    text += joint("k", "a", "b", inside='<mimic joint="j" multiplier="-2" offset="0.3"/>')
    text += joint("l", "b", "c", inside='<mimic joint="k"/>')
    found = read(text)
    assert found.independent_joints == ["j"] and found.warnings == ()
    p = found.joint_positions(found.pack_q({"j": 0.4}))
    assert (p["k"], p["l"]) == (pytest.approx(-0.5, abs=1e-15), pytest.approx(-0.5, abs=1e-15))


def test_a_mimic_makes_the_same_robot_as_a_coupling(read: Read) -> None:
    found = read(GROUND + joint("j", "ground", "a") + joint("k", "a", "b", inside='<mimic joint="j" multiplier="-2"/>'))
    b = RobotBuilder("robot")
    b.body("a", **BODY)
    b.body("b", **BODY)
    b.joint("j", Revolute(), "ground", "a")
    b.joint("k", Revolute(), "a", "b")
    b.couple("c", ["j", "k"], linear([[1], [-2]]), ["j"])
    assert dynamics_gap(b.build(), found) < 1e-12


@pytest.mark.parametrize(
    ("mimic", "message"),
    [
        ('<mimic joint="k"/>', "<mimic>: joint 'k' cannot mimic itself"),
        ('<mimic joint="free"/>', "<mimic>: joint 'free' is floating; only joints of one freedom can be coupled"),
        ("<mimic/>", "<mimic>: it needs the attribute 'joint'"),
        ('<mimic joint="free" multiplier="nan"/>', "<mimic>: "),
    ],
)
def test_a_mimic_that_cannot_be_is_refused_with_its_place(mimic: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line 4, ") as caught:
        read(GROUND + joint("free", "ground", "a", "floating") + joint("k", "a", "b", inside="\n" + mimic))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "master", "told", "nv"),
    [
        ("revolute", "z", r"mimic is not in the file, so they move freely: 'k' \(mimics 'z'\)", 2),
        ("fixed", "j", "<mimic> has no effect on 1 fixed joint: 'k'", 1),
    ],
)
def test_a_mimic_without_one_of_its_joints_is_left_out_and_told(
    kind: str, master: str, told: str, nv: int, read: Read
) -> None:
    text = joint("j", "ground", "a") + joint("k", "a", "b", kind, inside=f'<mimic joint="{master}"/>')
    with pytest.warns(ModelWarning, match=told):
        assert read(GROUND + text).nv == nv


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]], ids=["leaders first", "leaders last"])
def test_what_mimics_a_fixed_joint_is_fixed_and_told(order: list[int], read: Read) -> None:
    """It stands where the relation puts it; so does what mimics it in turn, with its motors left out."""
    follows = '<mimic joint="j" multiplier="2" offset="0.3"/>'
    joints = [
        joint("i", "ground", "a"),
        joint("j", "a", "b", "fixed"),
        joint("k", "b", "c", inside=follows),
        joint("l", "c", "d", "continuous", inside='<mimic joint="k" multiplier="-2" offset="0.1"/>'),
    ]
    motor = '<transmission name="t"><joint name="l"/><actuator name="m"/></transmission>'
    with pytest.warns(ModelWarning, match=r"2 joints made fixed, because what they mimic is: 'k' at 0.3, 'l' at -0.5"):
        found = read(GROUND + "".join(joints[i] for i in order) + motor)
    b = RobotBuilder("robot")
    for name in "abcd":
        b.body(name, **BODY)
    b.joint("i", Revolute(), "ground", "a")
    b.joint("j", Fixed(), "a", "b")
    b.joint("k", Fixed(), "b", "c", Transform.rotation(about_z(0.3).T))
    b.joint("l", Fixed(), "c", "d", Transform.rotation(about_z(-0.5).T))
    assert dynamics_gap(b.build(), found) < 1e-12 and not found.actuators


def test_mimics_in_a_circle_are_relations_all_the_same(read: Read) -> None:
    text = joint("j", "ground", "a", inside='<mimic joint="k"/>') + joint("k", "a", "b", inside='<mimic joint="j"/>')
    found = read(GROUND + text)
    p = found.joint_positions(found.pack_q({"j": 0.4}))
    assert found.nv == 1 and p["k"] == pytest.approx(0.4, abs=1e-12)


def test_a_mimics_relation_takes_no_name_from_a_joint(read: Read) -> None:
    """The name of the relation is ours: it must not make a valid file wrong."""
    text = GROUND + joint("k_mimic", "ground", "a") + joint("k", "a", "b", inside='<mimic joint="k_mimic"/>')
    assert read(text).independent_joints == ["k_mimic"]


# Transmissions

ARM = GROUND + joint("j", "ground", "a", inside='<dynamics armature="0.5"/>') + joint("k", "a", "b", "prismatic")


def transmission(inside: str, joints: str = "j") -> str:
    parts = "".join(f'<joint name="{name}"><hardwareInterface>x</hardwareInterface></joint>' for name in joints)
    return (
        f'<transmission name="t"><type>transmission_interface/SimpleTransmission</type>{parts}{inside}</transmission>'
    )


def test_a_transmission_marks_its_joints_as_actuated(read: Read) -> None:
    actuator = (
        '<actuator name="m"><hardwareInterface>x</hardwareInterface><mechanicalReduction>50</mechanicalReduction>'
    )
    found = read(ARM + transmission(actuator + "</actuator>", "k"))
    assert found.actuated_joints == ["k"] and found.warnings == ()
    assert found.joints[1].kind.armature == 0.0


@pytest.mark.parametrize(
    "actuator",
    [
        '<actuator name="m"><drake:rotor_inertia value="0.002"/><drake:gear_ratio value="10"/></actuator>',
        '<actuator name="m"><rotor_inertia value="0.002"/><gear_ratio value="-10"/></actuator>',
        "<actuator><rotorInertia>0.002</rotorInertia><mechanicalReduction>10</mechanicalReduction></actuator>",
        "<actuator><motorInertia>0.002</motorInertia></actuator><mechanicalReduction>10</mechanicalReduction>",
        '<actuator name="m"><rotorInertia>0.2</rotorInertia></actuator>',
    ],
)
def test_a_rotor_behind_a_reduction_counts_by_its_square(actuator: str, read: Read) -> None:
    """0.5 + 10² × 0.002 = 0.7, on top of the link's own inertia."""
    found = read(ARM + transmission(actuator))
    assert found.joints[0].kind.armature == pytest.approx(0.7, rel=1e-15)
    bare, q = read(ARM), [0.3, 0.1]
    expected = coupler.mass_matrix(bare, q) + np.diag([0.2, 0.0])
    np.testing.assert_allclose(coupler.mass_matrix(found, q), expected, rtol=1e-14)


def test_reductions_of_a_joint_and_of_its_motor_count_for_both_motor_and_rotor(read: Read) -> None:
    """2 × 5 = 10: the motor's gear, and 10² × 0.002 = 0.2 beside the joint's own 0.5."""
    motor = "<actuator><rotorInertia>0.002</rotorInertia><mechanicalReduction>5</mechanicalReduction></actuator>"
    text = transmission(motor).replace("</joint>", "<mechanicalReduction>2</mechanicalReduction></joint>")
    found = read(ARM + text)
    assert found.actuators[0].gears["j"] == 10.0
    assert found.joints[0].kind.armature == pytest.approx(0.7, rel=1e-15)


def test_a_reduction_of_zero_is_told(read: Read) -> None:
    with pytest.warns(ModelWarning, match="a mechanicalReduction of 0, which is taken as 1"):
        read(ARM + transmission("<actuator><mechanicalReduction>0</mechanicalReduction></actuator>"))


def test_a_rotor_of_several_joints_is_told(read: Read) -> None:
    with pytest.warns(ModelWarning, match="1 × rotor inertia of a transmission with several joints"):
        found = read(ARM + transmission("<actuator><rotorInertia>1</rotorInertia></actuator>", "jk"))
    assert found.actuated_joints == ["j", "k"]


def test_a_transmission_may_make_joints_depend_on_others(read: Read) -> None:
    text = '<transmission name="t"><type>transmission_interface/MultiJointLinearTransmission</type>'
    text += '<joint name="k"><depends_on joint="j" multiplier="0.2" offset="0.1"/></joint></transmission>'
    found = read(ARM + text)
    assert found.independent_joints == ["j"] and found.warnings == ()
    assert found.joint_positions(found.pack_q({"j": 0.5}))["k"] == pytest.approx(0.2, abs=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            transmission("<actuator><rotorInertia>big</rotorInertia></actuator>"),
            "<rotorInertia>: what it holds must be a",
        ),
        (transmission("<actuator><rotorInertia>-1</rotorInertia></actuator>"), "armature must be"),
        ('<transmission name="t"><joint/></transmission>', "<joint>: it needs the attribute 'name'"),
    ],
)
def test_a_transmission_that_cannot_be_is_refused(text: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line \d, <") as caught:
        read(ARM + text)
    assert message in str(caught.value)


def test_a_transmission_of_a_fixed_joint_does_nothing(read: Read) -> None:
    text = ARM + joint("weld", "b", "c", "fixed") + transmission("<actuator/>").replace('name="j"', 'name="weld"')
    assert read(text).actuated_joints == []


def test_what_a_transmission_says_beyond_that_is_told(read: Read) -> None:
    with pytest.warns(ModelWarning, match="1 × <flexJoint>"):
        read(ARM + transmission("<flexJoint/>"))


# Springs

SPRING = """<spring name="s" stiffness="50" free_length="0.2" pretension="3" damping="0.5">
<predecessor link="ground"><origin xyz="0.1 0.4 0.3"/></predecessor>
<successor link="b"><origin xyz="0 0.2 0.1"/></successor></spring>"""


def test_a_spring_pulls(read: Read) -> None:
    found = read(ARM + SPRING)
    b = RobotBuilder("robot")
    b.body("a", **BODY)
    b.body("b", **BODY)
    b.joint("j", Revolute(armature=0.5), "ground", "a")
    b.joint("k", Prismatic(), "a", "b")
    figures: dict[str, Any] = {"stiffness": 50.0, "free_length": 0.2, "pretension": 3.0, "damping": 0.5}
    b.spring("s", "ground", "b", (0.1, 0.4, 0.3), (0, 0.2, 0.1), **figures)
    assert dynamics_gap(b.build(), found) < 1e-12
    assert dynamics_gap(read(ARM), found) > 1e-3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('link="b"', 'link="z"', "<successor>: there is no link 'z'"),
        ('stiffness="50"', 'stiffness="-50"', "<spring name='s'>: "),
        ('damping="0.5"', 'damping="nan"', "its damping must be a finite number"),
        ('name="s"', "", "it needs the attribute 'name'"),
        ('<predecessor link="ground"><origin xyz="0.1 0.4 0.3"/></predecessor>', "", "there is no <predecessor> in it"),
    ],
)
def test_a_spring_that_cannot_be_is_refused_with_its_place(old: str, new: str, message: str, read: Read) -> None:
    assert old in SPRING
    with pytest.raises(ModelError, match=r"robot\.urdf, line [4567], <") as caught:
        read(ARM + SPRING.replace(old, new))
    assert message in str(caught.value)


def test_spring_names_are_taken_once(read: Read) -> None:
    with pytest.raises(ModelError, match=r"line 6, <spring name='s'>: the name 's' is taken already, by a spring"):
        read(ARM + SPRING * 2)
