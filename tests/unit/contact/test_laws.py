"""Updates of single blocks: repeated, they solve a block by itself, and they leave a solved one alone."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.contact import Bounded, Cone, ContactProblem, Unilateral, residual, solve
from coupler.contact.laws import (
    cone_error,
    cone_residual,
    inside_cone,
    joint_parts,
    joint_update,
    mobilities,
    nearest_in_cone,
    projected_step,
)
from coupler.contact.step.cone_update import ConeBlock, cone_update
from coupler.graph import Builder, View, compile, fields

FAR = 1e10


def block(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """A contact that would close, whose normal and tangents are coupled."""
    root = rng.normal(size=(3, 3))
    b = rng.normal(size=3)
    b[0] = -abs(b[0])
    return root @ root.T + 0.01 * np.eye(3), b, float(rng.uniform(0.0, 1.2))


def solved(A: np.ndarray, b: np.ndarray, friction: float, rounds: int) -> np.ndarray:
    own, lam = ConeBlock.of(A), np.zeros(3)
    for _ in range(rounds):
        lam = cone_update(own, friction, lam, A @ lam + b)
    return lam


def test_a_contact_is_solved_in_a_few_rounds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        A, b, friction = block(rng)
        problem, lam = ContactProblem(A, b, [Cone(friction)]), solved(A, b, friction, 12)
        assert residual(problem, lam).total < 1e-11
        assert residual(problem, cone_update(ConeBlock.of(A), friction, lam, A @ lam + b)).total < 1e-11


def test_residuals_are_those_of_problems() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        A, b, friction = block(rng)
        lam = inside_cone([friction], rng.normal(size=3))
        expected = residual(ContactProblem(A, b, [Cone(friction)]), lam).total
        mobility = [A[0, 0], *mobilities(A, [friction])]
        found = cone_residual([friction], mobility, lam, A @ lam + b)
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_a_contact_without_friction_is_solved_at_once() -> None:
    A, b, _ = block(np.random.default_rng(2))
    assert solved(A, b, 0.0, 1) == pytest.approx([-b[0] / A[0, 0], 0.0, 0.0])


def test_a_contact_that_parts_has_no_impulse() -> None:
    A, b, friction = block(np.random.default_rng(3))
    b[0] = 0.1
    assert solved(A, b, friction, 1) == pytest.approx(np.zeros(3))


def test_a_contact_of_one_freedom_gets_impulses_in_proportion() -> None:
    """Its block has rank one: along the others no impulse helps."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        along = rng.normal(size=3)
        A, b = np.outer(along, along), along * rng.normal()
        if b[0] > 0.0:
            b = -b
        lam = solved(A, b, 0.7, 40)
        assert np.isfinite(lam).all()
        assert np.abs(lam).max() < 1e3 * np.abs(b).max() / (along @ along)


def test_the_cone_takes_back_what_is_outside() -> None:
    assert inside_cone([0.5], np.array([2.0, 3.0, 4.0])) == pytest.approx([2.0, 0.6, 0.8])
    assert inside_cone([0.5], np.array([2.0, 0.1, 0.2])) == pytest.approx([2.0, 0.1, 0.2])
    assert inside_cone([0.5], np.array([-1.0, 0.1, 0.2])) == pytest.approx([0.0, 0.0, 0.0])
    turning = inside_cone([0.5, 0.1, 0.2], np.array([2.0, 3.0, 4.0, -1.0, 0.3, 0.4]))
    assert turning == pytest.approx([2.0, 0.6, 0.8, -0.2, 0.24, 0.32])


def test_compiled_updates_are_those_of_floats() -> None:
    b = Builder("update")
    given, out = b.input("given", 16), b.output("out", 3)

    def kernel(here: View) -> None:
        A = here.x[:9].reshape(3, 3)
        here.y = cone_update(ConeBlock.of(A), here.x[9], here.x[10:13], here.x[13:])

    b.loop(kernel, here=fields(x=given.at(0, 16), y=out.at(0, 3)))
    update, rng = compile(b.build()), np.random.default_rng(5)
    for _ in range(100):
        A, free, friction = block(rng)
        lam = inside_cone([friction], rng.normal(size=3))
        w = A @ lam + free
        found = update(np.concatenate([A.ravel(), [friction], lam, w]))
        np.testing.assert_allclose(found, cone_update(ConeBlock.of(A), friction, lam, w), rtol=1e-9, atol=1e-11)


def laws_of(x: np.ndarray, discs: int) -> np.ndarray:
    """Of contacts with A = 1, from friction, λ, w, components first: projections, residuals, and a projected step."""
    friction, (lam, w) = x[:discs], np.split(x[discs:], 2)
    ones = [1.0] * (1 + discs)
    rows = inside_cone(friction, lam), nearest_in_cone(friction, lam), cone_error(friction, ones, lam, w)
    return np.concatenate([*rows, projected_step(np.eye(len(lam)), ones, friction, lam, w)])


@pytest.mark.parametrize(("discs", "rows"), [(1, 3), (2, 4), (3, 6)])
def test_laws_of_many_contacts_and_compiled_ones_are_those_of_one(discs: int, rows: int) -> None:
    b, size = Builder("laws"), discs + 2 * rows
    given, out = b.input("given", size), b.output("out", 4 * rows)

    def kernel(here: View) -> None:
        here.y = laws_of(here.x, discs)

    b.loop(kernel, here=fields(x=given.at(0, size), y=out.at(0, 4 * rows)))
    x = np.random.default_rng(7).normal(size=(size, 200))
    x[:discs] = np.abs(x[:discs])
    one_by_one = np.array([laws_of(own, discs) for own in x.T])
    np.testing.assert_allclose(laws_of(x, discs).T, one_by_one, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(compile(b.build())(x.T.copy()), one_by_one, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("discs", "rows"), [(1, 3), (2, 4), (3, 6)])
def test_no_other_impulses_of_a_cone_are_nearer(discs: int, rows: int) -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        friction, lam = np.abs(rng.normal(size=discs)), rng.normal(size=rows)
        nearest = nearest_in_cone(friction, lam)
        np.testing.assert_allclose(inside_cone(friction, nearest), nearest, rtol=0, atol=1e-12)
        others = inside_cone(friction, nearest[:, None] + 0.1 * rng.normal(size=(rows, 1000)))
        assert np.linalg.norm(others - lam[:, None], axis=0).min() >= np.linalg.norm(nearest - lam) - 1e-12


# Joints


@pytest.mark.parametrize("bound", [0.0, 0.3])
def test_a_joint_obeys_its_limits_and_its_friction(bound: float) -> None:
    rng = np.random.default_rng(6)
    for _ in range(200):
        a, free = float(rng.uniform(0.5, 2.0)), float(rng.normal())
        low, high = sorted(rng.normal(size=2).tolist())
        lam = float(joint_update(a, low, high, bound, 0.2, free + a * 0.2))
        w = free + a * lam
        limit, friction = joint_parts(a, low, high, bound, lam, w)
        rows = np.array([[a, -a, a], [-a, a, -a], [a, -a, a]])
        blocks = [Unilateral(), Unilateral(), Bounded(-bound, bound)]
        problem = ContactProblem(rows, np.array([free - low, high - free, free]), blocks)
        parts = np.array([max(limit, 0.0), max(-limit, 0.0), friction])
        assert residual(problem, parts).total < 1e-12
        assert solve(problem).velocities[0] == pytest.approx(w - low, abs=1e-8)


def test_a_joint_that_nothing_moves_gets_no_impulse() -> None:
    assert joint_update(0.0, -FAR, FAR, 0.5, 0.0, 0.0) == 0.0
