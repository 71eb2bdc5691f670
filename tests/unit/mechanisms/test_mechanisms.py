"""Closed forms: they close their loops, and their derivatives fit."""

from __future__ import annotations

import numpy as np
import pytest

from coupler.graph import jacobian, second_directional
from coupler.mechanisms import FourBar, belt, differential, gear, linear, polynomial, rack_and_pinion
from coupler.model import ModelError

CRANK_ROCKER = FourBar(0.3, 1.0, 0.8, 1.1)
DOUBLE_CRANK = FourBar(1.0, 0.9, 0.8, 0.4)
ANGLES = np.linspace(-7.0, 7.0, 57)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("lengths", [(0.3, 1.0, 0.8, 1.1), (1.0, 0.9, 0.8, 0.4)], ids=["rocks", "turns"])
def test_a_four_bar_is_closed_at_every_angle(lengths: tuple[float, ...], crossed: bool) -> None:
    bars = FourBar(*lengths, crossed=crossed)
    assert bars.turns_fully
    for angle in ANGLES:
        np.testing.assert_allclose(bars.opening(bars(np.array([angle]))), 0.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("angle", [-2.0, 0.3, 1.2, 3.0])
def test_a_four_bars_derivatives_fit_its_loop(angle: float) -> None:
    """K G = 0 and K g = k, for γ in closed form and φ as written."""
    y, yd = np.array([angle]), np.array([1.7])
    q, G, g = CRANK_ROCKER(y), jacobian(CRANK_ROCKER, y), second_directional(CRANK_ROCKER, y, yd)
    K = jacobian(CRANK_ROCKER.opening, q)
    k = -second_directional(CRANK_ROCKER.opening, q, G @ yd)
    np.testing.assert_allclose(K @ G, 0.0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(K @ g, k, rtol=0, atol=1e-13)


def test_the_two_assemblies_differ_and_mirror_each_other() -> None:
    open_, crossed = CRANK_ROCKER(np.array([0.7])), FourBar(0.3, 1.0, 0.8, 1.1, crossed=True)(np.array([0.7]))
    assert np.abs(open_ - crossed)[1:].min() > 0.1
    mirrored = FourBar(0.3, 1.0, 0.8, 1.1, crossed=True)(np.array([-0.7]))
    np.testing.assert_allclose(mirrored, -open_, rtol=0, atol=1e-15)


@pytest.mark.parametrize("crossed", [False, True])
def test_a_parallelogram_stays_what_it_is_through_its_flat_poses(crossed: bool) -> None:
    bars = FourBar(0.5, 1.0, 0.5, 1.0, crossed=crossed)
    for angle in [*ANGLES, 0.0, np.pi, -np.pi, 2 * np.pi, 1e-9, -1e-9]:
        q = bars(np.array([angle]))
        np.testing.assert_allclose(bars.opening(q), 0.0, rtol=0, atol=1e-15)
        parallel = np.isclose(np.cos(q[2] - q[0]), 1.0, atol=1e-9)
        assert parallel != crossed or abs(np.sin(angle)) < 1e-6


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("lengths", [(0.3, 1.0, 0.8, 1.1), (1.0, 0.9, 0.8, 0.4)], ids=["rocks", "turns"])
def test_angles_do_not_jump_while_the_crank_turns(lengths: tuple[float, ...], crossed: bool) -> None:
    bars = FourBar(*lengths, crossed=crossed)
    q = np.array([bars(np.array([angle])) for angle in np.linspace(-20.0, 20.0, 8001)])
    assert np.abs(np.diff(q, axis=0)).max() < 0.05


def test_flat_poses_are_reached() -> None:
    rng = np.random.default_rng(0)
    for a, b, c in rng.uniform(0.1, 2.0, (200, 3)):
        assert np.isfinite(FourBar(a, b, c, a + b + c)(np.array([0.0]))).all()
    assert np.isfinite(FourBar(1.0, 2.0, 2.0, 1.0)(np.array([0.0]))).all()


def test_grashof_does_not_lose_equality_to_rounding() -> None:
    assert all(
        FourBar(i / 10, j / 10, k / 10, (j + k - i) / 10).turns_fully for i, j, k in ((1, 3, 4), (1, 7, 2), (2, 3, 9))
    )


def test_grashof() -> None:
    assert CRANK_ROCKER.turns_fully and DOUBLE_CRANK.turns_fully
    assert not FourBar(0.8, 1.0, 0.3, 1.1).turns_fully  # the rocker would
    assert not FourBar(1.0, 1.0, 1.0, 1.4).turns_fully


def test_where_it_cannot_close_it_says_nan() -> None:
    with np.errstate(invalid="ignore"):
        q = FourBar(0.8, 1.0, 0.3, 1.1)(np.array([np.pi]))
    assert np.isnan(q[1:]).all()


def test_transmissions() -> None:
    y = np.array([0.5, -0.2])
    np.testing.assert_allclose(gear(6.0, 0.1)(y[:1]), [0.5, 3.1])
    np.testing.assert_allclose(rack_and_pinion(0.02)(y[:1]), [0.5, 0.01])
    np.testing.assert_allclose(belt(8.0, 2.0, 7.0)(y), [0.5, 4.0, 1.0 - 1.4, -0.2])
    np.testing.assert_allclose(differential(3.0)(y), [0.5, -0.2, 0.9, 2.1])
    np.testing.assert_allclose(polynomial([1.0, 0.0, 2.0])(y[:1]), [0.5, 1.5])
    np.testing.assert_allclose(linear([[1.0], [2.0], [3.0]], [0.0, 1.0, 0.0])(y[:1]), [0.5, 2.0, 1.5])


def test_linear_transmissions_have_no_bias() -> None:
    y, yd = np.array([0.5, -0.2]), np.array([1.0, 2.0])
    np.testing.assert_array_equal(second_directional(belt(8.0, 2.0, 7.0), y, yd), np.zeros(4))
    np.testing.assert_allclose(second_directional(polynomial([0, 0, 3.0]), y[:1], yd[:1]), [0.0, 6.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FourBar(0.0, 1.0, 1.0, 1.0), "lengths must be finite and positive"),
        (lambda: FourBar(1.0, 1.0, 1.0, 3.5), "cannot close: one exceeds the sum of the others"),
        (lambda: gear(np.nan), "gears: the ratio must be a finite number, got nan"),
        (lambda: gear(1.0, np.inf), "gears: the offset must be a finite number"),
        (lambda: polynomial([]), "needs a list of coefficients"),
        (lambda: polynomial([1.0, np.nan]), "its coefficients must be 2 finite numbers"),
        (lambda: linear([1.0, 2.0]), "G must be a matrix"),
        (lambda: linear([[1.0], [np.nan]]), "G must be 2 × 1 finite numbers"),
        (lambda: linear([[1.0], [2.0]], [1.0, 2.0, 3.0]), "its offset must be 2 finite numbers"),
    ],
)
def test_what_a_mechanism_cannot_be(make, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()
