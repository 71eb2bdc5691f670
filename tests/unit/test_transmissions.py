"""Actuators whose gear depends on the pose: cables, slider-cranks and wrenches."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Simulation
from coupler.model import (
    Actuator,
    Around,
    Cable,
    Free,
    ModelError,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    SliderCrank,
    Wrench,
)
from coupler.spatial import Transform
from effort import sweep
from transmission_samples import actuators, arm, driven_arm

ROBOTS = ("mini_cheetah", "tello", "six_bar", "mit_humanoid", "five_bar", "charmie")


def driven(name: str, seed: int = 0) -> Robot:
    """A bundled robot with an actuator on each kind of transmission, between bodies taken at random."""
    robot, rng = coupler.robots.load(name), np.random.default_rng(seed)
    while True:
        first, second = (str(body) for body in rng.choice(robot.body_names, 2, replace=False))
        try:
            return robot.with_actuators([x for x in actuators(first, second) if x.name != "crank"])
        except ModelError:  # no joint moves them relative to each other
            continue


def pose_of(robot: Robot, q: np.ndarray, body: str) -> Transform:
    T = np.eye(4) if body == "ground" else coupler.frame_pose(robot, q, body)
    return Transform(T[:3, :3].T, T[:3, 3])


def as_loads(robot: Robot, q: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Forces on bodies that forces of actuators amount to: an independent way to apply them."""
    loads = np.zeros((len(robot.body_names), 6))
    for actuator, force in zip(robot.actuators, forces, strict=True):
        assert actuator.along is not None
        frames = [end.at @ pose_of(robot, q, end.body) for end in actuator.along.ends]
        for end, wrench in zip(
            actuator.along.ends, actuator.along.wrenches(frames, actuator.along.numbers), strict=True
        ):
            if end.body != "ground":
                loads[robot.body_names.index(end.body)] += force * np.asarray(wrench, float)
    return loads


@pytest.mark.parametrize("name", sweep(ROBOTS, ROBOTS[:3]))
def test_they_push_as_forces_on_their_bodies_do(name: str) -> None:
    robot, rng = driven(name), np.random.default_rng(1)
    for seed in range(3):
        q, v = robot.random_state(seed)
        forces = rng.normal(size=len(robot.actuators))
        loads, none = as_loads(robot, q, forces), np.zeros(robot.nv)
        expected = coupler.forward_dynamics(robot, q, v, none, f_ext=loads)
        tau = coupler.generalized_forces(robot, q, forces)
        np.testing.assert_allclose(
            coupler.forward_dynamics(robot, q, v, tau), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
        )
        assert coupler.actuator_jacobian(robot, q).T @ forces == pytest.approx(tau, abs=1e-12)


@pytest.mark.parametrize("name", sweep(ROBOTS, ROBOTS[:3]))
def test_velocities_and_accelerations_are_derivatives_of_positions(name: str) -> None:
    robot, rng, h = driven(name), np.random.default_rng(2), 1e-4
    # A rotation vector's rate is an angular velocity for turns about one axis only: `press` has a moment.
    robot = robot.with_actuators(x for x in robot.actuators if x.name in ("rope", "belt"))
    q, v = robot.random_state(0)
    a = rng.normal(size=robot.nv)
    later, before = robot.integrate(q, v + a * h / 2, h), robot.integrate(q, a * h / 2 - v, h)
    ends = [coupler.actuator_positions(robot, x) for x in (later, before)]
    u, size = coupler.actuator_positions(robot, q), 1.0 + float(np.abs(v).max()) ** 3
    assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(coupler.actuator_velocities(robot, q, v), abs=1e-6 * size)
    curved = coupler.actuator_accelerations(robot, q, v, a)
    smooth = [i for i, x in enumerate(robot.actuators) if x.name != "belt"]  # which meets shapes, and leaves them
    assert ((ends[0] - 2 * u + ends[1]) / h**2)[smooth] == pytest.approx(curved[smooth], abs=1e-3 * size)


def test_accelerations_of_all_kinds_are_derivatives_of_velocities() -> None:
    robot, rng, h = driven_arm(), np.random.default_rng(0), 1e-6
    for seed in range(5):
        q, v = robot.random_state(seed)
        a = rng.normal(size=2)
        ends = [coupler.actuator_velocities(robot, q + s * h * v, v + s * h * a) for s in (1, -1)]
        numeric = (ends[0] - ends[1]) / (2 * h)
        assert coupler.actuator_accelerations(robot, q, v, a) == pytest.approx(numeric, abs=1e-7)


def test_batches_and_back_ends_agree() -> None:
    robot = driven("tello")
    q, v = (np.stack(x) for x in zip(*(robot.random_state(seed) for seed in range(9)), strict=True))
    A = coupler.actuator_jacobian(robot, q)
    assert A.shape == (9, len(robot.actuators), robot.nv)
    for backend in ("interpreter", "python"):
        other = robot.with_backend(backend)  # type: ignore[arg-type]
        assert coupler.actuator_jacobian(other, q[0]) == pytest.approx(A[0], abs=1e-13)
        assert coupler.actuator_velocities(other, q[0], v[0]) == pytest.approx(A[0] @ v[0], abs=1e-12)
    narrow = coupler.actuator_jacobian(robot, q.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, A, atol=2e-5)


def test_inverse_maps_solve_for_forces_and_motions() -> None:
    """A weight on three ropes: forces that hold it, and its motion and place for lengths of ropes."""
    b = RobotBuilder("crane")
    b.body("weight", 2.0, (0, 0, 0), np.eye(3))
    for axis, (name, parent, child) in zip(
        np.eye(3), (("x", "ground", "one"), ("y", "one", "two"), ("z", "two", "weight")), strict=True
    ):
        if child != "weight":
            b.body(child, 1e-3, (0, 0, 0), 1e-6 * np.eye(3))
        b.joint(name, Prismatic(axis=axis), parent, child)
    corners = [(1.0, 0.0, 2.0), (-1.0, 1.0, 2.0), (-1.0, -1.0, 2.0)]
    for i, corner in enumerate(corners):
        b.actuator(f"rope{i}", Cable([("ground", corner), ("weight", (0, 0, 0))], -1.0), effort=(0.0, 100.0))
    robot = b.build()
    place = np.array([0.1, -0.2, 0.3])
    tension = coupler.motor_forces(robot, place, np.zeros(3), np.zeros(3))
    along = np.array([np.subtract(corner, place) / np.linalg.norm(np.subtract(corner, place)) for corner in corners])
    assert along.T @ tension == pytest.approx([0, 0, 9.81 * 2.0], abs=1e-12)
    assert coupler.actuator_forces(robot, place, along.T @ [1.0, 2.0, 3.0]) == pytest.approx([1.0, 2.0, 3.0], abs=1e-12)
    rates = coupler.velocities_of_actuators(robot, place, along @ [0.3, 0.2, -0.1])
    assert rates == pytest.approx([0.3, 0.2, -0.1], abs=1e-12)
    lengths = coupler.actuator_positions(robot, place)
    assert lengths == pytest.approx([-np.linalg.norm(np.subtract(corner, place)) for corner in corners], abs=1e-14)
    found = coupler.configuration_of_actuators(robot, lengths, near=np.zeros(3))
    assert found == pytest.approx(place, abs=1e-9)
    held = Simulation(robot, 1e-3, q=place)
    for _ in range(100):
        held.step(motors=tension)
    assert held.q == pytest.approx(place, abs=1e-9)


def integrated(rate: Callable[[np.ndarray], np.ndarray], x: np.ndarray, time: float, steps: int) -> np.ndarray:
    """The solution of ẋ = rate(x) after some time, by the classic method of Runge and Kutta."""
    h = time / steps
    for _ in range(steps):
        a = rate(x)
        b = rate(x + h / 2 * a)
        c = rate(x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + rate(x + h * c))
    return x


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("midpoint", 2), ("trapezoid", 2), ("rk4", 4)])
def test_steps_converge_to_the_motion_of_servos(integrator: Any, order: int) -> None:
    """Against a fine integration of forward dynamics: a servo, a damper and motors on all kinds of transmissions."""
    robot = driven_arm()
    robot = robot.with_actuators(x for x in robot.actuators if x.name != "belt")  # which meets shapes, and leaves them
    controls = np.array([2.0, 0.3, 1.0, 1.5, 0.1])
    q, v = np.array([0.3, 0.4]), np.array([0.5, -0.7])

    def rate(state: np.ndarray) -> np.ndarray:
        return np.concatenate([state[2:], coupler.forward_dynamics(robot, state[:2], state[2:], motors=controls)])

    exact = integrated(rate, np.concatenate([q, v]), 0.2, 4000)
    errors = []
    for steps in (100, 200):
        simulation = Simulation(robot, 0.2 / steps, integrator=integrator, q=q, v=v)
        for _ in range(steps):
            simulation.step(motors=controls)
        errors.append(np.abs(np.concatenate([simulation.q, simulation.v]) - exact).max())
    assert errors[1] < 0.6 * errors[0] / 2 ** (order - 1)
    assert errors[1] < {1: 2e-2, 2: 5e-4, 4: 1e-6}[order]


def test_limits_of_effort_and_speed_hold() -> None:
    rope = Cable([("ground", (0.5, 0, 0.6)), ("lower", (0.2, 0, 0))], -1.0)
    robot = (
        arm()
        .build()
        .with_actuators([Actuator("rope", rope, "position", effort=(0.0, 3.0), stiffness=1e4, damping=10.0, speed=0.4)])
    )
    simulation = Simulation(robot, 1e-3)
    for _ in range(400):
        simulation.step(motors=[0.0])
        assert -1e-9 <= simulation.motor_forces[0] <= 3.0 + 1e-9
        fast = coupler.actuator_velocities(robot, simulation.q, simulation.v)[0]
        assert fast <= 0.4 + 2e-3 or simulation.motor_forces[0] <= 1e-9


def test_a_winch_lifts_a_weight_over_pulleys() -> None:
    """A tackle of two falls, in which half the weight holds it; and a rope that passes over a drum above."""
    b = RobotBuilder("tackle")
    b.body("weight", 4.0, (0, 0, 0), 0.1 * np.eye(3))
    b.joint("lift", Prismatic(axis=(0, 0, 1)), "ground", "weight")
    b.actuator("winch", Cable([("ground", (0, 0, 3)), ("weight", (0, 0, 0))], -2.0))
    drum = Around("ground", 0.5, (0.5, 0, 3), (0, 1, 0), side=(0.5, 0, 9))
    b.actuator("rope", Cable([("ground", (1, 0, 0)), drum, ("weight", (0, 0, 0))]))
    robot = b.build()
    a = coupler.forward_dynamics(robot, [0.0], [0.0], motors=[4.0 * 9.81 / 2, 0.0])
    assert a == pytest.approx([0.0], abs=1e-12)
    length = 2 * 3.0 + np.pi * 0.5
    assert coupler.actuator_positions(robot, [0.0]) == pytest.approx([-6.0, length], abs=1e-14)
    assert coupler.actuator_jacobian(robot, [0.0]) == pytest.approx(np.array([[2.0], [-1.0]]), abs=1e-14)


def test_a_propeller_pushes_along_with_its_body() -> None:
    b = RobotBuilder("drone")
    b.body("frame", 1.5, (0, 0, 0), 0.1 * np.eye(3))
    b.body("gimbal", 0.5, (0, 0, 0), 0.01 * np.eye(3))
    b.joint("free", Free(), "ground", "frame")
    b.joint("tilt", Revolute(axis=(0, 1, 0)), "frame", "gimbal", (0, 0, 0.1))
    b.actuator("thrust", Wrench("gimbal", force=(0, 0, 1), moment=(0, 0, 0.02)))
    robot = b.build()
    q = robot.pack_q({"tilt": 0.5})
    momentum = coupler.momentum(robot, q, coupler.forward_dynamics(robot, q, np.zeros(7), motors=[3.0]))
    push = 3.0 * np.array([np.sin(0.5), 0, np.cos(0.5)])
    assert momentum[3:] == pytest.approx(push - [0, 0, 9.81 * 2.0], abs=1e-12)
    with pytest.raises(ModelError, match=r"thrust.*against no other body has no position"):
        coupler.actuator_positions(robot, q)


def test_attached_copied_and_pickled_they_are_the_same() -> None:
    robot, q = driven_arm(), np.array([0.3, -0.4])
    assert pickle.loads(pickle.dumps(robot)).actuators == robot.actuators
    assert robot.actuators != robot.with_actuators(robot.actuators[1:]).actuators
    b = RobotBuilder("two")
    place = Transform(coupler.robots.load("four_bar").joints[0].placement.E, np.array([1.0, 2.0, 3.0]))
    b.attach(robot, prefix="left/", at=place)
    b.attach(robot, prefix="right/")
    both = b.build()
    for side in ("left/", "right/"):
        own = both.with_actuators(x for x in both.actuators if x.name.startswith(side))
        at = own.pack_q({f"{side}shoulder": q[0], f"{side}elbow": q[1]})
        A = coupler.actuator_jacobian(own, at)[:, [own.v_slice(f"{side}{x}").start for x in ("shoulder", "elbow")]]
        assert pytest.approx(coupler.actuator_jacobian(robot, q), abs=1e-13) == A


@pytest.mark.parametrize("suffix", [".urdf", ".sdf", ".xml"])
def test_saved_they_are_read_again(suffix: str, tmp_path: Any) -> None:
    robot = driven_arm()
    again = coupler.load(robot.save(tmp_path / f"arm{suffix}"))
    assert again.actuator_names == robot.actuator_names
    for seed in range(3):
        q, _ = robot.random_state(seed)
        other = again.pack_q(robot.joint_positions(q))
        A, B = coupler.actuator_jacobian(robot, q), coupler.actuator_jacobian(again, other)
        assert pytest.approx(A, abs=1e-12) == B
    assert [x.kind for x in again.actuators] == [x.kind for x in robot.actuators]
    assert "belt" in repr(again.actuators[1])


def test_the_size_of_a_winch() -> None:
    """Tensions along a motion, in m and N: they do the work of the weight that is lifted."""
    robot = (
        arm()
        .build()
        .with_actuators(
            [
                Actuator("rope", Cable([("ground", (0.5, 0, 0.6)), ("lower", (0.2, 0, 0))], -1.0)),
                Actuator("twist", Wrench("lower", moment=(0, 1, 0), against="upper")),
            ]
        )
    )
    t = np.linspace(0.0, 1.0, 400)
    way = np.stack([0.3 * np.sin(np.pi * t / 2) ** 2, 0.1 * t], axis=1)
    v, a = (np.gradient(way, t, axis=0), np.gradient(np.gradient(way, t, axis=0), t, axis=0))
    sizing = coupler.size_actuators(robot, t, way, v, a)
    assert sizing.turning == (False, True)
    power = np.einsum("ij,ij->i", coupler.inverse_dynamics(robot, way, v, a), v)
    assert sizing.powers.sum(axis=1) == pytest.approx(power, abs=1e-9 * np.abs(power).max())


REFUSED = [
    (lambda: Cable([("upper", (0, 0, 0))]), "from a point to a point"),
    (lambda: Cable("upper"), "pairs of a body and a point, got 'upper'"),
    (
        lambda: Cable([("upper", (0, 0)), ("lower", (0, 0, 0))]),
        "point 1 of a cable: its point must be 3 finite",
    ),
    (lambda: Cable([("upper", (0, 0, 0)), ("lower", (0, 0, 0))], [1, 2]), "shares of a cable must be"),
    (lambda: Cable([("upper", (0, 0, 0)), ("lower", (0, 0, 0))], 0.0), "its length never changes"),
    (lambda: Cable([Around("upper", 1.0), ("lower", (0, 0, 0))]), "from a point to a point"),
    (lambda: Cable([("upper", (0, 0, 0)), Around("upper", 0.0), ("lower", (0, 0, 0))]), "radius must be above zero"),
    (
        lambda: Cable([("upper", (0, 0, 0)), Around("upper", 1.0, side=(0, 0, 0.5)), ("lower", (0, 0, 0))]),
        "its side is a point within it",
    ),
    (lambda: SliderCrank("ground", "lower", 0.0), "must not be zero"),
    (lambda: SliderCrank("ground", "lower", np.nan), "its rod must be"),
    (lambda: Wrench("lower"), "its force and its moment are both zero"),
    (lambda: Actuator("a", Wrench("lower", (0, 0, 1)), "position", stiffness=1.0), "no position that a servo follows"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_bad_descriptions_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        make()


def test_ends_that_do_not_fit_the_robot_are_refused() -> None:
    robot = arm().build()
    with pytest.raises(ModelError, match=r"actuator 'a': there is no body 'hand'; there are"):
        robot.with_actuators([Actuator("a", Wrench("hand", (0, 0, 1)))])
    with pytest.raises(ModelError, match=r"no joint moves 'upper' relative to each other"):
        robot.with_actuators([Actuator("a", Cable([("upper", (0, 0, 0)), ("upper", (1, 0, 0))]))])


def test_a_rod_that_is_too_short_is_told() -> None:
    robot = arm().build().with_actuators([Actuator("a", SliderCrank("ground", "lower", 0.01, axis=(0, 1, 0)))])
    for compute in (
        lambda: coupler.actuator_positions(robot, robot.neutral()),
        lambda: coupler.forward_dynamics(robot, robot.neutral(), np.zeros(2), motors=[1.0]),
    ):
        with pytest.raises(ModelError, match=r"no finite result.*the rod of 'a' too short"):
            compute()
    with pytest.raises(ModelError, match=r"the rod of 'a' too short"):
        Simulation(robot, 1e-3).step(motors=[1.0])
