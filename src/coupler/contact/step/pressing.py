"""Counts the contacts that press in the end, as steps of a program, and their work in parting what overlaps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coupler.contact.step.blocks import Blocks, shared
from coupler.graph import Vector, View, fields


def count_pressing(blocks: Blocks, closures: Vector, totals: Mapping[str, Vector], *, rebound: bool) -> None:
    """Writes the steps that count pressing contacts and add up their work; active blocks are listed from now on.

    Args:
        blocks: the contact problem, with its impulses solved.
        closures: for each contact, the part of b_n that comes from its gap, m/s; a pressing contact parts at −closure.
        totals: `touching`, 1, the number of pressing contacts; `parting`, 1, the most work that they do on what
            overlaps, J. The steps add to both.
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
