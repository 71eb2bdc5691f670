"""What a kernel finds at one feature of the ground: see features.py.

`here` has the pose R and p of a shape, and the first grid point i, j of its window, with an `offset` from there.
"""

from __future__ import annotations

from typing import Any

from coupler.contact.terrain import features
from coupler.contact.terrain.pool import Candidate
from coupler.graph import View

__all__ = ["at", "corner", "edge", "faces", "grid_point", "sunk", "wall"]


def at(here: View) -> tuple[Any, Any]:
    return here.i + here.offset[0], here.j + here.offset[1]


def faces(here: View, ground: Any, solid: Any) -> list[Candidate]:
    return features.face_contacts(ground, solid, here.R, here.p, *at(here))


def corner(here: View, ground: Any, _: Any) -> list[Candidate]:
    return features.corner_contacts(ground, here.R, here.p, here.corner, *at(here))


def grid_point(here: View, ground: Any, solid: Any) -> list[Candidate]:
    return [features.grid_contact(ground, solid, here.R, here.p, *at(here))]


def edge(here: View, ground: Any, solid: Any) -> list[Candidate]:
    return features.edge_contacts(ground, solid, here.R, here.p, *at(here), here.edge)


def wall(here: View, ground: Any, solid: Any) -> list[Candidate]:
    return features.wall_contacts(ground, solid, here.R, here.p, here.outward)


def sunk(here: View, ground: Any, solid: Any) -> list[Candidate]:
    return [features.sunk_contact(ground, solid, here.R, here.p)]
