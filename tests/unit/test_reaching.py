"""Configurations of given positions of actuators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coupler
from coupler import Robot, UnreachableError
from coupler.mechanisms import StrutBuilder, hexagon, stewart
from coupler.model import Actuator, ModelError, Revolute
from coupler.reaching import configuration


@pytest.mark.parametrize("name", ["tello", "five_bar", "six_bar", "mini_cheetah"])
def test_actuators_get_where_they_are_sent(name: str) -> None:
    robot = coupler.robots.load(name)
    if not robot.actuators:
        robot = robot.with_actuators(Actuator(joint, joint) for joint in robot.independent_joints)
    near = np.stack([robot.random_state(seed)[0] for seed in range(4)])
    moves = np.random.default_rng(0).uniform(-0.2, 0.2, (4, robot.nv))
    targets = coupler.actuator_positions(robot, robot.integrate(near, moves))
    q = coupler.configuration_of_actuators(robot, targets, near)
    assert coupler.actuator_positions(robot, q) == pytest.approx(targets, abs=1e-9)
    robot.check(q)
    assert coupler.configuration_of_actuators(robot, targets[1], near[1]) == pytest.approx(q[1], abs=1e-12)


def test_dependent_actuators_are_followed_on_their_branch() -> None:
    robot = coupler.robots.load("slider_crank")
    slider = next(joint for joint in robot.joint_names if "slid" in joint)
    crank = next(joint for joint in robot.joint_names if "crank" in joint)
    robot = robot.with_actuators([Actuator("piston", slider)])
    for side in (1.0, -1.0):
        near = robot.pack_q({crank: side * 1.0})
        target = coupler.actuator_positions(robot, robot.pack_q({crank: side * 1.4}))
        q = coupler.configuration_of_actuators(robot, target, near)
        assert robot.joint_positions(q)[crank] == pytest.approx(side * 1.4, abs=1e-8)


def test_what_is_out_of_reach_offers_the_nearest() -> None:
    robot = coupler.robots.load("slider_crank")
    slider = next(joint for joint in robot.joint_names if "slid" in joint)
    crank = next(joint for joint in robot.joint_names if "crank" in joint)
    robot = robot.with_actuators([Actuator("piston", {slider: 2.0})])
    angles = np.linspace(-np.pi, np.pi, 721)
    reach = coupler.actuator_positions(robot, robot.pack_q({crank: angles}))[:, 0]
    for end, beyond in ((reach.max(), 0.5), (reach.min(), -0.5)):
        with pytest.raises(UnreachableError, match=r"'piston' does not reach.*nearest") as caught:
            coupler.configuration_of_actuators(robot, [end + beyond], robot.pack_q({crank: 1.0}))
        assert caught.value.nearest == pytest.approx([end], abs=1e-4)
        assert coupler.actuator_positions(robot, caught.value.q) == pytest.approx(caught.value.nearest)
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), UnreachableError)


def test_wrong_shapes_are_told() -> None:
    robot = coupler.robots.load("mini_cheetah")
    with pytest.raises(ModelError, match="positions must be 12"):
        coupler.configuration_of_actuators(robot, np.zeros(3))
    with pytest.raises(ModelError, match="do not fit"):
        coupler.configuration_of_actuators(robot, np.zeros((2, 12)), np.tile(robot.neutral(), (3, 1)))
    assert coupler.configuration_of_actuators(robot, np.zeros((0, 12))).shape == (0, robot.nq)


def test_programs_find_what_short_steps_find(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    platform = stewart(hexagon(0.3, gap=0.3), hexagon(0.2, gap=1.7), height=0.4)
    manus = coupler.robots.load("rh5_manus")
    for robot in (platform, manus, manus.with_closure("numerical"), coupler.robots.load("tello")):
        near = np.tile(robot.neutral(), (12, 1))
        moved = robot.integrate(near, rng.uniform(-0.2, 0.2, (12, robot.nv)))
        targets = coupler.actuator_positions(robot, moved)
        q = coupler.configuration_of_actuators(robot, targets, near, limits=False)
        with monkeypatch.context() as without:
            without.setattr(configuration, "is_answered_by_program", lambda robot: False)
            slow = coupler.configuration_of_actuators(robot, targets, near, limits=False)
        np.testing.assert_allclose(robot.difference(slow, q), 0.0, rtol=0, atol=1e-8)
        np.testing.assert_allclose(coupler.actuator_positions(robot, q), targets, rtol=0, atol=1e-10)
        one = coupler.configuration_of_actuators(robot, targets[3], near[3], limits=False)
        np.testing.assert_allclose(one, q[3], rtol=0, atol=1e-14)


def others(name: str) -> Robot:
    """Robots with more or fewer actuators than freedoms, and actuators of several clusters."""
    if name == "tendons":
        robot = coupler.robots.load("geared_chain", links=4)
        joints = robot.independent_joints
        pairs = [{joints[i]: 2.0, joints[i + 1]: -0.5} for i in range(3)]
        return robot.with_actuators(Actuator(f"tendon {i}", pair) for i, pair in enumerate(pairs))
    platform = stewart(hexagon(0.3, gap=0.3), hexagon(0.2, gap=1.7), height=0.4)
    closure = platform.with_closure("numerical") if name == "numerical" else platform
    sums = [Actuator(f"sum {i}", {f"piston_{i}": 1.0, f"piston_{i + 1}": 1.0}) for i in (1, 3)]
    actuators = {
        "redundant": (*platform.actuators, *sums),
        "fewer": platform.actuators[:4],
        "of low rank": (*platform.actuators[:4], *sums),  # six, that move in four ways
        "numerical": platform.actuators[:5],
    }
    return closure.with_actuators(actuators[name])


@pytest.mark.parametrize("name", ["tendons", "redundant", "fewer", "of low rank", "numerical"])
def test_any_number_of_actuators_is_answered_by_a_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In closed configurations, no further from where it starts than those that short steps find."""
    robot, rng = others(name), np.random.default_rng(0)
    near = np.tile(robot.neutral(), (8, 1))
    moved = robot.integrate(near, rng.uniform(-0.05, 0.05, (8, robot.nv)))
    targets = coupler.actuator_positions(robot, moved)
    with monkeypatch.context() as alone:
        alone.setattr(configuration, "Continuation", None)
        q = coupler.configuration_of_actuators(robot, targets, near)
    robot.check(q)
    np.testing.assert_allclose(coupler.actuator_positions(robot, q), targets, rtol=0, atol=1e-12)
    with monkeypatch.context() as without:
        without.setattr(configuration, "is_answered_by_program", lambda robot: False)
        slow = coupler.configuration_of_actuators(robot, targets, near)
    way, slow_way = (np.linalg.norm(robot.difference(near, end), axis=1) for end in (q, slow))
    most = 2.5 if name == "numerical" else 1.02  # there the way of all joints is the shortest
    assert (way <= most * slow_way + 1e-9).all()
    if name == "redundant":
        np.testing.assert_allclose(robot.difference(slow, q), 0.0, rtol=0, atol=1e-8)
        wrong = targets[0] + np.eye(8)[7] * 0.01  # which the legs do not allow
        with pytest.raises(UnreachableError, match="does not reach"):
            coupler.configuration_of_actuators(robot, wrong, near[0])


def test_joints_keep_within_their_limits_and_the_others_go_on() -> None:
    robot = coupler.robots.load("rh5_manus")
    start = robot.neutral()
    u = dict(zip(robot.actuator_names, coupler.actuator_positions(robot, start), strict=True))
    targets = np.array([x + 0.002 for x in u.values()])
    with pytest.raises(UnreachableError, match=r"'A.ElbowAct' does not reach.*stops at a limit.*nearest") as caught:
        coupler.configuration_of_actuators(robot, targets, start)
    elbows = ["Elbow" in name for name in u]
    np.testing.assert_allclose(caught.value.nearest[np.logical_not(elbows)], targets[np.logical_not(elbows)], atol=1e-9)
    lower = {joint.name: joint.kind.lower[0] for joint in robot.joints if joint.kind.nv == 1}
    for joint, position in robot.joint_positions(caught.value.q).items():
        assert position >= lower[joint] - 1e-8
    with pytest.raises(UnreachableError, match=r"'A.ElbowAct' does not reach") as caught:
        coupler.configuration_of_actuators(robot, np.array([*u.values()]) + 1.0, start, limits=False)
    others = [not ("Elbow" in name or "BodyAct" in name) for name in u]
    np.testing.assert_allclose(caught.value.nearest[others], np.array([*u.values()])[others] + 1.0, atol=1e-9)
    beyond = coupler.configuration_of_actuators(robot, targets, start, limits=False)
    np.testing.assert_allclose(coupler.actuator_positions(robot, beyond), targets, atol=1e-10)


def test_a_stroke_ends_where_its_joint_does() -> None:
    b = StrutBuilder("lid")
    b.body("lid", mass=4.0, centre=(0.3, 0, 0), inertia=(0.02, 0.12, 0.14))
    b.joint("hinge", Revolute(axis=(0, -1, 0), lower=-0.2, upper=0.5), "ground", "lid")
    b.strut("lift", "ground", "lid", at=(0.1, 0, -0.3), meets=(0.4, 0, 0), axis=(0, 1, 0), actuated=True)
    lid = b.build()
    longest = coupler.actuator_positions(lid, lid.pack_q({"hinge": 0.5}))
    with pytest.raises(UnreachableError, match="as 'hinge' stops at a limit") as caught:
        coupler.configuration_of_actuators(lid, longest + 0.02)
    assert caught.value.nearest == pytest.approx(longest, abs=1e-6)
    q = coupler.configuration_of_actuators(lid, longest)
    assert lid.joint_positions(q)["hinge"] == pytest.approx(0.5, abs=1e-8)
