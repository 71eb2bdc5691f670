"""Robots whose actuators have gears that depend on the pose."""

from __future__ import annotations

import numpy as np

from coupler.model import Actuator, Around, Cable, Revolute, Robot, RobotBuilder, SliderCrank, Wrench


def arm() -> RobotBuilder:
    """Two links on two hinges, in general position."""
    b = RobotBuilder("arm")
    b.body("upper", 1.0, (0.2, 0, 0), np.diag([0.01, 0.02, 0.03]))
    b.body("lower", 0.7, (0.1, 0.02, 0), np.diag([0.01, 0.02, 0.03]))
    b.joint("shoulder", Revolute(axis=(0, 1, 0)), "ground", "upper")
    b.joint("elbow", Revolute(axis=(0, 1, 0.3)), "upper", "lower", (0.4, 0, 0))
    return b


def driven_arm() -> Robot:
    """The arm, with an actuator on each kind of transmission."""
    b = arm()
    for actuator in actuators("upper", "lower"):
        b.actuator(
            actuator.name, actuator.along or {}, actuator.kind, stiffness=actuator.stiffness, damping=actuator.damping
        )
    return b.build()


def actuators(first: str, second: str) -> list[Actuator]:
    """An actuator on each kind of transmission, between the ground and two bodies."""
    drum, ball = Around(first, 0.03, (0.1, 0, 0.05), (0, 1, 0.1)), Around(second, 0.02, (0.1, 0, 0))
    rope = Cable([("ground", (0.1, 0, 0.2)), (first, (0.3, 0, 0.1)), (second, (0.1, 0.01, 0.05))], [1.0, 0.5])
    belt = Cable([("ground", (-0.2, 0, 0.1)), drum, (first, (0.35, 0.02, -0.1)), ball, (second, (0.2, 0, 0))])
    crank = SliderCrank("ground", second, 1.5, at=(-0.5, 0.1, 0), meets=(0.1, 0, 0), axis=(1, 0.2, 0.1))
    thrust = Wrench(second, force=(0.1, 0.2, 1.0), moment=(0, 0.3, 0), at=(0.1, 0, 0))
    press = Wrench(second, (0.1, 0.2, 1.0), (0.1, 0, 0.2), (0.1, 0, 0), against=first, origin=(0.1, 0.1, 0))
    return [
        Actuator("rope", rope),
        Actuator("belt", belt, "position", stiffness=300.0, damping=2.0),
        Actuator("crank", crank, "velocity", damping=3.0),
        Actuator("thrust", thrust),
        Actuator("drag", thrust, "damper", damping=0.7),
        Actuator("press", press, "position", stiffness=20.0, damping=0.5),
    ]
