"""Exact dynamics and contact simulation for robots with kinematic loops."""

from coupler import robots
from coupler.dynamics import bias_force, forward_dynamics, inverse_dynamics, inverse_osim, mass_matrix
from coupler.kinematics import (
    centre_of_mass,
    frame_acceleration,
    frame_jacobian,
    frame_pose,
    frame_velocity,
    kinetic_energy,
    momentum,
    potential_energy,
)
from coupler.model import ModelError, Robot, RobotBuilder

__all__ = [
    "ModelError",
    "Robot",
    "RobotBuilder",
    "bias_force",
    "centre_of_mass",
    "forward_dynamics",
    "frame_acceleration",
    "frame_jacobian",
    "frame_pose",
    "frame_velocity",
    "inverse_dynamics",
    "inverse_osim",
    "kinetic_energy",
    "mass_matrix",
    "momentum",
    "potential_energy",
    "robots",
]

__version__ = "0.1.0"
