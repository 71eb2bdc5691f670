"""Finding closed forms: which loops of a robot are made of legs that can be solved one after the other.

The independent joints of a cluster are known. A loop of which the joints that are not known make a leg is solved, its
joints are known from there on, and so it goes on. Where all joints of the cluster become known in this way, γ is a
sequence of legs. Whether a leg is what it seems is asked of the loops themselves: γ must close them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from coupler.model.closed_forms.arms import Arm
from coupler.model.closed_forms.chains import Chain, ChainJoint, Positions
from coupler.model.closed_forms.legs import LEGS, Leg, Limits, Slide
from coupler.model.embedding.choice import Choice
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Loop, LoopConstraint
from coupler.model.joints import Free, Prismatic, Revolute
from coupler.model.loops import Coupling, Rod
from coupler.model.tolerances import CLOSED
from coupler.model.tree import Tree
from coupler.model.wording import listed
from coupler.spatial import Transform

__all__ = ["ClosedForm", "find_closed_forms", "remarks_of"]

Array = Any  # an ndarray of floats, or of nodes

_ASSEMBLED = 1e-7  # rad or m: how far a leg may put a joint from where it is assembled, in the right mode
_SAMPLES = 24  # poses about the neutral one in which γ must close the loops
_SPREAD = 1.0  # rad or m: how far the furthest of them are from it; most are much nearer
_POSES, _SEARCHES, _ROUNDS = (
    40,
    4,
    12,
)  # in which it is looked for dead points, how many are searched from, and how long
_APART = 0.05  # of what clears a dead point where it is assembled: less is one
_TRUE = CLOSED * 0.01  # rad or m: the gap that γ may leave, so that it changes no answer


class Step(Protocol):
    """What gives positions of some joints from those of others."""

    @property
    def solves(self) -> tuple[int, ...]:
        """Numbers of the joints that it gives positions to."""
        ...

    def __call__(self, q: Positions) -> Sequence[Any]:
        """Their positions."""
        ...


@dataclass(frozen=True, eq=False)
class _LegStep:
    leg: Leg

    @property
    def solves(self) -> tuple[int, ...]:
        return self.leg.base.joints + self.leg.goal.joints

    def __call__(self, q: Positions) -> Sequence[Any]:
        return self.leg.solve(q)


@dataclass(frozen=True, eq=False)
class _CouplingStep:
    """A coupling of the user's, solved for the joints `solves` from the `given` ones; `entries` are theirs in γ."""

    function: Callable[[Array], Array]
    given: tuple[int, ...]
    entries: tuple[int, ...]
    solves: tuple[int, ...]

    def __call__(self, q: Positions) -> Sequence[Any]:
        positions = self.function(np.concatenate([q[number] for number in self.given]))
        return [positions[entry] for entry in self.entries]


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """γ of a cluster: positions of all its joints from those of the independent ones, leg by leg.

    Attributes:
        sizes: for each joint how many entries its position has.
        independent: numbers of the independent ones, in the order in which γ takes their positions.
        steps: what gives the other positions, in order.
        turning: numbers of joints that turn about an axis.
    """

    sizes: tuple[int, ...]
    independent: tuple[int, ...]
    steps: tuple[Step, ...]
    turning: frozenset[int]

    def __call__(self, y: Array) -> Array:
        q = self._given(y)
        for step in self.steps:
            for number, position in zip(step.solves, step(q), strict=True):
                q[number] = np.array([position])
        return np.concatenate(q)

    def _given(self, y: Array) -> list[Any]:
        """Positions of all joints, of which only the independent ones are known."""
        q: list[Any] = [None] * len(self.sizes)
        starts = np.cumsum([0, *(self.sizes[number] for number in self.independent)])
        for number, start in zip(self.independent, starts, strict=False):
            q[number] = y[start : start + self.sizes[number]]
        return q

    def beyond_reach(self, y: np.ndarray) -> tuple[int, ...]:
        """Numbers of the joints of the first leg that does not reach from its base to its goal; none if all do."""
        q = self._given(y)
        for step in self.steps:
            with np.errstate(all="ignore"):
                solved = step(q)
            if not np.isfinite(np.array(solved, float)).all():
                return step.solves
            for number, position in zip(step.solves, solved, strict=True):
                q[number] = np.array([position])
        return ()

    @property
    def legs(self) -> list[Leg]:
        return [step.leg for step in self.steps if isinstance(step, _LegStep)]

    def has_dead_points(self, limits: Limits, assembled: np.ndarray) -> bool:
        """Whether the independent joints may fail to determine the others, while joints keep within their limits.

        Where independent joints have limits, or turn, such poses are searched for.

        Args:
            limits: of joints.
            assembled: the positions of independent joints where it is assembled.
        """
        ranges = [limits.get(number, np.array([-np.inf, np.inf])) for number in self.independent]
        ranges = [
            np.clip(own, -np.pi, np.pi) if number in self.turning else own
            for number, own in zip(self.independent, ranges, strict=True)
        ]
        if not all(map(np.isfinite, np.ravel(ranges))):
            return any(leg.has_dead_points(limits) for leg in self.legs)
        lower, upper = np.transpose(ranges)
        rng, usual = np.random.default_rng(0), self._clearances(assembled)

        def worst(y: np.ndarray) -> float:
            return float((self._clearances(y) / usual).min(initial=np.inf))

        samples = rng.uniform(lower, upper, (_POSES, len(lower)))
        samples[: _POSES // 2] = np.where(samples[: _POSES // 2] > 0.5 * (lower + upper), upper, lower)
        found = sorted((worst(y), tuple(y)) for y in samples)
        return any(_lowered(worst, np.array(y), value, lower, upper) < _APART for value, y in found[:_SEARCHES])

    def _clearances(self, y: np.ndarray) -> np.ndarray:
        """What is zero at dead points of linear actuators, and where they do not reach."""
        q, found = self._given(y), list[float]()
        for step in self.steps:
            with np.errstate(all="ignore"):
                solved = step(q)
                if isinstance(step, _LegStep) and isinstance(step.leg, Slide):
                    found += np.nan_to_num(step.leg.clearances(solved), nan=0.0).tolist()
            for number, position in zip(step.solves, solved, strict=True):
                q[number] = np.array([position])
        return np.array(found)

    @property
    def name(self) -> str:
        """What the literature calls such a mechanism: 2-SPU+1U, or the like."""
        names, carrier = [leg.name for leg in self.legs], self._carrier
        if len(names) == 1 and carrier == "R":
            return _OF_ONE_HINGE.get(names[0], names[0])
        if carrier == "6":
            names = ["UPS" if name == "SPU" else name for name in names]
        counts = {name: names.count(name) for name in names}
        told = " and ".join(name if count == 1 else f"{count}-{name}" for name, count in counts.items())
        return f"{told}+1U" if carrier == "RR" else told

    @property
    def _carrier(self) -> str:
        """What is known between base and goal of the first leg: R for each turn, P for each slide, 6 if it floats."""
        kinds = [joint.kind for joint in self.legs[0].chain.joints]
        letters = {Revolute: "R", Prismatic: "P", Free: "6"}
        return "".join(next((s for kind, s in letters.items() if isinstance(own, kind)), "?") for own in kinds)


def _lowered(
    function: Callable[[np.ndarray], float], x: np.ndarray, value: float, lower: np.ndarray, upper: np.ndarray
) -> float:
    """About the least value of a function near x within limits, by steps along one coordinate after the other."""
    steps = 0.25 * (upper - lower)
    for _ in range(_ROUNDS):
        for i in range(len(x)):
            for sign in (1.0, -1.0):
                tried = x.copy()
                tried[i] = np.clip(tried[i] + sign * steps[i], lower[i], upper[i])
                if (now := function(tried)) < value:
                    x, value = tried, now
        steps = 0.6 * steps
    return value


_OF_ONE_HINGE = {"RPR": "RRPR", "RRR": "four-bar", "PRR": "slider-crank", "spherical RRR": "spherical four-bar"}


def find_closed_forms(
    closure: Closure,
    choices: Sequence[Choice],
    neutral: np.ndarray,
    couplings: Mapping[str, Coupling],
    loops: Sequence[Loop],
    wanted: Callable[[Loop, ClosedForm, bool], bool],
) -> list[tuple[Coupling, ClosedForm]]:
    """Closed forms of clusters, as couplings that solve all of their constraints.

    Args:
        closure: the constraints of all clusters.
        choices: their coordinates.
        neutral: Σ nq, a closed configuration, whose assembly modes are kept.
        couplings: by name.
        loops: the clusters to look at.
        wanted: whether a cluster with such a closed form, which has dead points or not, is to have it.
    """
    found = []
    for loop, choice in zip(closure.loops, choices, strict=True):
        if loop not in loops:
            continue
        search = _Search(closure, loop, choice, neutral, couplings)
        form = search.form()
        if form is None or not wanted(loop, form, search.has_dead_points(form)):
            continue
        joints = [closure.tree.links[link].joint for link in loop.links]
        names = tuple(constraint.name for constraint in loop.constraints)
        independent = tuple(joints[number] for number in form.independent)
        name = f"closed form of {' and '.join(names)}"
        found.append((Coupling(name, tuple(joints), independent, form, names, form.sizes), form))
    return found


def remarks_of(closed_forms: Mapping[str, ClosedForm], missing: Sequence[str] = ()) -> list[str]:
    """Which loops are closed analytically, a line for each kind of mechanism, and which are not that ought to be."""
    alike: dict[str, list[str]] = {}
    for name, form in closed_forms.items():
        alike.setdefault(form.name, []).append(name)
    told = [f"{listed(names)}: closed analytically, as {mechanism}" for mechanism, names in alike.items()]
    if missing:
        told.append(
            f"{listed(missing)}: closed numerically, for want of a closed form; there is none with these independent "
            "joints, with joints of other kinds, or where limits and springs are beyond half a turn"
        )
    return told


class _Search:
    """The search for a closed form of one cluster."""

    def __init__(
        self, closure: Closure, loop: Loop, choice: Choice, p: np.ndarray, couplings: Mapping[str, Coupling]
    ) -> None:
        self._closure, self._loop, self._p, self._couplings = closure, loop, p, couplings
        self._tree: Tree = closure.tree
        self._number = {link: i for i, link in enumerate(loop.links)}
        free = set(loop.columns[choice.independent].tolist())
        self._free = [[entry in free for entry in self._tree.velocities(link).tolist()] for link in loop.links]
        self._independent = [i for i, entries in enumerate(self._free) if any(entries)]

    def form(self) -> ClosedForm | None:
        """The closed form, if there is one that closes the loops wherever it exists."""
        if any(any(entries) and not all(entries) for entries in self._free):
            return None  # of a joint of several freedoms some are independent, and others not
        if not any(isinstance(constraint, LoopConstraint) for constraint in self._loop.constraints):
            return None
        steps = self._steps()
        if steps is None:
            return None
        sizes = tuple(self._tree.links[link].kind.nq for link in self._loop.links)
        kinds = [self._tree.links[link].kind for link in self._loop.links]
        turning = frozenset(i for i, kind in enumerate(kinds) if isinstance(kind, Revolute))
        form = ClosedForm(sizes, tuple(self._independent), tuple(steps), turning)
        return form if self._can_tell_turns(form) and self._is_true(form) else None

    def has_dead_points(self, form: ClosedForm) -> bool:
        if not all(isinstance(leg, Slide) for leg in form.legs):
            return True  # whatever its limits: robots may be simulated without
        inputs = [self._loop.links[number] for number in form.independent]
        return form.has_dead_points(self.limits, self._p[self._tree.positions_of(inputs)])

    @property
    def limits(self) -> Limits:
        """The limits of joints of one freedom, by their numbers."""
        kinds = [self._tree.links[link].kind for link in self._loop.links]
        return {i: np.array([np.max(k.lower), np.min(k.upper)]) for i, k in enumerate(kinds) if k.nv == 1}

    def _can_tell_turns(self, form: ClosedForm) -> bool:
        """Whether joints with springs or limits are never turned further than their closed form can tell."""
        limits = self.limits
        references = {
            n: r
            for leg in form.legs
            for arm in (leg.base, leg.goal)
            for n, r in zip(arm.joints, arm.references, strict=True)
        }
        for number, reach in (turn for leg in form.legs for turn in leg.turns_of(limits)):
            kind = self._tree.links[self._loop.links[number]].kind
            has_limits, has_spring = np.isfinite(limits[number]).any(), np.any(kind.stiffness)
            if (has_limits or has_spring) and not (np.abs(limits[number] - references[number]) <= reach).all():
                return False
        return True

    def _steps(self) -> list[Step] | None:
        """What gives the positions of all joints, or None."""
        known, steps, waiting = set(self._independent), list[Step](), list(self._loop.constraints)
        while waiting:
            for constraint in waiting:
                unknown = {self._number[link] for link in constraint.links} - known
                if not unknown:  # it follows from others, or the closed form is not true
                    waiting.remove(constraint)
                    break
                step = next(self._steps_of(constraint, known), None)
                if step is not None:
                    steps.append(step)
                    known |= set(step.solves)
                    waiting.remove(constraint)
                    break
            else:
                return None
        return steps if len(known) == len(self._number) else None

    def _steps_of(self, constraint: Any, known: set[int]) -> Iterator[Step]:
        """Steps by which a constraint may give the positions of all its joints that are not known."""
        if isinstance(constraint, LoopConstraint):
            for leg in self._legs(constraint, known):
                positions = [self._p[self._tree.positions(link)] for link in self._loop.links]
                step = _LegStep(leg)
                with np.errstate(all="ignore"):
                    solved = step(positions)
                apart = [abs(x - positions[number].item()) for x, number in zip(solved, step.solves, strict=True)]
                if max(apart) < _ASSEMBLED:
                    yield step
            return
        coupling = self._couplings.get(constraint.name)
        if coupling is None or not coupling.solved:
            return
        numbers = [self._number[self._tree.number[joint]] for joint in coupling.joints]
        given = tuple(self._number[self._tree.number[joint]] for joint in coupling.independent)
        if set(given) <= known and not known & (set(numbers) - set(given)):
            entries = tuple(i for i, number in enumerate(numbers) if number not in given)
            yield _CouplingStep(coupling.function, given, entries, tuple(numbers[i] for i in entries))

    def _legs(self, constraint: LoopConstraint, known: set[int]) -> Iterator[Leg]:
        """The legs that the unknown joints of a loop may be, in all assembly modes, seen from either side."""
        sides = []
        for way, held in zip(constraint.ways, constraint.frames, strict=True):
            unknown = [self._number[link] not in known for link in way]
            first = unknown.index(True) if any(unknown) else 0
            count = sum(unknown)
            if not all(unknown[first : first + count]):
                return  # a known joint lies between unknown ones
            for link in way[:first]:  # idle, or what is found is not true: it does not move what is held
                held = held @ self._assembled(link)
            outwards = way[first : first + count][::-1]
            arm = Arm.of(self._tree, outwards, [self._number[link] for link in outwards], self._p, held)
            if arm is None:
                return
            carriers = [
                ChainJoint(self._number[link], own.kind, own.placement, self._p[self._tree.positions(link)])
                for link, own in ((link, self._tree.links[link]) for link in reversed(way[first + count :]))
            ]
            sides.append((arm, tuple(carriers)))
        rod = constraint.kind.length if isinstance(constraint.kind, Rod) else None
        for (base, to_base), (goal, to_goal) in (sides, sides[::-1]):
            for kind in LEGS:
                if kind.fits(base, goal, rod):
                    yield from kind.in_all_modes(base, goal, Chain(to_base, to_goal), rod)

    def _assembled(self, link: int) -> Transform:
        """From the frame of what carries a link to its own, as it is assembled."""
        own = self._tree.links[link]
        return own.kind.transform(self._p[self._tree.positions(link)]) @ own.placement

    def _is_true(self, form: ClosedForm) -> bool:
        """Whether γ closes the loops of its cluster about the neutral configuration."""
        rng, tree, motion = np.random.default_rng(0), self._tree, self._closure.motion
        own, inputs = tree.positions_of(self._loop.links), [self._loop.links[number] for number in form.independent]
        samples, exists = np.repeat(self._p[None], _SAMPLES, axis=0), np.zeros(_SAMPLES, bool)
        for i, p in enumerate(samples):
            way = np.zeros(tree.nv)
            way[tree.velocities_of(inputs)] = _SPREAD * (i / _SAMPLES) ** 2
            moved = motion.integrate(p, way * rng.uniform(-1.0, 1.0, tree.nv))
            with np.errstate(all="ignore"):
                q = form(moved[tree.positions_of(inputs)])
            exists[i] = np.isfinite(q).all()
            if exists[i]:
                p[own] = q
        gaps = self._closure.gaps(self._closure.at(samples)[0])[:, self._closure.loops.index(self._loop)]
        return bool(exists[0] and exists.sum() > _SAMPLES // 4 and (gaps[exists] < _TRUE).all())
