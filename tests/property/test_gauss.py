"""Gauss' principle of least constraint [000, eq. 6, 7, 9; 001, eq. 39 to 48]: accelerations of C-ABA minimise it.

Of all accelerations that joints and loops allow, a robot takes those with the least

    Z = ½ Σ |a − aᵘᶜ|²  in the norm of I,    I aᵘᶜ = f − v ×* I v,

over its bodies, where f is what acts on a body apart from constraints: its weight, and what actuators do to it and to
the bodies that it carries. Bodies are walked over as they are described, with NumPy alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler import forward_dynamics, robots
from coupler.model import Robot
from coupler.spatial import cross_force
from effort import every
from property.test_joint_forces import BUNDLED, RANDOM, Walk
from property.test_random_dynamics import robot_of, stretch

FLAT = 1e-9  # of the gradient of Z, relative to its parts; 1e-13 is reached


class Constraint:
    """Z of a robot in one state as a function of its accelerations a: ½ aᵀ H a − hᵀ a, and something constant."""

    def __init__(self, robot: Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
        at_rest = Walk(robot, q, v, np.zeros(robot.nv))
        moved = [Walk(robot, q, v, unit) for unit in np.eye(robot.nv)]
        forces = _applied(robot, at_rest, tau)
        self.H, self.h = np.zeros((robot.nv, robot.nv)), np.zeros(robot.nv)
        for body, part in robot.bodies.items():
            inertia = np.column_stack([part.spatial_inertia() @ unit for unit in np.eye(6)])
            J = np.column_stack([walk.A[body] - at_rest.A[body] for walk in moved])
            V, weight = at_rest.V[body], part.mass * (at_rest.X[body].E @ robot.gravity)
            free = np.concatenate([np.cross(part.centre, weight), weight]) + forces[body] - cross_force(V, inertia @ V)
            self.H += J.T @ inertia @ J
            self.h += J.T @ (free - inertia @ at_rest.A[body])  # I aᵘᶜ − I a at a = 0

    def __call__(self, a: np.ndarray) -> float:
        return float(0.5 * a @ self.H @ a - self.h @ a)

    def gradient(self, a: np.ndarray) -> np.ndarray:
        return self.H @ a - self.h


def _applied(robot: Robot, walk: Walk, tau: np.ndarray) -> dict[str, np.ndarray]:
    """What actuators do to each body, in its frame: Tᵃ τ on what a joint carries, the opposite on what carries that."""
    forces: dict[str, Any] = {body: np.zeros(6) for body in (*robot.bodies, "ground")}
    for joint in robot.joints:
        if joint.name not in robot.tree.number:
            continue
        entries = robot.embedding.v_place[robot.tree.velocities(robot.tree.number[joint.name])]
        own = np.where(entries >= 0, np.append(tau, 0.0)[entries], 0.0)
        push = joint.kind.active_force_subspace(walk.p[joint.name]) @ own
        forces[joint.child] = forces[joint.child] + push
        on_world = walk.X[joint.child].transform_force(push)
        forces[joint.parent] = forces[joint.parent] - walk.X[joint.parent].inverse_force(on_world)
    return forces


@pytest.mark.parametrize("name", every(4, [*RANDOM, *BUNDLED], first=1))
def test_accelerations_of_c_aba_have_the_least_constraint(name: str) -> None:
    robot = robot_of(name) if name in RANDOM else robots.load(name, **({"links": 4} if name == "geared_chain" else {}))
    robot, rng = robot.with_backend("interpreter"), np.random.default_rng(5)
    q, v = robot.random_state(2)
    tau = rng.normal(size=robot.nv)
    a, Z = forward_dynamics(robot, q, v, tau), Constraint(robot, q, v, tau)
    scale = np.abs(Z.H) @ np.abs(a) + np.abs(Z.h)
    assert np.abs(Z.gradient(a)).max() < FLAT * stretch(robot, q[None]) * scale.max()
    for _ in range(5):
        step = rng.normal(size=robot.nv)
        step *= 1e-2 * max(np.linalg.norm(a), 1.0) / np.linalg.norm(step)
        assert Z(a) < Z(a + step)
        assert Z(a + step) - Z(a) == pytest.approx(0.5 * step @ Z.H @ step, rel=1e-4)
