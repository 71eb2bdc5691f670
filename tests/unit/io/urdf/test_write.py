"""Robots saved as URDF, and loaded again: the same robots."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler import robots
from coupler.io.save import save
from coupler.io.urdf.write import urdf_text
from coupler.io.writing import rpy_of
from coupler.mechanisms import FourBar, Linear
from coupler.model import Fixed, Helical, Mesh, ModelError, Planar, Prismatic, Revolute, Robot, RobotBuilder, Sphere
from coupler.rotation import about_axis, from_euler
from effort import every, sweep
from peers import gap
from random_robots import ROBOTS, Rng, sample, unit
from saved_robots import ODD, dynamics_gap, every_kind, everything, reloaded, shapes_of

FUNCTIONS = ("tello", "tello_with_arms", "geared loops", "cam", "implicit", "chain of couplings", "two for one")
EXACT = 1e-12  # relative to the largest entry; 3e-13 is needed where loops are near a singularity


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    path = tmp_path / "meshes" / "crank.stl"
    path.parent.mkdir()
    path.write_bytes(b"")
    return path


def assert_same(first: Robot, second: Robot) -> None:
    assert second.name == first.name
    assert (second.body_names, second.joint_names) == (first.body_names, first.joint_names)
    assert (second.frame_names, second.independent_joints) == (first.frame_names, first.independent_joints)
    assert second.actuated_joints == first.actuated_joints
    assert dynamics_gap(first, second) < EXACT


SHORT = (
    "mini_cheetah",
    "geared_chain",
    "belt_chain",
    "mit_humanoid_leg",
    "four_bar",
    "planar_leg_linkage",
    "rh5_manus",
)


@pytest.mark.parametrize("name", sweep([name for name in robots.names() if name not in FUNCTIONS], SHORT))
def test_a_bundled_robot_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    robot = robots.load(name)
    assert_same(robot, reloaded(robot, tmp_path))


@pytest.mark.parametrize("name", every(7, [name for name in ROBOTS if name not in FUNCTIONS]))
def test_a_random_robot_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    robot = sample(name).robot
    assert_same(robot, reloaded(robot, tmp_path))


@pytest.mark.parametrize("meets", [False, True])
def test_every_kind_of_joint_comes_back_with_its_figures(meets: bool, tmp_path: Path) -> None:
    robot = every_kind(np.random.default_rng(4), meets=meets)
    again = reloaded(robot, tmp_path)
    assert_same(robot, again)
    np.testing.assert_array_equal(again.gravity, robot.gravity)
    for one, two in zip(robot.joints, again.joints, strict=True):
        assert type(two.kind) is type(one.kind)
        for figure in ("stiffness", "rest", "damping", "friction", "armature", "lower", "upper"):
            np.testing.assert_array_equal(getattr(two.kind, figure), getattr(one.kind, figure), err_msg=figure)
        for figure in ("velocity_limit", "effort_limit"):
            np.testing.assert_array_equal(getattr(two.kind, figure), getattr(one.kind, figure), err_msg=figure)
        assert (one.meets is None) == (two.meets is None)


def test_figures_that_differ_from_axis_to_axis_stand_where_other_readers_do_not_look(tmp_path: Path) -> None:
    b = RobotBuilder("sledge")
    b.body("sledge", 1.0, inertia=(1, 1, 1))
    b.joint("plane", Planar(damping=(1, 2, 3), armature=4.0, upper=(5, np.inf, 6)), "ground", "sledge")
    (joint,) = ET.fromstring(urdf_text(b.build(), tmp_path)).iter("joint")
    found = {element.tag: element.attrib for element in joint}
    assert found["dynamics"] == {"damping": "0", "armature": "4"}
    assert found["joint_properties"] == {"damping": "1 2 3"}
    assert found["part"] == {"of": "plane", "kind": "planar", "upper": "5 1e+30 6"}
    assert "limit" not in found


def test_everything_of_a_robot_comes_back(mesh: Path, tmp_path: Path) -> None:
    robot = everything(mesh).build()
    again = reloaded(robot, tmp_path)
    assert_same(robot, again)
    assert shapes_of(again) == shapes_of(robot)
    for one, two in zip(robot.shapes, again.shapes, strict=True):
        assert gap(two.at.matrix(), one.at.matrix()) < 1e-15
    crank = again.shapes[-1].geometry
    assert isinstance(crank, Mesh)
    assert crank.path == mesh.resolve()
    np.testing.assert_array_equal(crank.scale, (1, 2, 1))
    for name, body in robot.bodies.items():
        assert gap(again.bodies[name].inertia, body.inertia) < 1e-15
        for frame, X in body.frames.items():
            assert gap(again.bodies[name].frames[frame].matrix(), X.matrix()) < 1e-15
        for point, at in body.contacts.items():
            np.testing.assert_allclose(again.bodies[name].contacts[point], at, atol=1e-15)
    for one, two in zip(robot.keyframes["bent"], again.keyframes["bent"], strict=True):
        np.testing.assert_allclose(two, one, atol=1e-12)
    assert [joint.independent for joint in again.joints] == [joint.independent for joint in robot.joints]
    np.testing.assert_array_equal(again.joints[5].start, [-0.3])
    figures = ("first", "second", "stiffness", "free_length", "pretension", "damping")
    assert [[getattr(spring, figure) for figure in figures] for spring in again.elements] == [
        [getattr(spring, figure) for figure in figures] for spring in robot.elements
    ]


def test_saving_what_was_loaded_gives_the_same_file(mesh: Path, tmp_path: Path) -> None:
    first = save(everything(mesh).build(), tmp_path / "saved.urdf").read_text()
    again = reloaded(everything(mesh).build(), tmp_path)
    second = save(again, tmp_path / "again.urdf").read_text()
    words = [[element.tag, element.get("name")] for element in ET.fromstring(first).iter()]
    assert [[element.tag, element.get("name")] for element in ET.fromstring(second).iter()] == words


def test_meshes_count_from_the_folder_of_the_file(mesh: Path, tmp_path: Path) -> None:
    robot, elsewhere = everything(mesh).build(), tmp_path / "a" / "b"
    elsewhere.mkdir(parents=True)
    for folder, path in ((tmp_path, "meshes/crank.stl"), (elsewhere, "../../meshes/crank.stl")):
        root = ET.fromstring(urdf_text(robot, folder))
        assert {element.get("filename") for element in root.iter("mesh")} == {path}


def test_names_are_escaped_and_joints_of_a_chain_have_names_of_their_own(tmp_path: Path) -> None:
    b = RobotBuilder("chain")
    for name in ("a", "screw_1", "screw_2"):
        b.body(name, 1.0, inertia=(1, 1, 1))
    b.joint("screw", Helical(pitch=0.1), "ground", "a")
    b.joint("screw_1", Revolute(), "a", "screw_1")
    b.joint(ODD, Revolute(), "screw_1", "screw_2")
    robot = b.build()
    names = [joint.get("name") for joint in ET.fromstring(urdf_text(robot, tmp_path)).iter("joint")]
    assert names == ["screw__1", "screw_2", "screw_1", ODD]
    assert_same(robot, reloaded(robot, tmp_path))


def test_a_body_fixed_to_the_ground_is_the_root_and_a_ground_with_more_on_it_is_a_link(tmp_path: Path) -> None:
    def arm(name: str) -> RobotBuilder:
        b = RobotBuilder("arm")
        b.body("base", 1.0, inertia=(1, 1, 1))
        b.body("link", 1.0, inertia=(1, 1, 1))
        b.joint(name, Fixed(), "ground", "base")
        b.joint("hinge", Revolute(), "base", "link")
        return b

    plain, named, busy = arm("ground_to_base"), arm("bolts"), arm("ground_to_base")
    busy.shape("ground", Sphere(0.1))
    for builder, links in (
        (plain, ["base", "link"]),
        (named, ["ground", "base", "link"]),
        (busy, ["ground", "base", "link"]),
    ):
        robot = builder.build()
        assert [link.get("name") for link in ET.fromstring(urdf_text(robot, tmp_path)).iter("link")] == links
        assert_same(robot, reloaded(robot, tmp_path))


# Couplings


def pair(function: Callable[[Any], Any], independent: list[str], count: int = 2) -> Robot:
    b = RobotBuilder("pair")
    for i in range(count):
        b.body(f"b{i}", 1.0, inertia=(1, 1, 1))
        b.joint(f"j{i}", Prismatic() if i else Revolute(), "ground", f"b{i}")
    b.couple("relation", [f"j{i}" for i in range(count)], function, independent)
    return b.build()


def test_a_function_that_is_linear_is_written_as_such(tmp_path: Path) -> None:
    again = reloaded(pair(lambda y: np.array([y[0], 0.25 - 3.0 * y[0]]), ["j0"]), tmp_path)
    function = again.couplings[0].function
    assert isinstance(function, Linear)
    np.testing.assert_allclose(function.G, [[1], [-3]], rtol=1e-15)
    np.testing.assert_array_equal(function.offset, [0, 0.25])


@pytest.mark.parametrize("suffix", [".urdf", ".sdf"])
def test_a_joint_that_depends_on_another_by_nothing_stands_still(suffix: str, tmp_path: Path) -> None:
    robot = pair(lambda y: np.array([y[0], 0.25 + 0.0 * y[0]]), ["j0"])
    again = reloaded(robot, tmp_path, suffix)
    assert again.independent_joints == ["j0"] and again.joint_positions(again.pack_q({"j0": 0.7}))["j1"] == 0.25
    assert dynamics_gap(robot, again) < 1e-12


def test_a_linear_equation_is_solved_for_a_dependent_joint(tmp_path: Path) -> None:
    robot = pair(lambda q: np.array([2.0 * q[0] - 4.0 * q[1] + q[2] - 1.0]), [], 3)
    again = reloaded(robot, tmp_path)
    assert again.couplings[0].solved
    assert_same(robot, again)


@pytest.mark.parametrize(
    "function", [lambda q: np.array([q[1] - np.sin(q[0])]), lambda q: np.array([q[1] - abs(q[0])])]
)
def test_a_function_that_no_file_holds_is_refused(function: Callable[[Any], Any], tmp_path: Path) -> None:
    target = tmp_path / "robot.urdf"
    with pytest.raises(ModelError, match=r"coupling 'relation': its function cannot be written"):
        save(pair(function, []), target)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name in ROBOTS])
def test_random_robots_with_functions_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="its function cannot be written"):
        urdf_text(sample(name).robot, tmp_path)


def four_bar(bar: FourBar) -> Robot:
    b, z = RobotBuilder("four-bar"), Revolute(axis=(0, 0, 1))
    for name in ("crank", "coupler", "rocker"):
        b.body(name, 1.0, (0.1, 0, 0), (1, 1, 1))
    b.joint("j1", z, "ground", "crank", start=0.5)
    b.joint("j2", z, "crank", "coupler", (bar.crank, 0, 0))
    b.joint("j3", z, "ground", "rocker", (bar.ground, 0, 0))
    b.loop("loop", z, "coupler", "rocker", (bar.coupler, 0, 0), (bar.rocker, 0, 0))
    b.couple("bars", ["j1", "j2", "j3"], bar, ["j1"], ["loop"])
    return b.build()


def test_a_parallelogram_is_written_as_the_linear_relation_that_it_is_beside_its_loop(tmp_path: Path) -> None:
    robot = four_bar(FourBar(0.3, 0.8, 0.3, 0.8))
    again = reloaded(robot, tmp_path)
    assert [coupling.name for coupling in again.couplings] == ["bars"]
    assert_same(robot, again)


@pytest.mark.parametrize("crossed", [False, True])
def test_a_four_bar_is_left_to_its_loop_and_closes_the_same_way(crossed: bool, tmp_path: Path) -> None:
    robot = four_bar(FourBar(0.3, 0.8, 0.7, 0.9, crossed))
    again = reloaded(robot, tmp_path)
    assert not again.couplings
    assert_same(robot, again)
    positions = again.joint_positions(again.neutral())
    assert np.sign(np.sin(positions["j2"])) == np.sign(np.sin(robot.joint_positions(robot.neutral())["j2"]))


def test_the_lock_of_an_idle_freedom_is_a_loop_in_the_file(tmp_path: Path) -> None:
    robot = sample("locked rod").robot
    again = reloaded(robot, tmp_path)
    assert [loop.name for loop in again.loops] == ["loop", "lock of rod"]
    assert_same(robot, again)


# Files


def test_angles_are_exact_next_to_a_quarter_turn() -> None:
    rng: Rng = np.random.default_rng(2)
    for gap_to_quarter in (0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-6, 1e-3, 1.0):
        for _ in range(20):
            yaw, roll = rng.uniform(-3, 3, 2)
            R = from_euler(roll, rng.choice([-1, 1]) * (np.pi / 2 - gap_to_quarter), yaw)
            assert np.abs(from_euler(*rpy_of(R)) - R).max() < 2e-15
    for _ in range(20):
        R = about_axis(unit(rng), rng.uniform(-3, 3))
        assert np.abs(from_euler(*rpy_of(R)) - R).max() < 2e-15


@pytest.mark.parametrize("name", ["a\x00b", " blank", "new\nline\n"])
def test_a_name_that_no_file_keeps_is_refused(name: str, tmp_path: Path) -> None:
    b = RobotBuilder("odd")
    b.body(name, 1.0, inertia=(1, 1, 1))
    b.joint("j", Revolute(), "ground", name)
    with pytest.raises(ModelError, match="no file can hold the name"):
        save(b.build(), tmp_path / "odd.urdf")


def test_a_target_that_cannot_be_is_told(tmp_path: Path) -> None:
    robot = robots.load("four_bar")
    (tmp_path / "folder.urdf").mkdir()
    with pytest.raises(ModelError, match="it is a folder"):
        save(robot, tmp_path / "folder.urdf")
    with pytest.raises(ModelError, match="there is no folder"):
        save(robot, tmp_path / "missing" / "robot.urdf")
    for name in ("robot.stl", "robot"):
        with pytest.raises(ModelError, match=r"robots are saved as \.urdf \(URDF\+\), \.xml \(MJCF\)"):
            save(robot, tmp_path / name)


def test_a_failed_save_leaves_the_old_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "robot.urdf"
    target.write_text("old")
    with pytest.raises(ModelError, match="cannot be written"):
        save(pair(lambda q: np.array([q[1] - np.sin(q[0])]), []), target)

    def full(source: Any, target: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(ModelError, match="No space left"):
            save(robots.load("four_bar"), target)
    assert target.read_text() == "old"
    assert save(robots.load("four_bar"), str(target)) == target
    assert [path.name for path in tmp_path.iterdir()] == ["robot.urdf"]
    assert target.read_text().startswith("<?xml")
