"""Simulations by methods of several stages: order, energy, batches, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder, Simulation
from coupler.model import Cylinder, Free, ModelError, Planar, Plane, Prismatic, Revolute, Sphere, Spherical
from coupler.simulate.integrators import rk4
from coupler.simulate.motion import integrate_motion
from effort import every, sweep
from pendulums import pendulum

G = 9.81
Y = (0.0, 1.0, 0.0)
pytestmark = pytest.mark.filterwarnings("ignore:.*can touch nothing")


def energy(simulation: Simulation) -> float:
    kinetic = simulation._engine.kinetic_energy(simulation._state)
    return float(kinetic + coupler.potential_energy(simulation.robot, simulation.q))


@pytest.mark.parametrize(
    ("name", "integrator", "expected"),
    [
        ("mini_cheetah", "rk4", 4.0),
        ("slider_crank", "rk4", 4.0),
        ("spherical pendulum", "rk4", 4.0),
        ("slider_crank", "trapezoid", 2.0),
        ("spherical pendulum", "trapezoid", 2.0),
    ],
)
def test_they_are_of_their_order_while_nothing_touches(name: str, integrator: str, expected: float) -> None:
    robot = pendulum(Spherical(), Revolute(axis=Y)) if " " in name else coupler.robots.load(name)
    q, v = robot.random_state(2)
    tau, errors = np.random.default_rng(0).normal(size=robot.nv), []
    exact = integrate_motion(robot, q, v, 0.2, tolerance=1e-13, tau=tau)
    for steps in (20, 40, 80):
        simulation = Simulation(robot, 0.2 / steps, q=q, v=v, integrator=integrator, limits=False, contacts=[])
        for _ in range(steps):
            simulation.step(tau)
        apart = [robot.difference(exact.q[-1], np.array(simulation.q)), simulation.v - exact.v[-1]]
        errors.append(np.abs(np.concatenate(apart)).max())
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(order - expected) < 0.4).all(), (errors, order)


def leaning() -> Robot:
    """A thin rod in a plane, one end of which slides on the ground without friction."""
    b = RobotBuilder("leaning")
    b.body("rod", 1.0, inertia=(1 / 12, 1 / 12, 1 / 12))
    b.joint("base", Planar(normal=Y), "ground", "rod")  # z, x, angle
    b.contact("end", "rod", (0.5, 0, 0))
    b.shape("ground", Plane(), friction=0.0)
    return b.build()


def test_energy_is_of_third_order_where_a_contact_stays_closed() -> None:
    """1e-5 of the error of Euler's method at 1 ms, and the centre of the rod falls straight."""
    robot, errors = leaning(), {}
    for integrator, h in (("rk4", 2e-3), ("rk4", 1e-3), ("rk4", 5e-4), ("euler", 1e-3), ("midpoint", 1e-3)):
        simulation = Simulation(robot, h, q=[0.5 * np.sin(1.0), 0.0, 1.0], integrator=integrator)
        before = energy(simulation)
        simulation.run(0.3)
        assert abs(simulation.q[1]) < 1e-12
        errors[integrator, h] = abs(energy(simulation) - before)
    halved = np.array([errors["rk4", h] for h in (2e-3, 1e-3, 5e-4)])
    np.testing.assert_allclose(halved[:-1] / halved[1:], 8.0, rtol=0.06)
    assert halved[1] < 1.5e-7
    assert min(errors["euler", 1e-3], errors["midpoint", 1e-3]) > 1e4 * halved[1]


def test_energy_hardly_drifts() -> None:
    """Double pendulum of 20 J for 10 s at 1 ms: 1e-8 of it, where the midpoint rule has 1e-4."""
    robot = pendulum(Revolute(axis=Y), Revolute(axis=(1, 0, 0)))
    simulation = Simulation(robot, q=[1.0, 0.5], v=[1.0, -2.0], integrator="rk4")
    log = simulation.run(10.0)
    total = log.kinetic + log.potential
    assert np.ptp(total) < 2e-8 * np.ptp(log.potential)


def balls(friction: float = 0.5) -> Robot:
    b = RobotBuilder("balls")
    b.shape("ground", Plane(), friction=friction)
    for name in ("one", "two"):
        b.body(name, 1.0, inertia=(0.004, 0.004, 0.004))
        b.joint(name, Free(), "ground", name)
        b.shape(name, Sphere(0.1))
    return b.build()


@pytest.mark.parametrize("penetration", every(2, ["position", "velocity", "limited", None], first=1))
def test_a_ball_that_falls_sinks_by_half_a_step_and_comes_back_as_is_chosen(penetration: Any) -> None:
    """At 2.2 m/s by 1.1 mm at most; with "velocity" it stays there, with "limited" it rises by 1e-5 m a step."""
    robot = balls()
    q = robot.pack_q({"one": [0, 0, 0.35, 1, 0, 0, 0], "two": [1, 0, 0.1, 1, 0, 0, 0]})
    simulation = Simulation(robot, q=q, integrator="rk4", penetration=penetration, recovery=np.inf)
    log = simulation.run(0.5)
    height, speed = log.q[:, 2] - 0.1, np.sqrt(2 * G * 0.25)
    first = int(np.argmax(height < 0.0))
    assert -0.51e-3 * speed < height.min() < 0.0
    if penetration == "position":
        assert height[first:].max() > 1e-3  # an unexpected bounce, as in the paper
    elif penetration == "velocity":
        np.testing.assert_allclose(height[first + 3 :], height[-1], rtol=0, atol=1e-12)
    else:
        assert height[first + 3] + 1e-5 * (len(height) - first - 4) >= 0.0
        assert height[-1] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(log.q[:, robot.q_slice("two")][:, 2], 0.1, rtol=0, atol=1e-9)


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
@pytest.mark.parametrize("h", [1e-3, 1e-4])
def test_a_stop_without_restitution_lets_go_with_a_speed_that_vanishes_with_the_step(integrator: str, h: float) -> None:
    """Overlaps of impacts are parted with 10 h m/s; 1e-5 m a step would throw a body back with 0.1 m/s at 0.1 ms."""
    b = RobotBuilder("stop")
    b.body("cart", 1.0)
    b.joint("rail", Prismatic(axis=(1, 0, 0), upper=0.1), "ground", "cart")
    log = Simulation(b.build(), h, v=[1.0], integrator=integrator).run(0.2)
    assert -10.001 * h < log.v[-1, 0] <= 0.0


@pytest.mark.parametrize("threads", every(2, [2, 1]))
def test_one_state_lanes_and_threads_agree_to_the_bit(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUPLER_THREADS", str(threads))
    robot = coupler.robots.load("mini_cheetah").with_floor(friction=0.8)
    rng, n = np.random.default_rng(0), 19
    angles = {"hip": -0.8, "knee": 1.6}
    bent = {joint: x for joint in robot.independent_joints for part, x in angles.items() if part in joint}
    q = np.stack(
        [robot.pack_q({**bent, "floating_base": [0, 0, z, 1, 0, 0, 0]}) for z in rng.uniform(0.2815, 0.284, n)]
    )
    v, controls = 0.3 * rng.normal(size=(n, robot.nv)), rng.normal(size=(n, 12, robot.nv))
    options: dict[str, Any] = {"contacts": "*foot*", "integrator": "rk4"}
    found = coupler.rollout(robot, q, v, controls, 1e-3, forces=True, **options)
    assert found.forces is not None and (found.forces[..., 2] > 0.0).any(axis=(1, 2)).sum() > 3
    for i in (0, 7, n - 1):
        simulation = Simulation(robot, q=q[i], v=v[i], **options)
        for t in range(12):
            simulation.step(controls[i, t])
            np.testing.assert_array_equal(simulation.q, found.q[i, t + 1])
            np.testing.assert_array_equal(simulation.v, found.v[i, t + 1])


def test_forces_on_bodies_act_in_all_stages() -> None:
    """A force in the world's axes about its origin, on a body that turns."""
    robot = pendulum(Spherical(), Revolute(axis=Y))
    q, v = robot.random_state(1)
    f_ext = np.random.default_rng(3).normal(size=(len(robot.bodies), 6))
    simulation = Simulation(robot, 1e-2, q=q, v=v, integrator="rk4")
    simulation.step(None, f_ext)
    expected = rk4(robot, q, v, np.zeros(robot.nv), 1e-2, f_ext=f_ext)
    np.testing.assert_allclose(simulation.q, expected[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(simulation.v, expected[1], rtol=0, atol=1e-13)


def test_springs_and_dampers_that_are_too_strong_are_refused() -> None:
    def sliding(**options: float) -> Robot:
        b = RobotBuilder("spring")
        b.body("mass", 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint("slide", Prismatic(axis=(1, 0, 0), **options), "ground", "mass")
        return b.build()

    told = r"about joint 'slide' are too strong .* steps of 0\.00028 s would do, or integrator=\"midpoint\""
    with pytest.raises(ModelError, match=told):
        Simulation(sliding(stiffness=1e8), integrator="rk4")
    with pytest.raises(ModelError, match=r"steps of 2\.8e-05 s would do"):
        coupler.rollout(sliding(damping=1e5), np.zeros((3, 1)), np.ones((3, 1)), np.zeros((5, 1)), integrator="rk4")
    for robot, step in ((sliding(stiffness=1e8), 2.8e-4), (sliding(damping=1e5), 2.7e-5)):
        log = Simulation(robot, step, q=[0.01], v=[0.0], integrator="rk4").run(200 * step)
        assert np.abs(log.q).max() <= 0.01 + 1e-12


def test_a_state_goes_on_after_it_was_restored() -> None:
    robot = balls()
    q = robot.pack_q({"one": [0, 0, 0.12, 1, 0, 0, 0], "two": [0.15, 0, 0.3, 1, 0, 0, 0]})
    simulation = Simulation(robot, q=q, v=robot.pack_v({"one": [3, 0, 0, 0, 1, 0]}), integrator="rk4")
    simulation.run(0.1)
    state = simulation.state
    simulation.run(0.1)
    there = simulation.state
    simulation.restore(state)
    simulation.run(0.1)
    assert simulation.state == there


@pytest.mark.parametrize("independent", sweep(["A", "B", "D"], ["D"]))
def test_loops_pass_dead_points(independent: str) -> None:
    b = RobotBuilder("crank-rocker")
    for name, length in {"crank": 0.3, "coupler": 0.8, "rocker": 0.7}.items():
        b.body(name, 2.0 * length, (length / 2, 0, 0), (1e-3, length**3 / 6, length**3 / 6))
    b.joint("A", Revolute(axis=Y), "ground", "crank", independent=independent == "A")
    b.joint("B", Revolute(axis=Y), "crank", "coupler", at=(0.3, 0, 0), independent=independent == "B")
    b.joint("D", Revolute(axis=Y), "ground", "rocker", at=(0.9, 0, 0), independent=independent == "D")
    b.loop("C", Revolute(axis=Y), "coupler", "rocker", at=(0.8, 0, 0), meets=(0.7, 0, 0))
    robot = b.build()
    q = robot.pack_q({"A": 2.0})
    simulation = Simulation(robot, q=q, integrator="rk4")
    before = energy(simulation)
    simulation.run(2.0)
    exact = integrate_motion(robot, q, np.zeros(1), 2.0, 1e-3)
    np.testing.assert_allclose(simulation.q, exact.q[-1], rtol=0, atol=1e-10)
    assert energy(simulation) == pytest.approx(before, abs=1e-8)


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
@pytest.mark.parametrize("restitution", [0.0, 0.6, 1.0])
def test_balls_without_friction_do_not_spin(integrator: str, restitution: float) -> None:
    """One ball hits another off its centre: the force is along the normal where they meet, and points at both centres.

    So velocities along that change as Newton's law says, and energy is what is left then.
    """
    b = RobotBuilder("balls")
    for name, at, mass in (("a", (0, 0, 0), 1.0), ("b", (0.3, 0.07, 0.03), 2.0)):
        b.object(name, Sphere(0.1), at=at, mass=mass, friction=0.0, restitution=restitution)
    robot = b.build().with_gravity([0, 0, 0])
    v = robot.pack_v({"a": [0, 0, 0, 2, 0, 0]})
    simulation = Simulation(robot, 1e-3, q=robot.neutral(), v=v, integrator=integrator, friction=0.0)
    for _ in range(200):
        simulation.step()
    one, other = simulation.v[:6], simulation.v[6:]
    assert np.abs([one[:3], other[:3]]).max() < 1e-12
    n = np.array([np.sqrt(0.2**2 - 0.07**2 - 0.03**2), 0.07, 0.03]) / 0.2
    impulse = (1.0 + restitution) * 2.0 * n[0] / 1.5 * n
    np.testing.assert_allclose(one[3:], [2, 0, 0] - impulse, atol=5e-3)
    np.testing.assert_allclose(other[3:], impulse / 2.0, atol=5e-3)
    lost = 0.5 * (1.0 - restitution**2) * (2.0 * n[0]) ** 2 / 1.5
    assert energy(simulation) == pytest.approx(2.0 - lost, abs=5e-3 if restitution < 1.0 else 1e-12)


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
def test_a_ball_that_slides_over_another_does_not_spin(integrator: str) -> None:
    """It leaves it at two thirds of its height above the other's centre, with all of its energy."""
    b = RobotBuilder("slide")
    b.object("ball", Sphere(0.1), at=(0.02, 0, np.sqrt(0.25 - 4e-4)), mass=1.0, friction=0.0)
    b.shape("ground", Sphere(0.4), friction=0.0)
    robot = b.build()
    simulation = Simulation(robot, 1e-3, q=robot.neutral(), integrator=integrator, friction=0.0)
    start, height, before = energy(simulation), simulation.q[2], 0.0
    while simulation.time < 0.1 or simulation.contact_forces.any():
        before = simulation.q[2]
        simulation.step()
    assert np.abs(simulation.v[:3]).max() < 1e-12
    assert before == pytest.approx(height * 2.0 / 3.0, abs=5e-3)
    assert energy(simulation) == pytest.approx(start, abs=1e-3)


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
def test_without_gravity_nothing_comes_back_from_an_inelastic_impact(integrator: str) -> None:
    """Two balls of equal mass move on together with half the speed, whatever overlap the impact leaves."""
    b = RobotBuilder("pair", gravity=(0.0, 0.0, 0.0))
    for name, place in (("one", 0.0), ("two", 0.5)):
        b.object(name, Sphere(0.1), at=(place, 0.0, 0.0), mass=1.0, friction=0.0)
    robot = b.build()
    simulation = Simulation(robot, integrator=integrator, v=robot.pack_v({"one": [0, 0, 0, 1.0, 0, 0]}))
    simulation.run(0.5)
    np.testing.assert_allclose(simulation.v.reshape(2, 6)[:, 3], 0.5, rtol=0, atol=1e-9)


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
@pytest.mark.parametrize("tilt", np.radians([5.0, 10.0]))
def test_a_disc_that_rolls_on_its_rim_does_not_sink(tilt: float, integrator: str) -> None:
    """Euler's disc: its centre rests, its axis precesses with Ω² = 4 g / (a sin α), and it turns with Ω sin α.

    Where it touches runs along the rim much faster than the disc moves.
    """
    a, thick = 0.1, 1e-5
    b = RobotBuilder("disc")
    b.floor(friction=1.0)
    b.body("disc", 1.0, inertia=(a**2 / 4, a**2 / 4, a**2 / 2))
    b.joint("free", Free(), "ground", "disc")
    b.shape("disc", Cylinder(a, thick))
    height, rate = a * np.sin(tilt) + 0.5 * thick * np.cos(tilt), np.sqrt(4 * G * np.sin(tilt) / a)
    q = np.array([0, 0, height, np.cos(0.5 * tilt), 0, np.sin(0.5 * tilt), 0])
    simulation = Simulation(b.build(), q=q, v=[rate, 0, 0, 0, 0, 0], integrator=integrator)
    before = energy(simulation)
    for _ in range(100):
        simulation.step()
        assert simulation.gaps.min() > -1e-6
    np.testing.assert_allclose(simulation.q[:3], q[:3], rtol=0, atol=1e-4)
    assert energy(simulation) == pytest.approx(before, rel=1e-3)
