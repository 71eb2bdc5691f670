"""Where the contacts of a problem have their rows, and blocks of all kinds their fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coupler.contact.laws import row_count
from coupler.graph import Builder, Field, Records, Window

Indices = Sequence[int] | np.ndarray  # of blocks

Layout = dict[str, int | tuple[int, ...] | Field]  # the fields of a record, by name


class ContactRows:
    """The rows of contacts, one contact after the other: see laws.py for what a contact's are.

    Attributes:
        discs: of each contact, how many discs of friction it has: 1, 2 with torsion, 3 with rolling friction.
        widths: of each contact, how many rows: 3, 4 or 6.
        first: of each contact, its first row, that of the normal.
        total: how many rows there are.
        coefficients: of each contact, where its coefficients of friction start, one for each disc.
    """

    def __init__(self, discs: Sequence[int]) -> None:
        self.discs = np.array(discs, int)
        self.widths = np.array([row_count(range(n)) for n in discs], int)
        ends = np.cumsum([0, *self.widths])
        self.first, self.total = ends[:-1], int(ends[-1])
        self.coefficients = np.cumsum([0, *self.discs])[:-1]

    def __len__(self) -> int:
        """How many contacts there are."""
        return len(self.discs)

    def width_of(self, block: int) -> int:
        """How many rows a block has, of which those behind the contacts have one each."""
        return int(self.widths[block]) if block < len(self) else 1

    def first_of(self, blocks: Indices) -> np.ndarray:
        """The first rows of blocks, of contacts or of those behind them."""
        own = np.asarray(blocks)
        return self.first[own] if own[0] < len(self) else own - len(self) + self.total

    def alike(self) -> list[list[int]]:
        """The numbers of contacts, those with the same rows together."""
        widths = sorted({*self.widths.tolist()})
        return [np.flatnonzero(self.widths == width).tolist() for width in widths]


class BlockRecords:
    """Fields of the blocks of a problem, contacts first: those of a kind have the same ones, in a buffer."""

    def __init__(
        self,
        builder: Builder,
        name: str,
        rows: ContactRows,
        joints: int,
        contact: Callable[[int, int], Layout],
        joint: Layout,
    ) -> None:
        """Begins.

        Args:
            builder: writes the program.
            name: of what they are.
            rows: of contacts.
            joints: how many blocks follow the contacts.
            contact: the fields of a contact, by how many rows and discs it has.
            joint: the fields of a joint.
        """
        self._places, self._kinds = np.empty(len(rows) + joints, int), dict[int, Records]()
        for own in rows.alike():
            width = int(rows.widths[own[0]])
            layout = contact(width, int(rows.discs[own[0]]))
            self._add(own, builder.records(f"{name}_of_{width}", len(own), **layout))
        self._add(range(len(rows), len(rows) + joints), builder.records(f"{name}_of_joint", joints, **joint))

    def _add(self, blocks: Sequence[int], records: Records) -> None:
        self._places[blocks] = np.arange(len(blocks))
        self._kinds |= dict.fromkeys(blocks, records)

    def of(self, blocks: Indices) -> Window:
        """The fields of blocks of one kind."""
        return self._kinds[blocks[0]][self._places[np.asarray(blocks)]]
