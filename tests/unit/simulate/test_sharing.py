"""Contacts that are more than needed share their load: what is symmetric moves symmetrically."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder, Simulation
from coupler.model import Box, Prismatic
from coupler.spatial import Transform

FRICTION, MASS, GRAVITY = 0.3, 0.5, 9.81
INTEGRATORS = ["midpoint", "euler", "rk4"]


def jaws() -> Robot:
    """A box of 0.1 m between two flat jaws on slides."""
    b = RobotBuilder("jaws")
    for name, x in (("left", -0.07), ("right", 0.07)):
        b.body(name, 0.2, inertia=(1e-3, 1e-3, 1e-3))
        b.joint(name, Prismatic(axis=(1, 0, 0)), "ground", name, at=Transform.translation(np.array([x, 0.0, 0.0])))
        b.shape(name, Box((0.04, 0.1, 0.1)), name=name, friction=FRICTION)
    b.object("box", Box((0.1, 0.06, 0.06)), mass=MASS, friction=FRICTION)
    return b.build()


def squeeze(robot: Robot, force: float) -> np.ndarray:
    return robot.pack_v({"left": force, "right": -force})


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_box_that_slips_between_jaws_slips_straight(integrator: str) -> None:
    """Friction of 2 N and 2 N on either side does not hold 4.9 N, and nothing turns the box."""
    robot, force, steps = jaws(), 2.0, 60
    simulation = Simulation(robot, integrator=integrator)
    for _ in range(steps):
        simulation.step(squeeze(robot, force))
        assert simulation.status.solved
    box = simulation.v[robot.v_slice("box")]
    speed = (GRAVITY - 2.0 * FRICTION * force / MASS) * steps * 1e-3
    np.testing.assert_allclose(box, [0, 0, 0, 0, 0, -speed], atol=1e-6)
    pressed = np.abs(simulation.contact_forces[:, 0])
    np.testing.assert_allclose(pressed[pressed > 0.0], 0.25 * force, rtol=0.05)


def test_corners_between_jaws_share_what_they_hold_from_the_first_step() -> None:
    robot, force = jaws(), 20.0
    simulation = Simulation(robot)
    simulation.step(squeeze(robot, force))
    forces = simulation.contact_forces[np.abs(simulation.contact_forces[:, 0]) > 0.0]
    np.testing.assert_allclose(np.abs(forces[:, 0]), 0.25 * force, rtol=1e-3)
    np.testing.assert_allclose(forces[:, 2], -MASS * GRAVITY / 8.0, rtol=1e-3)


@pytest.mark.parametrize("boxes", [2, 5])
def test_boxes_on_each_other_stand_on_all_corners_alike(boxes: int) -> None:
    b = RobotBuilder("stack")
    b.floor(0.6)
    for i in range(boxes):
        b.object(f"box {i}", Box((0.2, 0.2, 0.2)), mass=1.0)
    robot = b.build()
    places = {f"box {i}": [0, 0, 0.1 + 0.2 * i, 1, 0, 0, 0] for i in range(boxes)}
    simulation = Simulation(robot, q=robot.pack_q(places))
    for _ in range(50):
        simulation.step()
    up = np.abs(simulation.contact_forces[:, 2])
    for above in range(1, boxes + 1):
        alike = up[np.isclose(up, 0.25 * above * GRAVITY, rtol=1e-3)]
        assert len(alike) == 4


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_box_that_slides_on_a_floor_goes_straight(integrator: str) -> None:
    """Its front corners carry more than its rear ones, and left and right corners the same."""
    b = RobotBuilder("slider")
    b.floor(FRICTION)
    b.object("box", Box((0.2, 0.2, 0.1)), mass=1.0)
    robot = b.build()
    simulation = Simulation(
        robot,
        q=robot.pack_q({"box": [0, 0, 0.05, 1, 0, 0, 0]}),
        v=robot.pack_v({"box": [0, 0, 0, 2, 0, 0]}),
        integrator=integrator,
    )
    for _ in range(100):
        simulation.step()
    np.testing.assert_allclose(simulation.v, [0, 0, 0, 2.0 - FRICTION * GRAVITY * 0.1, 0, 0], atol=1e-6)
    right, left = (simulation.contact_forces[simulation.contact_points[:, 1] * side > 0.0] for side in (-1.0, 1.0))
    np.testing.assert_allclose(np.sort(right[:, 2]), np.sort(left[:, 2]), rtol=1e-4)


def test_batches_share_as_single_states_do() -> None:
    robot = jaws()
    controls = np.stack([np.tile(squeeze(robot, force), (40, 1)) for force in (2.0, 5.0, 20.0)])
    found = coupler.rollout(robot, robot.neutral(), np.zeros(robot.nv), controls)
    for own, final in zip(controls, found.v[:, -1], strict=True):
        simulation = Simulation(robot)
        for tau in own:
            simulation.step(tau)
        np.testing.assert_allclose(final, simulation.v, atol=1e-8)
