"""Which way each tree of bodies goes through a step, in each state: by halves, or all at once.

The midpoint rule goes half the way with the velocities before the step, x = q ⊕ h/2 v, takes forces there, and goes the
other half with those after it, q⁺ = x ⊕ h/2 v⁺ (drift, kick, drift). Impulses do not fit that: what they stop shall end
where it touches, which q⁺ = q ⊕ h v⁺ does, Euler's way. So a tree that impulses of contacts or limits act on goes from
where it started, with v⁺ all the time. And a tree that comes near a contact does not go at all before forces are taken,
lest something fast first meet what it hits from behind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.contact.scene import Layout
from coupler.contact.step.blocks import Blocks
from coupler.graph import Builder, Constants, Slot, Vector, View, constants, fields


class Halves:
    """The parts of a step that each tree of bodies goes before forces are taken, and afterwards.

    Attributes:
        switch: whether a tree can go either way; otherwise all go by halves, or all at once.
        near_next: for each tree, whether it will be near a contact; none where nothing touches.
    """

    def __init__(self, builder: Builder, layout: Layout, midpoint: bool, near: Vector, near_next: Vector) -> None:
        """Begins.

        Args:
            builder: writes the program.
            layout: of its state.
            midpoint: whether it follows the midpoint rule, or Euler's method.
            near: for each tree, whether it is near a contact at the start.
            near_next: gets the same for the next step.
        """
        self._builder, self._layout, self._midpoint = builder, layout, midpoint
        self._near, self.near_next = near, near_next
        self.switch = midpoint and bool(layout.stopping_rows)
        self._first, self._last, self._acted = (
            builder.scratch(name, layout.trees) if self.switch else None for name in ("first", "last", "acted")
        )

    def first(self, trees: Sequence[int]) -> Slot | Constants:
        """The part of the step that trees go before forces are taken: a half, or nothing."""
        part = 0.5 if self._midpoint else 0.0
        return self._first.at(trees) if self._first is not None else constants(np.full(len(trees), part))

    def last(self, trees: Sequence[int]) -> Slot | Constants:
        """The part that they go afterwards: a half from there, or all of it from the start."""
        part = 0.5 if self._midpoint else 1.0
        return self._last.at(trees) if self._last is not None else constants(np.full(len(trees), part))

    def acted(self, trees: Sequence[int]) -> Slot:
        """Whether impulses of contacts or limits act on trees, which then go from the start; only after a switch."""
        assert self._acted is not None
        return self._acted.at(trees)

    def near(self, trees: Sequence[int]) -> Slot | Constants:
        """Whether trees are near a contact at the start."""
        return self._near.at(trees) if self.switch and self._near.size else constants(np.zeros(len(trees)))

    def begin(self) -> None:
        """Writes the steps to the first parts."""
        if self._first is not None:
            trees = range(self._layout.trees)
            tree = fields(near=self.near(trees), first=self._first.at(trees), acted=self.acted(trees))
            next_one = fields(near_next=self.near_next.at(trees)) if self.near_next.size else fields()
            self._builder.loop(_first_part, tree=tree, next_one=[next_one] if self.near_next.size else [])

    def end(self, impulses: Vector, blocks: Blocks | None) -> None:
        """Writes the steps to the last parts.

        Args:
            impulses: of the step.
            blocks: of the problem, if those that are active, which have been listed, and no others, have impulses.
        """
        rows = self._layout.stopping_rows
        if self._last is None or self._acted is None:
            return
        trees = [tree for _, _, tree in rows]
        near = fields(near=self.near_next.at(trees)) if self.near_next.size else fields()
        acting = fields(impulse=impulses.at([row for row, _, _ in rows]), acted=self.acted(trees))
        among = blocks.flags["active"].at([block for _, block, _ in rows]) if blocks is not None else None
        self._builder.loop(_note_near if self.near_next.size else _note, row=acting | near, among=among)
        trees = range(self._layout.trees)
        window = fields(first=self.first(trees), acted=self.acted(trees), last=self._last.at(trees))
        self._builder.loop(_last_part, tree=window)


def _first_part(tree: View, next_one: list[View]) -> None:
    tree.first, tree.acted = np.where(tree.near > 0.0, 0.0, 0.5), np.array(0.0)
    for view in next_one:
        view.near_next = np.array(0.0)


def _note(row: View) -> None:
    row.acted = np.where(np.abs(row.impulse) > 0.0, 1.0, row.acted)


def _note_near(row: View) -> None:
    _note(row)
    row.near = np.maximum(row.near, row.acted)


def _last_part(tree: View) -> None:
    tree.last = np.where(tree.acted > 0.0, 1.0, 1.0 - tree.first)
