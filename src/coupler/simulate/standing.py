"""Where a simulation starts, if nobody says so: in the neutral configuration, with nothing below the ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.contact.forms import is_endless
from coupler.contact.pairs import Pair
from coupler.contact.proximity import Proximity
from coupler.model import Robot
from coupler.model.tree import GROUND

__all__ = ["standing"]

_LEVEL = 0.1  # the least rise of a plane's normal: what is steeper is a wall, and nobody stands on it


def standing(robot: Robot, pairs: Sequence[Pair]) -> np.ndarray:
    """(nq,): the neutral configuration, with each body that floats raised until it and what it carries is not below.

    Files of robots that float do not say how high they stand: in their neutral configuration the base is at the
    world's origin, and the legs are below it.

    Args:
        robot: the robot.
        pairs: what may touch; planes and height fields of the ground count.
    """
    q, tree = robot.neutral(), robot.tree
    below = [pair for pair in pairs if _is_ground(robot, pair)]
    proximity = Proximity(robot, below, q[None])
    heights = [proximity.nearest(i, 0.0) / _rise(pair) for i, pair in enumerate(below)]
    for joint in robot.joints:
        if not joint.kind.floats or joint.parent != GROUND or joint.name not in robot.position_joints:
            continue
        base = tree.number[joint.name]
        own = [
            height
            for height, pair in zip(heights, below, strict=True)
            if base in tree.carriers(tree.place[pair.one.body][0])
        ]
        q[robot.q_slice(joint.name)][:3] -= joint.placement.E[:, 2] * min([0.0, *own])
    return q


def _is_ground(robot: Robot, pair: Pair) -> bool:
    fixed = not robot.tree.place[pair.other.body][0]
    return fixed and is_endless(pair.other.geometry) and _rise(pair) > _LEVEL


def _rise(pair: Pair) -> float:
    """How much the normal of a plane, or the z axis of a field, points up."""
    return float(pair.other.at.E[2, 2])
