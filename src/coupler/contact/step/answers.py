"""How the law of a contact answers small changes of its velocities: Δλ = p − Q Δw.

Laws here are sharp: each is linearised on the piece that a contact is on, as semismooth Newton methods do. The
refinement has smoothed laws, too. All of them consist of a normal, and of discs that the normal's impulse ν bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coupler.contact import laws

Array = Any  # an ndarray of floats, or of nodes

SOFT = 1e-9  # of a row's mobility: added to A's diagonal, in derivatives alone, because contacts may be redundant


def answer(pn: Any, qn: Any, discs: Iterable[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    """p and Q of a contact, put together from its normal and discs.

    Args:
        pn, qn: p and Q of its normal.
        discs: for each disc p, its derivative by ν, and Q.
    """
    discs = list(discs)
    width = 1 + sum(len(p) for p, _, _ in discs)
    p, Q = [pn], [[qn, *[0.0] * (width - 1)]]
    for p_disc, rate, Q_disc in discs:
        before = [0.0] * (len(p) - 1)
        after = [0.0] * (width - len(p) - len(p_disc))
        Q += [[qn * rate[i], *before, *Q_disc[i], *after] for i in range(len(p_disc))]
        p += [p_disc[i] + pn * rate[i] for i in range(len(p_disc))]
    return np.array(p), np.array(Q)


def sharp_answer(
    mobility: Sequence[Any], friction: laws.Friction, lam: Array, w: Array, soft: Any = SOFT, eager: Any = 0.0
) -> tuple[Array, Array]:
    """p and Q of a contact by its sharp law.

    Args:
        mobility, friction, lam, w: as for `cone_error`.
        soft: a value that replaces `SOFT`.
        eager: contacts that open no faster count as pressed, and contacts that slip no faster as sticking, m/s.
    """
    m, pressed = mobility[0], mobility[0] * lam[0] > w[0] - eager
    stiff, normal = 1.0 / (soft * m), np.maximum(lam[0], 0.0)
    p, q = np.where(pressed, -w[0] * stiff, -lam[0]), np.where(pressed, stiff, 0.0)
    # A contact that opens lets go of its tangents at once, however little it was pressed.
    discs = zip(laws.discs([np.where(pressed, size, 0.0) for size in friction]), mobility[1:], strict=True)
    return answer(p, q, [_disc(m, size, normal, lam[rows], w[rows], soft, eager) for (size, rows), m in discs])


def _disc(m: Any, size: Any, nu: Any, t: Array, w: Array, soft: Any, eager: Any) -> tuple[Array, Array, Array]:
    """p, its derivative by ν, and Q of a disc of one row or two with mobility m."""
    z = t - w / m
    length, radius = np.sqrt(z @ z), size * nu
    sticks = m * (length - radius) <= eager
    k = np.where(sticks, 1.0, radius / (length + laws.TINY))
    u = np.where(sticks, 0.0, 1.0) * z / (length + laws.TINY)
    across = 1.0 / (1.0 - k * (1.0 - soft))  # how much more softly changes across u are answered
    f = t - k * z
    along = (u @ f) * u
    return -(along + across * (f - along)), size * u, (across * k / m) * (np.eye(len(t)) - u[:, None] * u)
