"""Whether two shapes meet within a step: conservative advancement, on floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.contact.collision.convex import cores
from coupler.contact.collision.geometry import Point, contacts
from coupler.contact.pairs import Pair
from coupler.contact.passing import (
    MOST_ADVANCES,
    SLOP,
    Shift,
    advanced,
    can_pass,
    closing_speed,
    nearest,
    shifted,
)
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, Geometry, Plane, Shape, Sphere
from coupler.rotation import matrix_from_quaternion, normalize_quaternion
from coupler.spatial import Transform


def met(one: Shift, other: Shift, step: float) -> tuple[bool, float, int]:
    """Whether shapes meet, the time up to which that is known, and the number of advances."""
    t = 0.0
    for count in range(1, MOST_ADVANCES + 1):
        gap, normal = nearest(one, other, t, shifted(one, other, t))
        later, passes, meets = advanced(t, gap, closing_speed(one, other, normal), step)
        if passes or meets:
            return bool(meets), t, count
        t = float(later)
    return True, t, MOST_ADVANCES


def straight(form: Geometry, at: Any, velocity: Any, turning: Any = (0.0, 0.0, 0.0)) -> Shift:
    return Shift(form, Transform.translation(np.asarray(at, float)), np.array(turning), np.array(velocity, float))


def at_random(rng: np.random.Generator, form: Geometry, far: float) -> Shift:
    turn = matrix_from_quaternion(normalize_quaternion(rng.normal(size=4)))
    place = rng.normal(size=3)
    place *= far / np.linalg.norm(place)
    return Shift(form, Transform(turn, place), rng.normal(0.0, 3.0, 3), -4.0 * place / far + rng.normal(0.0, 1.0, 3))


BOX = Shift(Box((0.2, 0.2, 0.2)), Transform.identity())


@pytest.mark.parametrize("step", [1e-2, 5e-2, 1.0])
@pytest.mark.parametrize("above", [2e-3, 1e-5, 0.0, -0.4e-6])
def test_a_ball_beside_a_box_passes(above: float, step: float) -> None:
    assert not met(straight(Sphere(0.1), (-0.16, 0, 0.2 + above), (3, 0, 0)), BOX, step)[0]


@pytest.mark.parametrize("below", [2e-6, 1e-5, 1e-3, 0.05])
def test_a_ball_that_is_lower_meets_it_where_it_should(below: float) -> None:
    """Its centre is then 0.1 m from the edge."""
    meets, t, count = met(straight(Sphere(0.1), (-0.3, 0, 0.2 - below), (3, 0, 0)), BOX, 0.2)
    way = 0.2 - np.sqrt(0.1**2 - (0.1 - below) ** 2)
    assert meets and count < MOST_ADVANCES
    assert 3.0 * t == pytest.approx(way, abs=2e-6 + 2.0 * SLOP / np.sqrt(below / 0.1))


@pytest.mark.parametrize("depth", [0.0, 1e-14, -1e-14, -5e-7])
def test_a_box_that_slides_over_flush_boxes_passes_the_next(depth: float) -> None:
    slider = straight(Box((0.2, 0.2, 0.2)), (-0.2015, 0, 0.2 + depth), (2, 0, 0))
    assert not met(slider, BOX, 1e-2)[0]
    assert met(straight(Box((0.2, 0.2, 0.2)), (-0.2015, 0, 0.19), (2, 0, 0)), BOX, 1e-2)[0]


def test_a_bullet_meets_a_thin_wall() -> None:
    wall = Shift(Box((1e-3, 1.0, 1.0)), Transform.identity())
    meets, t, count = met(straight(Sphere(0.005), (-0.5, 0.1, 0.2), (1e4, 0, 0)), wall, 1e-2)
    assert meets and count <= 2
    assert 1e4 * t == pytest.approx(0.5 - 0.0055, abs=1e-5)


@pytest.mark.parametrize(
    "forms",
    [
        (Sphere(0.1), Box((0.2, 0.3, 0.1))),
        (Capsule(0.05, 0.3), Box((0.2, 0.3, 0.1))),
        (Capsule(0.05, 0.3), Capsule(0.1, 0.2)),
        (Sphere(0.1), Cylinder(0.1, 0.2)),
        (Point(), Ellipsoid((0.2, 0.1, 0.1))),
        (Box((0.3, 0.1, 0.2)), Box((0.2, 0.3, 0.1))),
    ],
)
def test_no_meeting_is_missed(forms: tuple[Geometry, Geometry]) -> None:
    """Against gaps at many times along the way, of shapes that move and turn at random; those of boxes are slow."""
    rng, found, boxes = np.random.default_rng(11), [], all(isinstance(form, Box) for form in forms)
    for _ in range(20 if boxes else 40):
        one, other, step = at_random(rng, forms[0], 0.6), at_random(rng, forms[1], 0.1), 0.2
        times = np.linspace(0.0, step, 50 if boxes else 100)
        gaps = [min(contact.gap for contact in contacts(*forms, one.after(t), other.after(t))) for t in times]
        if gaps[0] <= 0.0:
            continue
        meets, t, _ = met(one, other, step)
        first = times[np.argmax(np.array(gaps) < -SLOP)] if min(gaps) < -SLOP else np.inf
        assert meets or first == np.inf
        assert t <= first + 1e-9
        found.append((meets, first < np.inf))
    assert any(meets for meets, _ in found) and not all(meets for meets, _ in found)
    assert sum(meets != real for meets, real in found) <= 0.1 * len(found)  # undecided, or between two times


def test_the_gap_of_boxes_is_that_along_the_best_axis() -> None:
    """Less than their distance where corners are nearest, and their depth where they overlap."""
    rng = np.random.default_rng(2)
    forms = Box((0.3, 0.1, 0.2)), Box((0.2, 0.3, 0.1))
    for far in (0.1, 0.25, 0.4):
        for _ in range(10):
            one, other = at_random(rng, forms[0], far), at_random(rng, forms[1], 0.02)
            apart, normal = nearest(one, other, 0.0, [])
            gap = min(contact.gap for contact in contacts(*forms, one.X, other.X))
            assert apart <= gap + 1e-9
            assert np.linalg.norm(normal) == pytest.approx(1.0)
            if gap < 0.0:
                assert apart == pytest.approx(gap, abs=1e-7)


FORMS = [Capsule(0.05, 0.2), Box((0.2, 0.1, 0.3)), Cylinder(0.1, 0.3)]
FORMS += [Ellipsoid(radii) for radii in ((0.15, 0.1, 0.1), (0.1, 0.1, 0.15), (0.05, 0.1, 0.2))]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_turning_takes_a_surface_no_further_than_its_bound(form: Geometry) -> None:
    """Along any normal, about any axis; and for some, by a good part of that: it is no idle bound."""
    rng, most = np.random.default_rng(8), 0.0
    for _ in range(300):
        shift, normal = at_random(rng, form, 1.0), rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        for t in (1e-3, 0.03, 0.3):
            before, after = (cores.extent(form, X.E @ normal) for X in (shift.X, shift.after(t)))
            bound = shift.turning_along(normal) * t
            assert after - before <= bound + 1e-12
            most = max(most, (after - before) / bound)
    assert most > 0.9


def test_spin_about_an_axis_of_symmetry_or_about_the_normal_brings_nothing_nearer() -> None:
    for form, axis in ((Cylinder(0.1, 0.3), (0, 0, 1)), (Ellipsoid((0.2, 0.1, 0.1)), (1, 0, 0))):
        rolling = straight(form, (0, 0, 0), (0, 0, 0), 20.0 * np.array(axis))
        assert rolling.turning_speed == 0.0
    spinning = straight(Box((0.2, 0.2, 0.2)), (0, 0, 0), (0, 0, 0), (0.0, 0.0, 3.0))
    assert spinning.turning_along(np.array([0.0, 0.0, 1.0])) == 0.0
    assert spinning.turning_along(np.array([1.0, 0.0, 0.0])) == pytest.approx(3.0 * np.sqrt(0.03))


def test_half_spaces_cannot_be_passed() -> None:
    def pair(one: Geometry, other: Geometry) -> Pair:
        return Pair(
            Shape("one", "a", one, Transform.identity()), Shape("other", "b", other, Transform.identity()), 0.0, 1
        )

    assert can_pass(pair(Sphere(0.1), Box((1, 1, 1)))) and can_pass(pair(Box((1, 1, 1)), Box((1, 1, 1))))
    assert not can_pass(pair(Sphere(0.1), Plane()))
    assert can_pass(pair(Cylinder(0.1, 0.1), Box((1, 1, 1))))
