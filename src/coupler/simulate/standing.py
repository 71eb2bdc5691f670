"""Where a simulation starts by default: in the neutral configuration, with nothing below the ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.contact.collision.forms import is_endless
from coupler.contact.collision.proximity import Proximity
from coupler.contact.pairs import Pair
from coupler.model import Robot
from coupler.model.tree import GROUND

_LEVEL = 0.1  # the least upward component of a plane's normal: steeper planes are walls, on which nothing stands
_TOUCHES = 1e-9  # m: shapes less deep do not count as below
_LIFTS = 10  # one suffices, unless a field is tilted, over which a rising body moves to other places


def standing(robot: Robot, pairs: Sequence[Pair]) -> np.ndarray:
    """(nq,): the neutral configuration, with floating bodies raised until they and what they carry are above ground.

    Files of floating robots do not say how high they stand: in their neutral configuration the base is at the world's
    origin, and the legs are below it.

    Args:
        pairs: the pairs that may touch; planes and height fields on the ground count.
    """
    q, tree = robot.neutral(), robot.tree
    below = [pair for pair in pairs if _is_ground(robot, pair)]
    for joint in robot.joints:
        if not joint.kind.floats or joint.parent != GROUND or joint.name not in robot.position_joints:
            continue
        base = tree.number[joint.name]
        carried = [pair for pair in below if base in tree.carriers(tree.place[pair.one.body][0])]
        up = np.zeros(robot.nq)
        up[robot.q_slice(joint.name)][:3] = joint.placement.E[:, 2]
        for _ in range(_LIFTS):
            lift = _lift(robot, carried, q)
            q += lift * up
            if not lift:
                break
    return q


def _lift(robot: Robot, pairs: Sequence[Pair], q: np.ndarray) -> float:
    """The height, m, by which shapes must rise in a configuration, (nq,), until none is below ground, plus a margin."""
    proximity = Proximity(robot, pairs, q[None])
    heights = [proximity.height(i) / _rise(pair) for i, pair in enumerate(pairs)]
    # A shape that is lower than the highest ground below it may still lie in a hollow, without touching.
    lower = [i for i, height in enumerate(heights) if height < -_TOUCHES]
    if not any(min(proximity.gaps(i, 0)) < -_TOUCHES for i in lower):
        return 0.0
    return -min(heights)


def _is_ground(robot: Robot, pair: Pair) -> bool:
    fixed = not robot.tree.place[pair.other.body][0]
    return fixed and is_endless(pair.other.geometry) and _rise(pair) > _LEVEL


def _rise(pair: Pair) -> float:
    """The upward component of the normal of a pair's plane, or of the z axis of its height field."""
    return float(pair.other.at.E[2, 2])
