"""Shapes and named states, as parts of a robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coupler import robots
from coupler.model import Box, Capsule, Mesh, ModelError, Plane, Revolute, RobotBuilder, Shape, Sphere
from coupler.spatial import Transform


def arm() -> RobotBuilder:
    b = RobotBuilder("arm")
    b.body("link", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", Revolute(axis=(0, 1, 0)), "ground", "link")
    return b


def test_shapes_stay_in_order_on_bodies_and_on_the_ground() -> None:
    b = arm()
    b.shape("ground", Plane(), friction=0.8)
    b.shape("link", Sphere(0.1), (0, 0, 0.3), name="tip", colour=(1, 0, 0, 1))
    floor, tip = b.build().shapes
    assert (floor.body, floor.friction, tip.name) == ("ground", 0.8, "tip")
    np.testing.assert_array_equal(tip.at.r, (0, 0, 0.3))


def test_the_spanning_tree_keeps_the_shapes() -> None:
    b = arm()
    b.shape("link", Capsule(0.02, 0.3))
    assert len(b.build().spanning_tree().shapes) == 1


def test_a_mesh_may_be_mirrored_and_scaled_alike_along_all_axes() -> None:
    np.testing.assert_array_equal(Mesh(Path("part.stl"), 0.001).scale, (0.001, 0.001, 0.001))
    np.testing.assert_array_equal(Mesh(Path("part.stl"), (1, -1, 1)).scale, (1, -1, 1))


@pytest.mark.parametrize("size", [(1.0, 0.0, 1.0), (1.0, np.nan, 1.0), 1.0])
def test_a_box_without_extent_is_refused(size: object) -> None:
    with pytest.raises(ModelError, match="box: its size must be"):
        Box(size)


def test_a_shape_on_an_unknown_body_is_refused() -> None:
    b = arm()
    b.shape("hand", Sphere(0.1))
    with pytest.raises(ModelError, match="shape '': there is no body 'hand'; there are 'ground', 'link'"):
        b.build()


def test_what_is_no_geometry_is_refused() -> None:
    with pytest.raises(ModelError, match=r"such as Sphere\(0\.1\)"):
        Shape("tip", "link", 0.1, Transform.identity())  # type: ignore[arg-type]


def test_a_named_state_is_closed() -> None:
    b = arm()
    b.keyframe("up", {"hinge": 1.0}, {"hinge": 0.5})
    q, v = b.build().keyframes["up"]
    assert (q[0], v[0]) == (1.0, 0.5)
    with pytest.raises(ModelError, match="'up' already"):
        b.keyframe("up", {})


def test_a_named_state_that_cannot_be_is_told_and_left_out() -> None:
    b = arm()
    b.keyframe("odd", {"elbow": 1.0})
    robot = b.build()
    assert not robot.keyframes
    assert "keyframe 'odd' is left out: robot 'arm' has no joint 'elbow'" in robot.warnings[-1]


def test_bundled_robots_have_no_shapes_yet_and_say_nothing_of_it() -> None:
    assert robots.load("four_bar").shapes == ()


def test_a_mesh_takes_a_path_as_text() -> None:
    assert Mesh("a/b.stl").path == Path("a/b.stl")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ModelError, match="mesh: its path must be a path, got 3"):
        Mesh(3)  # pyright: ignore[reportArgumentType]
