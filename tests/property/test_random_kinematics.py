"""Kinematics of random robots: motions of frames against differences of their poses, and sums over bodies.

Poses are those of the spanning tree, walked in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import ModelError, RobotBuilder
from coupler.algorithms.kinematics import frame_jacobian_rate_program
from coupler.graph import Interpreter
from coupler.kinematics import frame_place
from coupler.model import Fixed, Revolute, Robot
from coupler.spatial import Transform
from effort import every
from random_robots import ROBOTS, sample

EXACT = 1e-12  # relative to the largest entry; 2e-14 is reached
SLOPE = 1e-7  # difference quotients against derivatives
STATES = 3


@cache
def states_of(name: str) -> tuple[Robot, np.ndarray, np.ndarray, np.ndarray, str]:
    """A robot, some states so slow that differences along the motion are good, accelerations, and a body."""
    robot, rng = sample(name).robot, np.random.default_rng(4)
    q, v = map(np.array, zip(*(robot.random_state(seed) for seed in range(STATES)), strict=True))
    _, g = robot.explicit_constraint(q, v)
    w = np.concatenate([x.reshape(STATES, -1) for x in robot.joint_velocities(q, v).values()], axis=1)
    v = v / np.maximum.reduce([np.ones(STATES), np.abs(w).max(axis=1), np.sqrt(np.abs(g).max(axis=1))])[:, None]
    deep = max(robot.bodies, key=lambda body: robot.tree.place[body][0])
    return robot, q, v, rng.normal(size=v.shape), deep


SLOW = ("parallel", "overlapping", "delta", "nested", "series")  # to compile; test_random_dynamics has them
every_robot = pytest.mark.parametrize(
    "name", every(6, [x for x in ROBOTS if not x.endswith(" afloat") and x not in SLOW], first=1)
)


def poses(robot: Robot, q: np.ndarray) -> dict[str, Transform]:
    """From the world to each body, along the spanning tree."""
    tree, p = robot.tree, robot.embedding.positions(q)
    X = [Transform.identity()]
    for i, link in enumerate(tree.links[1:], 1):
        X.append(link.kind.transform(p[tree.positions(i)]) @ link.placement @ X[link.parent])
    return {body: place @ X[link] for body, (link, place) in tree.place.items()}


def gap(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry where that exceeds one."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max(initial=0.0) / np.abs(expected).max(initial=1.0))


def slope(path: Callable[[float], Any], h: float = 0.004) -> Any:
    """The derivative at 0, by differences of order 8."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    return sum(w * (path(i * h) - path(-i * h)) for i, w in enumerate(weights, 1)) / h


def spin(R: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The angular velocity of a turning matrix, along the axes that it leads to."""
    W = rate @ np.swapaxes(R, -1, -2)
    return 0.5 * np.stack([W[..., 2, 1] - W[..., 1, 2], W[..., 0, 2] - W[..., 2, 0], W[..., 1, 0] - W[..., 0, 1]], -1)


@every_robot
def test_poses_and_centre_of_mass(name: str) -> None:
    robot, q, _, _, body = states_of(name)
    for one, T, centre in zip(q, coupler.frame_pose(robot, q, body), coupler.centre_of_mass(robot, q), strict=True):
        X = poses(robot, one)
        assert gap(T, np.block([[X[body].E.T, X[body].r[:, None]], [np.zeros(3), 1.0]])) < EXACT
        moments = [b.mass * (X[b.name].r + X[b.name].E.T @ b.centre) for b in robot.bodies.values()]
        assert gap(centre, np.sum(moments, axis=0) / robot.mass) < EXACT


@every_robot
def test_velocities_are_rates_of_poses(name: str) -> None:
    robot, q, v, _, body = states_of(name)
    T, rate = (
        coupler.frame_pose(robot, q, body),
        slope(lambda t: coupler.frame_pose(robot, robot.integrate(q, t * v), body)),
    )
    expected = np.concatenate([spin(T[:, :3, :3], rate[:, :3, :3]), rate[:, :3, 3]], axis=1)
    found = coupler.frame_velocity(robot, q, v, body, axes="world")
    assert gap(found, expected) < SLOPE
    own = coupler.frame_velocity(robot, q, v, body)
    R = T[:, :3, :3]
    turned = np.concatenate([np.einsum("sij,sj->si", R, part) for part in np.split(own, 2, axis=1)], axis=1)
    assert gap(turned, found) < EXACT
    both: list[tuple[Any, np.ndarray]] = [("world", found), ("frame", own)]
    for axes, motion in both:
        J = coupler.frame_jacobian(robot, q, body, axes=axes)
        assert gap(np.einsum("sij,sj->si", J, v), motion) < EXACT


@every_robot
def test_accelerations_are_rates_of_velocities(name: str) -> None:
    robot, q, v, a, body = states_of(name)

    def velocity(t: float) -> np.ndarray:
        return coupler.frame_velocity(robot, robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a, body, axes="world")

    found = coupler.frame_acceleration(robot, q, v, a, body, axes="world")
    if not any(joint.kind.nq > joint.kind.nv for joint in robot.joints):  # else half a step is not along v + t a
        assert gap(found, slope(velocity)) < SLOPE
    own = coupler.frame_acceleration(robot, q, v, a, body)
    both: list[tuple[Any, np.ndarray]] = [("world", found), ("frame", own)]
    for axes, expected in both:
        J = coupler.frame_jacobian(robot, q, body, axes=axes)
        program = frame_jacobian_rate_program(robot, *frame_place(robot, body), axes == "world")
        rate = Interpreter(program)(q, v).reshape(J.shape)
        assert gap(np.einsum("sij,sj->si", J, a) + np.einsum("sij,sj->si", rate, v), expected) < EXACT


@every_robot
def test_rates_of_jacobians(name: str) -> None:
    robot, q, v, _, body = states_of(name)
    found = coupler.frame_jacobian_rate(robot, q, v, body, axes="world")
    expected = slope(lambda t: coupler.frame_jacobian(robot, robot.integrate(q, t * v), body, axes="world"))
    assert gap(found, expected) < SLOPE
    program = frame_jacobian_rate_program(robot, *frame_place(robot, body), True)
    assert gap(Interpreter(program)(q, v).reshape(found.shape), found) < EXACT
    np.testing.assert_array_equal(coupler.frame_jacobian_rate(robot, q[1], v[1], body, axes="world"), found[1])


@every_robot
def test_momentum_and_kinetic_energy_are_sums_over_bodies(name: str) -> None:
    robot, q, v, _, _ = states_of(name)
    found, energies = coupler.momentum(robot, q, v), coupler.kinetic_energy(robot, q, v)
    centre = slope(lambda t: coupler.centre_of_mass(robot, robot.integrate(q, t * v)))
    assert gap(found[:, 3:], robot.mass * centre) < SLOPE
    H = coupler.mass_matrix(robot, q)
    assert gap(energies, 0.5 * np.einsum("si,sij,sj->s", v, H, v)) < EXACT
    for one, speed, h in zip(q, v, found, strict=True):
        assert gap(h, momentum_of(robot, one, speed)) < EXACT


def momentum_of(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Σ Xᵀ I v along the spanning tree."""
    tree, p = robot.tree, robot.embedding.positions(q)
    w = robot.embedding.velocities(p, v)
    X, motion, total = [Transform.identity()], [np.zeros(6)], np.zeros(6)
    for i, link in enumerate(tree.links[1:], 1):
        own = link.kind.transform(p[tree.positions(i)]) @ link.placement
        X.append(own @ X[link.parent])
        motion.append(own @ motion[link.parent] + link.kind.subspace(p[tree.positions(i)]) @ w[tree.velocities(i)])
        total = total + X[-1].transform_force(link.inertia @ motion[-1])
    return total


def test_frames_of_the_ground_rest() -> None:
    b = RobotBuilder("on ground")
    b.body("table", mass=1.0)
    b.joint("screws", Fixed(), "ground", "table")
    b.frame("corner", "table", at=(1.0, 2.0, 3.0))
    b.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("shoulder", Revolute(axis=(0.0, 1.0, 0.0)), "ground", "arm")
    robot = b.build()
    q, v = np.array([0.3]), np.array([2.0])
    np.testing.assert_array_equal(coupler.frame_pose(robot, q, "corner")[:3, 3], [1.0, 2.0, 3.0])
    for axes in ("frame", "world"):
        assert not coupler.frame_velocity(robot, q, v, "corner", axes=axes).any()
        assert not coupler.frame_acceleration(robot, q, v, v, "corner", axes=axes).any()
        assert not coupler.frame_jacobian(robot, q, "corner", axes=axes).any()
        assert not coupler.frame_jacobian_rate(robot, q, v, "corner", axes=axes).any()


def test_unknown_frames_and_axes_are_named() -> None:
    robot, q, v, _, body = states_of("tree")
    with pytest.raises(ModelError, match="has no frame, contact point or body 'hand'; it has"):
        coupler.frame_pose(robot, q, "hand")
    with pytest.raises(ModelError, match="axes must be 'frame' or 'world', got 'body'"):
        coupler.frame_velocity(robot, q, v, body, axes="body")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"input 'v' has shape \(3, 2\)"):
        coupler.frame_velocity(robot, q, v[:, :2], body)
    with pytest.raises(ModelError, match="q must be finite; entry 1 in state 2 is nan"):
        coupler.frame_pose(robot, np.where(np.arange(q.size).reshape(q.shape) == 2 * robot.nq + 1, np.nan, q), body)


def test_single_precision() -> None:
    robot, q, v, a, body = states_of("floating tree")
    q32, v32, a32 = (x.astype(np.float32) for x in (q, v, a))
    found = coupler.frame_acceleration(robot, q32, v32, a32, body)
    assert found.dtype == np.float32
    assert gap(found, coupler.frame_acceleration(robot, q, v, a, body)) < 1e-4
    assert coupler.kinetic_energy(robot, q32, v32).dtype == np.float32
