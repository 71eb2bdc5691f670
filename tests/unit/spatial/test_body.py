"""Spatial algebra against plain 6 x 6 matrices and first principles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler.graph import jvp
from coupler.graph.array import nodes_of, symbols
from coupler.graph.measure import operations
from coupler.spatial import (
    RigidInertia,
    Transform,
    cross,
    cross_force,
    cross_force_matrix,
    cross_motion,
    cross_motion_matrix,
    mirrored,
    skew,
)
from transforms import random_transform

RNG = np.random.default_rng(1)


def assert_close(result: Any, expected: Any, atol: float = 1e-14) -> None:
    np.testing.assert_allclose(np.asarray(result, dtype=float), expected, rtol=1e-14, atol=atol)


def random_inertia() -> RigidInertia:
    # Of a cloud of points: whatever it is, it can be.
    points, masses = RNG.normal(size=(8, 3)), RNG.uniform(0.1, 1.0, 8)
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True))
    return RigidInertia(masses.sum(), masses @ points, inertia)


@pytest.mark.parametrize("axis", range(3))
def test_turning_about_an_axis_takes_fewer_products(axis: int) -> None:
    c, s = np.cos(0.7), np.sin(0.7)
    turn = np.roll(np.roll([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]], axis, axis=0), axis, axis=1)
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        for signs in ([1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]):
            X = Transform(turn @ np.diag(signs)[order], RNG.normal(size=3))
            assert X.axis is not None and Transform(random_transform(RNG).E, X.r).axis is None
            A = RNG.normal(size=(3, 3))
            assert_close(X.turn_back(A), X.E.T @ A @ X.E)
            inertia = random_inertia()
            expected = X.matrix().T @ inertia.matrix() @ X.matrix()
            assert_close(X.transform_inertia(inertia.matrix()), expected, atol=1e-13)
            assert_close(inertia.seen_from(X).matrix(), expected, atol=1e-13)
    small = 1e-9  # its cosine is 1, which makes no axis of the one that turns
    X = Transform(np.array([[1.0, small, 0.0], [-small, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.zeros(3))
    assert X.axis == (2, 2, 1.0)
    cosine, sine = symbols("a", 2)
    about = Transform(np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]]), np.zeros(3))
    count = operations(nodes_of(about.turn_back(mirrored(symbols("A", 9).reshape(3, 3)))))
    assert count["mul"] <= 10


def symmetric_matrix() -> np.ndarray:
    A = RNG.normal(size=(6, 6))
    return A + A.T


def test_cross_products() -> None:
    a, b = RNG.normal(size=(2, 3))
    assert_close(cross(a, b), np.cross(a, b))
    assert_close(skew(a) @ b, np.cross(a, b))
    v, m = RNG.normal(size=(2, 6))
    assert_close(cross_motion(v, m), cross_motion_matrix(v) @ m)
    assert_close(cross_force(v, m), cross_force_matrix(v) @ m)
    np.testing.assert_array_equal(cross_force_matrix(v), -cross_motion_matrix(v).T)


def test_the_rate_of_power_does_not_depend_on_the_frame() -> None:
    v, m, f = RNG.normal(size=(3, 6))
    assert cross_motion(v, m) @ f == pytest.approx(-m @ cross_force(v, f), abs=1e-13)


@pytest.mark.parametrize("shape", [(6,), (6, 4)])
def test_transforms_act_as_their_matrices(shape: tuple[int, ...]) -> None:
    X, m = random_transform(RNG), RNG.normal(size=shape)
    assert_close(X @ m, X.matrix() @ m)
    assert_close(X.inverse_motion(m), np.linalg.solve(X.matrix(), m))
    assert_close(X.transform_force(m), X.matrix().T @ m)
    assert_close(X.inverse_force(m), X.force_matrix() @ m)


def test_transforms_compose_and_invert() -> None:
    X, Y = random_transform(RNG), random_transform(RNG)
    assert_close((X @ Y).matrix(), X.matrix() @ Y.matrix())
    assert_close((X @ X.inverse()).matrix(), np.eye(6))
    assert_close(X.force_matrix(), np.linalg.inv(X.matrix()).T)
    np.testing.assert_array_equal(Transform.identity().matrix(), np.eye(6))


def test_a_transform_moves_points_as_expected() -> None:
    """A frame one metre along x, turned by 90° about z, sees a turn about A's origin as a motion along its own x."""
    X = Transform(np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([1.0, 0.0, 0.0]))
    assert_close(X @ np.array([0, 0, 1.0, 0, 0, 0]), [0, 0, 1, 1, 0, 0])
    # A force along A's y through A's origin has a moment about B's origin.
    assert_close(X.inverse_force(np.array([0, 0, 0, 0, 1.0, 0])), [0, 0, -1, 1, 0, 0])


def test_any_symmetric_inertia_is_transformed() -> None:
    X, A = random_transform(RNG), symmetric_matrix()
    result = X.transform_inertia(A)
    np.testing.assert_allclose(result, X.matrix().T @ A @ X.matrix(), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(result, result.T)


def test_a_rigid_inertia_acts_as_its_matrix() -> None:
    inertia = random_inertia()
    for m in (RNG.normal(size=6), RNG.normal(size=(6, 3))):
        assert_close(inertia @ m, inertia.matrix() @ m)
    other = random_inertia()
    assert_close((inertia + other).matrix(), inertia.matrix() + other.matrix())


def test_a_rigid_inertia_moves_as_its_matrix() -> None:
    X, inertia = random_transform(RNG), random_inertia()
    expected = X.transform_inertia(inertia.matrix())
    np.testing.assert_allclose(inertia.seen_from(X).matrix(), expected, rtol=1e-13, atol=1e-13)


def test_the_parallel_axis_theorem() -> None:
    c = RNG.normal(size=3)
    about_centre = np.diag([0.3, 0.4, 0.5])
    inertia = RigidInertia.from_centre(2.0, c, about_centre)
    assert_close(inertia.I, about_centre + 2.0 * (c @ c * np.eye(3) - np.outer(c, c)))
    assert_close(inertia.h, 2.0 * c)


def test_momentum_changes_at_the_rate_of_newton_and_euler() -> None:
    """f = I a + v ×* I v is the rate of momentum in a fixed frame. [001, eq. 6]"""
    inertia, X0, v, a = random_inertia(), random_transform(RNG), *RNG.normal(size=(2, 6))

    def momentum(t):
        # Second-order motion of the body's frame against a fixed one, which is all that the rate at t = 0 sees.
        w, step = v[:3] * t + a[:3] * t * t / 2, v[3:] * t + (a[3:] + np.cross(v[:3], v[3:])) * t * t / 2
        turn = np.eye(3) - skew(w) + skew(w) @ skew(w) / 2
        X = Transform(turn, step) @ X0
        return X.transform_force(inertia @ (v + a * t))

    rate = jvp(momentum, 0.0, 1.0)
    force = inertia @ a + cross_force(v, inertia @ v)
    np.testing.assert_allclose(rate, X0.transform_force(force), rtol=1e-12, atol=1e-12)


def test_symmetric_results_are_computed_once() -> None:
    """The upper triangle of Xᵀ I X costs what it costs; the lower one is free."""
    X = Transform(symbols("E", (3, 3)), symbols("r", 3))
    inertia = symbols("I", (6, 6))
    inertia = mirrored(inertia)
    result = X.transform_inertia(inertia)
    upper = [result[i, j] for i in range(6) for j in range(i, 6)]
    assert operations(nodes_of(result)) == operations(upper)


def test_zeros_of_aligned_frames_cost_nothing() -> None:
    m = symbols("m", 6)
    turned = Transform(np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.zeros(3))
    assert not operations(nodes_of(turned @ m))
