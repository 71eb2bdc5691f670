"""Which shapes may touch."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from coupler import robots
from coupler.contact.pairs import pairs_of
from coupler.model import (
    Box,
    Capsule,
    Fixed,
    Free,
    Plane,
    Revolute,
    Robot,
    RobotBuilder,
    Rod,
    Shape,
    Sphere,
)
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


def crowd(rng: np.random.Generator) -> Robot:
    """Bodies on hinges, welds and a loop, with shapes of all groups; some pairs are excluded, and some are listed."""
    b, names = RobotBuilder("crowd"), ["ground", *(f"body{i}" for i in range(12))]
    for i, name in enumerate(names[1:]):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        kind = (Revolute(), Revolute(), Fixed())[rng.integers(3)]
        b.joint(f"joint{i}", kind, names[rng.integers(i + 1)], name, rng.normal(size=3))
    for x, name in enumerate(("post", "beam")):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, Revolute(), "ground", name, (x, 0, 0))
    b.loop("rod", Rod(1.0), "post", "beam", (0, 0.1, 0), (0, 0.1, 0))
    names += ["post", "beam"]
    for i in range(40):
        group, meets = (int(rng.choice([0, 1, 2, 3, 1 << 70])) for _ in "ab")  # whole numbers of any size
        b.shape(names[rng.integers(len(names))], Sphere(0.1), name=f"shape{i}", group=group, meets=meets)
    for _ in range(6):
        b.exclude(*(names[i] for i in rng.choice(len(names), 2, replace=False)))
    for first, second in {tuple(sorted(rng.choice(40, 2, replace=False))) for _ in range(8)}:
        b.contact_pair(f"shape{first}", f"shape{second}", 0.3)
    return b.build()


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_those_that_are_found_by_asking_for_one_after_the_other(seed: int) -> None:
    robot = crowd(np.random.default_rng(seed))
    link = {name: place[0] for name, place in robot.tree.place.items()}
    ends = [*((j.parent, j.child) for j in robot.joints), *((k.predecessor, k.successor) for k in robot.loops)]
    apart = {frozenset(link[body] for body in pair) for pair in ends} | {frozenset((i,)) for i in link.values()}
    apart = {links for links in apart if 0 not in links or len(links) == 1}
    excluded, listed = (
        {frozenset(pair) for pair in pairs}
        for pairs in (robot.exclusions, [(pair.first, pair.second) for pair in robot.contact_pairs])
    )
    expected = list[tuple[str, str]]()
    for a, b in combinations([s for s in robot.shapes if s.touches or any(s.name in pair for pair in listed)], 2):
        free = frozenset((link[a.body], link[b.body])) not in apart and frozenset((a.body, b.body)) not in excluded
        may = free and (a.group & b.meets or b.group & a.meets)
        if may or (frozenset((a.name, b.name)) in listed and link[a.body] != link[b.body]):
            expected.append((b.name, a.name) if link[a.body] == 0 else (a.name, b.name))
    assert names(robot) == expected


def test_thousands_of_shapes_on_one_body_are_not_compared_with_each_other() -> None:
    asked = 0

    class Counted(int):
        def __and__(self, other: int) -> int:
            nonlocal asked
            asked += 1
            return int(self) & other

    b = RobotBuilder("gravel")
    b.body("gravel", 1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("free", Free(), "ground", "gravel")
    for i in range(3000):
        b.shape("gravel", Sphere(0.01), (0.0, 0.0, 0.01 * i), group=Counted(1))
    b.shape("ground", Plane(), name="floor")
    assert len(pairs_of(b.build())) == 3000 and asked < 100
