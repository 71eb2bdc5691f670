"""The contact problem by divide and conquer is that of the mass matrix and of recursions."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from coupler import forward_dynamics, inverse_osim, robots
from coupler.contact.divide_and_conquer import divide_and_conquer, divide_and_conquer_problem
from coupler.contact.formulations import recursive_problem, traditional_problem
from coupler.contact.pairs import pairs_of
from coupler.contact.problem import Bounded, Cone, Unilateral
from coupler.contact.scene import limited_joints, rubbing_joints
from coupler.model import Capsule, Continuous, ModelError, Plane, Robot, Shape, Sphere
from coupler.spatial import Transform
from effort import sweep
from random_robots import place, sample
from reference.stepping import contact_step

SAME = 1e-12  # relative to the largest entry
ROBOTS = ("tree", "floating tree", "revolute loop", "spherical loop afloat", "rod loop", "belt", "series", "gear")


@cache
def shaped(robot: Robot) -> Robot:
    """With a floor, and something on each body; on the interpreter."""
    rng = np.random.default_rng(0)
    shapes = [Shape("floor", "ground", Plane(), Transform.translation((0.0, 0.0, -1.0)), friction=0.6)]
    for i, body in enumerate(robot.bodies):
        shapes.append(Shape(body, body, (Sphere(0.1), Capsule(0.05, 0.3))[i % 2], place(rng)))
    return replace(robot, shapes=tuple(shapes)).with_backend("interpreter")


def hampered(robot: Robot, q: np.ndarray) -> Robot:
    """With dry friction in each joint, and limits about where they are in those that may have them."""
    rng, tree = np.random.default_rng(2), robot.tree
    p, links = robot.embedding.positions(q), [tree.links[0]]
    for i, link in enumerate(tree.links[1:], start=1):
        kind = replace(link.kind, friction=rng.uniform(1.0, 3.0, link.kind.nv))
        if kind.nq == kind.nv and not isinstance(kind, Continuous):
            kind = replace(kind, lower=p[tree.positions(i)] - 1e-3, upper=p[tree.positions(i)] + rng.random(kind.nv))
        links.append(replace(link, kind=kind))
    return replace(robot, tree=replace(tree, links=tuple(links)))


def gap(one: Any, other: Any) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


@pytest.mark.parametrize("name", sweep(ROBOTS, ["revolute loop", "gear"]))
def test_it_is_the_same_problem(name: str) -> None:
    robot = shaped(sample(name).robot)
    pairs, rng = pairs_of(robot), np.random.default_rng(1)
    for seed in range(3):
        (q, v), tau = robot.random_state(seed), rng.normal(size=robot.nv)
        problem, found = divide_and_conquer_problem(robot, q, v, tau, 1e-3, pairs)
        assert len(found) == sum(pair.count for pair in pairs) > 0
        for make in (traditional_problem, recursive_problem):
            other, _ = make(robot, q, v, tau, 1e-3, pairs)
            assert gap(problem.A, other.A) < SAME
            assert gap(problem.b, other.b) < SAME
            assert problem.blocks == other.blocks


@pytest.mark.parametrize(
    ("name", "torsion"),
    sweep(
        [*((name, None) for name in ROBOTS if name != "floating tree"), ("belt", 0.02), ("tree", 0.02)],
        [("spherical loop afloat", None), ("rod loop", None), ("belt", 0.02)],
    ),
)
def test_it_is_the_same_problem_with_limits_and_dry_friction_of_joints(name: str, torsion: float | None) -> None:
    q, v = sample(name).robot.random_state(0)
    robot = hampered(shaped(sample(name).robot), q)
    tau, pairs = np.random.default_rng(1).normal(size=robot.nv), pairs_of(robot, torsion=torsion)
    for limits in (True, False):
        problem, _ = divide_and_conquer_problem(robot, q, v, tau, 1e-3, pairs, limits=limits)
        assert {*map(type, problem.blocks)} == {Cone, Bounded, *([Unilateral] if limits else [])}
        for make in (traditional_problem, recursive_problem):
            other, _ = make(robot, q, v, tau, 1e-3, pairs, limits=limits)
            assert gap(problem.A, other.A) < SAME
            assert gap(problem.b, other.b) < SAME
            assert problem.blocks == other.blocks


@pytest.mark.parametrize("limits", [True, False])
def test_joints_alone_make_a_problem(limits: bool) -> None:
    q, v = sample("tree").robot.random_state(0)
    robot = hampered(sample("tree").robot, q)
    problem, found = divide_and_conquer_problem(robot, q, v, np.zeros(robot.nv), 1e-3, [], limits=limits)
    other, _ = traditional_problem(robot, q, v, np.zeros(robot.nv), 1e-3, [], limits=limits)
    assert (found, len(problem.blocks)) == ([], 2 * limits * len(limited_joints(robot)) + len(rubbing_joints(robot)))
    assert gap(problem.A, other.A) < SAME
    assert gap(problem.b, other.b) < SAME


def test_a_robot_steps_with_it_as_with_the_others() -> None:
    """It stands in the ground up to its hips, and is pushed out."""
    robot = robots.load("mini_cheetah")
    robot = replace(robot, shapes=(Shape("floor", "ground", Plane(), Transform.identity(), friction=0.6),))
    pairs, q, v = pairs_of(robot), robot.neutral(), np.zeros(robot.nv)
    ways = divide_and_conquer_problem, recursive_problem
    one, other = (contact_step(robot, q, v, np.zeros(robot.nv), 1e-3, pairs, formulation=way) for way in ways)
    assert other.solution.impulses.max() > 0.0
    np.testing.assert_allclose(one.v, other.v, rtol=0, atol=1e-10 * np.abs(other.v).max())


def test_a_batch_is_computed_state_by_state() -> None:
    robot = sample("spherical loop afloat").robot
    q, v = (np.array(x) for x in zip(*(robot.random_state(seed) for seed in range(5)), strict=True))
    names = robot.body_names[3:5]
    a, omega = divide_and_conquer(robot, q, v, np.zeros(robot.nv), names)
    np.testing.assert_allclose(a, forward_dynamics(robot, q, v, np.zeros(robot.nv)), rtol=0, atol=1e-10)
    np.testing.assert_allclose(omega, inverse_osim(robot, q, names), rtol=0, atol=1e-10)


def test_a_robot_that_can_touch_nothing_has_an_empty_problem() -> None:
    robot = sample("tree").robot
    q, v = robot.random_state(0)
    problem, found = divide_and_conquer_problem(robot, q, v, np.zeros(robot.nv), 1e-3, pairs_of(robot))
    assert (problem.A.shape, found) == ((0, 0), [])


def test_a_step_must_be_a_time() -> None:
    robot = shaped(sample("gear").robot)
    q, v = robot.random_state(0)
    with pytest.raises(ModelError, match="step must be a finite number"):
        divide_and_conquer_problem(robot, q, v, np.zeros(robot.nv), 0.0, pairs_of(robot))


def test_an_open_loop_is_refused() -> None:
    robot = sample("revolute loop").robot
    q, v = robot.random_state(0)
    with pytest.raises(ModelError, match="does not close"):
        divide_and_conquer(robot, q + 0.1, v, np.zeros(robot.nv), [])
