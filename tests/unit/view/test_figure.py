"""What robots look like: something for every link, in the right place, from shapes or drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler.model import Box, Mesh, ModelError, Prismatic, Revolute, Sphere
from coupler.view.camera import Camera
from coupler.view.figure import Figure, Surface
from coupler.view.figure.colours import body_colours
from coupler.view.figure.surface import ball, box, capsule, cylinder, hull, rod, rounded_hull
from mesh_samples import SIZE, TRIANGLES, binary_stl

NAMES = coupler.robots.names()


def volume(surface: Surface) -> float:
    """What a closed surface encloses, whose triangles are seen anticlockwise from outside, m³."""
    a, b, c = np.moveaxis(surface.vertices[surface.triangles], 1, 0)
    return float(np.einsum("ni,ni->n", a, np.cross(b, c)).sum() / 6.0)


@pytest.mark.parametrize("name", NAMES)
def test_every_link_of_every_bundled_robot_is_drawn(name: str) -> None:
    robot = coupler.robots.load(name)
    figure = Figure(robot)
    drawn = {robot.tree.place[solid.body][0] for solid in figure.solids}
    assert drawn >= set(range(1, len(robot.tree.links)))
    low, high = figure.bounds(figure.poses(robot.neutral()))
    assert (np.isfinite(low) & (high > low)).all()
    assert not figure.notes
    for solid in figure.solids:
        assert volume(solid.surface) > 0.0


@pytest.mark.parametrize(
    ("surface", "exact"),
    [
        (ball(0.5), 4.0 / 3.0 * np.pi * 0.125),
        (box(np.array([1.0, 2.0, 3.0])), 6.0),
        (cylinder(0.5, 2.0), np.pi * 0.5),
        (capsule(0.2, 0.2, 1.0), np.pi * 0.04 + 4.0 / 3.0 * np.pi * 0.008),
        (rod(np.zeros(3), np.array([1.0, 2.0, 2.0]), 0.2, 0.2), 3.0 * np.pi * 0.04 + 4.0 / 3.0 * np.pi * 0.008),
        (hull(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])), 1.0 / 6.0),
    ],
)
def test_surfaces_are_closed_and_seen_from_outside(surface: Surface, exact: float) -> None:
    assert volume(surface) == pytest.approx(exact, rel=0.05)


def test_a_plate_reaches_around_its_points() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    plate = rounded_hull(points, 0.1)
    assert volume(plate) > 0.5 * 0.2 * 0.9
    np.testing.assert_allclose(plate.vertices.min(axis=0), -0.1, atol=1e-9)


def test_solids_move_with_their_bodies() -> None:
    robot = coupler.robots.load("slider_crank")
    figure = Figure(robot)
    q = robot.random_state(0)[0]
    ends = figure.loop_ends(figure.poses(q))
    np.testing.assert_allclose(ends[:, 0], ends[:, 1], atol=1e-9)


def test_rotors_are_discs_with_bolts_and_darker_than_their_link() -> None:
    robot = coupler.robots.load("mini_cheetah")
    figure = Figure(robot)
    colours = figure.colours("cluster")
    rotor = [k for k, solid in enumerate(figure.solids) if solid.body == "HR_hip_rotor"]
    link = [k for k, solid in enumerate(figure.solids) if solid.body == "HR_hip_link" and solid.tone == "body"]
    assert [figure.solids[k].tone for k in rotor] == ["shade", "metal"]
    assert colours[rotor[0]][:3].sum() < colours[link[0]][:3].sum()


def test_a_linear_actuator_is_a_rod_in_a_barrel() -> None:
    b = coupler.RobotBuilder("actuator")
    for name in ("barrel", "rod"):
        b.body(name, 1.0, (0, 0, 0), (1e-2, 1e-2, 1e-2))
    b.joint("pivot", Revolute(axis=(0, 1, 0)), "ground", "barrel")
    b.joint("slide", Prismatic(axis=(0, 0, 1), lower=0.2, upper=0.5), "barrel", "rod", start=0.3)
    b.contact("eye", "rod", (0, 0, 0.1))
    robot = b.build()
    q = robot.pack_q({"slide": 0.5})
    figure = Figure(robot)
    tones = {solid.body: solid.tone for solid in figure.solids if solid.tone == "metal"}
    assert "rod" in tones
    for position in (0.2, 0.5):  # the rod does not leave the barrel
        q = robot.pack_q({"slide": position})
        poses = figure.poses(q)
        tops = {
            (solid.body, solid.tone): (solid.surface.vertices @ T[:3, :3].T + T[:3, 3])[:, 2]
            for solid in figure.solids
            if (T := figure.pose(poses, solid.body)) is not None
        }
        assert tops["rod", "metal"].min() < tops["barrel", "body"].max()


def test_shapes_are_drawn_where_there_are_some_and_joints_are_not_left_bare() -> None:
    b = coupler.RobotBuilder("leg")
    b.body("thigh", 1.0, (0, 0, -0.2), (1e-2, 1e-2, 1e-2))
    b.body("shank", 1.0, (0, 0, -0.2), (1e-2, 1e-2, 1e-2))
    b.joint("hip", Revolute(axis=(0, 1, 0)), "ground", "thigh")
    b.joint("knee", Revolute(axis=(0, 1, 0)), "thigh", "shank", at=(0, 0, -0.4))
    b.shape("thigh", Box((0.1, 0.1, 0.4)), at=(0, 0, -0.2))
    b.shape("shank", Sphere(0.03), at=(0, 0, -0.4))
    b.contact("toe", "shank", (0, 0, -0.4))
    figure = Figure(b.build())
    count = {name: sum(solid.body == name for solid in figure.solids) for name in ("thigh", "shank")}
    assert count["thigh"] == 1  # the box reaches from hip to knee
    assert count["shank"] > 1  # a foot alone would hang in the air


def test_meshes_are_drawn_and_missing_ones_are_told(tmp_path: Path) -> None:
    binary_stl(tmp_path / "part.stl", TRIANGLES)
    for name, told in (("part.stl", 0), ("absent.stl", 1)):
        b = coupler.RobotBuilder("part")
        b.body("part", 1.0, (0, 0, 0), (1e-2, 1e-2, 1e-2))
        b.joint("turn", Revolute(axis=(0, 0, 1)), "ground", "part")
        b.shape("part", Mesh(tmp_path / name, (2, 2, 2)))
        figure = Figure(b.build())
        assert len(figure.notes) == told
        assert any(solid.body == "part" for solid in figure.solids)
        if not told:
            (solid,) = (solid for solid in figure.solids if solid.body == "part")
            assert abs(volume(solid.surface)) == pytest.approx(8.0 * np.prod(SIZE)) and solid.flat


def test_colours_go_by_cluster_or_by_body() -> None:
    robot = coupler.robots.load("mini_cheetah")
    by_cluster, by_body = (body_colours(robot, colouring) for colouring in ("cluster", "body"))
    assert (by_cluster["HR_hip_link"] == by_cluster["HR_hip_rotor"]).all()
    assert (by_body["HR_hip_link"] != by_body["HR_hip_rotor"]).any()
    with pytest.raises(ModelError, match="no 'mass'"):
        body_colours(robot, "mass")  # type: ignore[arg-type]


@pytest.mark.parametrize("up", [np.array([0.0, 0, 1]), np.array([0.0, 1, 0]), np.array([0.0, 0, -1])])
@pytest.mark.parametrize("high", [(1.0, 1, 1), (1.0, 0.01, 1), (0.01, 2, 1)])
def test_the_camera_sees_everything(up: np.ndarray, high: tuple[float, float, float]) -> None:
    low, high_corner = np.zeros(3), np.array(high)
    camera = Camera.around(low, high_corner, up)
    view = (camera.target - camera.position) / np.linalg.norm(camera.target - camera.position)
    assert view @ up < 0.0  # from above
    corners = np.array([[x, y, z] for x in (0, high[0]) for y in (0, high[1]) for z in (0, high[2])])
    away = corners - camera.position
    angles = np.arccos(away @ view / np.linalg.norm(away, axis=1))
    assert angles.max() < camera.field / 2
