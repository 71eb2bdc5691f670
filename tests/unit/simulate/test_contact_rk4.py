"""Steps with contact by the method of Runge and Kutta, and how overlaps count."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from coupler.contact.formulations import contact_rows, touches
from coupler.contact.pairs import pairs_of
from coupler.contact.restitution import Restitution
from coupler.contact.stepping import contact_step, gap_seen
from coupler.dynamics import forward_dynamics
from coupler.graph import symbols
from coupler.inertia import mass_matrix_solve
from coupler.kinematics import kinetic_energy, potential_energy
from coupler.model import Capsule, Free, ModelError, Planar, Plane, Revolute, Robot, RobotBuilder, Sphere
from coupler.simulate.contact_rk4 import contact_forces, rk4_contact_step
from coupler.simulate.integrators import rk4

G = 9.81


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
        ("deep", "penetration: there is no 'deep'; there are 'position', 'velocity'"),
        (1e-3, "0 m or less"),
        (None, "a number"),
    ],
)
def test_other_ways_to_count_are_refused(penetration: object, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        gap_seen(0.0, penetration)  # type: ignore[arg-type]


def test_forces_on_bodies_are_those_at_contacts() -> None:
    """Accelerations that they cause are H⁻¹ Jᵀ F, between bodies and on the ground."""
    robot, rng = arms(), np.random.default_rng(1)
    q, v = robot.random_state(rng)
    found = touches(robot, q, pairs_of(robot))
    forces = rng.normal(size=3 * len(found))
    f_ext = contact_forces(
        robot, found, [t.contact.frame.T @ f for t, f in zip(found, forces.reshape(-1, 3), strict=True)]
    )
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
    assert errors[1] < 1e-7
    assert errors[2] > 1e4 * errors[1]


def test_contacts_rebound_as_with_eulers_method() -> None:
    """A ball without gravity, at the ground: stopped in one step, thrown back in the next."""
    b = RobotBuilder("ball", (0.0, 0.0, 0.0))
    b.body("ball", 1.0, inertia=(0.004,) * 3)
    b.joint("free", Free(), "ground", "ball")
    b.shape("ball", Sphere(0.1))
    b.shape("ground", Plane())
    robot = b.build()
    pairs = pairs_of(robot, restitution=Restitution(0.7))
    q, v, pending = robot.pack_q({"free": [0, 0, 0.1, 1, 0, 0, 0]}), np.array([0, 0, 0, 0, 0, -2.0]), None
    speeds = []
    for _ in range(3):
        done = rk4_contact_step(robot, q, v, np.zeros(6), 1e-3, pairs, pending=pending)
        q, v, pending = done.q, done.v, done.pending
        speeds.append(v[5])
    assert speeds == pytest.approx([0.0, 1.4, 1.4], abs=1e-12)
