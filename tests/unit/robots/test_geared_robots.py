"""The bundled robots: how they are loaded, and the legged ones and the chains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.model import ModelError, Revolute, Robot
from coupler.robots import load, names

# name, options, and then: bodies, nq, nv, clusters, actuated joints, contact points, mass in kg.
SIZES: list[tuple[str, dict[str, Any], tuple[int, ...], float]] = [
    ("mini_cheetah", {}, (25, 19, 18, 13, 12, 23), 3.3 + 4 * (0.54 + 0.634 + 0.064) + 12 * 0.055),
    ("mit_humanoid", {}, (37, 25, 24, 17, 18, 21), 25.96855),
    ("mit_humanoid", {"rotors": False}, (19, 25, 24, 19, 18, 21), 24.86855),
    ("mit_humanoid_leg", {}, (10, 5, 5, 4, 5, 4), 5.680541),
    ("geared_chain", {}, (24, 12, 12, 12, 12, 12), 12.0),
    ("geared_chain", {"links": 1}, (2, 1, 1, 1, 1, 1), 1.0),
    ("geared_chain", {"links": 2}, (4, 2, 2, 2, 2, 2), 2.0),
    ("geared_chain", {"links": 100}, (200, 100, 100, 100, 100, 100), 100.0),
    ("belt_chain", {}, (24, 12, 12, 6, 12, 12), 12.0),
    ("belt_chain", {"links": 2}, (4, 2, 2, 1, 2, 2), 2.0),
    ("belt_chain", {"per_cluster": 3}, (24, 12, 12, 4, 12, 12), 12.0),
]


@pytest.mark.parametrize(("name", "options", "sizes", "mass"), SIZES)
def test_sizes(name: str, options: dict[str, Any], sizes: tuple[int, ...], mass: float) -> None:
    robot = load(name, **options)
    clusters = len(robot.cluster_tree.clusters) - 1  # without the ground
    counts = map(len, (robot.actuated_joints, robot.frame_names))
    assert (len(robot.bodies), robot.nq, robot.nv, clusters, *counts) == sizes
    assert robot.mass == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize(("name", "options", "sizes", "mass"), SIZES)
def test_states(name: str, options: dict[str, Any], sizes: tuple[int, ...], mass: float) -> None:
    """They are closed, and every motor is at an independent joint."""
    robot = load(name, **options)
    robot.check(robot.neutral())
    q, _ = robot.random_state(1)
    robot.check(q)
    assert set(robot.actuated_joints) == {joint for joint in robot.independent_joints if joint != "floating_base"}


def test_ratios() -> None:
    leg = load("mit_humanoid_leg")
    v = leg.pack_v({"right_hip_ry_link_joint": 1.0, "right_knee_link_joint": 2.0, "right_ankle_link_joint": 3.0})
    speed = leg.joint_velocities(leg.neutral(), v)
    rotors = [speed[f"right_{joint}_rotor_joint"] for joint in ("hip_rz", "hip_ry", "knee", "ankle")]
    assert rotors == [0.0, 6.0, 24.0, 60.0]
    chain = load("belt_chain", per_cluster=3, links=3)
    speed = chain.joint_velocities(chain.neutral(), chain.pack_v({f"link-{n}-0_joint": 1.0 for n in "ABC"}))
    assert [speed[f"rotor-{n}-0_joint"] for n in "ABC"] == [6.0, 12.0, 18.0]


def test_left_mirrors_right() -> None:
    """At rest, bodies on the two sides have their centres of mass mirrored in the plane of symmetry."""
    for name, pairs in (("mini_cheetah", (("HR_", "HL_"), ("FR_", "FL_"))), ("mit_humanoid", (("right_", "left_"),))):
        robot = load(name)
        centre = centres(robot)
        for right, left in pairs:
            bodies = [body for body in robot.body_names if body.startswith(right)]
            assert bodies
            for body in bodies:
                assert np.allclose(centre[body] * (1, -1, 1), centre[left + body.removeprefix(right)], atol=1e-15)


def centres(robot: Robot) -> dict[str, np.ndarray]:
    """The centres of mass in the world, with all joints at zero."""
    poses, found = {"ground": (np.eye(3), np.zeros(3))}, {}
    for joint in robot.joints:
        R, p = poses[joint.parent]
        R, p = R @ joint.placement.E.T, p + R @ joint.placement.r
        poses[joint.child] = R, p
        found[joint.child] = p + R @ robot.bodies[joint.child].centre
    return found


# Random chains


@pytest.mark.parametrize(
    ("name", "options"), [("geared_chain", {}), ("belt_chain", {}), ("belt_chain", {"per_cluster": 3})]
)
def test_a_seed_gives_a_chain(name: str, options: dict[str, Any]) -> None:
    """The same for the same seed, with the names and clusters of the chain without one, and physical."""
    alike, robot, again, other = (load(name, seed=seed, **options) for seed in (None, 4, 4, 5))
    assert figures(robot) == figures(again)
    assert figures(robot) != figures(other)
    for found in (robot, other):
        assert found.body_names == alike.body_names
        assert found.joint_names == alike.joint_names
        assert found.frame_names == alike.frame_names
        assert found.independent_joints == alike.independent_joints
        assert [c.bodies for c in found.cluster_tree.clusters] == [c.bodies for c in alike.cluster_tree.clusters]
        assert not any(body.ideal for body in found.bodies.values())


def test_a_longer_chain_begins_like_a_shorter_one() -> None:
    for name in ("geared_chain", "belt_chain"):
        for seed in (None, 6):
            short, long = (figures(load(name, links=links, seed=seed)) for links in (4, 8))
            assert long[: len(short)] == short


def figures(robot: Robot) -> list[Any]:
    """Of each part all that is drawn at random; ratios show in its speed."""
    speed = robot.joint_velocities(robot.neutral(), np.ones(robot.nv))
    found = []
    for joint in robot.joints:
        body = robot.bodies[joint.child]
        assert isinstance(joint.kind, Revolute)
        parts = (body.mass, body.centre, body.inertia, *body.contacts.values(), joint.placement.E, joint.placement.r)
        found.append([np.asarray(part).tolist() for part in (*parts, joint.kind.axis, speed[joint.name])])
    return found


# Mistakes


def test_names() -> None:
    assert len(set(names())) == len(names()) == 15
    names().clear()
    assert names()


@pytest.mark.parametrize(
    ("asked", "near"),
    [("mini_cheeta", "mini_cheetah"), ("MIT_Humanoid", "mit_humanoid"), ("gear_chain", "geared_chain")],
)
def test_an_unknown_robot(asked: str, near: str) -> None:
    with pytest.raises(ModelError, match=f"no bundled robot '{asked}'; did you mean '{near}'") as caught:
        load(asked)
    assert all(repr(name) in str(caught.value) for name in names())


@pytest.mark.parametrize("asked", ["xyz", "", None, 3])
def test_a_robot_that_is_like_no_other(asked: Any) -> None:
    with pytest.raises(ModelError, match=r"no bundled robot .*; there are 'mini_cheetah'"):
        load(asked)


def test_unknown_options() -> None:
    with pytest.raises(ModelError, match="'geared_chain' has no option 'link'; its options are 'links', 'seed'"):
        load("geared_chain", link=3)
    with pytest.raises(ModelError, match="'mini_cheetah' has no option 'links'; it has none"):
        load("mini_cheetah", links=3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("geared_chain", {"links": 0}, "links must be a whole number of at least 1, got 0"),
        ("geared_chain", {"links": 2.5}, "links must be a whole number"),
        ("geared_chain", {"links": True}, "links must be a whole number"),
        ("geared_chain", {"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ("geared_chain", {"seed": "one"}, "seed must be a whole number"),
        ("belt_chain", {"links": 0}, "links must be a whole number of at least 1"),
        ("belt_chain", {"links": 5}, "links must be a multiple of per_cluster, 2, got 5"),
        ("belt_chain", {"links": 4, "per_cluster": 3}, "multiple of per_cluster, 3, got 4"),
        ("belt_chain", {"per_cluster": 4}, "per_cluster must be 2 or 3, got 4"),
    ],
)
def test_wrong_values(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load(name, **options)
