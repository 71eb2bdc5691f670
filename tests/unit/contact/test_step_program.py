"""The compiled step, against equations of motion, the contact problem in NumPy, and what is known of joints."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from coupler import mass_matrix_solve, robots
from coupler.contact.damping import damped
from coupler.contact.formulations import contact_rows, floating, recursive_problem, touches, unimpeded
from coupler.contact.pairs import Pair, pairs_of
from coupler.contact.residuals import residual
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.step.program import contact_step_program
from coupler.graph import Interpreter, compile
from coupler.mechanisms import gear
from coupler.model import Box, Capsule, Free, Plane, Prismatic, Revolute, Robot, RobotBuilder, Shape, Sphere
from coupler.spatial import Transform
from effort import samples, sweep
from random_robots import place, sample
from reference.integration import fitted_velocities
from reference.stepping import contact_step

H = 1e-3  # s
ROBOTS = ("tree", "floating tree", "revolute loop", "spherical loop afloat", "rod loop", "belt", "series")


class Stepper:
    """A compiled step with its results by name."""

    def __init__(self, robot: Robot, scene: ContactScene, **options: Any) -> None:
        self.robot, self.layout = robot, Layout(robot, scene)
        self.run = compile(contact_step_program(robot, scene), **options)

    def __call__(self, q: Any, v: Any, tau: Any, impulses: Any = None, *others: Any) -> dict[str, np.ndarray]:
        state = self.layout.start(self.robot, np.asarray(q), np.asarray(v))
        state[self.layout.places["impulses"]] = 0.0 if impulses is None else impulses
        after = self.run(state, np.asarray(tau, float), *others)
        return {name: after[place] for name, place in self.layout.places.items()}


def touching(robot: Robot, q: np.ndarray) -> tuple[Robot, tuple[Pair, ...]]:
    """With balls and capsules on some bodies, and a floor that the lowest touches."""
    rng = np.random.default_rng(0)
    some = rng.permutation([body for body in robot.bodies if robot.tree.place[body][0]])[:4]
    shapes = [
        Shape(body, body, (Sphere(0.1), Capsule(0.05, 0.3))[i % 2], place(rng), meets=0) for i, body in enumerate(some)
    ]

    def with_floor(height: float) -> Robot:
        floor = Shape("floor", "ground", Plane(), Transform.translation((0.0, 0.0, height)), friction=0.6, meets=-1)
        return replace(robot, shapes=(floor, *shapes))

    level = with_floor(0.0)
    gaps = sorted(touch.contact.gap for touch in touches(level, q, pairs_of(level)))
    found = with_floor(gaps[0])
    return found, tuple(pairs_of(found))


@pytest.mark.sampled
@pytest.mark.parametrize("name", sweep(ROBOTS, ["revolute loop", "spherical loop afloat", "belt"]))
def test_a_step_keeps_the_equations_of_motion_and_its_impulses_keep_the_laws(name: str) -> None:
    rng, pushed = np.random.default_rng(1), 0
    for seed in range(samples(1, 3)):
        q, v = sample(name).robot.random_state(seed)
        robot, pairs = touching(sample(name).robot, q)
        step = Stepper(robot, ContactScene(pairs, H, limits=False, tolerance=1e-11, sweeps=2000))
        tau = rng.normal(size=robot.nv)
        before = touches(robot, q, pairs)
        J, lowest = contact_rows(robot, q, before), int(np.argmin([touch.contact.gap for touch in before]))
        v = -np.sign((J @ v)[3 * lowest]) * v  # so that it closes
        after = step(q, v, tau)
        problem, found = recursive_problem(robot, q, v, tau, H, pairs)
        contacts = after["impulses"][: 3 * len(found)]
        scale = 1.0 + np.abs(problem.b).max()
        if after["sweeps"] < 2000:
            assert residual(problem, contacts).total < 1e-9 * scale
        large = scale + np.abs(problem.A @ contacts).max()
        assert after["residual"] == pytest.approx(residual(problem, contacts).total, abs=1e-9 * large)
        pushed += int((contacts[::3] > 0.0).sum())
        np.testing.assert_allclose(after["gaps"], [touch.contact.gap for touch in found], atol=1e-12)
        expected = unimpeded(robot, q, v, tau, H) + mass_matrix_solve(damped(robot, H), q, J.T @ contacts)
        expected = fitted_velocities(robot, q, after["q"], expected)
        turned = np.isin(np.arange(robot.nv), [i for x in floating(robot) for i in range(robot.nv)[robot.v_slice(x)]])
        large = 1.0 + np.abs(expected).max()
        np.testing.assert_allclose(after["v"][~turned], expected[~turned], rtol=0.0, atol=1e-9 * large)
        robot.check(after["q"])
    assert pushed > 0


@cache
def standing() -> tuple[Robot, ContactScene, np.ndarray, np.ndarray]:
    """The quadruped with all rotors on its feet, and the angles that its legs hold."""
    floor = Shape("floor", "ground", Plane(), Transform.identity(), friction=0.8)
    robot = replace(robots.load("mini_cheetah"), shapes=(floor,))
    pairs = tuple(pair for pair in pairs_of(robot) if "foot" in pair.one.name)
    bent = {"hip": -0.8, "knee": 1.6}
    legs = {name: angle for name in robot.independent_joints for part, angle in bent.items() if part in name}
    q = robot.pack_q({**legs, "floating_base": [0, 0, 0.29, 1, 0, 0, 0]})
    return robot, ContactScene(pairs, H, tolerance=1e-12), q, q[7:].copy()


def test_a_quadruped_lands_as_in_numpy() -> None:
    robot, scene, q, wanted = standing()
    step, v, impulses = Stepper(robot, scene), np.zeros(robot.nv), np.zeros(12)
    for _ in range(150):
        tau = np.concatenate([np.zeros(6), -60.0 * (q[7:] - wanted) - 4.0 * v[6:]])
        expected = contact_step(robot, q, v, tau, H, scene.pairs, start=impulses, tolerance=1e-13)
        after = step(q, v, tau, impulses)
        np.testing.assert_allclose(after["q"], expected.q, atol=1e-12)
        np.testing.assert_allclose(after["v"], expected.v, atol=1e-9)
        np.testing.assert_allclose(after["impulses"], expected.solution.impulses, atol=1e-10)
        assert after["residual"] < 1e-11
        q, v, impulses = after["q"], after["v"], after["impulses"]
    assert (impulses[::3] > 0.0).all()


def test_states_of_a_batch_and_the_interpreter_step_alike() -> None:
    robot, scene, q, _ = standing()
    program, rng = contact_step_program(robot, scene), np.random.default_rng(0)
    one, batch = compile(program), compile(program, threads=2)
    v = 0.5 * rng.normal(size=(37, robot.nv))
    q = robot.integrate(q - np.eye(1, robot.nq, 2)[0] * 0.02, 0.01 * rng.normal(size=(37, robot.nv)))
    states = np.concatenate([q, v, np.zeros((37, 12))], axis=1)
    tau = rng.normal(size=(37, robot.nv))
    found = batch(states, tau)
    assert (found[:, Layout(robot, scene).places["impulses"]] > 0.0).any()
    for i in range(0, 37, 5):
        np.testing.assert_array_equal(found[i], one(states[i], tau[i]))
    np.testing.assert_allclose(Interpreter(program)(states[:3], tau[:3]), found[:3], rtol=1e-9, atol=1e-9)


def test_loops_stay_closed() -> None:
    leg = robots.load("planar_leg_linkage")
    step = Stepper(leg, ContactScene((), H, limits=False))
    q, v = leg.neutral(), np.array([3.0, -5.0])
    for _ in range(100):
        after = step(q, v, np.zeros(2))
        q, v = after["q"], after["v"]
        assert max(leg.loop_errors(q).values()) < 1e-12
    assert np.abs(leg.difference(leg.neutral(), q)).max() > 0.1


def test_an_open_loop_gives_no_numbers() -> None:
    leg = robots.load("planar_leg_linkage")
    q = leg.neutral()
    q[-1] += 0.1
    assert np.isnan(Stepper(leg, ContactScene((), H, limits=False))(q, np.zeros(2), np.zeros(2))["v"]).all()


# Single joints


@cache
def slider(**options: Any) -> Robot:
    """2 kg along x, without gravity."""
    b = RobotBuilder("slider", (0.0, 0.0, 0.0))
    b.body("block", 2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(axis=(1, 0, 0), **options), "ground", "block")
    return b.build()


def test_a_joint_stops_at_its_limits() -> None:
    robot = slider(lower=-0.1, upper=0.2)
    step = Stepper(robot, ContactScene((), 0.01))
    for speed, end in ((3.0, 0.2), (-3.0, -0.1)):
        q, v = np.zeros(1), np.array([speed])
        for _ in range(20):
            after = step(q, v, [0.0])
            q, v = after["q"], after["v"]
            assert -0.1 - 1e-15 <= q[0] <= 0.2 + 1e-15
        assert q[0] == pytest.approx(end, abs=1e-15)
        assert v[0] == pytest.approx(0.0, abs=1e-14)
    pressed = step(np.array([0.2]), np.zeros(1), [5.0])
    assert pressed["impulses"] == pytest.approx([-0.05], rel=1e-12)  # against the force over the step
    free = step(np.array([0.2]), np.zeros(1), [-5.0])
    assert free["impulses"] == 0.0
    assert free["v"] == pytest.approx([-0.025], rel=1e-12)


def test_a_joint_with_one_limit_goes_on_to_the_other_side() -> None:
    after = Stepper(slider(lower=-0.1), ContactScene((), 0.01))(np.array([50.0]), np.array([100.0]), [0.0])
    assert after["q"] == pytest.approx([51.0])


def test_a_limit_of_a_rotor_stops_the_link_that_it_turns() -> None:
    b = RobotBuilder("geared", (0.0, 0.0, 0.0))
    b.body("link", 1.0, inertia=(0.1, 0.1, 0.1))
    b.body("rotor", 0.1, inertia=(1e-4, 1e-4, 1e-4))
    b.joint("hinge", Revolute(axis=(0, 0, 1)), "ground", "link")
    b.joint("motor", Revolute(axis=(0, 0, 1), upper=6.0), "ground", "rotor")
    b.couple("gear", ["hinge", "motor"], gear(6.0), ["hinge"])
    robot = b.build()
    step = Stepper(robot, ContactScene((), 0.01))
    q, v = np.zeros(1), np.array([4.0])
    for _ in range(40):
        after = step(q, v, np.zeros(1))
        q, v = after["q"], after["v"]
    assert abs(robot.joint_positions(q)["motor"]) == pytest.approx(6.0, abs=1e-12)


def test_dry_friction_slows_a_joint_down_and_holds_it() -> None:
    robot, h = slider(friction=3.0), 0.01
    step = Stepper(robot, ContactScene((), h))
    q, v = np.zeros(1), np.array([0.1])
    for k in range(1, 6):
        after = step(q, v, [0.0])
        q, v = after["q"], after["v"]
        assert v[0] == pytest.approx(0.1 - 1.5 * h * k, abs=1e-14)
    for _ in range(5):
        after = step(q, v, [0.0])
        q, v = after["q"], after["v"]
    assert v[0] == pytest.approx(0.0, abs=1e-14)
    held = step(q, v, [2.9])
    assert held["v"] == pytest.approx(0.0, abs=1e-16)
    assert held["impulses"] == pytest.approx([-0.029], rel=1e-12)
    assert step(q, v, [3.1])["v"] == pytest.approx([0.1 / 2.0 * h], rel=1e-9)


def test_a_strong_damper_does_not_push_too_far() -> None:
    """v⁺ = v / (1 + h d/m), for any d."""
    robot, h = slider(damping=1e6), 0.01
    after = Stepper(robot, ContactScene((), h))(np.zeros(1), np.array([1.0]), [0.0])
    assert after["v"] == pytest.approx([1.0 / (1.0 + h * 1e6 / 2.0)], rel=1e-12)


def test_forces_on_bodies_push_them() -> None:
    robot = slider()
    force = np.zeros((len(robot.bodies), 6))
    force[robot.body_names.index("block"), 3] = 4.0
    after = Stepper(robot, ContactScene((), H, external=True))(np.zeros(1), np.zeros(1), [0.0], None, force.ravel())
    assert after["v"] == pytest.approx([2.0 * H], rel=1e-12)


def test_two_bodies_that_touch_push_each_other() -> None:
    """Through a chain: a fingertip against the palm that carries it, and impulses within the robot leave momentum."""
    b = RobotBuilder("hand", (0.0, 0.0, 0.0))
    b.body("palm", 1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("free", Free(), "ground", "palm")
    b.shape("palm", Box((0.2, 0.2, 0.02)))
    for name, parent, at in (("near", "palm", (0.1, 0, 0.02)), ("far", "near", (0.1, 0, 0))):
        b.body(name, 0.1, (0.05, 0, 0), (1e-4, 1e-4, 1e-4))
        b.joint(name, Revolute(axis=(0, 1, 0)), parent, name, at)
    b.shape("far", Sphere(0.02), at=(0.1, 0.0, 0.0))
    robot = b.build()
    pairs = tuple(pairs_of(robot))
    assert len(pairs) == 1
    q = robot.pack_q({"near": -0.6, "far": -2.6})
    step, v = Stepper(robot, ContactScene(pairs, H, tolerance=1e-12)), robot.pack_v({"far": -20.0, "near": -20.0})
    closed = False
    for _ in range(300):
        expected = contact_step(robot, q, v, np.zeros(robot.nv), H, pairs, tolerance=1e-13)
        after = step(q, v, np.zeros(robot.nv))
        np.testing.assert_allclose(after["v"], expected.v, atol=1e-9)
        closed = closed or bool(after["impulses"][0] > 0.0)
        q, v = after["q"], after["v"]
    assert closed


def test_states_of_a_batch_reach_limits_each_by_itself() -> None:
    """Limits are looked at again only where one is reached, and that by some lanes alone."""
    b = RobotBuilder("arm")
    for name, parent in (("upper", "ground"), ("lower", "upper")):
        b.body(name, 1.0, (0.1, 0, 0), (1e-3, 1e-2, 1e-2))
        b.joint(name, Revolute(axis=(0, 1, 0), lower=-0.5, upper=0.5, friction=0.1), parent, name, at=(0.2, 0, 0))
    b.body("slide", 0.5, inertia=(1e-3, 1e-3, 1e-3))
    b.joint("slide", Prismatic(axis=(1, 0, 0), lower=-0.1, upper=0.1), "lower", "slide", at=(0.2, 0, 0))
    b.shape("slide", Sphere(0.05))
    robot = b.build().with_floor(0.5, height=-0.2)
    scene = ContactScene(tuple(pairs_of(robot)), H, tolerance=1e-12)
    run, layout, rng = compile(contact_step_program(robot, scene)), Layout(robot, scene), np.random.default_rng(0)
    states = np.zeros((24, layout.state))
    states[:, layout.places["q"]] = rng.uniform([-0.5, -0.5, -0.1], [0.5, 0.5, 0.1], size=(24, 3))
    states[::3, 2] = 0.1  # on its limit
    states[:, layout.places["v"]] = rng.normal(size=(24, 3))
    tau, reached = rng.normal(size=(24, 3)), 0
    for _ in range(60):
        after = run(states, tau)
        for i in range(24):
            np.testing.assert_array_equal(after[i], run(states[i], tau[i]))
        limits = after[:, layout.places["impulses"]][:, 3 * layout.contacts :][:, :3]
        assert (after[:, layout.places["q"]] <= [0.5 + 1e-9, 0.5 + 1e-9, 0.1 + 1e-9]).all()
        reached += int((limits != 0.0).any(axis=1).sum())
        states = np.ascontiguousarray(after[:, : layout.state])
    assert 0 < reached < 60 * 24
