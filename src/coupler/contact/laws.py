"""The laws of single blocks of a contact problem, one step towards them at a time. Floats or nodes of a trace.

Given the impulses λ of a block and its velocities w, as they are with all other impulses, an update gives better ones:
exact ones where the block sticks, opens, or meets its bound, and one step of Newton's method for the direction in which
a contact slides. Repeated over all blocks, they end where the laws hold; residuals say how far that is (see
residuals.py, which judges whole problems by the same measure).
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "cone_residual",
    "cone_update",
    "inside_cone",
    "limit_update",
    "softened_inverse",
    "tangential_mobility",
]

Array = Any  # an ndarray of floats, or of nodes

_SOFT = 1e-9  # of a block's mobility, added to it: directions that no impulse moves get no impulse
_STIFF = 1e-60  # 1/kg, added to mobilities so that nothing is divided by zero
_TURN = 0.5  # rad, the furthest that Newton's method turns the direction of sliding at once
_FIRM = 0.01  # of A_nn: where friction leaves less of it, sliding contacts jam and the normal is taken by itself


def softened_inverse(A: Array) -> Array:
    """A⁻¹ of a contact's 3 × 3 block, symmetric, which may be singular."""
    soft = _SOFT * (A[0, 0] + A[1, 1] + A[2, 2])
    (a, b, c), (_, d, e), (_, _, f) = A
    a, d, f = a + soft, d + soft, f + soft
    m00, m01, m02 = d * f - e * e, c * e - b * f, b * e - c * d
    scale = 1.0 / (a * m00 + b * m01 + c * m02 + _STIFF)
    m11, m12, m22 = a * f - c * c, b * c - a * e, a * d - b * b
    return scale * np.array([[m00, m01, m02], [m01, m11, m12], [m02, m12, m22]])


def tangential_mobility(A: Array) -> Any:
    """The larger eigenvalue of A_tt: how easily a contact is moved sideways, 1/kg; never quite zero."""
    mean, half = 0.5 * (A[1, 1] + A[2, 2]), 0.5 * (A[1, 1] - A[2, 2])
    return mean + np.sqrt(half * half + A[1, 2] * A[1, 2]) + _SOFT * A[0, 0] + _STIFF


def cone_update(A: Array, inverse: Array, mobility: Any, friction: Any, lam: Array, w: Array) -> Array:
    """Impulses of a contact with friction, normal first. [002, eq. 2]

    Args:
        A: 3 × 3, the contact's own block.
        inverse: its `softened_inverse`.
        mobility: its `tangential_mobility`.
        friction: µ.
        lam, w: 3 each, impulses and velocities as they are.
    """
    b = w - A @ lam  # what others leave of its velocity
    stuck = lam - inverse @ w
    holds = (stuck[0] > 0.0) & (stuck[1] ** 2 + stuck[2] ** 2 <= (friction * stuck[0]) ** 2)
    slid = _sliding(A, mobility, friction, lam, w, b, stuck)
    found = [np.where(holds, s, t) for s, t in zip(stuck, slid, strict=True)]
    return np.array([np.where(b[0] >= 0.0, 0.0, value) for value in found])


def _sliding(A: Array, mobility: Any, mu: Any, lam: Array, w: Array, b: Array, stuck: Array) -> list[Any]:
    """On the cone's edge, λ_t = µ λ_n u, with w_n = 0 and u against the slip; or a projected step towards that.

    u starts from a projected step, or from what sticking would ask for where that stays within the cone, and is turned
    by Newton's method towards a zero of F(u) = u × w_t (see bisection.py), where F' > 0. Where friction would drive the
    slip all the same, the contact jams, and the projected step is taken.
    """
    a, (cx, cy), ((Txx, Txy), (_, Tyy)) = A[0, 0] + _STIFF, A[0, 1:], A[1:, 1:]
    normal = np.maximum(lam[0] - w[0] / a, 0.0)
    px = lam[1] - (w[1] + cx * (normal - lam[0])) / mobility
    py = lam[2] - (w[2] + cy * (normal - lam[0])) / mobility
    within = px * px + py * py <= (mu * normal) ** 2
    x, y = _unit(np.where(within, stuck[1], px), np.where(within, stuck[2], py))
    x, y = _turned(A, mu, b, x, y)
    size = a + mu * (cx * x + cy * y)
    firm = size > _FIRM * a
    n = np.where(firm, np.maximum(-b[0] / np.where(firm, size, 1.0), 0.0), normal)
    tx, ty = mu * n * x, mu * n * y
    along = x * (b[1] + cx * n + Txx * tx + Txy * ty) + y * (b[2] + cy * n + Txy * tx + Tyy * ty)
    slides = firm & (along <= 0.0)
    _, px, py = inside_cone(mu, np.array([normal, px, py]))
    return [np.where(slides, n, normal), np.where(slides, tx, px), np.where(slides, ty, py)]


def _turned(A: Array, mu: Any, b: Array, x: Any, y: Any) -> tuple[Any, Any]:
    """The direction of sliding after one of Newton's steps."""
    a, (cx, cy), ((Txx, Txy), (_, Tyy)) = A[0, 0], A[0, 1:], A[1:, 1:]
    F0, F1 = a * b[2] - b[0] * cy, b[0] * cx - a * b[1]
    F2, F3 = mu * (cx * b[2] - b[0] * Txy), mu * (b[0] * Txy - cy * b[1])
    F4 = mu * (cy * b[2] - cx * b[1] - b[0] * (Tyy - Txx))
    F = F0 * x + F1 * y + F2 * x * x + F3 * y * y + F4 * x * y
    rate = F1 * x - F0 * y + 2.0 * (F3 - F2) * x * y + F4 * (x * x - y * y)
    turn = np.where(rate > 0.0, -F / np.where(rate > 0.0, rate, 1.0), 0.0)
    turn = np.minimum(np.maximum(turn, -_TURN), _TURN)
    shrink = 1.0 / np.sqrt(1.0 + turn * turn)
    return shrink * (x - turn * y), shrink * (y + turn * x)


def _unit(x: Any, y: Any) -> tuple[Any, Any]:
    """A vector at length one; along x, if it has none."""
    length = np.sqrt(x * x + y * y)
    safe = np.where(length > 0.0, length, 1.0)
    return np.where(length > 0.0, x / safe, 1.0), y / safe


def inside_cone(friction: Any, lam: Array) -> Array:
    """The impulses of a contact, brought back into its cone."""
    normal = np.maximum(lam[0], 0.0)
    length = np.sqrt(lam[1] * lam[1] + lam[2] * lam[2])
    outside = length > friction * normal
    scale = np.where(outside, friction * normal / np.where(outside, length, 1.0), 1.0)
    return np.array([normal, scale * lam[1], scale * lam[2]])


def cone_residual(A: Array, mobility: Any, friction: Any, lam: Array, w: Array) -> Any:
    """How far a contact is from its laws, m/s: |λ − P(λ − r w)| / r, of normal and tangents the larger."""
    normal = np.abs(np.minimum(A[0, 0] * lam[0], w[0]))
    m = mobility
    tx, ty = m * lam[1] - w[1], m * lam[2] - w[2]
    length, radius = np.sqrt(tx * tx + ty * ty), m * friction * np.maximum(lam[0], 0.0)
    outside = length > radius
    scale = np.where(outside, radius / np.where(outside, length, 1.0), 1.0)
    dx, dy = m * lam[1] - scale * tx, m * lam[2] - scale * ty
    return np.maximum(normal, np.sqrt(dx * dx + dy * dy))


def limit_update(a: Any, low: Any, high: Any, lam: Any, w: Any) -> Any:
    """The impulse of a joint that may move with velocities between low and high, and has no impulse in between.

    Args:
        a: its mobility, the diagonal entry of A.
        low, high: the velocities that take it to its limits within the step, rad/s or m/s.
        lam, w: impulse and velocity as they are.
    """
    free, a = w - a * lam, a + _STIFF
    return np.where(free < low, (low - free) / a, np.where(free > high, (high - free) / a, 0.0))
