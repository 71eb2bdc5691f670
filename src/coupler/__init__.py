"""Exact dynamics and contact simulation for robots with kinematic loops."""

__version__ = "0.1.0"
