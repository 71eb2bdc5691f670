"""Updates of the impulses of one contact, given all others: sweeps over a contact problem repeat them.

An update is exact where the contact sticks or opens. A contact that slides takes a step of Newton's method for its
direction, or a projected step where that leads nowhere. Where no update changes anything, the laws of laws.py hold.
Functions take floats or nodes of a trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.laws import SOFTENING, TINY, tangential_mobility, unprojected_step

Array = Any  # an ndarray of floats, or of nodes

# Sticking must stop a contact. A block of low rank cannot: it leaves more than this part of w, ...
_STICKING_LEFT = 0.1
_STICKING_ROUNDING = 1e-10  # ... and more than this part of b, which bounds the rounding
_LARGEST_TURN = 0.5  # rad, by which a Newton step turns the direction of sliding at most: beyond, it is no good model
_JAMMED = 0.01  # of A_nn: where friction leaves less of it, a sliding contact jams, and λ_n = −b_n/size would explode


@dataclass(frozen=True, eq=False)
class ConeBlock:
    """The block of A of one contact, with quantities that updates need.

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
        return cls(A, _softened_inverse(A), 1.0 / (A[0, 0] + TINY), 1.0 / tangential_mobility(A))


def _softened_inverse(A: Array) -> Array:
    """A⁻¹ of a symmetric block that may be singular."""
    soft = SOFTENING * (A[0, 0] + A[1, 1] + A[2, 2])
    (a, b, c), (_, d, e), (_, _, f) = A
    a, d, f = a + soft, d + soft, f + soft
    m00, m01, m02 = d * f - e * e, c * e - b * f, b * e - c * d
    scale = 1.0 / (a * m00 + b * m01 + c * m02 + TINY)
    m11, m12, m22 = a * f - c * c, b * c - a * e, a * d - b * b
    return scale * np.array([[m00, m01, m02], [m01, m11, m12], [m02, m12, m22]])


def cone_update(block: ConeBlock, friction: Any, lam: Array, w: Array) -> Array:
    """Improved impulses of a contact with a round friction cone ([002, eq. 1, 2] have a polygon).

    Args:
        block: the contact's own block of A, prepared.
        friction: µ.
        lam, w: 3 each, its impulses and velocities as they are: normal, then tangents.
    """
    at_rest, slides = cone_at_rest(block, friction, lam, w)
    sliding = cone_sliding(block, friction, lam, w)
    return np.array([np.where(slides, t, s) for s, t in zip(at_rest, sliding, strict=True)])


def cone_at_rest(block: ConeBlock, friction: Any, lam: Array, w: Array) -> tuple[Array, Any]:
    """Impulses of a contact that sticks or opens, and whether it does neither; arguments as for `cone_update`.

    Where friction couples normal and tangents strongly, both may be possible: then a contact that is pressed sticks. A
    block of low rank may leave the contact a velocity whatever the impulses are: then it does not stick.
    """
    b = w - block.A @ lam  # what others leave of its velocity
    stuck = lam - block.inverse @ w
    remaining, fast = np.abs(b + block.A @ stuck), np.abs(w)
    stops = _largest(remaining) <= _STICKING_LEFT * _largest(fast) + _STICKING_ROUNDING * _largest(np.abs(b))
    holds = stops & (stuck[0] > 0.0) & (stuck[1] ** 2 + stuck[2] ** 2 <= (friction * stuck[0]) ** 2)
    opens = (b[0] >= 0.0) & np.logical_not(holds & (lam[0] > 0.0))
    return np.array([np.where(opens, 0.0, value) for value in stuck]), np.logical_not(opens | holds)


def _largest(values: Array) -> Any:
    return np.maximum(np.maximum(values[0], values[1]), values[2])


def cone_sliding(block: ConeBlock, mu: Any, lam: Array, w: Array) -> Array:
    """Impulses on the edge of the cone, λ_t = µ λ_n u, with w_n = 0 and u against the slip; or a projected step.

    u starts from the projected step, or from the direction of sticking where that step stays within the cone, and one
    step of Newton's method turns it towards a zero of F(u) = u × w_t (see bisection.py) where F' > 0. If friction would
    then drive the slip, the contact jams, and the projected step is taken. Divisions are few, because they are
    expensive in lanes. Arguments as for `cone_update`.
    """
    A = block.A
    b, stuck = w - A @ lam, lam - block.inverse @ w
    a, (cx, cy), ((Txx, Txy), (_, Tyy)) = A[0, 0], A[0, 1:], A[1:, 1:]
    normal, px, py = unprojected_step(A, block.normal_step, block.tangent_step, lam, w)
    within = px * px + py * py <= (mu * normal) ** 2
    dx, dy = np.where(within, stuck[1], px), np.where(within, stuck[2], py)
    scale = 1.0 / np.sqrt(dx * dx + dy * dy + TINY)
    dx, dy = scale * dx, scale * dy
    px, py = np.where(within, px, mu * normal * dx), np.where(within, py, mu * normal * dy)
    x, y = _turned(A, mu, b, dx, dy)
    size = a + mu * (cx * x + cy * y)
    firm = size > _JAMMED * a
    n = np.maximum(-b[0] / np.where(firm, size, 1.0), 0.0)
    tx, ty = mu * n * x, mu * n * y
    along = x * (b[1] + cx * n + Txx * tx + Txy * ty) + y * (b[2] + cy * n + Txy * tx + Tyy * ty)
    slides = firm & (along <= 0.0)
    return np.array([np.where(slides, n, normal), np.where(slides, tx, px), np.where(slides, ty, py)])


def _turned(A: Array, mu: Any, b: Array, x: Any, y: Any) -> tuple[Any, Any]:
    """The direction of sliding after one Newton step."""
    a, (cx, cy), ((Txx, Txy), (_, Tyy)) = A[0, 0], A[0, 1:], A[1:, 1:]
    F0, F1 = a * b[2] - b[0] * cy, b[0] * cx - a * b[1]
    F2, F3 = mu * (cx * b[2] - b[0] * Txy), mu * (b[0] * Txy - cy * b[1])
    F4 = mu * (cy * b[2] - cx * b[1] - b[0] * (Tyy - Txx))
    F = F0 * x + F1 * y + F2 * x * x + F3 * y * y + F4 * x * y
    rate = F1 * x - F0 * y + 2.0 * (F3 - F2) * x * y + F4 * (x * x - y * y)
    turn = np.where(rate > 0.0, -F / np.where(rate > 0.0, rate, 1.0), 0.0)
    turn = np.clip(turn, -_LARGEST_TURN, _LARGEST_TURN)
    shrink = 1.0 / np.sqrt(1.0 + turn * turn)
    return shrink * (x - turn * y), shrink * (y + turn * x)
