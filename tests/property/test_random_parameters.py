"""Random robots whose numbers are given, against the same robots built with these numbers."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from effort import sweep
from random_robots import ROBOTS, sample
from varied import drawn, rebuilt

EXACT = 1e-11  # relative to the largest: what a loop near a singular pose leaves of rounding
SHORT = ["floating tree", "geared loop", "delta"]
COUNT = 2


@pytest.mark.parametrize("name", sweep(ROBOTS, [name for name in ROBOTS if name in SHORT]))
def test_given_numbers_are_those_of_a_robot_that_is_built_with_them(name: str) -> None:
    robot, rng = sample(name, 0).robot, np.random.default_rng(7)
    quantities = ["mass", "centre", "inertia", "stiffness", "damping", "armature", "gravity"]
    quantities += [] if robot.loops else ["at"]
    values = drawn(robot, rng, COUNT, *quantities)
    fleet = robot.with_parameters(values)
    q, v = robot.random_state(rng)
    tau = rng.normal(size=robot.nv)
    a = coupler.forward_dynamics(fleet, q, v, tau)
    back = coupler.inverse_dynamics(fleet, q, v, a)
    for i in range(COUNT):
        other = rebuilt(robot, {key: value[i] for key, value in values.items()})
        if other.independent_joints != robot.independent_joints:
            continue  # other coordinates are better for these numbers: v means something else
        expected = coupler.forward_dynamics(other, q, v, tau)
        assert np.abs(a[i] - expected).max() <= EXACT * (1.0 + np.abs(expected).max())
        assert np.abs(back[i] - tau).max() <= EXACT * (1.0 + np.abs(a[i]).max())
