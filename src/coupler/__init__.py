"""Exact dynamics and contact simulation for robots with kinematic loops.

Get a robot:
    `load` reads a file, `robots.load` has bundled robots, and `RobotBuilder` describes one part by part. All of them
    give a frozen `Robot`.

Compute:
    `forward_dynamics`, `inverse_dynamics`, `mass_matrix`, `frame_pose`, `frame_jacobian`, `inverse_osim`,
    `joint_forces` and the other functions take a robot and arrays, for one state or, with leading dimensions, for a
    batch.

Simulate:
    `Simulation` steps one robot with contact, `rollout` many.

Look:
    `print(robot)`, `robot.draw()`, `view(robot)`.

The order of entries, frames and units are in docs/conventions.md. Spatial vectors are angular first, quaternions are
w, x, y, z, and everything is in SI units.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import coupler.forks  # which says so where NumPy does not run
from coupler import robots
from coupler.actuation import (
    accelerations_of_actuators,
    actuator_accelerations,
    actuator_forces,
    actuator_jacobian,
    actuator_positions,
    actuator_velocities,
    generalized_forces,
    motor_forces,
    velocities_of_actuators,
)
from coupler.dynamics import bias_force, control_forces, forward_dynamics, inverse_dynamics, inverse_osim
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
from coupler.model import (
    Actuator,
    Adhesion,
    Around,
    Cable,
    ModelError,
    ModelWarning,
    Robot,
    RobotBuilder,
    SliderCrank,
    Wrench,
)

if TYPE_CHECKING:
    from coupler import contact as contact
    from coupler import convert
    from coupler import design as design
    from coupler import simulate as simulate
    from coupler.design import sweep
    from coupler.forces import (
        JointForces,
        MinimumNorm,
        Share,
        Shares,
        StiffnessWeighted,
        determinate_forces,
        joint_forces,
    )
    from coupler.reaching import UnreachableError, configuration_of_actuators
    from coupler.simulate import Simulation, SimulationError, rollout
    from coupler.sizing import ActuatorSizing, size_actuators
    from coupler.view.showing import view  # a package that can be called, which type checkers do not see

__all__ = [
    "Actuator",
    "ActuatorSizing",
    "Adhesion",
    "Around",
    "Cable",
    "JointForces",
    "MinimumNorm",
    "ModelError",
    "ModelWarning",
    "Robot",
    "RobotBuilder",
    "Share",
    "Shares",
    "Simulation",
    "SimulationError",
    "SliderCrank",
    "StiffnessWeighted",
    "UnreachableError",
    "Wrench",
    "accelerations_of_actuators",
    "actuator_accelerations",
    "actuator_forces",
    "actuator_jacobian",
    "actuator_positions",
    "actuator_velocities",
    "bias_force",
    "body_poses",
    "centre_of_mass",
    "configuration_of_actuators",
    "control_forces",
    "convert",
    "determinate_forces",
    "forward_dynamics",
    "frame_acceleration",
    "frame_jacobian",
    "frame_jacobian_rate",
    "frame_pose",
    "frame_velocity",
    "generalized_forces",
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
    "motor_forces",
    "potential_energy",
    "robots",
    "rollout",
    "size_actuators",
    "sweep",
    "velocities_of_actuators",
    "view",
]

__version__ = "0.1.0"

# Imported on first use, since many programs never need them: packages, and names by their package.
_ROOMS = ("contact", "convert", "design", "forces", "reaching", "simulate", "sizing", "view")
_NAMES = {
    **dict.fromkeys(("Simulation", "SimulationError", "rollout"), "simulate"),
    **dict.fromkeys(("JointForces", "MinimumNorm", "Share", "Shares", "StiffnessWeighted"), "forces"),
    **dict.fromkeys(("determinate_forces", "joint_forces"), "forces"),
    **dict.fromkeys(("UnreachableError", "configuration_of_actuators"), "reaching"),
    **dict.fromkeys(("ActuatorSizing", "size_actuators"), "sizing"),
    "sweep": "design",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS and name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with coupler.forks.imports():
        room = import_module(f"{__name__}.{_NAMES.get(name, name)}")
    value = globals()[name] = getattr(room, name) if name in _NAMES else room
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_NAMES})
