"""Clusters that columns enter at few bodies: steps are those of clusters that are seen by all their freedoms."""

from __future__ import annotations

import numpy as np
import pytest

from coupler import Simulation
from coupler.contact.step import gates
from coupler.model import Fixed, Free, Revolute, Robot, RobotBuilder, Sphere, Spherical


def stool(toe: bool) -> Robot:
    """A sole below a body that flies, on three chains of hinges; two bodies of its cluster can touch, or a toe."""
    b = RobotBuilder("stool")
    b.body("seat", mass=3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("seat", Free(), "ground", "seat", at=(0.0, 0.0, 0.2505))
    b.body("sole", mass=0.5, inertia=(0.002, 0.003, 0.002))
    for k in range(3):
        x, y = np.cos(2 * np.pi * k / 3 + 0.1), np.sin(2 * np.pi * k / 3 + 0.1)
        last, at = "seat", (0.1 * x, 0.1 * y, 0.0)
        for i in range(6):
            name, axis = f"chain{k}_{i}", (-y, x, 0.0) if i % 2 == 0 else (x, y, 0.3 * (-1) ** (i // 2))
            b.body(name, mass=0.05 + 0.01 * k, centre=(0, 0.003 * i, -0.02), inertia=(1e-4, 2e-4, 1.5e-4))
            b.joint(name, Revolute(axis=axis, stiffness=20.0, damping=0.05), last, name, at=at)
            last, at = name, (0.0, 0.0, -0.04)
        if k:
            b.loop(f"rim{k}", Spherical(), last, "sole", at=at, meets=(0.1 * x, 0.1 * y, 0.0))
        else:
            b.joint("sole", Fixed(), last, "sole", at=(-0.1 * x, -0.1 * y, -0.04))
    for i, (x, y) in enumerate(((0.05, 0.0), (-0.04, 0.05), (-0.04, -0.05))):
        b.shape("sole", Sphere(0.01), at=(x, y, 0.0), name=f"ball{i}")
    if toe:
        b.body("toe", mass=0.1, inertia=(1e-4, 1e-4, 1e-4))
        b.joint("toe", Revolute(axis=(0.0, 1.0, 0.0), stiffness=5.0), "sole", "toe", at=(0.05, 0.0, 0.0))
        b.shape("toe", Sphere(0.01), at=(0.03, 0.0, 0.0), name="tip")
    else:
        b.shape("chain1_4", Sphere(0.02), at=(0.0, 0.0, -0.069), name="knee")
    b.floor()
    return b.build()


def after(robot: Robot, gated: bool) -> tuple[np.ndarray, int]:
    v = 0.1 * np.random.default_rng(3).normal(size=robot.nv)
    v[robot.v_slice("seat")] = [0.1, -0.1, 0.0, 0.2, 0.1, -1.0]
    simulation, contacts = Simulation(robot, 1e-3, v=v), 0
    for _ in range(8):
        simulation.step()
        contacts = max(contacts, simulation.status.contacts)
        assert simulation.status.solved
    buffers = {buffer.name for buffer in simulation._engine.executable.program.buffers}
    assert ("gate_mobility" in buffers) == gated
    return np.concatenate([simulation.q, simulation.v]), contacts


@pytest.mark.parametrize("toe", [False, True])
def test_steps_are_those_of_clusters_without_gates(toe: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_PAYS", 1)
    found, contacts = after(stool(toe), True)
    assert contacts > 1
    monkeypatch.setattr(gates, "_PAYS", np.inf)
    wanted, _ = after(stool(toe), False)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
