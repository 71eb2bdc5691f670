"""The quantities that a step reports of its contacts, and where it writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from coupler.contact.rows import ContactRows
from coupler.graph import Buffer, Part, Slot, Vector


class ContactReport:
    """The vectors to which a step writes quantities of all candidate contacts.

    Args:
        rows: the rows of all contacts.
        vectors: the vector of each quantity.

    Attributes:
        names: the quantities that are asked for. `gaps`, `points` and `frames` say where contacts are. `b` has the
            velocities of all rows without impulses, with what the gap adds; `start` the impulses of all rows to start
            from. `free` and `approach` have the velocities of normal and tangents after a step without impulses, and
            before the step. `closures` have what gaps add to the velocities of normals.
    """

    def __init__(self, rows: ContactRows, vectors: Mapping[str, Vector]) -> None:
        self._rows, self._vectors, self.names = rows, vectors, tuple(vectors)

    def of_all(self, name: str) -> Part:
        """A quantity of all contacts."""
        contacts, rows, vector = len(self._rows), self._rows.total, self._vectors[name]
        sizes = {"gaps": contacts, "closures": contacts, "frames": 9 * contacts, "b": rows, "start": rows}
        size = sizes.get(name, 3 * contacts)
        return Part(vector, 0, size) if isinstance(vector, Buffer) else replace(vector, size=size)

    def at(self, name: str, contacts: Sequence[int] | np.ndarray, vector: Vector | None = None) -> Slot:
        """The place of a quantity for some contacts.

        Args:
            name: the quantity.
            contacts: the contacts, all of equally many rows.
            vector: another vector of the same layout; the report's own if not given.
        """
        numbers, vector = np.array(contacts), vector or self._vectors[name]
        if name in ("b", "start"):
            return vector.at(self._rows.first[numbers], int(self._rows.widths[numbers[0]]))
        shape = {"gaps": (), "closures": (), "frames": (3, 3)}.get(name, (3,))
        return vector.at(int(np.prod(shape, dtype=int)) * numbers, shape)
