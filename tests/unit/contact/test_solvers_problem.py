"""The contact problem's own checks, and its residual."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.contact import Bilateral, Block, Bounded, Cone, ContactProblem, Unilateral, residual, solve
from coupler.model import ModelError


def contact(b: tuple[float, ...], friction: float = 0.5) -> ContactProblem:
    """A contact of a point of 2 kg."""
    return ContactProblem(0.5 * np.eye(3), np.array(b), [Cone(friction)])


@pytest.mark.parametrize(
    ("A", "b", "blocks", "message"),
    [
        (np.eye(2), np.zeros(3), [Cone(0.5)], r"A has shape \(2, 2\); the blocks' rows make it \(3, 3\)"),
        (np.eye(3), np.zeros(2), [Cone(0.5)], r"b has shape \(2,\)"),
        (np.eye(1), ["fast"], [Unilateral()], "b must be numbers"),
        (np.eye(2), [0.0, np.nan], [Unilateral(), Bilateral()], r"block 1 \(Bilateral\), row 1: .* finite"),
        (np.diag([1.0, np.inf]), [0.0, 0.0], [Unilateral(), Bilateral()], r"block 1 .* finite"),
        (
            np.diag([1.0, 1.0, 1.0, -1.0]),
            np.zeros(4),
            [Unilateral(), Cone(1.0)],
            r"block 1 \(Cone\), row 3: .*negative",
        ),
        (np.array([[1.0, 0.1], [0.2, 1.0]]), np.zeros(2), [Unilateral()] * 2, "block 0 .* symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2), [Unilateral()] * 2, "block 0 .* positive semidefinite"),
        (np.eye(3), np.zeros(3), [Cone(-0.1)], r"block 0 \(Cone\): friction -0.1 must be"),
        (np.eye(4), np.zeros(4), [Cone(0.1, np.nan)], r"block 0 \(Cone\): torsion nan must be"),
        (
            np.eye(1),
            np.zeros(1),
            [Bounded(1.0, -1.0)],
            r"block 0 \(Bounded\): lower 1.0 and upper -1.0 must be in order",
        ),
        (np.eye(1), np.zeros(1), [Bounded(np.nan, 1.0)], r"block 0 \(Bounded\)"),
        (np.eye(1), np.zeros(1), [0.5], "block 0 is a float, not a block such as Cone"),
    ],
)
def test_what_is_no_contact_problem_is_refused_by_name(A: Any, b: Any, blocks: list[Block], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ContactProblem(A, b, blocks)


def test_a_start_of_another_shape_or_not_finite_is_refused() -> None:
    with pytest.raises(ModelError, match=r"start has shape \(2,\)"):
        solve(contact((0, 0, 0)), start=np.zeros(2))
    with pytest.raises(ModelError, match="start must be finite"):
        solve(contact((0, 0, 0)), start=np.array([np.nan, 0.0, 0.0]))


def test_the_arrays_are_the_problems_own() -> None:
    A, b = np.eye(1), np.array([-1.0])
    problem = ContactProblem(A, b, [Unilateral()])
    A[0, 0], b[0] = 9.0, 9.0
    assert solve(problem).impulses[0] == pytest.approx(1.0, rel=1e-12)


def test_the_residual_of_a_solution_is_zero() -> None:
    problem = contact((-1.0, 3.0, 4.0))  # slides along (3, 4): λ_n = 2, λ_t = 1
    assert residual(problem, np.array([2.0, -0.6, -0.8])).total < 1e-15


def test_the_residual_is_the_velocity_that_is_left() -> None:
    error = residual(contact((-1.0, 0.0, 0.0)), np.array([1.5, 0.0, 0.0]))  # w_n = −0.25
    assert (error.cone, error.complementarity, error.dissipation) == (0.0, 0.25, 0.0)
    error = residual(contact((0.3, 0.0, 0.0)), np.array([0.4, 0.0, 0.0]))  # λ_n alone makes 0.2, w_n = 0.5
    assert error.complementarity == pytest.approx(0.2, abs=1e-15)


def test_the_residual_tells_friction_outside_its_cone_from_friction_askew() -> None:
    problem = contact((-1.0, 3.0, 4.0))
    outside = residual(problem, np.array([2.0, -1.2, -1.6]))  # twice too much
    assert outside.cone == pytest.approx(0.5, abs=1e-15)
    askew = residual(problem, np.array([2.0, -1.0, 0.0]))
    assert askew.cone == 0.0
    assert askew.complementarity < 1e-15
    assert askew.dissipation > 0.1


def test_the_residual_of_an_impulse_that_pulls_is_its_velocity() -> None:
    assert residual(contact((1.0, 0.0, 0.0)), np.array([-0.2, 0.0, 0.0])).cone == pytest.approx(0.1, abs=1e-15)


@pytest.mark.parametrize(("impulse", "b", "holds"), [(0.2, -0.3, True), (0.2, 0.3, False), (-0.1, 0.3, True)])
def test_friction_of_a_joint_at_its_bound_opposes_motion(impulse: float, b: float, holds: bool) -> None:
    problem = ContactProblem(np.eye(1), np.array([b]), [Bounded(-0.1, 0.2)])
    assert (residual(problem, np.array([impulse])).total < 1e-15) == holds


def test_an_unknown_method_is_refused_and_the_known_ones_listed() -> None:
    with pytest.raises(
        ModelError, match="method must be one of 'admm', 'bisection', 'cascade', 'gauss_seidel', 'lemke', got 'guess'"
    ):
        solve(contact((0, 0, 0)), "guess")
