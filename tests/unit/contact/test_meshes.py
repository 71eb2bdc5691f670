"""Meshes that touch: their simplified hulls, and robots that have them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.contact.collision.mesh_files import mesh_vertices
from coupler.contact.collision.meshes import hull_of, simplified_hull, with_hulls
from coupler.contact.pairs import pairs_of
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.step.program import contact_step_program
from coupler.graph import compile
from coupler.io.load import load
from coupler.model import (
    Box,
    Free,
    Geometry,
    Hull,
    Mesh,
    ModelError,
    ModelWarning,
    Plane,
    Robot,
    RobotBuilder,
)
from effort import every
from golden import FOLDER
from mesh_samples import SIZE, STAIR, TRIANGLES, ball, binary_stl, obj, rim
from reference.stepping import contact_step


@pytest.mark.parametrize("most", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("points", [ball() * [1.0, 0.5, 0.2], rim(), STAIR], ids=["ellipsoid", "cylinder", "stair"])
def test_a_simplified_hull_is_within_the_mesh_by_no_more_than_it_tells(
    tmp_path: Path, points: np.ndarray, most: int
) -> None:
    hull, error = simplified_hull(Mesh(obj(tmp_path / "mesh.obj", points)), most)
    assert len(hull.vertices) <= most
    assert {*map(tuple, hull.vertices)} <= {*map(tuple, points)}
    directions = ball(5000)
    short = (directions @ points.T).max(axis=1) - (directions @ hull.vertices.T).max(axis=1)
    assert short.min() >= 0.0
    assert 0.9 * error <= short.max() <= error + 1e-12  # the directions are 0.05 rad apart


def test_more_corners_come_nearer(tmp_path: Path) -> None:
    mesh = Mesh(obj(tmp_path / "ball.obj", ball()))
    errors = [simplified_hull(mesh, most)[1] for most in (8, 16, 32, 64, 642)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == 0.0
    assert errors[2] < 0.16  # 32 corners, in radii


def test_a_scale_stretches_and_mirrors(tmp_path: Path) -> None:
    path = obj(tmp_path / "stair.obj", STAIR)
    scale = np.array([-2.0, 1.0, 0.5])
    found, plain = hull_of(Mesh(path, scale)).vertices, hull_of(Mesh(path)).vertices
    np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(plain * scale, axis=0))
    with pytest.raises(ModelError, match="flat"):
        hull_of(Mesh(path, (1.0, 0.0, 1.0)))


@pytest.mark.parametrize("most", [3, 0, "many", np.nan])
def test_a_hull_has_four_corners_at_least(tmp_path: Path, most: Any) -> None:
    with pytest.raises(ModelError, match="most must be a finite number, 4 or more"):
        hull_of(Mesh(obj(tmp_path / "stair.obj", STAIR)), most)


# Robots


def fallen(path: Path, ground: Geometry | None = None, **options: Any) -> Robot:
    """A block of 2 kg from a file, over the ground."""
    b = RobotBuilder("block")
    b.body("body", 2.0, inertia=(0.1, 0.1, 0.02))
    b.joint("free", Free(), "ground", "body")
    b.shape("body", Mesh(path), name="skin", **options)
    b.shape("ground", ground or Plane(), name="floor", friction=0.5)
    return b.build()


@pytest.mark.parametrize(
    "ground", every(3, [Plane(), Box((2.0, 2.0, 2.0)), Hull(np.array(list(product((-1.0, 1.0), repeat=3))))])
)
def test_a_mesh_lands_and_stands(tmp_path: Path, ground: Geometry) -> None:
    """It falls 0.02 m, tilted a little, and stands on the ground with its whole weight in the end."""
    top = 0.0 if isinstance(ground, Plane) else 1.0
    robot = fallen(binary_stl(tmp_path / "block.stl", TRIANGLES * [1.0, 1.0, 0.25]), ground)
    pairs = pairs_of(robot)
    assert [pair.count for pair in pairs] == [8 if isinstance(ground, Plane) else 5]
    half = 0.02
    q = robot.pack_q({"free": [0.1, 0.2, top + 0.145, np.cos(half), 0.6 * np.sin(half), 0.8 * np.sin(half), 0.0]})
    v, start, done = np.zeros(6), None, None
    for _ in range(250):
        done = contact_step(robot, q, v, np.zeros(6), 2e-3, pairs, start=start, tolerance=1e-9)
        q, v, start = done.q, done.v, done.solution.impulses
    assert done is not None
    assert q[2] == pytest.approx(top + 0.125, abs=1e-6)
    np.testing.assert_allclose(q[4:6], 0.0, rtol=0, atol=1e-6)
    np.testing.assert_allclose(v, 0.0, rtol=0, atol=1e-6)
    np.testing.assert_allclose(done.force(2e-3), (0, 0, 2.0 * 9.81), rtol=0, atol=1e-3)


def test_a_compiled_step_lets_a_mesh_land_as_the_reference_does(tmp_path: Path) -> None:
    robot = fallen(obj(tmp_path / "stair.obj", STAIR))
    scene = ContactScene(tuple(pairs_of(robot)), 1e-2, tolerance=1e-12)
    layout, step = Layout(robot, scene), compile(contact_step_program(robot, scene))
    q, v, touched = robot.pack_q({"free": [0.0, 0.0, 0.01, 1.0, 0.02, 0.01, 0.0]}), np.zeros(6), 0
    for _ in range(20):
        expected = contact_step(robot, q, v, np.zeros(6), 1e-2, scene.pairs, tolerance=1e-13)
        after = step(layout.start(robot, q, v), np.zeros(6))
        q, v = after[layout.places["q"]], after[layout.places["v"]]
        np.testing.assert_allclose(v, expected.v, rtol=0, atol=1e-8)
        touched += bool(expected.solution.impulses.any())
    assert touched > 5


def test_a_mesh_that_is_seen_stays_for_that_alone(tmp_path: Path) -> None:
    robot = with_hulls(fallen(obj(tmp_path / "ball.obj", ball()), friction=0.3), most=16)
    seen, hull, floor = robot.shapes
    assert (type(seen.geometry), seen.visible, seen.touches) == (Mesh, True, False)
    assert (type(hull.geometry), hull.visible, hull.touches, hull.friction) == (Hull, False, True, 0.3)
    assert (hull.name, hull.body, floor.name) == ("skin", "body", "floor")
    (remark,) = robot.remarks
    assert "ball.obj touches as a hull of 16 corners, up to 0.2" in remark and remark in str(robot)
    assert [pair.count for pair in pairs_of(robot)] == [16]


def test_a_mesh_that_is_not_seen_makes_place_for_its_hull(tmp_path: Path) -> None:
    robot = with_hulls(fallen(binary_stl(tmp_path / "block.stl", TRIANGLES), visible=False))
    assert [type(shape.geometry) for shape in robot.shapes] == [Hull, Plane]
    assert robot.remarks == ()


def test_a_mesh_that_cannot_be_read_is_told_and_touches_nothing(tmp_path: Path) -> None:
    robot = fallen(tmp_path / "none.stl")
    with pytest.warns(ModelWarning, match=r"it touches nothing with mesh 'none\.stl', whose file is missing"):
        left = with_hulls(robot)
    assert [shape.touches for shape in left.shapes] == [False, True]
    assert "none.stl" in left.warnings[0]
    with pytest.warns(ModelWarning, match=r"none\.stl"):
        assert pairs_of(robot) == []


def test_a_mesh_that_touches_nothing_is_not_opened(tmp_path: Path) -> None:
    robot = fallen(tmp_path / "none.stl", group=0, meets=0)
    assert with_hulls(robot) is robot


def test_the_meshes_of_a_urdf_touch(tmp_path: Path) -> None:
    binary_stl(tmp_path / "block.stl", TRIANGLES)
    (tmp_path / "robot.urdf").write_text(
        """<robot name="r"><link name="base"/><link name="body"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><geometry><mesh filename="block.stl" scale="2 2 2"/></geometry></collision></link>
        <joint name="j" type="prismatic"><parent link="base"/><child link="body"/><axis xyz="0 0 1"/>
        <limit lower="0" upper="2" effort="1" velocity="1"/></joint></robot>"""
    )
    robot = with_hulls(load(tmp_path / "robot.urdf"))
    (shape,) = robot.shapes
    assert isinstance(shape.geometry, Hull)
    np.testing.assert_array_equal(np.abs(shape.geometry.vertices), np.tile(SIZE, (8, 1)))


def test_meshes_of_real_robots_have_sane_hulls() -> None:
    paths = [path for kind in ("stl", "STL", "obj") for path in (FOLDER.parent / "models").rglob(f"*.{kind}")]
    if not paths:
        pytest.skip("there are no meshes in the folder of reference models")
    for path in paths[:20]:
        points = mesh_vertices(path)
        hull, error = simplified_hull(Mesh(path))
        size = float(np.ptp(points, axis=0).max())
        assert 0.0 <= error < 0.1 * size
        assert np.ptp(hull.vertices, axis=0).max() == pytest.approx(size, abs=2.0 * error + 1e-9)
