"""Exact methods agree with each other; approximations are what they say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.algorithms.baselines import (
    joint_motion_program,
    lagrange_program,
    projected_osim_program,
    projected_rnea_program,
    projection_program,
    stabilized_dynamics_program,
    stabilized_rnea_program,
    with_armatures,
    without_rotors,
)
from coupler.compiled import run
from coupler.graph import compile
from coupler.kinematics import frame_place
from coupler.model import ModelError, Robot
from effort import every, sweep
from random_robots import ROBOTS, sample

EXACT = 1e-10  # relative to the largest entry
BUNDLED = ("mini_cheetah", "tello", "geared_chain", "belt_chain", "mit_humanoid_leg", "four_bar", "six_bar", "five_bar")


@cache
def bundled(name: str) -> Robot:
    """Loaded once; on the interpreter, which random robots are not."""
    return coupler.robots.load(name).with_backend("interpreter")


def near(found: Any, expected: np.ndarray, tolerance: float = EXACT) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=1.0))


def some_states(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, v = map(np.array, zip(*(robot.random_state(seed) for seed in range(4)), strict=True))
    return q, v, np.random.default_rng(0).normal(size=v.shape)


@pytest.mark.parametrize("name", every(2, BUNDLED))
@pytest.mark.parametrize("make", [projection_program, lagrange_program])
def test_forward_dynamics_of_bundled_robots(make: Callable[..., Any], name: str) -> None:
    robot = bundled(name)
    q, v, tau = some_states(robot)
    near(run(robot, make, q, v, tau), coupler.forward_dynamics(robot, q, v, tau))


@pytest.mark.parametrize("name", BUNDLED)
def test_inverse_dynamics_of_bundled_robots(name: str) -> None:
    robot = bundled(name)
    q, v, a = some_states(robot)
    near(run(robot, projected_rnea_program, q, v, a), coupler.inverse_dynamics(robot, q, v, a))


@pytest.mark.parametrize("name", sweep(BUNDLED, ["mit_humanoid_leg", "five_bar"]))
def test_inverse_operational_space_inertias_of_bundled_robots(name: str) -> None:
    robot = bundled(name)
    q, (first, *_, last) = some_states(robot)[0], list(robot.bodies)
    frames = [last, first, *robot.frame_names[-2:], last]
    omega = coupler.inverse_osim(robot, q, frames)
    near(projected_osim(robot, q, frames), omega, 1e-9)


def projected_osim(robot: Robot, q: np.ndarray, frames: list[str]) -> np.ndarray:
    program = projected_osim_program(robot, [frame_place(robot, frame) for frame in frames])
    return compile(program, backend=robot.backend)(q).reshape(len(q), 6 * len(frames), -1)


@pytest.mark.parametrize("name", sweep(list(ROBOTS)[::5], ["rod loop", "implicit"]))
def test_random_robots(name: str) -> None:
    """Trees, loops of several kinds and couplings: projection agrees with the cluster algorithms."""
    robot = sample(name).robot
    q, v, x = some_states(robot)
    near(run(robot, projected_rnea_program, q, v, x), coupler.inverse_dynamics(robot, q, v, x), 1e-9)
    near(run(robot, projection_program, q, v, x), coupler.forward_dynamics(robot, q, v, x), 1e-8)
    frames = list(robot.bodies)[-2:]
    near(projected_osim(robot, q, frames), coupler.inverse_osim(robot, q, frames), 1e-8)


def test_the_motion_of_all_joints() -> None:
    robot = bundled("five_bar")
    q, v, a = some_states(robot)
    p, w, wd = run(robot, joint_motion_program, q, v, a)
    G, g = robot.explicit_constraint(q, v)
    near(p, np.stack([robot.joint_positions(q)[joint] for joint in robot.joint_names], axis=-1))
    order = velocities_of_the_tree(robot)
    near(w, (G @ v[..., None])[..., 0][:, order])
    near(wd, ((G @ a[..., None])[..., 0] + g)[:, order])


def velocities_of_the_tree(robot: Robot) -> np.ndarray:
    """Where velocities of the spanning tree, in the order of its joints, are among those of all links."""
    return np.concatenate([robot.tree.velocities(robot.tree.number[joint]) for joint in robot._moving])


@pytest.mark.parametrize("name", ["five_bar", "mit_humanoid_leg", "tello"])
def test_stabilisation_does_nothing_where_loops_are_closed(name: str) -> None:
    robot = bundled(name)
    q, v, a = some_states(robot)
    times = {constraint.name: 0.01 for constraint in (*robot.loops, *robot.couplings)}
    G, g = robot.explicit_constraint(q, v)
    w, wd = (((G @ x[..., None])[..., 0] + y)[:, velocities_of_the_tree(robot)] for x, y in ((v, 0.0), (a, g)))
    tau = compile(stabilized_rnea_program(robot, times), backend=robot.backend)(q, w, a)
    near(tau, coupler.inverse_dynamics(robot, q, v, a))
    near(compile(stabilized_dynamics_program(robot, times), backend=robot.backend)(q, w, tau), wd, 1e-9)


@pytest.mark.parametrize(("time", "left"), [(0.05, 1e-3), (None, 1.0)])
def test_stabilisation_closes_what_is_open(time: float | None, left: float) -> None:
    """By e^(−t/T) (1 + t/T) after t = 10 T, with the gap at rest at first; without it, the gap stays."""
    robot = coupler.robots.load("five_bar").with_gravity((0, 0, 0))
    program = stabilized_dynamics_program(robot, {} if time is None else {robot.loops[0].name: time})
    rate, h = compile(program), 1e-3
    q, w = robot.neutral(), np.zeros(robot.tree.nv)
    q[-1] += 1e-4
    start = max(error.max() for error in robot.loop_errors(q).values())
    for _ in range(500):  # the midpoint rule; q and w are in the same order, all joints turn
        half = w + 0.5 * h * rate(q, w, np.zeros(robot.nv))
        q, w = q + h * half, w + h * rate(q + 0.5 * h * w, half, np.zeros(robot.nv))
    gap = max(error.max() for error in robot.loop_errors(q).values())
    assert gap < 2 * left * start
    assert time is not None or gap > 0.5 * start


def test_the_spanning_tree_has_all_joints() -> None:
    robot = coupler.robots.load("four_bar")
    tree = robot.spanning_tree()
    assert tree.joint_names == robot.joint_names
    assert (tree.nv, len(tree.loops)) == (3, 0)
    assert robot.with_backend("python").spanning_tree().backend == "python"


def rotors(robot: Robot) -> list[str]:
    return [body for body in robot.body_names if "rotor" in body]


def test_an_armature_is_the_ratio_squared_times_the_rotors_inertia() -> None:
    robot = coupler.robots.load("geared_chain", links=3)
    light, bare = with_armatures(robot, rotors(robot)), without_rotors(robot, rotors(robot))
    assert (light.nv, light.mass, bare.nv) == (robot.nv, robot.mass, robot.nv)
    assert bare.body_names == [body for body in robot.body_names if body not in rotors(robot)]
    G, _ = robot.explicit_constraint(robot.neutral())
    ratio = G[robot.tree.velocities(robot.tree.number[robot.joint_names[1]])].max()
    inertia = robot.bodies[rotors(robot)[0]].inertia[2, 2]
    kinds = {joint.name: joint.kind for joint in light.joints}
    assert kinds[light.joint_names[0]].armature[0] == pytest.approx(ratio**2 * inertia)
    assert not bare.joints[0].kind.armature.any()


@pytest.mark.parametrize("name", sweep(["mini_cheetah", "mit_humanoid_leg", "jvrc1"], ["mit_humanoid_leg"]))
def test_approximations_are_near_but_not_exact(name: str) -> None:
    robot = bundled(name)
    light, bare = with_armatures(robot, rotors(robot)), without_rotors(robot, rotors(robot))
    q, v, a = some_states(robot)
    exact, approximate, off = (coupler.inverse_dynamics(r, q, v, a) for r in (robot, light, bare))
    assert 0 < np.linalg.norm(approximate - exact) < np.linalg.norm(off - exact)


def test_what_cannot_be_left_out() -> None:
    robot = coupler.robots.load("geared_chain", links=2)
    with pytest.raises(ModelError, match="is not a rotor: it carries"):
        without_rotors(robot, robot.body_names[:1])
    with pytest.raises(ModelError, match="no body 'x'"):
        without_rotors(robot, ["x"])
