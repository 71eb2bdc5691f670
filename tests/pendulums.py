"""Pendulums of any joints."""

from __future__ import annotations

from coupler import Robot, RobotBuilder
from coupler.model import Joint


def pendulum(*links: Joint) -> Robot:
    """Rods of 1 kg and 1 m, each at the end of the one before."""
    b, parent = RobotBuilder("pendulum"), "ground"
    for i, kind in enumerate(links):
        b.body(f"link{i}", 1.0, (0, 0, -0.5), (0.02, 0.015, 0.01))
        b.joint(f"joint{i}", kind, parent, f"link{i}", at=(0, 0, -1.0 if i else 0.0))
        parent = f"link{i}"
    return b.build()
