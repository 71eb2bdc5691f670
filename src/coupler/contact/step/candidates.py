"""The candidate contacts of a robot: their list, their order, and where kernels find their shapes.

A candidate is a place at which two shapes may touch; a pair of shapes has one or several. This list is fixed once the
robot and its pairs are known. Which candidates touch in a state is measured in every step (measurement.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.convex.contacts import centred
from coupler.contact.collision.geometry import has_closed_form
from coupler.contact.collision.pair_groups import PairGroup, ShapeOnLink
from coupler.contact.collision.tables import SIDES, Forms, form, forms, numbers
from coupler.contact.pairs import Pair
from coupler.contact.step.columns import Start
from coupler.forks import cached_property
from coupler.graph import Slot, Window, constants, fields
from coupler.grouping import grouped
from coupler.model import Robot
from coupler.model.height_fields import HeightField
from coupler.model.shapes import Hull, Plane, Shape
from coupler.passes import Sweep
from coupler.spatial import Transform

SIGNS = {"one": 1.0, "other": -1.0}  # of impulses on the two shapes of a pair: they push the first one off the other


class Candidates:
    """The candidate contacts of pairs of shapes, numbered pair by pair.

    Attributes:
        pairs: the pairs of shapes that may touch.
        names: the name of each contact: both shapes, and a number if the pair has several contacts.
        friction: the friction coefficients of all contacts, one for each disc.
        links: the links that carry a shape of some pair, without the ground.
        starts: the start of each contact's columns; see `Columns`.
        frames: for each pair the transforms from the links to the frames of its two shapes.
        ends: for each pair its two shapes as the collision code sees them; shapes whose contacts are searched for are
            placed by their centres there.
        first: the number of each pair's first contact; one entry more than there are pairs.
        pair_of: the pair of each contact.
        on_fields: the pairs of a height field and a shape whose contacts are searched for.
        groups: all pairs, in groups that share one trace.
    """

    def __init__(self, robot: Robot, pairs: Sequence[Pair]) -> None:
        self.robot, self.pairs = robot, tuple(pairs)
        self._searched = {i for i, pair in enumerate(pairs) if not has_closed_form(*forms(pair))}
        self.on_fields = {i for i in self._searched if any(isinstance(x, HeightField) for x in forms(pairs[i]))}
        self.frames = [(self._frame(pair.one), self._frame(pair.other)) for pair in pairs]
        self.ends = [self._ends(i) for i in range(len(pairs))]
        counts = [pair.count for pair in pairs]
        self.first = np.cumsum([0, *counts])
        self.pair_of = np.repeat(np.arange(len(pairs)), counts)
        self.friction = [x for pair in pairs for _ in range(pair.count) for x in pair.cone.coefficients]
        self.names = [name for pair in pairs for name in _names(pair)]
        moving = [tuple(end.link for end in ends if end.link) for ends in self.ends]
        self.links = {link for links in moving for link in links}
        self.groups = [self.group(rows) for rows in grouped(range(len(pairs)), self._trace_key).values()]
        starts = [Start(pair.cone.size, links) for pair, links in zip(pairs, moving, strict=True)]
        self.starts = [start for pair, start in zip(pairs, starts, strict=True) for _ in range(pair.count)]

    def _frame(self, shape: Shape) -> Transform:
        return shape.at @ self.robot.tree.place[shape.body][1]

    def _ends(self, i: int) -> tuple[ShapeOnLink, ShapeOnLink]:
        def end(shape: Shape, frame: Transform) -> ShapeOnLink:
            centre = centred(shape.geometry, frame)
            link = self.robot.tree.place[shape.body][0]
            return ShapeOnLink(shape.geometry, link, centre if i in self._searched else frame, centre.r)

        pair, (one, other) = self.pairs[i], self.frames[i]
        return end(pair.one, one), end(pair.other, other)

    def _trace_key(self, i: int) -> Hashable:
        """A key that is equal for pairs that can share one trace."""
        pair = self.pairs[i]
        any_size = i in self._searched or is_hull_on_plane(forms(pair))  # such kernels do not depend on the form
        kinds = (type(geometry) if any_size else form(geometry) for geometry in forms(pair))
        return *kinds, pair.count, *(bool(end.link) for end in self.ends[i]), pair.cone.size

    def group(self, pairs: Sequence[int]) -> PairGroup:
        """The group of some pairs that share one trace."""
        first = pairs[0]
        return PairGroup(list(pairs), [self.ends[i] for i in pairs], self.pairs[first].count, first in self._searched)

    def contacts_of(self, pair: int) -> range:
        """The numbers of a pair's contacts."""
        return range(int(self.first[pair]), int(self.first[pair + 1]))

    # Pairs that the broad phase may cull

    @cached_property
    def cullable_groups(self) -> list[PairGroup]:
        """The groups of pairs that are not measured while their shapes are far apart; see broad_phase.py."""
        return [alike for alike in self.groups if alike.may_be_left_out]

    @cached_property
    def cullable(self) -> dict[int, int]:
        """The contacts of pairs in `cullable_groups`, each with the number of its pair."""
        pairs = sorted(i for alike in self.cullable_groups for i in alike.numbers)
        return {contact: i for i in pairs for contact in self.contacts_of(i)}

    # What kernels see of a group of pairs

    def results(self, alike: PairGroup, at: Callable[[str, np.ndarray], Slot], names: Sequence[str]) -> Window:
        """The fields to which kernels write the contacts of pairs: `gaps0` for each pair's first contact, and so on.

        Args:
            alike: the pairs.
            at: returns the place of a quantity for some contacts.
            names: the names of the quantities.
        """
        return fields(
            **{f"{name}{k}": at(name, self.first[alike.numbers] + k) for name in names for k in range(alike.contacts)}
        )

    def motion(self, sweep: Sweep[Any, Any], alike: PairGroup, names: Sequence[str]) -> Window:
        """Entries of the memory of the links that carry the shapes of pairs, as `one_E`, `other_u` and so on."""
        entries: dict[str, Any] = {}
        for side, moves in alike.moving.items():
            if moves:
                memory = sweep.bodies([end.link for end in alike.side(side)]).fields
                entries |= {f"{side}_{name}": memory[name] for name in names}
        return fields(**entries)

    def poses(self, sweep: Sweep[Any, Any], alike: PairGroup) -> Window:
        """The fields for the poses of pairs' shapes, and for the numbers of their forms."""
        table: dict[str, Any] = {}
        for side in SIDES:
            ends = alike.side(side)
            table |= {
                f"{side}_at_E": constants([end.at.E + 0.0 for end in ends]),
                f"{side}_at_r": constants([end.at.r + 0.0 for end in ends]),
                f"{side}_numbers": constants([numbers(end.form) for end in ends]),
            }
        return fields(**table) | self.motion(sweep, alike, ("E", "r"))


def is_hull_on_plane(both: Forms) -> bool:
    """Whether the contacts of two forms are the corners of a hull, each a point over a plane."""
    return isinstance(both[0], Hull) and isinstance(both[1], Plane)


def _names(pair: Pair) -> list[str]:
    return [pair.name] if pair.count == 1 else [f"{pair.name}, {k + 1}" for k in range(pair.count)]
