"""Tops, wheels in a satellite, joints of any stiffness, a block on a spring: motions with an answer of their own."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder, Simulation
from coupler.model import Free, Plane, Prismatic, Revolute, Sphere, Spherical
from effort import every

pytestmark = pytest.mark.filterwarnings("ignore:.*can touch nothing")

MASS, REACH, ACROSS, ALONG, G = 1.0, 0.3, 0.02, 0.006, 9.81
ABOUT_TIP = ACROSS + MASS * REACH**2


def top() -> Robot:
    b = RobotBuilder("top")
    b.body("top", MASS, (0, 0, REACH), (ACROSS, ACROSS, ALONG))
    b.joint("tip", Spherical(), "ground", "top")
    return b.build()


def lagrange(tilt: float, spin: float, duration: float) -> np.ndarray:
    """The axis of a top let go at a tilt, from the momenta about the vertical and about its axis, which are kept."""
    about_axis = ALONG * spin
    upright = about_axis * np.cos(tilt)

    def rates(x: np.ndarray) -> np.ndarray:
        angle, speed, _ = x
        turning = (upright - about_axis * np.cos(angle)) / (ABOUT_TIP * np.sin(angle) ** 2)
        push = MASS * G * REACH - about_axis * turning + ABOUT_TIP * turning**2 * np.cos(angle)
        return np.array([speed, push * np.sin(angle) / ABOUT_TIP, turning])

    x, n = np.array([tilt, 0.0, 0.0]), 20000
    h = duration / n
    for _ in range(n):
        one = rates(x)
        two = rates(x + h / 2 * one)
        three = rates(x + h / 2 * two)
        x = x + h / 6 * (one + 2 * two + 2 * three + rates(x + h * three))
    return np.array([np.sin(x[0]) * np.cos(x[2]), np.sin(x[0]) * np.sin(x[2]), np.cos(x[0])])


def axis(simulation: Simulation) -> np.ndarray:
    return coupler.frame_pose(simulation.robot, simulation.q, "top")[:3, 2]


@pytest.mark.parametrize(("integrator", "order"), every(2, [("midpoint", 2), ("trapezoid", 2), ("rk4", 4)]))
def test_a_top_nods_and_turns_as_lagrange_says(integrator: str, order: int) -> None:
    errors, exact = [], lagrange(0.5, 200.0, 0.5)
    for step in (1e-3, 5e-4):
        simulation = Simulation(
            top(), step, q=[np.cos(0.25), 0, np.sin(0.25), 0], v=[0, 0, 200.0], integrator=integrator
        )
        for _ in range(round(0.5 / step)):
            simulation.step()
        errors.append(np.abs(axis(simulation) - exact).max())
    assert errors[0] / errors[1] == pytest.approx(2.0**order, rel=0.15)
    assert errors[1] < {2: 5e-2, 4: 1e-4}[order]


@pytest.mark.parametrize("part", [1.2, 0.8])
def test_a_top_sleeps_above_its_critical_spin_and_falls_below(part: float) -> None:
    """ω₃ = 2 √(A m g l) / C."""
    spin = part * 2.0 * np.sqrt(ABOUT_TIP * MASS * G * REACH) / ALONG
    simulation, tilt = Simulation(top(), q=[np.cos(1e-3), np.sin(1e-3), 0, 0], v=[0, 0, spin]), 0.0
    for _ in range(3000):
        simulation.step()
        tilt = max(tilt, float(np.hypot(*axis(simulation)[:2])))
    assert tilt < 5e-3 if part > 1.0 else tilt > 0.5


def momentum(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """About the world's origin, body by body: 6, angular first."""
    total = np.zeros(6)
    for name, body in robot.bodies.items():
        pose = coupler.frame_pose(robot, q, name)
        velocity = coupler.frame_velocity(robot, q, v, name, axes="world")
        centre = pose[:3, 3] + pose[:3, :3] @ body.centre
        push = body.mass * (velocity[3:] + np.cross(velocity[:3], centre - pose[:3, 3]))
        turn = pose[:3, :3] @ body.inertia @ pose[:3, :3].T @ velocity[:3]
        total += np.hstack([turn + np.cross(centre, push), push])
    return total


@pytest.mark.parametrize(("integrator", "lost"), every(2, [("midpoint", 1e-7), ("euler", 1e-4), ("rk4", 1e-12)]))
def test_wheels_turn_a_satellite_and_its_momentum_stays(integrator: str, lost: float) -> None:
    b = RobotBuilder("satellite", (0.0, 0.0, 0.0))
    b.body("bus", 5.0, (0.02, -0.01, 0.03), (0.1, 0.12, 0.15))
    b.joint("free", Free(), "ground", "bus")
    for name, along in zip("xyz", np.eye(3), strict=True):
        b.body(f"wheel {name}", 0.3, inertia=(1e-3,) * 3)
        b.joint(name, Revolute(axis=along), "bus", f"wheel {name}", at=0.1 * along)
    robot = b.build()
    simulation = Simulation(robot, v=[0.1, 0.2, 0.3, 0.5, 0, 0, 10, 20, -30], integrator=integrator)
    before, start = momentum(robot, simulation.q, simulation.v), simulation.v.copy()
    for k in range(1000):
        simulation.step([*6 * [0.0], 0.05 * np.sin(2e-3 * k), 0.03, -0.04])
    assert np.abs(simulation.v - start).max() > 10.0
    np.testing.assert_allclose(momentum(robot, simulation.q, simulation.v), before, rtol=0, atol=lost)


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
@pytest.mark.parametrize(("stiffness", "damping"), [(0.0, 1e6), (0.0, 1e12), (1e8, 1e3), (1e3, 1e8)])
def test_no_spring_or_damper_is_too_strong(integrator: str, stiffness: float, damping: float) -> None:
    """A weight sinks with the speed that its damper allows, or hangs where its spring holds it."""
    b = RobotBuilder("weight")
    b.body("weight", 1.0)
    b.joint("slide", Prismatic(stiffness=stiffness, damping=damping, rest=0.0), "ground", "weight")
    simulation = Simulation(b.build(), q=[1e-3], integrator=integrator)
    for _ in range(1000):
        simulation.step()
    force = -G - stiffness * simulation.q[0]
    if stiffness > damping:
        assert simulation.q[0] == pytest.approx(-G / stiffness, rel=1e-3)
    else:
        assert simulation.v[0] == pytest.approx(force / damping, rel=1e-3)
        assert simulation.q[0] == pytest.approx(1e-3 + force / damping, abs=1e-3 * G / damping)


@pytest.mark.parametrize(
    ("integrator", "order"), every(2, [("midpoint", 1), ("trapezoid", 2), ("euler", 1), ("rk4", 3)])
)
def test_a_ball_on_a_spring_slides_up_a_slope_with_friction(integrator: str, order: int) -> None:
    """A carriage on a spring carries it along x, and a slide leaves it free along z: a harmonic motion, until it stops.

    Along x, 1.5 ẍ = −k x + N (sin α + µ cos α), and along z, −tan α ẍ = −g + N (cos α − µ sin α).
    """
    slope, mu, k, at = 0.3, 0.2, 50.0, 0.2
    b = RobotBuilder("slope")
    b.body("carriage", 0.5)
    b.joint("x", Prismatic(axis=(1, 0, 0), stiffness=k, rest=0.0), "ground", "carriage")
    b.body("ball", 1.0)
    b.joint("z", Prismatic(axis=(0, 0, 1)), "carriage", "ball")
    b.shape("ball", Sphere(0.05), friction=mu)
    s, c = np.sin(slope), np.cos(slope)
    b.shape("ground", Plane(), turned=np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]))
    robot = b.build()
    leaning = (s + mu * c) / (c - mu * s)  # N_x / N_z, moving towards −x
    mass, push = 1.5 + leaning * s / c, leaning * G
    centre, frequency, duration = push / k, np.sqrt(k / mass), 0.2
    exact = centre + (at - centre) * np.cos(frequency * duration)
    errors = []
    for step in (2e-3, 1e-3):
        simulation = Simulation(robot, step, q=[at, (0.05 - s * at) / c], integrator=integrator)
        for _ in range(round(duration / step)):
            simulation.step()
        errors.append(abs(simulation.q[0] - exact))
    assert errors[0] / errors[1] == pytest.approx(2.0**order, rel=0.15)
    assert errors[1] < {1: 5e-3, 2: 1e-5, 3: 1e-8}[order]
