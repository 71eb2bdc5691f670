"""Charts around a configuration: they move as robots do, and their rates are those of the motion."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.model import Free, Spherical
from coupler.rotation import dexp_inverse, dexp_inverse_motion
from coupler.simulate.chart import Chart, carried_velocities, fitted
from effort import every
from random_robots import ROBOTS, sample


@pytest.mark.parametrize("name", every(3, ROBOTS))
def test_a_chart_leads_where_the_robot_does(name: str) -> None:
    """Exactly, but in loops without a solution: there no joint decides where the others go, to second order."""
    robot = sample(name).robot
    q, v = robot.random_state(1)
    v = 1e-3 * v  # some are drawn near the ends of their loops
    goal, x = robot.integrate(q, v, 0.1), carried_velocities(robot, q, v)
    found = Chart(robot, q).at(0.1 * x)
    robot.check_closed(found)
    assert np.abs(found - goal).max() < (1e-12 if x.shape == v.shape else 20.0 * np.abs(0.1 * x).max() ** 2)


@pytest.mark.parametrize("name", ["floating tree", "spherical loop afloat", "delta", "idle rod", "four-bar"])
def test_rates_are_those_of_the_motion(name: str) -> None:
    """Moving on along u̇ for a short time ±ε is moving with the carried velocities, orientations in loops included."""
    robot, e = sample(name).robot, 1e-5
    embedding, motion = robot.embedding, robot.states.motion
    entries = np.concatenate([embedding.v_index, embedding.unsolved_entries])
    q0, _ = robot.random_state(1)
    rng, chart, p0 = np.random.default_rng(2), Chart(robot, q0), embedding.positions(q0)
    u, x = 0.1 * rng.normal(size=(2, len(entries)))
    if len(embedding.unsolved_entries):  # to where loops are closed
        u = motion.difference(p0, embedding.positions(chart.at(u)))[entries]
    q = chart.at(u)
    x = fitted(robot, q, x)
    rate = chart.rate(q, u, x)
    ahead, behind = (embedding.positions(chart.at(u + side * e * rate)) for side in (1.0, -1.0))
    found = motion.difference(behind, ahead)[entries] / (2.0 * e)
    assert np.abs(found - x).max() < 1e-9
    assert np.abs(rate - x).max() > 1e-4  # so that this is worth a test


def test_velocities_are_fitted_to_loops() -> None:
    """N Nᵀ w of any w: what loops allow stays as it is, and what is left of others they allow."""
    robot = sample("delta").robot
    q, v = robot.random_state(3)
    x = carried_velocities(robot, q, v)
    np.testing.assert_allclose(fitted(robot, q, x), x, rtol=0, atol=1e-12)
    other = fitted(robot, q, np.random.default_rng(0).normal(size=x.shape))
    np.testing.assert_allclose(carried_velocities(robot, q, other[: robot.nv]), other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 0.5, 0.999, 1.001, 2.0, 3.0, 4.0, 6.0])
def test_rates_of_turns_and_motions_at_all_angles(angle: float) -> None:
    """Exponentials near exp(u) tell the velocity: to 1e-8 by differences."""
    rng, e = np.random.default_rng(3), 1e-6
    turn = rng.normal(size=3)
    u = np.concatenate([angle * turn / np.linalg.norm(turn), rng.normal(size=3)])
    v = rng.normal(size=6)
    for kind, rate, n in ((Spherical(), dexp_inverse, 3), (Free(), dexp_inverse_motion, 6)):
        start, along = kind.neutral(), rate(u[:n], v[:n])
        ahead, behind = (kind.integrate(start, u[:n] + side * e * along) for side in (1.0, -1.0))
        assert np.abs(kind.difference(behind, ahead) / (2.0 * e) - v[:n]).max() < 1e-8


def test_rates_are_the_sum_of_brackets() -> None:
    """v + ½ [u, v] + ¹⁄₁₂ [u, [u, v]] − ¹⁄₇₂₀ [u, [u, [u, [u, v]]]] + ..., below and above the switch of formulas."""
    weights = (1 / 2, 1 / 12, 0, -1 / 720, 0, 1 / 30240, 0, -1 / 1209600, 0, 1 / 47900160, 0, -691 / 1307674368000)
    weights += (0, 1 / 74724249600, 0, -3617 / 10670622842880000, 0, 43867 / 5109094217170944000)
    rng = np.random.default_rng(4)
    for length in (0.01, 0.3, 0.99, 1.01):
        u, v = rng.normal(size=(2, 6))
        u *= length / np.linalg.norm(u[:3])
        total, term = v.copy(), v
        for weight in weights:
            term = np.concatenate([np.cross(u[:3], term[:3]), np.cross(u[:3], term[3:]) + np.cross(u[3:], term[:3])])
            total += weight * term
        assert np.abs(dexp_inverse_motion(u, v) - total).max() < 2e-14 * np.abs(u).max() ** 2 + 1e-14


def test_charts_of_plain_joints_are_sums() -> None:
    robot = coupler.robots.load("geared_chain", links=3)
    q, v = robot.random_state(0)
    chart = Chart(robot, q)
    assert np.array_equal(chart.at(0.1 * v), q + 0.1 * v)
    assert np.array_equal(chart.rate(q, v, v), v)


def test_a_singular_start_is_told() -> None:
    """A parallelogram that lies flat."""
    robot = coupler.robots.load("four_bar")
    with pytest.raises(coupler.ModelError, match=r"the loop 'loop1' of joints .* is singular"):
        carried_velocities(robot, np.zeros(3), np.ones(1))
