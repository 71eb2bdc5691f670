"""How large impulses may be: as large as those that would hold all rows, if friction had no bounds.

The interior point starts from impulses of a common scale. Where the scale of the sweeps' impulses has not led it to a
solution, this one is tried.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from coupler.contact import laws
from coupler.contact.step.blocks import mobilities
from coupler.contact.step.refinement.interior import by_rows, root_masses
from coupler.graph import View

_HELD = 1e-6  # of mobilities: added to A's diagonal, because rows that are all held may be redundant


def hold_contact(own: View) -> None:
    normal, *others = mobilities(own)
    stiff = 1.0 / (_HELD * by_rows(own, [normal + laws.TINY, *others]))
    own.p, own.Q = -stiff * own.b, stiff[:, None] * np.eye(len(stiff))


def gauge_contact(own: View) -> None:
    held = np.abs(own.p - own.Q @ own.dw) / by_rows(own, root_masses(own))
    own.scale = reduce(np.maximum, held, own.scale)
    own.impulse = own.best


def hold_joint(own: View) -> None:
    stiff = 1.0 / (_HELD * (own.a + laws.TINY))
    own.p, own.Q = -stiff * own.b, np.array([[stiff]])


def gauge_joint(own: View) -> None:
    own.scale = np.maximum(own.scale, np.abs((own.p - own.Q @ own.dw)[0]) * np.sqrt(own.a + laws.TINY))
    own.impulse = own.best
