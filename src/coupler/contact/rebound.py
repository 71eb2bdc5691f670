"""Contacts that rebound, as steps of a program: what restitution.py says of one, for all of them around the sweeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.laws import gap_seen
from coupler.contact.relaxation import Relaxation
from coupler.contact.restitution import Restitution, pending_rebound, rebound_terms
from coupler.contact.scene import ContactScene, rebounding
from coupler.graph import Buffer, Builder, View, Window, constants, fields

__all__ = ["Rebounds"]


class Rebounds:
    """The contacts of a program that can rebound.

    Attributes:
        told: buffers for the velocities of all contacts: `free` after a step without impulses, `approach` before it.
    """

    def __init__(self, builder: Builder, scene: ContactScene, relaxation: Relaxation) -> None:
        laws = [(pair.restitution, pair.friction) for pair in scene.pairs for _ in range(pair.count)]
        self._builder, self._relaxation, self._scene = builder, relaxation, scene
        self._contacts, self._laws = rebounding(scene.pairs), laws
        self.told = {name: builder.scratch(name, 3 * len(laws)) for name in ("free", "approach")}
        self._offset = builder.scratch("offset", relaxation.b.size)
        self._closing = builder.scratch("closing", len(self._contacts))

    def begin(self, gaps: Buffer, pending: Buffer) -> None:
        """Writes what these contacts bring into the problem.

        Args:
            gaps: of all contacts.
            pending: what the step before left, three numbers for each contact that can rebound.
        """
        n = self._offset.size
        self._builder.loop(clear, here=fields(target=self._offset.at(0, n)))
        for law, at in self._groups():
            own = [self._contacts[i] for i in at]
            window = self._seen(own) | fields(
                gap=gaps.at(own),
                pending=pending.at([3 * i for i in at], 3),
                friction=constants([self._laws[k][1] for k in own]),
                pace=constants(np.full(len(own), 1.0 / self._scene.step)),
                b=self._relaxation.b.at([3 * k for k in own], 3),
                offset=self._offset.at([3 * k for k in own], 3),
                closing=self._closing.at(at),
            )
            self._builder.loop(_beginning(law, self._scene.penetration), here=window)

    def spread(self) -> None:
        """Writes what impulses given in advance do to all rows, once A is there."""
        if any(law is not None and law.form == "impulse" for law, _ in self._laws):
            n, A, b = self._offset.size, self._relaxation.A, self._relaxation.b
            window = fields(
                row=A.at([n * i for i in range(n)], n), offset=self._offset.at([0] * n, n), b=b.at(range(n))
            )
            self._builder.loop(_spreading, here=window)

    def end(self, pending: Buffer) -> None:
        """Writes what is left to the next step, and all impulses together."""
        n, relaxation = self._offset.size, self._relaxation
        for law, at in self._groups():
            own = [self._contacts[i] for i in at]
            window = self._seen(own) | fields(
                rows=relaxation.A.at([3 * k * n for k in own], (3, n)),
                b=relaxation.b.at([3 * k for k in own], 3),
                all=relaxation.impulses.at([0] * len(own), n),
                impulse=relaxation.impulses.at([3 * k for k in own], 3),
                mobility=relaxation.A.at([3 * k * (n + 1) for k in own]),
                closing=self._closing.at(at),
                pending=pending.at([3 * i for i in at], 3),
            )
            self._builder.loop(_ending(law), here=window)
        both = fields(offset=self._offset.at(0, n), impulses=relaxation.impulses.at(0, n))
        self._builder.loop(_together, here=both)

    def _groups(self) -> list[tuple[Restitution, list[int]]]:
        """Laws, with the numbers of their contacts among those that can rebound."""
        found: dict[Restitution, list[int]] = {}
        for i, k in enumerate(self._contacts):
            law = self._laws[k][0]
            assert law is not None
            found.setdefault(law, []).append(i)
        return list(found.items())

    def _seen(self, contacts: Sequence[int]) -> Window:
        return fields(**{name: buffer.at([3 * k for k in contacts], 3) for name, buffer in self.told.items()})


def _beginning(law: Restitution, penetration: str | float) -> Callable[[View], None]:
    def beginning(here: View) -> None:
        closure = gap_seen(here.gap, penetration) * here.pace
        terms = rebound_terms(law, here.friction, here.pending, closure, here.free, here.approach)
        here.b, here.offset, here.closing = terms.b, terms.offset, np.where(terms.closing, 1.0, 0.0)

    return beginning


def _ending(law: Restitution) -> Callable[[View], None]:
    def ending(here: View) -> None:
        closing, velocity = here.closing > 0.0, here.rows @ here.all + here.b
        here.pending = pending_rebound(law, closing, here.mobility, here.impulse, velocity, here.free, here.approach)

    return ending


def _spreading(here: View) -> None:
    here.b += here.row @ here.offset


def _together(here: View) -> None:
    here.impulses += here.offset
