"""Actuators in simulations: motors, servos within their limits, and speed limits, at the end of each step."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Simulation
from coupler.model import Actuator, Box, ModelError, Prismatic, Revolute, Robot, RobotBuilder
from effort import sweep


def arm(*actuators: Actuator, gravity: Any = (0.0, 0.0, -9.81), **hinge: Any) -> Robot:
    """Two links that swing in a plane."""
    b = RobotBuilder("arm", gravity)
    for name, parent, at, kind in (
        ("hinge", "ground", (0, 0, 0), Revolute(axis=(0, 1, 0), **hinge)),
        ("elbow", "upper", (0, 0, -1.0), Revolute(axis=(0, 1, 0))),
    ):
        body = "upper" if name == "hinge" else "lower"
        b.body(body, 1.0, (0, 0, -0.5), (0.1, 0.1, 0.02))
        b.joint(name, kind, parent, body, at)
    return b.build().with_actuators(actuators)


def servo(gears: Any, stiffness: float = 0.0, damping: float = 0.0, **limits: Any) -> Actuator:
    name = "+".join(gears) if isinstance(gears, dict) else gears
    kind = "position" if stiffness else "velocity"
    return Actuator(name, gears, kind, stiffness=stiffness, damping=damping, **limits)


def after_euler(robot: Robot, q: Any, v: Any, h: float, controls: Any) -> tuple[np.ndarray, np.ndarray]:
    """v⁺ and forces of a step of Euler's method: all ways in which actuators are saturated or not are tried.

    H (v⁺ − v) = h (Aᵀ f − c), where f is at a limit, or F − D A v⁺ between them.
    """
    A, H, c = coupler.actuator_jacobian(robot, q), coupler.mass_matrix(robot, q), coupler.bias_force(robot, q, v)
    u, found = coupler.actuator_positions(robot, q), []
    aims, gains, limits = [], [], []
    for actuator, at, control in zip(robot.actuators, u, controls, strict=True):
        position = actuator.kind == "position"
        aims.append(actuator.stiffness * (control - at) if position else actuator.damping * control)
        gains.append(actuator.damping * (control if actuator.kind == "damper" else 1.0) + h * actuator.stiffness)
        aims[-1] = 0.0 if actuator.kind == "damper" else aims[-1]
        limits.append(actuator.effort)
        if not actuator.servo:
            limits[-1] = (force := float(np.clip(control, *actuator.effort)), force)
    for sides in product((-1, 0, 1), repeat=len(aims)):
        free = np.array([side == 0 for side in sides])
        fixed = np.array(
            [{-1: low, 0: aim, 1: high}[s] for s, aim, (low, high) in zip(sides, aims, limits, strict=True)]
        )
        if not np.isfinite(fixed).all():
            continue
        D = np.where(free, gains, 0.0)
        v_next = np.linalg.solve(H + h * A.T @ (D[:, None] * A), H @ v + h * (A.T @ fixed - c))
        force, wanted = fixed - D * (A @ v_next), np.array(aims) - np.array(gains) * (A @ v_next)
        low, high = np.array(limits).T
        side = np.array(sides)
        right = (force >= low - 1e-9) & (force <= high + 1e-9)
        right &= (side <= 0) | (wanted >= high - 1e-9) | (low == high)
        right &= (side >= 0) | (wanted <= low + 1e-9) | (low == high)
        if right.all():
            found.append((v_next, force))
    assert found
    return found[0]


@pytest.mark.parametrize(
    ("name", "gain"),
    sweep(
        product(["geared_chain", "four_bar", "six_bar", "mini_cheetah", "tello"], [0.1, 10.0, 1e5]),
        [("geared_chain", 10.0), ("six_bar", 1e5), ("mini_cheetah", 0.1)],
    ),
)
def test_a_step_of_limited_servos_is_that_of_the_right_ones_at_their_limits(name: str, gain: float) -> None:
    robot, rng = coupler.robots.load(name).with_gravity((0, 0, 0)), np.random.default_rng(0)
    joints = [joint.name for joint in robot.joints if joint.kind.nv == 1]
    chosen = [list(rng.choice(joints, 1 + k % 2, replace=False)) for k in range(4)]
    robot = robot.with_actuators(
        Actuator(
            f"a{k}",
            {joint: float(rng.uniform(0.5, 3.0)) for joint in own},
            ("position", "velocity", "position", "damper")[k],
            stiffness=(10.0 * gain, 0.0, gain, 0.0)[k],
            damping=(0.1 * gain, gain, 0.0, gain)[k],
            effort=((-2.0, 3.0), (-np.inf, 3.0), 1.0, 1.0)[k],
        )
        for k, own in enumerate(chosen)
    )
    for seed in range(4):
        q, v = robot.random_state(seed)
        v = v if all(robot.embedding.explicit) else 0.0 * v  # in loops, a step goes on along their tangents
        controls = coupler.actuator_positions(robot, q) + rng.normal(size=4) * (0.3 if gain < 1e3 else 1e-3)
        controls[3] = rng.uniform(0.0, 2.0)
        simulation = Simulation(robot, 1e-3, q=q, v=v, integrator="euler", contacts=[], limits=False)
        simulation.step(motors=controls)
        v_next, forces = after_euler(robot, q, v, 1e-3, controls)
        assert simulation.motor_forces == pytest.approx(forces, abs=1e-7)
        if name == "geared_chain":  # else velocities turn on with a base, or fit loops where they end
            assert simulation.v == pytest.approx(v_next, abs=1e-9)


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
@pytest.mark.parametrize("limit", [np.inf, 1e6])
def test_a_servo_is_a_spring_and_a_damper(integrator: str, limit: float) -> None:
    k, d, gear, target = 40.0, 2.0, 3.0, 0.5
    passive = arm(stiffness=k * gear**2, damping=d * gear**2, rest=target / gear)
    driven = arm(servo({"hinge": gear}, k, d, effort=limit))
    ends = []
    for robot, motors in ((passive, None), (driven, [target])):
        simulation = Simulation(robot, 1e-3, q=[0.1, 0.3], v=[1.0, -1.0], integrator=integrator)
        for _ in range(300):
            simulation.step(motors=motors)
        ends.append(np.concatenate([simulation.q, simulation.v]))
    exact = limit == np.inf or integrator == "euler"  # what a row will do is not known exactly beforehand
    assert ends[0] == pytest.approx(ends[1], abs=1e-10 if exact else 1e-5)


@pytest.mark.parametrize("integrator", sweep(["midpoint", "euler", "trapezoid", "rk4"], ["midpoint", "rk4"]))
def test_motion_is_that_of_tiny_steps(integrator: str) -> None:
    """Runge and Kutta's method on the laws as they are written, a hundred times finer."""
    robot = arm(
        servo({"hinge": 2.0}, 30.0, 1.0, effort=(-2.0, 4.0)),
        servo({"elbow": 1.0, "hinge": -0.5}, damping=2.0, effort=1.5),
    )
    targets, x = np.array([1.0, 0.8]), np.array([0.4, 0.2, 0.0, 0.0])

    def rate(x: np.ndarray) -> np.ndarray:
        q, v = x[:2], x[2:]
        u, w = coupler.actuator_positions(robot, q), coupler.actuator_velocities(robot, q, v)
        forces = [np.clip(30.0 * (1.0 - u[0]) - w[0], -2.0, 4.0), np.clip(2.0 * (0.8 - w[1]), -1.5, 1.5)]
        return np.concatenate([v, coupler.forward_dynamics(robot, q, v, coupler.generalized_forces(robot, q, forces))])

    for _ in range(1000):
        h = 1e-3
        k1 = rate(x)
        k2 = rate(x + h / 2 * k1)
        k3 = rate(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + h * k3))
    errors = []
    for h in (2e-4, 1e-4):
        simulation = Simulation(robot, h, q=[0.4, 0.2], integrator=integrator)
        for _ in range(round(1.0 / h)):
            simulation.step(motors=targets)
        errors.append(np.abs(np.concatenate([simulation.q, simulation.v]) - x).max())
    assert errors[1] < (2e-3 if integrator in ("midpoint", "euler") else 1e-5)
    assert errors[1] < 0.6 * errors[0] + 1e-6  # by which the reference itself may be away


@pytest.mark.parametrize("integrator", ["midpoint", "euler"])
@pytest.mark.parametrize("effort", [np.inf, 1e4])
def test_stiff_servos_hold(integrator: str, effort: float) -> None:
    """Gains at which an explicit servo would blow up at once: d h / m = 1e5."""
    robot = arm(servo("hinge", 1e8, 1e7, effort=effort), servo({"elbow": 50.0}, 1e5, 1e3, effort=effort))
    simulation = Simulation(robot, 1e-2, q=[0.3, 0.2], v=[1.0, -2.0], integrator=integrator)
    simulation.run(2.0, motors=[0.3, 10.0])
    assert simulation.q == pytest.approx([0.3, 0.2], abs=2e-3)
    assert np.abs(simulation.v).max() < 1e-3
    assert simulation.status.solved


def test_forces_stay_within_their_limits_and_reach_them() -> None:
    robot = arm(servo("hinge", 100.0, 5.0, effort=(-3.0, 2.0)), servo("elbow", damping=50.0, effort=1.0))
    simulation, told = Simulation(robot, 1e-3), []
    for _ in range(2000):
        simulation.step(motors=[1.0 if simulation.time < 1.0 else -1.0, 0.2])
        told.append(simulation.motor_forces)
    assert np.max(told, axis=0) == pytest.approx([2.0, 1.0], abs=1e-9)
    assert np.min(told, axis=0)[0] == pytest.approx(-3.0, abs=1e-9)
    assert np.min(told, axis=0)[1] > -1.0


@pytest.mark.parametrize("integrator", sweep(["midpoint", "euler", "trapezoid", "rk4"], ["midpoint", "rk4"]))
@pytest.mark.parametrize(("gear", "inertia"), [(1.0, 0.1), (-4.0, 0.1), (1.0, 1e-4)])  # the last within a step
def test_a_motor_drives_up_to_its_speed_limit_and_no_further(integrator: str, gear: float, inertia: float) -> None:
    motor = Actuator("motor", {"hinge": gear}, effort=5.0, speed=3.0)
    b = RobotBuilder("wheel")
    b.body("wheel", 1.0, (0, 0, 0), (inertia, inertia, inertia))
    b.joint("hinge", Revolute(axis=(0, 1, 0)), "ground", "wheel")
    robot = b.build().with_actuators([motor])
    simulation, fastest = Simulation(robot, 1e-3, integrator=integrator), 0.0
    for _ in range(3000):
        simulation.step(motors=[50.0])
        fastest = max(fastest, float(coupler.actuator_velocities(robot, simulation.q, simulation.v)[0]))
    assert fastest == pytest.approx(3.0, abs=1e-6)
    assert 0.0 <= simulation.motor_forces[0] <= 5.0
    fast = Simulation(robot, 1e-3, v=[8.0 / gear], integrator=integrator)  # which something else has driven
    before = coupler.kinetic_energy(robot, fast.q, fast.v)
    for _ in range(10):
        fast.step(motors=[5.0])
        assert fast.motor_forces[0] == pytest.approx(0.0, abs=1e-9)
    assert coupler.kinetic_energy(robot, fast.q, fast.v) == pytest.approx(before, rel=1e-2)
    fast.step(motors=[-0.01 if inertia < 0.1 else -5.0])
    assert fast.motor_forces[0] == pytest.approx(-0.01 if inertia < 0.1 else -5.0, abs=1e-9)


@pytest.mark.parametrize("integrator", ["midpoint", "trapezoid", "rk4"])
def test_a_servo_keeps_its_speed_limit(integrator: str) -> None:
    for effort in (4.0, np.inf):
        robot = arm(servo("hinge", 20.0, 1.0, effort=effort, speed=0.5), gravity=(0, 0, 0))
        simulation, speeds = Simulation(robot, 1e-3, integrator=integrator), []
        for _ in range(4000):
            simulation.step(motors=[1.0])
            speeds.append(simulation.v[0])
        assert max(speeds) == pytest.approx(0.5, abs=1e-2)
        assert simulation.q[0] == pytest.approx(1.0, abs=2e-2)


def test_speed_limits_in_stages_are_those_of_tiny_steps() -> None:
    """Of a piston; where no limit is near, motors of explicit steps move as if there was none, to the bit."""
    robot = coupler.robots.load("slider_crank").with_gravity((0, 0, -1))
    q = robot.pack_q({"shaft": 1.0})

    def ended(speed: float, integrator: str, step: float) -> np.ndarray:
        simulation = Simulation(
            robot.with_actuators([Actuator("piston", "slide", speed=speed)]), step, q=q, integrator=integrator
        )
        for _ in range(round(0.2 / step)):
            simulation.step(motors=[-3.0])
        return np.concatenate([simulation.q, simulation.v])

    exact, free = ended(0.1, "midpoint", 5e-5), ended(np.inf, "rk4", 1e-3)
    assert np.abs(exact - free).max() > 1.0
    for integrator in ("rk4", "trapezoid"):
        assert ended(0.1, integrator, 1e-3) == pytest.approx(exact, abs=1e-4)
    np.testing.assert_array_equal(ended(10.0, "rk4", 1e-3), free)


def test_loops_are_driven_at_dependent_joints_and_through_dead_points() -> None:
    robot = coupler.robots.load("slider_crank")
    crank = next(joint for joint in robot.joint_names if "crank" in joint)
    slider = next(joint for joint in robot.joint_names if "slid" in joint)
    q = robot.pack_q({crank: 1.0})
    robot = robot.with_actuators([Actuator("piston", slider, effort=7.0), Actuator("crank", crank)])
    f = np.array([5.0, 0.3])
    tau = coupler.generalized_forces(robot, q, f)
    ends = []
    for given in ({"tau": tau}, {"motors": f}):
        simulation = Simulation(robot, 1e-4, q=q, integrator="euler")
        simulation.step(**given)
        ends.append(simulation.v)
    assert ends[0] == pytest.approx(ends[1], abs=1e-12)
    turning = robot.with_actuators([Actuator("crank", crank, "velocity", damping=5.0, effort=100.0)])
    simulation = Simulation(turning, 1e-3, q=q)
    simulation.run(3.0, motors=[4.0])
    assert robot.joint_velocities(simulation.q, simulation.v)[crank] == pytest.approx(4.0, rel=0.3)


@pytest.mark.parametrize("effort", sweep([np.inf, 40.0], [40.0]))
def test_a_robot_stands_on_its_servos(effort: float) -> None:
    robot = coupler.robots.load("mini_cheetah").with_floor(friction=0.8)
    angles = {"abad": 0.0, "hip": -0.8, "knee": 1.6}
    pose = {joint: angles[joint.split("_")[1]] for joint in robot.actuator_names}
    servos = [
        Actuator(motor.name, motor.gears, "position", stiffness=100.0, damping=3.0, effort=effort)
        for motor in robot.actuators
    ]
    robot = robot.with_actuators(servos)
    q = robot.pack_q({"floating_base": [0, 0, 0.4, 1, 0, 0, 0], **pose})
    simulation = Simulation(robot, 2e-3, q=q, contacts="*floor*")
    simulation.run(1.0, motors=pose)
    assert simulation.q[2] > 0.2
    assert np.abs(simulation.v).max() < 0.05
    assert simulation.status.solved
    assert simulation.status.contacts >= 3


def test_contacts_count_when_it_is_decided_who_saturates() -> None:
    """A servo presses a box down with what it has, and the floor takes it."""
    b = RobotBuilder("press", (0.0, 0.0, 0.0))
    b.body("ram", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(axis=(0, 0, 1)), "ground", "ram", (0, 0, 0.1))
    b.shape("ram", Box((0.1, 0.1, 0.1)))
    b.floor()
    b.actuator("servo", "slide", "position", stiffness=1e4, damping=1e2, effort=50.0)
    simulation = Simulation(b.build(), 1e-3)
    for target, force in ((-0.051, 10.0), (-0.1, 50.0), (-0.05, 0.0)):
        for _ in range(600):
            simulation.step(motors=[target])
        assert -simulation.motor_forces[0] == pytest.approx(force, abs=0.2)
        assert simulation.contact_forces[:, 2].sum() == pytest.approx(force, abs=0.2)


def test_targets_that_move_and_controls_out_of_range() -> None:
    robot = arm(
        servo("hinge", 1e3, 1e2, effort=1e3), Actuator("elbow", "elbow", control=(-0.5, 0.5)), gravity=(0, 0, 0)
    )
    simulation = Simulation(robot, 1e-3, v=[1.0, 0.0])
    log = simulation.run(1.0, motors=lambda t, q, v: ([t + 1e-3, 0.0], [1.0, 0.0]))
    assert log.q[-1][0] == pytest.approx(1.0, abs=1e-3)
    by_name = {"hinge": 1.0, "elbow": 0.0}, {"hinge": 0.0, "elbow": 0.0}
    simulation.run(2.0, motors=lambda t, q, v: by_name)
    assert simulation.v[0] == pytest.approx(0.0, abs=1e-3)
    simulation.step(motors=[1.0, 9.0])
    assert simulation.motor_forces[1] == 0.5


def test_logs_tell_what_actuators_do_at_independent_joints() -> None:
    robot = arm(servo({"hinge": 2.0}, 20.0, 1.0, effort=3.0), Actuator("elbow", {"elbow": 3.0, "hinge": 1.0}))
    simulation = Simulation(robot, q=[0.2, 0.1])
    log = simulation.run(0.02, lambda t, q, v: [0.5, 0.0], motors=[1.0, -0.1])
    last = coupler.generalized_forces(robot, log.q[-2], simulation.motor_forces) + np.array([0.5, 0.0])
    assert log.tau[-2] == pytest.approx(last, abs=1e-12)
    assert log.tau[0] == pytest.approx([0.5 + 2.0 * 3.0 - 0.1, -0.3], abs=1e-9)


def test_rollouts_take_motors() -> None:
    robot = arm(servo("hinge", 30.0, 2.0, effort=3.0), Actuator("elbow", "elbow", effort=1.0, speed=2.0))
    rng = np.random.default_rng(0)
    q0, targets = rng.normal(size=(3, 2)), rng.normal(size=(3, 50, 2))
    result = coupler.rollout(robot, q0, np.zeros(2), motors=targets, rates=0.1 * targets, hold=2)
    for i in range(3):
        simulation = Simulation(robot, q=q0[i])
        for target in np.repeat(targets[i], 2, axis=0):
            simulation.step(motors=target, rates=0.1 * target)
        assert result.q[i, -1] == pytest.approx(simulation.q, abs=1e-12)
    both = coupler.rollout(robot, q0, np.zeros(2), np.zeros((50, 2)), motors=targets[0])
    assert both.q.shape == (3, 51, 2)
    with pytest.raises(ModelError, match=r"motors must have the shape \(..., T, 2\)"):
        coupler.rollout(robot, q0, np.zeros(2), motors=np.zeros((50, 3)))
    with pytest.raises(ModelError, match="give motors as well"):
        coupler.rollout(robot, q0, np.zeros(2), np.zeros((50, 2)), rates=np.zeros((50, 2)))
    with pytest.raises(ModelError, match="controls are 3 in a row"):
        coupler.rollout(robot, q0, np.zeros(2), np.zeros((3, 2)), motors=targets)


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
def test_steps_of_several_stages_take_motors(integrator: str) -> None:
    robot = arm(Actuator("hinge", {"hinge": 2.0}, effort=1.5))
    ends = []
    for given in ({"tau": [3.0, 0.0]}, {"motors": [9.0]}):
        simulation = Simulation(robot, 1e-2, q=[0.3, 0.0], integrator=integrator)
        for _ in range(50):
            simulation.step(**given)
        ends.append(simulation.q)
    assert ends[0] == pytest.approx(ends[1], abs=1e-12)


SERVOS = {
    "tree": lambda: arm(
        servo({"hinge": 2.0}, 30.0, 1.0), servo({"elbow": 1.0, "hinge": -0.5}, damping=2.0), Actuator("m", "elbow")
    ),
    "damper": lambda: arm(Actuator("brake", "elbow", "damper", damping=3.0), servo("hinge", 20.0)),
    "six_bar": lambda: driven("six_bar"),  # closed by iteration
    "tello": lambda: driven("tello"),  # floats
}


def driven(name: str) -> Robot:
    """A bundled robot whose motors are servos, about as stiff as what they move is heavy."""
    robot = coupler.robots.load(name).with_gravity((0, 0, 0))
    A = coupler.actuator_jacobian(robot, robot.neutral())
    ease = np.sum(A * coupler.mass_matrix_solve(robot, robot.neutral(), A), axis=1)
    pairs = enumerate(zip(robot.actuators, ease, strict=True))
    return robot.with_actuators(
        motor.position_servo(400.0 / own, 20.0 / own) if i % 2 else motor.velocity_servo(20.0 / own)
        for i, (motor, own) in pairs
    )


@pytest.mark.filterwarnings("ignore:.*can touch nothing")
@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("trapezoid", 2)])
@pytest.mark.parametrize("case", SERVOS)
def test_servos_in_steps_of_several_stages_have_their_order(case: str, integrator: str, order: int) -> None:
    robot = SERVOS[case]()
    q, count = robot.neutral(), len(robot.actuators)
    kinds = [actuator.kind for actuator in robot.actuators]
    controls = np.where(np.array(kinds) == "position", coupler.actuator_positions(robot, q) + 0.05, 0.3)
    rates = np.linspace(0.0, 0.1, count)
    ends = []
    for steps in (40, 80, 640):
        simulation = Simulation(robot, 0.1 / steps, q=q, integrator=integrator, contacts=[], limits=False)
        for _ in range(steps):
            simulation.step(motors=controls, rates=rates if "position" in kinds else None)
        ends.append(np.concatenate([simulation.q, simulation.v]))
    errors = [np.abs(end - ends[-1]).max() for end in ends[:2]]
    assert errors[0] < 1e-2
    assert errors[1] < 1.3 * errors[0] / 2**order + 1e-12


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
def test_forces_of_servos_in_stages_are_those_of_the_laws(integrator: str) -> None:
    """What is told is the mean over the step, and keeps within limits; in short steps, it is `control_forces`."""
    robot = arm(servo({"hinge": 2.0}, 30.0, 1.0, effort=(-2.0, 4.0)), servo("elbow", 8.0, 0.1))
    simulation = Simulation(robot, 1e-5, q=[0.4, 0.2], v=[0.1, -0.3], integrator=integrator)
    wanted = coupler.control_forces(robot, simulation.q, simulation.v, [3.0, 0.5])
    simulation.step(motors=[3.0, 0.5])
    assert wanted[0] == 4.0
    assert simulation.motor_forces == pytest.approx(wanted, abs=1e-3)
    simulation = Simulation(robot, 1e-3, q=[0.4, 0.2], integrator=integrator)
    simulation.run(1.0, motors=[0.8, 2.0])  # the work that it watches is that of the servos


@pytest.mark.parametrize("integrator", ["rk4", "trapezoid"])
def test_servos_too_strong_for_explicit_steps_are_refused(integrator: str) -> None:
    robot = arm(servo("hinge", 1e6, 1e4))
    simulation = Simulation(robot, 1e-2, integrator=integrator)
    simulation.step()  # as long as they do not act
    with pytest.raises(ModelError, match=r"servos, springs and dampers about joint 'elbow' are too strong.*midpoint"):
        simulation.step(motors=[0.0])
    with pytest.raises(ModelError, match="are too strong"):
        coupler.rollout(robot, robot.neutral(), np.zeros(2), step=1e-2, motors=np.zeros((3, 1)), integrator=integrator)
    weaker = robot.with_parameters({"servo_stiffness:hinge": 10.0, "servo_damping:hinge": 0.5})
    Simulation(weaker, 1e-2, integrator=integrator).step(motors=[0.0])


def test_mistakes_in_controls_are_told() -> None:
    robot = arm(servo("hinge", 10.0, 1.0), Actuator("elbow", "elbow"))
    simulation = Simulation(robot)
    for motors, message in (
        ([1.0], "motors must be 2 finite numbers"),
        (np.array([1.0]), "motors must be 2 finite numbers"),
        (np.array([np.nan, 0.0]), "motors must be 2 finite numbers"),
        ({"hinge": 1.0}, "no value is given for actuator 'elbow'"),
        ({"hinge": 1.0, "elbow": 0.0, "wrist": 0.0}, "no actuator 'wrist'"),
    ):
        with pytest.raises(ModelError, match=message):
            simulation.step(motors=motors)
    with pytest.raises(ModelError, match="give motors as well"):
        simulation.step(rates=[0.0, 0.0])
    simulation.step(motors={"elbow": 1.0, "hinge": 0.5})
    assert simulation.motor_forces == pytest.approx([5.0, 1.0], abs=0.1)
    idle = Simulation(arm())
    with pytest.raises(ModelError, match="has no actuators"):
        idle.step(motors=[])
    motors = Simulation(arm(Actuator("elbow", "elbow")))
    with pytest.raises(ModelError, match="no position servo"):
        motors.step(motors=[1.0], rates=[0.0])


def test_a_robot_without_use_of_actuators_has_the_same_program() -> None:
    from coupler.contact.scene import ContactScene
    from coupler.contact.step.program import contact_step_program

    scene = ContactScene((), 1e-3, integrator="midpoint")
    texts = [str(contact_step_program(robot, scene)) for robot in (arm(), arm(servo("hinge", 1.0, 1.0, effort=2.0)))]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("kind", "control", "gains", "force"),
    [
        ("position", 1.0, {"stiffness": 50.0, "damping": 100.0, "effort": 60.0, "speed": 0.3}, -60.0),  # it brakes
        ("velocity", 5.0, {"damping": 10.0, "speed": 1.0}, 0.0),  # it would drive
        ("motor", 5.0, {"speed": 1.0}, 0.0),
        ("motor", -5.0, {"speed": 1.0}, -5.0),
    ],
)
def test_beyond_its_speed_limit_an_actuator_brakes_and_does_not_drive(
    kind: str, control: float, gains: dict[str, float], force: float
) -> None:
    b = RobotBuilder("wheel", gravity=(0, 0, 0))
    b.body("wheel", 1.0, inertia=(10, 10, 10))
    b.joint("axle", Revolute(axis=(0, 1, 0)), "ground", "wheel")
    b.actuator("drive", "axle", kind, **gains)
    for integrator in ("midpoint", "rk4"):
        simulation = coupler.Simulation(b.build(), 1e-3, v=[3.0], integrator=integrator)
        simulation.step(motors=[control])
        assert simulation.motor_forces == pytest.approx([force], abs=1e-6)


def test_a_speed_limit_holds_where_a_robot_is_light() -> None:
    b = RobotBuilder("turret", gravity=(0, 0, 0))
    b.body("hub", 0.01, inertia=(1e-4, 1e-4, 1e-4))
    b.body("weight", 1.0, (1, 0, 0), (1e-4, 1e-4, 1e-4))
    b.joint("turn", Revolute(axis=(0, 0, 1)), "ground", "hub")
    b.joint("slide", Prismatic(axis=(1, 0, 0)), "hub", "weight")
    b.actuator("drive", "turn", speed=1.0)
    for integrator, near in (("midpoint", 1e-6), ("rk4", 1e-2)):
        where = [0, -0.95]  # the weight is next to the axis
        simulation = coupler.Simulation(b.build(), 1e-3, q=where, integrator=integrator)
        simulation.step(motors=[100.0])
        assert simulation.v[0] == pytest.approx(1.0, abs=near)


def test_a_servo_within_its_limits_moves_like_one_without() -> None:
    """Also after a while in which it was at them, and in lanes."""
    cheetah = coupler.robots.load("mini_cheetah").with_floor(friction=0.8)
    free = [motor.position_servo(60.0, 2.0) for motor in cheetah.actuators]
    u = np.array([{"abad": 0.0, "hip": -0.8, "knee": 1.6}[name.split("_")[1]] for name in cheetah.actuator_names])
    q = cheetah.pack_q({"floating_base": [0, 0, 0.3, 1, 0, 0, 0], **dict(zip(cheetah.actuator_names, u, strict=True))})
    robots = [cheetah.with_actuators([replace(own, effort=effort) for own in free]) for effort in (np.inf, 500.0, 4.0)]
    unlimited, wide, narrow = (Simulation(robot, 2e-3, q=q, contacts="*foot*") for robot in robots)
    targets, most = np.tile(u, (3, 150, 1)), 0.0
    targets[:, 50:100] *= np.array([1.3, 0.7, 1.0])[:, None, None]
    for target in targets[0]:
        for simulation in (unlimited, wide, narrow):
            simulation.step(motors=target)
        most = max(most, float(np.abs(unlimited.motor_forces).max()))
        np.testing.assert_array_equal(wide.q, unlimited.q)
        np.testing.assert_array_equal(wide.motor_forces, unlimited.motor_forces)
        assert np.abs(narrow.motor_forces).max() <= 4.0 + 1e-9
    assert 4.0 < most < 500.0
    states = coupler.rollout(robots[2], q, np.zeros(cheetah.nv), step=2e-3, motors=targets, contacts="*foot*")
    np.testing.assert_array_equal(states.q[0, -1], narrow.q)


def test_a_servo_of_a_dependent_joint_tells_what_it_does() -> None:
    """Its damper feels how loops turn the joint, too: the watch of energy, which counts its work, finds no gain."""
    robot = coupler.robots.load("slider_crank")
    robot = robot.with_actuators([Actuator("pin", "crank_pin", "velocity", damping=5.0)])
    simulation = Simulation(robot, 1e-3, q=robot.pack_q({"crank_pin": 1.0}))
    simulation.run(1.0, motors=[4.0])
    assert robot.joint_velocities(simulation.q, simulation.v)["crank_pin"] == pytest.approx(4.0, rel=0.3)


def test_motors_of_a_joint_keep_its_effort_limit_together() -> None:
    """As MuJoCo's actuatorfrcrange: the sum of forces at a joint is limited, and not each of them."""
    motors = Actuator("push", {"hinge": 2.0}), Actuator("pull", "hinge", effort=9.0), Actuator("elbow", "elbow")
    robot = arm(*motors, effort_limit=5.0)
    assert robot.actuators[0].effort == (-np.inf, np.inf)
    assert robot.with_actuators(robot.actuators).actuators == robot.actuators
    for controls, forces in (
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        ([7.0, -20.0, 3.0], [7.0, -9.0, 3.0]),  # together they are at the limit
        ([6.0, 8.0, -1.0], [1.5, 2.0, -1.0]),
        ([-10.0, 0.0, 0.0], [-2.5, 0.0, 0.0]),
    ):
        assert coupler.control_forces(robot, [0.1, 0.2], [0.0, 0.0], controls) == pytest.approx(forces, abs=1e-12)
        for integrator in ("euler", "midpoint", "rk4"):
            ends = []
            for given in ({"motors": controls}, {"tau": [2.0 * forces[0] + forces[1], forces[2]]}):
                simulation = Simulation(robot, 1e-2, q=[0.1, 0.2], integrator=integrator)
                for _ in range(10):
                    simulation.step(**given)
                ends.append(simulation.q)
                if "motors" in given:
                    assert simulation.motor_forces == pytest.approx(forces, abs=1e-12)
            assert ends[0] == pytest.approx(ends[1], abs=1e-12)
    fast = arm(replace(motors[0], speed=1.0), motors[1], effort_limit=5.0, gravity=(0, 0, 0))
    simulation = Simulation(fast, 1e-2)
    simulation.run(1.0, motors=[6.0, 8.0])
    assert simulation.motor_forces[1] <= 2.0 + 1e-9
    assert simulation.status.residual < 1e-6


SHARING: dict[str, tuple[list[Actuator], list[float]]] = {  # actuators of a hinge, and controls
    "position and velocity": (
        [servo({"hinge": 2.0}, 30.0), replace(servo("hinge", damping=3.0), name="v")],
        [3.0, 2.0],
    ),
    "motor and servo": ([servo("hinge", 20.0, 1.0), Actuator("m", {"hinge": -1.5}, effort=9.0)], [1.0, 4.0]),
    "motor and damper": ([Actuator("m", "hinge"), Actuator("d", {"hinge": 2.0}, "damper", damping=0.5)], [-8.0, 1.0]),
    "within the limit": ([servo("hinge", 2.0), replace(servo({"hinge": -1.0}, damping=0.2), name="v")], [0.3, 0.1]),
}


@pytest.mark.parametrize("integrator", ["euler", "midpoint", "rk4"])
@pytest.mark.parametrize("case", SHARING)
def test_servos_of_a_joint_keep_its_effort_limit_together(case: str, integrator: str) -> None:
    """They move it like their sum, cut at the limit, in tiny steps; of `control_forces`, too."""
    actuators, controls = SHARING[case]
    robot = arm(*actuators, effort_limit=5.0, gravity=(0, 0, 0))
    gears = np.array([own.gears["hinge"] for own in robot.actuators])
    assert robot.actuators == tuple(actuators)
    assert "not their sum" not in str(robot)
    alone = [arm(own) for own in actuators]

    def total(q: np.ndarray, v: np.ndarray) -> float:
        given = zip(alone, controls, strict=True)
        forces = [coupler.control_forces(own, q, v, [control])[0] for own, control in given]
        return float(np.clip(gears @ forces, -5.0, 5.0))

    passive, q, v = arm(gravity=(0, 0, 0)), np.array([0.3, 0.2]), np.array([0.4, -0.1])
    tiny, sums = Simulation(passive, 1e-4, q=q, v=v), []
    for _ in range(1000):
        tiny.step([total(tiny.q, tiny.v), 0.0])
    simulation = Simulation(robot, 1e-3, q=q, v=v, integrator=integrator)
    for _ in range(100):
        sums.append(total(simulation.q, simulation.v))
        told = coupler.control_forces(robot, simulation.q, simulation.v, controls)
        assert gears @ told == pytest.approx(sums[-1], abs=1e-12)
        simulation.step(motors=controls)
        assert abs(gears @ simulation.motor_forces) <= 5.0 + 1e-9
        assert simulation.motor_forces == pytest.approx(told, abs=0.3)
    assert simulation.q == pytest.approx(tiny.q, abs=5e-3)
    assert bool(np.abs(sums).max() == 5.0) is (case != "within the limit")


@pytest.mark.parametrize("integrator", ["midpoint", "euler", "rk4"])
def test_a_spring_and_a_damper_that_share_a_limit_are_one_servo(integrator: str) -> None:
    """Of a leg that lands, with friction in its knee and an end of it: the same motion as with a single servo."""
    b = RobotBuilder("hopper")
    b.body("hip", 3.0, inertia=(0.02, 0.02, 0.02))
    b.joint("rail", Prismatic(axis=(0, 0, 1)), "ground", "hip", at=(0, 0, 0.45))
    for name, parent, at, knee in (
        ("thigh", "hip", 0.0, {}),
        ("shank", "thigh", -0.25, {"friction": 0.1, "upper": 1.3}),
    ):
        b.body(name, 0.3, (0, 0, -0.12), (2e-3, 2e-3, 2e-4))
        b.joint(name, Revolute(axis=(0, 1, 0), effort_limit=9.0, **knee), parent, name, at=(0, 0, at))
    b.contact("foot", "shank", (0, 0, -0.25))
    b.floor(friction=0.8)
    robot, ends, efforts = b.build(), [], []
    q, targets = robot.pack_q({"rail": 0.05, "thigh": -0.5, "shank": 1.0}), {"thigh": -0.5, "shank": 1.0}
    pairs = {name: [servo(name, 150.0), replace(servo({name: 2.0}, damping=1.0), name=f"{name} v")] for name in targets}
    for actuators in ([servo(name, 150.0, 4.0) for name in targets], [*pairs["thigh"], *pairs["shank"]]):
        driven = robot.with_actuators(actuators)
        simulation = Simulation(driven, 1e-3, q=q, integrator=integrator)
        for _ in range(300):
            simulation.step(motors={name: targets.get(name, 0.0) for name in driven.actuator_names})
            forces = dict(zip(driven.actuator_names, simulation.motor_forces, strict=True))
            efforts.append(abs(forces["shank"] + 2.0 * forces.get("shank v", 0.0)))
            assert simulation.status.solved
        ends.append(np.concatenate([simulation.q, simulation.v]))
    assert ends[0] == pytest.approx(ends[1], abs=1e-6)
    assert max(efforts) == pytest.approx(9.0, abs=1e-9)


def test_motors_of_several_joints_keep_effort_limits_together() -> None:
    """A differential: all motors get weaker by one factor, until the sums at both joints are within their limits."""
    motors = Actuator("left", {"hinge": 2.0, "elbow": 2.0}), Actuator("right", {"hinge": 2.0, "elbow": -2.0})
    robot = arm(*motors, Actuator("brake", "elbow", effort=1.0), effort_limit=5.0)
    for controls, forces in (
        ([1.0, 1.0, 0.0], [1.0, 1.0, 0.0]),
        ([4.0, 1.0, 0.5], [2.0, 0.5, 0.5]),
        ([-3.0, -3.0, 2.0], [-1.25, -1.25, 1.0]),
    ):
        assert coupler.control_forces(robot, [0.1, 0.2], [0.0, 0.0], controls) == pytest.approx(forces, abs=1e-12)
        for integrator in ("midpoint", "rk4"):
            simulation = Simulation(robot, 1e-3, integrator=integrator)
            simulation.step(motors=controls)
            assert simulation.motor_forces == pytest.approx(forces, abs=1e-9)


def test_limits_that_actuators_do_not_share_are_told() -> None:
    """Of servos of several joints, or with limits of their own, the limit of a joint limits each."""
    for other in (servo("hinge", 10.0, 1.0, effort=9.0), servo({"hinge": 1.0, "elbow": 1.0}, 10.0)):
        robot = arm(Actuator("motor", {"hinge": 2.0}), other, effort_limit=5.0)
        assert [actuator.effort for actuator in robot.actuators] == [(-2.5, 2.5), (-5.0, 5.0)]
        told = f"the effort limit of joint 'hinge' limits each of 'motor', {other.name!r}, and not their sum"
        assert told in str(robot)
    assert "not their sum" not in str(arm(Actuator("a", "hinge"), Actuator("b", "hinge"), effort_limit=5.0))
    robot = arm(Actuator("both", {"hinge": 1.0, "elbow": 1.0}), velocity_limit=5.0)
    assert "the velocity limit of joint 'hinge' does not limit 'both', which moves several joints" in str(robot)
