"""Exact dynamics and contact simulation for robots with kinematic loops."""

from coupler import robots
from coupler.dynamics import bias_force, forward_dynamics, inverse_dynamics
from coupler.model import ModelError, Robot, RobotBuilder

__all__ = [
    "ModelError",
    "Robot",
    "RobotBuilder",
    "bias_force",
    "forward_dynamics",
    "inverse_dynamics",
    "robots",
]

__version__ = "0.1.0"
