"""Where a simulation starts, if nobody says so: in the neutral configuration, with nothing below the ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.contact.collision.forms import is_endless
from coupler.contact.collision.proximity import Proximity
from coupler.contact.pairs import Pair
from coupler.model import Robot
from coupler.model.tree import GROUND

_LEVEL = 0.1  # the least rise of a plane's normal: what is steeper is a wall, and nobody stands on it
_TOUCHES = 1e-9  # m: what is less deep is not below
_LIFTS = 10  # one, unless a field is tilted, over which what rises comes to other places


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
        for _ in range(_LIFTS):
            lift = _lift(robot, own, q)
            q += lift * up
            if not lift:
                break
    return q


def _lift(robot: Robot, pairs: Sequence[Pair], q: np.ndarray) -> float:
    """How far shapes have to rise in a configuration, (nq,), until none is below its ground, m, or a little more."""
    proximity = Proximity(robot, pairs, q[None])
    heights = [proximity.height(i) / _rise(pair) for i, pair in enumerate(pairs)]
    # What is lower than the highest place of the ground below it may lie in a hollow.
    lower = [i for i, height in enumerate(heights) if height < -_TOUCHES]
    if not any(min(proximity.gaps(i, 0)) < -_TOUCHES for i in lower):
        return 0.0
    return -min(heights)


def _is_ground(robot: Robot, pair: Pair) -> bool:
    fixed = not robot.tree.place[pair.other.body][0]
    return fixed and is_endless(pair.other.geometry) and _rise(pair) > _LEVEL


def _rise(pair: Pair) -> float:
    """How much the normal of a plane, or the z axis of a field, points up."""
    return float(pair.other.at.E[2, 2])
