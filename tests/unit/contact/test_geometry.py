"""Gaps, normals and points against what defines them: the directions that part two shapes.

For convex shapes with extents h_A and h_B along directions, the gap is the largest −h_A(−n) − h_B(n) over all unit
vectors n, apart or overlapping, and the normal is where it is reached. So a gap and normal that agree with the extents
are not too large; one that no direction beats is not too small; and points of the shapes that are as far apart as the
gap prove it, if it is positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import pytest

from coupler.contact.collision import geometry, proximity
from coupler.contact.collision.convex import cores
from coupler.contact.collision.distance_plane import cylinder_points
from coupler.contact.collision.geometry import Contact, Point, contacts, count
from coupler.contact.collision.terrain.solids import lowest_points
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Hull,
    Mesh,
    ModelError,
    Plane,
    Sphere,
)
from coupler.spatial import Transform
from transforms import random_transform

EDGES = np.array([[0.5, 0.1, -0.1], [0.2, 0.4, 0.1], [-0.1, 0.2, 0.7]])  # the hull's corners are ± its rows
SHAPES: dict[str, Geometry] = {
    "point": Point(),
    "sphere": Sphere(0.3),
    "capsule": Capsule(0.2, 0.7),
    "box": Box((0.5, 0.8, 1.1)),
    "cylinder": Cylinder(0.35, 0.6),
    "ellipsoid": Ellipsoid((0.3, 0.5, 0.8)),
    "hull": Hull(np.concatenate([EDGES, -EDGES])),
}
PAIRS = list(combinations_with_replacement(SHAPES, 2))
ROUND = {"point", "sphere"}
CURVED = {"cylinder", "ellipsoid"}
SHALLOW = -0.02  # m: where shapes overlap by less, the way out that a search finds is the shortest of all
CLOSED = [
    pair
    for pair in PAIRS
    if (set(pair) & ROUND and "hull" not in pair) or pair in [("capsule", "capsule"), ("capsule", "box")]
]

# Half of a shape's width along unit vectors n (rows, in its frame), and how far outside it a point is, at the most.
EXTENTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "point": lambda n: 0.0 * n[:, 0],
    "sphere": lambda n: 0.3 + 0.0 * n[:, 0],
    "capsule": lambda n: 0.2 + 0.35 * abs(n[:, 2]),
    "box": lambda n: abs(n) @ [0.25, 0.4, 0.55],
    "cylinder": lambda n: 0.35 * np.hypot(n[:, 0], n[:, 1]) + 0.3 * abs(n[:, 2]),
    "ellipsoid": lambda n: np.linalg.norm(n * [0.3, 0.5, 0.8], axis=1),
    "hull": lambda n: abs(n @ EDGES.T).max(axis=1),
}
OUTSIDE: dict[str, Callable[[np.ndarray], float]] = {
    "point": lambda p: float(np.linalg.norm(p)),
    "sphere": lambda p: float(np.linalg.norm(p) - 0.3),
    "capsule": lambda p: float(np.linalg.norm(p - [0, 0, np.clip(p[2], -0.35, 0.35)]) - 0.2),
    "box": lambda p: float(np.max(abs(p) - [0.25, 0.4, 0.55])),
    "cylinder": lambda p: max(float(np.hypot(p[0], p[1]) - 0.35), float(abs(p[2]) - 0.3)),
    "ellipsoid": lambda p: float(np.linalg.norm(p / [0.3, 0.5, 0.8]) - 1.0),
    "hull": lambda p: float(abs(p @ np.linalg.inv(EDGES)).sum() - 1.0),
}


def apart(a: str, b: str, X_a: Transform, X_b: Transform, n: np.ndarray) -> np.ndarray:
    """How far the two are apart along unit vectors n, rows, from the second to the first."""
    along = n @ (X_a.r - X_b.r)
    return along - EXTENTS[a](n @ X_a.E.T) - EXTENTS[b](n @ X_b.E.T)


def sphere_of_directions(many: int) -> np.ndarray:
    z = 1.0 - (2.0 * np.arange(many) + 1.0) / many
    turn = np.pi * (1.0 + 5.0**0.5) * np.arange(many)
    return np.column_stack([np.sqrt(1.0 - z * z) * np.cos(turn), np.sqrt(1.0 - z * z) * np.sin(turn), z])


DIRECTIONS = sphere_of_directions(4000)


def widest(a: str, b: str, X_a: Transform, X_b: Transform, rng: np.random.Generator) -> float:
    """The largest distance along any direction that a search finds; it may fall short of the gap."""
    values = apart(a, b, X_a, X_b, DIRECTIONS)
    best = -np.inf
    for start in np.argsort(-values)[:4]:
        n, value, reach = DIRECTIONS[start], values[start], 0.05
        while reach > 1e-8:
            around = n + reach * rng.normal(size=(24, 3))
            around /= np.linalg.norm(around, axis=1, keepdims=True)
            found = apart(a, b, X_a, X_b, around)
            if found.max() > value:
                n, value = around[found.argmax()], found.max()
            else:
                reach *= 0.6
        best = max(best, float(value))
    return best


def poses(seed: int, many: int) -> list[tuple[Transform, Transform]]:
    """About half of them overlapping."""
    rng = np.random.default_rng(seed)
    reaches = np.tile([0.15, 0.6], many)[:many]
    return [
        (Transform(X.E, reach * X.r), Transform(Y.E, 0.1 * Y.r))
        for reach, X, Y in ((reach, random_transform(rng), random_transform(rng)) for reach in reaches)
    ]


def first(a: str, b: str, X_a: Transform, X_b: Transform) -> Contact:
    """The contact with the smallest gap."""
    return min(contacts(SHAPES[a], SHAPES[b], X_a, X_b), key=lambda contact: contact.gap)


def check_same_contacts(one: list[Contact], other: list[tuple], gap: float, place: float) -> None:
    """Each contact of one list is in the other, given as gaps, normals and points, and the other way round.

    Their order may differ: where two lines cross, rounding decides whether their crossing counts as a corner.
    """
    there = [(contact.gap, contact.frame[0], contact.point) for contact in one]
    for some, others in ((there, other), (other, there)):
        for a in some:
            apart = [max(abs(a[0] - b[0]) / gap, *(np.abs(a[i] - b[i]).max() / place for i in (1, 2))) for b in others]
            assert min(apart) <= 1.0


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_gap_is_the_distance_along_the_direction_that_parts_most(a: str, b: str) -> None:
    rng = np.random.default_rng(1)
    overlapping = 0
    for X_a, X_b in poses(2, 16):
        contact = first(a, b, X_a, X_b)
        normal = contact.frame[0]
        np.testing.assert_allclose(contact.frame @ contact.frame.T, np.eye(3), rtol=0, atol=1e-14)
        assert np.linalg.det(contact.frame) == pytest.approx(1.0, abs=1e-14)
        axis_inside = (a, b) == ("capsule", "box") and contact.gap < -0.2
        if not axis_inside:  # where the candidates are three balls in the box, none of them the whole depth
            assert contact.gap == pytest.approx(apart(a, b, X_a, X_b, normal[None])[0], abs=1e-10)
            most = widest(a, b, X_a, X_b, rng)
            shortest = (a, b) in CLOSED or (a, b) == ("box", "box") or most > SHALLOW
            assert contact.gap > (1.0 if shortest else 1.5) * most - 1e-10
        exact = (a, b) in CLOSED or not CURVED & {a, b}
        for name, X, sign in ((a, X_a, 0.5), (b, X_b, -0.5)):
            assert OUTSIDE[name](X.E @ (contact.point + sign * contact.gap * normal - X.r)) < (1e-9 if exact else 1e-6)
        overlapping += bool(contact.gap < 0.0)
    assert 1 <= overlapping <= 15 or (a, b) == ("point", "point")


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_normal_is_the_slope_of_the_gap(a: str, b: str) -> None:
    step = 1e-6
    for X_a, X_b in poses(3, 6):
        contact = first(a, b, X_a, X_b)
        if (a, b) == ("capsule", "box") and contact.gap < -0.2:
            continue
        gaps = [[first(a, b, Transform(X_a.E, X_a.r + s * e), X_b).gap for s in (step, -step)] for e in np.eye(3)]
        slope = [(up - down) / (2.0 * step) for up, down in gaps]
        np.testing.assert_allclose(slope, contact.frame[0], rtol=0, atol=1e-5 if CURVED & {a, b} else 1e-6)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_exchanging_the_shapes_turns_the_normal_alone(a: str, b: str) -> None:
    exact = (a, b) in CLOSED
    for X_a, X_b in poses(4, 16):
        there = contacts(SHAPES[a], SHAPES[b], X_a, X_b)
        back = contacts(SHAPES[b], SHAPES[a], X_b, X_a)
        if first(a, b, X_a, X_b).gap < -0.5:  # there are several ways out
            continue
        assert len(there) == len(back) == count(SHAPES[a], SHAPES[b]) == count(SHAPES[b], SHAPES[a])
        expected = [(contact.gap, -contact.frame[0], contact.point) for contact in back]
        check_same_contacts(there, expected, 1e-13 if exact else 1e-6, 1e-13 if exact else 1e-5)


@pytest.mark.parametrize(("a", "b"), [*PAIRS, *(("plane", name) for name in SHAPES)])
def test_moving_both_moves_the_contacts(a: str, b: str) -> None:
    shapes = SHAPES | {"plane": Plane()}
    exact = (a, b) in CLOSED or a == "plane"
    motion = random_transform(np.random.default_rng(5))
    for X_a, X_b in poses(6, 16):
        before = contacts(shapes[a], shapes[b], X_a, X_b)
        after = contacts(shapes[a], shapes[b], X_a @ motion, X_b @ motion)
        expected = [(c.gap, motion.E @ c.frame[0], motion.E @ (c.point - motion.r)) for c in after]
        check_same_contacts(before, expected, 1e-13 if exact else 1e-6, 1e-12 if exact else 1e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_the_lowest_contact_with_a_plane_is_as_deep_as_the_shape_reaches(name: str) -> None:
    for X, ground in poses(7, 20):
        found = contacts(SHAPES[name], Plane(), X, ground)
        up = ground.E[2]
        lowest = min(found, key=lambda contact: contact.gap)
        assert lowest.gap == pytest.approx(up @ (X.r - ground.r) - EXTENTS[name]((X.E @ up)[None])[0], abs=1e-14)
        for contact in found:
            np.testing.assert_allclose(contact.frame[0], up, rtol=0, atol=1e-14)
            assert up @ (contact.point - ground.r) == pytest.approx(0.5 * contact.gap, abs=1e-14)
            assert OUTSIDE[name](X.E @ (contact.point + 0.5 * contact.gap * up - X.r)) < 1e-13


def test_a_capsule_has_its_ends_against_a_box_as_well() -> None:
    for X_a, X_b in poses(8, 20):
        *ends, nearest = contacts(SHAPES["capsule"], SHAPES["box"], X_a, X_b)
        for z, contact in zip((-0.35, 0.35), ends, strict=True):
            (ball,) = contacts(Sphere(0.2), SHAPES["box"], Transform(X_a.E, X_a.r + z * X_a.E[2]), X_b)
            inside = contact.gap < -0.2  # ends in the box leave it with the middle, not always by the nearest face
            assert contact.gap == pytest.approx(ball.gap, abs=1e-14) or (inside and contact.gap < ball.gap)
            assert nearest.gap <= contact.gap + 1e-14 or nearest.gap < -0.2


def test_what_has_no_contacts_is_told() -> None:
    here = Transform.identity()
    with pytest.raises(ModelError, match=r"no contacts between a plane and a plane"):
        contacts(Plane(), Plane(), here, here)
    with pytest.raises(ModelError, match=r"between a plane and a height field: give"):
        count(Plane(), HeightField(np.zeros((2, 2)), (1, 1)))
    with pytest.raises(ModelError, match=r"between a sphere and a mesh: give a mesh as Hull\(vertices\)"):
        count(Sphere(1.0), Mesh("part.stl"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hull([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]), r"hull: its vertices must be n × 3 .* volume"),
        (lambda: Hull([0.0, 1.0, 2.0]), r"hull: its vertices must be n × 3"),
        (lambda: Hull([[0.0, np.nan, 2.0]]), r"hull: its vertices must be"),
        (lambda: HeightField([0.0, 1.0], (1, 1)), r"height field: its heights must be a grid"),
        (lambda: HeightField([[0, 1], [np.inf, 0]], (1, 1)), r"height field: its heights must be 2 × 2 finite"),
        (lambda: HeightField(np.zeros((2, 2)), (1, 0)), r"height field: its size must be above zero"),
        (lambda: HeightField(np.zeros((2049, 2049)), (1, 1)), r"height field: it may have 4194304 heights at most"),
    ],
)
def test_a_form_that_cannot_be_is_refused(make: Callable[[], Geometry], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()


def test_a_lying_cylinder_keeps_the_order_of_its_ends() -> None:
    """Rounding decides which end is lower: contacts would find the impulses of each other."""
    for tilt in (-1e-15, 0.0, 1e-15):
        points = cylinder_points(np.array([1.0, 0.0, tilt]), 0.1, 0.3)
        np.testing.assert_allclose(points[:2], [[-0.1, 0.0, -0.3], [-0.1, 0.0, 0.3]], atol=1e-15)


# A shape that a contributor adds


@dataclass(frozen=True, eq=False)
class Egg(Geometry):
    """A sphere, of which nothing is known but its farthest point along a direction."""

    radius: float


def test_a_new_shape_needs_its_farthest_point_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def farthest(shape: Geometry, d: np.ndarray) -> np.ndarray:
        return shape.radius * d / np.sqrt(d @ d) if isinstance(shape, Egg) else known(shape, d)

    known, rng = cores.furthest, np.random.default_rng(0)
    monkeypatch.setattr(cores, "furthest", farthest)
    monkeypatch.setattr(geometry, "_CONVEX", geometry._CONVEX | Egg)
    egg, ball = Egg(0.3), Sphere(0.3)
    assert 0.3 <= cores.radius(egg) < 0.6
    directions = rng.normal(size=(4, 5, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    np.testing.assert_allclose(proximity._reach(egg, directions), 0.3, atol=1e-15)
    np.testing.assert_allclose(lowest_points(egg, directions[0, 0]), [-0.3 * directions[0, 0]], atol=1e-15)
    for other in (Plane(), SHAPES["box"], SHAPES["cylinder"], SHAPES["hull"]):
        X, X_other = Transform.translation((0.1, 0.2, 2.0)), Transform.identity()
        found, expected = (min(x.gap for x in contacts(one, other, X, X_other)) for one in (egg, ball))
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_shape_without_a_farthest_point_is_told() -> None:
    with pytest.raises(TypeError, match="is no shape whose furthest point along a direction is known"):
        cores.radius(Egg(0.3))
