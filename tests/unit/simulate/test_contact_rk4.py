"""Steps with contact by the method of Runge and Kutta, and how overlaps count."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from coupler.contact.formulations import contact_rows, touches
from coupler.contact.laws import gap_seen
from coupler.contact.pairs import pairs_of
from coupler.contact.restitution import Restitution
from coupler.dynamics import forward_dynamics
from coupler.graph import symbols
from coupler.inertia import mass_matrix_solve
from coupler.kinematics import kinetic_energy, potential_energy
from coupler.model import Capsule, Free, ModelError, Planar, Plane, Prismatic, Revolute, Robot, RobotBuilder, Sphere
from coupler.rotation import matrix_from_quaternion
from coupler.simulate.integrators import rk4
from effort import sweep
from reference.rk4 import StageLoads, rk4_contact_step
from reference.stepping import contact_step

G = 9.81


@cache
def arms() -> Robot:
    """Two floating arms of two links above a plane, with capsules and spheres that may touch."""
    b = RobotBuilder("arms")
    for side in "ab":
        b.body(f"{side}0", 1.0, (0.2, 0, 0), (0.02, 0.03, 0.04))
        b.body(f"{side}1", 2.0, (0.2, 0, 0), (0.02, 0.03, 0.04))
        b.joint(f"{side}0", Free(), "ground", f"{side}0")
        b.joint(f"{side}1", Revolute(axis=(0, 1, 1)), f"{side}0", f"{side}1", (0.4, 0, 0))
        b.shape(f"{side}0", Capsule(0.05, 0.3))
        b.shape(f"{side}1", Sphere(0.1))
    b.shape("ground", Plane())
    return b.build()


@cache
def leaning() -> Robot:
    """A thin rod of 1 kg and 1 m in a plane, one end of which slides on the ground without friction."""
    b = RobotBuilder("leaning")
    b.body("rod", 1.0, inertia=(1 / 12, 1 / 12, 1 / 12))
    b.joint("base", Planar(normal=(0, 1, 0)), "ground", "rod")  # z, x, angle
    b.contact("end", "rod", (0.5, 0, 0))
    b.shape("ground", Plane(), friction=0.0)
    return b.build()


def slid(step: Callable[..., object], h: float, **options: object) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """The rod after it has fallen from 1 rad for 0.3 s, and the gaps on the way."""
    robot = leaning()
    q, v, pairs, gaps = np.array([0.5 * np.sin(1.0), 0.0, 1.0]), np.zeros(3), pairs_of(robot), []
    for _ in range(round(0.3 / h)):
        done = step(robot, q, v, np.zeros(3), h, pairs, **options)
        q, v = done.q, done.v  # type: ignore[attr-defined]
        gaps.append(q[0] - 0.5 * np.sin(q[2]))
    return q, v, gaps


@pytest.mark.parametrize(
    ("penetration", "seen"),
    [("position", -3e-3), ("velocity", 0.0), ("limited", -1e-5), (-1e-4, -1e-4), (0, 0.0), (-np.inf, -3e-3)],
)
def test_overlaps_count_as_chosen_and_gaps_as_they_are(penetration: str | float, seen: float) -> None:
    np.testing.assert_array_equal(gap_seen(np.array([-3e-3, -1e-6, 0.2]), penetration), [seen, max(-1e-6, seen), 0.2])


def test_gaps_may_be_nodes() -> None:
    (gap,) = symbols("gap", 1)
    assert gap_seen(gap, "position") is gap
    assert "max" in repr(gap_seen(gap, "limited"))


@pytest.mark.parametrize(
    ("penetration", "told"),
    [
        ("deep", "penetration must be one of 'position', 'velocity', .* got 'deep'"),
        (1e-3, "0 m or less"),
        (None, "a number"),
    ],
)
def test_other_ways_to_count_are_refused(penetration: object, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        gap_seen(0.0, penetration)  # type: ignore[arg-type]


def test_forces_on_bodies_are_those_at_contacts() -> None:
    """Accelerations that they cause are H⁻¹ Jᵀ F, between bodies and on the ground, moments of torsion included."""
    robot, rng = arms(), np.random.default_rng(1)
    q, v = robot.random_state(rng)
    found = touches(robot, q, pairs_of(robot, torsion=0.1))
    forces, frames = rng.normal(size=4 * len(found)), [touch.contact.frame for touch in found]
    by_contact = [*zip(forces.reshape(-1, 4), frames, strict=True)]
    acting = [frame.T @ own[:3] for own, frame in by_contact], [own[3] * frame[0] for own, frame in by_contact]
    f_ext = StageLoads(robot, q, v, 1e-3, found, [frame[0] for frame in frames], *acting).loads(q)
    tau = rng.normal(size=robot.nv)
    change = forward_dynamics(robot, q, v, tau, f_ext) - forward_dynamics(robot, q, v, tau)
    expected = mass_matrix_solve(robot, q, contact_rows(robot, q, found).T @ forces)
    np.testing.assert_allclose(change, expected, atol=1e-11 * np.abs(expected).max())
    assert {touch.pair.other.body for touch in found} >= {"ground", "b1"}


def test_without_contact_it_is_the_method_of_runge_and_kutta() -> None:
    robot = arms()
    q, v = robot.random_state(np.random.default_rng(2))
    for joint in ("a0", "b0"):
        q[robot.q_slice(joint)][:3] = [0, {"a0": 0, "b0": 9}[joint], 5]
    done = rk4_contact_step(robot, q, v, np.zeros(robot.nv), 1e-3, pairs_of(robot))
    for got, expected in zip((done.q, done.v), rk4(robot, q, v, np.zeros(robot.nv), 1e-3), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-13)


@pytest.mark.parametrize("penetration", ["position", "velocity", "limited"])
def test_a_contact_that_slides_does_not_sink(penetration: str) -> None:
    """Velocities after the step are seen where it leads to: else it would sink by 1e-3 m here."""
    _, _, gaps = slid(rk4_contact_step, 1e-3, penetration=penetration)
    assert np.abs(gaps).max() < 2e-6


def test_a_rod_that_slides_down_keeps_its_energy_and_its_place() -> None:
    """Its centre falls straight. Errors of energy are of third order, and 1e-5 of those of Euler's method."""
    robot, errors = leaning(), []
    for step, h in ((rk4_contact_step, 2e-3), (rk4_contact_step, 1e-3), (contact_step, 1e-3)):
        q, v, _ = slid(step, h)
        assert abs(q[1]) < 1e-12 and abs(v[1]) < 1e-12
        errors.append(abs(kinetic_energy(robot, q, v) + potential_energy(robot, q) - 0.5 * np.sin(1.0) * G))
    assert errors[0] / errors[1] == pytest.approx(8.0, rel=0.05)
    assert errors[1] < 1.5e-7
    assert errors[2] > 1e4 * errors[1]


def test_contacts_rebound_as_with_eulers_method() -> None:
    """A ball without gravity, at the ground: thrown back in a step; in place, it is stopped first."""
    b = RobotBuilder("ball", (0.0, 0.0, 0.0))
    b.body("ball", 1.0, inertia=(0.004,) * 3)
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1))
    b.shape("ground", Plane())
    robot = b.build()
    for in_place, expected in ((False, [1.4, 1.4, 1.4]), (True, [0.0, 1.4, 1.4])):
        pairs = pairs_of(robot, restitution=Restitution(0.7, in_place=in_place))
        q, v, pending = robot.pack_q({"free": [0, 0, 0.1, 1, 0, 0, 0]}), np.array([0, 0, 0, 0, 0, -2.0]), None
        speeds = []
        for _ in range(3):
            done = rk4_contact_step(robot, q, v, np.zeros(6), 1e-3, pairs, pending=pending)
            q, v, pending = done.q, done.v, done.pending
            speeds.append(v[5])
        assert speeds == pytest.approx(expected, abs=1e-12)


# Limits and dry friction of joints


@cache
def slider(**options: Any) -> Robot:
    """2 kg along x, without gravity."""
    b = RobotBuilder("slider", (0.0, 0.0, 0.0))
    b.body("block", 2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(axis=(1, 0, 0), **options), "ground", "block")
    return b.build()


def ran(robot: Robot, q: float, v: float, tau: float, h: float, steps: int, **options: Any) -> np.ndarray:
    """(steps, 2): position and velocity of a robot with one joint, step by step."""
    found, state = [], (np.array([q]), np.array([v]))
    for _ in range(steps):
        done = rk4_contact_step(robot, *state, np.array([tau]), h, [], **options)
        state = done.q, done.v
        found.append((done.q[0], done.v[0]))
    return np.array(found)


@pytest.mark.parametrize("start", sweep([0.0, 0.013, 0.17, 0.19], [0.013]))
@pytest.mark.parametrize(("penetration", "back"), [("position", 1.5), ("velocity", 0.0), ("limited", 1e-3)])
def test_a_joint_that_runs_into_its_limit_goes_beyond_by_half_a_step_at_most(
    penetration: str, back: float, start: float
) -> None:
    """At 3 m/s and 0.01 s, 0.015 m, wherever in the step it meets the limit.

    At position level it then bounces, with up to half of its speed; at velocity level it stays where it is; what is
    limited to 1e-5 m comes back by that in each step.
    """
    robot, h, speed = slider(lower=-1.0, upper=0.2), 0.01, 3.0
    steps = 1700 if penetration == "limited" else 300
    q, v = ran(robot, start, speed, 0.0, h, steps, penetration=penetration).T
    first = int(np.argmax(q > 0.2))
    assert 0.0 < (q - 0.2).max() <= h * speed / 2 + 1e-12
    assert (-1.0 - q).max() <= h * back / 2 + 1e-12  # the other limit, at the speed of what bounces
    assert np.abs(v[first + 2 :]).max() <= back + 1e-9
    if penetration == "velocity":
        np.testing.assert_allclose(q[first + 2 :], 0.2 + h * speed / 2, rtol=0, atol=1e-12)
    if penetration == "limited":
        assert np.diff(q[first + 2 :]) == pytest.approx(-1e-5, abs=1e-12)
        assert q[-1] < 0.2


@pytest.mark.parametrize(("penetration", "rest"), [("position", 0.0), ("velocity", 0.0162), ("limited", 0.0)])
def test_a_joint_that_is_pressed_against_its_limit_comes_to_rest(penetration: str, rest: float) -> None:
    """8 N on 2 kg, from 0.2 m away at 3 m/s: at the limit, or as far beyond it as the first step led."""
    steps = 2000 if penetration == "limited" else 400
    q, v = ran(slider(upper=0.2), 0.0, 3.0, 8.0, 0.01, steps, penetration=penetration).T
    np.testing.assert_allclose(q[-50:], 0.2 + rest, rtol=0, atol=1e-12)
    np.testing.assert_allclose(v[-50:], 0.0, atol=1e-12)


def test_limits_can_be_left_out() -> None:
    q, v = ran(slider(upper=0.2), 0.0, 3.0, 0.0, 0.01, 20, limits=False)[-1]
    assert (q, v) == pytest.approx((0.6, 3.0), abs=1e-12)


def test_dry_friction_slows_a_joint_by_its_force_over_the_mass_and_holds_it() -> None:
    """Along a parabola, exactly, but for the step in which it stops: there it goes on with half of what it had."""
    robot, h, rate = slider(friction=3.0), 0.01, 1.5
    q, v = ran(robot, 0.0, 0.1, 0.0, h, 9).T
    times = h * np.arange(1, 10)
    np.testing.assert_allclose(v, np.maximum(0.1 - rate * times, 0.0), rtol=0, atol=1e-14)
    np.testing.assert_allclose(q[:6], (0.1 * times - rate * times**2 / 2)[:6], rtol=0, atol=1e-15)
    np.testing.assert_allclose(q[6:], q[5] + h * v[5] / 2, rtol=0, atol=1e-15)
    np.testing.assert_allclose(ran(robot, 0.0, 0.0, 2.9, h, 5), 0.0, atol=1e-14)
    np.testing.assert_allclose(ran(robot, 0.0, 0.0, 3.1, h, 5)[:, 1], 0.05 * times[:5], rtol=1e-9)


def test_dry_friction_behind_a_loop_takes_its_force_times_the_way() -> None:
    """Of fourth order, because it acts by the loop of each stage: else it would be of first, and 1e-2 J here."""
    b = RobotBuilder("cam", (0.0, 0.0, 0.0))
    for name, kind in {"crank": Revolute(axis=(0, 0, 1)), "slide": Prismatic(axis=(1, 0, 0), friction=0.5)}.items():
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, kind, "ground", name)
    b.couple("cam", ["crank", "slide"], lambda q: np.array([q[0], q[0] + 0.5 * np.sin(q[0])]), ["crank"])
    robot, errors = b.build(), []
    for h in (0.02, 0.01):
        q, v = ran(robot, 0.0, 2.0, 0.0, h, round(1 / h))[-1]
        taken = kinetic_energy(robot, [0.0], [2.0]) - kinetic_energy(robot, [q], [v])
        errors.append(abs(taken - 0.5 * (q + 0.5 * np.sin(q))))
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.1)
    assert errors[1] < 2e-8


def test_limits_and_friction_act_beside_contacts() -> None:
    """A piston of 3 kg that the ground holds from below and a limit from above; friction takes 2 N at most."""
    b = RobotBuilder("piston")
    b.body("rod", 3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slide", Prismatic(lower=0.0, upper=0.1, friction=2.0), "ground", "rod")
    b.shape("rod", Sphere(0.1))
    b.shape("ground", Plane())
    robot = b.build()
    for tau, contact, upper in ((0.0, 3 * G - 2.0, 0.0), (50.0, 0.0, 50.0 - 3 * G - 2.0)):
        done = rk4_contact_step(robot, [0.1], [0.0], [tau], 1e-3, pairs_of(robot, torsion=0.01))
        assert (done.q[0], done.v[0]) == pytest.approx((0.1, 0.0), abs=1e-12)
        impulses = done.solution.impulses  # normal, two tangents, spin; lower and upper limit, friction
        assert impulses.shape == (7,)
        least = np.array([contact, upper]) * 1e-3
        assert (impulses[[0, 5]] >= least - 1e-12).all()
        assert impulses[0] - impulses[5] + impulses[6] == pytest.approx((3 * G - tau) * 1e-3, abs=1e-12)


# Torsion


@pytest.mark.parametrize("torsion", [None, 0.01])
def test_torsion_slows_a_ball_that_spins(torsion: float | None) -> None:
    """By torsion m g / I about the vertical, evenly, until it stops, although its own axes are tilted."""
    b = RobotBuilder("ball")
    b.body("ball", 2.0, inertia=(0.02, 0.02, 0.02))
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1))
    b.shape("ground", Plane(), friction=0.5)
    robot = b.build()
    tilt = np.array([np.cos(0.3), np.sin(0.3), 0.0, 0.0])
    up = matrix_from_quaternion(tilt).T @ [0.0, 0.0, 1.0]
    q, v = robot.pack_q({"free": [0, 0, 0.1, *tilt]}), np.concatenate([0.4 * up, np.zeros(3)])
    spins, h, pairs = [], 1e-3, pairs_of(robot, torsion=torsion)
    for _ in range(60):
        done = rk4_contact_step(robot, q, v, np.zeros(6), h, pairs)
        q, v = done.q, done.v
        spins.append(matrix_from_quaternion(q[3:]) @ v[:3])
    rate = (torsion or 0.0) * 2.0 * G / 0.02
    expected = np.maximum(0.4 - rate * h * np.arange(1, 61), 0.0)
    np.testing.assert_allclose(spins, np.outer(expected, [0, 0, 1]), rtol=0, atol=1e-9)
    np.testing.assert_allclose(q[:3], (0, 0, 0.1), atol=1e-9)
