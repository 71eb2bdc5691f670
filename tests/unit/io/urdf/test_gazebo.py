"""What a URDF says in <gazebo>: joints that close loops, gearboxes, friction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.io.load import load
from coupler.io.reading import Options
from coupler.io.urdf.read import read_urdf
from coupler.io.xml import parse
from coupler.model import (
    Cylindrical,
    Fixed,
    Helical,
    Joint,
    ModelError,
    ModelWarning,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Spherical,
    Universal,
)
from coupler.rotation import about_x, about_y, about_z
from coupler.spatial import Transform
from saved_robots import dynamics_gap
from urdf_samples import FOUR_BAR, INERTIAL, add_hinges, hinges, joint, link

Read = Callable[..., Robot]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str, **options: Any) -> Robot:
        path = tmp_path / "robot.urdf"
        path.write_text(f'<robot name="robot">{hinges(FOUR_BAR)}{text}</robot>')
        return load(path, **options)

    return read


def closed(
    inside: str = "", kind: str = "revolute", ends: str = "<parent>coupler</parent><child>rocker</child>"
) -> str:
    return f'<gazebo>\n<joint name="pin" type="{kind}">{ends}{inside}</joint></gazebo>'


def expected(kind: Joint, pose: Transform) -> Robot:
    """The robot that such a file describes, built part by part; its loop is closed where all joints are at zero."""
    b = RobotBuilder("robot")
    add_hinges(b, FOUR_BAR)
    # By hand: the rocker's frame and the coupler's, from the ground; positive turns about y lower x into -z.
    coupler = np.array([0.3 * np.cos(1.0), 0.0, -0.3 * np.sin(1.0)])
    rocker = np.array([0.5, 0.0, 0.1])
    point = rocker + about_y(1.3) @ pose.r
    at = about_y(0.2).T @ (point - coupler)
    turned = about_y(1.3 - 0.2) @ pose.E.T
    b.loop("pin", kind, "coupler", "rocker", at, pose.r, turned=turned, meets_turned=pose.E.T)
    return b.build()


TILT = about_z(0.3) @ about_y(-0.2) @ about_x(0.1)
POSES = {
    "": Transform.identity(),
    "<pose>0.35 0 0.05 0 0 0</pose>": Transform.translation(np.array([0.35, 0, 0.05])),
    "<pose>0.35 0 0.05 0.1 -0.2 0.3</pose>": Transform(TILT.T, np.array([0.35, 0, 0.05])),
}
MODEL = [
    "<axis><xyz>0 1 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>",
    "<axis><xyz>0 1 0</xyz><use_parent_model_frame>true</use_parent_model_frame></axis>",
    '<axis><xyz expressed_in="__model__">0 1 0</xyz></axis>',
]


@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("axis", MODEL)
def test_a_joint_closes_a_loop_about_an_axis_of_the_model(pose: str, axis: str, read: Read) -> None:
    found = read(closed(pose + axis))
    turn = about_y(1.3) @ POSES[pose].E.T  # the joint's axes, in the model's frame
    robot = expected(Revolute(axis=turn.T @ (0, 1, 0)), POSES[pose])
    assert (found.nv, found.warnings) == (1, ())
    assert isinstance(found.loops[0].kind, Revolute) and isinstance(robot.loops[0].kind, Revolute)
    np.testing.assert_allclose(found.loops[0].kind.axis, robot.loops[0].kind.axis, atol=1e-15)
    assert dynamics_gap(robot, found) < 1e-12


@pytest.mark.parametrize("flag", ["", "<use_parent_model_frame>0</use_parent_model_frame>"])
def test_an_axis_is_along_the_joints_frame_by_default(flag: str, read: Read) -> None:
    pose = "<pose>0.35 0 0.05 0 0.4 0</pose>"
    found = read(closed(f"{pose}<axis><xyz>0 2 0</xyz>{flag}</axis>"))
    place = Transform(about_y(0.4).T, np.array([0.35, 0, 0.05]))
    assert dynamics_gap(expected(Revolute(axis=(0, 1, 0)), place), found) < 1e-12


def test_the_loop_is_closed_where_all_joints_are_at_zero(read: Read) -> None:
    found = read(closed("<pose>0.35 0 0.05 0 0 0</pose><axis><xyz>0 1 0</xyz></axis>"))
    (pin,) = found.loops
    np.testing.assert_allclose(pin.residual(_between()), 0.0, atol=1e-15)
    np.testing.assert_allclose(found.neutral(), 0.0, atol=1e-9)


def _between() -> Transform:
    """From the coupler's frame to the rocker's, at zero."""
    coupler = np.array([0.3 * np.cos(1.0), 0.0, -0.3 * np.sin(1.0)])
    return Transform(about_y(1.1).T, about_y(0.2).T @ (np.array([0.5, 0.0, 0.1]) - coupler))


KINDS: dict[str, tuple[str, Joint]] = {
    "ball": ("", Spherical()),
    "fixed": ("", Fixed()),
    "prismatic": ("<axis><xyz>1 0 0</xyz></axis>", Prismatic(axis=(1, 0, 0))),
    "cylindrical": ("<axis><xyz>1 0 0</xyz></axis>", Cylindrical(axis=(1, 0, 0))),
    "universal": (
        "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>",
        Universal(first=(1, 0, 0), second=(0, 1, 0)),
    ),
    "continuous": ("<axis><xyz>0 1 0</xyz></axis>", Revolute(axis=(0, 1, 0))),
    "revolute": ("", Revolute(axis=(0, 0, 1))),
}


@pytest.mark.parametrize("word", KINDS)
def test_joints_of_other_types(word: str, read: Read) -> None:
    inside, kind = KINDS[word]
    # Nothing but where the joint is and how it moves is asked: few of these leave a four-bar any freedom.
    root = parse(f"<robot>{hinges(FOUR_BAR)}{closed(inside, word)}</robot>".encode(), Path("robot.urdf"))
    (loop,) = read_urdf(root, Options()).loops
    assert isinstance(loop.kind, type(kind))
    assert (loop.name, loop.first, loop.second) == ("pin", "coupler", "rocker")
    for name in ("axis", "first", "second"):
        if hasattr(kind, name):
            np.testing.assert_array_equal(getattr(loop.kind, name), getattr(kind, name))


SCREW = link("nut").rstrip() + joint("free", "floating", "ground", "nut", "").rstrip()


@pytest.mark.parametrize(
    ("pitch", "metres_a_radian"),
    [
        ("<screw_thread_pitch>0.01</screw_thread_pitch>", 0.01 / (2 * np.pi)),  # m a turn, right-handed
        ("<thread_pitch>100</thread_pitch>", -0.01),  # radians a metre, left-handed
    ],
)
def test_a_screw_has_the_pitch_that_sdf_means(pitch: str, metres_a_radian: float, read: Read) -> None:
    ends = "<parent>ground</parent><child>nut</child>"
    (pin,) = read(SCREW + closed(f"<axis><xyz>0 0 1</xyz></axis>{pitch}", "screw", ends)).loops
    assert isinstance(pin.kind, Helical)
    assert pin.kind.pitch == pytest.approx(metres_a_radian, rel=1e-14)


def test_ends_may_be_attributes(read: Read) -> None:
    (pin,) = read(closed(MODEL[0], ends='<parent link="coupler"/><child link="rocker"/>')).loops
    assert (pin.predecessor, pin.successor) == ("coupler", "rocker")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            closed(MODEL[0]).replace("coupler", "couple"),
            "<parent>: there is no link 'couple'; there are 'ground', 'crank'",
        ),
        (closed(MODEL[0]).replace("<child>rocker</child>", ""), "<joint name='pin'>: there is no <child> in it"),
        (closed("<pose>0 0 0</pose>"), "<pose>: what it holds must be 6 numbers, got '0 0 0'"),
        (closed("<axis><xyz>0 0</xyz></axis>"), "<xyz>: what it holds must be 3 numbers, got '0 0'"),
        (closed("<axis><xyz>0 0 0</xyz></axis>"), "<joint name='pin'>: revolute joint: its axis must not be zero"),
        (closed("<axis/>"), "<axis>: there is no <xyz> in it"),
        (closed(kind="wobbly"), "<joint name='pin'>: there is no joint type 'wobbly'"),
        (closed().replace('type="revolute"', ""), "<joint name='pin'>: it needs the attribute 'type'"),
        (closed().replace('name="pin"', ""), "<joint>: it needs the attribute 'name'"),
        (closed('<pose relative_to="coupler">0 0 0 0 0 0</pose>'), "<pose>: relative_to is not supported"),
        (closed('<axis><xyz expressed_in="crank">0 1 0</xyz></axis>'), "expressed_in"),
        (closed("<axis><xyz>0 1 0</xyz><limit><lower>low</lower></limit></axis>"), "<lower>: what it holds must be"),
        (closed().replace('"pin"', '"j_crank"'), "the name 'j_crank' is taken already"),
    ],
)
def test_a_joint_that_cannot_be_is_refused_with_its_place(text: str, message: str, read: Read) -> None:
    with pytest.raises(ModelError, match=r"robot\.urdf, line 6, <") as caught:
        read(text)
    assert message in str(caught.value)
    assert str(caught.value).count("robot.urdf") == 1, "an element is named once"


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        ("<limit><lower>-1e16</lower><upper>1e16</upper><effort>-1</effort><velocity>-1</velocity></limit>", []),
        ("<dynamics><damping>0</damping><friction>0.0</friction></dynamics>", []),
        ("<limit><lower>-1</lower><upper>2</upper></limit>", ["1 × <lower>", "1 × <upper>"]),
        ("<limit><lower>0</lower><upper>2</upper></limit>", ["1 × <lower>", "1 × <upper>"]),
        ("<limit><effort>5</effort></limit><dynamics><damping>0.1</damping></dynamics>", ["<effort>", "<damping>"]),
    ],
)
def test_figures_of_a_loops_joint_are_not_modelled_and_told(figures: str, told: list[str], read: Read) -> None:
    text = closed(f"<pose>0.35 0 0 0 0 0</pose><axis><xyz>0 1 0</xyz>{figures}</axis>")
    if not told:
        assert read(text).warnings == ()
        return
    with pytest.warns(ModelWarning, match="not modelled, and left out") as caught:
        read(text)
    for word in told:
        assert word in str(caught[0].message)


LOOP = closed("<pose>0.35 0 0 0 0 0</pose>" + MODEL[0])


@pytest.mark.parametrize(
    "inside",
    [
        "<material>Gazebo/Blue</material>",
        "<plugin name='p' filename='lib.so'><joint>x</joint></plugin>",
        "<sensor name='imu' type='imu'/>",
        "<selfCollide>false</selfCollide><static>0</static>",
        "<turnGravityOff>False</turnGravityOff>",
    ],
)
def test_what_means_nothing_for_motion_is_not_told(inside: str, read: Read) -> None:
    assert read(LOOP + f'<gazebo reference="crank">{inside}</gazebo>').warnings == ()


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("<mu1>0.9</mu1><mu2>0.8</mu2>", "1 × <mu2>"),
        ("<dampingFactor>0.1</dampingFactor>", "1 × <dampingFactor>"),
        ("<turnGravityOff>true</turnGravityOff>", "1 × <turnGravityOff>"),
        ("<static>false</static><static>true</static>", "1 × <static>"),
    ],
)
def test_what_gazebo_would_do_otherwise_is_told(inside: str, told: str, read: Read) -> None:
    with pytest.warns(ModelWarning, match=told):
        read(LOOP + f'<gazebo reference="crank">{inside}</gazebo>')


# Gearboxes


GEARBOX = """<gazebo><joint name="gears" type="gearbox"><parent>crank</parent><child>{child}</child>
<gearbox_ratio>{ratio}</gearbox_ratio><gearbox_reference_body>{reference}</gearbox_reference_body>
<axis><xyz>0 1 0</xyz></axis><axis2><xyz>0 {y} 0</xyz></axis2></joint></gazebo>"""


@pytest.mark.parametrize(
    ("child", "reference", "ratio", "y", "row"),
    [
        ("rocker", "ground", 3.0, 1, {"j_rocker": 1.0, "j_crank": 3.0}),
        ("rocker", "ground", -2.0, -1, {"j_rocker": -1.0, "j_crank": -2.0}),
        # Against the ground the coupler's angle is the sum of two.
        ("coupler", "ground", 3.0, 1, {"j_coupler": 1.0, "j_crank": 4.0}),
        # Against the rocker both turn with the rocker's angle taken off.
        ("coupler", "rocker", 3.0, 1, {"j_coupler": 1.0, "j_crank": 4.0, "j_rocker": -4.0}),
    ],
)
def test_gearboxes_relate_angles_against_the_reference_body(
    child: str, reference: str, ratio: float, y: int, row: dict[str, float], read: Read
) -> None:
    robot = read(GEARBOX.format(child=child, reference=reference, ratio=ratio, y=y))
    assert robot.nv == 2 and [coupling.name for coupling in robot.couplings] == ["gears"]
    for seed in range(3):
        q, v = robot.random_state(seed)
        positions, velocities = robot.joint_positions(q), robot.joint_velocities(q, v)
        for values in (positions, velocities):
            assert sum(factor * float(values[joint]) for joint, factor in row.items()) == pytest.approx(0, abs=1e-12)


def test_a_gearbox_may_have_one_axis_for_both(read: Read) -> None:
    text = GEARBOX.format(child="rocker", reference="ground", ratio=3.0, y=1)
    robot = read(text.replace("<axis2><xyz>0 1 0</xyz></axis2>", ""))
    positions = robot.joint_positions(robot.random_state(0)[0])
    assert float(positions["j_rocker"]) == pytest.approx(-3.0 * float(positions["j_crank"]), abs=1e-12)


@pytest.mark.parametrize(
    ("child", "reference", "told"),
    [
        ("rocker", "nothing", "there is no link 'nothing'"),
        ("crank", "ground", "must each turn by a joint of their own"),
        ("rocker", "rocker", "its child 'rocker' does not turn against its gearbox_reference_body"),
    ],
)
def test_gearboxes_that_relate_nothing_are_refused(child: str, reference: str, told: str, read: Read) -> None:
    with pytest.raises(ModelError, match=rf"<joint name='gears'>: .*{told}"):
        read(GEARBOX.format(child=child, reference=reference, ratio=2.0, y=1))


def test_gearboxes_about_other_axes_are_refused(read: Read) -> None:
    text = GEARBOX.format(child="rocker", reference="ground", ratio=2.0, y=1).replace("0 1 0", "1 0 0", 1)
    with pytest.raises(ModelError, match="joint 'j_crank', which does not turn about its axis"):
        read(text)


# Friction


def shapes(*, of_link: str = "", gazebo: str = "") -> str:
    """A link with a collision and a visual, and what <gazebo> says of it."""
    form = '<geometry><sphere radius="0.1"/></geometry>'
    return (
        f'<link name="wheel">{INERTIAL}<visual>{form}</visual><collision name="tyre">{form}</collision>{of_link}</link>'
        '<joint name="axle" type="continuous"><parent link="crank"/><child link="wheel"/></joint>'
        f'<gazebo reference="wheel">{gazebo}</gazebo>'
    )


@pytest.mark.parametrize(
    ("given", "friction"),
    [
        ({"gazebo": "<mu1>0.9</mu1><mu2>0.9</mu2><kp>1e6</kp>"}, 0.9),
        ({"gazebo": '<mu1 value="0"/>'}, 0.0),
        ({"gazebo": "<mu1>1e14</mu1>"}, 1000.0),
        ({"of_link": '<contact><lateral_friction value="0.7"/><stiffness value="3e5"/></contact>'}, 0.7),
        ({}, None),
    ],
)
def test_friction_of_links(given: dict[str, str], friction: float | None, read: Read) -> None:
    robot = read(shapes(**given))
    assert robot.warnings == ()
    assert [shape.friction for shape in robot.shapes] == [None, friction]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"gazebo": "<mu1>0.9</mu1><mu2>0.5</mu2>"}, "1 × <mu2>"),
        ({"gazebo": "<mu1>-1</mu1>"}, "1 × <mu1>"),
        ({"gazebo": "<turnGravityOff>true</turnGravityOff>"}, "1 × <turnGravityOff>"),
        ({"of_link": '<contact><restitution value="0.5"/></contact>'}, "1 × <restitution>"),
    ],
)
def test_what_links_have_besides_is_told(given: dict[str, str], told: str, read: Read) -> None:
    with pytest.warns(ModelWarning, match=f"left out: {told}"):
        read(shapes(**given))


def test_transmissions_of_absent_joints_are_left_out_and_told(read: Read) -> None:
    text = "".join(
        f'<transmission name="t_{joint}"><type>SimpleTransmission</type><joint name="{joint}"/>'
        f'<actuator name="m_{joint}"/></transmission>'
        for joint in ("j_crank", "gone")
    )
    with pytest.warns(ModelWarning, match="transmissions of joints that are not in the file are left out: 'gone'"):
        robot = read(text)
    assert robot.actuator_names == ["m_j_crank"]
