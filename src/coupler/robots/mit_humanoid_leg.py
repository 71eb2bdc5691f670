"""One leg of the MIT Humanoid on the ground: three geared hip joints, then knee and ankle by belts. [001, fig. 1a]"""

from __future__ import annotations

from coupler.model import Robot, RobotBuilder
from coupler.robots.mit_humanoid import add_leg


def mit_humanoid_leg() -> Robot:
    """The right leg with its rotors, its hip where it is on the humanoid's base: a chain of four clusters."""
    b = RobotBuilder("mit_humanoid_leg")
    add_leg(b, "right", "ground")
    return b.build()
