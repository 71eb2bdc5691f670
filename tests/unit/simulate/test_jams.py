"""Overlaps that no impulses part: they stay as they are, with forces that carry what there is to carry."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import ModelWarning, Robot, RobotBuilder, Simulation
from coupler.model import Free, Prismatic, Revolute, Sphere
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


def wheeled(depth: float) -> Robot:
    """A cart on a rail, with a wheel that reaches so deep below the floor, m: no impulse lifts or lowers it."""
    b = RobotBuilder("wheeled")
    b.body("cart", 1.0, inertia=(0.1, 0.1, 0.1))
    b.body("wheel", 0.5, inertia=(2.5e-3, 2.5e-3, 2.5e-3))
    b.joint("rail", Prismatic(axis=(1.0, 0.0, 0.0)), "ground", "cart", at=(0.0, 0.0, RADIUS - depth))
    b.joint("axle", Revolute(axis=(0.0, 1.0, 0.0)), "cart", "wheel")
    b.shape("wheel", Sphere(RADIUS), name="wheel")
    return b.build().with_floor(1.0)


@pytest.mark.filterwarnings("ignore:.*overlaps at the start")
@pytest.mark.parametrize("integrator", ["midpoint", "euler", "rk4", "trapezoid"])
@pytest.mark.parametrize("depth", [0.0, 1e-12, 1e-3])
def test_a_contact_that_nothing_moves_along_its_normal_carries_nothing(depth: float, integrator: str) -> None:
    """The wheel's axle takes its load. So it turns freely, ω = τ t / I, and the cart stays; an overlap is told."""
    simulation = Simulation(wheeled(depth), integrator=integrator, contacts="wheel on floor")
    for _ in range(200):
        simulation.step(np.array([0.0, 0.1]))
        status = simulation.status
        assert status.solved and not status.iterations
        assert status.jammed == pytest.approx(depth if depth > 1e-9 else 0.0)
    np.testing.assert_allclose(simulation.v, [0.0, 0.1 * 0.2 / 2.5e-3], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(simulation.contact_forces, 0.0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*overlaps at the start")
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_contact_at_a_pivot_changes_nothing(integrator: str) -> None:
    """Nothing moves the pivot in any direction: all mobilities of its contact are rounding."""
    b = RobotBuilder("hinged")
    b.body("arm", 1.0, (0.2, 0.1, -0.1), (0.01, 0.02, 0.03))
    b.joint("hinge", Revolute(axis=np.array([0.3, 0.5, 0.7]) / np.sqrt(0.83)), "ground", "arm", at=(0.13, 0.27, 0.31))
    b.contact("pivot", "arm", (0.0, 0.0, 0.0))
    robot = b.build().with_floor(0.8, height=0.311)
    touching, free = (Simulation(robot, integrator=integrator, contacts=x) for x in ("pivot on floor", ()))
    for _ in range(300):
        touching.step()
        free.step()
    np.testing.assert_allclose(touching.q, free.q, atol=1e-12)
    assert touching.status.solved and touching.status.jammed == pytest.approx(1e-3)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])  # of its length
def test_what_touches_near_its_pivot_parts_slowly(share: float) -> None:
    """A rod of mass m and length l, on a pivot, overlaps with a floor at d from it: 1/A_nn = m l²/(3 d²).

    Its other end would have to be thrown up to part it at 0.1 m/s, so the work of parting is at most 10 m (0.1 m/s)².
    """
    mass, length, radius = 2.0, 1.0, 0.01
    b = RobotBuilder("rod")
    b.body("rod", mass, (length / 2, 0.0, 0.0), (1e-3, mass * length**2 / 12, mass * length**2 / 12))
    b.joint("pivot", Revolute(axis=(0.0, -1.0, 0.0)), "ground", "rod", at=(0.0, 0.0, radius - 0.001))
    b.shape("rod", Sphere(radius), at=(share * length, 0.0, 0.0))
    robot = b.build().with_gravity((0.0, 0.0, 0.0)).with_floor(0.0)
    with pytest.warns(ModelWarning, match="overlaps at the start in 1 contact"):
        simulation = Simulation(robot)
    simulation.step()
    lever = 1.0 / (3.0 * share**2)  # 1/A_nn, times the mass
    assert simulation.v[0] * share * length == pytest.approx(0.1 * min(1.0, np.sqrt(10.0 / lever)), rel=1e-6)
    assert simulation.status.solved and simulation.status.jammed == 0.0


def test_legs_that_reach_far_into_the_floor_are_not_thrown_about() -> None:
    """Two contacts of a leg that hangs down nearly straight would part at 2e5 rad/s, as some friction wedges them."""
    robot = coupler.robots.load("mit_humanoid_leg").with_floor(0.7)
    rng = np.random.default_rng(7)
    q, v = (np.array(x) for x in zip(*(robot.random_state(rng) for _ in range(20)), strict=True))
    with pytest.warns(ModelWarning) as told:
        rollout = coupler.rollout(robot, q, 0.3 * v, np.zeros((100, robot.nv)))
    assert ["at the start" in str(told[0].message), "left as they are" in str(told[1].message)] == [True, True]
    assert np.abs(rollout.v).max() < 50.0  # rad/s; NaN if a state had stopped
