"""What robots look like: something for every link, in the right place, from shapes or drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.mechanisms import stewart
from coupler.model import Box, Fixed, Mesh, ModelError, Prismatic, Revolute, Sphere
from coupler.view.camera import Camera
from coupler.view.figure import Figure, Surface
from coupler.view.figure.colours import body_colours
from coupler.view.figure.surface import ball, box, capsule, cone, cylinder, hull, rod, rounded_hull
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
    assert drawn >= {i for i, link in enumerate(robot.tree.links) if i and link.inertia.m > 0.0}
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
        (cone(np.ones(3), np.array([1.0, 1.0, 3.0]), 0.5), np.pi * 0.25 * 2.0 / 3.0),
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
    with pytest.raises(ModelError, match="got 'mass'"):
        body_colours(robot, "mass")  # type: ignore[arg-type]


@pytest.mark.parametrize("up", [np.array([0.0, 0, 1]), np.array([0.0, 1, 0]), np.array([0.0, 0, -1])])
@pytest.mark.parametrize("high", [(1.0, 1, 1), (1.0, 0.01, 1), (0.01, 2, 1)])
@pytest.mark.parametrize("aspect", [1.0, 1.5])
def test_the_camera_sees_everything_and_not_from_afar(up: np.ndarray, high: Any, aspect: float) -> None:
    camera = Camera.around(np.zeros(3), np.array(high), up, aspect)
    view = (camera.target - camera.position) / np.linalg.norm(camera.target - camera.position)
    assert view @ up < 0.0  # from above
    corners = np.array([[x, y, z] for x in (0, high[0]) for y in (0, high[1]) for z in (0, high[2])])
    right = np.cross(view, up) / np.linalg.norm(np.cross(view, up))
    away = corners - camera.position
    across, along = (
        np.abs(away @ axis) / (away @ view) / np.tan(camera.field / 2) for axis in (right, np.cross(right, view))
    )
    most = max(across.max() / aspect, along.max())
    assert 0.8 < most < 0.95


def extents(figure: Figure, q: np.ndarray, body: str) -> np.ndarray:
    """The sides of the box around all solids of a body, 3, m."""
    T = figure.pose(figure.poses(q), body)
    points = [solid.surface.vertices @ T[:3, :3].T for solid in figure.solids if solid.body == body]
    return np.ptp(np.concatenate(points), axis=0)


def test_axes_without_mass_are_not_drawn_as_rails() -> None:
    b = coupler.RobotBuilder("cart")
    for name, mass in (("x", 0.0), ("y", 0.0), ("cart", 2.0)):
        b.body(name, mass, (0, 0, 0), (1e-2,) * 3 if mass else (0, 0, 0))
    b.joint("x", Prismatic(axis=(1, 0, 0)), "ground", "x")
    b.joint("y", Prismatic(axis=(0, 1, 0)), "x", "y")
    b.joint("turn", Revolute(axis=(0, 0, 1)), "y", "cart")
    b.contact("rim", "cart", (0.3, 0, 0))
    assert {solid.body for solid in Figure(b.build()).solids} == {"cart"}


def test_what_is_welded_to_the_ground_holds_its_joints() -> None:
    b = coupler.RobotBuilder("arm")
    for name in ("foot", "arm"):
        b.body(name, 1.0, (0, 0, 0.1), (1e-2,) * 3)
    b.joint("weld", Fixed(), "ground", "foot")
    b.joint("shoulder", Revolute(axis=(0, 1, 0)), "foot", "arm", at=(0, 0, 0.4))
    b.contact("hand", "arm", (0.3, 0, 0))
    robot = b.build()
    assert extents(Figure(robot), robot.neutral(), "ground")[2] > 0.4
    shown = robot.with_shape("pillar", Box((0.1, 0.1, 0.4)), at=(0, 0, 0.2), body="foot")
    count = [sum(solid.body == "ground" for solid in Figure(each).solids) for each in (robot, shown)]
    assert count[0] == count[1] + 1  # a foot with a shape of its own needs no rod


def test_rails_are_not_longer_than_the_robot_whatever_its_limits() -> None:
    b = coupler.RobotBuilder("drawer")
    b.body("drawer", 1.0, (0, 0, 0), (1e-2,) * 3)
    b.joint("slide", Prismatic(axis=(1, 0, 0), lower=-100.0, upper=100.0), "ground", "drawer")
    b.contact("handle", "drawer", (0, 0, 0.3))
    robot = b.build()
    assert extents(Figure(robot), robot.neutral(), "ground").max() < 0.6


def test_bars_that_slide_in_bars_are_drawn_as_linear_actuators() -> None:
    angles = np.radians([20.0, 100.0, 140.0, 220.0, 260.0, 340.0])
    ring = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    figure = Figure(stewart(0.5 * ring, 0.3 * np.roll(ring, 1, axis=0), 0.6))
    metal = {solid.body for solid in figure.solids if solid.tone == "metal"}
    assert {f"piston_{k}" for k in range(1, 7)} <= metal
    assert sum(solid.tone == "loop" for solid in figure.solids) == 6


def test_the_camera_looks_at_the_robot_and_not_at_all_the_ground() -> None:
    b = coupler.RobotBuilder("field")
    b.terrain(np.zeros((11, 11)), size=(50.0, 50.0))
    b.object("box", Box((0.5, 0.5, 0.5)), at=(0, 0, 0.25))
    robot = b.build()
    figure = Figure(robot)
    low, high = figure.bounds(figure.poses(robot.neutral()))
    assert figure.size < 2.0 and (high - low).max() < 1.0
