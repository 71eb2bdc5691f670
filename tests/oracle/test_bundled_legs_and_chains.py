"""Bundled legged robots and chains, figure by figure against the reference files that describe the same robots.

The files name some contact points twice, those that are end effectors again, with "__ee" after their name. Ours have
frames there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import golden
from coupler.model import Free, Revolute, Robot
from coupler.robots import load

if not golden.FOLDER.is_dir():
    pytest.skip(f"no reference files: {golden.FOLDER} is no folder (set COUPLER_GOLDEN)", allow_module_level=True)

TOLERANCE = 1e-12  # relative to the largest entry
AGAIN = "__ee"

SAME: list[tuple[str, dict[str, Any], str]] = [
    ("mini_cheetah", {}, "MiniCheetah.json"),
    ("mit_humanoid", {}, "MIT_Humanoid.json"),
    ("mit_humanoid", {"rotors": False}, "MIT_Humanoid_no_rotors.json"),
    ("geared_chain", {"links": 12}, "RevoluteChainWithRotor12_uniform.json"),
    ("belt_chain", {"links": 12}, "RevolutePairChainWithRotor12_uniform.json"),
]
# Figures are random here and there; names, order and connections are the same.
ALIKE: list[tuple[str, dict[str, Any], str]] = [
    ("geared_chain", {"seed": 1}, "RevoluteChainWithRotor12_random.model.json"),
    ("belt_chain", {"seed": 1}, "RevolutePairChainWithRotor12_random.model.json"),
    ("belt_chain", {"seed": 1, "per_cluster": 3}, "RevoluteTripleChainWithRotor12_random.model.json"),
]
same = pytest.mark.parametrize(("name", "options", "file"), SAME)
alike = pytest.mark.parametrize(("name", "options", "file"), SAME + ALIKE)


def assert_equal(found: Any, expected: Any) -> None:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0.0) <= TOLERANCE * (np.abs(expected).max(initial=0.0) or 1.0)


def assert_same_part(robot: Robot, expected: golden.Data, parent: str) -> None:
    """A body and the joint that carries it."""
    body, joint = robot.bodies[expected["name"]], joint_of(robot, expected["joint"]["name"])
    assert_equal(body.mass, expected["mass"])
    assert_equal(body.centre, expected["com"])
    assert_equal(body.inertia, expected["inertia_com"])
    assert (joint.parent, joint.child) == (parent, expected["name"])
    assert_equal(joint.placement.E, expected["Xtree"]["E"])
    assert_equal(joint.placement.r, expected["Xtree"]["r"])
    assert type(joint.kind) is {"free": Free, "revolute": Revolute}[expected["joint"]["type"]]
    if isinstance(joint.kind, Revolute):
        assert_equal(joint.kind.axis, expected["joint"]["axis"])


def joint_of(robot: Robot, name: str) -> Any:
    (found,) = (joint for joint in robot.joints if joint.name == name)
    return found


@alike
def test_names_order_and_connections(name: str, options: dict[str, Any], file: str) -> None:
    robot, model = load(name, **options), golden.load(file)["model"]
    assert robot.body_names == [body["name"] for body in model["bodies"]]
    assert robot.joint_names == [body["joint"]["name"] for body in model["bodies"]]
    assert [joint.parent for joint in robot.joints] == [body["parent"] for body in model["bodies"]]
    assert sorted(robot.frame_names) == sorted(point["name"] for point in model["contact_points"])
    assert [0, 0, 0, *robot.gravity] == model["gravity"]
    assert (robot.nq, robot.nv) == (model["nq"], model["nv"])
    chosen = [joint for cluster in model["clusters"] for joint in golden.independent(model, cluster)]
    assert robot.independent_joints == robot.position_joints == chosen


@alike
def test_clusters(name: str, options: dict[str, Any], file: str) -> None:
    robot, reference = load(name, **options), golden.robot(file)
    assert members(robot) == members(reference)


def members(robot: Robot) -> list[list[str]]:
    return [[robot.tree.links[i].name for i in cluster.bodies] for cluster in robot.cluster_tree.clusters[1:]]


@same
def test_bodies_and_joints(name: str, options: dict[str, Any], file: str) -> None:
    robot = load(name, **options)
    for expected in golden.load(file)["model"]["bodies"]:
        assert_same_part(robot, expected, expected["parent"])


@same
def test_contact_points(name: str, options: dict[str, Any], file: str) -> None:
    robot = load(name, **options)
    for expected in golden.load(file)["model"]["contact_points"]:
        body = robot.bodies[expected["body"]]
        again = expected["name"].endswith(AGAIN)
        assert_equal(body.frames[expected["name"]].r if again else body.contacts[expected["name"]], expected["offset"])


@same
def test_couplings(name: str, options: dict[str, Any], file: str) -> None:
    """G at a random configuration, cluster by cluster, and nothing beside."""
    robot, model = load(name, **options), golden.load(file)["model"]
    q, v = robot.random_state(1)
    G, g = robot.explicit_constraint(q, v)
    expected = np.zeros_like(G)
    for cluster in model["clusters"]:
        entries = [robot.tree.velocities(robot.tree.number[joint]) for joint in golden.joints(model, cluster)]
        columns = [np.arange(robot.nv)[robot.v_slice(joint)] for joint in golden.independent(model, cluster)]
        expected[np.ix_(np.concatenate(entries), np.concatenate(columns))] = cluster["constraint"]["G"]
    assert_equal(G, expected)
    assert_equal(g, np.zeros_like(g))


@same
def test_states_are_carried_over_by_name(name: str, options: dict[str, Any], file: str) -> None:
    robot, data = load(name, **options), golden.load(file)
    for state in data["states"]:
        q = robot.pack_q(by_joint(data["model"], "num_positions", state["q_span"]))
        v = robot.pack_v(by_joint(data["model"], "num_velocities", state["qd_span"]), q)
        assert_equal(q, state["y"])
        assert_equal(v, state["yd"])


def by_joint(model: golden.Data, count: str, values: list[float]) -> dict[str, Any]:
    """The entries of each joint; of a joint with a single one, the number."""
    found = {joint: values[span] for joint, span in golden.spans(model, count)}
    return {joint: entries[0] if len(entries) == 1 else entries for joint, entries in found.items()}


def test_the_leg_is_the_humanoids() -> None:
    leg, model = load("mit_humanoid_leg"), golden.load("MIT_Humanoid.json")["model"]
    own = ("right_hip_", "right_knee_", "right_ankle_", "right_toe_", "right_heel_")
    parts = [body for body in model["bodies"] if body["name"].startswith(own)]
    assert leg.body_names == [part["name"] for part in parts]
    for part in parts:
        assert_same_part(leg, part, "ground" if part["parent"] == "Floating Base" else part["parent"])
    points = [point for point in model["contact_points"] if point["name"].startswith(own)]
    assert sorted(leg.frame_names) == sorted(point["name"] for point in points)
    for point in (point for point in points if not point["name"].endswith(AGAIN)):
        assert_equal(leg.bodies[point["body"]].contacts[point["name"]], point["offset"])
    chosen = [joint for cluster in model["clusters"] for joint in golden.independent(model, cluster)]
    assert leg.independent_joints == [joint for joint in chosen if joint.startswith(own)]
    humanoid = load("mit_humanoid")
    full, found = (robot.explicit_constraint(robot.neutral())[0] for robot in (humanoid, leg))
    rows = np.concatenate([humanoid.tree.velocities(humanoid.tree.number[link.joint]) for link in leg.tree.links[1:]])
    columns = [np.arange(humanoid.nv)[humanoid.v_slice(joint)] for joint in leg.independent_joints]
    assert_equal(found, full[np.ix_(rows, np.concatenate(columns))])
