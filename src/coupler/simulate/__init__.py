"""Simulation: how robots move in time."""

from coupler.simulate.integrators import METHODS, dormand_prince, explicit_euler, rk4, semi_implicit_euler
from coupler.simulate.motion import Motion, MotionError, integrate_motion

__all__ = [
    "METHODS",
    "Motion",
    "MotionError",
    "dormand_prince",
    "explicit_euler",
    "integrate_motion",
    "rk4",
    "semi_implicit_euler",
]
