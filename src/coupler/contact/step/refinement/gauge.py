"""A scale of impulses: the size of impulses that would hold all rows if friction had no bounds.

The interior point method starts from impulses of a common scale. Where the scale of the sweeps' impulses has not led to
a solution, this scale is tried.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from coupler.contact import laws
from coupler.contact.step.blocks import mobilities
from coupler.contact.step.refinement.interior import by_rows, root_masses
from coupler.graph import View

_HELD = 1e-6  # of mobilities: added to A's diagonal, because rows that are all held may be redundant


def hold_contact(block: View) -> None:
    normal, *others = mobilities(block)
    stiff = 1.0 / (_HELD * by_rows(block, [normal + laws.TINY, *others]))
    block.p, block.Q = -stiff * block.b, stiff[:, None] * np.eye(len(stiff))


def gauge_contact(block: View) -> None:
    held = np.abs(block.p - block.Q @ block.dw) / by_rows(block, root_masses(block))
    block.scale = reduce(np.maximum, held, block.scale)
    block.impulse = block.best


def hold_joint(block: View) -> None:
    stiff = 1.0 / (_HELD * (block.a + laws.TINY))
    block.p, block.Q = -stiff * block.b, np.array([[stiff]])


def gauge_joint(block: View) -> None:
    block.scale = np.maximum(block.scale, np.abs((block.p - block.Q @ block.dw)[0]) * np.sqrt(block.a + laws.TINY))
    block.impulse = block.best
