"""Every kind of joint that SDFormat has, beside the same robot described part by part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import coupler
from coupler.model import (
    Continuous,
    Cylindrical,
    Fixed,
    Free,
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
from coupler.rotation import from_euler
from coupler.spatial import Transform
from saved_robots import dynamics_gap
from sdf_samples import ARMS, KINDS, add_body, joint, link, sdf

Read = Callable[..., Robot]
EXACT = 1e-12


def pose(*numbers: float) -> Transform:
    return Transform(from_euler(*numbers[3:]).T, np.array(numbers[:3]))


A, B = pose(0.05, 0, 0, 0.1, 0, 0), pose(0.3, 0, 0, 0, 0.2, 0)
TWO = link("a", "0.05 0 0 0.1 0 0") + link("b", "0.3 0 0 0 0.2 0")
FIGURES = {"damping": 0.3, "friction": 0.2, "stiffness": 5.0, "rest": 0.4}
LIMITS = {"lower": -1.0, "upper": 2.0, "effort_limit": 30.0, "velocity_limit": 4.0}
SHIFTED, ALONG = pose(0.1, 0.2, 0, 0.3, 0, 0.1), pose(0, 0, 0.1, 0.3, 0, 0)
EXPECTED: dict[str, tuple[Joint, Transform]] = {
    "revolute": (Revolute(axis=(0.6, 0, 0.8), **FIGURES, **LIMITS), SHIFTED),
    "continuous": (Continuous(axis=(0, 0.6, 0.8)), SHIFTED),
    "prismatic": (Prismatic(axis=(0, 0.6, 0.8), **LIMITS), SHIFTED),
    "screw": (Helical(axis=(0, 0, 1), pitch=0.5 / (2 * np.pi)), ALONG),
    "old screw": (Helical(axis=(0, 0, 1), pitch=0.25), ALONG),
    "universal": (Universal(first=(1, 0, 0), second=(0, 1, 0)), SHIFTED),
    "revolute2": (Universal(first=(0, 0, 1), second=(0.6, 0.8, 0)), SHIFTED),
    "ball": (Spherical(), SHIFTED),
    "piston": (Cylindrical(axis=(0, 0.6, 0.8)), SHIFTED),
    "fixed": (Fixed(), SHIFTED),
}


def expected(kind: str) -> Robot:
    b = RobotBuilder("robot")
    add_body(b, "a")
    add_body(b, "b")
    made, meets = EXPECTED[kind]
    b.joint("g", Revolute(axis=(0, 1, 0)), "ground", "a", A)
    b.joint("j", made, "a", "b", meets @ B @ A.inverse(), meets=meets)
    return b.build().with_backend("interpreter")


def same_properties(found: Joint, wanted: Joint) -> None:
    assert type(found) is type(wanted)
    for name in (*FIGURES, *LIMITS):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_is_the_one_described_part_by_part(kind: str, read: Read) -> None:
    ground = joint("g", "revolute", "world", "a", "0 1 0")
    found, robot = read(sdf(TWO + ground + KINDS[kind], "1.11")), expected(kind)
    assert found.warnings == () and found.joint_names == ["g", "j"] and found.body_names == ["a", "b"]
    same_properties(found.joints[1].kind, robot.joints[1].kind)
    assert dynamics_gap(robot, found) < EXACT
    q, _ = robot.random_state(3)
    for name in ("a", "b"):
        pose = coupler.frame_pose(robot, q, name)
        np.testing.assert_allclose(coupler.frame_pose(found, q, name), pose, atol=EXACT)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "fixed"])
def test_a_joint_turned_round_is_the_same_joint(kind: str, read: Read) -> None:
    """Where the child is nearer to the ground, positions count as in the file."""
    ground = joint("g", "revolute", "world", "b", "0 1 0")
    found = read(sdf(TWO + KINDS[kind] + ground))
    assert found.joints[0].parent == "b" and any("from child to parent by 'j'" in text for text in found.remarks)
    b = RobotBuilder("robot")
    add_body(b, "a")
    add_body(b, "b")
    made, meets = EXPECTED[kind]
    b.joint("f", Free(), "ground", "a", A)
    b.joint("j", made, "a", "b", meets @ B @ A.inverse(), meets=meets)
    tree = b.build().with_backend("interpreter")
    q, _ = tree.random_state(1)
    position = np.atleast_1d(tree.joint_positions(q)["j"])
    mirrored = position[::-1] if isinstance(made, Universal) else position
    mirrored = position * [1, -1, -1, -1] if isinstance(made, Spherical) else mirrored
    p = found.pack_q({"g": 0.3, "j": mirrored if len(mirrored) > 1 else mirrored[0]})
    between = np.linalg.inv(coupler.frame_pose(tree, q, "a")) @ coupler.frame_pose(tree, q, "b")
    seen = np.linalg.inv(coupler.frame_pose(found, p, "a")) @ coupler.frame_pose(found, p, "b")
    np.testing.assert_allclose(seen, between, atol=EXACT)


@pytest.mark.parametrize("version", ARMS)
def test_an_arm_is_the_same_in_every_version(version: str, read: Read) -> None:
    found, last = read(ARMS[version]), read(ARMS["1.11"])
    assert found.warnings == () and found.nv == 2
    assert dynamics_gap(last, found) < EXACT


@pytest.mark.parametrize(
    ("limit", "lower", "upper", "effort", "velocity"),
    [
        ("<lower>-1e16</lower><upper>1e16</upper>", -np.inf, np.inf, np.inf, np.inf),
        ("<lower>-inf</lower><upper>inf</upper><effort>inf</effort>", -np.inf, np.inf, np.inf, np.inf),
        ("<lower>-1</lower><effort>-1</effort><velocity>-1.0</velocity>", -1.0, np.inf, np.inf, np.inf),
        ("<upper>1.79769e+308</upper><velocity>0</velocity>", -np.inf, np.inf, np.inf, 0.0),
        ("<lower/><upper> </upper><stiffness>1e8</stiffness>", -np.inf, np.inf, np.inf, np.inf),
    ],
)
def test_limits_that_are_none(
    limit: str, lower: float, upper: float, effort: float, velocity: float, read: Read
) -> None:
    text = TWO + joint("j", "revolute", "a", "b", f"<xyz>0 1 0</xyz><limit>{limit}</limit>")
    kind = read(sdf(text)).joints[1].kind
    assert (*kind.lower, *kind.upper, *kind.effort_limit, *kind.velocity_limit) == (lower, upper, effort, velocity)


def test_a_fixed_joint_has_nothing_to_do_with_axes(read: Read) -> None:
    axis = "<xyz>0 0 0</xyz><limit><lower>0</lower><upper>0</upper></limit><dynamics><damping>1</damping></dynamics>"
    robot = read(sdf(TWO + joint("j", "fixed", "a", "b", axis)))
    assert type(robot.joints[1].kind) is Fixed and robot.warnings == ()


def test_a_continuous_joint_has_no_limits(read: Read) -> None:
    limit = "<xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper><effort>3</effort></limit>"
    kind = read(sdf(TWO + joint("j", "continuous", "a", "b", limit))).joints[1].kind
    assert isinstance(kind, Continuous) and kind.effort_limit == 3.0


def test_a_rotor_of_drakes_is_an_armature(read: Read) -> None:
    rotor = "<drake:rotor_inertia>1e-4</drake:rotor_inertia><drake:gear_ratio>10</drake:gear_ratio>"
    text = sdf(TWO + joint("j", "revolute", "a", "b", "0 1 0", inside=rotor))
    robot = read(text.replace("<sdf", '<sdf xmlns:drake="drake"'))
    np.testing.assert_allclose(robot.joints[1].kind.armature, 1e-2, rtol=1e-15)
    assert robot.warnings == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            joint("j", "floating", "a", "b"),
            "line 5, <joint name='j'>: there is no joint type 'floating'; there are rev",
        ),
        (joint("j", "revolute", "a", "c"), "there is no frame 'c' in model 'robot'; there are 'a', 'b', 'j'"),
        (joint("j", "revolute", "a", "a"), "its parent and its child are both on 'a'"),
        (joint("j", "revolute", "a", "b", "0 0 0"), "its axis must not be zero"),
        (joint("j", "universal", "a", "b", "0 1 0;0 1 0"), "its two axes are parallel"),
        (joint("j", "screw", "a", "b", "", "", "<thread_pitch>0</thread_pitch>"), "it must not be zero"),
        (joint("j", "revolute", "a", "b", "1 2"), "what it holds must be 3 numbers, got '1 2'"),
        (joint("j", "revolute", "a", "b", "<xyz expressed_in='x'>1 0 0</xyz>"), "there is no frame 'x'"),
        (
            joint("j", "revolute", "a", "b")
            + joint("k", "ball", "a", "b").replace("<joint", "<joint coupler:name='j'"),
            "there is a joint 'j' already",
        ),
        (joint("j", "revolute", "a", "b") * 2, "there is a joint of this name already, in line 5"),
        ('<joint name="j" type="fixed"><parent>a</parent></joint>', "there is no <child> in it"),
        ('<joint type="fixed"><parent>a</parent><child>b</child></joint>', "it needs the attribute 'name'"),
    ],
)
def test_joints_that_are_wrong(text: str, told: str, read: Read) -> None:
    with pytest.raises(ModelError) as error:
        read(sdf(f"{TWO}{text}"))
    assert told in str(error.value) and "robot.sdf, line " in str(error.value)


@pytest.mark.parametrize("length", ["1e-320", "1e-200", "1e29"])
def test_axes_of_any_length(length: str, read: Read) -> None:
    robot = read(sdf(TWO + joint("j", "revolute", "a", "b", f"0 {length} 0")))
    kind = robot.joints[-1].kind
    assert isinstance(kind, Revolute)
    np.testing.assert_array_equal(kind.axis, (0, 1, 0))


def test_what_a_loop_cannot_have_is_told(read: Read) -> None:
    damped = "<xyz>0 1 0</xyz><dynamics><damping>0.2</damping></dynamics>"
    ground = joint("g", "revolute", "world", "a", damped) + joint("h", "revolute", "world", "b", damped)
    pin = joint("j", "ball", "a", "b", damped)
    with pytest.warns(ModelWarning, match="damping and friction are left out of joints that close loops: 'j'"):
        assert read(sdf(TWO + ground + pin)).loops[0].name == "j"
