"""Pulling a body of a simulated robot by a spring, as a hand would."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.inertia import mass_matrix
from coupler.kinematics import frame_jacobian, frame_pose, frame_velocity
from coupler.model import Robot
from coupler.model.tolerances import TINY

_STRENGTH = 4.0  # times the robot's weight, at a stretch of its size
_DAMPING = 0.7  # of what is critical for the whole robot
_STIFFEST, _STRONGEST = 0.1, 0.4  # of m/h² and m/h: stiffer springs and dampers would make steps unstable
GRAVITY = 9.81  # m/s²


class Pull:
    """A spring and damper from a point of a body to a point that the user moves.

    Attributes:
        body: the name of the body.
        point: 3, the point where the spring is attached, in the body's frame, m.
        target: 3, the point to which it pulls, in the world, m.
        stiffness: N/m.
        damping: N s/m.
    """

    def __init__(self, robot: Robot, q: np.ndarray, body: str, grabbed: Any, size: float, step: float) -> None:
        """Attaches the spring, without a stretch.

        Args:
            q: (nq,), the robot's configuration.
            grabbed: 3, the point in the world at which the body is grabbed, m.
            size: the robot's size, m.
            step: the step of its simulation, s.
        """
        self.robot, self.body = robot, body
        T = frame_pose(robot, q, body)
        self.target = np.asarray(grabbed, dtype=float)
        self.point = T[:3, :3].T @ (self.target - T[:3, 3])
        mass = self._mass_felt(q, self.target - T[:3, 3])
        wanted = _STRENGTH * robot.mass * GRAVITY / size
        self.stiffness = min(wanted, _STIFFEST * mass / step**2)
        self.damping = min(2.0 * _DAMPING * float(np.sqrt(self.stiffness * robot.mass)), _STRONGEST * mass / step)

    def _mass_felt(self, q: np.ndarray, arm: np.ndarray) -> float:
        """The least mass that is felt at the point in any direction, kg."""
        J = frame_jacobian(self.robot, q, self.body, axes="world")
        at_point = J[3:] + np.cross(J[:3].T, arm).T
        mobility = at_point @ np.linalg.solve(mass_matrix(self.robot, q), at_point.T)
        return 1.0 / max(float(np.linalg.eigvalsh(mobility)[-1]), TINY)

    def ends(self, q: np.ndarray) -> np.ndarray:
        """The two ends of the spring, (2, 3), m."""
        T = frame_pose(self.robot, q, self.body)
        return np.stack([T[:3, :3] @ self.point + T[:3, 3], self.target])

    def force(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The spring's forces on all bodies, (bodies, 6), as `Simulation.step` takes them."""
        T = frame_pose(self.robot, q, self.body)
        arm = T[:3, :3] @ self.point
        at = T[:3, 3] + arm
        motion = frame_velocity(self.robot, q, v, self.body, axes="world")
        velocity = motion[3:] + np.cross(motion[:3], arm)
        force = self.stiffness * (self.target - at) - self.damping * velocity
        forces = np.zeros((len(self.robot.bodies), 6))
        forces[self.robot.body_names.index(self.body)] = [*np.cross(at, force), *force]
        return forces
