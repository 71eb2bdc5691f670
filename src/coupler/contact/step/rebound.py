"""Contacts that rebound in place, as steps of a program: restitution.py's law for all of them, around the sweeps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.laws import gap_seen, let_out
from coupler.contact.restitution import Restitution, pending_rebound, rebound_terms
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene, rebounding
from coupler.contact.step.blocks import Blocks, OwnKernel
from coupler.graph import Builder, Vector, View, Window, constants, fields


class Rebounds:
    """The contacts of a program that can rebound.

    Attributes:
        velocities: buffers for the velocities of all contacts: `free` after a step without impulses, and `approach`
            before it.
    """

    def __init__(self, builder: Builder, scene: ContactScene, blocks: Blocks) -> None:
        laws = [(pair.restitution, pair.friction) for pair in scene.pairs for _ in range(pair.count)]
        self._builder, self._blocks, self._scene = builder, blocks, scene
        self._contacts, self._laws = rebounding(scene.pairs), laws
        self.velocities = {name: builder.scratch(name, 3 * len(laws)) for name in ("free", "approach")}
        self._offset = blocks.given = builder.scratch("offset", blocks.rows.total)
        self._closing = builder.scratch("closing", len(self._contacts))

    def begin(self, gaps: Vector, pending: Vector, left: Vector) -> None:
        """Writes what these contacts bring into the problem.

        Args:
            gaps: of all contacts.
            pending: what the step before left, three numbers for each contact that can rebound.
            left: what this step leaves, nothing so far.
        """
        clear(self._builder, left)
        clear(self._builder, self._offset)
        for law, at in self._groups():
            own = [self._contacts[i] for i in at]
            window = self._seen(own) | fields(
                gap=gaps.at(own),
                pending=pending.at([3 * i for i in at], 3),
                friction=constants([self._laws[k][1] for k in own]),
                pace=constants(np.full(len(own), 1.0 / self._scene.step)),
                b=self._blocks.b.at(self._blocks.rows.first[own], 3),
                offset=self._offset.at(self._blocks.rows.first[own], 3),
                closing=self._closing.at(at),
            )
            self._builder.loop(_beginning(law, self._scene), view=window)

    def end(self, pending: Vector) -> None:
        """Writes what is left to the next step."""
        number = {contact: i for i, contact in enumerate(self._contacts)}

        def more(contacts: Indices) -> Window:
            own = [number[contact] for contact in contacts]
            rest = fields(closing=self._closing.at(own), pending=pending.at([3 * i for i in own], 3))
            return self._seen(contacts) | rest

        for law, at in self._groups():
            own = [self._contacts[i] for i in at]
            for contacts in self._blocks.alike(own):
                window = self._blocks.of(contacts) | more(contacts)
                self._builder.loop(_ending(law), own=window, **self._blocks.among("active", contacts))

    def add_given(self) -> None:
        """Writes all impulses together."""
        n, impulses = self._offset.size, self._blocks.impulses
        self._builder.loop(_together, view=fields(offset=self._offset.at(0, n), impulses=impulses.at(0, n)))

    def _groups(self) -> list[tuple[Restitution, list[int]]]:
        """Laws, with the numbers of their contacts among those that can rebound."""
        found: dict[Restitution, list[int]] = {}
        for i, k in enumerate(self._contacts):
            law = self._laws[k][0]
            assert law is not None
            found.setdefault(law, []).append(i)
        return list(found.items())

    def _seen(self, contacts: Indices) -> Window:
        return fields(**{name: buffer.at([3 * k for k in contacts], 3) for name, buffer in self.velocities.items()})


def _beginning(law: Restitution, scene: ContactScene) -> Callable[[View], None]:
    def beginning(view: View) -> None:
        closure = let_out(gap_seen(view.gap, scene.penetration) * view.pace, view.free[0], scene.recovery)
        terms = rebound_terms(law, view.friction, view.pending, closure, view.free, view.approach)
        view.b, view.offset, view.closing = terms.b, terms.offset, np.where(terms.closing, 1.0, 0.0)

    return beginning


def _ending(law: Restitution) -> OwnKernel:
    def ending(own: View) -> None:
        solved = own.A[0, 0], own.impulse[:3], own.w[:3]
        own.pending = pending_rebound(law, own.closing > 0.0, *solved, own.free, own.approach)

    return ending


def _together(view: View) -> None:
    view.impulses += view.offset
