"""Robots saved as MJCF: what stands in the file, what is refused, and how they move when they come back."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import robots
from coupler.io.mjcf.inertias import real_inertias
from coupler.io.mjcf.write import mjcf_text
from coupler.io.save import save
from coupler.mechanisms import polynomial
from coupler.model import (
    Cylinder,
    Fixed,
    Free,
    Joint,
    Mesh,
    ModelError,
    ModelWarning,
    Plane,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Rod,
    Spherical,
    Universal,
)
from coupler.spatial import Transform
from effort import every, sweep
from peers import gap
from random_robots import place, sample
from saved_robots import ODD, every_kind, everything, reloaded

HERE = Path()
LINK = {"mass": 1.0, "centre": (0.1, 0.2, 0.3), "inertia": (0.02, 0.03, 0.04)}
EXACT = 1e-12  # relative to the largest entry; 1e-14 is reached for trees, 3e-13 with loops
KINDS = ("fixed loop", "revolute loop", "spherical loop", "revolute loop afloat", "spherical loop afloat", "series")


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    """A tetrahedron."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    path = tmp_path / "crank.obj"
    faces = ("1 3 2", "1 2 4", "1 4 3", "2 3 4")
    path.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in points) + "".join(f"f {face}\n" for face in faces))
    return path


def single(kind: Joint, **options: Any) -> RobotBuilder:
    b = RobotBuilder("single")
    b.body("link", **LINK)
    b.joint("joint", kind, "ground", "link", **options)
    return b


def root_of(robot: Robot) -> ET.Element:
    return ET.fromstring(mjcf_text(robot, HERE))


def returned(robot: Robot, folder: Path) -> Robot:
    """A robot that MuJoCo has read; what is told on the way is of no matter here."""
    pytest.importorskip("mujoco", reason="MuJoCo is not installed (pip install mujoco)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return reloaded(robot, folder, ".xml")


def motion_gap(robot: Robot, folder: Path) -> float:
    """How differently all bodies fall after a robot has come back, whatever its coordinates are then.

    Named states carry the positions and velocities over. On the interpreter: the numbers are used but twice.
    """
    worst, states = 0.0, {str(seed): robot.random_state(seed) for seed in range(2)}
    again = returned(replace(robot, keyframes=states), folder).with_backend("interpreter")
    assert again.nv == robot.nv
    robot = robot.with_backend("interpreter")
    for name, (q, v) in states.items():
        falls = (robot, q, v), (again, *again.keyframes[name])
        accelerations = [coupler.forward_dynamics(one, x, y, np.zeros(one.nv)) for one, x, y in falls]
        for body in robot.bodies:
            found = [
                coupler.frame_acceleration(one, x, y, a, body, axes="world")
                for (one, x, y), a in zip(falls, accelerations, strict=True)
            ]
            worst = max(worst, gap(found[1], found[0]))
    return worst


# What comes back


@pytest.mark.parametrize("meets", [False, True])
@pytest.mark.parametrize("floating", [False, True])
def test_every_kind_of_joint_moves_as_before(meets: bool, floating: bool, tmp_path: Path) -> None:
    assert motion_gap(every_kind(np.random.default_rng(3), meets=meets, floating=floating), tmp_path) < EXACT


COUPLED = [*KINDS, "gear", "belt", "differential", "polynomial", "rack and pinion", "four-bar"]


@pytest.mark.parametrize("name", every(3, COUPLED))
def test_loops_and_couplings_hold_as_before(name: str, tmp_path: Path) -> None:
    assert motion_gap(sample(name).robot, tmp_path) < EXACT


BUNDLED = ("mini_cheetah", "mit_humanoid", "geared_chain", "belt_chain", "six_bar", "slider_crank")


@pytest.mark.parametrize("name", sweep(BUNDLED, ["mini_cheetah", "belt_chain", "six_bar"]))
def test_a_bundled_robot_moves_as_before(name: str, tmp_path: Path) -> None:
    assert motion_gap(robots.load(name), tmp_path) < EXACT


def test_everything_that_mjcf_has_a_word_for_comes_back(mesh: Path, tmp_path: Path) -> None:
    robot = everything(mesh).build()
    again = returned(robot, tmp_path)
    assert again.name == robot.name
    assert [joint for joint in again.joint_names if joint in robot.joint_names] == robot.joint_names
    knee, same = (next(joint for joint in one.joints if joint.name == ODD) for one in (robot, again))
    assert same.actuated
    for figure in ("stiffness", "rest", "friction", "armature", "effort_limit"):
        np.testing.assert_array_equal(getattr(same.kind, figure), getattr(knee.kind, figure))
    assert [type(shape.geometry) for shape in again.shapes if shape.body == "thigh"] == [
        type(shape.geometry) for shape in robot.shapes if shape.body == "thigh"
    ]
    spring = again.elements[0]
    assert (spring.name, spring.stiffness, spring.free_length, spring.damping) == ("calf", 50.0, 0.2, 0.5)
    X = robot.bodies[ODD].frames["tool"]
    assert gap(again.bodies[ODD].frames["tool"].matrix(), X.matrix()) < 1e-15
    (q, v), (p, w) = robot.keyframes["bent"], again.keyframes["bent"]
    for joint, position in robot.joint_positions(q).items():
        np.testing.assert_allclose(again.joint_positions(p)[joint], position, atol=1e-12)
        velocities = robot.joint_velocities(q, v)[joint], again.joint_velocities(p, w)[joint]
        np.testing.assert_allclose(*velocities, atol=1e-12)


def test_sites_of_loops_and_springs_do_not_multiply(tmp_path: Path) -> None:
    b = RobotBuilder("four_bar")
    for name in ("crank", "rod", "rocker"):
        b.body(name, 1.0, (0.1, 0, 0), (0.01, 0.02, 0.02))
    b.joint("a", Revolute(axis=(0, 1, 0)), "ground", "crank")
    b.joint("b", Revolute(axis=(0, 1, 0)), "crank", "rod", (0, 0, 0.3))
    b.joint("c", Revolute(axis=(0, 1, 0)), "ground", "rocker", (0.5, 0, 0))
    b.loop("pin", Spherical(), "rod", "rocker", (0.5, 0, 0), (0, 0, 0.3))
    b.spring("coil", "crank", "rocker", (0, 0, 0.2), (0, 0, 0.1), stiffness=10.0, free_length=0.4)
    once = reloaded(b.build(), tmp_path, ".xml")
    twice = reloaded(once, tmp_path, ".xml")
    assert once.frame_names == twice.frame_names == ["coil_1", "pin_1", "pin_2", "coil_2"]


def test_a_spring_with_pretension_pulls_as_before(tmp_path: Path) -> None:
    b = single(Free())
    b.spring("spring", "ground", "link", (0, 0, 1), stiffness=10.0, free_length=0.5, pretension=2.0)
    assert motion_gap(b.build(), tmp_path) < EXACT


# Inertias that MuJoCo refuses


def test_inertia_that_no_real_body_has_is_lent_over_hinges_and_slides(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    b = RobotBuilder("ideal")
    b.body("base", 5.0, (0.1, 0, 0), (0.5, 0.6, 0.7))
    b.body("rotor", 0.0, inertia=(0.0, 0.0, 0.01), ideal=True)
    b.body("cart", 1.0, (0, 0.1, 0), (0.0, 0.02, 0.0), ideal=True)
    b.body("point", 1.0, (0.1, 0.2, 0.3))
    b.joint("free", Free(), "ground", "base")
    b.joint("spin", Revolute(axis=(0, 0, 1)), "base", "rotor", place(rng), meets=Transform(np.eye(3), np.ones(3)))
    b.joint("slide", Prismatic(axis=(0, 0.6, 0.8)), "base", "cart", place(rng))
    b.joint("ball", Spherical(armature=0.1), "base", "point", place(rng))
    robot = b.build()
    lent = real_inertias(robot)
    assert np.abs(lent["base"].about_centre - robot.bodies["base"].inertia).max() > 1e-3
    for inertia in lent.values():
        least, middle, most = np.linalg.eigvalsh(inertia.about_centre)
        assert least > 0.0
        assert least + middle >= most * (1 - 1e-14)
    assert motion_gap(robot, tmp_path) < EXACT


def test_a_step_without_mass_between_two_joints_is_no_body_in_mjcf(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    b = RobotBuilder("steps")
    for name, weighs in (("arm", LINK), ("step", {}), ("bare", {}), ("hand", LINK)):
        b.body(name, **weighs)
    b.joint("one", Revolute(axis=(0, 0.6, 0.8)), "ground", "arm", place(rng))
    b.joint("two", Prismatic(axis=(0.6, 0, 0.8)), "arm", "step", place(rng), meets=place(rng))
    b.joint("three", Universal(first=(0, 0.6, 0.8)), "step", "bare", place(rng), meets=place(rng))
    b.joint("four", Revolute(axis=(0, 0, 1)), "bare", "hand", place(rng), meets=place(rng))
    robot = b.build()
    with pytest.warns(ModelWarning, match="not in MJCF: 2 bodies without mass between joints"):
        bodies = {body.get("name"): body for body in root_of(robot).iter("body")}
    assert list(bodies) == ["arm", "hand"]
    assert [joint.get("name") for joint in bodies["hand"].findall("joint")] == ["two", "three_1", "three_2", "four"]
    again, q = returned(robot, tmp_path), robot.random_state(1)[0]
    known = robot.joint_positions(q)
    first, second = known.pop("three")
    p = again.pack_q(known | {"three_1": first, "three_2": second})
    assert gap(coupler.mass_matrix(again, p), coupler.mass_matrix(robot, q)) < EXACT


def test_a_body_without_mass_that_has_a_frame_stays_and_hardly_weighs(tmp_path: Path) -> None:
    b = RobotBuilder("light")
    b.body("step")
    b.body("hand", **LINK)
    b.frame("eye", "step")
    b.joint("one", Revolute(axis=(0, 1, 0)), "ground", "step")
    b.joint("two", Revolute(axis=(1, 0, 0)), "step", "hand", (0.1, 0, 0))
    robot = b.build()
    assert real_inertias(robot)["step"].mass == 1e-15
    assert motion_gap(robot, tmp_path) < EXACT


def test_a_body_without_mass_is_let_be_where_something_heavy_is_welded_to_it() -> None:
    b = RobotBuilder("light")
    b.body("step")
    b.body("hand", **LINK)
    b.joint("one", Revolute(axis=(0, 1, 0)), "ground", "step")
    b.joint("two", Fixed(), "step", "hand", (0.1, 0, 0))
    assert list(real_inertias(b.build())) == ["hand"]


def test_an_inertia_that_cannot_be_lent_is_changed_and_told() -> None:
    with pytest.warns(
        ModelWarning, match=r"MuJoCo accepts no principal moments .*'right_wrist_r_rotor' \(.*\.urdf keeps"
    ):
        mjcf_text(robots.load("jvrc1"), HERE)
    b = RobotBuilder("loose")
    b.body("link", 1.0, inertia=(0.1, 0.1, 1), ideal=True)
    b.joint("joint", Free(), "ground", "link")
    robot = b.build()
    with pytest.warns(ModelWarning, match=r"as those of 'link' \(0\.1, 0\.1, 1; saved as 0\.5, 0\.5, 1\), kg m²"):
        assert 'diaginertia="0.5' in mjcf_text(robot, HERE)


def test_an_inertia_is_mended_where_digits_are_all_that_it_lacks() -> None:
    b = RobotBuilder("plate")
    b.body("plate", 1.0, inertia=(0.1, 0.2, 0.1 + 0.2 + 5e-17))
    b.joint("joint", Free(), "ground", "plate")
    inertia = real_inertias(b.build())["plate"].about_centre
    assert inertia[0, 0] + inertia[1, 1] >= inertia[2, 2]
    assert np.abs(inertia - np.diag([0.1, 0.2, 0.3])).max() < 1e-13


# What stands in the file


def test_a_ball_that_is_turned_against_its_body_has_a_carrier_with_its_axes(tmp_path: Path) -> None:
    robot = single(Spherical(), meets=place(np.random.default_rng(0))).build()
    carrier, link = root_of(robot).iter("body")
    assert (carrier.get("name"), link.get("name")) == ("link_carrier", "link")
    assert carrier.find("joint") is not None
    assert motion_gap(robot, tmp_path) < EXACT


def test_names_are_escaped_and_bodies_in_bodies(mesh: Path) -> None:
    with pytest.warns(ModelWarning, match="not in MJCF"):
        root = root_of(everything(mesh).build())
    base = root.find("worldbody/body")
    assert base is not None
    assert [body.get("name") for body in base.iter("body")] == ["base", "thigh", ODD, "rotor", "crank", "rod"]


def test_a_mesh_without_a_file_is_told_and_left_out(tmp_path: Path) -> None:
    b = single(Revolute())
    b.shape("link", Mesh(tmp_path / "missing.stl"))
    b.shape("link", Cylinder(0.1, 0.2))
    robot = b.build()
    with pytest.warns(ModelWarning, match="not in MJCF: 1 mesh without a file that MuJoCo reads"):
        root = root_of(robot)
    assert [geom.get("type") for geom in root.iter("geom")] == ["cylinder"]
    assert root.find("asset") is None


def test_what_mjcf_has_no_word_for_is_told_at_once(mesh: Path) -> None:
    told = "1 velocity limit of a joint, 1 start position of a joint, 1 mark of an independent joint"
    with pytest.warns(ModelWarning, match=f"robot 'everything & more': not in MJCF: {told}") as found:
        mjcf_text(everything(mesh).build(), HERE)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Revolute(lower=0.0, upper=0.0), "1 limit of a joint that cannot move"),
        (Prismatic(effort_limit=0.0), "1 effort limit of zero"),
    ],
)
def test_limits_that_mujoco_takes_for_none_are_told(kind: Joint, told: str) -> None:
    with pytest.warns(ModelWarning, match=f"not in MJCF: {told}"):
        (joint,) = root_of(single(kind).build()).iter("joint")
    assert joint.get("range") is None and joint.get("actuatorfrcrange") is None


def test_joints_in_another_order_are_told() -> None:
    """MuJoCo counts joints depth first, along each branch to its end."""
    b = RobotBuilder("branches")
    for name in ("left", "right", "hand"):
        b.body(name, **LINK)
    b.joint("one", Revolute(), "ground", "left")
    b.joint("two", Revolute(), "ground", "right")
    b.joint("three", Revolute(), "left", "hand")
    with pytest.warns(ModelWarning, match="its joints come depth first: 'one', 'three', 'two'"):
        mjcf_text(b.build(), HERE)


def test_a_plane_on_a_body_that_moves_is_told_and_left_out() -> None:
    b = single(Revolute())
    b.shape("link", Plane())
    b.shape("ground", Plane())
    with pytest.warns(ModelWarning, match="1 plane on a body that moves"):
        root = root_of(b.build())
    assert len(list(root.iter("geom"))) == 1


# What is refused


def test_a_loop_that_mujoco_has_no_equality_for_is_refused(tmp_path: Path) -> None:
    b = single(Spherical())
    b.loop("strut", Rod(0.3), "ground", "link", (0, 0.1, 0.2), (0, 0, 0.3))
    with pytest.raises(ModelError, match=r"loop 'strut': MJCF has .* no rod loops; save the robot as \.urdf"):
        save(b.build(), tmp_path / "robot.xml")
    assert not list(tmp_path.iterdir())


def test_a_coupling_of_a_high_degree_is_refused() -> None:
    b, joints = RobotBuilder("coupled"), ["j0", "j1"]
    for i in range(2):
        b.body(f"b{i}", **LINK)
        b.joint(f"j{i}", Revolute(), "ground", f"b{i}")
    b.couple("cam", joints, polynomial([0, 1, 0, 0, 0, 2.0]), ["j0"])
    with pytest.raises(ModelError, match=r"coupling 'cam': its polynomial has degree 5, and MJCF allows at most 4"):
        mjcf_text(b.build(), HERE)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (Spherical(damping=(1, 2, 3)), "damping"),
        (Spherical(stiffness=1.0, rest=(0, 1, 0, 0)), "rest"),
        (Free(armature=1.0), "armature"),
        (Free(damping=(1, 1, 1, 2, 2, 2)), "damping"),
    ],
)
def test_figures_that_differ_from_axis_to_axis_are_refused(kind: Joint, word: str) -> None:
    with pytest.raises(ModelError, match=f"joint 'joint': MJCF cannot express the {word} of this {kind.kind} joint"):
        mjcf_text(single(kind).build(), HERE)


@pytest.mark.parametrize("stiffness", [0.0, 1.0])
def test_a_spring_that_pulls_at_any_length_is_refused(stiffness: float) -> None:
    b = single(Free())
    b.spring("coil", "ground", "link", (0, 0, 1), stiffness=stiffness, free_length=0.5, pretension=2.0)
    with pytest.raises(ModelError, match="spring 'coil': its pretension of 2 N pulls at any length"):
        mjcf_text(b.build(), HERE)


def test_a_body_named_world_is_renamed_and_told() -> None:
    b = RobotBuilder("robot")
    b.body("world", **LINK)
    b.joint("joint", Revolute(), "ground", "world")
    with pytest.warns(ModelWarning, match="body 'world' is 'world_body' in MJCF, which reserves its name"):
        assert '<body name="world_body"' in mjcf_text(b.build(), HERE)


def test_a_tower_of_bodies_is_refused() -> None:
    with pytest.raises(ModelError, match=r"hangs on 481 others in a row; MuJoCo reads 480"):
        mjcf_text(robots.load("geared_chain", links=500), HERE)
