"""Which pairs of a robot's own shapes are looked at, and how near shapes come to each other."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder
from coupler.contact.collision.geometry import contacts
from coupler.contact.collision.proximity import Proximity
from coupler.contact.formulations import touches
from coupler.contact.pairs import pairs_of
from coupler.contact.selection import select
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    Geometry,
    Hull,
    Plane,
    Prismatic,
    Revolute,
    Sphere,
)
from coupler.rotation import about_x, about_y

X, Y, Z = np.eye(3)
FORMS: list[Geometry] = [
    Sphere(0.1),
    Capsule(0.05, 0.2),
    Cylinder(0.08, 0.2),
    Box((0.1, 0.2, 0.15)),
    Ellipsoid((0.1, 0.05, 0.15)),
    Hull(np.random.default_rng(0).normal(size=(12, 3)) * 0.08 + (0.02, 0.0, -0.03)),
]


def two(one: Geometry, other: Geometry) -> Robot:
    """Two bodies afloat, their shapes off their frames and turned."""
    b = RobotBuilder("two")
    for name, form, turned in (("a", one, about_x(0.3).T), ("b", other, about_y(0.8).T)):
        b.body(name, 1.0, inertia=(1, 1, 1))
        b.joint(f"free {name}", Free(), "ground", name)
        b.shape(name, form, at=(0.1, 0.02, -0.05), turned=turned)
    return b.build()


@pytest.mark.parametrize("one", FORMS, ids=lambda form: type(form).__name__)
def test_shapes_are_never_said_to_be_further_apart_than_they_are(one: Geometry) -> None:
    rng = np.random.default_rng(3)
    for other in FORMS:
        robot = two(one, other)
        q = np.stack([robot.random_state(rng)[0] for _ in range(12)])
        q[:, [*range(3), *range(7, 10)]] *= 0.3
        pairs = pairs_of(robot)
        for i in range(len(q)):
            proximity = Proximity(robot, pairs, q[i : i + 1])
            exact = min(proximity.gaps(0, 0))
            assert proximity.nearest(0, np.inf) <= exact + 1e-9
            if isinstance(one, Box) and isinstance(other, Box) and exact < 0.0:
                assert proximity.nearest(0, np.inf) == pytest.approx(exact, abs=1e-9)  # these directions are all


def test_over_a_plane_the_distance_is_exact() -> None:
    for form in FORMS:
        robot = two(form, Sphere(0.1)).with_floor()
        pairs = [pair for pair in pairs_of(robot) if pair.one.name == "a" and pair.other.name == "floor"]
        q = robot.random_state(4)[0]
        proximity = Proximity(robot, pairs, q[None])
        assert proximity.nearest(0, 0.0) == pytest.approx(min(proximity.gaps(0, 0)), abs=1e-9)


def test_gaps_are_those_of_the_shapes() -> None:
    robot = two(FORMS[3], FORMS[5])
    q, (pair,) = robot.random_state(5)[0], pairs_of(robot)
    exact = [touch.contact.gap for touch in touches(robot, q, [pair])]
    assert Proximity(robot, [pair], q[None]).gaps(0, 0) == pytest.approx(exact, abs=1e-14)
    assert len(exact) == len(contacts(pair.one.geometry, pair.other.geometry, pair.one.at, pair.other.at))


def arm(reach: float, upper: float = 0.5, base: str = "revolute") -> Robot:
    """A post, a link that turns about x on it, and a finger at its end: how far up it goes is limited."""
    b = RobotBuilder("arm")
    for name in ("post", "link", "finger"):
        b.body(name, 1.0, inertia=(1, 1, 1))
    kind = Revolute(axis=Z) if base == "revolute" else Free() if base == "free" else Prismatic(axis=X)
    b.joint("base", kind, "ground", "post")
    b.joint("shoulder", Revolute(axis=X, lower=-upper, upper=upper), "post", "link", at=(0, 0, 0.5))
    b.joint("knuckle", Revolute(axis=X, lower=-0.1, upper=0.1), "link", "finger", at=(0, reach, 0))
    b.shape("post", Capsule(0.05, 0.4), at=(0, 0, 0.25))
    b.shape("finger", Sphere(0.05))
    return b.build()


def test_what_never_comes_near_within_the_limits_is_left_out() -> None:
    far = arm(1.0)
    found = select(far, pairs_of(far))
    assert not found.pairs
    ((name, apart),) = found.far
    assert name == "post on finger"
    assert apart > 0.25 * 0.3
    assert "never nearer than" in found.left_out["post on finger"]
    assert len(select(far, pairs_of(far), limits=False).pairs) == 1
    assert len(select(far, pairs_of(far), named=["post on finger"]).pairs) == 1
    near = arm(0.4, upper=1.5)
    assert len(select(near, pairs_of(near)).pairs) == 1


def test_what_overlaps_in_the_neutral_pose_is_left_out() -> None:
    robot = arm(0.08)
    found = select(robot, pairs_of(robot))
    assert not found.pairs
    ((name, depth),) = found.overlapping
    assert (name, depth) == ("post on finger", pytest.approx(0.02, abs=0.03))
    assert "overlaps by" in found.left_out[name]
    assert len(select(robot, pairs_of(robot), named=[name]).pairs) == 1


@pytest.mark.parametrize(("base", "kept"), [("free", True), ("slides", True), ("revolute", False)])
def test_what_may_leave_the_ground_keeps_its_contacts_with_it(base: str, kept: bool) -> None:
    """Deep in the floor in the neutral pose: what floats, or slides without limits, may go anywhere."""
    robot = arm(1.0, base=base).with_floor(height=0.2)
    names = [pair.name for pair in select(robot, pairs_of(robot)).pairs]
    assert ("post on floor" in names) is kept


def test_a_body_that_is_welded_to_the_ground_is_one_of_the_robots_own() -> None:
    """A lift in its column: in the neutral pose they overlap, at the upper limit they do not."""
    b = RobotBuilder("lift")
    for name in ("column", "carriage"):
        b.body(name, 1.0, inertia=(1, 1, 1))
    b.joint("weld", Fixed(), "ground", "column")
    b.joint("lift", Prismatic(axis=Z, lower=0.0, upper=1.0), "column", "carriage", at=(0, 0, 0.1))
    for name in ("column", "carriage"):
        b.shape(name, Box((0.2, 0.2, 0.4)))
    robot = b.build()
    assert [name for name, _ in select(robot, pairs_of(robot)).overlapping] == ["carriage on column"]


def test_different_trees_of_bodies_are_never_left_out() -> None:
    robot = two(Sphere(0.1), Sphere(0.1))
    assert len(select(robot, pairs_of(robot)).pairs) == 1


def test_shapes_without_a_name_go_by_their_bodies() -> None:
    b = RobotBuilder("blocks")
    b.body("block", 1.0, inertia=(1, 1, 1))
    b.joint("free", Free(), "ground", "block")
    b.body("lid", 1.0, inertia=(1, 1, 1))
    b.joint("weld", Fixed(), "block", "lid")
    for body in ("block", "block", "lid"):
        b.shape(body, Box((0.1, 0.1, 0.1)))
    b.shape("ground", Plane())
    assert [pair.name for pair in pairs_of(b.build())] == ["block on ground", "block 2 on ground", "lid on ground"]
    assert all(pair.matches("block*") for pair in pairs_of(b.build())[:2])


def test_where_too_few_poses_are_found_all_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = arm(1.0)
    monkeypatch.setattr(type(robot.states), "samples", lambda self, rng, count: np.zeros((5, robot.tree.nq)))
    assert [pair.name for pair in select(robot, pairs_of(robot)).pairs] == ["post on finger"]


def test_poses_that_are_tried_are_closed_and_within_limits() -> None:
    robot = coupler.robots.load("five_bar")
    p = robot.states.samples(np.random.default_rng(1), 200)
    assert len(p) > 50
    robot.states.check_closed(p)
    assert (p >= robot.tree.limits[0] - 1e-6).all() and (p <= robot.tree.limits[1] + 1e-6).all()
