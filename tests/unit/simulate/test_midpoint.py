"""The midpoint rule: of second order, reversible, and good to energy and momentum; with contact as good as Euler's."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler import Robot, RobotBuilder, Simulation, SimulationError
from coupler.contact.damping import damped
from coupler.contact.floating import straight_motion
from coupler.contact.formulations import basis_biases, floating, floating_centre
from coupler.model import Box, Free, ModelError, ModelWarning, Plane, Prismatic, Revolute, Sphere, Spherical
from coupler.simulate.motion import integrate_motion
from effort import every
from pendulums import pendulum
from random_robots import sample

G = 9.81
pytestmark = pytest.mark.filterwarnings("ignore:.*can touch nothing")


def energy(robot: Robot, q: np.ndarray, v: np.ndarray) -> float:
    return float(coupler.kinetic_energy(robot, q, v) + coupler.potential_energy(robot, q))


def body(inertia: tuple[float, float, float], centre: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Robot:
    """A body afloat, without gravity."""
    b = RobotBuilder("body")
    b.body("body", 1.0, centre, inertia)
    b.joint("free", Free(), "ground", "body")
    return b.build().with_gravity((0.0, 0.0, 0.0))


# Against NumPy, which has whole matrices and no recursion


def drifted(robot: Robot, q: np.ndarray, v: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    q_next, v_next = robot.integrate(q, v, step), v.copy()
    for joint in floating(robot):
        place, own = robot.q_slice(joint), robot.v_slice(joint)
        q_next[place], v_next[own] = straight_motion(q[place], v[own], step, floating_centre(robot, joint))
    return q_next, v_next


def midpoint(robot: Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Drift, kick, drift."""
    x, v = drifted(robot, q, v, h / 2)
    implicit, u = damped(robot, h, midpoint=True), v
    H = coupler.mass_matrix(implicit, x)
    for _ in range(100):
        mean = 0.5 * (v + u)
        force = tau - coupler.bias_force(robot, x, mean)
        u = v + h * (np.linalg.solve(H, force) + basis_biases(robot, x, mean))
    return drifted(robot, x, u, h / 2)


@pytest.mark.parametrize("name", every(2, ["floating tree", "tree", "differential", "gear", "belt"]))
def test_a_step_is_that_of_numpy(name: str) -> None:
    robot = sample(name).robot
    q, v = robot.random_state(0)
    tau = np.random.default_rng(0).normal(size=robot.nv)
    simulation = Simulation(robot, 1e-3, q=q, v=v, limits=False)
    if any(link.kind.damping.any() or link.kind.friction.any() for link in robot.tree.links):
        pytest.skip("dampers are implicit, and dry friction is an impulse: neither is in this reference")
    for _ in range(3):
        q, v = midpoint(robot, q, v, tau, 1e-3)
        simulation.step(tau)
        np.testing.assert_allclose(simulation.v, v, rtol=0, atol=1e-10 * max(1.0, np.abs(v).max()))
        np.testing.assert_allclose(simulation.q, q, rtol=0, atol=1e-11)


# Energy, momentum, order


def test_a_body_that_tumbles_keeps_its_energy_and_turns_over() -> None:
    """A T-handle: about the axis of middle inertia it is unstable."""
    robot = body((0.3, 0.2, 0.1))
    v = np.array([0.01, 10.0, 0.01, 0.0, 0.0, 0.0])
    simulation = Simulation(robot, q=robot.neutral(), v=v)
    before, momentum, lowest = energy(robot, simulation.q, v), coupler.momentum(robot, simulation.q, v), np.inf
    for _ in range(10_000):
        simulation.step()
        lowest = min(lowest, float(simulation.v[1]))
    assert lowest < -9.9
    assert energy(robot, simulation.q, simulation.v) == pytest.approx(before, rel=1e-10)
    now = coupler.momentum(robot, simulation.q, simulation.v)
    np.testing.assert_allclose(now, momentum, rtol=0, atol=1e-4 * np.abs(momentum).max())


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
def test_the_centre_of_mass_moves_straight_wherever_the_frame_is(integrator: str) -> None:
    robot = body((0.3, 0.2, 0.1), centre=(0.3, 0.1, -0.2))
    q, v = robot.neutral(), np.array([3.0, 5.0, 2.0, 0.4, 0.0, 0.1])
    simulation = Simulation(robot, q=q, v=v, integrator=integrator)
    simulation.run(5.0)
    expected = coupler.centre_of_mass(robot, q) + 5.0 * coupler.momentum(robot, q, v)[3:]
    np.testing.assert_allclose(coupler.centre_of_mass(robot, simulation.q), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("step", "part"), [(1e-3, 1e-5), (5e-3, 3e-4)])
def test_a_fast_pendulum_keeps_its_energy(step: float, part: float) -> None:
    robot = pendulum(Spherical())
    simulation = Simulation(robot, step, q=robot.neutral(), v=[60.0, 3.0, 80.0])
    log = simulation.run(2.0)
    total = log.kinetic + log.potential
    assert np.abs(total - total[0]).max() < part * log.kinetic[0]


def test_it_is_of_second_order() -> None:
    robot = pendulum(Revolute(axis=(0, 1, 0)), Revolute(axis=(1, 0, 0)))
    q, v = np.array([1.0, 0.5]), np.array([1.0, -2.0])
    exact, errors = integrate_motion(robot, q, v, 1.0, tolerance=1e-12), []
    for step in (4e-3, 2e-3, 1e-3):
        simulation = Simulation(robot, step, q=q, v=v)
        simulation.run(1.0)
        errors.append(np.abs(simulation.q - exact.q[-1]).max())
    assert errors[-1] < 1e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.3)
    assert errors[1] / errors[2] == pytest.approx(4.0, abs=0.3)


@pytest.mark.parametrize("name", every(2, ["mit_humanoid_leg", "geared_chain", "four_bar", "tello"]))
def test_motion_runs_backwards(name: str) -> None:
    robot = coupler.robots.load(name)
    q, v = robot.random_state(3)
    simulation = Simulation(robot, 1e-3, q=q, v=v, limits=False)
    simulation.run(0.2)
    simulation.reset(simulation.q, -np.array(simulation.v))
    simulation.run(0.2)
    np.testing.assert_allclose(robot.difference(q, np.array(simulation.q)), 0.0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(simulation.v, -v, rtol=0, atol=1e-6)


def test_a_stiff_spring_swings_on() -> None:
    """With h ω = 10 an explicit step would explode; a damper of any strength just stops it."""
    b = RobotBuilder("spring")
    b.body("mass", 1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(axis=(1, 0, 0), stiffness=1e8), "ground", "mass")
    robot = b.build()
    simulation = Simulation(robot, 1e-3, q=[0.01])
    log = simulation.run(1.0)
    assert np.abs(log.q).max() <= 0.01 + 1e-9
    assert np.abs(log.q[-100:]).max() > 0.005
    euler = Simulation(robot, 1e-3, q=[0.01], integrator="euler")
    assert np.abs(euler.run(1.0).q[-1]) < 1e-3


@pytest.mark.parametrize(("stiffness", "damping"), [(0.0, 3.0), (20.0, 3.0), (200.0, 1.0)])
def test_dampers_are_of_second_order(stiffness: float, damping: float) -> None:
    """A carriage on a spring, against the formula; and a crank that its loop turns, against a method of high order."""
    b = RobotBuilder("carriage")
    b.body("carriage", 1.0)
    b.joint("slide", Prismatic(axis=(1, 0, 0), stiffness=stiffness, damping=damping), "ground", "carriage")
    rates = np.roots([1.0, damping, stiffness]).astype(complex)
    weights = np.linalg.solve(np.stack([np.ones(2), rates]), [0.2, 1.0])
    position = float((weights @ np.exp(rates)).real)
    crank = four_bar(stiffness=0.1 * stiffness, damping=0.1 * damping)
    start = crank.pack_q({"A": 2.0})
    exact = integrate_motion(crank, start, [5.0], 0.5, tolerance=1e-11).q[-1]
    cases = [(b.build(), [0.2], [1.0], 1.0, np.array([position])), (crank, start, [5.0], 0.5, exact)]
    for robot, q, v, duration, expected in cases:
        errors = []
        for step in (4e-3, 2e-3, 1e-3):
            simulation = Simulation(robot, step, q=q, v=v)
            simulation.run(duration)
            errors.append(np.abs(simulation.q - expected).max())
        assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.3)
        assert errors[1] / errors[2] == pytest.approx(4.0, abs=0.3)


def four_bar(**values: float) -> Robot:
    """Without a closed form; the crank has a spring and a damper, and the rocker is independent."""
    b, turn = RobotBuilder("four-bar"), Revolute(axis=(0, 1, 0))
    for name, length in {"crank": 0.3, "rod": 0.8, "rocker": 0.7}.items():
        b.body(name, 1.0, (length / 2, 0, 0), (1e-3, 0.05, 0.05))
    b.joint("A", Revolute(axis=(0, 1, 0), **values), "ground", "crank")
    b.joint("B", turn, "crank", "rod", at=(0.3, 0, 0))
    b.joint("D", turn, "ground", "rocker", at=(0.9, 0, 0), independent=True)
    b.loop("C", turn, "rod", "rocker", at=(0.8, 0, 0), meets=(0.7, 0, 0))
    return b.build()


def test_no_damper_throws_back_what_it_stops() -> None:
    """Between two masses that are free, of any strength: they slow each other down, to a common speed."""
    b = RobotBuilder("two", (0, 0, 0))
    for name, carrier, joint in (("one", "ground", {}), ("two", "one", {"damping": 1.0})):
        b.body(name, 1.0)
        b.joint(name, Prismatic(axis=(1, 0, 0), **joint), carrier, name)
    masses, damping = (x.ravel() for x in np.meshgrid([1e-6, 1e-3, 1.0, 1e3], np.logspace(-1, 9, 11)))
    robot = b.build().with_parameters({"mass:one": masses, "damping:two": damping})
    found = coupler.rollout(robot, [0.0, 0.0], [0.0, 1.0], np.zeros((20, 2)), step=1e-3)
    apart = found.v[..., 1]
    assert apart.min() > -1e-9
    assert np.diff(apart, axis=-1).max() < 1e-9
    momentum = masses[:, None] * found.v[..., 0] + found.v.sum(axis=-1)
    np.testing.assert_allclose(momentum, 1.0, rtol=0, atol=1e-9)


# With contact


def dropped(height: float, radius: float = 0.1) -> tuple[Robot, np.ndarray]:
    b = RobotBuilder("ball")
    b.shape("ground", Plane(), friction=0.5)
    b.body("ball", 2.0, inertia=(0.01, 0.01, 0.01))
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(radius))
    robot = b.build()
    return robot, robot.pack_q({"free": [0, 0, height, 1, 0, 0, 0]})


def test_a_ball_falls_on_a_parabola_and_rests_where_it_touches() -> None:
    robot, q = dropped(0.6)
    simulation = Simulation(robot, q=q)
    log = simulation.run(1.0)
    flying = log.times < np.sqrt(2 * 0.5 / G) - 3e-3
    np.testing.assert_allclose(log.q[flying, 2], 0.6 - G * log.times[flying] ** 2 / 2, rtol=0, atol=1e-12)
    assert log.q[:, 2].min() > 0.1 - 1e-9
    assert simulation.q[2] == pytest.approx(0.1, abs=1e-9)
    assert log.forces[-1, 0, 2] == pytest.approx(2.0 * G, rel=1e-9)


@pytest.mark.parametrize("speed", every(2, [1.0, 10.0, 33.3, 100.0], first=1))
@pytest.mark.parametrize("offset", [0.0, 0.3, 0.6, 0.9])
def test_nothing_gets_through_a_thin_plate(speed: float, offset: float) -> None:
    """Also not where the middle of a step is beyond it."""
    b = RobotBuilder("ball")
    b.shape("ground", Box((1.0, 1.0, 1e-3)), friction=0.0)
    b.body("ball", 1.0, inertia=(0.001, 0.001, 0.001))
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.005))
    robot = b.build().with_gravity((0.0, 0.0, 0.0))
    step = 1e-3
    start = robot.pack_q({"free": [0.01, 0.02, 0.5 + offset * speed * step, 1, 0, 0, 0]})
    simulation = Simulation(robot, step, q=start, v=[0, 0, 0, 0, 0, -speed])
    simulation.run(1.0 / speed)
    assert simulation.q[2] == pytest.approx(0.0055, abs=1e-6)


def test_a_ball_that_flies_does_not_feel_that_another_rests() -> None:
    b = RobotBuilder("two balls")
    b.shape("ground", Plane())
    for name in ("low", "high"):
        b.body(name, 1.0, inertia=(0.01, 0.01, 0.01))
        b.joint(name, Free(), "ground", name)
        b.shape(name, Sphere(0.1))
    robot = b.build()
    q = robot.pack_q({"low": [0, 0, 0.1, 1, 0, 0, 0], "high": [1, 0, 2.0, 1, 0, 0, 0]})
    simulation = Simulation(robot, q=q, v=robot.pack_v({"high": [0, 0, 0, 0, 0, 1.0]}))
    simulation.run(0.3)
    high = simulation.q[robot.q_slice("high")]
    assert high[2] == pytest.approx(2.0 + 0.3 - G * 0.3**2 / 2, abs=1e-9)


def test_a_top_spins_on_its_tip_without_gaining_energy() -> None:
    b = RobotBuilder("top")
    b.shape("ground", Plane(), friction=1.0)
    b.body("top", 0.5, (0, 0, 0.06), (4e-4, 4e-4, 3e-4))
    b.joint("free", Free(), "ground", "top")
    b.shape("top", Sphere(1e-4))
    robot = b.build()
    tilt = 0.3
    q = robot.pack_q({"free": [0, 0, 1e-4, np.cos(tilt / 2), np.sin(tilt / 2), 0, 0]})
    simulation = Simulation(robot, 2e-4, q=q, v=[0, 0, 200.0, 0, 0, 0])
    log = simulation.run(1.0)
    total = log.kinetic + log.potential
    assert total.max() <= total[0] * (1 + 1e-3)
    assert total[-1] > 0.9 * total[0]
    upright = coupler.frame_pose(robot, simulation.q, "top")[2, 2]
    assert upright > 0.8  # it precesses, and does not fall


# Energy from nowhere


def test_energy_from_nowhere_stops_a_run() -> None:
    robot = pendulum(Spherical())
    simulation = Simulation(robot, q=robot.neutral(), v=[60.0, 3.0, 80.0], integrator="euler")
    told = r"gained .* J by 0\.\d+ s that nobody put in: .* joint 'joint0' .* integrator=\"midpoint\""
    with pytest.raises(SimulationError, match=told) as stop:
        simulation.run(2.0)
    assert stop.value.time < 0.3  # long before numbers grow out of bounds, at 0.7 s
    simulation.reset()
    with pytest.warns(ModelWarning, match="that nobody put in"):
        simulation.run(0.4, on_energy_gain="warn")
    simulation.reset()
    simulation.run(0.4, on_energy_gain="ignore")
    with pytest.raises(ModelError, match=r"on_energy_gain must be one of .* got 'hope'"):
        simulation.run(0.4, on_energy_gain="hope")


def test_work_is_not_from_nowhere() -> None:
    robot = pendulum(Revolute(axis=(0, 1, 0)), Revolute(axis=(1, 0, 0)))
    simulation = Simulation(robot, q=[0.1, 0.2])
    log = simulation.run(4.0, lambda t, q, v: np.array([5.0, 2.0]) * np.sign(v + 1e-9))
    assert log.kinetic.max() > 5.0


def test_a_controller_that_is_too_stiff_is_told() -> None:
    """Its damping turns the velocity round in each step, and makes it grow by work that the controller does."""
    robot = pendulum(Revolute(axis=(0, 1, 0)))
    log = Simulation(robot, q=[0.1]).run(0.5, lambda t, q, v: -100.0 * q - 2.0 * v)
    assert np.abs(log.v).max() < 10.0
    told = r"velocities are out of bounds by 0\.\d+ s, joint '.*' moves with .* for steps of 0.001 s"
    with pytest.raises(SimulationError, match=told) as stop:
        Simulation(robot, q=[0.1]).run(0.5, lambda t, q, v: -100.0 * q - 5000.0 * v)
    assert np.abs(stop.value.log.v[:-1]).max() < 1e9


def test_an_unknown_integrator_is_refused() -> None:
    robot, q = dropped(0.5)
    with pytest.raises(ModelError, match=r"integrator must be one of 'midpoint', 'euler', .* got 'verlet'"):
        Simulation(robot, q=q, integrator="verlet")
