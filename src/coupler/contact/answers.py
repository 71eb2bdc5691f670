"""How the laws of contacts and joints answer small changes of velocities: Δλ = p − Q Δw.

Laws are made of two parts. A *normal* has λ ≥ 0, w ≥ 0, λ w = 0: of a contact, or of a joint at a limit. A *disc* has
impulses t of one or two rows with |t| ≤ size · ν, which oppose w and reach that bound if w ≠ 0: of the tangents of a
contact, where ν is the normal impulse and size is µ; or of a joint's dry friction, where ν = 1 and size is its bound.

Each method linearises the same laws in its own way. Newton's method (semismooth) does it for λ = P(λ − w/m), with the
mobility m of rows. The interior point has slacks s for w, a further unknown φ for each disc, and a number κ that goes
to zero:

    λ s = κ;    ν φ + t·s = κ,    size² ν s + φ t = 0,

which for κ = 0 are the laws themselves; friction is not associated: the slip does not open the contact. Functions take
floats or nodes of a trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.laws import TINY

__all__ = [
    "interior_disc",
    "interior_normal",
    "longest_in_cone",
    "longest_positive",
    "newton_disc",
    "newton_normal",
]

Array = Any  # an ndarray of floats, or of nodes

SOFT = 1e-9  # of a row's mobility, added to A's diagonal in derivatives alone: contacts may be redundant
_ENDLESS = 1e30  # a step that nothing bounds


# Newton's method


def newton_normal(m: Any, lam: Any, w: Any) -> tuple[Any, Any]:
    """p and Q of a normal with mobility m."""
    stiff = 1.0 / (SOFT * m)
    pressed = m * lam > w
    return np.where(pressed, -w * stiff, -lam), np.where(pressed, stiff, 0.0)


def newton_disc(m: Any, size: Any, nu: Any, t: Array, w: Array) -> tuple[Array, Array, Array]:
    """p (2), its rate by ν (2), and Q (2 × 2) of a disc of two rows with mobility m."""
    z = t - w / m
    length, radius = np.sqrt(z @ z), size * nu
    sticks = length <= radius
    k = np.where(sticks, 1.0, radius / (length + TINY))
    u = np.where(sticks, 0.0, 1.0) * z / (length + TINY)
    across = 1.0 / (1.0 - k * (1.0 - SOFT))  # what changes across u answer with, more softly
    f = t - k * z
    along = (u @ f) * u
    return -(along + across * (f - along)), size * u, (across * k / m) * (np.eye(2) - u[:, None] * u)


# The interior point


def interior_normal(lam: Any, s: Any, gap: Any, e: Any) -> tuple[Any, Any]:
    """p and Q of a normal, for λ Δs + s Δλ = e and Δs = Δw + gap."""
    q = lam / s
    return e / s - q * gap, q


def interior_disc(
    size: Any, nu: Any, phi: Any, t: Array, s: Array, gap: Array, e0: Any, e: Array
) -> tuple[Array, Array, Array]:
    """p (2), its rate by ν (2), and Q (2 × 2) of a disc, for Δs = Δw + gap, its equations changing by e0 and e.

    Without Δφ: (ν φ − t sᵀ) Δt = ν e − t e0 − (size² ν² − t tᵀ) Δs − (size² ν s − φ t) Δν.
    """
    area, whole = size * size * nu, nu * phi
    one = 1.0 / whole
    two = one / (whole - s @ t)

    def solved(x: Array) -> Array:
        """(ν φ − t sᵀ)⁻¹ x, after Sherman and Morrison."""
        return one * x + (two * (s @ x)) * t

    columns = area * nu * np.eye(len(t)) - t[:, None] * t
    Q = np.stack([solved(columns[:, j]) for j in range(len(t))], axis=1)
    return solved(nu * e - e0 * t) - Q @ gap, solved(phi * t - area * s), Q


def longest_positive(value: Any, change: Any) -> Any:
    """The longest step along a change that keeps a value ≥ 0."""
    falls = change < 0.0
    return np.where(falls, -value / np.where(falls, change, -1.0), _ENDLESS)


def longest_in_cone(c: Any, dc: Any, t: Array, dt: Array) -> Any:
    """The longest step along (dc, dt) that keeps |t| ≤ c, from inside."""
    a, h = dc * dc - dt @ dt, c * dc - t @ dt
    f = np.maximum(c * c - t @ t, 0.0)
    square = h * h - a * f
    ends = ((a < 0.0) | (h < 0.0)) & (square >= 0.0)
    divisor = np.sqrt(np.maximum(square, 0.0)) - h  # of the least root of a x² + 2 h x + f
    return np.where(ends & (divisor > 0.0), f / np.where(divisor > 0.0, divisor, 1.0), _ENDLESS)
