"""Robots travel: pickled, copied, and sent to other processes, they give the same answers bit for bit."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.mechanisms import gear
from coupler.model import Fixed, ModelError, Revolute, Robot, RobotBuilder, Spherical
from effort import sweep

Answers = list[np.ndarray]


def answers(robot: Robot) -> Answers:
    """What a robot says in a state: all joints, dynamics forwards and backwards, and a closed configuration."""
    q, v = robot.random_state(3)
    a = np.linspace(-1.0, 1.0, robot.nv)
    tau = coupler.inverse_dynamics(robot, q, v, a)
    parts = [q, v, tau, coupler.forward_dynamics(robot, q, v, tau), robot.neutral()]
    return [*parts, *robot.explicit_constraint(q, v), robot.integrate(q, v, 1e-3), *robot.joint_positions(q).values()]


def assert_same(one: Answers, other: Answers) -> None:
    for x, y in zip(one, other, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def two_turns(couple: Any, independent: list[str], joint: Any = None) -> Robot:
    """Two bodies that turn about parallel axes, their joints coupled."""
    b = RobotBuilder("two_turns")
    for i, name in enumerate(("first", "second")):
        b.body(name, 1.0, centre=(0.1 * (i + 1), 0.0, 0.0), inertia=(0.01, 0.02, 0.03))
        b.joint(name, joint or Revolute(axis=(0, 0, 1)), "ground", name)
    b.couple("linkage", ["first", "second"], couple, independent)
    return b.build()


SHORT = ["mini_cheetah", "mit_humanoid_leg", "geared_chain", "belt_chain", "four_bar", "five_bar", "planar_leg_linkage"]


@pytest.mark.parametrize("name", sweep(coupler.robots.names(), SHORT))
def test_bundled_robots_give_the_same_answers_after_a_journey(name: str) -> None:
    robot = coupler.robots.load(name)
    expected = answers(robot)  # programs and cached properties are there when it is pickled
    data = pickle.dumps(robot)
    assert len(data) < 200_000
    travelled = pickle.loads(data)
    assert isinstance(travelled, Robot)
    assert str(travelled) == str(robot)
    assert_same(answers(travelled), expected)
    assert_same(answers(copy.deepcopy(robot)), expected)
    assert len(pickle.dumps(travelled)) < 1.1 * len(data)  # what it has computed since then is not in it


def test_a_robot_is_the_same_for_every_protocol_and_stays_frozen() -> None:
    robot = coupler.robots.load("tello").with_floor()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        travelled = pickle.loads(pickle.dumps(robot, protocol))
        assert travelled.states.tree is travelled.tree
        assert travelled.body_names == robot.body_names
        assert [shape.name for shape in travelled.shapes] == [shape.name for shape in robot.shapes]
        with pytest.raises(ValueError, match="read-only"):
            travelled.states.neutral[0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            travelled.gravity[0] = 1.0
        with pytest.raises(TypeError, match="does not support item assignment"):
            travelled.bodies["another"] = None


def test_a_copy_of_a_robot_is_the_robot() -> None:
    """It never changes, and what is compiled for it serves both."""
    robot = coupler.robots.load("four_bar")
    assert copy.copy(robot) is robot
    assert copy.deepcopy({"robot": [robot]})["robot"][0] is robot


def test_programs_of_a_robot_that_travelled_are_the_same_text() -> None:
    for name in ("tello", "five_bar"):
        robot = coupler.robots.load(name)
        travelled = pickle.loads(pickle.dumps(robot))
        for one, other in zip(robot.embedding.closure.loops, travelled.embedding.closure.loops, strict=True):
            assert [c.form for c in one.constraints] == [c.form for c in other.constraints]
        closure, again = robot.embedding.closure, travelled.embedding.closure
        assert str(closure.rates.program) == str(again.rates.program)


def test_idle_freedoms_that_are_locked_travel() -> None:
    b = RobotBuilder("rod_on_balls")
    b.body("crank", 1.0, centre=(0.1, 0.0, 0.0), inertia=(0.01, 0.02, 0.03))
    b.body("rod", 1.0, centre=(0.25, 0.0, 0.0), inertia=(0.01, 0.02, 0.03))
    b.body("rocker", 1.0, centre=(0.1, 0.0, 0.0), inertia=(0.01, 0.02, 0.03))
    b.joint("crank", Revolute(axis=(0, 0, 1)), "ground", "crank")
    b.joint("near", Spherical(), "crank", "rod", at=(0.2, 0.0, 0.0))
    b.joint("rocker", Revolute(axis=(0, 0, 1)), "ground", "rocker", at=(0.5, 0.0, 0.0))
    b.loop("far", Spherical(), "rod", "rocker", (0.5, 0.0, 0.0), (0.2, 0.0, 0.0))
    robot = b.build(lock_idle=True)
    assert any("lock" in c.name for loop in robot.embedding.closure.loops for c in loop.constraints)
    assert_same(answers(pickle.loads(pickle.dumps(robot))), answers(robot))


def importable_gear(y: Any) -> Any:
    return np.array([y[0], 3.0 * y[0]])


def test_functions_of_couplings_go_by_reference_where_they_can_be_imported() -> None:
    for function in (importable_gear, gear(3.0)):
        robot = two_turns(function, ["first"])
        travelled = pickle.loads(pickle.dumps(robot))
        assert type(travelled.couplings[0].function) is type(function)
        assert_same(answers(travelled), answers(robot))
    assert pickle.loads(pickle.dumps(two_turns(importable_gear, ["first"]))).couplings[0].function is importable_gear


def test_lambdas_and_closures_of_couplings_go_by_their_trace() -> None:
    ratio = 0.3
    functions = {
        "solution": (lambda y: np.array([y[0], ratio * np.sin(y[0]) + np.where(y[0] > 0.5, y[0], 0.5)]), ["first"]),
        "relation": (lambda q: q[1] - ratio * np.arctan2(np.sin(q[0]), 2.0 + np.cos(q[0])), []),
    }
    for function, independent in functions.values():
        robot = two_turns(function, independent)
        travelled = pickle.loads(pickle.dumps(robot))
        assert_same(answers(travelled), answers(robot))
        x = np.array([0.7]) if independent else np.array([0.7, 0.2])
        np.testing.assert_allclose(travelled.couplings[0].function(x), function(x), rtol=1e-15, atol=1e-16)
        assert travelled.spanning_tree().nv == 2
        same = two_turns(travelled.couplings[0].function, independent)  # a trace can be traced
        assert_same(answers(same), answers(robot))
        assert_same(
            answers(same.with_backend("python")), answers(pickle.loads(pickle.dumps(same.with_backend("python"))))
        )
        again = pickle.loads(pickle.dumps(travelled))  # a trace travels on
        assert_same(answers(again), answers(robot))


def test_a_coupling_that_cannot_travel_is_named() -> None:
    calls = iter(range(10**6))
    broken = False

    def moody(y: Any) -> Any:
        if broken:
            raise RuntimeError(f"call {next(calls)}")
        return np.array([y[0], 2.0 * y[0]])

    robot = two_turns(moody, ["first"])
    broken = True
    with pytest.raises(ModelError, match=r"coupling 'linkage' cannot be pickled: its function .*moody.* top level"):
        pickle.dumps(robot)


def test_a_class_of_joints_that_cannot_be_imported_is_named() -> None:
    class OwnRevolute(Revolute):
        """A joint whose class only this function knows."""

    robot = two_turns(gear(2.0), ["first"], OwnRevolute(axis=(0, 0, 1)))
    with pytest.raises(ModelError, match=r"robot 'two_turns' cannot be pickled: .*OwnRevolute.* top level of a module"):
        pickle.dumps(robot)


def test_a_robot_welded_to_the_ground_travels() -> None:
    b = RobotBuilder("anvil")
    b.body("anvil", 5.0, inertia=(0.1, 0.1, 0.1))
    b.joint("weld", Fixed(), "ground", "anvil")
    assert pickle.loads(pickle.dumps(b.build())).nv == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_robots_are_sent_to_other_processes_and_back(method: str) -> None:
    ratio = 0.4
    own = two_turns(lambda q: q[1] - ratio * np.sin(q[0]), [])
    robots = [coupler.robots.load("four_bar"), coupler.robots.load("mit_humanoid_leg"), own]
    calls = [(robot, *robot.random_state(3), np.ones(robot.nv)) for robot in robots]
    with multiprocessing.get_context(method).Pool(1) as pool:
        for call, found in zip(calls, pool.starmap(coupler.forward_dynamics, calls), strict=True):
            assert_same([found], [coupler.forward_dynamics(*call)])
        for robot, back in zip(robots, pool.map(copy.copy, robots), strict=True):
            assert_same(answers(back), answers(robot))
