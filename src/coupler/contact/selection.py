"""The pairs of a robot's own shapes that are worth checking for contact.

Two kinds are left out. Shapes that overlap in the neutral configuration were not made to touch each other: they would
be forced apart from the first step on. If they overlap so little that they may just touch, they are left out only if
they also overlap in all other configurations. And shapes that never come near each other within the limits of the
joints between them need not be checked. Many configurations are tried, at random and at limits; pairs that come nearer
than a fraction of their size in one of them stay, and so do all that do not overlap, if too few configurations are
found.

A robot on the ground may well start within it, and a floating body may go anywhere. So both criteria only apply to
shapes between which all joints have a range, and a shape that touches the ground is left out only if it overlaps in all
configurations. A body that is welded to the ground counts as one of the robot's own.
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
from coupler.model.wording import length

_OVERLAP = 1e-4  # m: shapes that overlap less in the neutral configuration just touch
_NEAR = 0.25  # of the size of both: shapes that come nearer in one of the poses may touch in another
_POSES = 512  # the number of configurations to try
_ENOUGH = 128  # the number of them that must be found; loops may not always close


@dataclass(frozen=True)
class Selection:
    """Pairs that may touch, and those that are left out.

    Attributes:
        pairs: the pairs that may touch.
        overlapping: the names of pairs that overlap in the neutral configuration, and their depths, m.
        far: the names of pairs that never meet, and their least distances, m.
    """

    pairs: tuple[Pair, ...]
    overlapping: tuple[tuple[str, float], ...] = ()
    far: tuple[tuple[str, float], ...] = ()

    @property
    def left_out(self) -> dict[str, str]:
        """Why pairs are left out, by name; of pairs of the same name, the deepest or nearest counts."""
        far = dict(sorted(self.far, key=lambda pair: -pair[1]))
        overlapping = dict(sorted(self.overlapping, key=lambda pair: pair[1]))
        reasons = {name: f"never nearer than {length(apart)} in the poses tried" for name, apart in far.items()}
        return reasons | {name: f"overlaps by {length(by)} in the neutral pose" for name, by in overlapping.items()}


def chosen(pairs: Sequence[Pair], patterns: Iterable[str]) -> list[Pair]:
    """The pairs that match one of the patterns, by their name or by that of one of their shapes."""
    patterns = tuple(patterns)
    for pattern in patterns:
        if pattern != "*" and not any(pair.matches(pattern) for pair in pairs):
            raise ModelError(f"contacts: nothing that may touch is called {pattern!r}; there are {known_names(pairs)}")
    return [pair for pair in pairs if any(pair.matches(pattern) for pattern in patterns)]


def select(robot: Robot, pairs: Sequence[Pair], named: Collection[str] = (), limits: bool = True) -> Selection:
    """The pairs that are worth checking.

    Args:
        pairs: the pairs that may touch.
        named: names of pairs to keep in any case, like those that the robot lists.
        limits: whether joints stop at their limits; if not, all pairs that do not overlap are kept.
    """
    bounded = _Bounded(robot)
    doubtful = [i for i, pair in enumerate(pairs) if pair.name not in named and not pair.listed and bounded(pair)]
    if not doubtful:
        return Selection(tuple(pairs))
    with state_by_state():
        return _selected(robot, pairs, doubtful, limits)


def _selected(robot: Robot, pairs: Sequence[Pair], doubtful: Sequence[int], limits: bool) -> Selection:
    """The pairs that are not doubtful, by number, and those of the doubtful ones that are worth checking."""
    candidates = [pairs[i] for i in doubtful]
    overlapping, far = _overlaps(robot, candidates), dict[int, float]()
    sure = {n for n, by in overlapping.items() if by > _OVERLAP and candidates[n].other.body != GROUND}
    others = [n for n in range(len(candidates)) if n not in overlapping]
    poses = _poses(robot) if others or len(sure) < len(overlapping) else np.zeros((0, robot.nq))
    tried = len(poses) >= _ENOUGH
    overlapping = {
        n: by for n, by in overlapping.items() if n in sure or (tried and _stays(robot, candidates[n], poses))
    }
    if limits and others and tried:
        far = _far(Proximity(robot, [candidates[n] for n in others], poses), others)
    gone = {doubtful[n] for n in (*overlapping, *far)}
    return Selection(
        tuple(pair for i, pair in enumerate(pairs) if i not in gone),
        tuple((candidates[n].name, depth) for n, depth in overlapping.items()),
        tuple((candidates[n].name, distance) for n, distance in far.items()),
    )


def _overlaps(robot: Robot, pairs: Sequence[Pair]) -> dict[int, float]:
    """The pairs that overlap in the neutral configuration, by number, and their depths, m."""
    neutral, depths = Proximity(robot, pairs, robot.neutral()[None]), dict[int, float]()
    for i in range(len(pairs)):
        if neutral.nearest(i, 0.0) < 0.0 and (gap := min(neutral.gaps(i, 0))) < 0.0:
            depths[i] = -gap
    return depths


def _far(proximity: Proximity, numbers: Sequence[int]) -> dict[int, float]:
    """The pairs that never come near each other, by number, and their least distances, m."""
    distances = dict[int, float]()
    for i, number in enumerate(numbers):
        enough = _NEAR * float(proximity.sizes[i])
        if (apart := proximity.nearest(i, enough)) > enough:
            distances[number] = apart
    return distances


def _stays(robot: Robot, pair: Pair, poses: np.ndarray) -> bool:
    """Whether a pair overlaps in all of a sample of the configurations."""
    some = poses[:: len(poses) // 16]
    proximity = Proximity(robot, [pair], some)
    return all(min(proximity.gaps(0, state)) < 0.0 for state in range(len(some)))


def _poses(robot: Robot) -> np.ndarray:
    """(states, nq): configurations within joint limits, many of them at limits; the same ones every time."""
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
