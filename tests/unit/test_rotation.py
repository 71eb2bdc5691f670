"""Rotations against scipy-free first principles: matrix exponentials in high precision, and each other."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from coupler.graph import Builder, View, fields, jacobian
from coupler.graph import compile as compile_program
from coupler.rotation import (
    about_axis,
    about_x,
    about_y,
    about_z,
    exp_motion,
    from_euler,
    identity_quaternion,
    log_motion,
    matrix_from_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_from_matrix,
    quaternion_log,
    quaternion_product,
)
from coupler.spatial import Transform, skew

ANGLES = [0.0, 1e-12, 1e-8, 1e-3, 0.0316, 0.0317, 0.2499, 0.2501, 0.7, 2.0, 3.0, np.pi - 1e-6]


def assert_close(result: Any, expected: Any, atol: float = 4e-16) -> None:
    np.testing.assert_allclose(np.asarray(result, dtype=float), expected, rtol=0, atol=atol)


def direction(seed: int = 0) -> np.ndarray:
    u = np.random.default_rng(seed).normal(size=3)
    return u / np.linalg.norm(u)


def exact_exponential(matrix: np.ndarray) -> np.ndarray:
    with mpmath.workdps(40):
        return np.array(mpmath.expm(mpmath.matrix(matrix.tolist()), method="taylor").tolist(), dtype=float)


@pytest.mark.parametrize("angle", ANGLES)
def test_the_exponential_of_a_rotation_vector(angle: float) -> None:
    w = angle * direction()
    expected = exact_exponential(skew(w))
    np.testing.assert_allclose(matrix_from_quaternion(quaternion_exp(w)), expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(about_axis(direction(), angle), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("angle", ANGLES)
def test_the_exponential_of_a_motion(angle: float) -> None:
    m = np.concatenate([angle * direction(), np.random.default_rng(3).normal(size=3)])
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = skew(m[:3]), m[3:]
    expected = exact_exponential(twist)
    turn, shift = exp_motion(m)
    np.testing.assert_allclose(matrix_from_quaternion(turn), expected[:3, :3], rtol=0, atol=1e-15)
    np.testing.assert_allclose(shift, expected[:3, 3], rtol=0, atol=2e-15)
    np.testing.assert_allclose(log_motion(turn, shift), m, rtol=0, atol=1e-14)


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_logarithm_undoes_the_exponential(angle: float, sign: float) -> None:
    w = angle * direction(5)
    np.testing.assert_allclose(quaternion_log(sign * quaternion_exp(w)), w, rtol=1e-14, atol=1e-18)


def test_the_logarithm_takes_the_short_way_round() -> None:
    w = (2 * np.pi - 1.0) * direction()
    np.testing.assert_allclose(quaternion_log(quaternion_exp(w)), -1.0 * direction(), rtol=1e-14)


def test_products_of_quaternions_are_products_of_matrices() -> None:
    a, b = (quaternion_exp(np.random.default_rng(i).normal(size=3)) for i in (1, 2))
    product = matrix_from_quaternion(quaternion_product(a, b))
    assert_close(product, matrix_from_quaternion(a) @ matrix_from_quaternion(b))
    assert_close(quaternion_product(a, quaternion_conjugate(a)), identity_quaternion())


@pytest.mark.parametrize("turn", [about_x, about_y, about_z])
def test_turns_about_the_axes(turn) -> None:
    axis = {"about_x": [1, 0, 0], "about_y": [0, 1, 0], "about_z": [0, 0, 1]}[turn.__name__]
    assert_close(turn(0.7), about_axis(np.array(axis, float), 0.7))


def test_euler_angles_turn_about_fixed_axes() -> None:
    assert_close(from_euler(0.1, 0.2, 0.3), about_z(0.3) @ about_y(0.2) @ about_x(0.1))


@pytest.mark.parametrize("seed", range(20))
def test_quaternions_of_matrices(seed: int) -> None:
    # Turns by nearly 180° about every axis, where w vanishes, included.
    w = (np.pi - (1e-9 if seed % 2 else 1.0)) * (np.eye(3)[seed % 3] if seed < 6 else direction(seed))
    R = exact_exponential(skew(w))
    a = quaternion_from_matrix(R)
    assert a[0] >= 0.0
    np.testing.assert_allclose(matrix_from_quaternion(a), R, rtol=0, atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.2, 1.5])
def test_derivatives_are_smooth_at_zero(angle: float) -> None:
    """∂ log(exp w)/∂w is the identity, at zero, too."""
    w = angle * direction()
    J = jacobian(lambda w: quaternion_log(quaternion_exp(w)), w)
    np.testing.assert_allclose(J, np.eye(3), rtol=0, atol=1e-13)
    m = np.concatenate([w, [0.3, -0.2, 0.5]])
    np.testing.assert_allclose(jacobian(lambda m: log_motion(*exp_motion(m)), m), np.eye(6), rtol=0, atol=1e-12)


def test_compiled_code_gives_the_same() -> None:
    def kernel(s: View) -> None:
        turn, shift = exp_motion(s.m)
        s.pose = np.concatenate([turn, shift])
        s.back = log_motion(turn, shift)

    b = Builder("motion")
    b.loop(
        kernel,
        s=fields(m=b.input("m", 6).at(0, 6), pose=b.output("pose", 7).at(0, 7), back=b.output("back", 6).at(0, 6)),
    )
    run = compile_program(b.build())
    motions = np.stack([np.concatenate([angle * direction(), [1.0, 2.0, 3.0]]) for angle in ANGLES])
    pose, back = run(motions)
    for m, p, again in zip(motions, pose, back, strict=True):
        np.testing.assert_allclose(p, np.concatenate(exp_motion(m)), rtol=0, atol=2e-15)
        np.testing.assert_allclose(again, log_motion(*exp_motion(m)), rtol=0, atol=1e-14)


def test_a_quaternion_and_a_transform_agree() -> None:
    """The transform from the world to a body has E = Rᵀ: a vector fixed in the body has constant coordinates there."""
    a = quaternion_exp(np.array([0.1, -0.4, 0.8]))
    X = Transform(matrix_from_quaternion(a).T, np.zeros(3))
    in_body = np.array([1.0, 2.0, 3.0])
    assert_close((X @ np.concatenate([matrix_from_quaternion(a) @ in_body, np.zeros(3)]))[:3], in_body)
