"""Bundled robots with differentials and linkages, and JVRC-1, against the reference models: every part, G and g."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import golden
from coupler.model import Free, Revolute, Robot
from coupler.robots.four_bar import four_bar
from coupler.robots.jvrc1 import jvrc1
from coupler.robots.planar_leg_linkage import planar_leg_linkage
from coupler.robots.six_bar import six_bar
from coupler.robots.tello import tello
from coupler.robots.tello_with_arms import tello_with_arms

if not golden.FOLDER.is_dir():
    pytest.skip(f"no reference files: {golden.FOLDER} is no folder (set COUPLER_GOLDEN)", allow_module_level=True)

BUNDLED: dict[str, Callable[[], Robot]] = {
    "Tello.json": tello,
    "Tello_as_shipped.model.json": partial(tello, as_shipped=True),
    "TelloWithArms.model.json": tello_with_arms,
    "JVRC1_Humanoid.model.json": jvrc1,
    "urdf_four_bar.json": four_bar,
    "PlanarLegLinkage.json": planar_leg_linkage,
    "urdf_six_bar.model.json": six_bar,
}
SAME, CLOSE = 1e-12, 1e-9  # of figures, and of what is computed from them

every_robot = pytest.mark.parametrize("name", BUNDLED)


@cache
def bundled(name: str) -> Robot:
    return BUNDLED[name]()


def own_name(robot: Robot, joint: str) -> str:
    """What a bundled robot calls a file's joint. The two files of Tello alone name its free joint differently."""
    return "floating_base" if robot.name == "tello" and joint == "torso-to-ground" else joint


def same(found: Any, expected: Any, tolerance: float = SAME) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@every_robot
def test_names_order_and_gravity(name: str) -> None:
    robot, reference, model = bundled(name), golden.robot(name), golden.load(name)["model"]
    assert (robot.nq, robot.nv) == (model["nq"], model["nv"])
    assert robot.body_names == [body["name"] for body in model["bodies"]]
    assert robot.joint_names == [own_name(robot, body["joint"]["name"]) for body in model["bodies"]]
    assert robot.position_joints == [own_name(robot, joint) for joint in reference.position_joints]
    assert robot.independent_joints == [own_name(robot, joint) for joint in reference.independent_joints]
    assert len(robot.actuated_joints) == robot.nv - model["n_unactuated"]
    same(robot.gravity, model["gravity"][3:])


@every_robot
def test_bodies(name: str) -> None:
    robot = bundled(name)
    for body in golden.load(name)["model"]["bodies"]:
        found = robot.bodies[body["name"]]
        same(found.mass, body["mass"])
        same(found.centre, body["com"])
        same(found.inertia, body["inertia_com"])


@every_robot
def test_joints(name: str) -> None:
    robot = bundled(name)
    for found, body in zip(robot.joints, golden.load(name)["model"]["bodies"], strict=True):
        joint, place = body["joint"], golden.place(body["Xtree"])
        assert (found.name, found.parent, found.child) == (own_name(robot, joint["name"]), body["parent"], body["name"])
        same(found.placement.E, place.E)
        same(found.placement.r, place.r)
        if joint["type"] == "free":
            assert isinstance(found.kind, Free)
        else:
            assert joint["type"] == "revolute"
            assert isinstance(found.kind, Revolute)
            same(found.kind.axis, joint["axis"])


@every_robot
def test_contact_points(name: str) -> None:
    """A file has some points twice: those with "__ee" in their names, for its end effectors, are frames of ours."""
    robot, points = bundled(name), golden.load(name)["model"]["contact_points"]
    assert sorted(robot.frame_names) == sorted(point["name"] for point in points)
    for point in points:
        body = robot.bodies[point["body"]]
        again = point["name"].endswith("__ee")
        same(body.frames[point["name"]].r if again else body.contacts[point["name"]], point["offset"])


@every_robot
def test_constraints_at_random_states(name: str) -> None:
    """G and g are those of the robot that is built from the file; so is what counts as closed."""
    robot, reference = bundled(name), golden.robot(name)
    for seed in range(10):
        q, v = robot.random_state(seed)
        reference.check(q)
        for found, expected in zip(robot.explicit_constraint(q, v), reference.explicit_constraint(q, v), strict=True):
            same(found, expected, CLOSE * np.abs(expected).max(initial=1.0))


@pytest.mark.parametrize("name", [name for name in BUNDLED if not name.endswith(".model.json")])
def test_constraints_at_the_files_states(name: str) -> None:
    """G and g of each loop are the file's own, at its positions as they are."""
    robot, data = bundled(name), golden.load(name)
    model = data["model"]
    assert len(data["states"]) == 6
    for state in data["states"]:
        q, v = np.zeros(robot.nq), np.zeros(robot.nv)
        for joint, entries in golden.spans(model, "num_positions"):
            if joint in robot.position_joints:
                q[robot.q_slice(joint)] = state["q_span"][entries]
        for joint, entries in golden.spans(model, "num_velocities"):
            if joint in robot.independent_joints:
                v[robot.v_slice(joint)] = state["qd_span"][entries]
        robot.check(q)
        G, g = robot.explicit_constraint(q, v)
        for loop in state["clusters"]:
            rows, columns = _entries(robot, model, model["clusters"][loop["cluster"]])
            same(G[np.ix_(rows, columns)], loop["G"], CLOSE * np.abs(loop["G"]).max(initial=1.0))
            same(g[rows], loop["g"], CLOSE * np.abs(loop["g"]).max(initial=1.0))


def _entries(robot: Robot, model: golden.Data, cluster: golden.Data) -> tuple[np.ndarray, np.ndarray]:
    """Where a cluster's joints are among all velocities, and its independent ones in v, in the file's order."""
    rows = [robot.tree.velocities(robot.tree.number[joint]) for joint in golden.joints(model, cluster)]
    columns = [np.arange(robot.nv)[robot.v_slice(joint)] for joint in golden.independent(model, cluster)]
    return np.concatenate(rows), np.concatenate(columns)
