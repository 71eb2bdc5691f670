"""Forces of actuators of a file in MJCF, ours and MuJoCo's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import coupler
from coupler import Simulation
from coupler.model import Robot
from mjcf_peer import Peer


def forces(robot: Robot, q: np.ndarray, v: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """Of all actuators in a state: in a step so short that nothing moves."""
    robot = robot.with_gravity((0, 0, 0))
    simulation = Simulation(robot, 1e-10, q=q, v=v, integrator="euler", contacts=(), limits=False)
    simulation.step(motors=controls)
    return simulation.motor_forces


def controlled(robot: Robot, peer: Peer, ctrl: np.ndarray) -> np.ndarray:
    """What controls our actuators: targets are positions or velocities."""
    controls, model = ctrl.copy(), peer.model
    for i, actuator in enumerate(robot.actuators):
        if actuator.kind in ("position", "velocity"):
            bias, gain = model.actuator_biasprm[i], model.actuator_gainprm[i, 0]
            controls[i] = (gain * ctrl[i] + bias[0]) / (actuator.stiffness or actuator.damping)
    return controls


def agree(robot: Robot, path: Path, scale: float = 1.0) -> None:
    peer, rng = Peer(path), np.random.default_rng(0)
    mujoco: Any = peer._mujoco
    assert [peer.model.actuator(i).name or "" for i in range(peer.model.nu)] == [
        peer.model.actuator(i).name and name for i, name in enumerate(robot.actuator_names)
    ]
    for seed in range(3):
        q, v = robot.random_state(seed)
        A, _ = peer.move(robot, q, v)
        ctrl = scale * rng.normal(size=peer.model.nu)
        peer.data.ctrl[:] = ctrl
        mujoco.mj_forward(peer.model, peer.data)
        own = forces(robot, q, v, controlled(robot, peer, ctrl))
        tau = coupler.generalized_forces(robot, q, own)
        expected = A.T @ peer.data.qfrc_actuator
        np.testing.assert_allclose(tau, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))
