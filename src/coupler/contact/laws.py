"""The laws of single blocks of a contact problem, one step towards them at a time. Floats or nodes of a trace.

Given the impulses λ of a block and its velocities w, as they are with all other impulses, an update gives better ones:
exact ones where the block sticks, opens, or meets its bound, and one step of Newton's method for the direction in which
a contact slides. Repeated over all blocks, they end where the laws hold; residuals say how far that is (see
residuals.py, which judges whole problems by the same measure).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "ConeBlock",
    "cone_at_rest",
    "cone_residual",
    "cone_sliding",
    "cone_update",
    "inside_cone",
    "joint_parts",
    "joint_update",
    "tangential_mobility",
]

Array = Any  # an ndarray of floats, or of nodes

_SOFT = 1e-6  # of a block's mobility, added to it: directions that no impulse moves get no impulse
_STIFF = 1e-60  # 1/kg, added to mobilities so that nothing is divided by zero
_LEFT, _NOISE = 0.1, 1e-10  # what sticking may leave of a velocity, and of what others leave
_TURN = 0.5  # rad, the furthest that Newton's method turns the direction of sliding at once
_FIRM = 0.01  # of A_nn: where friction leaves less of it, sliding contacts jam and the normal is taken by itself


@dataclass(frozen=True, eq=False)
class ConeBlock:
    """What a contact's law needs to know of it, again and again.

    Attributes:
        A: 3 × 3, its own block.
        inverse: A⁻¹, softened: A may be singular.
        normal_step: 1/A_nn, kg.
        tangent_step: the inverse of `tangential_mobility`, kg.
    """

    A: Array
    inverse: Array
    normal_step: Any
    tangent_step: Any

    @classmethod
    def of(cls, A: Array) -> ConeBlock:
        return cls(A, _softened_inverse(A), 1.0 / (A[0, 0] + _STIFF), 1.0 / tangential_mobility(A))


def _softened_inverse(A: Array) -> Array:
    """A⁻¹ of a symmetric block that may be singular."""
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


def cone_update(block: ConeBlock, friction: Any, lam: Array, w: Array) -> Array:
    """Impulses of a contact with friction, normal first. [002, eq. 2]

    Args:
        block: the contact's own.
        friction: µ.
        lam, w: 3 each, impulses and velocities as they are.
    """
    found, slides = cone_at_rest(block, friction, lam, w)
    slid = cone_sliding(block, friction, lam, w)
    return np.array([np.where(slides, t, s) for s, t in zip(found, slid, strict=True)])


def cone_at_rest(block: ConeBlock, friction: Any, lam: Array, w: Array) -> tuple[Array, Any]:
    """Impulses of a contact that sticks or opens, and whether it does neither; arguments as for `cone_update`.

    Where friction couples normal and tangents strongly, a contact may do both: one that is pressed stays so. A block of
    low rank may leave it a velocity, whatever the impulses: then it does not stick.
    """
    b = w - block.A @ lam  # what others leave of its velocity
    stuck = lam - block.inverse @ w
    left, fast = np.abs(b + block.A @ stuck), np.abs(w)
    stops = _most(left) <= _LEFT * _most(fast) + _NOISE * _most(np.abs(b))
    holds = stops & (stuck[0] > 0.0) & (stuck[1] ** 2 + stuck[2] ** 2 <= (friction * stuck[0]) ** 2)
    opens = (b[0] >= 0.0) & np.logical_not(holds & (lam[0] > 0.0))
    found = np.array([np.where(opens, 0.0, value) for value in stuck])
    return found, np.logical_not(opens | holds)


def _most(values: Array) -> Any:
    return np.maximum(np.maximum(values[0], values[1]), values[2])


def cone_sliding(block: ConeBlock, mu: Any, lam: Array, w: Array) -> Array:
    """On the cone's edge, λ_t = µ λ_n u, with w_n = 0 and u against the slip; or a projected step towards that.

    u starts from a projected step, or from what sticking would ask for where that stays within the cone, and is turned
    by Newton's method towards a zero of F(u) = u × w_t (see bisection.py), where F' > 0. Where friction would drive the
    slip all the same, the contact jams, and the projected step is taken. Divisions are few: in lanes they are dear.
    Arguments are those of `cone_update`.
    """
    A = block.A
    b, stuck = w - A @ lam, lam - block.inverse @ w
    a, (cx, cy), ((Txx, Txy), (_, Tyy)) = A[0, 0], A[0, 1:], A[1:, 1:]
    normal = np.maximum(lam[0] - w[0] * block.normal_step, 0.0)
    px = lam[1] - (w[1] + cx * (normal - lam[0])) * block.tangent_step
    py = lam[2] - (w[2] + cy * (normal - lam[0])) * block.tangent_step
    within = px * px + py * py <= (mu * normal) ** 2
    dx, dy = np.where(within, stuck[1], px), np.where(within, stuck[2], py)
    scale = 1.0 / np.sqrt(dx * dx + dy * dy + _STIFF)
    dx, dy = scale * dx, scale * dy
    px, py = np.where(within, px, mu * normal * dx), np.where(within, py, mu * normal * dy)
    x, y = _turned(A, mu, b, dx, dy)
    size = a + mu * (cx * x + cy * y)
    firm = size > _FIRM * a
    n = np.maximum(-b[0] / np.where(firm, size, 1.0), 0.0)
    tx, ty = mu * n * x, mu * n * y
    along = x * (b[1] + cx * n + Txx * tx + Txy * ty) + y * (b[2] + cy * n + Txy * tx + Tyy * ty)
    slides = firm & (along <= 0.0)
    return np.array([np.where(slides, n, normal), np.where(slides, tx, px), np.where(slides, ty, py)])


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


def inside_cone(friction: Any, lam: Array) -> Array:
    """The impulses of a contact, brought back into its cone."""
    normal = np.maximum(lam[0], 0.0)
    length = np.sqrt(lam[1] * lam[1] + lam[2] * lam[2])
    outside = length > friction * normal
    scale = np.where(outside, friction * normal / np.where(outside, length, 1.0), 1.0)
    return np.array([normal, scale * lam[1], scale * lam[2]])


def cone_residual(A: Array, friction: Any, lam: Array, w: Array) -> Any:
    """How far a contact is from its laws, m/s: |λ − P(λ − r w)| / r, of normal and tangents the larger."""
    normal = np.abs(np.minimum(A[0, 0] * lam[0], w[0]))
    m = tangential_mobility(A)
    tx, ty = m * lam[1] - w[1], m * lam[2] - w[2]
    length, radius = np.sqrt(tx * tx + ty * ty), m * friction * np.maximum(lam[0], 0.0)
    outside = length > radius
    scale = np.where(outside, radius / np.where(outside, length, 1.0), 1.0)
    dx, dy = m * lam[1] - scale * tx, m * lam[2] - scale * ty
    return np.maximum(normal, np.sqrt(dx * dx + dy * dy))


def joint_update(a: Any, low: Any, high: Any, bound: Any, lam: Any, w: Any) -> Any:
    """The impulse of a joint that may move with velocities between low and high, and is braked by dry friction.

    Args:
        a: its mobility, the diagonal entry of A.
        low, high: the velocities that take it to its limits within the step, rad/s or m/s.
        bound: the largest impulse of friction, N m s or N s.
        lam, w: impulse and velocity as they are.
    """
    free, step = w - a * lam, 1.0 / (a + _STIFF)
    brake, braked = _braked(a, bound, free)
    return np.where(braked < low, (low - free) * step, np.where(braked > high, (high - free) * step, brake))


def joint_parts(a: Any, low: Any, high: Any, bound: Any, lam: Any, w: Any) -> tuple[Any, Any]:
    """What limits and friction do of the impulse of a joint that obeys its law; arguments as for `joint_update`."""
    _, braked = _braked(a, bound, w - a * lam)
    rest = lam - np.where(w > 0.0, -bound, np.where(w < 0.0, bound, np.copysign(bound, lam)))
    pushed = np.where(braked > high, np.minimum(rest, 0.0), 0.0)
    limit = np.where(braked < low, np.maximum(rest, 0.0), pushed)  # of the right sign where w is rounding alone
    return limit, lam - limit


def _braked(a: Any, bound: Any, free: Any) -> tuple[Any, Any]:
    """The impulse of friction on a joint by itself, and the velocity that it leaves."""
    brake = np.minimum(np.maximum(-free / (a + _STIFF), -bound), bound)
    return brake, free + a * brake
