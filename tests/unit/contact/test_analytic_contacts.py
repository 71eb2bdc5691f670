"""Impacts whose outcome is known: bouncing and colliding balls, a rod that lands on one end, a ball with spin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import ArrayLike

from coupler.contact.pairs import Pair, pairs_of
from coupler.contact.restitution import Restitution
from coupler.inertia import mass_matrix_solve
from coupler.kinematics import kinetic_energy, momentum
from coupler.model import Box, Capsule, Free, Plane, Revolute, Robot, RobotBuilder, Sphere
from coupler.rotation import matrix_from_quaternion
from effort import sweep
from reference.stepping import Impulses, Stepped, contact_impulses, contact_step

G, RADIUS, MASS = 9.81, 0.05, 2.0
FORMS = ["velocity", "impulse"]


@cache
def balls(count: int = 1, gravity: float = 0.0, friction: float = 0.0, ground: bool = False) -> Robot:
    b = RobotBuilder("balls", (0.0, 0.0, -gravity))
    for i in range(count):
        b.body(f"ball{i}", MASS, inertia=(0.4 * MASS * RADIUS**2,) * 3)
        b.joint(f"free{i}", Free(), "ground", f"ball{i}")
        b.shape(f"ball{i}", Sphere(RADIUS), friction=friction)
    if ground:
        b.shape("ground", Plane())
    return b.build()


def row(xs: ArrayLike, z: float = 0.0) -> np.ndarray:
    """q of balls in a row."""
    return np.concatenate([[x, 0, z, 1, 0, 0, 0] for x in np.asarray(xs)])


def moved(robot: Robot, q: np.ndarray, v: np.ndarray, h: float, steps: int, pairs: Sequence[Pair]) -> Iterator[Stepped]:
    pending = None
    for _ in range(steps):
        done = contact_step(robot, q, v, np.zeros(robot.nv), h, pairs, pending=pending, tolerance=1e-13)
        q, v, pending = done.q, done.v, done.pending
        yield done


def last(steps: Iterator[Stepped]) -> Stepped:
    return list(steps)[-1]


# A ball that bounces


def bounce(e: float, form: str, h: float, height: float, steps: int) -> tuple[np.ndarray, list[float]]:
    """The height above the ground after each step, and the times of impacts, which turn the ball in place."""
    robot = balls(gravity=G, ground=True)
    pairs = pairs_of(robot, restitution=Restitution(e, form=form, in_place=True))
    found = list(moved(robot, row([0], RADIUS + height), np.zeros(6), h, steps, pairs))
    times = [k * h for k, done in enumerate(found, 1) if done.pending is not None and done.pending.any()]
    return np.array([done.q[2] - RADIUS for done in found]), times


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("e", sweep([0.8, 0.5], [0.5]))
def test_heights_of_a_bouncing_ball_converge_with_the_step(e: float, form: str) -> None:
    """Errors halve with h, to 5 %, where the ball always meets the ground in the middle of a step.

    After k steps it has fallen by h² g k (k + 1) / 2, and in the next it would fall by h² g (k + 1).
    """
    errors = []
    for k in (50, 100, 200):
        h = 0.2 / k
        height = h**2 * G * (k + 1) * (k + 1) / 2
        z, times = bounce(e, form, h, height, round(k * (1.0 + 1.3 * e)))
        assert times == [pytest.approx((k + 1) * h)]
        errors.append(z[k:].max() - e**2 * height)
    assert 0.0 < errors[-1] < 0.2 / 200 * 0.2 * G
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("e", sweep([0.8, 0.5], [0.5]))
def test_a_bouncing_ball_keeps_its_times_and_heights(e: float, form: str) -> None:
    """From any height: times √(2 H / g) (1 + 2 e + 2 e² ...) to three steps a bounce, heights e² H to h |v|."""
    h, height = 5e-4, 0.0873
    fall = np.sqrt(2.0 * height / G)
    z, times = bounce(e, form, h, height, round(fall * (1 + 2 * e + 1.2 * e**2) / h))
    assert len(times) == 2
    assert times[0] == pytest.approx(fall, abs=h)
    assert times[1] == pytest.approx(fall * (1 + 2 * e), abs=4 * h)
    for bounces, after in enumerate(times, 1):
        peak = z[round(after / h) :].max() if bounces == 2 else z[round(after / h) : round(times[1] / h)].max()
        assert peak == pytest.approx(e ** (2 * bounces) * height, abs=bounces * h * G * fall)


@pytest.mark.parametrize("form", FORMS)
def test_a_ball_that_loses_nothing_reaches_its_height_again(form: str) -> None:
    """To h² g / 8, by which the highest of the positions after steps may miss the top; and never more."""
    h, height = 1e-3, 0.0517
    z, times = bounce(1.0, form, h, height, 550)
    ends = [round(t / h) for t in times]
    assert len(ends) == 3
    for first, stop in pairwise(ends):
        assert height - h**2 * G / 8 - 1e-12 < z[first:stop].max() < height + 1e-12


@pytest.mark.parametrize("form", FORMS)
def test_a_ball_comes_to_rest_and_does_not_jitter(form: str) -> None:
    h, height = 1e-3, 0.02
    end = np.sqrt(2.0 * height / G) * 3.0  # of infinitely many bounces, with e = 0.5
    robot = balls(gravity=G, ground=True)
    pairs = pairs_of(robot, restitution=Restitution(0.5, form=form, in_place=True))
    found = list(moved(robot, row([0], RADIUS + height), np.zeros(6), h, round(1.3 * end / h), pairs))
    for done in found[round(1.1 * end / h) :]:
        assert np.abs(done.v).max() < 1e-12
        assert done.pending is not None and not done.pending.any()
        assert done.force(h)[2] == pytest.approx(MASS * G, rel=1e-9)
    assert abs(found[-1].q[2] - RADIUS) < 1e-12


# Newton's cradle


@pytest.mark.parametrize("form", FORMS)
def test_in_newtons_cradle_the_last_ball_leaves_with_the_speed_of_the_first(form: str) -> None:
    """Where balls are apart by more than they move in a step, they collide one after the other."""
    robot, h, gap = balls(5), 5e-4, 2e-3
    q, v = row(np.arange(5) * (2 * RADIUS + gap)), np.zeros(30)
    v[3] = 1.0
    done = last(moved(robot, q, v, h, 50, pairs_of(robot, restitution=Restitution(1.0, form=form))))
    speeds = done.v.reshape(5, 6)[:, 3]
    np.testing.assert_allclose(speeds, [0, 0, 0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(momentum(robot, done.q, done.v)[3:], [MASS, 0, 0], atol=1e-12)
    assert kinetic_energy(robot, done.q, done.v) == pytest.approx(0.5 * MASS, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_balls_that_touch_leave_together(form: str) -> None:
    """In place, all are hit at once: the first returns with 3/5, the others go on with 2/5. That keeps energy too."""
    robot = balls(5)
    q, v = row(np.arange(5) * 2 * RADIUS), np.zeros(30)
    v[3] = 1.0
    law = Restitution(1.0, form=form, in_place=True)
    done = last(moved(robot, q, v, 5e-4, 4, pairs_of(robot, restitution=law)))
    np.testing.assert_allclose(done.v.reshape(5, 6)[:, 3], [-0.6, 0.4, 0.4, 0.4, 0.4], atol=1e-11)
    assert kinetic_energy(robot, done.q, done.v) == pytest.approx(0.5 * MASS, rel=1e-11)


# A rod that lands on one end

LENGTH, TILT, SPEED = 1.0, 0.6, 3.0


@cache
def rod() -> Robot:
    b = RobotBuilder("rod", (0.0, 0.0, 0.0))
    moment = MASS * LENGTH**2 / 12.0
    b.body("rod", MASS, inertia=(moment,) * 3)
    b.joint("free", Free(), "ground", "rod")
    b.contact("end", "rod", (0.5 * LENGTH, 0, 0))
    b.shape("ground", Plane(), friction=0.0)
    return b.build()


def landed(robot: Robot, law: Restitution | None, h: float, steps: int) -> tuple[float, float]:
    """How fast a rod turns about y, and its centre rises, that fell without turning, one end being at the ground."""
    q = np.array([0, 0, 0.5 * LENGTH * np.sin(TILT), np.cos(TILT / 2), 0, np.sin(TILT / 2), 0])
    v = np.zeros(6)
    v[3:] = matrix_from_quaternion(q[3:]).T @ [0, 0, -SPEED]
    done = last(moved(robot, q, v, h, steps, pairs_of(robot, restitution=law)))
    return done.v[1], (matrix_from_quaternion(done.q[3:]) @ done.v[3:])[2]


def expected_of_rod(e: float) -> tuple[float, float]:
    """The impulse λ = (1 + e) m v / (1 + 3 cos²), with the lever l cos / 2 and the moment m l² / 12."""
    per_mass = (1.0 + e) * SPEED / (1.0 + 3.0 * np.cos(TILT) ** 2)
    return -6.0 * np.cos(TILT) * per_mass / LENGTH, per_mass - SPEED


def test_a_rod_that_lands_on_one_end_turns_as_it_should() -> None:
    assert landed(rod(), None, 1e-3, 1) == pytest.approx(expected_of_rod(0.0), abs=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("e", [0.6, 1.0])
def test_a_rod_that_rebounds_turns_as_it_should(e: float, form: str) -> None:
    """In place, to first order: it turns between the step that stops its end and the one that throws it back."""
    errors = []
    for h in (1e-4, 5e-5):
        got = landed(rod(), Restitution(e, form=form, in_place=True), h, 2)
        errors.append(np.abs(np.subtract(got, expected_of_rod(e))))
    assert errors[1].max() < 20.0 * 5e-5
    assert (errors[1] < 0.51 * errors[0] + 1e-12).all()
    assert errors[1][0] > 0.49 * errors[0][0]
    assert landed(rod(), Restitution(e, form=form), 1e-3, 1) == pytest.approx(expected_of_rod(e), abs=1e-10)


# A ball with spin


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("e_n", "e_t"), [(1.0, 1.0), (0.8, 0.5), (0.9, 0.0)])
def test_a_ball_with_spin_rebounds_as_it_should(e_n: float, e_t: float, form: str) -> None:
    """A full ball that sticks: its slip s = v_x − r ω_y becomes −e_t s, by λ_t = −(1 + e_t) 2 m s / 7."""
    robot = balls(friction=20.0, ground=True)
    q, (turn, along, down) = row([0], RADIUS), (30.0, 1.5, 2.0)
    v = np.array([0, turn, 0, along, 0, -down])
    law = Restitution(e_n, e_t, form)
    done = last(moved(robot, q, v, 1e-5, 2, pairs_of(robot, restitution=law)))
    R = matrix_from_quaternion(done.q[3:])
    impulse = -(1.0 + e_t) * (along - RADIUS * turn) * 2.0 * MASS / 7.0
    spin = turn - 2.5 * impulse / (MASS * RADIUS)
    assert R @ done.v[:3] == pytest.approx([0, spin, 0], abs=1e-10)
    assert R @ done.v[3:] == pytest.approx([along + impulse / MASS, 0, e_n * down], abs=1e-10)
    if e_n == e_t == 1.0:
        before, after = kinetic_energy(robot, q, v), kinetic_energy(robot, done.q, done.v)
        assert after == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_ball_that_slides_through_its_impact_has_all_the_friction_there_is(form: str) -> None:
    """λ_n = (1 + e) m v, λ_t = µ λ_n against the slip, whatever the tangential restitution."""
    e, friction = 0.7, 0.05
    robot = balls(friction=friction, ground=True)
    v = np.array([0, 0, 0, 3.0, 0, -2.0])
    law = Restitution(e, 0.4, form)
    done = last(moved(robot, row([0], RADIUS), v, 1e-5, 2, pairs_of(robot, friction, law)))
    v = matrix_from_quaternion(done.q[3:]) @ done.v[3:]
    assert friction == pairs_of(robot)[0].friction
    assert v == pytest.approx([3.0 - friction * (1.0 + e) * 2.0, 0, e * 2.0], abs=1e-10)


# What always holds


@cache
def chain_and_ball() -> Robot:
    b = RobotBuilder("chain_and_ball", (0.0, 0.0, 0.0))
    for i in range(3):
        b.body(f"link{i}", 1.0 + i, (0.2, 0, 0), (0.02, 0.03, 0.04))
        b.shape(f"link{i}", Capsule(0.04, 0.3), friction=0.4, group=1, meets=2)
        if i:
            b.joint(f"hinge{i}", Revolute(axis=(0, 1, 1)), f"link{i - 1}", f"link{i}", (0.4, 0, 0))
    b.body("ball", MASS, inertia=(0.01,) * 3)
    b.shape("ball", Sphere(0.1), friction=0.4, group=2, meets=1)
    b.joint("chain", Free(), "ground", "link0")
    b.joint("ball", Free(), "ground", "ball")
    return b.build()


@pytest.mark.parametrize("form", FORMS)
def test_a_chain_and_a_ball_keep_their_momentum_when_they_collide(form: str) -> None:
    """Impulses change none of it, the moment about the origin included. (Steps do: see study 002-fig8.)"""
    robot = chain_and_ball()
    pairs = pairs_of(robot, restitution=Restitution(0.8, 0.3, form, in_place=True))
    q = robot.pack_q({"chain": [0, 0, 0, 1, 0, 0, 0], "ball": [0.5, 0.05, 0.35, 1, 0, 0, 0]})
    v = robot.pack_v({"chain": [0.1, -0.3, 0.2, 0, 0, 1.0], "hinge1": 0.5, "ball": [1, 2, 3, 0, 0, -2.0]})
    h, pending, rebounds = 1e-3, None, 0
    for _ in range(150):
        hit: Impulses = contact_impulses(robot, q, v, np.zeros(robot.nv), h, pairs, pending=pending)
        change = momentum(robot, q, mass_matrix_solve(robot, q, hit.rows.T @ hit.solution.impulses))
        assert np.abs(change).max() <= 1e-12
        done = contact_step(robot, q, v, np.zeros(robot.nv), h, pairs, pending=pending)
        rebounds += pending is not None and bool(pending.any())
        q, v, pending = done.q, done.v, done.pending
    assert rebounds > 0


@pytest.mark.parametrize("form", FORMS)
def test_balls_that_collide_keep_their_momentum_through_all_steps(form: str) -> None:
    robot = balls(2, friction=0.5)
    q, v = row([0, 0.15]), np.zeros(12)
    q[9], v[3], v[1], v[9] = 0.03, 2.0, 10.0, -0.5
    before = momentum(robot, q, v)
    pairs = pairs_of(robot, restitution=Restitution(0.8, 0.5, form))
    done = last(moved(robot, q, v, 1e-3, 60, pairs))
    assert np.linalg.norm(done.v - v) > 1.0
    np.testing.assert_allclose(momentum(robot, done.q, done.v)[3:], before[3:], atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tangential", [0.0, 1.0])
def test_energy_never_grows_in_an_impact(form: str, tangential: float) -> None:
    """Of boxes on one corner, turned at random, with friction; e is the same along normal and tangents, or not."""
    rng = np.random.default_rng(3)
    b = RobotBuilder("corner", (0.0, 0.0, 0.0))
    b.body("box", MASS, inertia=(0.02, 0.03, 0.04))
    b.joint("free", Free(), "ground", "box")
    b.shape("box", Box((0.3, 0.4, 0.5)))
    b.shape("ground", Plane(), friction=0.3)
    robot, hits = b.build(), 0
    for _ in range(40):
        e = rng.uniform()
        pairs = pairs_of(robot, restitution=Restitution(e, tangential * e, form))
        q, v = robot.random_state(rng)
        corners = [touch.contact.gap for touch in contact_impulses(robot, q, v, np.zeros(6), 1e-6, pairs).touches]
        q[2] -= min(corners)
        energies = [kinetic_energy(robot, q, v)]
        for done in moved(robot, q, v, 1e-7, 2, pairs):
            energies.append(kinetic_energy(robot, done.q, done.v))
            hits += bool(done.solution.impulses.any())
        assert energies[-1] <= energies[0] * (1.0 + 1e-6)  # turns within a step leave h |ω|
    assert hits > 15
