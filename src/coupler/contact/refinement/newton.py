"""Newton's method on the laws of contacts and joints as they are: λ = P(λ − w/m), with the mobility m of rows.

It is semismooth: laws have kinks, and derivatives are those of the piece that a block is on. Where it converges, a few
iterations make impulses exact to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.graph import View

__all__ = ["SOFT", "answer", "linearise_contact", "linearise_joint", "step_contact", "step_joint"]

Array = Any  # an ndarray of floats, or of nodes

SOFT = 1e-9  # of a row's mobility, added to A's diagonal in derivatives alone: contacts may be redundant


def linearise_contact(own: View) -> None:
    lam, w = own.point, own.w
    p, q = _normal(own.A[0, 0] + laws.TINY, lam[0], w[0])
    answer(own, p, q, *_disc(own.mobility, own.friction, np.maximum(lam[0], 0.0), lam[1:], w[1:]))


def answer(own: View, pn: Any, qn: Any, pt: Any, rate: Any, Qt: Any) -> None:
    """p and Q of a contact, from those of its normal, and of its tangents with their rate by the normal impulse."""
    own.p = np.concatenate([np.array([pn]), pt + pn * rate])
    below = np.concatenate([(qn * rate)[:, None], Qt], axis=1)
    own.Q = np.concatenate([np.array([[qn, 0.0, 0.0]]), below])


def linearise_joint(own: View) -> None:
    target, held, brake = laws.joint_regime(own.a, own.low, own.high, own.bound, own.point[0], own.w[0])
    stiff = 1.0 / (SOFT * (own.a + laws.TINY))
    own.p = np.array([np.where(held, (target - own.w[0]) * stiff, brake - own.point[0])])
    own.Q = np.array([[np.where(held, stiff, 0.0)]])


def step_contact(own: View) -> None:
    own.impulse = laws.inside_cone(own.friction, own.point + own.p - own.Q @ own.dw)


def step_joint(own: View) -> None:
    own.impulse = own.point + own.p - own.Q @ own.dw


def _normal(m: Any, lam: Any, w: Any) -> tuple[Any, Any]:
    """p and Q of a normal with mobility m."""
    stiff = 1.0 / (SOFT * m)
    pressed = m * lam > w
    return np.where(pressed, -w * stiff, -lam), np.where(pressed, stiff, 0.0)


def _disc(m: Any, size: Any, nu: Any, t: Array, w: Array) -> tuple[Array, Array, Array]:
    """p (2), its rate by ν (2), and Q (2 × 2) of a disc of two rows with mobility m."""
    z = t - w / m
    length, radius = np.sqrt(z @ z), size * nu
    sticks = length <= radius
    k = np.where(sticks, 1.0, radius / (length + laws.TINY))
    u = np.where(sticks, 0.0, 1.0) * z / (length + laws.TINY)
    across = 1.0 / (1.0 - k * (1.0 - SOFT))  # what changes across u answer with, more softly
    f = t - k * z
    along = (u @ f) * u
    return -(along + across * (f - along)), size * u, (across * k / m) * (np.eye(2) - u[:, None] * u)
