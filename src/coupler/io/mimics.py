"""Joints that mimic others, in URDF and in SDFormat: position = multiplier × leader's position + offset."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from coupler.grouping import grouped
from coupler.io.xml import Element
from coupler.model.wording import clipped, counted, listed, some


@dataclass(frozen=True, eq=False)
class Mimic:
    """A joint that follows a leader: both names, factor and offset (rad or m), and the element that says so."""

    follower: str
    leader: str
    multiplier: float
    offset: float
    element: Element


@dataclass(frozen=True, eq=False)
class Mimics:
    """The mimics of a file, sorted by what they mean.

    Attributes:
        moving: the mimics that relate two joints that move.
        held: positions of the joints that cannot move, because what they follow is fixed.
        warnings: warnings for the user.
    """

    moving: list[Mimic]
    held: dict[str, float]
    warnings: list[str]


def sorted_mimics(mimics: Sequence[Mimic], fixed: Collection[str]) -> Mimics:
    """Sorts mimics. A fixed joint stays at zero, and cannot follow another.

    Args:
        mimics: the mimics of the file.
        fixed: names of the file's fixed joints.
    """
    idle = [mimic.follower for mimic in mimics if mimic.follower in fixed]
    followers = grouped((mimic for mimic in mimics if mimic.follower not in fixed), lambda mimic: mimic.leader)
    held, pending = dict[str, float](), list(fixed)
    for leader in pending:  # which grows while it is iterated
        for mimic in followers.get(leader, ()):
            if mimic.follower not in held:
                position = mimic.multiplier * held.get(leader, 0.0) + mimic.offset
                if not np.isfinite(position):
                    raise mimic.element.error(f"it holds joint {mimic.follower!r} at {position}")
                held[mimic.follower] = position
                pending.append(mimic.follower)
    moving = [mimic for mimic in mimics if mimic.follower not in fixed and mimic.follower not in held]
    warnings = list[str]()
    if idle:
        warnings.append(f"<mimic> has no effect on {counted(len(idle), 'fixed joint')}: {listed(idle)}")
    if held:
        at = some([f"{clipped(name)} at {position:g}" for name, position in held.items()])
        warnings.append(f"{counted(len(held), 'joint')} made fixed, because what they mimic is: {at}")
    return Mimics(moving, held, warnings)
