"""Exact dynamics and contact simulation for robots with kinematic loops."""

import coupler.forks  # noqa: F401  (which says so where NumPy does not run)
from coupler import robots
from coupler.dynamics import bias_force, forward_dynamics, inverse_dynamics, inverse_osim
from coupler.forces import JointForces, joint_forces
from coupler.inertia import (
    mass_matrix,
    mass_matrix_factors,
    mass_matrix_inverse,
    mass_matrix_product,
    mass_matrix_solve,
)
from coupler.io import load
from coupler.kinematics import (
    body_poses,
    centre_of_mass,
    frame_acceleration,
    frame_jacobian,
    frame_jacobian_rate,
    frame_pose,
    frame_velocity,
    kinetic_energy,
    momentum,
    potential_energy,
)
from coupler.model import ModelError, ModelWarning, Robot, RobotBuilder
from coupler.simulate import Simulation, SimulationError, rollout

__all__ = [
    "JointForces",
    "ModelError",
    "ModelWarning",
    "Robot",
    "RobotBuilder",
    "Simulation",
    "SimulationError",
    "bias_force",
    "body_poses",
    "centre_of_mass",
    "forward_dynamics",
    "frame_acceleration",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_pose",
    "frame_velocity",
    "inverse_dynamics",
    "inverse_osim",
    "joint_forces",
    "kinetic_energy",
    "load",
    "mass_matrix",
    "mass_matrix_factors",
    "mass_matrix_inverse",
    "mass_matrix_product",
    "mass_matrix_solve",
    "momentum",
    "potential_energy",
    "robots",
    "rollout",
]

__version__ = "0.1.0"
