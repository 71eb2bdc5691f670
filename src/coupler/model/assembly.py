"""How the loops of a robot fit together: closed configurations, coordinates, and what is wrong with them.

Every cluster with constraints is closed from several starts, near the neutral positions and further away. What is found
there tells the rank of K, which rows follow from others, and which velocities make good coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coupler.model.closure import CLOSED, Closure
from coupler.model.constraints import Loop, LoopConstraint
from coupler.model.coordinates import Choice, Preference, choose, qualities
from coupler.model.errors import ModelError
from coupler.model.tree import Tree, listed

__all__ = ["Assembly", "assemble", "described", "outside_limits"]

_STARTS = (0.0, 0.03, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.0)  # how far they are from neutral, of the way to random
_REGULAR = 0.1  # coordinates are regular where their quality is above this part of what it is elsewhere


@dataclass(frozen=True, eq=False)
class Assembly:
    """What is known about the loops of a robot.

    Attributes:
        choices: for each loop its coordinates.
        neutral: a closed, regular configuration p, near the neutral position of every joint.
        remarks: what the user should know.
    """

    choices: list[Choice]
    neutral: np.ndarray
    remarks: list[str]


def assemble(
    closure: Closure, preferences: np.ndarray, usable: np.ndarray, given: Sequence[Choice | None], start: np.ndarray
) -> Assembly:
    """Closes all loops and chooses their coordinates.

    Args:
        closure: the loops.
        preferences: for each entry of w how much it should be independent.
        usable: for each row of φ whether it may be kept.
        given: the coordinates of loops that are solved; their positions in `start` are final.
        start: positions p near which to look.

    Raises:
        ModelError: for a loop that cannot close or cannot move, or coordinates that do not fit its freedoms.
    """
    choices, neutral, remarks = list(given), start.copy(), []
    if None in choices:
        samples = _Samples(closure, start, {i for i, choice in enumerate(given) if choice is not None})
        for group in closure.groups:
            for i, rows, columns, entries in zip(group.loops, group.rows, group.columns, group.entries, strict=True):
                if choices[i] is not None:
                    continue
                loop = closure.loops[i]
                closed = samples.closed(i)
                K = samples.K[closed][:, entries]
                choice = choose(K, preferences[columns], usable[rows])
                _check(loop, closure.tree, choice, preferences[columns])
                at, singular = samples.neutral(i, closed, K[:, choice.rows], choice)
                own = np.concatenate([closure.tree.positions(link) for link in loop.links])
                neutral[own], choices[i] = samples.p[at, own], choice
                if singular:
                    remarks.append(f"{described(loop, closure.tree)} is singular where its joints are neutral")
    done = [choice for choice in choices if choice is not None]
    return Assembly(done, neutral, _redundant(closure.loops, done, usable) + remarks)


class _Samples:
    """Closed configurations, the first of them reached from neutral positions, the others from further away."""

    def __init__(self, closure: Closure, start: np.ndarray, solved: set[int]) -> None:
        motion, goals = closure.motion, np.repeat(start[None], len(_STARTS), axis=0)
        for i, loop in enumerate(closure.loops):
            if i not in solved:
                rng = np.random.default_rng(0)  # the same for each, so that loops that are alike are treated alike
                own = np.concatenate([closure.tree.positions(link) for link in loop.links])
                goals[:, own] = [motion.random(rng, loop.links) for _ in _STARTS]
        self.closure = closure
        self.p = closure.assemble(motion.integrate(start, np.array(_STARTS)[:, None] * motion.difference(start, goals)))
        phi, self.K, _ = closure.at(self.p)
        self.gaps, self.away = closure.gaps(phi), np.abs(motion.difference(start, self.p))
        self.outside = outside_limits(closure.tree, self.p) > 1e-9

    def closed(self, i: int) -> np.ndarray:
        """The samples in which a loop is closed."""
        found = np.flatnonzero(self.gaps[:, i] < CLOSED)
        if not found.size:
            raise ModelError(
                f"{described(self.closure.loops[i], self.closure.tree)} cannot close: the smallest gap found is "
                f"{self.gaps[:, i].min():.3g} (m or rad); are lengths, frames and positions right?"
            )
        return found

    def neutral(self, i: int, closed: np.ndarray, K: np.ndarray, choice: Choice) -> tuple[int, bool]:
        """The sample nearest to neutral where coordinates are regular, and whether they are not at neutral itself."""
        loop, tree = self.closure.loops[i], self.closure.tree
        quality = qualities(K[:, :, choice.dependent], K)
        singular = quality < _REGULAR * choice.quality
        own = np.concatenate([tree.positions(link) for link in loop.links])
        outside = self.outside[np.ix_(closed, own)].any(axis=1)
        away = self.away[np.ix_(closed, loop.columns)].max(axis=1)
        best = np.lexsort([away, outside, singular])[0]
        return int(closed[best]), bool(closed[0] == 0 and singular[0])


def described(loop: Loop, tree: Tree) -> str:
    """A loop by its constraints and joints, for messages."""
    names = listed(constraint.name for constraint in loop.constraints)
    kind = "loop" if any(isinstance(constraint, LoopConstraint) for constraint in loop.constraints) else "coupling"
    return f"the {kind} {names} of joints {listed(tree.links[link].joint for link in loop.links)}"


def _check(loop: Loop, tree: Tree, choice: Choice, preferences: np.ndarray) -> None:
    if not len(choice.independent):
        raise ModelError(
            f"{described(loop, tree)} cannot move: {len(choice.dependent)} constraints leave its joints no freedom; "
            "weld its bodies by fixed joints, or close it by loop joints with more freedom"
        )
    dependent, independent = ([tree.joint_of(int(i)) for i in loop.columns[part]]
                              for part in (choice.dependent, choice.independent))  # fmt: skip
    marked = preferences[choice.dependent] == Preference.MARKED
    if marked.any():
        wrong = dict.fromkeys(joint for joint, is_marked in zip(dependent, marked, strict=True) if is_marked)
        raise ModelError(
            f"{described(loop, tree)} has {len(independent)} freedoms, which the joints marked as independent do not "
            f"fit: {listed(wrong)} depends on others; {listed(dict.fromkeys(independent))} would do"
        )


def _redundant(loops: Sequence[Loop], choices: Sequence[Choice], usable: np.ndarray) -> list[str]:
    """Remarks about rows that follow from others, one for all constraints in which as many do."""
    names: dict[tuple[int, int], list[str]] = {}
    row = 0
    for loop, choice in zip(loops, choices, strict=True):
        kept = np.isin(np.arange(loop.rows), choice.rows)
        ends = np.cumsum([0, *(constraint.rows for constraint in loop.constraints)])
        for constraint, first, last in zip(loop.constraints, ends, ends[1:], strict=False):
            count = int((usable[row + first : row + last] & ~kept[first:last]).sum())
            if count:
                names.setdefault((count, constraint.rows), []).append(constraint.name)
        row += loop.rows
    return [
        f"{count} of the {rows} rows of {listed(found)} {'follows' if count == 1 else 'follow'} from the others"
        for (count, rows), found in names.items()
    ]


def outside_limits(tree: Tree, p: np.ndarray) -> np.ndarray:
    """How far positions are beyond their limits."""
    lower, upper = np.full(p.shape[-1], -np.inf), np.full(p.shape[-1], np.inf)
    for i, link in enumerate(tree.links):
        if link.kind.nq == link.kind.nv:
            lower[tree.positions(i)], upper[tree.positions(i)] = link.kind.lower, link.kind.upper
    return np.maximum(np.maximum(lower - p, p - upper), 0.0)
