"""Islands of a contact problem, as steps of a program: groups of bodies that active blocks connect with each other.

A pile has many islands, and a few sweeps solve most of them. So further sweeps, and the refinement, run over the blocks
of those islands only that are not solved yet.
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
    """The islands of a problem's active blocks.

    Args:
        ways: the nodes through which blocks see each other.
    """

    def __init__(self, blocks: InteractingBlocks, ways: Ways) -> None:
        self._blocks, self._builder = blocks, blocks.builder
        self._nodes = [list(ways.parts_of_way(block)) for block in blocks.all]
        self._unsolved = self._builder.scratch("unsolved_nodes", len(ways.nodes))  # flags of nodes
        self._grows = self._builder.scratch("islands_grow", 1)

    def choose(self, tolerance: float) -> None:
        """Writes the steps that flag all blocks of unsolved islands as `refined`; velocities have been measured.

        Args:
            tolerance: an island is unsolved if one of its blocks breaks its law by more, m/s.
        """
        builder, blocks, grow = self._builder, self._blocks, fields(grow=self._grows.at(0))
        clear(builder, self._unsolved)
        limit = lambda rows: fields(tolerance=constants(np.full(len(rows), tolerance)))  # noqa: E731
        blocks.each(_flag_contact, _flag_joint, more=limit)
        builder.loop(_begin, islands=grow)
        with builder.repeat(until=_complete, at_most=self._unsolved.size, islands=grow):
            builder.loop(_grow_no_more, islands=grow)
            self._spread()
        builder.list_flags(blocks.flags["refined"])

    def _spread(self) -> None:
        """Writes loops that spread flags from blocks to the nodes on their ways, and from nodes to all their blocks."""
        flags = self._blocks.flags["refined"]
        for blocks in grouped(range(len(self._nodes)), lambda block: len(self._nodes[block])).values():
            block = fields(refined=flags.at(blocks)) | shared(grow=self._grows)(blocks)
            ways = zip(*(self._nodes[block] for block in blocks), strict=True)
            nodes = [fields(unsolved=self._unsolved.at(list(row))) for row in ways]
            self._builder.loop(_spread, block=block, nodes=nodes, **self._blocks.among("active", blocks))


def _flag_contact(block: View) -> None:
    block.refined = np.where(contact_error(block) <= block.tolerance, 0.0, 1.0)


def _flag_joint(block: View) -> None:
    block.refined = np.where(joint_error(block) <= block.tolerance, 0.0, 1.0)


def _spread(block: View, nodes: list[View]) -> None:
    flags = [block.refined, *(node.unsolved for node in nodes)]
    block.refined = reduce(np.maximum, flags)
    for node in nodes:
        node.unsolved = block.refined
    block.grow = np.maximum(block.grow, block.refined - reduce(np.minimum, flags))


def _begin(islands: View) -> None:
    islands.grow = np.array(1.0)


def _grow_no_more(islands: View) -> None:
    islands.grow = np.array(0.0)


def _complete(islands: View) -> Any:
    return islands.grow <= 0.0
