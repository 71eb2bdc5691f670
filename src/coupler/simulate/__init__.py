"""Simulation: the motion of robots over time."""

from coupler.simulate.integrators import METHODS, dormand_prince, explicit_euler, rk4, semi_implicit_euler
from coupler.simulate.logs import Log
from coupler.simulate.motion import Motion, MotionError, integrate_motion
from coupler.simulate.options import SimulationOptions
from coupler.simulate.rollout import Rollout, rollout
from coupler.simulate.simulation import Simulation
from coupler.simulate.states import SimulationError, SimulationState
from coupler.simulate.status import StepStatus

__all__ = [
    "METHODS",
    "Log",
    "Motion",
    "MotionError",
    "Rollout",
    "Simulation",
    "SimulationError",
    "SimulationOptions",
    "SimulationState",
    "StepStatus",
    "dormand_prince",
    "explicit_euler",
    "integrate_motion",
    "rk4",
    "rollout",
    "semi_implicit_euler",
]
