"""What a compiled step takes into account, and how its state and its results are laid out in vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.pairs import Pair
from coupler.model import ModelError, Robot

__all__ = [
    "ContactScene",
    "Entry",
    "Layout",
    "friction_impulses",
    "limited_joints",
    "rebounding",
    "recovery_speeds",
    "rubbing_joints",
    "travelling",
    "turns",
]

Entry = tuple[int, int]  # a link, and an entry of its joint's velocity

_RECOVERY_ARM = 0.1  # m: a point so far from an axis comes back from beyond a limit as fast as what slides


@dataclass(frozen=True, eq=False)
class ContactScene:
    """What a compiled step takes into account, and how exactly it solves the contact problem.

    Attributes:
        pairs: the pairs of shapes that may touch.
        step: h, s.
        tolerance: sweeps end when no impulse changes a velocity by more, m/s.
        most: the largest number of sweeps.
        limits: whether joints stop at their limits.
        external: whether there are forces on bodies from outside, as a further input.
        penetration: how overlaps count; see `gap_seen`.
        recovery: how fast overlaps are parted at most, m/s (see `let_out`); angles beyond a limit ten times as fast,
            rad/s.
    """

    pairs: tuple[Pair, ...]
    step: float
    tolerance: float = 1e-9
    most: int = 10
    limits: bool = True
    external: bool = False
    penetration: str | float = "position"
    recovery: float = np.inf


def limited_joints(robot: Robot) -> list[Entry]:
    """The entries of joints that have limits."""
    return _entries(robot, lambda kind, j: kind.nq == kind.nv and max(kind.lower[j], -kind.upper[j]) > -np.inf)


def rubbing_joints(robot: Robot) -> list[Entry]:
    """The entries of joints that have dry friction."""
    return _entries(robot, lambda kind, j: kind.friction[j] > 0.0)


def recovery_speeds(robot: Robot, joints: Sequence[Entry], recovery: float) -> np.ndarray:
    """How fast each entry of joints may come back from beyond a limit, m/s or rad/s: see `ContactScene`."""
    return recovery * np.where([turns(robot, joint) for joint in joints], 1.0 / _RECOVERY_ARM, 1.0)


def turns(robot: Robot, joint: Entry) -> bool:
    """Whether an entry of a joint is an angle, and not a way."""
    link, j = joint
    kind = robot.tree.links[link].kind
    return bool(np.any(np.asarray(kind.subspace(kind.neutral()))[:3, j]))


def friction_impulses(robot: Robot, joints: Sequence[Entry], step: float) -> list[float]:
    """The largest impulse of dry friction of each entry of joints within a step, N s or N m s."""
    return [step * float(robot.tree.links[link].kind.friction[j]) for link, j in joints]


def _entries(robot: Robot, holds: Callable[[Any, int], bool]) -> list[Entry]:
    kinds = [(link, robot.tree.links[link].kind) for link in range(1, len(robot.tree.links))]
    return [(link, j) for link, kind in kinds for j in range(kind.nv) if holds(kind, j)]


def rebounding(pairs: Sequence[Pair]) -> list[int]:
    """The numbers of the contacts that rebound in place, in two steps."""
    laws = [pair.restitution for pair in pairs for _ in range(pair.count)]
    return [i for i, law in enumerate(laws) if law is not None and law.in_place]


def travelling(pairs: Sequence[Pair]) -> bool:
    """Whether there are impacts that close gaps, rebound, and travel.

    Raises:
        ModelError: if others rebound in place.
    """
    laws = [pair.restitution for pair in pairs if pair.restitution is not None]
    travel = any(law.elastic and not law.in_place for law in laws)
    if travel and any(law.in_place for law in laws):
        raise ModelError("restitution: either all contacts that rebound do so in place, or none")
    return travel


class Layout:
    """The rows of a robot's contact problem in a scene, and where vectors have what.

    A state has q, v, the impulses of the step before, from which a step starts, and what that step left of contacts
    which rebound in place. What a step leads to starts with the next state; then come gap, point and frame of each
    contact, as they were before the step, the residual and the number of sweeps.

    Attributes:
        limited: entries of joints with limits.
        rubbing: entries of joints with dry friction.
        joints: both, each once, those with friction first.
        deferred: how many of them, the last ones, have limits alone: they count once they are reached.
        contacts: how many candidates there are.
        rows: of the contact problem: three for each contact, then one for each entry of limited, and of rubbing.
        places: by name, where things are in what a step leads to.
        state: the size of a state.
        size: the size of all that a step leads to.
    """

    def __init__(self, robot: Robot, scene: ContactScene) -> None:
        self.limited = limited_joints(robot) if scene.limits else []
        self.rubbing = rubbing_joints(robot)
        self.joints = list(dict.fromkeys([*self.rubbing, *self.limited]))
        self.deferred = len(self.joints) - len(self.rubbing)
        self.contacts = n = sum(pair.count for pair in scene.pairs)
        self.rows = 3 * n + len(self.limited) + len(self.rubbing)
        sizes = {"q": robot.nq, "v": robot.nv, "impulses": self.rows, "pending": 3 * len(rebounding(scene.pairs))}
        self.state = sum(sizes.values())
        sizes |= {"gaps": n, "points": 3 * n, "frames": 9 * n, "residual": 1, "sweeps": 1, "iterations": 1}
        ends = np.cumsum([*sizes.values()]).tolist()
        self.size = ends[-1]
        self.places = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}
