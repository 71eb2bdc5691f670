"""Updates of the impulses of one contact with torsion or rolling friction, given all others: see cone_update.py.

Sliding, spin and rolling are coupled, most of all where a ball rolls: what stops it from rolling makes it slide. So
after a step for each by itself comes one step of Newton's method for all together, which is kept where it does better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.step.answers import sharp_answer
from coupler.contact.step.cone_update import ConeBlock, cone_update
from coupler.linear import solve

Array = Any  # an ndarray of floats, or of nodes


def turning_update(
    block: ConeBlock, A: Array, mobility: Sequence[Any], friction: laws.Friction, lam: Array, w: Array
) -> Array:
    """Improved impulses of a contact with torsion, with or without rolling friction.

    Args:
        block: the contact's normal and tangents, prepared.
        A: 4 × 4 or 6 × 6, its own block of A.
        mobility, friction, lam, w: as for `cone_error`.
    """
    pressed = cone_update(block, friction[0], lam[:3], w[:3])
    first = laws.turning_step(A, [1.0 / m for m in mobility[2:]], friction, lam, w, pressed)
    w_first = w + A @ (first - lam)
    p, Q = sharp_answer([mobility[0] + laws.TINY, *mobility[1:]], friction, first, w_first)
    second = laws.inside_cone(friction, first + solve(np.eye(len(A)) + Q @ A, p))
    w_second = w_first + A @ (second - first)
    one, other = (laws.cone_residual(friction, mobility, *x) for x in ((first, w_first), (second, w_second)))
    return np.where(other < one, second, first)
