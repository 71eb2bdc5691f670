"""Convex hulls of points, against what is known of forms, and against Qhull."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.contact.collision import polyhedron as polyhedron_module
from coupler.contact.collision.polyhedron import Polyhedron, polyhedron
from mesh_samples import STAIR, ball, grid, rim
from transforms import random_transform


def closed(hull: Polyhedron) -> tuple[float, float]:
    """The volume of a polyhedron, and how far the areas of its faces, as vectors, are from closing."""
    middle, volume, areas = hull.corners.mean(axis=0), 0.0, np.zeros(3)
    for normal, offset in zip(hull.normals, hull.offsets, strict=True):
        away = hull.corners[abs(hull.corners @ normal - offset) < 1e-9] - middle
        away -= away.mean(axis=0)
        u = away[0] / np.linalg.norm(away[0])
        plane = np.column_stack([away @ u, away @ np.cross(normal, u)])
        x, y = plane[np.argsort(np.arctan2(plane[:, 1], plane[:, 0]))].T
        area = 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))
        volume += area * float(offset - normal @ middle) / 3.0
        areas += area * normal
    return volume, float(np.linalg.norm(areas))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("points", "corners", "faces", "volume"),
    [
        (grid(), 8, 6, 1.0),
        (STAIR, 10, 7, 0.2 * (1.0 - 0.125)),
        (rim(), 80, 42, 20.0 * np.sin(np.pi / 20.0)),
    ],
    ids=["cube", "stair", "cylinder"],
)
def test_a_hull_has_the_right_corners_faces_and_volume(
    points: np.ndarray, corners: int, faces: int, volume: float, turned: bool
) -> None:
    X = random_transform(np.random.default_rng(1))
    hull = polyhedron(points @ X.E + X.r if turned else points)
    assert hull is not None
    assert (len(hull.corners), len(hull.normals)) == (corners, faces)
    assert closed(hull) == pytest.approx((volume, 0.0), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_hulls_are_those_of_qhull(seed: int) -> None:
    coal: Any = pytest.importorskip("coal", reason="coal has Qhull, and is not installed")
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(300, 3)) if seed % 2 else ball(200) * rng.uniform(0.5, 2.0, 3)
    given = coal.StdVec_Vec3s()
    given.extend(list(points))
    hull, peer = polyhedron(points), coal.Convex.convexHull(given, True, "Qt")
    assert hull is not None
    np.testing.assert_array_equal(np.unique(hull.corners, axis=0), np.unique(peer.points(), axis=0))
    volume, gap = closed(hull)
    assert volume == pytest.approx(peer.computeVolume(), rel=1e-12)
    assert gap < 1e-13


def test_a_hull_does_not_depend_on_how_many_points_are_compared_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(3).normal(size=(100, 3))
    whole = polyhedron(points, 12)
    monkeypatch.setattr(polyhedron_module, "_BLOCK", 7)
    in_blocks = polyhedron(points, 12)
    assert whole is not None and in_blocks is not None
    np.testing.assert_array_equal(whole.corners, in_blocks.corners)
    assert in_blocks.distance(points) == pytest.approx(whole.distance(points), rel=1e-12)
