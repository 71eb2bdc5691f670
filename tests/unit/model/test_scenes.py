"""Robots made of robots, free objects, and what stands in the world."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler import ModelError, ModelWarning, Robot, RobotBuilder, Simulation
from coupler.contact.collision.faces import Faces
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    Geometry,
    HeightField,
    Held,
    Hull,
    Mesh,
    Plane,
    Prismatic,
    Revolute,
    Sphere,
)
from coupler.model.solids import solid_of
from coupler.rotation import about_z
from coupler.spatial import Transform
from random_robots import sample

X, Y, Z = np.eye(3)
BOX = Hull([(x, y, z) for x in (-0.1, 0.3) for y in (0.0, 0.2) for z in (-0.5, 0.1)])


# Attaching


@pytest.mark.parametrize("name", coupler.robots.names())
def test_a_robot_under_other_names_moves_as_it_did(name: str) -> None:
    robot = coupler.robots.load(name)
    b = RobotBuilder("scene", robot.gravity)
    b.attach(robot, "a/")
    scene = b.build()
    q, v = robot.random_state(3)
    assert scene.joint_names == [f"a/{joint}" for joint in robot.joint_names]
    assert np.array_equal(coupler.mass_matrix(scene, q), coupler.mass_matrix(robot, q))
    assert np.array_equal(coupler.bias_force(scene, q, v), coupler.bias_force(robot, q, v))


@pytest.mark.parametrize(
    ("one", "other"), [("revolute loop", "series"), ("parallel", "locked rod"), ("geared loop", "nested")]
)
def test_random_robots_side_by_side_do_not_see_each_other(one: str, other: str) -> None:
    first, second = sample(one).robot, sample(other).robot
    b = RobotBuilder("scene", first.gravity)
    b.attach(first, "1/")
    b.attach(second, "2/")
    scene = b.build()
    states = [robot.random_state(1)[0] for robot in (first, second)]
    positions = [robot.joint_positions(q) for robot, q in zip((first, second), states, strict=True)]
    q = scene.pack_q({f"{i}/{joint}": p for i, own in enumerate(positions, 1) for joint, p in own.items()})
    H, nv = coupler.mass_matrix(scene, q), first.nv
    assert scene.nv == nv + second.nv
    assert H[:nv, :nv] == pytest.approx(coupler.mass_matrix(first, states[0]), abs=1e-8)
    assert H[nv:, nv:] == pytest.approx(coupler.mass_matrix(second, states[1]), abs=1e-8)
    assert not H[:nv, nv:].any()


def arm() -> Robot:
    b = RobotBuilder("arm")
    b.body("link", 2.0, (0.2, 0, 0), (0.01, 0.1, 0.1))
    b.joint("shoulder", Revolute(axis=Y, lower=-2, upper=2), "ground", "link", at=(0, 0, 0.5))
    b.frame("flange", "link", at=(0.4, 0, 0))
    b.keyframe("up", {"shoulder": -1.0}, {"shoulder": 0.5})
    return b.build()


def gripper() -> Robot:
    """Two jaws on a rail, coupled, with a spring to the ground; all that a robot can have."""
    b = RobotBuilder("gripper")
    for side, sign in (("left", 1.0), ("right", -1.0)):
        b.body(f"{side} jaw", 0.1, inertia=(1e-4, 1e-4, 1e-4))
        b.joint(f"{side} slide", Prismatic(axis=sign * Y), "ground", f"{side} jaw", at=(0.05, 0, 0))
        b.shape(f"{side} jaw", Box((0.04, 0.01, 0.02)), name=f"{side} pad")
        b.contact(f"{side} tip", f"{side} jaw", at=(0.02, 0, 0))
    b.couple("gear", ["left slide", "right slide"], lambda x: [x[0], x[0]], ["left slide"])
    b.body("lever", 0.05, inertia=(1e-5, 1e-5, 1e-5))
    b.joint("pivot", Revolute(axis=Z), "ground", "lever", at=(-0.02, 0, 0))
    b.loop("slot", Held([[0, 0, 0, 0, 1, 0]]), "left jaw", "lever", meets=(0.07, 0, 0))
    b.spring("return", "ground", "left jaw", at=(0, 0.1, 0), stiffness=10.0)
    b.shape("ground", Box((0.02, 0.1, 0.04)), name="palm")
    b.exclude("left jaw", "ground")
    b.keyframe("open", {"left slide": 0.01})
    return b.build()


def test_a_gripper_on_an_arm_is_where_and_what_it_should_be() -> None:
    """Beside the same robot, described part by part."""
    place = Transform(about_z(0.3).T, np.array([0.4, 0.0, 0.05]))
    tool = gripper()
    b = RobotBuilder("cell")
    b.attach(arm())
    b.attach(tool, "tool/", to="link", at=place)
    cell = b.build()
    assert cell.nv == 1 + tool.nv
    assert ("link", "tool/left jaw") in cell.exclusions
    assert {shape.name: shape.body for shape in cell.shapes}["tool/palm"] == "link"
    assert {*cell.keyframes} == {"up", "tool/open"}
    q, v = cell.keyframes["up"]
    assert (q[cell.q_slice("shoulder")], v[cell.v_slice("shoulder")]) == (-1.0, 0.5)
    alone, mounted = tool.keyframes["open"][0], cell.keyframes["tool/open"][0]
    on_arm = coupler.frame_pose(cell, mounted, "link")
    expected = on_arm @ np.block([[place.E.T, place.r[:, None]], [np.zeros(3), 1.0]])
    for frame in ("left tip", "right jaw", "lever"):
        found = coupler.frame_pose(cell, mounted, f"tool/{frame}")
        assert found == pytest.approx(expected @ coupler.frame_pose(tool, alone, frame), abs=1e-12)
    still = cell.with_gravity((0, 0, 0))
    at_rest = coupler.potential_energy(still, mounted)
    assert at_rest == pytest.approx(coupler.potential_energy(tool.with_gravity((0, 0, 0)), alone), abs=1e-12)


def test_a_base_that_floats_starts_at_its_place_and_keeps_its_coordinates() -> None:
    cheetah = coupler.robots.load("mini_cheetah")
    b = RobotBuilder("pair")
    b.attach(cheetah, "a/", at=(0, 1, 0.3))
    b.attach(cheetah, "b/", at=(2, 0, 0.3), turned=about_z(np.pi / 2))
    pair = b.build()
    start = pair.joint_positions(pair.neutral())
    assert start["a/floating_base"] == pytest.approx([0, 1, 0.3, 1, 0, 0, 0])
    assert start["b/floating_base"] == pytest.approx([2, 0, 0.3, np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    pose = coupler.frame_pose(pair, pair.neutral(), "b/Floating Base")
    assert pose[:3, 3] == pytest.approx([2, 0, 0.3])
    assert pose[:3, 0] == pytest.approx(Y, abs=1e-15)


def test_names_that_are_taken_are_told_and_nothing_is_added() -> None:
    b = RobotBuilder("cell")
    b.attach(arm())
    taken = r"name '{}' is taken already, by robot 'arm'; .*: attach it with {} prefix$"
    with pytest.raises(ModelError, match=taken.format("link", "a")):
        b.attach(arm())
    b.attach(arm(), "second/")
    with pytest.raises(ModelError, match=taken.format("second/link", "another")):
        b.attach(arm(), "second/")
    assert b.build().body_names == ["link", "second/link"]
    with pytest.raises(ModelError, match=r"robot must be a Robot, .*got 'arm'"):
        b.attach("arm")  # type: ignore[arg-type]
    b.attach(gripper(), "tool/", to="hand")
    with pytest.raises(ModelError, match=r"there is no body 'hand'|'hand'"):
        b.build()


# Objects


def within(form: Geometry, x: np.ndarray) -> np.ndarray:
    """Which points are inside of a form, (n,)."""
    match form:
        case Box():
            return (np.abs(x) < form.size / 2).all(axis=1)
        case Ellipsoid():
            return np.linalg.norm(x / form.radii, axis=1) < 1.0
        case Cylinder():
            return (np.hypot(x[:, 0], x[:, 1]) < form.radius) & (np.abs(x[:, 2]) < form.length / 2)
        case Capsule():
            beyond = np.maximum(np.abs(x[:, 2]) - form.length / 2, 0.0)
            return x[:, 0] ** 2 + x[:, 1] ** 2 + beyond**2 < form.radius**2
        case Hull():
            middle = form.vertices.mean(axis=0)
            faces = Faces.of(form.vertices - middle)
            sides = zip(faces.normals, faces.polygons, strict=True)
            return np.all([(x - middle - polygon[0]) @ normal < 0.0 for normal, polygon in sides], axis=0)
    assert isinstance(form, Sphere)
    return np.linalg.norm(x, axis=1) < form.radius


@pytest.mark.parametrize(
    "form",
    [
        Sphere(0.1),
        Capsule(0.1, 0.3),
        Cylinder(0.1, 0.3),
        Box((0.1, 0.2, 0.4)),
        Ellipsoid((0.1, 0.2, 0.3)),
        BOX,
        Hull(np.random.default_rng(1).normal(size=(30, 3))),
    ],
    ids=lambda form: type(form).__name__,
)
def test_solids_weigh_what_sampling_their_volume_says(form: Geometry) -> None:
    r = 0.52 if form is BOX else 3.0 if isinstance(form, Hull) else 0.4
    x = np.random.default_rng(0).uniform(-r, r, (1_000_000, 3))
    own = x[within(form, x)]
    mass, centre, inertia = solid_of("thing", form, density=1.0)
    assert mass == pytest.approx(len(own) / len(x) * (2 * r) ** 3, rel=0.05 if len(own) < 20_000 else 0.02)
    own, size = own - centre, np.abs(own - centre).max()
    assert np.abs(own.mean(axis=0)).max() < 0.02 * size
    second = own.T @ own / len(own)
    assert inertia / mass == pytest.approx(np.trace(second) * np.eye(3) - second, abs=0.01 * size**2)


def test_a_hull_that_is_a_box_weighs_exactly_as_much() -> None:
    mass, centre, inertia = solid_of("box", BOX, density=700.0)
    box, _, moments = solid_of("box", Box((0.4, 0.2, 0.6)), density=700.0)
    assert mass == pytest.approx(box, rel=1e-14)
    assert centre == pytest.approx([0.1, 0.1, -0.2], abs=1e-15)
    assert inertia == pytest.approx(moments, abs=1e-13)
    assert solid_of("box", BOX, mass=2.0)[2] == pytest.approx(moments * 2.0 / mass, abs=1e-13)


@pytest.mark.parametrize(
    ("geometry", "more", "message"),
    [
        (Plane(), {}, "object 'thing': a Plane cannot move by itself: give it to the ground"),
        (HeightField(np.zeros((2, 2)), (1, 1)), {}, "a HeightField cannot move by itself"),
        (Sphere(1.0), {"mass": 0.0}, "object 'thing': its mass must be above zero"),
        (Sphere(1.0), {"density": -1.0}, "object 'thing': its density"),
        (Mesh(Path("nowhere.stl")), {}, r"nowhere\.stl"),
    ],
)
def test_objects_that_cannot_be_are_refused(geometry: Geometry, more: dict[str, float], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        RobotBuilder("scene").object("thing", geometry, **more)  # type: ignore[arg-type]


def test_an_object_whose_name_is_taken_leaves_nothing_behind() -> None:
    b = RobotBuilder("scene")
    b.attach(arm())
    for name in ("link", "shoulder"):
        with pytest.raises(ModelError, match=rf"the name '{name}' is taken already.*choose another for an object"):
            b.object(name, Sphere(0.1))
    assert b.build().body_names == ["link"]


def test_objects_fall_and_lie_where_they_should() -> None:
    b = RobotBuilder("things")
    b.floor(friction=0.6)
    b.shape("ground", Box((0.5, 0.5, 0.2)), at=(2, 0, 0.1), name="table")
    b.object("ball", Sphere(0.05), at=(0, 0, 0.06), mass=0.2)
    b.object("crate", Box((0.2, 0.2, 0.1)), at=(2, 0, 0.26))
    b.object("stone", BOX, at=(1, 0, 0.51), density=500.0)
    scene = b.build()
    assert scene.mass == pytest.approx(0.2 + 4.0 + 500.0 * 0.048)
    simulation = Simulation(scene)
    simulation.run(0.5)
    heights = [simulation.q[scene.q_slice(name)][2] for name in ("ball", "crate", "stone")]
    assert heights == pytest.approx([0.05, 0.25, 0.5], abs=1e-6)
    assert simulation.contact_forces.sum(axis=0)[2] == pytest.approx(scene.mass * 9.81, rel=1e-6)


# Obstacles and terrain


def test_obstacles_and_terrain_are_added_to_a_robot() -> None:
    b = RobotBuilder("ball")
    b.object("ball", Sphere(0.1), at=(0, 0, 0.5), mass=1.0)
    ball = b.build()
    hill = ball.with_terrain(np.full((3, 3), 0.2), (2, 2), friction=0.3)
    assert [(shape.name, shape.friction) for shape in hill.shapes] == [("ball", None), ("terrain", 0.3)]
    wall = ball.with_floor().with_shape("wall", Box((0.1, 1, 1)), at=(0.3, 0, 0.5)).with_floor(height=-1.0)
    assert [shape.name for shape in wall.shapes] == ["ball", "floor", "wall", "floor2"]
    for robot, height in ((hill, 0.3), (wall, 0.1)):
        simulation = Simulation(robot)
        simulation.run(1.0)
        assert simulation.q[2] == pytest.approx(height, abs=1e-6)
    for name, body, message in (
        ("wall", "ground", "there is a shape 'wall' already"),
        ("w", "leg", "there is no body 'leg'"),
    ):
        with pytest.raises(ModelError, match=message):
            wall.with_shape(name, Sphere(0.1), body=body)


def test_bodies_that_are_excluded_do_not_touch() -> None:
    b = RobotBuilder("ghosts")
    b.floor()
    b.object("one", Sphere(0.1), at=(0, 0, 0.1))
    b.object("other", Sphere(0.1), at=(0.05, 0, 0.1))
    b.exclude("other", "one")
    robot = b.build()
    assert robot.exclusions == (("one", "other"),)
    assert {name.split(",")[0] for name in Simulation(robot).contacts} == {"one on floor", "other on floor"}
    b.exclude("one", "nobody")
    with pytest.raises(ModelError, match="an exclusion: there is no body 'nobody'"):
        b.build()


# Files


@pytest.fixture
def scene() -> Robot:
    b = RobotBuilder("scene")
    b.floor(friction=0.8)
    b.terrain(np.random.default_rng(2).normal(size=(4, 6)) * 0.02, (3, 2), at=(5, 0, 0.1), friction=0.7)
    b.attach(coupler.robots.load("mini_cheetah"), "dog/", at=(0, 0, 0.45), turned=about_z(1.0))
    b.object("ball", Sphere(0.05), at=(5, 0, 0.6), mass=0.2)
    b.object("stone", BOX, at=(0, 2, 0.51), friction=0.3)
    b.exclude("ball", "stone")
    b.exclude("dog/Floating Base", "ground")
    return b.build()


@pytest.mark.parametrize(("suffix", "precision"), [(".xml", 1e-7), (".sdf", 0.0)])  # MuJoCo's heights are float32
def test_a_scene_is_saved_and_read_again(suffix: str, precision: float, scene: Robot, tmp_path: Path) -> None:
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    found = coupler.load(scene.save(tmp_path / f"scene{suffix}"))
    assert found.exclusions == scene.exclusions
    start = found.joint_positions(found.neutral())
    for joint, position in scene.joint_positions(scene.neutral()).items():
        assert start[joint] == pytest.approx(position, abs=1e-15)
    assert {name: {*body.contacts} for name, body in found.bodies.items()} == {
        name: {*body.contacts} for name, body in scene.bodies.items()
    }
    kinds = {shape.name: (type(shape.geometry), shape.body, shape.friction or 1.0) for shape in found.shapes}
    assert kinds == {shape.name: (type(shape.geometry), shape.body, shape.friction or 1.0) for shape in scene.shapes}
    fields = [next(shape for shape in robot.shapes if shape.name == "terrain") for robot in (scene, found)]
    tops = [shape.geometry.heights + shape.at.r[2] for shape in fields]  # type: ignore[attr-defined]
    assert tops[1] == pytest.approx(tops[0], abs=precision + 1e-15)
    runs = [Simulation(robot) for robot in (scene, found)]
    for run in runs:
        run.run(0.05)
    ends = [run.robot.joint_positions(run.q) for run in runs]
    for joint, position in ends[0].items():
        assert ends[1][joint] == pytest.approx(position, abs=1e-6 if precision else 1e-11)


def test_urdf_keeps_exclusions_and_refuses_forms_that_it_has_no_words_for(scene: Robot, tmp_path: Path) -> None:
    b = RobotBuilder("arm")
    b.attach(arm())
    b.body("hand", 1.0, inertia=(1, 1, 1))
    b.joint("wrist", Fixed(), "link", "hand")
    b.exclude("hand", "ground")
    robot = b.build()
    assert coupler.load(robot.save(tmp_path / "arm.urdf")).exclusions == (("ground", "hand"),)
    for name in ("terrain", "stone"):
        shape = next(shape for shape in scene.shapes if shape.name == name)
        with pytest.raises(ModelError, match=r"no words for a (height field|hull); save the robot as .sdf or .xml"):
            robot.with_shape("odd", shape.geometry).save(tmp_path / "odd.urdf")


def test_an_srdf_beside_a_urdf_says_what_does_not_touch(tmp_path: Path) -> None:
    links = "".join(
        f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
        f'<collision><geometry><sphere radius="0.1"/></geometry></collision></link>'
        for name in "abc"
    )
    joints = "".join(
        f'<joint name="{child}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>'
        for parent, child in ("ab", "bc")
    )
    (tmp_path / "robot.urdf").write_text(f'<robot name="r">{links}{joints}</robot>')
    pairs = [("a", "c", "Never"), ("b", "gone", "User")]
    text = "".join(f'<disable_collisions link1="{a}" link2="{b}" reason="{why}"/>' for a, b, why in pairs)
    (tmp_path / "robot.srdf").write_text(f'<robot name="r"><group name="all"/>{text}</robot>')
    with pytest.warns(ModelWarning, match="1 <disable_collisions> with unknown links left out"):
        robot = coupler.load(tmp_path / "robot.urdf")
    assert robot.exclusions == (("a", "c"),)
    assert "1 pair of links do not touch, by robot.srdf" in robot.remarks


def test_rules_of_an_srdf_that_are_not_kept_are_told(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text('<robot name="r"><link name="a"/></robot>')
    path.with_suffix(".srdf").write_text('<robot name="r"><disable_default_collisions link="a"/></robot>')
    with pytest.warns(ModelWarning, match=r"robot\.srdf: 1 rule by <disable_default_collisions>"):
        coupler.load(path)


def test_what_floats_needs_no_prefix_of_its_own(scene: Robot) -> None:
    assert [joint.name for joint in scene.joints if isinstance(joint.kind, Free)] == [
        "dog/floating_base",
        "ball",
        "stone",
    ]
