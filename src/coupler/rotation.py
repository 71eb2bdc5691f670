"""Rotations and rigid motions: quaternions, rotation vectors, and their exponentials.

A unit quaternion (w, x, y, z) is the rotation that takes a body's coordinates to the world's. All functions work on
floats and on nodes of a trace, except where a docstring says that they branch. Those that are smooth at zero angle do
not divide by the angle there, and neither do their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np

__all__ = [
    "about_axis",
    "about_x",
    "about_y",
    "about_z",
    "dexp_inverse",
    "dexp_inverse_motion",
    "exp_motion",
    "from_euler",
    "identity_quaternion",
    "log_motion",
    "matrix_from_quaternion",
    "normalize_quaternion",
    "quaternion_conjugate",
    "quaternion_exp",
    "quaternion_from_matrix",
    "quaternion_log",
    "quaternion_product",
    "unit",
]

Array = Any  # an ndarray of floats, or of nodes


def about_x(angle: Any) -> Array:
    """The matrix, body to world, of a rotation by an angle (rad) about x."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def about_y(angle: Any) -> Array:
    """The matrix, body to world, of a rotation by an angle (rad) about y."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def about_z(angle: Any) -> Array:
    """The matrix, body to world, of a rotation by an angle (rad) about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def unit(vector: np.ndarray) -> np.ndarray:
    """A vector scaled to length one. A zero vector stays zero. Floats only."""
    largest = np.abs(vector).max()
    if largest == 0.0:
        return vector
    vector = vector / largest  # so that squares of its entries neither underflow nor overflow
    return vector / np.linalg.norm(vector)


def about_axis(axis: Array, angle: Any) -> Array:
    """Rodrigues' formula for a unit axis a: 1 + sin θ a× + (1 − cos θ) a×a×."""
    c, s = np.cos(angle), np.sin(angle)
    return c * np.eye(3) + s * np.cross(axis, np.eye(3)).T + (1.0 - c) * np.outer(axis, axis)


def from_euler(roll: Any, pitch: Any, yaw: Any) -> Array:
    """The rotation matrix Rz(yaw) Ry(pitch) Rx(roll), as in URDF's `rpy`."""
    return about_z(yaw) @ about_y(pitch) @ about_x(roll)


def identity_quaternion() -> Array:
    """The quaternion (1, 0, 0, 0) of no rotation."""
    return np.array([1.0, 0.0, 0.0, 0.0])


def quaternion_product(a: Array, b: Array) -> Array:
    """a b: the rotation b followed by a, both about fixed axes; or a followed by b about the rotated axes."""
    vector = a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.concatenate([np.array([a[0] * b[0] - a[1:] @ b[1:]]), vector])


def quaternion_conjugate(a: Array) -> Array:
    """The inverse rotation."""
    return np.concatenate([a[:1], -a[1:]])


def normalize_quaternion(a: Array) -> Array:
    """The quaternion of unit length in the same direction."""
    return a / np.sqrt(a @ a)


def matrix_from_quaternion(a: Array) -> Array:
    """The rotation matrix, body to world. Its transpose is the E of a `Transform` from the world to the body."""
    w, x, y, z = a
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def quaternion_from_matrix(R: np.ndarray) -> np.ndarray:
    """The quaternion with w ≥ 0 of a rotation matrix. Branches on the largest component: floats only."""
    # Row i of this symmetric matrix K is 4 times component i times the quaternion; the longest row is the most exact.
    trace = np.trace(R)
    vector = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    K = np.empty((4, 4))
    K[0, 0], K[0, 1:], K[1:, 0] = 1.0 + trace, vector, vector
    K[1:, 1:] = R + R.T + (1.0 - trace) * np.eye(3)
    row = K[np.argmax(np.diag(K))]
    return normalize_quaternion(row if row[0] >= 0.0 else -row)


def quaternion_exp(w: Array) -> Array:
    """The quaternion of the rotation vector w (axis times angle, rad)."""
    square = w @ w
    cosine = _even(square, lambda t: np.cos(0.5 * t), _COS_HALF)
    return np.concatenate([np.array([cosine]), _even(square, lambda t: np.sin(0.5 * t) / t, _SIN_HALF_OVER) * w])


def quaternion_log(a: Array) -> Array:
    """The shortest rotation vector of a unit quaternion, at most π long; a and −a are the same rotation.

    Derivatives are exact along unit quaternions. Off the unit sphere the function is undefined.
    """
    sign = np.where(a[0] < 0.0, -1.0, 1.0)
    w, v = sign * a[0], sign * a[1:]
    return _even(v @ v, lambda s: 2.0 * np.arctan2(s, w) / s, _ARCSIN_OVER) * v


def exp_motion(m: Array) -> tuple[Array, Array]:
    """exp of se(3): where a body is after moving for a unit of time with the constant body-frame motion m = (ω, v).

    Returns:
        The unit quaternion and the position, both relative to the starting pose.
    """
    w, v = m[:3], m[3:]
    square = w @ w
    b = _even(square, lambda t: 2.0 * (np.sin(0.5 * t) / t) ** 2, _VERSINE_OVER)
    c = _even(square, lambda t: (t - np.sin(t)) / (t * t * t), _SINE_DEFECT_OVER, below=_CANCELLING)
    wxv = np.cross(w, v)
    return quaternion_exp(w), v + b * wxv + c * np.cross(w, wxv)


def log_motion(a: Array, p: Array) -> Array:
    """The inverse of `exp_motion`: the body-frame motion (ω, v) that leads to a unit quaternion a and a position p."""
    w = quaternion_log(a)
    return np.concatenate([w, dexp_inverse(-w, p)])  # exp_motion's matrix is the dexp of −w


def dexp_inverse(u: Array, w: Array) -> Array:
    """dexp⁻¹: the rate u̇ of a rotation vector u whose body has the angular velocity w in its own axes.

    u̇ = w + ½ u×w + d u×(u×w), with d of `_cotangent_defect`.
    """
    d, _ = _cotangent_defect(u @ u)
    uxw = np.cross(u, w)
    return w + 0.5 * uxw + d * np.cross(u, uxw)


def dexp_inverse_motion(u: Array, v: Array) -> Array:
    """`dexp_inverse` for a motion u = (rotation a, translation b) of se(3) and a body-frame velocity v = (w, s).

    u is a rotation vector of dual numbers, a + ε b with ε² = 0, so the formula of `dexp_inverse` holds unchanged. The
    last three entries are its ε part, term by term.
    """
    a, b, w, s = u[:3], u[3:], v[:3], v[3:]
    d, slope = _cotangent_defect(a @ a)
    aaw = np.cross(a, np.cross(a, w))
    shift = s + 0.5 * (np.cross(a, s) + np.cross(b, w)) + 2.0 * slope * (a @ b) * aaw
    uuw = np.cross(a, np.cross(a, s)) + np.cross(a, np.cross(b, w)) + np.cross(b, np.cross(a, w))
    return np.concatenate([dexp_inverse(a, w), shift + d * uuw])


def _cotangent_defect(square: Any) -> tuple[Any, Any]:
    """d = (1 − ½ t cot ½t) / t² and its derivative by t², as functions of t². Both are smooth at zero."""
    small = square < _FAR_CANCELLING
    t2 = np.where(small, 1.0, square)
    t = np.sqrt(t2)
    g, sine = 0.5 * t * np.cos(0.5 * t) / np.sin(0.5 * t), np.sin(0.5 * t)
    d = (1.0 - g) / t2
    slope = (t2 / (8.0 * sine * sine) + 0.5 * g - 1.0) / (t2 * t2)
    return (
        np.where(small, _power_series(_COTANGENT_DEFECT_OVER, square), d),
        np.where(small, _power_series(_COTANGENT_DEFECT_SLOPE, square), slope),
    )


# Even functions of an angle t as power series in t². Formulas that lose digits by cancellation at small angles use
# their series up to larger angles; with this many terms, the truncation error is below the last place.
_DIRECT, _CANCELLING, _FAR_CANCELLING = 1e-3, 0.0625, 1.0  # the t² below which the series is used
_COS_HALF = [(-1) ** k / (4**k * factorial(2 * k)) for k in range(6)]  # cos(t/2)
_SIN_HALF_OVER = [(-1) ** k / (2 * 4**k * factorial(2 * k + 1)) for k in range(6)]  # sin(t/2) / t
_VERSINE_OVER = [(-1) ** k / factorial(2 * k + 2) for k in range(6)]  # (1 − cos t) / t²
_SINE_DEFECT_OVER = [(-1) ** k / factorial(2 * k + 3) for k in range(7)]  # (t − sin t) / t³
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_COTANGENT_DEFECT_OVER = [abs(b) / factorial(2 * k + 2) for k, b in enumerate(_BERNOULLI)]  # (1 − ½ t cot ½t) / t²
_COTANGENT_DEFECT_SLOPE = [k * c for k, c in enumerate(_COTANGENT_DEFECT_OVER)][1:]  # its derivative by t²
_ARCSIN_OVER = [2 * factorial(2 * k) / (4**k * factorial(k) ** 2 * (2 * k + 1)) for k in range(7)]  # 2 asin(s) / s


def _even(square: Any, function: Callable[[Any], Any], series: Sequence[float], below: float = _DIRECT) -> Any:
    """function(√square), or its power series in the square where that is small, so that all derivatives exist."""
    small = square < below
    root = np.sqrt(np.where(small, 1.0, square))  # never the root of zero, whose derivative is infinite
    return np.where(small, _power_series(series, square), function(root))


def _power_series(coefficients: Sequence[float], x: Any) -> Any:
    total: Any = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total
