"""How each tree of bodies moves through a step, in each state: in two halves, or all at once.

The midpoint rule moves half the way with the velocities before the step, x = q ⊕ h/2 v, takes forces there, and moves
the other half with the velocities after it, q⁺ = x ⊕ h/2 v⁺ (drift, kick, drift). Impulses do not fit that: a body that
they stop must end where it touches, as it does with Euler's q⁺ = q ⊕ h v⁺. So a tree that impulses of contacts or
limits act on moves from where it started, with v⁺ all the way. And a tree that comes near a contact does not move
before forces are taken; otherwise a fast body might first be measured when it is already behind the surface that it
hits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.contact.scene import Layout
from coupler.contact.step.blocks import Blocks
from coupler.graph import Builder, Constants, Slot, Vector, View, constants, fields


class Halves:
    """The parts of a step that each tree of bodies moves before forces are taken, and afterwards.

    Args:
        midpoint: whether the step follows the midpoint rule; otherwise it moves all at once.
        near: for each tree whether it is near a contact at the start.
        near_next: gets, for each tree, whether it is near a contact at the start of the next step.

    Attributes:
        switch: whether trees can move either way; otherwise all move in halves, or all at once.
        near_next: for each tree whether it will be near a contact in the next step; empty where nothing can touch.
    """

    def __init__(self, builder: Builder, layout: Layout, midpoint: bool, near: Vector, near_next: Vector) -> None:
        self._builder, self._layout, self._midpoint = builder, layout, midpoint
        self._near, self.near_next = near, near_next
        self.switch = midpoint and bool(layout.stopping_rows)
        self._first, self._last, self._acted = (
            builder.scratch(name, layout.trees) if self.switch else None for name in ("first", "last", "acted")
        )

    def first(self, trees: Sequence[int]) -> Slot | Constants:
        """The part of the step that trees move before forces are taken: a half, or nothing."""
        part = 0.5 if self._midpoint else 0.0
        return self._first.at(trees) if self._first is not None else constants(np.full(len(trees), part))

    def last(self, trees: Sequence[int]) -> Slot | Constants:
        """The part of the step that trees move after forces are taken: the second half, or all of it from the start."""
        part = 0.5 if self._midpoint else 1.0
        return self._last.at(trees) if self._last is not None else constants(np.full(len(trees), part))

    def acted(self, trees: Sequence[int]) -> Slot:
        """Whether impulses of contacts or limits act on trees, which then move from the start; only with `switch`."""
        assert self._acted is not None
        return self._acted.at(trees)

    def near(self, trees: Sequence[int]) -> Slot | Constants:
        """Whether trees are near a contact at the start."""
        return self._near.at(trees) if self.switch and self._near.size else constants(np.zeros(len(trees)))

    def begin(self) -> None:
        """Writes the steps that choose the part before forces are taken."""
        if self._first is not None:
            trees = range(self._layout.trees)
            tree = fields(near=self.near(trees), first=self._first.at(trees), acted=self.acted(trees))
            next_step = [fields(near_next=self.near_next.at(trees))] if self.near_next.size else []
            self._builder.loop(_first_part, tree=tree, next_step=next_step)

    def end(self, impulses: Vector, blocks: Blocks | None) -> None:
        """Writes the steps that choose the part after impulses are known.

        Args:
            impulses: the impulses of the step.
            blocks: the contact problem, if only its active blocks, which have been listed, have impulses; else None.
        """
        rows = self._layout.stopping_rows
        if self._last is None or self._acted is None:
            return
        trees = [tree for _, _, tree in rows]
        near = fields(near=self.near_next.at(trees)) if self.near_next.size else fields()
        acting = fields(impulse=impulses.at([row for row, _, _ in rows]), acted=self.acted(trees))
        among = blocks.flags["active"].at([block for _, block, _ in rows]) if blocks is not None else None
        self._builder.loop(_note_acted_and_near if self.near_next.size else _note_acted, row=acting | near, among=among)
        trees = range(self._layout.trees)
        window = fields(first=self.first(trees), acted=self.acted(trees), last=self._last.at(trees))
        self._builder.loop(_last_part, tree=window)


def _first_part(tree: View, next_step: list[View]) -> None:
    tree.first, tree.acted = np.where(tree.near > 0.0, 0.0, 0.5), np.array(0.0)
    for view in next_step:
        view.near_next = np.array(0.0)


def _note_acted(row: View) -> None:
    row.acted = np.where(np.abs(row.impulse) > 0.0, 1.0, row.acted)


def _note_acted_and_near(row: View) -> None:
    _note_acted(row)
    row.near = np.maximum(row.near, row.acted)


def _last_part(tree: View) -> None:
    tree.last = np.where(tree.acted > 0.0, 1.0, 1.0 - tree.first)
