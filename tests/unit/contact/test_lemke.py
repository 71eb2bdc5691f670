"""Lemke's method: plain complementarity problems, and polyhedral cones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from coupler.contact import Bilateral, Bounded, Cone, ContactProblem, Status, Unilateral, residual, solve
from coupler.contact.solvers.lemke import lemke_lcp
from coupler.model import ModelError


def assert_complementary(M: np.ndarray, q: np.ndarray, tolerance: float = 1e-10) -> None:
    z, _, status, _ = lemke_lcp(M, q)
    w = M @ z + q
    assert status is Status.SOLVED
    assert z.min(initial=0.0) >= 0.0
    assert w.min(initial=0.0) >= -tolerance
    assert np.abs(z * w).max(initial=0.0) <= tolerance


@pytest.mark.parametrize("seed", range(20))
def test_p_matrices_have_their_solution_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    B, S = rng.normal(size=(2, n, n))
    M = B @ B.T / n + 0.1 * np.eye(n) + S - S.T  # positive definite, not symmetric: a P-matrix
    assert_complementary(M, rng.normal(size=n))


@pytest.mark.parametrize("seed", range(20))
def test_degenerate_semidefinite_problems_do_not_cycle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    J = rng.integers(-1, 2, size=(12, 4)).astype(float)
    M = J @ J.T
    q = -M @ rng.integers(0, 2, size=12)  # solvable with w = 0: many ratios tie
    assert_complementary(M, q)
    assert lemke_lcp(M, q)[3] < 60


def test_equal_rows_tie_and_are_solved() -> None:
    assert_complementary(np.ones((6, 6)), -np.ones(6))


def test_a_circulant_matrix_whose_ratios_all_tie_is_solved() -> None:
    M = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])
    z, _, status, _ = lemke_lcp(M, -np.ones(3))
    assert status is Status.SOLVED
    np.testing.assert_allclose(z, 1.0 / 3.0, atol=1e-15)


def test_nothing_to_do_takes_no_pivot() -> None:
    z, _, status, pivots = lemke_lcp(-np.eye(2), np.array([1.0, 0.0]))
    assert (status, pivots) == (Status.SOLVED, 0)
    np.testing.assert_array_equal(z, 0.0)
    assert lemke_lcp(np.zeros((0, 0)), np.zeros(0))[2] is Status.SOLVED


def test_an_infeasible_problem_is_proven_so() -> None:
    M = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert lemke_lcp(M, np.array([-1.0, 0.5]))[2] is Status.INFEASIBLE


def test_a_ray_that_proves_nothing_says_so() -> None:
    """w₁ = −z₁ + 2 z₂ − 1 and w₂ = 1 can both be positive, but complementarity asks for z₂ = 0 and then w₁ < 0."""
    M = np.array([[-1.0, 2.0], [0.0, 0.0]])
    assert (M @ (0.0, 1.0) + (-1.0, 1.0)).min() > 0.0
    assert lemke_lcp(M, np.array([-1.0, 1.0]))[2] is Status.RAY


def test_spent_pivots_are_told() -> None:
    assert lemke_lcp(np.eye(5), -np.arange(1.0, 6.0), iterations=3)[2] is Status.LIMIT
    problem = ContactProblem(np.eye(3), np.array([-1.0, 2.0, 0.5]), [Cone(0.5)])
    assert solve(problem, "lemke", iterations=1).status is Status.LIMIT


def test_fewer_than_three_directions_are_refused() -> None:
    problem = ContactProblem(np.eye(3), np.zeros(3), [Cone(0.5)])
    with pytest.raises(ModelError, match="2 directions of friction do not span a plane"):
        solve(problem, "lemke", directions=2)


def shortfall(lam: np.ndarray, w: np.ndarray) -> float:
    """What friction dissipates less than it could, relative to that."""
    return float(1.0 + lam[1:] @ w[1:] / (0.2 * lam[0] * np.linalg.norm(w[1:])))


def sliding(rng: np.random.Generator) -> ContactProblem:
    J = rng.normal(size=(3, 5))
    problem = ContactProblem(J @ J.T, np.append(-1.0, 8.0 * rng.normal(size=2)), [Cone(0.2)])
    assert np.linalg.norm(solve(problem).velocities[1:]) > 0.1
    return problem


@pytest.mark.parametrize("directions", [4, 8, 32])
def test_a_polyhedral_cone_misses_dissipation_by_its_angle_squared(directions: int) -> None:
    """The best of η directions is within π/η of the slip's, so that power falls short by 1 − cos(π/η) at most."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        solution = solve(sliding(rng), "lemke", directions=directions)
        missed = shortfall(solution.impulses, solution.velocities)
        assert -1e-12 <= missed <= 1.0 - np.cos(np.pi / directions) + 1e-12


def test_polyhedral_cones_converge_to_the_round_one() -> None:
    """The slip's velocity by 1/η, being within half an angle between directions; what friction dissipates by 1/η²."""
    rng = np.random.default_rng(4)
    problems = [sliding(rng) for _ in range(24)]
    exact = [solve(problem).velocities for problem in problems]
    velocity, short = [], []
    for directions in (8, 32, 128):
        solutions = [solve(problem, "lemke", directions=directions) for problem in problems]
        velocity.append(np.mean([np.abs(s.velocities - w).max() for s, w in zip(solutions, exact, strict=True)]))
        short.append(np.mean([shortfall(s.impulses, s.velocities) for s in solutions]))
    assert all(2.0 < coarse / fine < 8.0 for coarse, fine in pairwise(velocity))
    assert all(8.0 < coarse / fine < 32.0 for coarse, fine in pairwise(short))


@pytest.mark.parametrize("seed", range(15))
def test_without_friction_it_is_exact(seed: int) -> None:
    """Limits, joint friction of all kinds of bounds, redundant constraints and contacts, also where A is singular."""
    rng = np.random.default_rng(seed)
    bounds = [(-0.1, 0.2), (-np.inf, 0.1), (-0.1, np.inf), (-np.inf, np.inf), (0.05, 0.05)]
    blocks = [Unilateral()] * 3 + [Bounded(*pair) for pair in bounds] + [Bilateral()] * 2 + [Cone(0.0), Cone(0.0, 0.0)]
    J = rng.normal(size=(17, 20))
    J[9] = J[8]  # the same constraint twice
    problem = ContactProblem(J @ J.T / 20.0, J @ rng.normal(size=20), blocks)
    solution = solve(problem, "lemke")
    assert solution.status is Status.SOLVED
    assert residual(problem, solution.impulses).total < 1e-11
    np.testing.assert_allclose(solution.velocities, solve(problem, "admm").velocities, rtol=0, atol=1e-8)
    np.testing.assert_allclose(solution.velocities[[6, 8, 9]], 0.0, atol=1e-12)
    assert solution.impulses[7] == pytest.approx(0.05, rel=0, abs=1e-12)
