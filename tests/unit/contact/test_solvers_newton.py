"""Newton's steps at the end of a solver."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.contact import Bounded, Cone, ContactProblem, Unilateral, residual, solve
from coupler.contact.solvers.newton import polished


def problem_of(seed: int) -> ContactProblem:
    """Redundant contacts, with torsion and without, a limit and joint friction."""
    rng = np.random.default_rng(seed)
    blocks = [Cone(0.4), Cone(0.3, 0.1), Cone(0.8, 0.05), Unilateral(), Bounded(-0.1, 0.2)]
    J = rng.normal(size=(13, 10))
    return ContactProblem(J @ J.T, J @ rng.normal(size=10), blocks)


@pytest.mark.parametrize("seed", range(10))
def test_a_rough_solution_becomes_exact_within_few_steps(seed: int) -> None:
    problem = problem_of(seed)
    rough = solve(problem, "admm", tolerance=1e-5)
    impulses, error = polished(problem, rough.impulses, 1e-13, iterations=4)
    assert error < 1e-12
    assert error == residual(problem, impulses).total


def test_impulses_from_which_no_step_leads_on_come_back_as_they_were() -> None:
    opposed = np.array([[1.0, -1.0], [-1.0, 1.0]])
    problem = ContactProblem(opposed, np.array([-1.0, -0.5]), [Unilateral()] * 2)  # infeasible
    start = np.array([1.0, 1.0])
    impulses, error = polished(problem, start, 1e-10)
    np.testing.assert_array_equal(impulses, start)
    assert error == residual(problem, start).total


def test_what_is_solved_is_left_alone() -> None:
    problem = problem_of(0)
    solution = solve(problem)
    assert polished(problem, solution.impulses, 1e-9)[0] is solution.impulses
