"""Pairs of shapes on the links of a robot, in groups that share a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coupler.contact.collision.forms import is_endless
from coupler.model.shapes import Geometry
from coupler.spatial import Transform

_MANY_CONTACTS = 3  # of a pair with a closed form: from here on they cost more than the question whether it is near
_MANY_PAIRS = 16  # of a group: with more, hardly all are near at once


@dataclass(frozen=True, eq=False)
class ShapeOnLink:
    """A shape of a pair, on the link that carries it.

    Attributes:
        form: its geometry.
        link: the number of the link.
        at: the transform from the link to the frame in which contacts are measured: the shape's own, or one at its
            centre.
        centre: 3, the centre of the ball around the shape, in the link's frame, m.
    """

    form: Geometry
    link: int
    at: Transform
    centre: np.ndarray


@dataclass(frozen=True, eq=False)
class PairGroup:
    """Pairs of shapes that share a trace.

    Attributes:
        numbers: the numbers of the pairs.
        ends: the two shapes of each pair.
        contacts: the number of candidate contacts of each pair.
        searched: whether their contacts are searched for.
    """

    numbers: Sequence[int]
    ends: Sequence[tuple[ShapeOnLink, ShapeOnLink]]
    contacts: int
    searched: bool

    @property
    def moving(self) -> dict[str, bool]:
        """Whether the links of the shapes move, by side, "one" and "other"."""
        return {name: bool(end.link) for name, end in zip(("one", "other"), self.ends[0], strict=True)}

    def side(self, name: str) -> list[ShapeOnLink]:
        """The shapes of all pairs on one side, "one" or "other"."""
        return [ends[name == "other"] for ends in self.ends]

    @property
    def on_ground(self) -> bool:
        """Whether the second shape is a plane or a height field, which no ball surrounds."""
        return is_endless(self.ends[0][1].form)

    @property
    def looked_at_closely(self) -> bool:
        """Whether the distance of the shapes is bounded more closely where their balls could meet.

        The closer bound costs less than a search.
        """
        return self.searched and not self.on_ground

    @property
    def may_be_left_out(self) -> bool:
        """Whether there is a bound on the distance of the shapes, and it costs less than finding their contacts."""
        worthwhile = self.contacts >= _MANY_CONTACTS or self.searched or len(self.numbers) > _MANY_PAIRS
        unbounded = is_endless(self.ends[0][0].form) or (self.moving["other"] and self.on_ground)
        return worthwhile and not unbounded
