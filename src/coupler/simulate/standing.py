"""Where a simulation starts, if nobody says so: in the neutral configuration, with nothing below the ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.contact.forms import is_endless
from coupler.contact.pairs import Pair
from coupler.contact.proximity import Proximity
from coupler.model import Robot
from coupler.model.height_fields import HeightField
from coupler.model.tree import GROUND

__all__ = ["standing"]

_LEVEL = 0.1  # the least rise of a plane's normal: what is steeper is a wall, and nobody stands on it
_TOUCHES = 1e-9  # m, how near to a field a shape counts as touching it
_DESCENTS = 100  # on a slope of 80 degrees, each but the last ones leaves 83 % of the way


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
    for joint in robot.joints:
        if not joint.kind.floats or joint.parent != GROUND or joint.name not in robot.position_joints:
            continue
        base = tree.number[joint.name]
        own = [pair for pair in below if base in tree.carriers(tree.place[pair.one.body][0])]
        up = np.zeros(robot.nq)
        up[robot.q_slice(joint.name)][:3] = joint.placement.E[:, 2]
        q += _lift(robot, own, q, up) * up
    return q


def _lift(robot: Robot, pairs: Sequence[Pair], q: np.ndarray, up: np.ndarray) -> float:
    """How far shapes move up until none of them is below the ground, m.

    Args:
        robot: the robot.
        pairs: the shapes and what is below them.
        q: (nq,), the configuration.
        up: (nq,), how q changes with each metre.
    """
    proximity = Proximity(robot, pairs, q[None])
    lift = max([0.0, *(-proximity.nearest(i, 0.0) / _rise(pair) for i, pair in enumerate(pairs))])
    if not any(isinstance(pair.other.geometry, HeightField) for pair in pairs):
        return lift
    # That is above the highest point of a field. From there, shapes come down by no more than is free around them.
    for _ in range(_DESCENTS):
        proximity = Proximity(robot, pairs, (q + lift * up)[None])
        free = min(min(proximity.gaps(i, 0)) for i in range(len(pairs)))
        if lift == 0.0 or free < _TOUCHES:
            break
        lift = max(0.0, lift - free)
    return lift


def _is_ground(robot: Robot, pair: Pair) -> bool:
    fixed = not robot.tree.place[pair.other.body][0]
    return fixed and is_endless(pair.other.geometry) and _rise(pair) > _LEVEL


def _rise(pair: Pair) -> float:
    """How much the normal of a plane, or the z axis of a field, points up."""
    return float(pair.other.at.E[2, 2])
