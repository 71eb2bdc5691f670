"""Which shapes may touch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coupler import robots
from coupler.contact.pairs import pairs_of
from coupler.model import Box, Capsule, Fixed, Free, Plane, Revolute, Robot, RobotBuilder, Rod, Shape, Sphere
from coupler.spatial import Transform


def names(robot: Robot) -> list[tuple[str, str]]:
    return [(pair.one.name, pair.other.name) for pair in pairs_of(robot)]


def chain() -> RobotBuilder:
    """Floating: base - (hinge) - arm - (hinge) - hand, with a plate welded to the base."""
    b = RobotBuilder("chain")
    for name in ("base", "arm", "hand", "plate"):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        b.shape(name, Sphere(0.1), name=name)
    b.joint("root", Free(), "ground", "base")
    b.joint("shoulder", Revolute(), "base", "arm", (0.5, 0, 0))
    b.joint("wrist", Revolute(), "arm", "hand", (0.5, 0, 0))
    b.joint("weld", Fixed(), "base", "plate", (0, 0, 0.3))
    return b


def test_what_a_joint_or_a_weld_connects_does_not_touch() -> None:
    assert names(chain().build()) == [("base", "hand"), ("hand", "plate")]


def test_what_a_loop_connects_does_not_touch() -> None:
    b = chain()
    b.loop("strut", Rod(0.5), "hand", "plate", (0.2, 0, 0), (0.9, 0.3, -0.3))
    assert names(b.build()) == []


@pytest.mark.parametrize("mass", [0.0, 1e-9], ids=["no mass", "mass for form's sake"])
def test_joints_in_a_row_over_links_without_mass_and_shape_count_as_one(mass: float) -> None:
    """Three hinges make a ball joint; a cross on two more closes a loop to the plate."""
    b = chain()
    moment = (mass, mass, mass)
    for name in ("first", "second", "cross"):
        b.body(name, mass, inertia=moment)
    b.body("foot", 1.0, inertia=(0.1, 0.1, 0.1))
    b.shape("foot", Sphere(0.1), name="foot")
    b.joint("x", Revolute((1, 0, 0)), "hand", "first", (0.5, 0, 0))
    b.joint("y", Revolute((0, 1, 0)), "first", "second")
    b.joint("z", Revolute((0, 0, 1)), "second", "foot")
    b.joint("across", Revolute((1, 0, 0), armature=0.1), "foot", "cross", (0.0, 0.0, 0.3))
    b.loop("strut", Rod(1.0), "cross", "plate", (0, 0, 0), (1.5, 0, 1.0))
    assert sorted(names(b.build())) == [("arm", "foot"), ("base", "hand"), ("hand", "plate")]


def test_a_link_with_a_shape_keeps_its_neighbours_apart() -> None:
    b = chain()
    b.body("bead")
    b.shape("bead", Sphere(0.01), name="bead")
    b.body("foot", 1.0, inertia=(0.1, 0.1, 0.1))
    b.shape("foot", Sphere(0.1), name="foot")
    b.joint("x", Revolute((1, 0, 0)), "hand", "bead", (0.5, 0, 0))
    b.joint("y", Revolute((0, 1, 0)), "bead", "foot")
    assert ("hand", "foot") in names(b.build())


def test_everything_touches_the_ground_even_where_a_joint_is_on_it() -> None:
    b = chain()
    b.shape("ground", Plane(), name="floor")
    found = names(b.build())
    assert [pair for pair in found if "floor" in pair] == [(name, "floor") for name in ("base", "arm", "hand", "plate")]


def test_bits_choose_who_meets_whom() -> None:
    b = RobotBuilder("crowd")
    for name, group, meets in (("a", 1, 0), ("b", 0, 1), ("c", 2, 2), ("d", 0, 0)):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, Free(), "ground", name)
        b.shape(name, Sphere(0.1), name=name, group=group, meets=meets)
    assert names(b.build()) == [("a", "b")]  # c meets its own group alone, d nobody


@pytest.mark.parametrize(("one", "other", "expected"), [(0.3, 0.7, 0.7), (0.3, None, 0.3), (None, None, 1.0)])
def test_friction_is_the_larger_of_the_two(one: float | None, other: float | None, expected: float) -> None:
    b = RobotBuilder("ball")
    b.body("ball", 1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1), friction=one)
    b.shape("ground", Plane(), friction=other)
    (pair,) = pairs_of(b.build())
    assert (pair.friction, pair.count, pair.other.body) == (expected, 1, "ground")


def test_contact_points_touch_the_ground_and_nothing_else() -> None:
    cheetah = robots.load("mini_cheetah")
    assert pairs_of(cheetah) == []
    floor = Shape("floor", "ground", Plane(), Transform.identity())
    box = Shape("box", "FR_knee_link", Box((0.1, 0.1, 0.1)), Transform.identity())
    found = pairs_of(replace(cheetah, shapes=(floor, box)))
    assert found[0].one is box and found[0].count == 8
    assert len(found) == 1 + sum(len(body.contacts) for body in cheetah.bodies.values())
    assert all(pair.other is floor for pair in found)


def test_candidates_are_counted() -> None:
    b = chain()
    b.shape("ground", Plane(), name="floor")
    b.shape("hand", Capsule(0.05, 0.3), name="finger")
    assert sum(pair.count for pair in pairs_of(b.build())) == np.sum([1, 1, 1, 1, 1, 1, 1, 2, 1])
