"""How a contact's law answers small changes of its velocities: Δλ = p − Q Δw.

Here are the laws as they are, each on the piece that a contact is on: semismooth Newton. The refinement has smoothed
ones, too. All consist of a normal, and of discs whose bounds the normal's impulse ν gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coupler.contact import laws

Array = Any  # an ndarray of floats, or of nodes

SOFT = 1e-9  # of a row's mobility, added to A's diagonal in derivatives alone: contacts may be redundant


def answer(pn: Any, qn: Any, discs: Iterable[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    """p and Q of a contact.

    Args:
        pn, qn: those of its normal.
        discs: of each disc p, its rate by ν, and Q.
    """
    discs = list(discs)
    width = 1 + sum(len(p) for p, _, _ in discs)
    p, Q = [pn], [[qn, *[0.0] * (width - 1)]]
    for own, rate, block in discs:
        before = [0.0] * (len(p) - 1)
        after = [0.0] * (width - len(p) - len(own))
        Q += [[qn * rate[i], *before, *block[i], *after] for i in range(len(own))]
        p += [own[i] + pn * rate[i] for i in range(len(own))]
    return np.array(p), np.array(Q)


def sharp_answer(mobility: Sequence[Any], friction: laws.Friction, lam: Array, w: Array) -> tuple[Array, Array]:
    """p and Q of a contact by its law as it is; arguments as for `cone_error`."""
    normal = np.maximum(lam[0], 0.0)
    discs = zip(laws.discs(friction), mobility[1:], strict=True)
    return answer(
        *_normal(mobility[0], lam[0], w[0]),
        [_disc(m, size, normal, lam[own], w[own]) for (size, own), m in discs],
    )


def _normal(m: Any, lam: Any, w: Any) -> tuple[Any, Any]:
    """p and Q of a normal with mobility m."""
    stiff = 1.0 / (SOFT * m)
    pressed = m * lam > w
    return np.where(pressed, -w * stiff, -lam), np.where(pressed, stiff, 0.0)


def _disc(m: Any, size: Any, nu: Any, t: Array, w: Array) -> tuple[Array, Array, Array]:
    """p, its rate by ν, and Q of a disc of one row or two with mobility m."""
    z = t - w / m
    length, radius = np.sqrt(z @ z), size * nu
    sticks = length <= radius
    k = np.where(sticks, 1.0, radius / (length + laws.TINY))
    u = np.where(sticks, 0.0, 1.0) * z / (length + laws.TINY)
    across = 1.0 / (1.0 - k * (1.0 - SOFT))  # what changes across u answer with, more softly
    f = t - k * z
    along = (u @ f) * u
    return -(along + across * (f - along)), size * u, (across * k / m) * (np.eye(len(t)) - u[:, None] * u)
