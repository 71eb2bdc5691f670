"""Which contacts press in the end, as steps of a program, and the work of those that part what overlaps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coupler.contact.step.blocks import Blocks, shared
from coupler.graph import Vector, View, fields


def count_pressing(blocks: Blocks, closures: Vector, totals: Mapping[str, Vector], *, rebound: bool) -> None:
    """Writes the steps to both, from solved impulses; active blocks are listed from now on.

    Args:
        blocks: of contacts first.
        closures: for each contact, the part of b_n that comes from its gap, m/s; a pressing contact parts with −that.
        totals: `touching`, 1, how many contacts press; `parting`, 1, the most work that they do on what overlaps, J.
            Both are added to.
        rebound: whether contacts have impulses that are not active.
    """
    builder = blocks.builder
    builder.list_flags(blocks.flags["active"])
    for contacts in blocks.alike(range(blocks.contacts)):
        block = blocks.of(contacts) | shared(**totals)(contacts) | fields(closure=closures.at(contacts))
        listed = {} if rebound else blocks.among("active", contacts)
        builder.loop(_count, block=block, **listed)


def _count(block: View) -> None:
    presses = block.impulse[0] > 0.0
    block.touching = block.touching + np.where(presses, 1.0, 0.0)
    block.parting = block.parting + np.where(presses, block.impulse[0] * np.maximum(-block.closure, 0.0), 0.0)
