"""The poses of shapes on links, and the largest speed at which they approach each other, for searches in a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.collision.pair_groups import ShapeOnLink
from coupler.contact.collision.tables import SIDES, pose, shape_pose
from coupler.graph import View, Window, constants, fields
from coupler.model.height_fields import HeightField
from coupler.spatial import Transform, cross


def places(ends: Sequence[tuple[ShapeOnLink, ShapeOnLink]]) -> Window:
    """The places of the pairs' shapes on their links."""
    slots: dict[str, Any] = {}
    for side, name in enumerate(SIDES):
        slots[f"{name}_at_E"] = constants([both[side].at.E + 0.0 for both in ends])
        slots[f"{name}_at_r"] = constants([both[side].at.r + 0.0 for both in ends])
    return fields(**slots)


def poses(view: View, ends: tuple[ShapeOnLink, ShapeOnLink]) -> tuple[Transform, Transform]:
    """The transforms from the world to both shapes; see `on_links`, which also needs velocities."""
    one, other = (shape_pose(view, name, bool(end.link)) for name, end in zip(SIDES, ends, strict=True))
    return one, other


def on_links(view: View, ends: tuple[ShapeOnLink, ShapeOnLink]) -> tuple[Transform, Transform, Any]:
    """The transforms from the world to both shapes, and the largest speed at which they approach each other, m/s.

    Args:
        view: has the fields of `places`, and for moving links, as `one_E` and so on, poses `E` and `r` and velocities
            `u` without impulses and `start` before the step.
        ends: the shapes of one of these pairs; velocities are taken at the one that is not a field.
    """
    moving, shape = [bool(end.link) for end in ends], int(isinstance(ends[0].form, HeightField))
    links, X = [pose(view, name, moves) for name, moves in zip(SIDES, moving, strict=True)], poses(view, ends)
    fastest = 0.0
    for velocity in ("u", "start"):
        shift, turn = np.zeros(3), 0.0
        for name, link, moves, sign in zip(SIDES, links, moving, (1.0, -1.0), strict=True):
            if moves:
                omega, linear = np.split(getattr(view, f"{name}_{velocity}"), 2)
                shift = shift + sign * (link.E.T @ (linear + cross(omega, link.E @ (X[shape].r - link.r))))
                turn = turn + np.sqrt(omega @ omega) * view.radius
        fastest = np.maximum(fastest, np.sqrt(shift @ shift) + turn)
    return X[0], X[1], fastest
