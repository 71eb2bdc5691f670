"""When contacts that are more than needed are to share their load, as steps of a program.

A box on four corners, or between two flat jaws, can be held by many impulses, and sweeps find any of them. With
friction that matters: a box that slips turns about the corner which happens to carry most. So the refinement looks for
those impulses that are smallest (refinement/shares.py), once some are found. Here is what decides whether it does.
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

_CROWD = 4  # contacts of two links: normals of three of them have no choice
_SMALL = 1e-7  # m/s: sweeps that change less leave impulses about as they were in the step before, and shared


class Sharing:
    """The pairs of links that may touch in more points than they need.

    Attributes:
        possible: whether there are any.
        wanted: 1, whether the impulses of a state are to be shared.
    """

    def __init__(self, robot: Robot, scene: ContactScene, blocks: Blocks) -> None:
        """Args: a robot, what its step takes into account, and the step's problem."""
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
        """Writes the steps to whether impulses are to be shared.

        Args:
            change: 1, the largest change that sweeps have made; see `Relaxation`.
        """
        builder, blocks = self._builder, self._blocks
        clear(builder, self.wanted)
        state = fields(change=change.at(0), wanted=self.wanted.at(0))
        with builder.repeat(until=_was_shared, at_most=1, state=state):
            clear(builder, self._counts)
            for contacts in blocks.alike(sorted(self._crowd_of)):
                count = fields(count=self._counts.at([self._crowd_of[int(k)] for k in contacts]))
                builder.loop(_count, own=blocks.of(contacts) | count, **blocks.among("active", contacts))
            crowds = range(self._counts.size)
            wanted = fields(count=self._counts.at(crowds), wanted=self.wanted.at([0] * len(crowds)))
            builder.loop(_want, crowd=wanted)


def _was_shared(state: View) -> Any:
    return state.change <= _SMALL


def _count(own: View) -> None:
    own.count = own.count + np.where(own.impulse[0] > 0.0, 1.0, 0.0)


def _want(crowd: View) -> None:
    crowd.wanted = np.where(crowd.count >= float(_CROWD), 1.0, crowd.wanted)
