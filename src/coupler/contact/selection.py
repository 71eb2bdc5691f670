"""Which pairs of a robot's own shapes are worth looking at.

Two kinds are left out. Shapes that overlap in the neutral configuration were not made to touch each other: they would
be forced apart from the first step on. If they overlap so little that they may just touch, they are left out if they
overlap in all others as well. And shapes that never come near each other within the limits of the joints between them
need not be looked at. Whether they do is tried in many configurations, at random and at limits; what comes as near as a
part of its size in one of them stays, and all that does not overlap does where too few are found.

What stands or lies on the ground may well start within it, and what floats goes anywhere. So both are asked only of
shapes between which all joints have a range, and what touches the ground is left out only if it overlaps in all
configurations. A body that is welded to the ground is one of the robot's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from coupler.contact.collision.proximity import Proximity
from coupler.contact.pairs import Pair, known_names
from coupler.graph import state_by_state
from coupler.model import ModelError, Robot
from coupler.model.joint import Joint
from coupler.model.tree import GROUND

_OVERLAP = 1e-4  # m: what overlaps less in the neutral configuration just touches
_NEAR = 0.25  # of the size of both: what comes nearer in one of the poses may touch in another
_POSES = 512  # configurations that are tried
_ENOUGH = 128  # of them must be found: loops may seldom close


@dataclass(frozen=True)
class Selection:
    """Pairs that may touch, and those that are left out.

    Attributes:
        pairs: those that may touch.
        overlapping: of those that overlap in the neutral configuration the names, and by how much, m.
        far: of those that never meet the names, and how far apart they stay at least, m.
    """

    pairs: tuple[Pair, ...]
    overlapping: tuple[tuple[str, float], ...] = ()
    far: tuple[tuple[str, float], ...] = ()

    @property
    def left_out(self) -> dict[str, str]:
        """By name, why pairs are left out; of pairs of the same name the deepest, or nearest, is told."""
        far = dict(sorted(self.far, key=lambda own: -own[1]))
        overlapping = dict(sorted(self.overlapping, key=lambda own: own[1]))
        told = {name: f"never nearer than {1e3 * apart:.3g} mm in the poses tried" for name, apart in far.items()}
        return told | {name: f"overlaps by {1e3 * by:.3g} mm in the neutral pose" for name, by in overlapping.items()}


def chosen(pairs: Sequence[Pair], patterns: Iterable[str]) -> list[Pair]:
    """The pairs whose name, or the name of one of whose shapes, matches one of the patterns."""
    patterns = tuple(patterns)
    for pattern in patterns:
        if pattern != "*" and not any(pair.matches(pattern) for pair in pairs):
            raise ModelError(f"contacts: nothing that may touch is called {pattern!r}; there are {known_names(pairs)}")
    return [pair for pair in pairs if any(pair.matches(pattern) for pattern in patterns)]


def select(robot: Robot, pairs: Sequence[Pair], named: Collection[str] = (), limits: bool = True) -> Selection:
    """The pairs that are worth looking at.

    Args:
        robot: the robot.
        pairs: what may touch.
        named: names of pairs that stay, whatever they do, as those do that the robot lists.
        limits: whether joints stop at their limits; if not, all that does not overlap stays.
    """
    bounded = _Bounded(robot)
    asked = [i for i, pair in enumerate(pairs) if pair.name not in named and not pair.listed and bounded(pair)]
    if not asked:
        return Selection(tuple(pairs))
    with state_by_state():
        return _selected(robot, pairs, asked, limits)


def _selected(robot: Robot, pairs: Sequence[Pair], asked: Sequence[int], limits: bool) -> Selection:
    """The pairs that are worth looking at, and all that are not asked about, given the numbers of those that are."""
    own = [pairs[i] for i in asked]
    overlapping, far = _overlaps(robot, own), dict[int, float]()
    sure = {n for n, by in overlapping.items() if by > _OVERLAP and own[n].other.body != GROUND}
    others = [n for n in range(len(own)) if n not in overlapping]
    poses = _poses(robot) if others or len(sure) < len(overlapping) else np.zeros((0, robot.nq))
    tried = len(poses) >= _ENOUGH
    overlapping = {n: by for n, by in overlapping.items() if n in sure or (tried and _stays(robot, own[n], poses))}
    if limits and others and tried:
        far = _far(Proximity(robot, [own[n] for n in others], poses), others)
    gone = {asked[n] for n in (*overlapping, *far)}
    return Selection(
        tuple(pair for i, pair in enumerate(pairs) if i not in gone),
        tuple((own[n].name, depth) for n, depth in overlapping.items()),
        tuple((own[n].name, distance) for n, distance in far.items()),
    )


def _overlaps(robot: Robot, pairs: Sequence[Pair]) -> dict[int, float]:
    """The numbers of pairs that overlap in the neutral configuration, and by how much."""
    neutral, depths = Proximity(robot, pairs, robot.neutral()[None]), dict[int, float]()
    for i in range(len(pairs)):
        if neutral.nearest(i, 0.0) < 0.0 and (gap := min(neutral.gaps(i, 0))) < 0.0:
            depths[i] = -gap
    return depths


def _far(proximity: Proximity, numbers: Sequence[int]) -> dict[int, float]:
    """The numbers of pairs that never come near, and how far apart they stay at least."""
    distances = dict[int, float]()
    for i, number in enumerate(numbers):
        enough = _NEAR * float(proximity.sizes[i])
        if (apart := proximity.nearest(i, enough)) > enough:
            distances[number] = apart
    return distances


def _stays(robot: Robot, pair: Pair, poses: np.ndarray) -> bool:
    """Whether a pair overlaps in some of the configurations, which stand for all."""
    some = poses[:: len(poses) // 16]
    proximity = Proximity(robot, [pair], some)
    return all(min(proximity.gaps(0, state)) < 0.0 for state in range(len(some)))


def _poses(robot: Robot) -> np.ndarray:
    """(states, nq): configurations within the limits of joints, many of them at limits; the same ones every time."""
    p = robot.states.samples(np.random.default_rng(0), _POSES)
    return np.concatenate([robot.states.neutral[None], p])[:, robot.embedding.q_index]


class _Bounded:
    """Whether all joints between the bodies of a pair have a range."""

    def __init__(self, robot: Robot) -> None:
        self._tree = robot.tree
        self._bounded = [i == 0 or _has_range(link.kind) for i, link in enumerate(robot.tree.links)]

    def __call__(self, pair: Pair) -> bool:
        one, other = (self._tree.carriers(self._tree.place[shape.body][0]) for shape in (pair.one, pair.other))
        return all(self._bounded[link] for link in one ^ other)


def _has_range(kind: Joint) -> bool:
    if kind.nq != kind.nv:
        return not kind.floats
    moves = np.asarray(kind.subspace(kind.neutral()), dtype=float)[3:].any(axis=0)
    return bool((~moves | np.isfinite(kind.upper - kind.lower)).all())
