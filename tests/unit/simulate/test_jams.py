"""Overlaps that no impulses part: they stay as they are, with forces that carry what there is to carry."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import ModelWarning, Robot, RobotBuilder, Simulation
from coupler.model import Free, Prismatic, Sphere
from coupler.spatial import Transform

SLOPE = np.radians(10.0)
RADIUS = 0.1


def wedged(friction: float) -> Robot:
    """A ball on a slide that comes down to the floor at an angle of 10°, less than that of friction: it jams there."""
    b = RobotBuilder("wedged")
    b.body("ball", 1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("slide", Prismatic(axis=(np.cos(SLOPE), 0.0, np.sin(SLOPE))), "ground", "ball")
    b.shape("ball", Sphere(RADIUS), name="ball")
    return b.build().with_floor(friction)


def above(robot: Robot, gap: float) -> np.ndarray:
    return robot.pack_q({"slide": (RADIUS + gap) / np.sin(SLOPE)})


@pytest.mark.parametrize("integrator", ["midpoint", "euler", "rk4"])
def test_what_friction_wedges_stays_where_it_is(integrator: str) -> None:
    """No push along the slide parts the overlap: friction holds against each. The weight along the slide is carried."""
    robot = wedged(1.0)
    q = above(robot, -1e-6)
    simulation = Simulation(robot, q=q, integrator=integrator)
    for _ in range(100):
        simulation.step()
        status = simulation.status
        assert status.solved and status.jammed == pytest.approx(1e-6, rel=1e-6) and not status.iterations
        np.testing.assert_allclose(simulation.q, q, atol=1e-12)
        fx, fy, fz = simulation.contact_forces[0]
        assert np.hypot(fx, fy) <= fz * (1.0 + 1e-9) and fz < 100.0
        assert fx * np.cos(SLOPE) + fz * np.sin(SLOPE) == pytest.approx(9.81 * np.sin(SLOPE), rel=1e-6)


@pytest.mark.parametrize("integrator", ["midpoint", "euler", "rk4"])
def test_what_falls_into_a_wedge_stops_there(integrator: str) -> None:
    robot = wedged(1.0)
    simulation = Simulation(robot, q=above(robot, 1e-4), integrator=integrator)
    for _ in range(100):
        simulation.step()
        assert simulation.status.solved
    assert abs(simulation.v[0]) < 1e-9 and abs(simulation.gaps[0]) < 1e-5


def test_what_does_not_jam_is_parted() -> None:
    """With friction below the angle of the slide, the ball is let out as anywhere else."""
    robot = wedged(0.1)
    with pytest.warns(ModelWarning, match="overlaps at the start"):
        simulation = Simulation(robot, q=above(robot, -1e-3))
    for _ in range(20):
        simulation.step()
        assert simulation.status.solved and simulation.status.jammed == 0.0
    assert simulation.gaps[0] > -1e-9


def test_a_batch_jams_as_single_states_do() -> None:
    robot = wedged(1.0)
    starts = np.stack([above(robot, gap) for gap in (-1e-6, 0.0, 1e-3)])
    rollout = coupler.rollout(robot, starts, np.zeros(1), np.zeros((100, 1)))
    for q, all_of_it, residuals in zip(starts, rollout.q, rollout.residuals, strict=True):
        simulation = Simulation(robot, q=q)
        for _ in range(100):
            simulation.step()
        np.testing.assert_allclose(all_of_it[-1], simulation.q, atol=1e-12)
        assert residuals.max() <= 1e-9


@pytest.mark.parametrize("uneven", [0.0, 1e-11, 1e-10])
def test_feet_that_are_not_quite_even_are_solved(uneven: float) -> None:
    """Of 7 feet, 3 carry a stool; which of them do is a matter of 10 pm."""
    b, rng = RobotBuilder("stool"), np.random.default_rng(1)
    b.body("stool", 1.0, inertia=(0.3, 0.3, 0.5))
    b.joint("stool", Free(), "ground", "stool")
    for i in range(7):
        x, y = (f(2.0 * np.pi * i / 7) for f in (np.cos, np.sin))
        foot = Transform.translation(np.array([x, y, -0.5 + uneven * rng.normal()]))
        b.shape("stool", Sphere(0.05), name=f"foot {i}", at=foot)
    robot = b.build().with_floor(1.0)
    q, v = robot.pack_q({"stool": [0, 0, 0.55, 1, 0, 0, 0]}), robot.pack_v({"stool": [0.1, 0, 0, 0.1, 0, 0]})
    simulation = Simulation(robot, q=q, v=v)
    for _ in range(500):
        simulation.step()
        assert simulation.status.solved
    assert simulation.contact_forces[:, 2].sum() == pytest.approx(9.81, rel=1e-6)
