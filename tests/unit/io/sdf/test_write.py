"""Robots saved as SDFormat, and loaded again: the same robots."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler import robots
from coupler.io.load import load
from coupler.io.save import save
from coupler.io.sdf.write import sdf_text
from coupler.mechanisms import gear
from coupler.model import (
    Continuous,
    Fixed,
    Free,
    Helical,
    Joint,
    Mesh,
    ModelError,
    ModelWarning,
    Planar,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Sphere,
    Spherical,
    Universal,
)
from coupler.rotation import about_axis
from effort import every, sweep
from peers import gap
from random_robots import ROBOTS, place, sample, unit
from saved_robots import dynamics_gap, everything, reloaded, shapes_of
from sdf_samples import BIPED, FOUR_BAR, STEWART, joint, link, sdf

EXACT = 1e-12  # relative to the largest entry
FUNCTIONS = ("tello", "tello_with_arms")  # have couplings that no file holds
HELD = ("rh5_manus",)  # has loops that hold along two axes, for which SDFormat has no word
WRITABLE = [
    *("fixed loop", "prismatic loop", "helical loop", "universal loop", "spherical loop", "revolute loop afloat"),
    *("idle rod", "geared loop", "five-bar", "gear", "belt", "differential", "rack and pinion", "linear"),
    *("polynomial", "four-bar"),
]


def again(robot: Robot, folder: Path) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of inertias that others refuse
        return reloaded(robot, folder, ".sdf")


def assert_same(first: Robot, second: Robot) -> None:
    assert second.name == first.name and second.warnings == ()
    assert (second.body_names, second.joint_names) == (first.body_names, first.joint_names)
    assert [loop.name for loop in second.loops] == [loop.name for loop in first.loops]
    relations = {coupling.name for coupling in first.couplings if not coupling.solves}  # a γ of loops is left to them
    assert {coupling.name for coupling in second.couplings} == relations
    assert (second.frame_names, second.independent_joints) == (first.frame_names, first.independent_joints)
    assert second.actuated_joints == first.actuated_joints
    ours, theirs = (one.joint_positions(one.neutral()) for one in (first, second))
    for name, position in ours.items():
        np.testing.assert_allclose(theirs[name], position, atol=1e-12)
    np.testing.assert_array_equal(second.gravity, first.gravity)
    for name, body in first.bodies.items():
        np.testing.assert_array_equal(second.bodies[name].inertia, body.inertia)
        assert (second.bodies[name].mass, second.bodies[name].ideal) == (body.mass, body.ideal)
    assert dynamics_gap(first, second) < EXACT


SHORT = ("mit_humanoid_leg", "four_bar", "planar_leg_linkage")


@pytest.mark.parametrize("name", sweep([name for name in robots.names() if name not in FUNCTIONS + HELD], SHORT))
def test_a_bundled_robot_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    robot = robots.load(name)
    assert_same(robot, again(robot, tmp_path))


@pytest.mark.parametrize("name", every(8, [name for name in ROBOTS if name in WRITABLE], 5))
def test_a_random_robot_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    robot = sample(name).robot
    assert_same(robot, again(robot, tmp_path))


MACHINES = {"four-bar": FOUR_BAR, "biped": BIPED, "stewart": STEWART}


@pytest.mark.parametrize("name", sweep(MACHINES, ("four-bar", "biped")))
def test_what_was_read_is_written_and_read_again(name: str, tmp_path: Path) -> None:
    (tmp_path / "robot.sdf").write_text(MACHINES[name])
    robot = load(tmp_path / "robot.sdf")
    assert_same(robot, again(robot, tmp_path))


# Joints


def every_kind(rng: np.random.Generator, *, meets: bool) -> Robot:
    """A tree with a joint of every kind that SDFormat has."""
    kinds: list[Joint] = [
        Free(damping=(1, 2, 3, 4, 5, 6), armature=0.1),
        Revolute(axis=unit(rng), lower=-1.0, effort_limit=3.0, damping=0.1),
        Prismatic(axis=unit(rng), upper=0.5, velocity_limit=2.0, stiffness=2.0, rest=0.3),
        Helical(axis=unit(rng), pitch=0.1, armature=0.02),
        Universal(first=unit(rng), second=unit(rng), friction=(0.3, 0.4), stiffness=(1.0, 2.0), rest=(0.1, -0.2)),
        Universal(first=unit(rng), second=unit(rng), lower=(-1, -np.inf), upper=(np.inf, 2), armature=(0.1, 0.2)),
        Spherical(damping=0.3, stiffness=2.0, rest=(0.6, 0.8, 0, 0)),
        Spherical(damping=(0.1, 0.2, 0.3), friction=0.1, effort_limit=4.0, velocity_limit=(1, 2, 3)),
        Continuous(axis=unit(rng), friction=0.2),
        Fixed(),
    ]
    b = RobotBuilder("every kind", 5.0 * rng.normal(size=3))
    parents = ["ground"]
    for i, kind in enumerate(kinds):
        axes, moments = about_axis(unit(rng), 1.0), rng.uniform(0.01, 0.02, 3)
        b.body(f"b{i}", rng.uniform(0.5, 2.0), rng.uniform(-0.2, 0.2, 3), axes @ np.diag(moments) @ axes.T)
        parent = parents[rng.integers(1, len(parents))] if i else "ground"
        marks = {"actuated": i == 1, "independent": i == 2}
        b.joint(f"j{i}", kind, parent, f"b{i}", place(rng), meets=place(rng) if meets else None, **marks)
        b.frame(f"tool{i}", f"b{i}", place(rng))
        parents.append(f"b{i}")
    return b.build()


@pytest.mark.parametrize("meets", sweep([False, True], [True]))
def test_every_kind_of_joint_comes_back_with_its_figures(meets: bool, tmp_path: Path) -> None:
    robot = every_kind(np.random.default_rng(4), meets=meets)
    found = again(robot, tmp_path)
    assert_same(robot, found)
    for one, two in zip(robot.joints, found.joints, strict=True):
        assert type(two.kind) is type(one.kind)
        for figure in ("stiffness", "rest", "damping", "friction", "armature", "lower", "upper"):
            np.testing.assert_array_equal(getattr(two.kind, figure), getattr(one.kind, figure), err_msg=figure)
        for figure in ("velocity_limit", "effort_limit"):
            np.testing.assert_array_equal(getattr(two.kind, figure), getattr(one.kind, figure), err_msg=figure)
        assert (one.actuated, one.independent) == (two.actuated, two.independent)
        assert (one.meets is None) == (two.meets is None)


def crank() -> RobotBuilder:
    """A four-bar whose loop is not closed where its joints are at zero, with limits and springs."""
    b, z = RobotBuilder("crank"), (0, 0, 1)
    for name in ("crank", "coupler", "rocker"):
        b.body(name, 1.0, (0.1, 0, 0), (0.1, 0.1, 0.15))
    b.joint("j1", Revolute(axis=z, lower=-4, upper=4, stiffness=3.0, rest=0.7), "ground", "crank", start=0.5)
    b.joint("j2", Revolute(axis=z, lower=-3, upper=3), "crank", "coupler", (0.3, 0, 0), start=0.4)
    b.joint("j3", Revolute(axis=z), "ground", "rocker", (0.9, 0, 0), start=1.5)
    b.loop("pin", Revolute(axis=z), "coupler", "rocker", (0.8, 0, 0), (0.7, 0, 0))
    return b


def test_a_robot_is_posed_where_its_loops_are_closed(tmp_path: Path) -> None:
    """Limits and springs of the file count from there, for readers that know nothing of us."""
    robot = crank().build()
    assert_same(robot, again(robot, tmp_path))
    root = ET.fromstring((tmp_path / "saved.sdf").read_text())
    joints = {element.get("name"): element for element in root.iter("joint")}
    at = {name: float(np.asarray(x)) for name, x in robot.joint_positions(robot.neutral()).items()}
    assert abs(at["j1"]) > 0.1
    assert float(joints["j1"].findtext("axis/limit/lower", "")) == pytest.approx(-4 - at["j1"])
    assert float(joints["j1"].findtext("axis/dynamics/spring_reference", "")) == pytest.approx(0.7 - at["j1"])
    assert joints["pin"].findtext("physics/simbody/must_be_loop_joint") == "true"
    assert [loop.name for loop in robot.loops] == ["pin"]
    for element in list(root.iter()):  # what another reader sees: a machine that is closed at zero
        for part in [part for part in element if part.tag.startswith("{urn:coupler}")]:
            element.remove(part)
    (tmp_path / "other.sdf").write_text(ET.tostring(root, encoding="unicode"))
    other = load(tmp_path / "other.sdf")
    np.testing.assert_allclose(other.neutral(), 0.0, atol=1e-12)
    assert [joint.independent for joint in robot.joints] == [False] * 3
    q, v = robot.random_state(1)
    shifted = {name: float(np.asarray(x)) - at[name] for name, x in robot.joint_positions(q).items()}
    H, expected = coupler.mass_matrix(other, other.pack_q(shifted)), coupler.mass_matrix(robot, q)
    assert gap(H, expected) < EXACT
    bias = coupler.bias_force(other, other.pack_q(shifted), v)
    assert gap(bias, coupler.bias_force(robot, q, v)) < 1e-11


TIES: dict[str, Joint] = {
    "universal": Universal(first=(1, 0, 0), second=(0, 0.6, 0.8)),
    "revolute": Revolute(axis=(0.6, 0, 0.8)),
    "ball": Spherical(),
    "weld": Fixed(),
}


@pytest.mark.parametrize(
    ("tie", "ground_last"), sweep([(tie, last) for tie in TIES for last in (True, False)], [("ball", True)])
)
def test_loops_whose_ends_are_the_ground(tie: str, ground_last: bool, tmp_path: Path) -> None:
    """SDFormat has no joint whose child is the world."""
    b, rng = RobotBuilder("tied"), np.random.default_rng(3)
    parent = "ground"
    for i in range(8):
        b.body(f"b{i}", 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"j{i}", Revolute(axis=unit(rng)), parent, f"b{i}", rng.uniform(-0.3, 0.3, 3), start=rng.uniform(-1, 1))
        parent = f"b{i}"
    ends = ((parent, "ground"), ("ground", parent))[not ground_last]
    places = {"ground": (0.3, 0.2, 0.3), parent: (0.1, 0.0, 0.0)}
    b.loop("tie", TIES[tie], *ends, *(places[end] for end in ends))
    robot = b.build()
    assert_same(robot, again(robot, tmp_path))


@pytest.mark.long
def test_a_platform_that_loops_alone_hold(tmp_path: Path) -> None:
    b = RobotBuilder("table")
    b.body("platform", 2.0, inertia=(0.1, 0.1, 0.2))
    b.joint("free", Free(), "ground", "platform", start=(0, 0, 0.5, 1, 0, 0, 0))
    for i, angle in enumerate(2 * np.pi * np.arange(3) / 3):
        along = np.array([np.cos(angle), np.sin(angle), 0.0])
        b.body(f"leg{i}", 0.3, (0, 0, 0.25), (0.01, 0.01, 0.001))
        hip = Universal(first=along, second=np.cross((0, 0, 1), along))
        b.joint(f"hip{i}", hip, "ground", f"leg{i}", 0.4 * along)
        b.loop(f"ball{i}", Spherical(), f"leg{i}", "platform", (0, 0, 0.5), 0.4 * along)
    robot = b.build()
    assert_same(robot, again(robot, tmp_path))


def test_a_robot_that_floats_by_another_link_than_its_first(tmp_path: Path) -> None:
    text = sdf(
        link("a", "0 0 0.5 0 0 0") + link("b", "0.2 0 0 0.1 0.2 0.3") + joint("j", "revolute", "a", "b", "0 1 0")
    )
    path = tmp_path / "other.sdf"
    path.write_text(text.replace("<model ", '<model canonical_link="b" '))
    robot = load(path)
    assert [joint.child for joint in robot.joints] == ["b", "a"]
    assert_same(robot, again(robot, tmp_path))


def test_a_body_that_floats_on_one_that_is_fixed(tmp_path: Path) -> None:
    """As in files of URDF whose root is called world."""
    rng = np.random.default_rng(0)
    b = RobotBuilder("ship")
    b.body("world")
    b.body("hull", 2.0, (0.1, 0, 0.2), (0.2, 0.3, 0.4))
    b.joint("origin", Fixed(), "ground", "world", place(rng))
    b.joint("afloat", Free(), "world", "hull", place(rng), meets=place(rng), start=(1, 2, 3, 0.6, 0.8, 0, 0))
    robot = b.build()
    found = again(robot, tmp_path)
    q, v = robot.random_state(0)
    np.testing.assert_allclose(found.neutral(), robot.neutral(), atol=EXACT)
    np.testing.assert_allclose(coupler.frame_pose(found, q, "hull"), coupler.frame_pose(robot, q, "hull"), atol=EXACT)
    np.testing.assert_allclose(coupler.bias_force(found, q, v), coupler.bias_force(robot, q, v), atol=EXACT)


# Names


def test_names_that_sdformat_has_no_room_for(tmp_path: Path) -> None:
    """Links, joints and frames share one set of names, and some are reserved."""
    b = RobotBuilder("a::b")
    for name in ("knee", "world", "arm::hand", "__x__", "arm_hand"):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("knee", Revolute(), "ground", "knee")
    b.joint("world", Revolute(), "knee", "world")
    b.joint("arm::hand", Revolute(), "world", "arm::hand")
    b.joint("arm_hand", Revolute(), "arm::hand", "arm_hand")
    b.joint("x", Revolute(), "ground", "__x__")
    b.couple("gears", ["world", "x"], gear(3.0, 0.2), ["world"])
    b.frame("tool::tip", "knee", (1, 0, 0))
    b.contact("__heel__", "knee", (0, 1, 0))
    b.shape("knee", Sphere(0.1), name="x")
    b.shape("knee", Sphere(0.2), name="x")
    robot = b.build()
    found = again(robot, tmp_path)
    assert_same(robot, found)
    assert shapes_of(found) == shapes_of(robot)
    root = ET.fromstring((tmp_path / "saved.sdf").read_text())
    (model,) = root.iter("model")
    names = [str(element.get("name")) for element in model if element.tag in ("link", "joint", "frame")]
    assert len(set(names)) == len(names) and not any("::" in name or name.startswith("__") for name in names)


# Everything else


def test_elements_of_our_own_take_no_names_from_links_and_joints(tmp_path: Path) -> None:
    """Readers by the format's reference library want the attribute `name` to be unique in a model, whatever has it."""
    b = crank()
    b.body("arm", 1.0, (0, 0, 0.1), (0.02, 0.03, 0.01))
    b.joint("arm_joint", Revolute(axis=(0, 1, 0)), "ground", "arm", (1, 0, 0))
    b.actuator("arm", {"arm_joint": 2.0})
    b.keyframe("arm_joint", {"arm_joint": 0.3})
    robot = b.build()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        (model,) = ET.fromstring(sdf_text(robot, tmp_path)).iter("model")
    names = [part.get("name") for part in model if part.get("name")]
    assert len(set(names)) == len(names)
    found = again(robot, tmp_path)
    assert found.actuator_names == ["arm"] and list(found.keyframes) == ["arm_joint"]


def test_everything_of_a_robot_comes_back(tmp_path: Path) -> None:
    mesh = tmp_path / "crank.stl"
    mesh.write_bytes(b"")
    robot = everything(mesh).build()
    found = again(robot, tmp_path)
    assert_same(robot, found)
    ground = [shape for shape in found.shapes if shape.body == "ground"]
    assert sorted(map(str, shapes_of(found))) == sorted(map(str, shapes_of(robot))) and len(ground) == 1
    crank = next(shape.geometry for shape in found.shapes if isinstance(shape.geometry, Mesh))
    assert crank.path == mesh.resolve()
    np.testing.assert_array_equal(crank.scale, (1, 2, 1))
    for name, body in robot.bodies.items():
        for frame, X in body.frames.items():
            assert gap(found.bodies[name].frames[frame].matrix(), X.matrix()) < 1e-15
        for point, at in body.contacts.items():
            np.testing.assert_allclose(found.bodies[name].contacts[point], at, atol=1e-15)
    for one, two in zip(robot.keyframes["bent"], found.keyframes["bent"], strict=True):
        np.testing.assert_allclose(two, one, atol=1e-12)
    figures = ("first", "second", "stiffness", "free_length", "pretension", "damping")
    assert [[getattr(spring, figure) for figure in figures] for spring in found.elements] == [
        [getattr(spring, figure) for figure in figures] for spring in robot.elements
    ]


def test_a_robot_over_a_floor(tmp_path: Path) -> None:
    robot = robots.load("four_bar").with_floor(0.7, -0.5)
    found = again(robot, tmp_path)
    (floor,) = [shape for shape in found.shapes if shape.body == "ground"]
    assert (floor.name, floor.friction, floor.group, floor.meets) == ("floor", 0.7, 1, -1)


def test_a_model_that_stands_for_itself_can_be_included(tmp_path: Path) -> None:
    """Without gravity of its own and shapes of the ground it needs no world."""
    robot = robots.load("slider_crank")
    save(robot, tmp_path / "inner.sdf")
    text = "<include><uri>inner.sdf</uri><name>{0}</name><pose>{1} 0 0 0 0 0</pose></include>"
    both = "".join(text.format(name, x) for x, name in enumerate(("left", "right")))
    (tmp_path / "two.sdf").write_text(f'<sdf version="1.11"><world name="w">{both}</world></sdf>')
    found = load(tmp_path / "two.sdf")
    assert found.nv == 2 * robot.nv and found.warnings == ()
    assert found.body_names == [f"{side}::{name}" for side in ("left", "right") for name in robot.body_names]


def test_rounded_robots_stay_rounded(tmp_path: Path) -> None:
    b = crank()
    b.joint("tilt", Fixed(), "ground", "post")
    b.body("post", 1.0, inertia=(1, 1, 1))
    b.loop("second", Revolute(axis=(1e-6, 0, 1)), "coupler", "rocker", (0.8, 0, 0), (0.7, 0, 0))
    robot = b.build(precision=1e-5)
    assert robot.precision == 1e-5 and robot.nv == 1
    found = again(robot, tmp_path)
    assert found.nv == 1
    assert ET.fromstring((tmp_path / "saved.sdf").read_text()).get("{urn:coupler}precision") == "1e-05"


def test_inertias_that_no_real_body_has(tmp_path: Path) -> None:
    """They come back; others read ones with which the robot moves in the same way, or are told of."""
    b = RobotBuilder("rotor")
    b.body("base", 5.0, inertia=(1, 1, 1))
    b.body("rotor", 0.1, inertia=(0, 0, 1e-3), ideal=True)
    b.body("nothing")
    b.body("tool", 1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("free", Free(), "ground", "base")
    b.joint("spin", Revolute(axis=(0, 0, 1)), "base", "rotor")
    b.joint("x", Prismatic(axis=(1, 0, 0)), "base", "nothing")
    b.joint("y", Prismatic(axis=(0, 1, 0)), "nothing", "tool")
    robot = b.build()
    assert_same(robot, reloaded(robot, tmp_path, ".sdf"))
    root = ET.fromstring((tmp_path / "saved.sdf").read_text())
    for inertial in root.iter("inertial"):
        moments = sorted(float(inertial.findtext(f"inertia/{tag}", "")) for tag in ("ixx", "iyy", "izz"))
        assert float(inertial.findtext("mass", "")) > 0 and moments[0] > 0 and moments[0] + moments[1] >= moments[2]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rod loop", "loop 'loop': SDFormat has no word for its kind, rod .* save the robot as .urdf"),
        ("planar loop", "loop 'loop': SDFormat has no word for its kind, planar"),
        ("locked rod", "SDFormat has no word for the locks of idle freedoms"),
        ("cam", "coupling 'cam': its function cannot be written to a file"),
    ],
)
def test_what_sdformat_cannot_say_is_refused(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=told):
        save(sample(name).robot, tmp_path / "robot.sdf")
    assert not list(tmp_path.iterdir())


def test_joints_that_sdformat_lacks_are_refused(tmp_path: Path) -> None:
    for kind, parent, told in (
        (Planar(), "ground", "joint 'j': SDFormat has no word for its kind, planar"),
        (Free(), "base", "joint 'j': SDFormat lets bodies float in the world only; save it as .urdf"),
    ):
        b = RobotBuilder("odd")
        b.body("base", 1.0, inertia=(1, 1, 1))
        b.body("other", 1.0, inertia=(1, 1, 1))
        b.joint("g", Revolute(), "ground", "base")
        b.joint("j", kind, parent, "other")
        with pytest.raises(ModelError, match=told):
            sdf_text(b.build(), tmp_path)
