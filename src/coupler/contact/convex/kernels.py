"""Kernels of the search for contacts: of one shape of a pair, of a row of a hull's tables, or of a pair without forms.

`here` has the fields of `ascent.FIELDS`, and for each of the two sides those of `program.Search`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.convex import ascent, cores
from coupler.contact.convex.patches import NEAR, NOTHING, Patch, Shadow, cut, faces_of, furthest_of, more_facing
from coupler.graph import View
from coupler.model.shapes import Geometry, Hull

__all__ = [
    "cut_side",
    "extents",
    "extents_of_hull",
    "face_of_hull",
    "facing_none",
    "go",
    "improve",
    "no_search",
    "none_goes",
    "normals_and_corners",
    "overlay",
    "padded",
    "patches",
    "point",
    "seen",
    "stop",
    "tip",
    "tip_of_hull",
]

Array = Any  # nodes of a trace

_FAR = 1e30  # further than any point along any direction, and more than any cosine


def padded(points: Array, many: int) -> Array:
    return np.stack([points[min(i, len(points) - 1)] for i in range(many)])


def normals_and_corners(hull: Hull) -> np.ndarray:
    """f × (1 + k) × 3: the normal of each face, and its corners."""
    normals, points = faces_of(hull)
    return np.concatenate([normals[:, None], points], axis=1)


def seen(here: View, side: int, d: Array) -> Array:
    """A direction from the second shape to the first, as each of them sees it: towards the other one."""
    return d if side else -(here.R.T @ d)


# Kernels of one shape.


def extents(here: View, own: Geometry, side: int, many: int) -> None:
    directions, rest = getattr(here, f"starts{side}")[:many], getattr(here, f"extents{side}")[many:]
    setattr(here, f"extents{side}", np.concatenate([np.stack([cores.extent(own, d) for d in directions]), rest]))


def tip(here: View, own: Geometry, side: int) -> None:
    setattr(here, f"tip{side}", cores.furthest(own, getattr(here, f"toward{side}")))


def extents_of_hull(here: View, side: int, many: int) -> None:
    extents, directions = getattr(here, f"extents{side}"), getattr(here, f"starts{side}")[:many]
    reaches = [
        cores.further_of(reach, np.zeros(3), d, here.table)[0]
        for reach, d in zip(extents[:many], directions, strict=True)
    ]
    setattr(here, f"extents{side}", np.concatenate([np.stack(reaches), extents[many:]]))


def tip_of_hull(here: View, side: int) -> None:
    reach, tip, toward = (getattr(here, f"{name}{side}") for name in ("reach", "tip", "toward"))
    reach, tip = cores.further_of(reach, tip, toward, here.table)
    setattr(here, f"reach{side}", reach)
    setattr(here, f"tip{side}", tip)


def facing_none(side: int) -> Callable[[View], None]:
    def facing_none(here: View) -> None:
        setattr(here, f"facing{side}", np.array(-_FAR))
        setattr(here, f"face{side}", np.zeros(np.shape(getattr(here, f"face{side}"))))
        setattr(here, f"outward{side}", np.zeros(3))
        setattr(here, f"toward{side}", np.stack(list(seen(here, side, here.normal))))

    return facing_none


def face_of_hull(here: View, side: int) -> None:
    patch = Patch(getattr(here, f"face{side}"), getattr(here, f"outward{side}"))
    points = padded(here.table[1:], len(patch.points))
    toward, best = getattr(here, f"toward{side}"), getattr(here, f"facing{side}")
    best, patch = more_facing(best, patch, toward, here.table[0], points)
    setattr(here, f"facing{side}", best)
    setattr(here, f"face{side}", patch.points)
    setattr(here, f"outward{side}", patch.normal)


# Kernels of pairs.


def patches(here: View) -> tuple[Patch, Patch]:
    """What faces each other, in the frame of the second shape."""
    one = Patch(here.face0, here.outward0).seen_from(here.R, here.p)
    return one, Patch(here.face1, here.outward1)


def overlay(here: View) -> None:
    shadow = Shadow.of(*patches(here), here.normal, here.R)
    here.axes, here.sign = shadow.axes, np.array(shadow.sign)
    here.flat0, here.flat1 = shadow.one, shadow.other
    here.most, here.corner = np.full(4, NOTHING[0]), np.zeros((4, 2))


def cut_side(here: View) -> None:
    """A side of one patch, cut by the other."""
    exists, places = cut(here.start, here.end, here.window, NEAR * here.smaller)
    found = [furthest_of(here.most[k], here.corner[k], k, here.sign, exists, places) for k in range(4)]
    here.most = np.stack([most for most, _ in found])
    here.corner = np.stack([corner for _, corner in found])


def point(here: View) -> None:
    """The direction in which both shapes are to look next."""
    for side in (0, 1):
        setattr(here, f"toward{side}", np.stack(list(seen(here, side, here.n))))
        setattr(here, f"reach{side}", np.array(-_FAR))
        setattr(here, f"tip{side}", np.zeros(3))


def improve(here: View) -> None:
    ascent.improve(here, here.tip0, here.tip1, here.larger, here.clearance)
    point(here)
    here.going = np.maximum(here.going, here.searching)


def no_search(here: View) -> None:
    here.searching = np.array(0.0)


def go(here: View) -> None:
    here.going = np.array(1.0)


def stop(here: View) -> None:
    here.going = np.array(0.0)


def none_goes(here: View) -> Any:
    return here.going <= 0.0
