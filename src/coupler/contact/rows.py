"""The rows of contacts in a problem, and the fields of blocks of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coupler.contact.laws import row_count
from coupler.graph import Builder, Field, Records, Window
from coupler.grouping import grouped

Indices = Sequence[int] | np.ndarray  # of blocks

Layout = dict[str, int | tuple[int, ...] | Field]  # the fields of a record, by name


class ContactRows:
    """The rows of contacts, one contact after the other; laws.py says which rows a contact has.

    Attributes:
        discs: the number of discs of friction of each contact: 1, 2 with torsion, 3 with rolling friction.
        widths: the number of rows of each contact: 3, 4 or 6.
        first: the first row of each contact, that of the normal.
        total: the number of rows of all contacts.
        coefficients: the index of each contact's first coefficient of friction; there is one for each disc.
    """

    def __init__(self, discs: Sequence[int]) -> None:
        self.discs = np.array(discs, int)
        self.widths = np.array([row_count(range(n)) for n in discs], int)
        ends = np.cumsum([0, *self.widths])
        self.first, self.total = ends[:-1], int(ends[-1])
        self.coefficients = np.cumsum([0, *self.discs])[:-1]

    def __len__(self) -> int:
        """The number of contacts."""
        return len(self.discs)

    def width_of(self, block: int) -> int:
        """The number of rows of a block; blocks after the contacts have one each."""
        return int(self.widths[block]) if block < len(self) else 1

    def first_of(self, blocks: Indices) -> np.ndarray:
        """The first rows of blocks; the blocks are all contacts, or all come after the contacts."""
        numbers = np.asarray(blocks)
        return self.first[numbers] if numbers[0] < len(self) else numbers - len(self) + self.total

    def by_width(self) -> list[list[int]]:
        """The numbers of contacts, grouped by their number of rows, those with few rows first."""
        groups = grouped(range(len(self)), lambda contact: int(self.widths[contact]))
        return [groups[width] for width in sorted(groups)]


class BlockRecords:
    """Fields of the blocks of a problem, contacts first; blocks of one kind have the same fields, in one buffer.

    Args:
        name: the prefix of the buffers' names.
        joints: the number of blocks after the contacts.
        contact: gives the fields of a contact from its numbers of rows and discs.
        joint: the fields of a joint.
    """

    def __init__(
        self,
        builder: Builder,
        name: str,
        rows: ContactRows,
        joints: int,
        contact: Callable[[int, int], Layout],
        joint: Layout,
    ) -> None:
        self._places, self._kinds = np.empty(len(rows) + joints, int), dict[int, Records]()
        for contacts in rows.by_width():
            width = int(rows.widths[contacts[0]])
            layout = contact(width, int(rows.discs[contacts[0]]))
            self._add(contacts, builder.records(f"{name}_of_{width}", len(contacts), **layout))
        self._add(range(len(rows), len(rows) + joints), builder.records(f"{name}_of_joint", joints, **joint))

    def _add(self, blocks: Sequence[int], records: Records) -> None:
        self._places[blocks] = np.arange(len(blocks))
        self._kinds |= dict.fromkeys(blocks, records)

    def of(self, blocks: Indices) -> Window:
        """The fields of blocks, which must be of one kind."""
        return self._kinds[blocks[0]][self._places[np.asarray(blocks)]]
