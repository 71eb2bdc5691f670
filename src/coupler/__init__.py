"""Exact dynamics and contact simulation for robots with kinematic loops."""

from coupler.model import ModelError, Robot, RobotBuilder

__all__ = ["ModelError", "Robot", "RobotBuilder"]

__version__ = "0.1.0"
