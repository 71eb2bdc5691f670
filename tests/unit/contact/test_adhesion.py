"""Adhesion: bodies that are pulled towards what they touch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Adhesion, Simulation
from coupler.contact.restitution import Restitution
from coupler.model import Actuator, Box, Free, ModelError, ModelWarning, Plane, Prismatic, Robot, RobotBuilder, Sphere

MASS, GRAVITY, STEP = 0.5, 9.81, 1e-3
WEIGHT = MASS * GRAVITY
STEPPERS = pytest.mark.parametrize("integrator", ["midpoint", "euler"])


def add_box(b: RobotBuilder, name: str, mass: float = MASS, size: float = 0.1) -> None:
    b.body(name, mass, (0, 0, 0), mass * size**2 / 6.0 * np.eye(3))
    b.joint(f"{name}_joint", Free(), "ground", name)
    b.shape(name, Box((size, size, size)), name=name)


def pad(outwards: tuple[float, float, float], friction: float = 0.5, **options: Any) -> Robot:
    """A box with a magnet below a ceiling, or beside a wall, with a normal that points to the box."""
    b = RobotBuilder("pad")
    add_box(b, "pad")
    turned = np.linalg.qr(np.column_stack([outwards, np.eye(3)]))[0][:, [1, 2, 0]]
    turned[:, 2] = outwards
    turned[:, 0] *= np.sign(np.linalg.det(turned))
    b.shape("ground", Plane(), -0.05 * np.array(outwards), turned, name="wall", friction=friction)
    b.actuator("magnet", Adhesion("pad"), **options)
    return b.build()


CEILING, WALL, FLOOR = (0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def start(robot: Robot) -> np.ndarray:
    return robot.neutral()


def steps(simulation: Simulation, count: int, force: float) -> None:
    for _ in range(count):
        simulation.step(motors=[force])
        assert simulation.status.solved


@STEPPERS
@pytest.mark.parametrize("factor", [1.001, 2.0, 50.0])
def test_a_pad_sticks_to_a_ceiling(factor: float, integrator: str) -> None:
    simulation = Simulation(pad(CEILING), STEP, integrator=integrator)
    steps(simulation, 300, factor * WEIGHT)
    np.testing.assert_allclose(simulation.q[:3], 0.0, atol=1e-9)
    np.testing.assert_allclose(simulation.motor_forces, factor * WEIGHT)
    pressing = simulation.contact_forces[:, 2].sum()
    assert pressing == pytest.approx(-(factor - 1.0) * WEIGHT, abs=1e-6 * WEIGHT)


@STEPPERS
def test_a_pad_that_pulls_less_than_its_weight_falls(integrator: str) -> None:
    """At first slowly; once it no longer touches, freely."""
    simulation = Simulation(pad(CEILING), STEP, integrator=integrator)
    steps(simulation, 1, 0.9 * WEIGHT)
    assert simulation.v[5] == pytest.approx(-0.1 * GRAVITY * STEP)
    np.testing.assert_allclose(simulation.motor_forces, 0.9 * WEIGHT)
    steps(simulation, 100, 0.9 * WEIGHT)
    assert simulation.motor_forces[0] == 0.0
    before = simulation.v[5]
    steps(simulation, 100, 0.9 * WEIGHT)
    assert simulation.v[5] - before == pytest.approx(-100 * GRAVITY * STEP)


@STEPPERS
def test_a_pad_on_a_wall_slides_if_friction_is_too_small(integrator: str) -> None:
    for factor in (1.01, 0.9):
        simulation = Simulation(pad(WALL, friction=0.5), STEP, integrator=integrator)
        steps(simulation, 300, factor * WEIGHT / 0.5)
        fallen = 0.5 * (1.0 - min(factor, 1.0)) * GRAVITY * 0.3**2
        assert simulation.q[2] == pytest.approx(-fallen, abs=2e-3 * (fallen > 0.0) + 1e-8)
        assert simulation.q[0] == pytest.approx(0.0, abs=1e-8)


def test_corners_share_the_force_equally() -> None:
    """On a floor, they carry the load as well; on a tilted one, the load differs, but not the pull."""
    simulation = Simulation(pad(FLOOR), STEP)
    steps(simulation, 100, 8.0)
    forces = simulation.contact_forces[:, 2]
    np.testing.assert_allclose(np.sort(forces)[-4:], (8.0 + WEIGHT) / 4, rtol=1e-6)


@STEPPERS
def test_there_is_no_force_without_contact(integrator: str) -> None:
    robot = pad(CEILING)
    q = start(robot)
    q[2] = -1e-3
    simulation = Simulation(robot, STEP, q=q, integrator=integrator)
    steps(simulation, 1, 1e3)
    assert simulation.motor_forces[0] == 0.0
    assert simulation.v[5] == pytest.approx(-GRAVITY * STEP)
    with pytest.warns(ModelWarning, match="can touch nothing"):
        alone = Simulation(robot, STEP, q=q, contacts=(), integrator=integrator)
    steps(alone, 1, 1e3)
    assert alone.motor_forces[0] == 0.0


def test_force_saturates_and_its_gear_counts() -> None:
    robot = pad(CEILING, effort=6.0, control=(0.0, 5.5))
    simulation = Simulation(robot, STEP)
    steps(simulation, 1, 100.0)
    assert simulation.motor_forces[0] == 5.5
    steps(simulation, 1, -3.0)
    assert simulation.motor_forces[0] == 0.0
    geared = robot.with_actuators([Actuator("magnet", Adhesion("pad", gear=20.0), control=(0, 1))])
    simulation = Simulation(geared, STEP)
    steps(simulation, 10, 2.0)
    assert simulation.motor_forces[0] == 1.0
    assert simulation.contact_forces[:, 2].sum() == pytest.approx(WEIGHT - 20.0)


def weightless(pull: Callable[[RobotBuilder], None]) -> Robot:
    b = RobotBuilder("two")
    for name, mass in (("left", 1.0), ("right", 0.3)):
        add_box(b, name, mass)
    pull(b)
    return b.build().with_gravity((0, 0, 0))


@STEPPERS
@pytest.mark.parametrize("both", [False, True])
def test_momentum_of_two_bodies_that_stick_is_kept(both: bool, integrator: str) -> None:
    """One drags the other along and turns it; the force is on both, whichever has the magnet."""

    def pull(b: RobotBuilder) -> None:
        b.actuator("magnet", Adhesion("left"))
        if both:
            b.actuator("other", Adhesion("right"))

    robot = weightless(pull)
    q, v = robot.neutral(), np.zeros(robot.nv)
    left, right = robot.q_slice("left_joint"), robot.q_slice("right_joint")
    q[right.start : right.start + 3] = 0.0, 0.0, 0.1
    v[robot.v_slice("left_joint")] = 0.1, 0.2, -0.1, 0.3, 0.1, 0.05
    simulation = Simulation(robot, STEP, q=q, v=v, friction=1.0, integrator=integrator)
    before = coupler.momentum(robot, simulation.q, simulation.v)
    controls = [50.0, 30.0] if both else [50.0]
    for _ in range(200):
        simulation.step(motors=controls)
        assert simulation.status.solved
    np.testing.assert_allclose(simulation.motor_forces, controls)
    assert np.linalg.norm(simulation.q[right][:3] - simulation.q[left][:3]) == pytest.approx(0.1, abs=2e-4)
    after = coupler.momentum(robot, simulation.q, simulation.v)
    np.testing.assert_allclose(after[3:], before[3:], atol=1e-9)
    np.testing.assert_allclose(after[:3], before[:3], atol=1e-4)


def gripper() -> Robot:
    """A slide with a pad, above a box on the floor."""
    b = RobotBuilder("gripper")
    b.body("hand", 1.0, (0, 0, 0), 0.01 * np.eye(3))
    b.joint("slide", Prismatic(axis=(0, 0, 1)), "ground", "hand", (0, 0, 0.25))
    b.shape("hand", Box((0.05, 0.05, 0.1)), name="hand")
    add_box(b, "box")
    b.actuator("lift", {"slide": 1.0}, "position", stiffness=3000.0, damping=100.0)
    b.actuator("magnet", Adhesion("hand", gear=2.0), effort=10.0)
    b.floor()
    return b.build()


@STEPPERS
def test_a_gripper_lifts_a_box_and_lets_it_go(integrator: str) -> None:
    robot = gripper()
    q = robot.neutral()
    q[robot.q_slice("slide")], q[robot.q_slice("box_joint").start + 2] = -0.1, 0.05
    simulation = Simulation(robot, STEP, q=q, integrator=integrator)
    box = robot.q_slice("box_joint").start + 2
    for i in range(1000):
        simulation.step(motors=[-0.1 + 0.15 * min(i / 500.0, 1.0), 7.5])
        assert simulation.status.solved
    assert simulation.motor_forces[1] == 7.5
    lifted = simulation.q[box]
    hand = simulation.q[robot.q_slice("slide")][0]
    assert lifted == pytest.approx(0.15 + hand, abs=1e-7)
    assert lifted > 0.19
    for _ in range(600):
        simulation.step(motors=[0.05, 0.0])
    assert simulation.q[box] == pytest.approx(0.05, abs=1e-6)


def test_rollouts_are_single_steps() -> None:
    robot = gripper()
    q = robot.neutral()
    q[robot.q_slice("slide")], q[robot.q_slice("box_joint").start + 2] = -0.1, 0.05
    rng, count = np.random.default_rng(0), 40
    motors = np.stack([rng.uniform(-0.11, 0.0, (3, count)), rng.uniform(0.0, 12.0, (3, count))], axis=-1)
    log = coupler.rollout(robot, q, np.zeros(robot.nv), motors=motors, step=STEP)
    for controls, states in zip(motors, log.q, strict=True):
        simulation = Simulation(robot, STEP, q=q)
        for control in controls:
            simulation.step(motors=control)
        np.testing.assert_allclose(simulation.q, states[-1], atol=1e-10)


@STEPPERS
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_a_ball_rolls_on_another_one(restitution: float, integrator: str) -> None:
    """Round shapes part to second order within a step, and are pulled back; the ball goes round the other one."""
    b = RobotBuilder("balls")
    b.body("ball", 0.2, (0, 0, 0), 2e-5 * np.eye(3))
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.02), name="ball", friction=1.0, restitution=restitution)
    b.shape("ground", Sphere(0.1), name="globe", friction=1.0)
    b.actuator("magnet", Adhesion("ball"))
    robot = b.build()
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[2], v[3] = 0.12, 0.3
    v[1] = 0.3 / 0.02
    simulation = Simulation(robot, STEP, q=q, v=v, integrator=integrator)
    lowest = 0.12
    for _ in range(1500):
        simulation.step(motors=[20.0])
        assert simulation.motor_forces[0] == 20.0
        lowest = min(lowest, float(simulation.q[2]))
    assert np.linalg.norm(simulation.q[:3]) == pytest.approx(0.12, abs=1e-5)
    assert lowest < -0.1


@STEPPERS
@pytest.mark.parametrize("restitution", [0.5, Restitution(0.5, in_place=True)])
def test_a_pad_that_bounces_sticks_in_the_end(restitution: Any, integrator: str) -> None:
    robot = pad(CEILING)
    v = np.zeros(robot.nv)
    q = start(robot)
    q[2], v[5] = -0.01, 1.0
    simulation = Simulation(robot, STEP, q=q, v=v, integrator=integrator, restitution=restitution)
    speeds = []
    for _ in range(300):
        simulation.step(motors=[10.0 * WEIGHT])
        speeds.append(simulation.v[5])
    assert min(speeds) < -0.1
    assert simulation.motor_forces[0] in (0.0, 10.0 * WEIGHT)


@STEPPERS
@pytest.mark.parametrize("restitution", [0.0, 0.5, Restitution(0.5, in_place=True)])
def test_work_of_a_pull_is_the_energy_that_it_takes(restitution: Any, integrator: str) -> None:
    """A pad that is pulled off its wall without gravity: the adhesion takes what it loses of kinetic energy."""
    robot = pad(WALL).with_gravity((0, 0, 0))
    v = np.zeros(robot.nv)
    v[3] = 0.02
    simulation = Simulation(robot, STEP, v=v, integrator=integrator, restitution=restitution)
    layout = simulation._engine.motor_layout
    for expected in (0.01, 0.01, 0.01):
        before = coupler.kinetic_energy(robot, simulation.q, simulation.v)
        simulation.step(motors=[5.0])
        assert simulation.v[3] == pytest.approx(expected)
        assert simulation._last_result is not None
        work = simulation._last_result[layout.places["motor_work"]]
        after = coupler.kinetic_energy(robot, simulation.q, simulation.v)
        assert work[0] == pytest.approx(after - before, abs=1e-12)


def test_what_contacts_decide_is_refused_elsewhere() -> None:
    robot, floating = gripper(), pad(CEILING)
    q, v = robot.neutral(), np.zeros(robot.nv)
    calls: list[Callable[[], Any]] = [
        lambda: coupler.actuator_positions(robot, q),
        lambda: coupler.actuator_velocities(robot, q, v),
        lambda: coupler.actuator_accelerations(robot, q, v, v),
        lambda: coupler.actuator_jacobian(robot, q),
        lambda: coupler.generalized_forces(robot, q, [1.0, 1.0]),
        lambda: coupler.actuator_forces(robot, q, v),
        lambda: coupler.motor_forces(robot, q, v, v),
        lambda: coupler.control_forces(robot, q, v, [0.0, 1.0]),
        lambda: coupler.forward_dynamics(robot, q, v, motors=[0.0, 1.0]),
        lambda: coupler.velocities_of_actuators(robot, q, [0.0, 0.0]),
        lambda: coupler.configuration_of_actuators(robot, [0.0, 0.0]),
    ]
    for call in calls:
        with pytest.raises(ModelError, match="adhesion 'magnet' acts where bodies touch"):
            call()
    for integrator in ("rk4", "trapezoid"):
        simulation = Simulation(floating, STEP, integrator=integrator)
        simulation.step()  # without motors, it does nothing
        with pytest.raises(ModelError, match=f"adhesion 'magnet' takes integrator=.*got '{integrator}'"):
            simulation.step(motors=[1.0])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kind": "position", "stiffness": 1.0}, "its kind must be"),
        ({"kind": "damper", "damping": 1.0}, "its kind must be"),
        ({"speed": 1.0}, "no velocity"),
        ({"effort": (-1.0, 2.0)}, "its effort must be at least zero"),
        ({"control": (-1.0, 2.0)}, "its control must be at least zero"),
    ],
)
def test_an_adhesion_only_pulls(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        Actuator("magnet", Adhesion("pad"), **options)


def test_an_adhesion_is_a_value() -> None:
    actuator = Actuator("magnet", Adhesion("pad", gear=3.0), effort=2.0)
    assert actuator.effort == (0.0, 2.0)
    assert actuator.control == (0.0, np.inf)
    assert repr(actuator.along) == "Adhesion('pad', gear=3.0)"
    assert actuator.along == Adhesion("pad", 3.0)
    assert actuator.along != Adhesion("pad")
    assert pickle.loads(pickle.dumps(actuator)) == actuator
    for gear in (0.0, -1.0):
        with pytest.raises(ModelError, match="its gear must be"):
            Adhesion("pad", gear)
    with pytest.raises(ModelError, match="there is no body 'foot'"):
        gripper().with_actuators([Actuator("magnet", Adhesion("foot"))])


def test_it_goes_along_with_its_robot(tmp_path: Path) -> None:
    """Attached under a prefix, and through files."""
    robot = gripper()
    b = RobotBuilder("scene")
    b.attach(robot, prefix="left/")
    assert b.build().actuators["left/magnet"].along == Adhesion("left/hand", 2.0)
    for suffix in (".urdf", ".sdf", ".xml"):
        saved = coupler.load(robot.save(tmp_path / f"saved{suffix}"))
        assert saved.actuators["magnet"].along == Adhesion("hand", 2.0)
        assert saved.actuators["magnet"].effort == (0.0, 10.0)
        simulation = Simulation(saved, STEP)
        simulation.step(motors=dict.fromkeys(saved.actuator_names, 0.0))
