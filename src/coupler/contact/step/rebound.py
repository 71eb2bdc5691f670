"""Contacts that rebound in place, as steps of a program: the law of restitution.py, before and after the sweeps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.laws import let_out
from coupler.contact.restitution import Restitution, pending_rebound, rebound_terms
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene, rebounding
from coupler.contact.step.blocks import BlockKernel, Blocks
from coupler.graph import Builder, Vector, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.model import Robot


class Rebounds:
    """The contacts that can rebound in place.

    Attributes:
        velocities: buffers for the velocities of all contacts: `free` after a step without impulses, and `approach`
            before it.
    """

    def __init__(self, builder: Builder, robot: Robot, scene: ContactScene, blocks: Blocks) -> None:
        laws = [(pair.restitution, pair.friction) for pair in scene.pairs for _ in range(pair.count)]
        self._builder, self._robot, self._blocks, self._scene = builder, robot, blocks, scene
        self._contacts, self._laws = rebounding(scene.pairs), laws
        self.velocities = {name: builder.scratch(name, 3 * len(laws)) for name in ("free", "approach")}
        self._offset = blocks.given = builder.scratch("offset", blocks.rows.total)
        self._closing = builder.scratch("closing", len(self._contacts))

    def begin(self, gaps: Vector, pending: Vector, pending_next: Vector) -> None:
        """Writes the steps that compute b of these contacts, and the impulses that they are given.

        Args:
            gaps: the gaps of all contacts, m.
            pending: the numbers that the previous step left to this one, three for each contact that can rebound.
            pending_next: gets what this step leaves to the next; it is cleared.
        """
        clear(self._builder, pending_next)
        clear(self._builder, self._offset)
        for law, numbers in self._groups():
            contacts = [self._contacts[i] for i in numbers]
            rows = self._blocks.rows.first[contacts]
            window = self._velocities_of(contacts) | fields(
                gap=gaps.at(contacts),
                pending=pending.at([3 * i for i in numbers], 3),
                friction=constants([self._laws[k][1] for k in contacts]),
                pace=constants(np.full(len(contacts), 1.0 / self._scene.step)),
                b=self._blocks.b.at(rows, 3),
                offset=self._offset.at(rows, 3),
                closing=self._closing.at(numbers),
                **self._scene.gravity_for(self._robot, len(contacts)),
            )
            self._builder.loop(_beginning(law, self._scene), view=window)

    def end(self, pending: Vector) -> None:
        """Writes the steps that compute what is left to the next step.

        Args:
            pending: gets the result, three numbers for each contact that can rebound.
        """
        number = {contact: i for i, contact in enumerate(self._contacts)}
        for law, numbers in self._groups():
            for contacts in self._blocks.alike([self._contacts[i] for i in numbers]):
                places = [number[contact] for contact in contacts]
                window = self._blocks.of(contacts) | self._velocities_of(contacts)
                window |= fields(closing=self._closing.at(places), pending=pending.at([3 * i for i in places], 3))
                self._builder.loop(_ending(law), block=window, **self._blocks.among("active", contacts))

    def add_given(self) -> None:
        """Writes the steps that add the impulses which contacts are given to those that are solved for."""
        n, impulses = self._offset.size, self._blocks.impulses
        self._builder.loop(_add_offset, view=fields(offset=self._offset.at(0, n), impulses=impulses.at(0, n)))

    def _groups(self) -> list[tuple[Restitution, list[int]]]:
        """Laws, with the numbers of their contacts among those that can rebound."""

        def law(i: int) -> Restitution:
            restitution = self._laws[self._contacts[i]][0]
            assert restitution is not None
            return restitution

        return list(grouped(range(len(self._contacts)), law).items())

    def _velocities_of(self, contacts: Indices) -> Window:
        return fields(**{name: buffer.at([3 * k for k in contacts], 3) for name, buffer in self.velocities.items()})


def _beginning(law: Restitution, scene: ContactScene) -> Callable[[View], None]:
    def beginning(view: View) -> None:
        closure = let_out(scene.seen(view.gap, view) * view.pace, view.approach[0], scene.recovery)
        terms = rebound_terms(law, view.friction, view.pending, closure, view.free, view.approach)
        view.b, view.offset, view.closing = terms.b, terms.offset, np.where(terms.closing, 1.0, 0.0)

    return beginning


def _ending(law: Restitution) -> BlockKernel:
    def ending(block: View) -> None:
        solved = block.A[0, 0], block.impulse[:3], block.w[:3]
        block.pending = pending_rebound(law, block.closing > 0.0, *solved, block.free, block.approach)

    return ending


def _add_offset(view: View) -> None:
    view.impulses += view.offset
