"""Choosing where along its joint's axis the frame of each link is, such that many of its numbers are zero.

A joint that turns about or shifts along z does the same wherever its frame is on that axis. Dynamics need not compute
with zeros of placements and inertias, so each frame is slid to where its own placement, those of the joints on its link
and the link's centre of mass have the most of them. What one link gains another may lose. The best choice for all links
is found by dynamic programming from the leaves to the ground, over the few places of each that make some number zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.model.joint import Joint
from coupler.spatial import RigidInertia, Transform

# Rough cost in operations of a number that is not zero: of a placement, a first moment, a product of inertia.
_SHIFT, _MOMENT, _PRODUCT = 14.0, 8.0, 6.0
_MOVE = 0.01  # of moving a frame at all: of equal places, the original one is simplest
_MOST = 16  # the most places that are tried for each link
_ZERO = 1e-12  # m, and relative to an inertia's numbers: smaller values are rounding


def best_slides(
    parents: Sequence[int], kinds: Sequence[Joint], placements: Sequence[Transform], inertias: Sequence[RigidInertia]
) -> np.ndarray:
    """How far to slide the frame of each link along its joint's axis, z, m; the first link is the ground.

    Args:
        parents: the parent of each link; parents come before children.
        kinds: their joints, with axes along z.
        placements: from each parent link's frame to the joint's.
        inertias: the inertias of the links, in their frames.
    """
    count = len(parents)
    children: list[list[int]] = [[] for _ in range(count)]
    for i in range(1, count):
        children[parents[i]].append(i)
    places: list[np.ndarray] = [np.zeros(1)]
    for i in range(1, count):
        places.append(_places(i, places[parents[i]], kinds[i], placements, inertias[i], children[i]))
    # For each place of a parent: the best place of a link, and the cost of the link and all that it carries.
    choice: list[np.ndarray] = [np.zeros(1, int)] * count
    burden = [np.zeros(len(shifts)) for shifts in places]
    for i in reversed(range(1, count)):
        shifts = places[i]
        alone = burden[i] + _MOVE * (shifts != 0.0) + _cost(inertias[i], shifts)
        cost = _SHIFT * (np.abs(_shifts(placements[i], places[parents[i]], shifts)) > _ZERO).sum(axis=2) + alone
        choice[i] = cost.argmin(axis=1)
        burden[parents[i]] = burden[parents[i]] + cost.min(axis=1)
    slides, taken = np.zeros(count), np.zeros(count, int)
    for i in range(1, count):
        taken[i] = choice[i][taken[parents[i]]]
        slides[i] = places[i][taken[i]]
    return slides


def slid(placement: Transform, parent: float, slide: float) -> Transform:
    """A placement after the parent's frame and the joint's own have been slid, with entries next to zero made zero."""
    if not (parent or slide):
        return placement
    r = _shifts(placement, np.array([parent]), np.array([slide]))[0, 0]
    return Transform(placement.E, np.where(np.abs(r) < _ZERO, 0.0, r))


def _shifts(placement: Transform, parent: np.ndarray, slides: np.ndarray) -> np.ndarray:
    """The origin of a joint's frame in its parent link's frame, for slides of both: parents × slides × 3."""
    z = np.array([0.0, 0.0, 1.0])
    return placement.r - parent[:, None, None] * z + slides[None, :, None] * placement.E[2]


def _cost(inertia: RigidInertia, slides: np.ndarray) -> np.ndarray:
    """The cost of an inertia about points d further along z: h − m d z, and Ixz + d hx, Iyz + d hy."""
    small = _ZERO * (inertia.m + np.abs(inertia.h).max())
    moments = np.stack([slides * 0.0 + inertia.h[0], slides * 0.0 + inertia.h[1], inertia.h[2] - inertia.m * slides])
    products = np.stack([inertia.I[0, 2] + slides * inertia.h[0], inertia.I[1, 2] + slides * inertia.h[1]])
    return _MOMENT * (np.abs(moments) > small).sum(axis=0) + _PRODUCT * (np.abs(products) > small).sum(axis=0)


def _centre(inertia: RigidInertia) -> float:
    """The z coordinate of a link's centre of mass, m; NaN without mass."""
    return float(inertia.h[2] / inertia.m) if inertia.m > 0.0 else np.nan


def _places(
    i: int,
    above: np.ndarray,
    kind: Joint,
    placements: Sequence[Transform],
    inertia: RigidInertia,
    children: Sequence[int],
) -> np.ndarray:
    """The slides of a link that may make some number zero."""
    if not kind.axial:
        return np.zeros(1)
    if not children and inertia.m > 0.0 and not np.abs(inertia.h[:2]).max() > _ZERO * inertia.m:
        return np.array([_centre(inertia)])  # a rotor, which is simplest where it is balanced
    E, r = placements[i].E, placements[i].r
    places = [0.0, _centre(inertia), *(float(placements[child].r[2]) for child in children)]
    axis = int(np.argmax(np.abs(E[2])))
    if abs(E[2, axis]) == 1.0:  # along an axis of the parent's frame: its entry of r can be made zero
        places += [float(-E[2, axis] * (r[axis] - (d if axis == 2 else 0.0))) for d in above]
    else:  # the foot of the perpendicular, from where nothing is nearer
        places += [float(-E[2] @ (r - np.array([0.0, 0.0, d]))) for d in above]
    return np.array([d for d in dict.fromkeys(places) if np.isfinite(d)][:_MOST])
