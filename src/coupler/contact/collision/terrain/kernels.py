"""Kernels that find the contacts at one feature of the ground: see features.py.

`view` has the pose R and p of a shape, and the first grid point i, j of its window, with an `offset` from there.
"""

from __future__ import annotations

from typing import Any

from coupler.contact.collision.terrain import features
from coupler.contact.collision.terrain.pool import Candidate
from coupler.graph import View


def at(view: View) -> tuple[Any, Any]:
    return view.i + view.offset[0], view.j + view.offset[1]


def faces(view: View, ground: Any, solid: Any) -> list[Candidate]:
    return features.face_contacts(ground, solid, view.R, view.p, *at(view))


def corner(view: View, ground: Any, _: Any) -> list[Candidate]:
    return features.corner_contacts(ground, view.R, view.p, view.corner, *at(view))


def grid_point(view: View, ground: Any, solid: Any) -> list[Candidate]:
    return [features.grid_contact(ground, solid, view.R, view.p, *at(view))]


def edge(view: View, ground: Any, solid: Any) -> list[Candidate]:
    return features.edge_contacts(ground, solid, view.R, view.p, *at(view), view.edge)


def wall(view: View, ground: Any, solid: Any) -> list[Candidate]:
    return features.wall_contacts(ground, solid, view.R, view.p, view.outward)


def sunk(view: View, ground: Any, solid: Any) -> list[Candidate]:
    return [features.sunk_contact(ground, solid, view.R, view.p)]
