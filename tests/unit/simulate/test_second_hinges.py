"""Loops that hold nothing, because their joints are in line with joints of the tree: a door on several hinges."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.model import ModelError, Revolute, Robot, RobotBuilder


def door(hinges: int) -> Robot:
    """A door whose hinges are not at the origin, so that rounding does not vanish."""
    b = RobotBuilder("door", gravity=(3.0, 1.0, -9.81))
    b.body("leaf", 2.0, (0.4, 0.05, 0.9), (0.3, 0.4, 0.15))
    b.joint("hinge", Revolute(damping=0.1, upper=2.0), "ground", "leaf", at=(0.1, 0.2, 0))
    b.body("handle", 0.2, (0.05, 0, 0.01), (1e-3, 1e-3, 1e-3))
    b.joint("spindle", Revolute(axis=(0, 1, 0)), "leaf", "handle", at=(0.7, 0, 1))
    for i in range(1, hinges):
        b.loop(f"hinge {i}", Revolute(), "ground", "leaf", at=(0.1, 0.2, i), meets=(0, 0, i))
    return b.build()


@pytest.mark.parametrize("integrator", ["midpoint", "rk4"])
def test_a_door_moves_on_three_hinges_as_on_one(integrator: str) -> None:
    q, v = door(1).random_state(0)
    runs = [coupler.Simulation(door(n), q=q, v=v, integrator=integrator).run(0.05) for n in (1, 3)]
    np.testing.assert_array_equal(runs[1].q, runs[0].q)


def test_hinges_that_parameters_put_out_of_line_are_told() -> None:
    robot = door(2)
    q, v = robot.random_state(0)
    a, higher = coupler.forward_dynamics(robot, q, v), {"at:hinge 1": [0.1, 0.2, 1.2], "meets:hinge 1": [0, 0, 1.2]}
    np.testing.assert_allclose(coupler.forward_dynamics(robot.with_parameters(higher), q, v), a, rtol=1e-12)
    aside = robot.with_parameters({"at:hinge 1": [0.1, 0.3, 1.0]})
    for function in (coupler.forward_dynamics, coupler.kinetic_energy):
        with pytest.raises(ModelError, match=r"'hinge 1' has its two ends 0\.1 m apart"):
            function(aside, q, v)
