"""Positions, velocities, accelerations and forces of actuators, from independent joints and back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coupler
from coupler.model import Actuator, ModelError, Prismatic, Revolute, Robot, RobotBuilder, Spherical
from effort import sweep
from random_robots import ROBOTS, sample

ROBOTS_WITH_LOOPS = ("tello", "six_bar", "five_bar", "mit_humanoid")


def driven(name: str, count: int = 5) -> Robot:
    """A bundled robot whose actuators act on one joint, on two or on three, dependent ones included."""
    robot, rng = coupler.robots.load(name), np.random.default_rng(1)
    joints = [joint.name for joint in robot.joints if joint.kind.nv == 1]
    sizes = [min(len(joints), 1 + k % 3) for k in range(count)]
    gears = [{j: float(rng.normal()) for j in rng.choice(joints, size, replace=False)} for size in sizes]
    return robot.with_actuators(Actuator(f"a{k}", own) for k, own in enumerate(gears))


def pendulum(**options: object) -> RobotBuilder:
    b = RobotBuilder("pendulum")
    b.body("bob", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1))
    b.joint("hinge", Revolute(axis=(0, 1, 0), **options), "ground", "bob")  # type: ignore[arg-type]
    return b


@pytest.mark.parametrize("name", ROBOTS_WITH_LOOPS)
def test_positions_velocities_and_accelerations_are_sums_over_joints(name: str) -> None:
    robot = driven(name)
    rng = np.random.default_rng(2)
    q, v = robot.random_state(0)
    a, h = rng.normal(size=robot.nv), 1e-5
    where, speed = robot.joint_positions(q), robot.joint_velocities(q, v)
    u, u_rate = coupler.actuator_positions(robot, q), coupler.actuator_velocities(robot, q, v)
    gears = [actuator.gears for actuator in robot.actuators]
    assert u == pytest.approx([sum(g * where[j] for j, g in own.items()) for own in gears], abs=1e-12)
    assert u_rate == pytest.approx([sum(g * speed[j] for j, g in own.items()) for own in gears], abs=1e-12)
    assert coupler.actuator_jacobian(robot, q) @ v == pytest.approx(u_rate, abs=1e-12)
    later, before = robot.integrate(q, v + a * h / 2, h), robot.integrate(q, a * h / 2 - v, h)
    ends = [coupler.actuator_positions(robot, x) for x in (later, before)]
    assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(u_rate, abs=1e-7)
    curved = coupler.actuator_accelerations(robot, q, v, a)
    assert (ends[0] - 2 * u + ends[1]) / h**2 == pytest.approx(curved, abs=2e-3)


@pytest.mark.parametrize("name", ROBOTS_WITH_LOOPS)
def test_forces_do_the_same_work_on_both_sides(name: str) -> None:
    robot, rng = driven(name), np.random.default_rng(3)
    states = [robot.random_state(seed) for seed in range(3)]
    q, v = (np.stack(x) for x in zip(*states, strict=True))
    forces = rng.normal(size=(3, len(robot.actuators)))
    tau = coupler.generalized_forces(robot, q, forces)
    u_rate = coupler.actuator_velocities(robot, q, v)
    assert np.sum(tau * v, axis=1) == pytest.approx(np.sum(forces * u_rate, axis=1), abs=1e-10)
    one = coupler.generalized_forces(robot, q[1], forces[1])
    assert one == pytest.approx(tau[1], abs=1e-12)
    single = coupler.generalized_forces(robot, q.astype(np.float32), forces.astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(tau, abs=1e-3)


@pytest.mark.parametrize("name", sweep(ROBOTS, ("tree", "differential", "held loop")))
def test_all_joints_of_random_robots_can_be_driven(name: str) -> None:
    robot = sample(name).robot
    speeds = robot.joint_velocities(*robot.random_state(0))
    moving = [joint for joint in robot.joints if joint.kind.nv and np.abs(speeds[joint.name]).max() > 1e-9]
    gears = [{joint.name: 2.0 if joint.kind.nv == 1 else (np.arange(joint.kind.nv) + 1.0)} for joint in moving]
    robot = robot.with_actuators(Actuator(f"a{k}", own) for k, own in enumerate(gears))
    q, v = robot.random_state(1)
    w = robot.joint_velocities(q, v)
    expected = [np.sum(np.atleast_1d(next(iter(own.values()))) * w[next(iter(own))]) for own in gears]
    assert coupler.actuator_velocities(robot, q, v) == pytest.approx(expected, abs=1e-9)
    f = np.random.default_rng(0).normal(size=len(gears))
    assert coupler.generalized_forces(robot, q, f) @ v == pytest.approx(np.dot(f, expected), rel=1e-9)


def test_dynamics_with_motors_and_back() -> None:
    robot = driven("six_bar", 3)
    q, v = robot.random_state(4)
    f = np.random.default_rng(0).normal(size=3)
    tau = coupler.generalized_forces(robot, q, f)
    a = coupler.forward_dynamics(robot, q, v, motors=f)
    assert a == pytest.approx(coupler.forward_dynamics(robot, q, v, tau), abs=1e-12)
    by_name = dict(zip(robot.actuator_names, f.tolist(), strict=True))
    np.testing.assert_array_equal(coupler.forward_dynamics(robot, q, v, motors=by_name), a)
    with pytest.raises(ModelError, match="motors: there is no actuator 'nothing'"):
        coupler.forward_dynamics(robot, q, v, motors={"nothing": 1.0})
    both = coupler.forward_dynamics(robot, q, v, tau, motors=f)
    assert both == pytest.approx(coupler.forward_dynamics(robot, q, v, 2.0 * tau), abs=1e-9)
    for wrong, message in ((1.0, "tau has the shape"), (np.zeros((3, robot.nv)), "do not fit together")):
        with pytest.raises(ModelError, match=message):
            coupler.forward_dynamics(robot, [q, q], v, wrong, motors=f)
    assert coupler.forward_dynamics(robot, q, v) == pytest.approx(
        coupler.forward_dynamics(robot, q, v, 0.0 * tau), abs=1e-12
    )
    again = coupler.motor_forces(robot, q, v, a)
    assert coupler.generalized_forces(robot, q, again) == pytest.approx(tau, abs=1e-9)


def test_controls_in_dynamics_are_those_of_a_short_step() -> None:
    """Motors, servos and dampers, at limits and within: what `Simulation.step` does with the same numbers."""
    robot, rng = coupler.robots.load("six_bar"), np.random.default_rng(0)
    joints = [joint.name for joint in robot.joints][:5]
    given = (
        Actuator("free", joints[0]),
        Actuator("weak", joints[1], effort=(-0.5, 0.2), control=(-1.0, 1.0)),
        Actuator("place", {joints[0]: 2.0, joints[2]: -1.0}, "position", stiffness=30.0, damping=0.4),
        Actuator("stopped", joints[3], "position", stiffness=50.0, effort=0.7),
        Actuator("pace", joints[2], "velocity", damping=0.3),
        Actuator("brake", joints[4], "damper", damping=0.2),
        Actuator("fast", joints[3], speed=1e-3),
    )
    robot = robot.with_actuators(given)
    for seed in range(5):
        q, v = robot.random_state(seed)
        motors, rates = rng.normal(size=(2, len(given)))
        a = coupler.forward_dynamics(robot, q, v, motors=motors, rates=rates)
        simulation = coupler.Simulation(robot, 1e-7, q=q, v=v, integrator="euler", limits=False, contacts=[])
        simulation.step(motors=motors, rates=rates)
        assert simulation.motor_forces == pytest.approx(
            coupler.control_forces(robot, q, v, motors, rates), rel=1e-4, abs=1e-4
        )
        assert (simulation.v - v) / 1e-7 == pytest.approx(a, rel=1e-4, abs=1e-4 * np.abs(a).max())
    batch = [np.stack(x) for x in zip(*(robot.random_state(seed) for seed in range(3)), strict=True)]
    (q, v), rates = robot.random_state(0), np.zeros(len(given))
    assert coupler.forward_dynamics(robot, *batch, motors=rates).shape == (3, robot.nv)
    with pytest.raises(ModelError, match="give motors as well"):
        coupler.forward_dynamics(robot, q, v, rates=rates)
    with pytest.raises(ModelError, match="no position servo"):
        coupler.forward_dynamics(robot.with_actuators(given[:2]), q, v, motors=[0.0, 0.0], rates=[0.0, 0.0])


def test_redundant_motors_share_by_weights() -> None:
    robot = driven("four_bar", 3)
    q, _ = robot.random_state(0)
    A, tau = coupler.actuator_jacobian(robot, q)[:, 0], np.array([2.0])
    even = coupler.actuator_forces(robot, q, tau)
    assert even == pytest.approx(A * tau / (A @ A))
    weights = np.array([1.0, 10.0, 0.1])
    dear = coupler.actuator_forces(robot, q, tau, weights)
    assert dear == pytest.approx(A / weights * tau / (A @ (A / weights)))
    with pytest.raises(ModelError, match="above zero"):
        coupler.actuator_forces(robot, q, tau, [1.0, 0.0, 1.0])


def test_what_motors_cannot_do_is_told_or_left_out() -> None:
    robot = coupler.robots.load("mini_cheetah")
    q, v = robot.random_state(0)
    tau = coupler.bias_force(robot, q, v)
    with pytest.raises(ModelError, match=r"at joint 'floating_base'.*exact=False"):
        coupler.actuator_forces(robot, q, tau)
    forces = coupler.actuator_forces(robot, q, tau, exact=False)
    assert forces == pytest.approx(tau[6:], abs=1e-9)


def test_motions_from_those_of_actuators() -> None:
    robot = coupler.robots.load("tello")
    q, v = robot.random_state(0)
    a = np.random.default_rng(1).normal(size=robot.nv)
    u_rate, u_rate2 = coupler.actuator_velocities(robot, q, v), coupler.actuator_accelerations(robot, q, v, a)
    base = np.where(np.arange(robot.nv) < 6, v, 0.0)
    assert coupler.velocities_of_actuators(robot, q, u_rate, near=base) == pytest.approx(v, abs=1e-9)
    still = coupler.velocities_of_actuators(robot, q, u_rate)
    assert still[:6] == pytest.approx(np.zeros(6), abs=1e-12)
    near = np.where(np.arange(robot.nv) < 6, a, 0.0)
    assert coupler.accelerations_of_actuators(robot, q, v, u_rate2, near=near) == pytest.approx(a, abs=1e-8)
    redundant = driven("four_bar", 3)
    with pytest.raises(ModelError, match="cannot move like this"):
        coupler.velocities_of_actuators(redundant, redundant.neutral(), [1.0, 1.0, 1.0])


def test_marked_joints_have_motors_with_the_limits_of_the_joint() -> None:
    b = pendulum(effort_limit=3.0, velocity_limit=2.0)
    b.body("arm", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1))
    b.joint("elbow", Revolute(axis=(0, 1, 0)), "bob", "arm", (0, 0, -1), actuated=True)
    b.actuator("motor", {"hinge": -6.0}, effort=(-1.0, 0.25), control=(-1, 1))
    robot = b.build()
    motor, elbow = robot.actuators
    assert robot.actuator_names == ["motor", "elbow"]
    assert robot.actuated_joints == ["hinge", "elbow"]
    assert motor.effort == (-0.5, 0.25)
    assert motor.speed == 12.0
    assert elbow.effort == (-np.inf, np.inf)
    assert "driven by 2 motors: motor, elbow" in str(robot)


def test_attaching_and_pickling_keep_actuators() -> None:
    b = pendulum()
    b.actuator("servo", {"hinge": 2.0}, "position", stiffness=5.0, damping=0.1, effort=4.0)
    arm = b.build()
    scene = RobotBuilder("two")
    scene.attach(arm, "left/")
    scene.attach(arm, "right/", at=(0, 1, 0))
    robot = scene.build()
    assert robot.actuator_names == ["left/servo", "right/servo"]
    assert robot.actuators[1].gears == {"right/hinge": 2.0}
    assert pickle.loads(pickle.dumps(robot)).actuators == robot.actuators
    other = RobotBuilder("three")
    other.actuator("left/servo", "elsewhere")
    with pytest.raises(ModelError, match="actuator 'left/servo' already"):
        other.attach(arm, "left/")
    assert robot.spanning_tree().actuators == robot.actuators


def locked_strut() -> RobotBuilder:
    """Three joints of one coupling, of which two move together and one not at all."""
    b = pendulum()
    b.body("strut", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1))
    b.body("block", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(axis=(0, 1, 0)), "ground", "block")
    b.joint("strut_hinge", Revolute(axis=(0, 1, 0)), "ground", "strut", (0.3, 0, 0))
    b.couple("lock", ["strut_hinge", "hinge", "slide"], lambda q: np.array([q[0], q[1] - q[2]]))
    return b


def test_an_actuator_that_nothing_moves_is_refused() -> None:
    b = locked_strut()
    b.actuator("idle", {"strut_hinge": 1.0})
    with pytest.raises(ModelError, match="actuator 'idle': no independent joint moves it"):
        b.build()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gears": {}}, "go by names of joints"),
        ({"gears": {"hinge": 0.0}}, "is zero"),
        ({"gears": {"hinge": [[1.0]]}}, "gear at joint 'hinge'"),
        ({"gears": "hinge", "kind": "spring"}, "its kind must be one of 'motor', .* got 'spring'"),
        ({"gears": "hinge", "kind": "position"}, "needs a stiffness"),
        ({"gears": "hinge", "kind": "velocity", "stiffness": 1.0}, "needs a damping"),
        ({"gears": "hinge", "stiffness": 1.0}, "a motor has no gains"),
        ({"gears": "hinge", "effort": (1.0, 2.0)}, "free to be zero"),
        ({"gears": "hinge", "effort": (2.0, -2.0)}, "from low to high"),
        ({"gears": "hinge", "speed": 0.0}, "above zero"),
        ({"gears": "hinge", "damping": np.nan, "kind": "velocity"}, "damping must be"),
    ],
)
def test_mistakes_in_an_actuator_are_told(given: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        pendulum().actuator("motor", **given)


def test_mistakes_between_parts_are_told() -> None:
    for gears, message in (({"hing": 1.0}, "no joint 'hing'"), ({"hinge": (1.0, 2.0)}, "must be a number")):
        b = pendulum()
        b.actuator("motor", gears)
        with pytest.raises(ModelError, match=message):
            b.build()
    b = pendulum()
    b.actuator("motor", "hinge")
    with pytest.raises(ModelError, match="actuator 'motor' already"):
        b.actuator("motor", "hinge")
    with pytest.raises(ModelError, match="has no actuators"):
        coupler.actuator_velocities(pendulum().build(), [0.0], [0.0])
    with pytest.raises(ModelError, match="takes a list of Actuator, got"):
        b.build().with_actuators(["hinge"])  # type: ignore[list-item]
    b = RobotBuilder("ball")
    b.body("bob", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.1))
    b.joint("ball", Spherical(), "ground", "bob", actuated=True)
    robot = b.build()
    assert robot.actuator_names == ["ball_1", "ball_2", "ball_3"]
    with pytest.raises(ModelError, match="turns as a ball does"):
        coupler.actuator_positions(robot, robot.neutral())
    with pytest.raises(ModelError, match="turns as a ball does"):
        robot.with_actuators([robot.actuators[0].position_servo(1.0)])


def test_an_actuator_tells_what_of_it_is_not_as_usual() -> None:
    assert repr(Actuator("knee", {"left": 6.0})) == "Actuator('knee', {'left': 6.0})"
    servo = Actuator("knee", "left", effort=(-1, 2)).position_servo(3.0, 0.5)
    told = "Actuator('knee', {'left': 1.0}, kind='position', effort=(-1.0, 2.0), stiffness=3.0, damping=0.5)"
    assert repr(servo) == told
    assert repr(servo.velocity_servo(2.0)).endswith("kind='velocity', effort=(-1.0, 2.0), damping=2.0)")


def test_arguments_of_wrong_shape_are_refused() -> None:
    robot = coupler.robots.load("tello")
    q, n = np.tile(robot.neutral(), (3, 1)), len(robot.actuators)
    with pytest.raises(ModelError, match="do not fit together"):
        coupler.actuator_forces(robot, q, np.zeros((4, robot.nv)))
    with pytest.raises(ModelError, match="do not fit together"):
        coupler.velocities_of_actuators(robot, q, np.zeros((4, n)))
    with pytest.raises(ModelError, match="rates must be"):
        coupler.accelerations_of_actuators(robot, q[0], np.zeros(robot.nv), np.zeros(n + 1))
    with pytest.raises(ModelError, match="rates must be"):
        coupler.velocities_of_actuators(robot, q[0], ["a"] * n)
    with pytest.raises(ModelError, match="tau must be"):
        coupler.actuator_forces(robot, q[0], np.full(robot.nv, np.nan))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_gears_do_not_hide_small_ones(dtype: type) -> None:
    b = RobotBuilder("two")
    for name in ("j", "k"):
        b.body(name, 1.0, inertia=(1, 1, 1))
        b.joint(name, Revolute(axis=(0, 0, 1)), "ground", name)
    b.actuator("fast", {"j": 160.0})
    b.actuator("slow", {"k": 0.0015})
    v = coupler.velocities_of_actuators(b.build(), np.zeros(2, dtype), np.array([160.0, 0.0015], dtype))
    assert v == pytest.approx([1.0, 1.0], rel=1e-5)


def test_joints_that_an_actuator_drives_together_are_preferred_as_independent() -> None:
    """As the two drivers of a gripper that one tendon pulls, and not a finger that only follows them."""
    independent = []
    for tendon in (False, True):
        b = RobotBuilder("gripper")
        for name in ("finger", "left", "right"):
            b.body(name, 0.1, (0, 0, 0.05), (1e-4, 1e-4, 1e-5))
            b.joint(name, Revolute(axis=(1, 0, 0)), "ground", name)
        b.couple("linkage", ["finger", "left", "right"], lambda p: np.array([p[0] + p[1], p[1] - p[2]]))
        if tendon:
            b.actuator("grip", {"left": 0.5, "right": 0.5})
        independent += b.build().independent_joints
    assert independent == ["finger", "left"]


def tendons(name: str, count: int) -> Robot:
    """A bundled robot with some of its motors, and others that act across clusters: redundant ones and too few."""
    robot, rng = coupler.robots.load(name), np.random.default_rng(5)
    joints = [joint.name for joint in robot.joints if joint.kind.nv == 1]
    pairs = [rng.choice(joints, 2, replace=False) for _ in range(count)]
    more = [Actuator(f"tendon{k}", {str(a): 1.0, str(b): float(rng.normal())}) for k, (a, b) in enumerate(pairs)]
    return robot.with_actuators([*robot.actuators[: len(robot.actuators) - 2], *more])


INVERTED = {
    "tello": lambda: coupler.robots.load("tello"),
    "mini_cheetah": lambda: coupler.robots.load("mini_cheetah"),
    "rh5_manus": lambda: coupler.robots.load("rh5_manus"),
    "a motor for each of three joints that move together": lambda: driven("four_bar", 3),
    "tendons across clusters of tello": lambda: tendons("tello", 3),
    "tendons across clusters of mini_cheetah": lambda: tendons("mini_cheetah", 4),
    "too few": lambda: coupler.robots.load("tello").with_actuators(coupler.robots.load("tello").actuators[:3]),
}


@pytest.mark.parametrize("case", INVERTED)
def test_inverse_maps_are_pseudoinverses_of_the_jacobian(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    robot, rng = INVERTED[case](), np.random.default_rng(0)
    q = np.stack([robot.random_state(rng)[0] for _ in range(5)])
    v, a = rng.normal(size=(2, 5, robot.nv))
    A, count = coupler.actuator_jacobian(robot, q), len(robot.actuators)
    rates, rates2 = coupler.actuator_velocities(robot, q, v), coupler.actuator_accelerations(robot, q, v, a)
    tau = coupler.generalized_forces(robot, q, rng.normal(size=(5, count)))
    weights = rng.uniform(0.5, 2.0, count)
    root = 1.0 / np.sqrt(weights)
    monkeypatch.setattr(np.linalg, "pinv", None)  # all of it is compiled
    forces = coupler.actuator_forces(robot, q, tau, weights)
    left_out = coupler.actuator_forces(robot, q, v, exact=False)
    moved = coupler.velocities_of_actuators(robot, q, rates, near=v[0])
    moved2 = coupler.accelerations_of_actuators(robot, q, v, rates2, near=a[1])
    monkeypatch.undo()
    for i in range(5):
        inverse = np.linalg.pinv(A[i], rcond=1e-10)
        weighted = root[:, None] * np.linalg.pinv((root[:, None] * A[i]).T, rcond=1e-10)
        np.testing.assert_allclose(forces[i], weighted @ tau[i], rtol=0, atol=1e-9)
        np.testing.assert_allclose(left_out[i], inverse.T @ v[i], rtol=0, atol=1e-9)
        np.testing.assert_allclose(moved[i], v[0] + inverse @ (A[i] @ (v[i] - v[0])), rtol=0, atol=1e-9)
        np.testing.assert_allclose(moved2[i], a[1] + inverse @ (A[i] @ (a[i] - a[1])), rtol=0, atol=1e-9)
    one = coupler.actuator_forces(robot, q[2], tau[2], weights)
    np.testing.assert_allclose(one, forces[2], rtol=0, atol=1e-12)
    assert one.flags.c_contiguous
    assert forces.flags.c_contiguous


@pytest.mark.parametrize("case", ["tello", "tendons across clusters of mini_cheetah"])
def test_inverse_maps_in_single_precision(case: str) -> None:
    robot, rng = INVERTED[case](), np.random.default_rng(0)
    q, v = robot.random_state(1)
    tau = coupler.generalized_forces(robot, q, rng.normal(size=len(robot.actuators)))
    rates = coupler.actuator_velocities(robot, q, v)
    single = q.astype(np.float32)
    forces = coupler.actuator_forces(robot, single, tau.astype(np.float32))
    motion = coupler.velocities_of_actuators(robot, single, rates.astype(np.float32))
    assert forces.dtype == motion.dtype == np.float32
    np.testing.assert_allclose(forces, coupler.actuator_forces(robot, q, tau), rtol=0, atol=2e-3)
    np.testing.assert_allclose(motion, coupler.velocities_of_actuators(robot, q, rates), rtol=0, atol=2e-3)


def test_where_a_cluster_is_singular_the_nearest_forces_are_found() -> None:
    """A piston cannot turn its crank where the rod is in line with it."""
    robot = coupler.robots.load("slider_crank")
    slider, crank = (next(j for j in robot.joint_names if part in j) for part in ("slid", "crank"))
    robot = robot.with_actuators([Actuator("piston", slider)])
    dead = robot.pack_q({crank: 0.0})
    assert np.abs(coupler.actuator_jacobian(robot, dead)).max() < 1e-12
    np.testing.assert_array_equal(coupler.actuator_forces(robot, dead, [1.0], exact=False), [0.0])
    with pytest.raises(ModelError, match="cannot produce tau"):
        coupler.actuator_forces(robot, dead, [1.0])
    with pytest.raises(ModelError, match="cannot move like this"):
        coupler.velocities_of_actuators(robot, dead, [1.0])
