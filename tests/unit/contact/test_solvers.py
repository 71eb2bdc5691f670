"""The solvers of contact problems, against solutions by hand and against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from coupler.contact import (
    Bilateral,
    Block,
    Bounded,
    Cone,
    ContactProblem,
    Solution,
    Status,
    Unilateral,
    residual,
    solve,
)
from coupler.model import ModelError
from coupler.spatial import skew

H, G = 0.01, 9.81  # step, s, and gravity, m/s²
ROUND = ["admm", "bisection", "gauss_seidel"]  # solvers on true cones
FRICTION = Cone(0.5)
ALL = [*ROUND, "lemke"]
CORNERS = [(x, y, -0.5) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]


def made(A: Any, b: Any, blocks: Sequence[Block]) -> ContactProblem:
    return ContactProblem(np.array(A, float), np.array(b, float), blocks)


def point_rows(r: Sequence[float] | np.ndarray) -> np.ndarray:
    """Jacobian of normal z and tangents x, y at a point of a body, by its velocity (angular, linear), 3 × 6."""
    axes = np.eye(3)[[2, 0, 1]]
    return np.hstack([-axes @ skew(np.array(r)), axes])


def stack(
    masses: Sequence[float], corners: Sequence[Sequence[float]], friction: float, v: np.ndarray
) -> ContactProblem:
    """Cubes of 1 m on each other and on the ground, touching at corners, moving with v (6 each) and falling."""
    J = np.zeros((len(masses), len(corners), 3, 6 * len(masses)))
    for i in range(len(masses)):
        for k, r in enumerate(corners):
            J[i, k, :, 6 * i : 6 * i + 6] = point_rows(r)
            if i:
                J[i, k, :, 6 * i - 6 : 6 * i] = -point_rows(np.add(r, (0, 0, 1)))
    J = J.reshape(-1, 6 * len(masses))
    inverse = np.concatenate([[6.0 / m] * 3 + [1.0 / m] * 3 for m in masses])
    free = np.array(v, float)
    free[5::6] -= G * H
    return ContactProblem((J * inverse) @ J.T, J @ free, [Cone(friction)] * (len(J) // 3))


def random_problem(rng: np.random.Generator, cone: Cone = FRICTION) -> ContactProblem:
    """One to six contacts that close, a limit, joint friction and a constraint, of a random mechanism."""
    blocks = [cone] * int(rng.integers(1, 7)) + [Unilateral(), Bounded(-0.3, 0.2), Bilateral()]
    n = sum(block.size for block in blocks)
    J, L = rng.normal(size=(n, n + 3)), rng.normal(size=(n + 3, n + 3))
    M = L @ L.T + (n + 3) * np.eye(n + 3)
    b = J @ rng.normal(size=n + 3)
    problem = made(J @ np.linalg.solve(M, J.T), b, blocks)
    b[problem.cones[0].rows[0]] -= 2.0
    return ContactProblem(problem.A, b, blocks)


def assert_solved(problem: ContactProblem, solution: Solution, tolerance: float = 1e-10) -> None:
    """The laws themselves, row by row, apart from the residual."""
    assert solution.status is Status.SOLVED
    assert solution.residual <= tolerance
    assert solution.residual == residual(problem, solution.impulses).total
    lam, w = solution.impulses, solution.velocities
    np.testing.assert_allclose(w, problem.A @ lam + problem.b, rtol=0, atol=1e-12)
    angles = np.linspace(0.0, 2.0 * np.pi, 721)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    size = tolerance * (1.0 + 10.0 * problem.steps.max())  # a residual in m/s, as an impulse
    for block, rows in zip(problem.blocks, problem.rows, strict=True):
        p, u = lam[rows], w[rows]
        match block:
            case Cone(friction, torsion, rolling):
                assert p[0] >= -size and u[0] >= -tolerance and min(p[0], u[0]) <= size
                for own, coefficient in ((slice(1, 3), friction), (slice(4, 6), rolling)):
                    if coefficient is not None:
                        bound = coefficient * p[0]
                        assert np.hypot(*p[own]) <= bound + size
                        power = 1.0 + bound + np.hypot(*u[own])
                        assert u[own] @ p[own] <= (bound * u[own] @ circle).min() + power * size
                if torsion is not None:
                    assert abs(p[3]) <= torsion * p[0] + size
                    assert u[3] * p[3] <= -torsion * p[0] * abs(u[3]) + (1.0 + abs(u[3])) * size
            case Unilateral():
                assert p[0] >= -size and u[0] >= -tolerance and min(p[0], u[0]) <= size
            case Bounded(lower, upper):
                assert lower - size <= p[0] <= upper + size
                assert u[0] >= -tolerance or p[0] >= upper - size
                assert u[0] <= tolerance or p[0] <= lower + size
            case Bilateral():
                assert abs(u[0]) <= tolerance


@pytest.mark.parametrize("method", ALL)
def test_without_rows_there_is_nothing_to_do(method: str) -> None:
    solution = solve(made(np.zeros((0, 0)), np.zeros(0), []), method)
    assert (solution.status, solution.residual, solution.iterations) == (Status.SOLVED, 0.0, 0)


@pytest.mark.parametrize("method", ALL)
def test_a_block_that_is_pushed_too_little_sticks(method: str) -> None:
    m, push = 2.0, 0.4 * G * H  # below µ g h
    solution = solve(made(np.eye(3) / m, [-G * H, push, 0.0], [Cone(0.5)]), method)
    np.testing.assert_allclose(solution.velocities, 0.0, atol=1e-10)
    np.testing.assert_allclose(solution.impulses, (m * G * H, -m * push, 0.0), atol=1e-9)


@pytest.mark.parametrize("method", ALL)
def test_a_sliding_block_slows_by_friction(method: str) -> None:
    m, speed = 2.0, 1.0
    solution = solve(made(np.eye(3) / m, [-G * H, speed, 0.0], [Cone(0.5)]), method)
    np.testing.assert_allclose(solution.velocities, (0.0, speed - 0.5 * G * H, 0.0), atol=1e-10)


@pytest.mark.parametrize("method", ROUND)
def test_friction_opposes_slip_in_any_direction(method: str) -> None:
    direction = np.array([np.cos(0.7), np.sin(0.7)])
    solution = solve(made(np.eye(3), [-G * H, *direction], [Cone(0.5)]), method)
    np.testing.assert_allclose(solution.velocities[1:], (1.0 - 0.5 * G * H) * direction, atol=1e-10)


@pytest.mark.parametrize("method", ALL)
def test_an_opening_contact_is_left_alone(method: str) -> None:
    solution = solve(made(np.eye(4), [0.1, 1.0, 2.0, 3.0], [Cone(0.5, 0.1)]), method)
    np.testing.assert_array_equal(solution.impulses, 0.0)


@pytest.mark.parametrize("method", ALL)
def test_a_gap_lets_a_body_fall_just_onto_the_ground(method: str) -> None:
    gap, speed = 1e-3, 0.5  # g/h of the gap is part of b [002, eq. 4a]
    solution = solve(made([[0.5]], [gap / H - speed], [Unilateral()]), method)
    assert solution.impulses[0] == pytest.approx(2.0 * (speed - gap / H), abs=1e-9)


@pytest.mark.parametrize("method", ALL)
def test_a_ball_that_slips_little_rolls_with_five_sevenths_of_its_speed(method: str) -> None:
    m, R, speed = 2.0, 0.1, 0.1
    inverse = np.array([2.5 / (m * R * R)] * 3 + [1.0 / m] * 3)
    J = point_rows((0.0, 0.0, -R))
    problem = made((J * inverse) @ J.T, J @ (0, 0, 0, speed, 0, -G * H), [Cone(0.8)])
    solution = solve(problem, method)
    v = np.array([0, 0, 0, speed, 0, -G * H]) + inverse * (J.T @ solution.impulses)
    np.testing.assert_allclose(v, (0, 5 / 7 * speed / R, 0, 5 / 7 * speed, 0, 0), atol=1e-9)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("spin", [3.0, -3.0, 0.01])
def test_a_spinning_ball_slows_by_torsion_and_stops(method: str, spin: float) -> None:
    m, R, torsion = 2.0, 0.1, 0.005
    inverse = np.array([2.5 / (m * R * R)] * 3 + [1.0 / m] * 3)
    J = np.vstack([point_rows((0.0, 0.0, -R)), [0, 0, 1, 0, 0, 0]])
    problem = made((J * inverse) @ J.T, J @ (0, 0, spin, 0, 0, -G * H), [Cone(0.5, torsion)])
    slowed = abs(spin) - torsion * m * G * H * inverse[2]
    solution = solve(problem, method)
    np.testing.assert_allclose(solution.velocities, (0, 0, 0, np.sign(spin) * max(slowed, 0.0)), atol=1e-9)


def test_admm_nears_a_spin_of_another_scale_without_newton() -> None:
    """The mobility of the spin is a hundred times the normal's: the cone's bound is scaled with it."""
    problem = made(np.diag([1.0, 1.0, 1.0, 100.0]), [-1.0, 0.5, 0.0, 8.0], [Cone(0.5, 0.05)])
    solution = solve(problem, "admm", iterations=24)
    np.testing.assert_allclose(solution.impulses, (1.0, -0.5, 0.0, -0.05), atol=1e-5)


@pytest.mark.parametrize("method", ALL)
def test_of_two_stacked_blocks_the_lower_slides_and_drags_the_upper(method: str) -> None:
    """Contacts at the middles: the ground carries both, and the upper block is dragged by µ times its weight."""
    m = (3.0, 1.0)
    J = np.zeros((6, 6))  # translations alone
    J[:3, :3], J[3:, 3:], J[3:, :3] = np.eye(3)[[2, 0, 1]], np.eye(3)[[2, 0, 1]], -np.eye(3)[[2, 0, 1]]
    inverse = np.repeat(1.0 / np.array(m), 3)
    free = np.array([2.0, 0, -G * H, 0, 0, -G * H])
    problem = made((J * inverse) @ J.T, J @ free, [Cone(0.5)] * 2)
    solution = solve(problem, method)
    pressed, dragged = (m[0] + m[1]) * G * H, m[1] * G * H
    expected = (pressed, -0.5 * pressed, 0, dragged, 0.5 * dragged, 0)
    np.testing.assert_allclose(solution.impulses, expected, atol=1e-8)
    assert_solved(problem, solution)


@pytest.mark.parametrize("method", ALL)
def test_a_box_on_four_corners_rests_although_its_impulses_are_not_unique(method: str) -> None:
    problem = stack([2.0], CORNERS, 0.5, np.zeros(6))
    assert np.linalg.matrix_rank(problem.A) == 6
    solution = solve(problem, method)
    assert_solved(problem, solution)
    np.testing.assert_allclose(solution.velocities, 0.0, atol=1e-9)
    assert solution.impulses[::3].sum() == pytest.approx(2.0 * G * H, abs=1e-8)


@pytest.mark.parametrize("method", ROUND)
def test_a_box_that_slides_on_four_corners_slows_by_friction(method: str) -> None:
    speed = np.array([0.8, 0.6])
    problem = stack([2.0], [(x, y, 0.0) for x, y, _ in CORNERS], 0.5, np.array([0, 0, 0, *speed, 0]))
    solution = solve(problem, method)
    assert_solved(problem, solution)
    expected = np.tile([0.0, *(1.0 - 0.5 * G * H) * speed], 4)
    np.testing.assert_allclose(solution.velocities, expected, atol=1e-9)


@pytest.mark.parametrize("method", ALL)
def test_two_boxes_on_each_other_rest(method: str) -> None:
    problem = stack([1.0, 2.0], CORNERS, 0.5, np.zeros(12))
    solution = solve(problem, method)
    assert_solved(problem, solution)
    assert solution.impulses[:12:3].sum() == pytest.approx(3.0 * G * H, abs=1e-7)
    assert solution.impulses[12::3].sum() == pytest.approx(2.0 * G * H, abs=1e-7)


@pytest.mark.parametrize("method", ["admm", "bisection"])
def test_a_box_a_million_times_as_heavy_rests_on_another(method: str) -> None:
    """Impulses of 1e5 N s at mobilities of some 1/kg: rounding alone is 1e-10 m/s."""
    problem = stack([1.0, 1e6], CORNERS, 0.5, np.zeros(12))
    solution = solve(problem, method)
    assert_solved(problem, solution, 1e-9)
    np.testing.assert_allclose(solution.velocities, 0.0, atol=1e-9)
    assert solution.impulses[12::3].sum() == pytest.approx(1e6 * G * H, rel=1e-9)


def test_admm_drags_and_spins_a_heavy_box_on_a_light_one() -> None:
    problem = stack([1.0, 1e6], CORNERS, 0.5, np.array([0, 0, 0, 0.5, 0, 0, 0, 0, 1, 1, 0, 0]))
    solution = solve(problem, "admm")
    assert solution.status is Status.SOLVED
    assert solution.residual < 1e-9


@pytest.mark.parametrize("cone", [FRICTION, Cone(0.5, 0.1), Cone(0.5, 0.1, 0.2)])
@pytest.mark.parametrize("seed", range(12))
def test_random_problems_are_solved_alike_by_all_and_as_the_laws_say(seed: int, cone: Cone) -> None:
    problem = random_problem(np.random.default_rng(seed), cone)
    solutions = [solve(problem, method) for method in ROUND]
    solutions.append(solve(problem, "cascade", tolerance=1e-12))  # whose tolerance is relative to b
    for solution in solutions:
        assert_solved(problem, solution)
        np.testing.assert_allclose(solution.velocities, solutions[0].velocities, rtol=0, atol=1e-8)
    polyhedral = solve(problem, "lemke", directions=48)
    assert polyhedral.status is Status.SOLVED
    assert np.abs(polyhedral.velocities - solutions[0].velocities).max() < np.pi / 48 * np.abs(problem.b).max()


@pytest.mark.parametrize("seed", range(8))
def test_one_contact_of_strongly_coupled_rows_is_solved_in_one_sweep(seed: int) -> None:
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(4, 4)) * (1.0, 0.5, 0.1, 0.05)
    for rows, block in ((3, Cone(0.4)), (4, Cone(0.4, 0.2))):
        problem = made(J[:rows] @ J[:rows].T, [-1.0, *rng.normal(size=rows - 1)], [block])
        solution = solve(problem, "bisection")
        assert_solved(problem, solution)
        assert solution.iterations == 1


@pytest.mark.parametrize("method", ROUND)
def test_a_contact_that_cannot_move_one_way_is_solved(method: str) -> None:
    """A point on a rail along x that leans: A's block is singular."""
    rail = np.array([0.6, 0.8, 0.0])
    problem = made(np.outer(rail, rail), -0.5 * rail + (0.0, 0.0, 0.3), [Cone(0.5)])
    assert_solved(problem, solve(problem, method))


@pytest.mark.parametrize("method", ROUND)
def test_a_warm_start_saves_iterations(method: str) -> None:
    problem = stack([1.0, 2.0], CORNERS, 0.5, np.zeros(12))
    cold = solve(problem, method)
    assert solve(problem, method, start=cold.impulses).iterations == 0
    near = ContactProblem(problem.A, problem.b * (1.0 + 1e-5), problem.blocks)
    assert solve(near, method, start=cold.impulses).iterations < solve(near, method).iterations


def test_over_relaxation_saves_sweeps() -> None:
    problem = stack([1.0, 1.0], CORNERS, 0.5, np.zeros(12))
    sweeps = [solve(problem, "gauss_seidel", relaxation=r).iterations for r in (1.0, 1.3)]
    assert sweeps[1] < 0.9 * sweeps[0]
    with pytest.raises(ModelError, match=r"relaxation 2\.5 must be between 0 and 2"):
        solve(problem, "gauss_seidel", relaxation=2.5)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("friction", [None, 0.5])
def test_a_box_between_walls_too_close_is_told_to_be_infeasible(method: str, friction: float | None) -> None:
    opposed = np.array([[1.0, -1.0], [-1.0, 1.0]])
    if friction is None:
        problem = made(opposed, [-1.0, -0.5], [Unilateral()] * 2)
    else:
        problem = made(np.kron(opposed, np.eye(3)), [-1, 0.3, 0, -0.5, -0.2, 0.1], [Cone(friction)] * 2)
    assert solve(problem, method).status is Status.INFEASIBLE


@pytest.mark.parametrize("method", ALL)
def test_constraints_that_contradict_each_other_are_told_to_be_infeasible(method: str) -> None:
    problem = made(np.ones((2, 2)), [1.0, 0.3], [Bilateral()] * 2)
    assert solve(problem, method).status is Status.INFEASIBLE


@pytest.mark.parametrize("method", ALL)
def test_two_fixed_bodies_in_each_other_are_told_to_be_infeasible(method: str) -> None:
    assert solve(made(np.zeros((3, 3)), [-1, 0.3, 0], [Cone(0.5)]), method).status is Status.INFEASIBLE
    assert solve(made(np.zeros((3, 3)), [1, 0.3, 0], [Cone(0.5)]), method).status is Status.SOLVED


@pytest.mark.parametrize("method", ALL)
def test_friction_that_moves_nothing_is_no_proof_of_anything(method: str) -> None:
    problem = made(np.diag([1.0, 0.0, 0.0]), [-1.0, -1.0, 0.0], [Cone(0.5)])
    assert not problem.proven_infeasible(np.array([0.0, 1.0, 0.0]))
    solution = solve(problem, method)
    assert solution.status is Status.SOLVED
    np.testing.assert_allclose(solution.impulses, (1.0, 0.5, 0.0), atol=1e-9)


@pytest.mark.parametrize("method", ROUND)
def test_spent_iterations_are_told_with_the_residual_left(method: str) -> None:
    problem = random_problem(np.random.default_rng(1))
    solution = solve(problem, method, iterations=2)
    assert (solution.status, solution.iterations) == (Status.LIMIT, 2)
    assert solution.residual > 1e-10
    assert solution.residual == residual(problem, solution.impulses).total
