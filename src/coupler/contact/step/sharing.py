"""Decides whether redundant contacts share their load, as steps of a program.

Many sets of impulses hold a box on its four corners, or between two flat jaws, and sweeps end at any of them. With
friction that matters: a box that slips turns about the corner that happens to carry most. So once the problem is
solved, the refinement goes on to the smallest impulses that solve it (refinement/shares.py). This file decides in which
states it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.scene import ContactScene
from coupler.contact.step.blocks import Blocks
from coupler.graph import Vector, View, fields
from coupler.grouping import grouped
from coupler.model import Robot

_CROWD = 4  # contacts between two links; the normal impulses of three are unique
_SMALL = 1e-7  # m/s: after sweeps that change less, impulses are shared as they were in the step before


class Sharing:
    """The crowds of a scene: contacts between two links that may be redundant.

    Attributes:
        possible: whether the scene has any.
        wanted: 1, above zero in states whose contacts are to share their load.
    """

    def __init__(self, robot: Robot, scene: ContactScene, blocks: Blocks) -> None:
        """Finds the crowds.

        Args:
            scene: its pairs of shapes.
            blocks: the contact problem of its step.
        """
        self._blocks, self._builder = blocks, blocks.builder
        pairs = [pair for pair in scene.pairs for _ in range(pair.count)]
        place = robot.tree.place
        links = grouped(
            range(len(pairs)), lambda k: frozenset(place[shape.body][0] for shape in (pairs[k].one, pairs[k].other))
        )
        crowds = [contacts for contacts in links.values() if len(contacts) >= _CROWD]
        self._crowd_of = {contact: i for i, contacts in enumerate(crowds) for contact in contacts}
        self.possible = bool(crowds)
        self.wanted = self._builder.scratch("sharing_wanted", 1)
        self._counts = self._builder.scratch("sharing_counts", max(len(crowds), 1))

    def look(self, change: Vector) -> None:
        """Writes the steps that decide: contacts share where a crowd presses and sweeps have changed something.

        Args:
            change: 1, the largest change by sweeps, m/s; see `Relaxation`.
        """
        builder, blocks = self._builder, self._blocks
        clear(builder, self.wanted)
        state = fields(change=change.at(0), wanted=self.wanted.at(0))
        with builder.repeat(until=_was_shared, at_most=1, state=state):
            clear(builder, self._counts)
            for contacts in blocks.alike(sorted(self._crowd_of)):
                count = fields(count=self._counts.at([self._crowd_of[int(k)] for k in contacts]))
                builder.loop(_count, block=blocks.of(contacts) | count, **blocks.among("active", contacts))
            crowds = range(self._counts.size)
            wanted = fields(count=self._counts.at(crowds), wanted=self.wanted.at([0] * len(crowds)))
            builder.loop(_want, crowd=wanted)


def _was_shared(state: View) -> Any:
    return state.change <= _SMALL


def _count(block: View) -> None:
    block.count = block.count + np.where(block.impulse[0] > 0.0, 1.0, 0.0)


def _want(crowd: View) -> None:
    crowd.wanted = np.where(crowd.count >= float(_CROWD), 1.0, crowd.wanted)
