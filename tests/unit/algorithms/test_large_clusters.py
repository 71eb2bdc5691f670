"""Clusters of many bodies: the same numbers as by other methods, on every back end, in one state and in many."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.baselines import lagrange_program, projection_program
from coupler.compiled import run
from coupler.graph import c
from coupler.model import Free, ModelWarning, Robot, RobotBuilder
from effort import sweep
from large_clusters import foot, lattice
from robot import ladder, ring

EXACT = 1e-10  # relative to the largest entry


def two_feet() -> RobotBuilder:
    """Two large clusters that a floating body carries."""
    b = RobotBuilder("two feet")
    b.body("hip", mass=3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("hip", Free(), "ground", "hip")
    for side, y in (("left/", 0.2), ("right/", -0.2)):
        b.attach(foot(4, 6).build(), prefix=side, to="hip", at=(0.0, y, 0.0))
    return b


CLUSTERS = {
    "foot": lambda: foot(5, 6),
    "two feet": two_feet,
    "ring": lambda: ring(26),
    "ladder": lambda: ladder(10),
    "lattice": lambda: lattice(6, 4),
}


@cache
def robot_called(name: str) -> Robot:
    robot = CLUSTERS[name]().build()
    assert any(len(k.bodies) * robot.nv >= 256 for k in robot.cluster_tree.clusters)
    return robot


def state(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, v = robot.random_state(0)
    return q, v, np.random.default_rng(0).normal(size=robot.nv)


def near(found: np.ndarray, expected: np.ndarray, tolerance: float = EXACT) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=1.0))


@pytest.mark.parametrize("name", sweep(list(CLUSTERS), ["foot", "ring"]))
def test_dynamics(name: str) -> None:
    robot = robot_called(name)
    q, v, tau = state(robot)
    a = coupler.forward_dynamics(robot, q, v, tau)
    reference = robot.with_backend("interpreter")
    near(a, run(reference, lagrange_program, q, v, tau))
    near(a, run(reference, projection_program, q, v, tau))
    H, bias = coupler.mass_matrix(robot, q), coupler.bias_force(robot, q, v)
    force = H @ a + bias
    terms = np.abs(H) @ np.abs(a) + np.abs(bias)  # which cancel
    np.testing.assert_allclose(force, tau, rtol=0, atol=EXACT * terms.max())
    np.testing.assert_allclose(coupler.inverse_dynamics(robot, q, v, a), tau, rtol=0, atol=EXACT * terms.max())
    near(coupler.mass_matrix_product(robot, q, a), H @ a)
    near(coupler.mass_matrix_solve(robot, q, H @ a), a)
    near(coupler.mass_matrix_inverse(robot, q) @ H, np.eye(robot.nv), 1e-8)


@pytest.mark.parametrize("name", sweep(list(CLUSTERS), ["foot"]))
def test_one_state_is_a_batch_is_python(name: str) -> None:
    robot = robot_called(name)
    q, v = map(np.array, zip(*(robot.random_state(seed) for seed in range(5)), strict=True))
    tau = np.random.default_rng(0).normal(size=v.shape)
    batch = coupler.forward_dynamics(robot, q, v, tau)
    for i in range(len(q)):
        np.testing.assert_array_equal(coupler.forward_dynamics(robot, q[i], v[i], tau[i]), batch[i])
    near(coupler.forward_dynamics(robot.with_backend("python"), q[0], v[0], tau[0]), batch[0], 1e-9)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_in_c(tmp_path: Path) -> None:
    robot = robot_called("ring")
    q, v, tau = state(robot)
    source = c.render(forward_dynamics_program(robot), name="ring")
    _, path = source.save(tmp_path)
    subprocess.run(["gcc", "-O0", "-shared", "-fPIC", "-o", tmp_path / "ring.so", path, "-lm"], check=True)
    result = np.empty(robot.nv)
    work = np.empty(1 << 20)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (q, v, tau, result, work)]
    ctypes.CDLL(str(tmp_path / "ring.so")).ring(*pointers)
    near(result, coupler.forward_dynamics(robot, q, v, tau), 1e-9)


@pytest.mark.filterwarnings("ignore:.*can touch nothing")
@pytest.mark.parametrize("name", sweep(list(CLUSTERS), ["ring"]))
def test_steps_are_those_of_small_clusters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With everything spelled out, as it is for small clusters, another organisation of the same algorithm."""
    found = []
    for large in (256, 10**9):
        monkeypatch.setattr("coupler.passes.shape._LARGE", large)
        robot = CLUSTERS[name]().build()
        q, v = robot.random_state(0)
        simulation = coupler.Simulation(robot, 1e-4, q=q, v=0.1 * v, contacts=())
        for _ in range(3):
            simulation.step()
        found.append((simulation.q, simulation.v))
    for one, other in zip(*found, strict=True):
        near(one, other, 1e-9)


def test_a_huge_cluster_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coupler.passes.huge._HUGE", 20)
    robot = ring(26).build()
    with pytest.warns(ModelWarning, match=r"'link0' has 25 joint velocities and 5 rows of loops"):
        forward_dynamics_program(robot)
    forward_dynamics_program(robot)


def test_contact_and_loops_of_a_foot() -> None:
    """It lands on its balls, every step is solved, and its loops stay closed."""
    robot = foot(5, 6).build()
    simulation = coupler.Simulation(robot, 1e-3, contacts="ball*")
    for _ in range(150):
        simulation.step()
        assert simulation.status.solved
    assert max(map(float, robot.loop_errors(simulation.q).values())) < 1e-9
    assert simulation.status.contacts > 0
    assert simulation.q[0] < robot.neutral()[0]
