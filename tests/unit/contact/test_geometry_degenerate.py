"""Contacts where a direction or a nearest point is lost: finite, sensible, and without a warning."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from coupler.contact.collision.distance_convex import convex_distance
from coupler.contact.collision.distance_point import to_ellipsoid
from coupler.contact.collision.geometry import Contact, Point, contacts, tangents
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, Geometry, Hull, Plane, Sphere
from coupler.rotation import about_x, about_y, about_z
from coupler.spatial import Transform

HERE = Transform.identity()
CORNERS = np.array(list(product((-0.3, 0.3), repeat=3)))
SHAPES = [Point(), Sphere(0.3), Capsule(0.2, 0.7), Box((0.5, 0.8, 1.1)), Cylinder(0.35, 0.6), Hull(CORNERS)]
SHAPES += [Ellipsoid((0.3, 0.5, 0.8))]


def at(x: float, y: float, z: float, E: np.ndarray | None = None) -> Transform:
    return Transform(np.eye(3) if E is None else E, np.array([x, y, z]))


def named(value: object) -> str:
    return type(value).__name__


def lowest(one: Geometry, other: Geometry, X_one: Transform, X_other: Transform = HERE) -> Contact:
    return min(contacts(one, other, X_one, X_other), key=lambda contact: contact.gap)


@pytest.mark.parametrize("place", [(0.0, 0.0, 0.0), (1e-17, 0.0, -1e-17), (0.0, 0.0, 1e-160), (0.25, 0.0, 0.0)])
@pytest.mark.parametrize(("one", "other"), list(product(SHAPES, SHAPES)), ids=named)
def test_shapes_at_one_place_overlap_with_a_frame(
    one: Geometry, other: Geometry, place: tuple[float, float, float]
) -> None:
    found = contacts(one, other, at(*place), HERE)
    assert min(contact.gap for contact in found) <= max(place) + 1e-15
    for contact in found:
        assert np.isfinite(contact.gap)
        np.testing.assert_allclose(contact.frame @ contact.frame.T, np.eye(3), rtol=0, atol=1e-14)
        assert np.abs(contact.point).max() < 2.0


def test_concentric_shapes_are_as_deep_as_their_thinnest_sides() -> None:
    depths = {"Sphere": 0.3, "Capsule": 0.2, "Box": 0.25, "Cylinder": 0.3, "Hull": 0.3, "Ellipsoid": 0.3}
    for other in SHAPES[1:]:
        assert lowest(Sphere(0.1), other, HERE).gap == pytest.approx(-0.1 - depths[named(other)], abs=1e-11)


@pytest.mark.parametrize(
    ("place", "gap", "normal"),
    [
        ((0.4, 0.0, 0.0), -0.1, (1, 0, 0)),
        ((0.5, 0.0, 0.0), 0.0, (1, 0, 0)),
        ((0.5, 0.5, 0.5), 0.0, (1, 0, 0)),
        ((0.1, -0.45, 0.2), -0.05, (0, -1, 0)),
        ((0.1, 0.2, -0.5), 0.0, (0, 0, -1)),
        ((0.5, 0.2, 0.5 + 3e-17), 0.0, (1, 0, 0)),
        ((0.5, 0.8, 0.9), 0.5, (0, 0.6, 0.8)),
    ],
)
def test_a_point_in_a_box_or_on_it_leaves_by_the_nearest_face(place, gap, normal) -> None:
    (contact,) = contacts(Point(), Box((1, 1, 1)), at(*place), HERE)
    assert contact.gap == pytest.approx(gap, abs=1e-15)
    np.testing.assert_allclose(contact.frame[0], normal, rtol=0, atol=1e-15)


def test_parallel_capsules_touch_in_the_middle_of_what_they_share() -> None:
    for turn in (np.eye(3), about_x(np.pi), about_z(1.0)):
        contact = lowest(Capsule(0.1, 1.0), Capsule(0.2, 1.0), at(0.5, 0.0, 0.6, turn))
        assert contact.gap == pytest.approx(0.2, abs=1e-15)
        np.testing.assert_allclose(contact.point, (0.3, 0.0, 0.3), rtol=0, atol=1e-15)
        np.testing.assert_allclose(contact.frame[0], (1, 0, 0), rtol=0, atol=1e-15)


def test_capsules_in_line_touch_with_their_ends() -> None:
    contact = lowest(Capsule(0.1, 1.0), Capsule(0.2, 1.0), at(0.0, 0.0, 1.5))
    assert contact.gap == pytest.approx(0.2, abs=1e-15)
    np.testing.assert_allclose(contact.frame[0], (0, 0, 1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(contact.point, (0, 0, 0.8), rtol=0, atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-12, 2e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3])
def test_the_gap_of_nearly_parallel_capsules_is_that_of_parallel_ones_and_their_angle(angle: float) -> None:
    """The ends come nearer by half of the length times the sine."""
    contact = lowest(Capsule(0.1, 1.0), Capsule(0.1, 1.0), at(0.5, 0.0, 0.0, about_y(angle)))
    assert contact.gap == pytest.approx(0.3 - 0.5 * np.sin(angle), abs=1e-12)


@pytest.mark.parametrize("turn", [about_x(0.5 * np.pi), about_y(0.4), about_z(0.7) @ about_y(2.0)])
def test_capsules_whose_axes_cross_are_parted_across_both(turn: np.ndarray) -> None:
    X = Transform(turn, np.array([0.0, 0.0, 0.2]) + 0.1 * turn[2])
    contact = lowest(Capsule(0.1, 1.0), Capsule(0.2, 1.0), X)
    assert contact.gap == pytest.approx(-0.3, abs=1e-15)
    np.testing.assert_allclose(np.stack([turn[2], [0, 0, 1]]) @ contact.frame[0], 0.0, rtol=0, atol=1e-15)


def test_a_capsule_along_a_face_touches_at_its_ends_and_in_the_middle() -> None:
    found = contacts(Capsule(0.1, 0.6), Box((2, 2, 2)), at(0.0, 0.2, 1.1, about_y(0.5 * np.pi)), HERE)
    np.testing.assert_allclose([c.gap for c in found], 0.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(sorted(c.point[0] for c in found), (-0.3, 0.0, 0.3), rtol=0, atol=1e-14)
    np.testing.assert_allclose([c.frame[0] for c in found], [(0, 0, 1)] * 3, rtol=0, atol=1e-15)


def test_a_capsule_through_a_box_is_held_where_it_is_halfway() -> None:
    *_, through = contacts(Capsule(0.1, 3.0), Box((2, 2, 1)), at(0.0, 0.0, 0.1, about_y(0.3)), HERE)
    assert through.gap == pytest.approx(-0.6, abs=1e-14)


def test_a_capsule_with_its_axis_in_a_box_leaves_by_one_face() -> None:
    """Its upper end is nearest to the upper face, its lower end to the lower one; sideways is shorter for both."""
    found = contacts(Capsule(0.1, 0.8), Box((0.6, 1, 1)), at(0.05, 0.0, 0.0), HERE)
    np.testing.assert_allclose([c.gap for c in found], -0.35, rtol=0, atol=1e-14)
    np.testing.assert_allclose([c.frame[0] for c in found], [(1, 0, 0)] * 3, rtol=0, atol=1e-15)


def test_an_upright_cylinder_stands_on_three_points() -> None:
    for turn in (np.eye(3), about_x(np.pi), about_z(2.0)):
        found = contacts(Cylinder(0.3, 1.0), Plane(), at(0.0, 0.0, 0.5, turn), HERE)
        standing = [c for c in found if abs(c.gap) < 1e-14]
        assert len(standing) == 3
        np.testing.assert_allclose(sum(c.point for c in standing), 0.0, rtol=0, atol=1e-14)
        np.testing.assert_allclose([np.hypot(*c.point[:2]) for c in standing], 0.3, rtol=1e-14)


def test_a_lying_cylinder_lies_on_two_points() -> None:
    for turn in (about_y(0.5 * np.pi), about_y(-0.5 * np.pi)):
        found = contacts(Cylinder(0.3, 1.0), Plane(), at(0.0, 0.0, 0.3, turn), HERE)
        lying = [c for c in found if abs(c.gap) < 1e-14]
        np.testing.assert_allclose(sorted(c.point[0] for c in lying), (-0.5, 0.5), rtol=1e-14)


@pytest.mark.parametrize("angle", [1e-14, 1e-12, 1e-10, 1e-8, 1e-4, 1.0, 0.5 * np.pi - 1e-9])
def test_a_tilted_cylinder_touches_at_its_lowest_point(angle: float) -> None:
    contact = lowest(Cylinder(0.3, 1.0), Plane(), at(0.0, 0.0, 1.0, about_x(angle)))
    assert contact.gap == pytest.approx(1.0 - 0.3 * np.sin(angle) - 0.5 * np.cos(angle), abs=1e-11)


@pytest.mark.parametrize("height", [1.0, 1.0 + 1e-12, 1.0 - 1e-12, 1.0 + 1e-7, 0.9, 1.1])
@pytest.mark.parametrize("upper", [Box((1, 1, 1)), Cylinder(0.5, 1.0), Ellipsoid((0.4, 0.5, 0.5))], ids=named)
@pytest.mark.parametrize("lower", [Box((1, 1, 1)), Cylinder(0.5, 1.0)], ids=named)
def test_stacked_shapes_touch_between_each_other(lower: Geometry, upper: Geometry, height: float) -> None:
    found = contacts(upper, lower, at(0.1, 0.2, height), HERE)
    assert len(found) == (1 if isinstance(upper, Ellipsoid) else 5)
    touching = [contact for contact in found if contact.gap < 0.5]
    assert len(touching) == (1 if isinstance(upper, Ellipsoid) else 4)
    for contact in touching:
        assert contact.gap == pytest.approx(height - 1.0, abs=1e-9)
        np.testing.assert_allclose(contact.frame[0], (0, 0, 1), rtol=0, atol=1e-4)
        assert contact.point[2] == pytest.approx(0.5 * height, abs=1e-9)
        assert np.abs(contact.point[:2]).max() < 0.5 + 1e-9


@pytest.mark.parametrize("radii", [(1.0, 1.0, 1.0), (1.0, 0.5, 0.5), (1.0, 0.1, 0.3), (0.01, 1.0, 0.1)])
def test_the_nearest_point_of_an_ellipsoid_is_on_it_and_straight_below(radii: tuple[float, ...]) -> None:
    a = np.array(radii)
    rng = np.random.default_rng(15)
    for size in (0.0, 1e-13, 1e-6, 0.01, 0.5, 1.0, 3.0, 100.0):
        for keep in product((0.0, 1.0), repeat=3):
            p = size * rng.normal(size=3) * a * keep
            distance, normal = to_ellipsoid(p, a)
            x = p - distance * normal
            assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-15)
            assert np.linalg.norm(x / a) == pytest.approx(1.0, abs=1e-10)
            gradient = x / a**2
            # What is beside a coordinate plane by the floor of 1e-12 may be turned by so much over the distance.
            assert gradient @ normal / np.linalg.norm(gradient) == pytest.approx(1.0, abs=1e-12)
            assert distance >= -a.min() - 1e-12


def test_tangents_make_a_right_handed_frame_everywhere() -> None:
    rng = np.random.default_rng(16)
    normals = np.concatenate([rng.normal(size=(200, 3)), np.eye(3), -np.eye(3), [[1, 0, 1e-300], [1, 0, -0.0]]])
    for n in normals / np.linalg.norm(normals, axis=1, keepdims=True):
        frame = np.stack([n, *tangents(n)])
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), rtol=0, atol=1e-15)
        assert np.linalg.det(frame) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_array_equal(np.stack(tangents(np.array([0.0, 0.0, 1.0]))), np.eye(3)[:2])


def test_cylinders_on_one_axis_are_parted_sideways() -> None:
    """The way out is the same all round, which is the worst case for a polytope."""
    contact = lowest(Cylinder(0.3, 1.0), Cylinder(0.1, 1.5), HERE)
    assert contact.gap == pytest.approx(-0.4, abs=1e-3)
    assert abs(contact.frame[0, 2]) < 1e-3


def test_convex_distance_takes_any_support() -> None:
    """A segment against a tetrahedron, whose nearest points are by hand."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    segment = np.array([[1, 1, 1], [2, 1, 1]], float)
    apart = convex_distance(lambda d: segment[np.argmax(segment @ d)], lambda d: corners[np.argmax(corners @ d)])
    assert apart.gap == pytest.approx(2.0 / np.sqrt(3.0), abs=1e-15)
    np.testing.assert_allclose(apart.normal, np.full(3, 1.0 / np.sqrt(3.0)), rtol=1e-14)
    np.testing.assert_allclose(apart.first, (1, 1, 1), rtol=1e-14)
    np.testing.assert_allclose(apart.second, np.full(3, 1.0 / 3.0), rtol=1e-14)
