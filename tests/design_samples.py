"""A robot to design, and what is measured of it, for sweeps whose workers import it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import coupler
from coupler import Robot, RobotBuilder
from coupler.model import Revolute

__all__ = ["TIMES", "Fragile", "arm", "effort"]

TIMES = np.linspace(0.0, 1.0, 5)


@cache
def arm() -> Robot:
    """A pendulum that a spring holds up."""
    b = RobotBuilder("arm")
    b.body("bar", mass=2.0, centre=(0.3, 0.0, 0.0), inertia=(1e-3, 0.02, 0.02))
    b.joint("pivot", Revolute(axis=(0, 1, 0)), "ground", "bar")
    b.spring("spring", "ground", "bar", (0.0, 0.0, 0.5), (0.2, 0.0, 0.0), stiffness=100.0, free_length=0.1)
    return b.build()


def effort(robot: Robot) -> dict[str, np.ndarray]:
    """The torques of a slow swing, and the largest of them."""
    tau = coupler.inverse_dynamics(robot, TIMES[:, None], np.zeros((5, 1)), np.zeros((5, 1)))
    return {"tau": tau[..., 0], "peak": np.abs(tau).max(axis=(1, 2))}


@dataclass(frozen=True)
class Fragile:
    """Measures, but takes its process down the first time that it is asked."""

    marker: str

    def __call__(self, robot: Robot) -> Any:
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return effort(robot)
        os._exit(1)
