"""Energy from nowhere in batches, and beside forces on bodies."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coupler
import pendulums
from coupler import Robot, RobotBuilder, Simulation, SimulationError
from coupler.contact.restitution import Restitution
from coupler.model import Actuator, Free, ModelError, ModelWarning, Revolute, Sphere, Spherical
from coupler.simulate.energy_watch import Ledger

pytestmark = pytest.mark.filterwarnings("ignore:.*can touch nothing")


def pendulum() -> Robot:
    b = RobotBuilder("pendulum")
    b.body("link", 1.0, (0, 0, -0.5), (0.02, 0.015, 0.01))
    b.joint("joint", Spherical(), "ground", "link")
    return b.build()


FAST, SLOW = [60.0, 3.0, 80.0], [0.6, 0.03, 0.8]


def test_of_a_batch_those_states_stop_that_gain_energy() -> None:
    """Euler's method explodes at 0.7 s where it turns fast; long before, that state stops, and the others go on."""
    robot = pendulum()
    q, v, controls = robot.neutral(), np.array([SLOW, FAST, SLOW]), np.zeros((400, 3))
    with pytest.warns(ModelWarning, match=r"1 of 3 states cannot go on, .* in state 1: .* that nobody put in"):
        found = coupler.rollout(robot, q, v, controls, integrator="euler")
    assert np.isinf(found.stops[[0, 2]]).all()
    simulation = Simulation(robot, q=q, v=FAST, integrator="euler")
    with pytest.raises(SimulationError) as stop:
        simulation.run(0.4)
    assert found.stops[1] == pytest.approx(stop.value.time, abs=1e-12)  # as a single one
    row = round(found.stops[1] / 1e-3)
    assert np.isnan(found.q[1, row:]).all() and np.isfinite(found.q[1, : row - 1]).all()
    assert np.isfinite(found.q[[0, 2]]).all()


def test_a_batch_may_warn_or_ignore_it() -> None:
    robot = pendulum()
    q, v, controls = robot.neutral(), np.array([[SLOW, FAST], [FAST, SLOW]]), np.zeros((300, 3))
    with pytest.warns(
        ModelWarning, match=r"2 of 4 states gain energy; the first in state \(0, 1\): robot 'pendulum' has"
    ):
        found = coupler.rollout(robot, q, v, controls, integrator="euler", on_energy_gain="warn")
    assert np.isfinite(found.q).all() and np.isinf(found.stops).all()
    other = coupler.rollout(robot, q, v, controls, integrator="euler", on_energy_gain="ignore")
    np.testing.assert_array_equal(other.q, found.q)
    with pytest.raises(ModelError, match=r"on_energy_gain must be one of 'stop', 'warn', 'ignore', got 'hope'"):
        coupler.rollout(robot, q, v, controls, on_energy_gain="hope")
    with pytest.raises(ModelError, match=r"after 0\.\d+ s in state 0: .* that nobody put in"):  # where all of them do
        coupler.rollout(robot, q, np.array([FAST, FAST]), controls, integrator="euler")


def test_work_of_motors_in_a_batch_is_not_from_nowhere() -> None:
    robot = coupler.robots.load("geared_chain", links=3)
    rng = np.random.default_rng(0)
    controls = 20.0 * rng.normal(size=(40, 50, robot.nv))
    found = coupler.rollout(robot, robot.neutral(), np.zeros((40, robot.nv)), controls, hold=4)
    assert np.isinf(found.stops).all()
    assert coupler.kinetic_energy(robot, found.q[:, -1], found.v[:, -1]).max() > 1.0


def two_links() -> Robot:
    b = RobotBuilder("links", (0.0, 0.0, 0.0))
    for name in ("one", "two"):
        b.body(name, 1.0, (0.1, 0, -0.2), (0.02, 0.03, 0.01))
    b.joint("free", Free(), "ground", "one")
    b.joint("hinge", Revolute(axis=(0, 1, 0)), "one", "two", at=(0, 0, -0.4))
    return b.build()


def test_work_of_forces_on_bodies_is_counted() -> None:
    """They push, turn and hold back, about the world's origin: what they do is what energy changes by."""
    robot = two_links()
    simulation = Simulation(robot, q=robot.neutral(), v=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    ledger, states = Ledger(simulation._engine), [simulation._state]
    before = sum(simulation._engine.energies(states[0]))
    rng = np.random.default_rng(2)
    for k in range(300):
        f_ext = np.array([[0.1, 0.2, -0.3, 4.0, -3.0, 2.0], [0.3, 0.1, 0.2, -1.0, 1.0, np.sin(0.05 * k)]])
        tau = np.append(np.zeros(6), 0.2 * rng.normal())
        simulation.step(tau, f_ext)
        assert simulation._last_result is not None
        ledger.add_work(states[-1], simulation._last_result, tau, f_ext)
        states.append(simulation._state)
    change = sum(simulation._engine.energies(states[-1])) - before
    assert abs(change) > 0.5
    assert float(ledger._work) == pytest.approx(float(change), rel=1e-3)


def test_a_push_does_not_stop_a_run_and_does_not_hide_energy_from_nowhere() -> None:
    robot = two_links()
    simulation = Simulation(robot)
    push = simulation.wrench("two", (30.0, 0.0, 10.0), at=(0.1, 0.0, 0.0))
    log = simulation.run(1.0, lambda t, q, v: (np.zeros(7), push if t < 0.5 else None))
    assert log.kinetic[-1] > 10.0
    robot = pendulum()
    simulation = Simulation(robot, v=FAST, integrator="euler")
    weak = np.array([[0.0, 0.0, 0.0, 1e-3, 0.0, 0.0]])
    with pytest.raises(SimulationError, match="that nobody put in"):
        simulation.run(0.6, lambda t, q, v: (np.zeros(3), weak))


def take(simulation: Simulation, steps: int) -> None:
    for _ in range(steps):
        simulation.step()


def test_steps_by_hand_are_watched_and_warn_once() -> None:
    """Long before numbers grow out of bounds; the warning names the joint, the time, and a step that would do."""
    simulation = Simulation(pendulum(), v=FAST, integrator="euler")
    told = []
    for _ in range(600):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulation.step()
        told += [(simulation.time, str(warning.message), warning.filename) for warning in caught]
    ((time, text, file),) = told
    assert time < 0.3
    assert f"J by {time:g} s that nobody put in" in text
    assert "joint 'joint' moves" in text and "steps of 0.0005 s may do" in text
    assert file == __file__
    simulation.reset()  # which begins anew
    with pytest.warns(ModelWarning, match="that nobody put in"):
        take(simulation, 300)


def test_slow_gains_by_hand_are_found_too() -> None:
    """Euler's method at a third of the speed gains for seconds what a run finds in the end, too."""
    robot, v = pendulum(), 0.3 * np.array(FAST)
    with pytest.raises(SimulationError, match="that nobody put in") as stop:
        Simulation(robot, v=v, integrator="euler").run(20.0)
    simulation = Simulation(robot, v=v, integrator="euler")
    with pytest.warns(ModelWarning, match="that nobody put in"):
        take(simulation, round((3.0 * stop.value.time + 1.0) / 1e-3))


@pytest.mark.parametrize("name", ["tau", "motors", "f_ext"])
def test_work_in_steps_by_hand_is_not_from_nowhere(name: str) -> None:
    """What motors, forces at joints or on bodies do is looked at one by one, and then seldom."""
    robot = two_links().with_actuators([Actuator("motor", "hinge")])
    simulation = Simulation(robot)
    push, highest = np.zeros((2, 6)), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(3000):
            strong = 0.3 * np.cos(1e-3 * k)
            push[1, 3:] = 5.0 * strong, 0.0, strong
            given = {"tau": np.append(np.zeros(6), strong), "motors": np.array([strong]), "f_ext": push}
            simulation.step(**{name: given[name]})
            highest = max(highest, float(coupler.kinetic_energy(robot, simulation.q, simulation.v)))
    assert highest > 0.5


def test_a_step_that_is_refused_names_the_fastest_joint_and_a_shorter_step() -> None:
    simulation = Simulation(pendulum(), v=FAST, integrator="euler")
    with (
        pytest.warns(ModelWarning, match="that nobody put in"),
        pytest.raises(ModelError, match=r"joint 'joint' is the fastest, with .*; much shorter steps, or weaker forces"),
    ):
        take(simulation, 1000)


def test_a_controller_that_is_too_stiff_for_a_step_is_told_of_servos_which_never_are() -> None:
    """A damper d at an inertia m makes an explicit step of h unstable from d h = 2 m on."""
    robot, damping = pendulums.pendulum(Revolute((0, 1, 0))), 3000.0
    told = "steps of .*, or servos of the robot in place of a stiff controller"
    with pytest.raises(ModelError, match=told):
        Simulation(robot, v=[0.1]).run(1.0, lambda t, q, v: -damping * v)
    with pytest.raises(ModelError, match=r"not possible: .* weaker forces, or servos of the robot"):
        Simulation(robot).step([1e308])
    servo = robot.with_actuators([Actuator("hold", "joint0", "position", stiffness=10.0 * damping, damping=damping)])
    held = Simulation(servo, v=[0.1])
    held.run(1.0, motors=coupler.actuator_positions(servo, held.q))
    assert abs(held.v[0]) < 1e-3
    with pytest.raises(ModelError, match="too long") as passive:
        Simulation(pendulum(), v=FAST, integrator="euler").run(1.0)
    assert "servos" not in str(passive.value)


def test_a_run_is_watched_by_its_own_watch_alone() -> None:
    simulation = Simulation(pendulum(), v=FAST, integrator="euler")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation.run(0.5, on_energy_gain="ignore")
    assert simulation._due > simulation._steps and np.isfinite(simulation._due)


def test_rebounds_in_place_give_back_energy_of_the_step_before() -> None:
    """A look may come between their two steps, in which a contact is stopped and then thrown back."""
    b = RobotBuilder("ball")
    b.floor()
    b.object("ball", Sphere(0.1), mass=1.0)
    robot, law = b.build(), Restitution(0.9, in_place=True)
    q = np.tile([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (12, 1))
    q[:, 2] = 0.102 + 1e-3 * np.arange(12)
    v = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, -1.0], (12, 1))
    found = coupler.rollout(robot, q, v, np.zeros((60, 6)), restitution=law)
    assert np.isinf(found.stops).all()
    for i in range(12):
        assert Simulation(robot, q=q[i], v=v[i], restitution=law).run(0.06).q[-1, 2] > 0.12
        take(Simulation(robot, q=q[i], v=v[i], restitution=law), 60)


def test_a_leap_of_energy_is_told_at_once() -> None:
    """A limp robot falls; its heel, moved by light rotors, hits the floor at 0.12 s, and goes wild in three steps."""
    robot = coupler.robots.load("tello_with_arms").with_floor()
    simulation = Simulation(robot, step=5e-3)
    with pytest.raises(SimulationError, match=r"has gained .* J by 0.12 s .* 'right-thigh-to-knee-ankle-rotor-2'"):
        simulation.run(0.3)
    assert np.abs(simulation.v).max() < 100.0
    by_hand = Simulation(robot, step=5e-3)
    with pytest.raises(ModelError, match=r"is not possible: .*; its energy has risen by .* J"):
        take(by_hand, 60)
    zero = np.zeros(robot.nv)
    starts, controls = np.stack([by_hand._first[: robot.nq]] * 2), np.zeros((60, robot.nv))
    with pytest.raises(ModelError, match="that nobody put in"):
        coupler.rollout(robot, starts, zero, controls, step=5e-3)
