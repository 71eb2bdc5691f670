"""Contacts of hulls with planes, boxes and each other, against closed forms and coal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coupler.contact.collision.geometry import Contact, contacts, count
from coupler.contact.collision.meshes import hull_of
from coupler.model import (
    Box,
    Cylinder,
    Ellipsoid,
    Geometry,
    Hull,
    Mesh,
    Plane,
)
from coupler.spatial import Transform
from mesh_samples import BLOCK, SIZE, STAIR, TRIANGLES, binary_stl
from transforms import random_transform


def test_a_block_from_a_file_touches_a_plane_as_a_box_does(tmp_path: Path) -> None:
    hull = hull_of(Mesh(binary_stl(tmp_path / "block.stl", TRIANGLES)))
    rng = np.random.default_rng(2)
    for _ in range(50):
        X, ground = random_transform(rng), random_transform(rng)
        found, expected = ([*contacts(form, Plane(), X, ground)] for form in (hull, Box(SIZE)))
        assert len(found) == 8
        for one, other in zip(*(sorted(own, key=lambda c: tuple(c.point)) for own in (found, expected)), strict=True):
            assert one.gap == pytest.approx(other.gap, abs=1e-12)
            np.testing.assert_allclose(one.point, other.point, rtol=0, atol=1e-12)


def nearest(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform) -> Contact:
    return min(contacts(one, other, X_one, X_other), key=lambda contact: contact.gap)


def test_a_block_as_a_hull_is_as_far_from_others_as_a_box() -> None:
    rng, hull, other = np.random.default_rng(3), Hull(BLOCK), Hull(STAIR)
    overlapping = 0
    for _ in range(40):
        X, Y = random_transform(rng), random_transform(rng)
        X, Y = Transform(X.E, 0.3 * X.r), Transform(Y.E, 0.3 * Y.r)
        found, expected = (nearest(form, other, X, Y) for form in (hull, Box(SIZE)))
        assert found.gap == pytest.approx(expected.gap, abs=1e-12)
        np.testing.assert_allclose(found.frame, expected.frame, rtol=0, atol=1e-10)
        overlapping += bool(found.gap < 0.0)
    assert 5 < overlapping < 35


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-6, 1e-3, 0.03])
@pytest.mark.parametrize("gap", [-1e-3, -1e-9, 0.0, 1e-9, 1e-6, 1e-3])
def test_a_face_on_a_face_touches_at_the_corners_of_what_they_share(gap: float, tilt: float) -> None:
    """A block over a corner of a table: what they share is 0.15 by 0.125 m, a rectangle."""
    c, s = np.cos(tilt), np.sin(tilt)
    E = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])  # its edges at x = -0.25 go down
    X = Transform(E, E.T @ (0.5 * SIZE * [1.0, 0.0, 1.0]) + [0.35, 0.5, gap])
    table = Hull(0.5 * np.array(list(product((-1.0, 1.0), repeat=3))) + [0.0, 0.0, -0.5])
    nearest_again, *others = contacts(Hull(BLOCK), table, X, Transform.identity())
    assert len(others) == count(Hull(BLOCK), table) - 1 == 4
    assert nearest_again.gap > 1.0  # out of reach
    assert min(contact.gap for contact in others) == pytest.approx(gap, abs=1e-9)
    for contact in others:
        np.testing.assert_allclose(contact.frame[0], (0, 0, 1), rtol=0, atol=1e-5)
        height = gap + (contact.point[0] - 0.35) * np.tan(tilt)
        assert contact.gap == pytest.approx(height, abs=1e-6)
    found = sorted(tuple(contact.point[:2].round(9)) for contact in others)
    corners = [(x, y) for x in (0.35, 0.5) for y in (0.375, 0.5)]
    np.testing.assert_allclose(found, corners, rtol=0, atol=1e-5)


def test_what_only_meets_at_an_edge_still_has_five_candidates() -> None:
    """Two edges that cross: the other candidates are further away, on faces that lean, or the same."""
    c = np.sqrt(0.5)
    roof = Transform(np.array([[1, 0, 0], [0, c, c], [0, -c, c]]), np.zeros(3))
    across = Transform(np.array([[c, 0, -c], [0, 1, 0], [c, 0, c]]), np.array([0.0, 0.0, np.sqrt(2.0) + 0.01]))
    cube = Hull(np.array(list(product((-0.5, 0.5), repeat=3))))
    found = contacts(cube, cube, across, roof)
    assert len(found) == 5
    assert min(contact.gap for contact in found) == pytest.approx(0.01, abs=1e-12)


def test_hulls_that_are_flat_for_the_search_of_faces_touch_in_one_place() -> None:
    thin = Hull(BLOCK * [1.0, 1.0, 1e-7])
    found = contacts(thin, Box(SIZE), Transform.translation(np.array([0.0, 0.0, 0.6])), Transform.identity())
    assert found[0].gap == pytest.approx(0.1 - 0.5e-7, abs=1e-12)
    assert len(found) == 5
    assert min(contact.gap for contact in found[1:]) > 0.9  # out of reach


def coal_hull(coal: Any, vertices: np.ndarray) -> Any:
    points = coal.StdVec_Vec3s()
    points.extend(list(vertices))
    return coal.Convex.convexHull(points, True, "Qt")


PEERS: dict[str, tuple[Geometry, Callable[[Any], Any]]] = {
    "hull": (Hull(STAIR), lambda coal: coal_hull(coal, STAIR)),
    "box": (Box((0.5, 0.8, 1.1)), lambda coal: coal.Box(0.5, 0.8, 1.1)),
    "cylinder": (Cylinder(0.35, 0.6), lambda coal: coal.Cylinder(0.35, 0.6)),
    "ellipsoid": (Ellipsoid((0.3, 0.5, 0.8)), lambda coal: coal.Ellipsoid(0.3, 0.5, 0.8)),
}


DEEP = -0.05  # m: what overlaps by more may have a shorter way out than the one near by


@pytest.mark.parametrize(("a", "b"), list(combinations_with_replacement(PEERS, 2)))
def test_gaps_and_depths_are_those_of_coal(a: str, b: str) -> None:
    """To what coal has of them: 1e-10 m where there are corners, the tolerance of its search where it is curved."""
    coal: Any = pytest.importorskip("coal", reason="coal is what is compared with")
    (one, make_one), (other, make_other) = PEERS[a], PEERS[b]
    curved = {a, b} & {"cylinder", "ellipsoid"}
    request, rng, overlapping = coal.DistanceRequest(), np.random.default_rng(5), 0
    request.gjk_tolerance = request.epa_tolerance = 1e-6
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    for k in range(40):
        X, Y = random_transform(rng), random_transform(rng)
        X, Y = (Transform(Z.E, (0.6 if k % 2 else 0.2) * Z.r) for Z in (X, Y))
        found, peer = nearest(one, other, X, Y), coal.DistanceResult()
        places = [coal.Transform3s(Z.E.T, Z.r) for Z in (X, Y)]
        gap = coal.distance(make_one(coal), places[0], make_other(coal), places[1], request, peer)
        overlapping += bool(found.gap < 0.0)
        if gap < DEEP and (a, b) != ("box", "box"):
            assert 1.5 * gap < found.gap < gap + 1e-5  # a way out, if not the shortest of all
            continue
        assert found.gap == pytest.approx(gap, abs=1e-5 if curved else 1e-9)
        np.testing.assert_allclose(found.frame[0], -peer.normal, rtol=0, atol=1e-2 if curved else 1e-8)
    assert 5 < overlapping < 35
