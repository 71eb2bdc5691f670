"""Assembling a robot: closing its loops and choosing its coordinates.

Every cluster with constraints is closed from several starts, near the neutral positions and further away. The Jacobians
there show the rank of K, which rows follow from others, and which velocities make good coordinates.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coupler.grouping import grouped
from coupler.model.embedding.choice import Choice, Preference, choose, equilibrated, fitting, qualities, ranks
from coupler.model.embedding.constraints import Loop, RelationConstraint
from coupler.model.embedding.gaps import described, names_of, what_is_open
from coupler.model.embedding.solutions import Solutions
from coupler.model.errors import ModelError
from coupler.model.identity import comparable
from coupler.model.tolerances import CLOSED, WITHIN_LIMITS
from coupler.model.tree import Tree
from coupler.model.wording import clause, counted, listed, some

_STARTS = (0.0, 0.03, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.0)  # fractions of the way from neutral to random positions
_REGULAR = 0.1  # coordinates are regular where their quality is above this part of its median
_NONE = 1e-14  # a lower quality is rounding: the coordinates determine nothing. Gears of 1e5 have a quality of 1e-10
_STILL = 1e-4  # a loop that is sent away and always closes within this part of the way has no other configuration
_TURN = 2.0 * np.pi
_CHANGES = 1e-12  # lower rates of a coupling's function are rounding: it does not depend on its joints


@dataclass(frozen=True, eq=False)
class Assembly:
    """The loops of a robot, assembled.

    Attributes:
        choices: the coordinates of each loop.
        neutral: Σ nq, a closed, regular configuration near where joints start.
        elsewhere: Σ nq, another closed configuration, far from neutral.
        remarks: notes worth knowing, on rows that follow from others.
        warnings: warnings, of a singular start or of limits that keep a loop from closing.
    """

    choices: list[Choice]
    neutral: np.ndarray
    elsewhere: np.ndarray
    remarks: list[str]
    warnings: list[str]


def assemble(solutions: Solutions, preferences: np.ndarray) -> Assembly:
    """Closes all loops and chooses their coordinates.

    Args:
        solutions: the loops, and the couplings that solve them.
        preferences: for each entry of w how much it should be independent; see `Preference`.

    Raises:
        ModelError: for a loop that cannot close or cannot move, or marked joints that do not fit its freedoms.
    """
    choices = [solved_choice(solutions, i, preferences) if s else None for i, s in enumerate(solutions.of_loop)]
    start = solutions.start()
    solutions.check(start)
    neutral, elsewhere, warnings = start.copy(), start.copy(), list[str]()
    if not all(solutions.linear):
        samples, places = _Samples(solutions, start), dict[int, int]()
        for i in np.flatnonzero(~np.array(solutions.linear)).tolist():
            choices[i], places[i], far = samples.choose(i, choices[i], preferences)
            entries = samples.positions(i)
            neutral[entries], elsewhere[entries] = samples.p[places[i], entries], samples.p[far, entries]
        warnings = samples.warnings(places)
    done = [choice for choice in choices if choice is not None]
    return Assembly(done, neutral, elsewhere, _redundant(solutions, done), warnings)


def solved_choice(solutions: Solutions, i: int, preferences: np.ndarray | None = None) -> Choice:
    """The coordinates of a loop that couplings solve.

    Raises:
        ModelError: for a joint that is marked as independent but depends on others.
    """
    solved, loop, tree = solutions.of_loop[i] or (), solutions.closure.loops[i], solutions.tree
    dependent = {link: solution.name for solution in solved for link in solution.dependent}
    for link, name in dependent.items():
        if preferences is not None and (preferences[tree.velocities(link)] == Preference.MARKED).any():
            raise ModelError(
                f"joint {tree.links[link].joint!r} is marked as independent, but coupling {name!r} gives its "
                "position from others"
            )
    taken = np.isin(loop.columns, tree.velocities_of(dependent))
    return Choice(np.flatnonzero(solutions.usable(loop)), np.flatnonzero(taken), np.flatnonzero(~taken), 1.0)


class _Samples:
    """Closed configurations of all loops: the first from where joints start, the others from further away."""

    def __init__(self, solutions: Solutions, start: np.ndarray) -> None:
        self.solutions, closure = solutions, solutions.closure
        motion, goals = closure.motion, np.repeat(start[None], len(_STARTS), axis=0)
        for loop, linear in zip(closure.loops, solutions.linear, strict=True):
            if not linear:  # linear solutions exist everywhere: the start is as good as any
                rng = np.random.default_rng(0)  # one seed for all, so that equal loops are treated equally
                entries = closure.tree.positions_of(loop.links)
                goals[:, entries] = [motion.random(rng, loop.links) for _ in _STARTS]
        way = np.array(_STARTS)[:, None] * motion.difference(start, goals)
        self.closure, self.p = closure, closure.assemble(solutions.spread(motion.integrate(start, way)))
        phi, self.K, _ = closure.at(self.p)
        self.gaps, self.away = closure.gaps(phi), np.abs(motion.difference(start, self.p))
        self.sent = np.abs(way)  # how far joints were moved before loops were closed again
        self.outside = closure.tree.outside_limits(self.p) > WITHIN_LIMITS
        self.regular = np.ones(self.gaps.shape, bool)
        self._chosen: dict[Hashable, tuple[Choice, np.ndarray]] = {}

    def choose(self, i: int, choice: Choice | None, preferences: np.ndarray) -> tuple[Choice, int, int]:
        """The coordinates of a loop (or the given ones), the sample that becomes neutral, and a sample far from it.

        Neutral is the sample nearest to where joints start of those with regular coordinates and within limits.
        """
        loop, closed, given = self.closure.loops[i], self._of_start(i, self._closed(i)), choice is not None
        K, wishes = self.K[:, self.closure.places[i][1]][closed], preferences[loop.columns]
        if choice is None:
            usable = self.solutions.usable(loop)
            key = comparable((K, wishes, usable))
            if key not in self._chosen:  # robots repeat mechanisms: equal ones have the same coordinates
                self._chosen[key] = self._chosen_for(loop, K, wishes, usable)
            choice, fits = self._chosen[key]
            closed, K = closed[fits], K[fits]
        quality = qualities(K[:, choice.rows][:, :, choice.dependent], K[:, choice.rows])
        usual = float(np.median(quality))
        self.regular[closed, i] = quality > _REGULAR * usual
        outside = self.outside[np.ix_(closed, self.positions(i))].any(axis=1)
        away = self.away[np.ix_(closed, loop.columns)].max(axis=1)
        order = np.lexsort([away, outside, ~self.regular[closed, i]])
        if not given and (quality[order[0]] < _NONE or self._still(loop, closed)):
            raise ModelError(
                f"{described(loop, self.closure.tree)} is singular wherever it was found closed: its links just reach "
                "each other, or its constraints hinder each other; are lengths, frames and positions right?"
            )
        far = np.argmax(np.where(self.regular[closed, i], away, -1.0))
        return replace(choice, quality=usual), int(closed[order[0]]), int(closed[far])

    def _chosen_for(
        self, loop: Loop, K: np.ndarray, wishes: np.ndarray, usable: np.ndarray
    ) -> tuple[Choice, np.ndarray]:
        """The coordinates for Jacobians K of samples, and the samples at which the marked joints can be independent."""
        fits = fitting(K, wishes == Preference.MARKED)
        choice = choose(K[fits], wishes, usable)
        if (wishes[choice.dependent] == Preference.MARKED).any():  # large ratios may hide what depends on what
            choice = choose(equilibrated(K[fits]), wishes, usable)
        _check(loop, self.closure.tree, choice, wishes, K[fits])
        return choice, fits

    def _still(self, loop: Loop, closed: np.ndarray) -> bool:
        """Whether a loop closes in one configuration only, where rounding may make K appear to have lost rank."""
        apart = self.closure.motion.difference(self.p[closed[:1]], self.p[closed])[:, loop.columns]
        apart -= _TURN * np.rint(apart / _TURN)  # joints may have gone full circle
        sent = self.sent[np.ix_(closed, loop.columns)]
        return len(closed) > 1 and bool(np.abs(apart).max() < _STILL * sent.max())

    def _of_start(self, i: int, closed: np.ndarray) -> np.ndarray:
        """The closed samples that belong to the first one's assembly: other assemblies may move less, or not at all.

        For example, three equal parallel cranks carry a bar in parallel to itself, but also close in poses in which
        the bar cannot move. Samples count if they have the first one's rank, and some of these have moved.
        """
        columns = self.closure.loops[i].columns
        rank = ranks(self.K[:, self.closure.places[i][1]][closed])
        moved, sent = (part[np.ix_(closed, columns)].max(axis=1) for part in (self.away, self.sent))
        like_first = rank == rank[0]
        return closed[like_first] if (like_first & (moved > _STILL * sent)).sum() > 1 else closed

    def _closed(self, i: int) -> np.ndarray:
        """The samples in which a loop is closed."""
        closed = np.flatnonzero(self.gaps[:, i] < CLOSED)
        if not closed.size:
            nearest = int(np.argmin(self.gaps[:, i]))
            phi = self.closure.at(self.p[nearest])[0]
            closest = f"in the closest configuration found, {what_is_open(self.closure, i, phi)}"
            reason = closest if np.isfinite(self.gaps[nearest, i]) else "it is nowhere a number"
            raise ModelError(
                f"{described(self.closure.loops[i], self.closure.tree)} cannot close: {reason}; are lengths, frames "
                "and positions right?"
            )
        return closed

    def warnings(self, neutral: Mapping[int, int]) -> list[str]:
        """Warnings about loops, one for each kind, for the sample that is neutral for each loop."""
        loops, tree = self.closure.loops, self.closure.tree
        singular = [i for i in neutral if not self.regular[0, i]]
        beyond = [i for i, sample in neutral.items() if self.outside[sample, self.positions(i)].any()]
        warnings = []
        if len(singular) == 1:
            what, moved = described(loops[singular[0]], tree), self._moved(singular[0], neutral[singular[0]])
            warnings.append(f"{what} is singular where its joints start; neutral is elsewhere, {moved}")
        elif singular:
            each = [f"{names_of(loops[i])} ({self._moved(i, neutral[i])})" for i in singular]
            warnings.append(
                f"{len(singular)} loops are singular where their joints start; neutral is elsewhere: {some(each)}"
            )
        if len(beyond) == 1:
            warnings.append(
                f"{described(loops[beyond[0]], tree)} was found closed only beyond the limits of its joints"
            )
        elif beyond:
            each = [names_of(loops[i]) for i in beyond]
            warnings.append(f"{len(beyond)} loops were found closed only beyond the limits of joints: {some(each)}")
        return warnings

    def _moved(self, i: int, neutral: int) -> str:
        """A phrase with the joint of a loop that is furthest from its start position, and the distance."""
        columns = self.closure.loops[i].columns
        away = self.away[neutral, columns]
        entry = int(columns[np.argmax(away)])
        return f"joint {self.closure.tree.joint_of(entry)!r} by {away.max():.2g} {self._unit(entry)}"

    def _unit(self, entry: int) -> str:
        """The unit of an entry of w: rad if it rotates, m if not."""
        tree, link = self.closure.tree, self.closure.tree.link_of(entry)
        kind, column = tree.links[link].kind, entry - tree.velocities(link)[0]
        return "rad" if np.asarray(kind.subspace(kind.neutral()), float)[:3, column].any() else "m"

    def positions(self, i: int) -> np.ndarray:
        """The entries of p that belong to a loop."""
        return self.closure.tree.positions_of(self.closure.loops[i].links)


def _check(loop: Loop, tree: Tree, choice: Choice, preferences: np.ndarray, K: np.ndarray) -> None:
    if not len(choice.independent):
        raise ModelError(
            f"{described(loop, tree)} cannot move: {counted(len(choice.dependent), 'constraint')} on as many joint "
            "velocities leave no freedom; weld its bodies by fixed joints, or constrain them less"
        )
    for constraint, rows in loop.parts():
        if isinstance(constraint, RelationConstraint) and constraint.rows and np.abs(K[:, rows]).max() < _CHANGES:
            raise ModelError(f"coupling {constraint.name!r} constrains nothing: its function never changes")
    dependent, independent = ([tree.joint_of(int(i)) for i in loop.columns[part]]
                              for part in (choice.dependent, choice.independent))  # fmt: skip
    marked = preferences[choice.dependent] == Preference.MARKED
    if marked.any():
        wrong = dict.fromkeys(joint for joint, is_marked in zip(dependent, marked, strict=True) if is_marked)
        raise ModelError(
            f"{described(loop, tree)} has {counted(len(independent), 'freedom')}, which the joints marked as "
            f"independent do not fit: {clause(wrong, '{} depends', '{} depend')} on others; "
            f"{listed(dict.fromkeys(independent))} would do"
        )


def _redundant(solutions: Solutions, choices: Sequence[Choice]) -> list[str]:
    """Remarks about rows that follow from others, one for all constraints with the same numbers of rows."""
    loops = zip(solutions.closure.loops, choices, strict=True)
    constraints = [constraint for loop, choice in loops for constraint in loop.keeping(choice.rows).constraints]
    redundant = [c for c in constraints if len(c.kept) < c.rows and c.name not in solutions.solved]
    remarks = []
    for (kept, rows), same in grouped(redundant, lambda c: (len(c.kept), c.rows)).items():
        each, follow = "each of " if same[1:] else "", "follows" if rows - kept == 1 else "follow"
        names = listed(constraint.name for constraint in same)
        remarks.append(f"{rows - kept} of the {rows} rows of {each}{names} {follow} from the others")
    return remarks
