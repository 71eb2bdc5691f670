"""Recognising closed forms: which clusters consist of legs that can be solved one after another.

The search starts from the independent joints of a cluster, whose positions are known. Whenever the unknown joints of a
loop form a leg, the leg is solved and its joints become known. If all joints of the cluster become known in this way, γ
is the sequence of these legs. Legs are recognised by their dimensions alone, so a candidate γ is tested afterwards: it
must close the loops of its cluster in poses all around the neutral one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.grouping import grouped
from coupler.model.closed_forms.arms import Arm
from coupler.model.closed_forms.chains import Chain, ChainJoint
from coupler.model.closed_forms.form import ClosedForm, CouplingStep, LegStep, LockStep, Step
from coupler.model.closed_forms.legs import LEGS, Leg, Limits, Slide
from coupler.model.embedding.choice import Choice
from coupler.model.embedding.closure import Closure
from coupler.model.embedding.constraints import Loop, LoopConstraint
from coupler.model.identity import comparable
from coupler.model.joints import Revolute, Spherical
from coupler.model.loops import Coupling, Rod
from coupler.model.tolerances import CLOSED
from coupler.model.tree import Tree
from coupler.spatial import Transform

_ASSEMBLED = 1e-7  # rad or m: in the right assembly mode, a leg puts its joints this close to their neutral positions
_SAMPLES = 24  # poses around the neutral one in which γ must close the loops
_SPREAD = 1.0  # rad or m: the distance of the furthest of them; most are much nearer
_CLOSED_BY_FORM = CLOSED * 0.01  # rad or m: the gap that γ may leave, small enough to change no result


def find_closed_forms(
    closure: Closure,
    choices: Sequence[Choice],
    neutral: np.ndarray,
    couplings: Mapping[str, Coupling],
    loops: Sequence[Loop],
    wanted: Callable[[Loop, ClosedForm], bool],
) -> list[tuple[Coupling, ClosedForm]]:
    """Closed forms of clusters, as couplings that solve all of their constraints.

    Args:
        closure: the constraints of all clusters.
        choices: their coordinates.
        neutral: Σ nq, a closed configuration, whose assembly modes are kept.
        couplings: by name.
        loops: the clusters to look at.
        wanted: whether a cluster is to have such a closed form.
    """
    chosen = {id(loop) for loop in loops}
    searches = [
        _Search(closure, loop, choice, neutral, couplings)
        for loop, choice in zip(closure.loops, choices, strict=True)
        if id(loop) in chosen
    ]
    # Robots repeat mechanisms. Equal ones have the same γ, so that only the first of them is searched and tested.
    equal_searches = grouped(searches, lambda search: search.key).values()
    candidates = [(first, form) for first, *_ in equal_searches if (form := first.form()) is not None]
    forms = {
        search.key: replace(form, dead_points=search.has_dead_points(form))
        for search, form in _closing(closure, neutral, candidates)
    }
    couplings_and_forms = []
    for search in searches:
        form, loop = forms.get(search.key), search.loop
        if form is None or not wanted(loop, form):
            continue
        joints = [closure.tree.links[link].joint for link in loop.links]
        names = tuple(constraint.name for constraint in loop.constraints)
        independent = tuple(joints[number] for number in form.independent)
        name = f"closed form of {' and '.join(names)}"
        couplings_and_forms.append((Coupling(name, tuple(joints), independent, form, names, form.sizes), form))
    return couplings_and_forms


def _closing(
    closure: Closure, neutral: np.ndarray, candidates: Sequence[tuple[_Search, ClosedForm]]
) -> list[tuple[_Search, ClosedForm]]:
    """The candidates whose γ closes the loops of its cluster around the neutral configuration, wherever γ exists."""
    if not candidates:
        return []
    spread = _SPREAD * (np.arange(_SAMPLES)[:, None] / _SAMPLES) ** 2
    step = np.zeros((_SAMPLES, closure.tree.nv))
    for search, form in candidates:
        entries = closure.tree.velocities_of(search.inputs(form))
        step[:, entries] = spread * np.random.default_rng(0).uniform(-1.0, 1.0, (_SAMPLES, len(entries)))
    samples, exists = closure.motion.integrate(neutral, step), list[np.ndarray]()
    for search, form in candidates:
        inputs = samples[:, closure.tree.positions_of(search.inputs(form))]
        with np.errstate(all="ignore"):
            q = np.array([form(y) for y in inputs], dtype=float)
        exists.append(np.asarray(np.isfinite(q).all(axis=1)))
        samples[np.ix_(exists[-1], closure.tree.positions_of(search.loop.links))] = q[exists[-1]]
    gaps = closure.gaps(closure.at(samples)[0])
    number = {id(loop): i for i, loop in enumerate(closure.loops)}
    return [
        (search, form)
        for (search, form), there in zip(candidates, exists, strict=True)
        if there[0] and there.sum() > _SAMPLES // 4 and (gaps[there, number[id(search.loop)]] < _CLOSED_BY_FORM).all()
    ]


class _Search:
    """The search for a closed form of one cluster."""

    def __init__(
        self, closure: Closure, loop: Loop, choice: Choice, p: np.ndarray, couplings: Mapping[str, Coupling]
    ) -> None:
        self.loop, self._p, self._couplings = loop, p, couplings
        self._tree: Tree = closure.tree
        self._number = {link: i for i, link in enumerate(loop.links)}
        free = set(loop.columns[choice.independent].tolist())
        self._free = [[entry in free for entry in self._tree.velocities(link).tolist()] for link in loop.links]
        self._independent = [i for i, entries in enumerate(self._free) if any(entries)]

    @cached_property
    def key(self) -> Hashable:
        """Equal for clusters that differ in names alone: all that the search, and the test of its result, depend on."""
        tree, links = self._tree, []
        for link in self.loop.links:
            joint = tree.links[link]
            numbers = joint.placement.E, joint.placement.r, joint.kind.lower, joint.kind.upper, joint.kind.stiffness
            position = self._p[tree.positions(link)]
            links.append((self._number.get(joint.parent), joint.kind.form(), comparable((*numbers, position))))
        constraints = [
            (
                constraint.form,
                constraint.within(self._number).connection,
                comparable([*constraint.constants.values()]),
                "" if isinstance(constraint, LoopConstraint) else constraint.name,  # a coupling's γ is its own
            )
            for constraint in self.loop.constraints
        ]
        return tuple(links), tuple(constraints), comparable(self._free)

    def form(self) -> ClosedForm | None:
        """The candidate for the closed form, if there is one; it may still fail to close the loops."""
        if any(any(entries) and not all(entries) for entries in self._free):
            return None  # some freedoms of a joint are independent, and others not
        if not any(isinstance(constraint, LoopConstraint) for constraint in self.loop.constraints):
            return None
        steps = self._steps()
        if not steps:
            return None  # none was found, or none is needed as all rows follow from the tree itself
        sizes = tuple(self._tree.links[link].kind.nq for link in self.loop.links)
        kinds = [self._tree.links[link].kind for link in self.loop.links]
        revolute = frozenset(i for i, kind in enumerate(kinds) if isinstance(kind, Revolute))
        form = ClosedForm(sizes, tuple(self._independent), tuple(steps), revolute)
        return form if self._are_angles_unique(form) else None

    def inputs(self, form: ClosedForm) -> list[int]:
        """The links of its independent joints."""
        return [self.loop.links[number] for number in form.independent]

    def has_dead_points(self, form: ClosedForm) -> bool:
        if not all(isinstance(leg, Slide) for leg in form.legs):
            return True  # whatever the limits are: simulations may ignore them
        return form.has_dead_points(self.limits, self._p[self._tree.positions_of(self.inputs(form))])

    @property
    def limits(self) -> Limits:
        """The limits of joints of one freedom, by their numbers."""
        kinds = [self._tree.links[link].kind for link in self.loop.links]
        return {i: np.array([np.max(k.lower), np.min(k.upper)]) for i, k in enumerate(kinds) if k.nv == 1}

    def _are_angles_unique(self, form: ClosedForm) -> bool:
        """Whether the angles of all joints with springs or limits are unique within the range of these joints."""
        limits = self.limits
        references = {
            n: r
            for leg in form.legs
            for arm in (leg.base, leg.goal)
            for n, r in zip(arm.joints, arm.references, strict=True)
        }
        for number, reach in (turn for leg in form.legs for turn in leg.turns_of(limits)):
            kind = self._tree.links[self.loop.links[number]].kind
            has_limits, has_spring = np.isfinite(limits[number]).any(), np.any(kind.stiffness)
            if (has_limits or has_spring) and not (np.abs(limits[number] - references[number]) <= reach).all():
                return False
        return True

    def _steps(self) -> list[Step] | None:
        """Steps that determine the positions of all joints; None if there are none."""
        known, steps, remaining = set(self._independent), list[Step](), list(self.loop.constraints)
        while remaining:
            for constraint in remaining:
                unknown = {self._number[link] for link in constraint.links} - known
                if not unknown:  # it follows from the others, or γ will fail its test
                    remaining.remove(constraint)
                    break
                step = next(self._steps_of(constraint, known), None)
                if step is not None:
                    steps.append(step)
                    known |= set(step.solves)
                    remaining.remove(constraint)
                    break
            else:
                return None
        return steps if len(known) == len(self._number) else None

    def _steps_of(self, constraint: Any, known: set[int]) -> Iterator[Step]:
        """Steps by which a constraint may determine the positions of all its unknown joints."""
        if isinstance(constraint, LoopConstraint):
            for leg in self._legs(constraint, known):
                positions = [self._p[self._tree.positions(link)] for link in self.loop.links]
                step = LegStep(leg)
                with np.errstate(all="ignore"):
                    solved = step(positions)
                apart = [abs(x - positions[number].item()) for x, number in zip(solved, step.solves, strict=True)]
                if max(apart) < _ASSEMBLED:
                    yield step
            return
        if constraint.is_lock and constraint.kinds[0].nv == 1:
            yield LockStep((self._number[constraint.links[0]],), float(constraint.numbers[0]))
            return
        coupling = self._couplings.get(constraint.name)
        if coupling is None or not coupling.solved:
            return
        numbers = [self._number[self._tree.number[joint]] for joint in coupling.joints]
        given = tuple(self._number[self._tree.number[joint]] for joint in coupling.independent)
        if set(given) <= known and not known & (set(numbers) - set(given)):
            entries = tuple(i for i, number in enumerate(numbers) if number not in given)
            yield CouplingStep(coupling.function, given, entries, tuple(numbers[i] for i in entries))

    def _legs(self, constraint: LoopConstraint, known: set[int]) -> Iterator[Leg]:
        """The legs that the unknown joints of a loop may form, in all assembly modes, from either side."""
        sides = []
        for way, held in zip(constraint.ways, constraint.frames, strict=True):
            unknown = [self._number[link] not in known for link in way]
            first = unknown.index(True) if any(unknown) else 0
            count = sum(unknown)
            if not all(unknown[first : first + count]):
                return  # a known joint between unknown ones
            for link in way[:first]:  # taken as fixed: if it does move the held frame, γ fails its test
                held = held @ self._assembled(link)
            outwards = way[first : first + count][::-1]
            arm = Arm.of(self._tree, outwards, [self._number[link] for link in outwards], self._p, held)
            if arm is None:
                return
            carriers = [
                ChainJoint(self._number[link], joint.kind, joint.placement, self._p[self._tree.positions(link)])
                for link, joint in ((link, self._tree.links[link]) for link in reversed(way[first + count :]))
            ]
            sides.append((arm, tuple(carriers)))
        rod = constraint.kind.length if isinstance(constraint.kind, Rod) else None
        for (base, to_base), (goal, to_goal) in (sides, sides[::-1]):
            chain = Chain(to_base, to_goal)
            for kind in LEGS:
                arms = kind.with_ball(base, goal, chain) if isinstance(constraint.kind, Spherical) else (base, goal)
                if kind.fits(*arms, rod):
                    yield from kind.in_all_modes(*arms, chain, rod)

    def _assembled(self, link: int) -> Transform:
        """The transform from the frame of a link's carrier to its own, in the assembled pose."""
        joint = self._tree.links[link]
        return joint.kind.transform(self._p[self._tree.positions(link)]) @ joint.placement
