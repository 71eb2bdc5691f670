"""Islands of a contact problem, as steps of a program: bodies that active blocks connect, and that no others act on.

A pile has many of them, and few sweeps solve most. So further sweeps, and the refinement, take those alone that are not
solved.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.step.blocks import contact_error, joint_error, shared
from coupler.contact.step.interaction import InteractingBlocks, Ways
from coupler.graph import View, constants, fields
from coupler.grouping import grouped


class Islands:
    """The islands of a problem's active blocks."""

    def __init__(self, blocks: InteractingBlocks, ways: Ways) -> None:
        """Args: the blocks, and the nodes through which they see each other."""
        self._blocks, self._builder = blocks, blocks.builder
        self._nodes = [list(ways.parts_of_way(block)) for block in blocks.all]
        self._unsolved = self._builder.scratch("unsolved_nodes", len(ways.nodes))  # flags of nodes
        self._grows = self._builder.scratch("islands_grow", 1)

    def choose(self, tolerance: float) -> None:
        """Writes the steps that flag blocks as `refined` whose islands break a law by more than a tolerance, m/s.

        Velocities of blocks have been measured.
        """
        builder, blocks, grow = self._builder, self._blocks, fields(grow=self._grows.at(0))
        clear(builder, self._unsolved)
        limit = lambda own: fields(tolerance=constants(np.full(len(own), tolerance)))  # noqa: E731
        blocks.each(_break_contact, _break_joint, more=limit)
        builder.loop(_begin, islands=grow)
        with builder.repeat(until=_whole, at_most=self._unsolved.size, islands=grow):
            builder.loop(_grow_no_more, islands=grow)
            self._spread()
        blocks.list_flags("refined")

    def _spread(self) -> None:
        """Writes loops by which a block that is to be refined makes its nodes so, and these their other blocks."""
        blocks = self._blocks
        for own in grouped(range(len(self._nodes)), lambda block: len(self._nodes[block])).values():
            known = fields(refined=blocks.flags["refined"].at(own)) | shared(grow=self._grows)(own)
            ways = zip(*(self._nodes[block] for block in own), strict=True)
            nodes = [fields(unsolved=self._unsolved.at(list(row))) for row in ways]
            self._builder.loop(_spread, own=known, nodes=nodes, **blocks.among("active", own))


def _break_contact(own: View) -> None:
    own.refined = np.where(contact_error(own) <= own.tolerance, 0.0, 1.0)


def _break_joint(own: View) -> None:
    own.refined = np.where(joint_error(own) <= own.tolerance, 0.0, 1.0)


def _spread(own: View, nodes: list[View]) -> None:
    flags = [own.refined, *(node.unsolved for node in nodes)]
    own.refined = reduce(np.maximum, flags)
    for node in nodes:
        node.unsolved = own.refined
    own.grow = np.maximum(own.grow, own.refined - reduce(np.minimum, flags))


def _begin(islands: View) -> None:
    islands.grow = np.array(1.0)


def _grow_no_more(islands: View) -> None:
    islands.grow = np.array(0.0)


def _whole(islands: View) -> Any:
    return islands.grow <= 0.0
