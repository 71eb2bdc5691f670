"""Closed forms: γ of a cluster as a sequence of steps, its name, its dead points, and remarks about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from coupler.grouping import grouped
from coupler.model.closed_forms.chains import Positions
from coupler.model.closed_forms.legs import Leg, Limits, Slide
from coupler.model.joints import Free, Prismatic, Revolute
from coupler.model.wording import listed

Array = Any  # an ndarray of floats, or of nodes

_POSES = 40  # poses that are examined for dead points
_SEARCHES = 4  # how many of these, the worst, are improved by a search
_ROUNDS = 12  # rounds of such a search
_APART = 0.05  # clearance from a dead point, relative to that in the assembled pose, below which it counts as reached


class Step(Protocol):
    """A function that determines the positions of some joints from those of others."""

    @property
    def solves(self) -> tuple[int, ...]:
        """The numbers of the joints that it determines."""
        ...

    def __call__(self, q: Positions) -> Sequence[Any]:
        """The positions of the joints that it determines, for positions q of all joints that are known."""
        ...


@dataclass(frozen=True, eq=False)
class LegStep:
    leg: Leg

    @property
    def solves(self) -> tuple[int, ...]:
        return self.leg.base.joints + self.leg.goal.joints

    def __call__(self, q: Positions) -> Sequence[Any]:
        return self.leg.solve(q)


@dataclass(frozen=True, eq=False)
class CouplingStep:
    """A user's γ, which determines the joints `solves` (at `entries` of its result) from the `given` ones."""

    function: Callable[[Array], Array]
    given: tuple[int, ...]
    entries: tuple[int, ...]
    solves: tuple[int, ...]

    def __call__(self, q: Positions) -> Sequence[Any]:
        positions = self.function(np.concatenate([q[number] for number in self.given]))
        return [positions[entry] for entry in self.entries]


@dataclass(frozen=True, eq=False)
class LockStep:
    """A joint that is locked, as an idle freedom may be."""

    solves: tuple[int, ...]
    position: float

    def __call__(self, q: Positions) -> Sequence[Any]:
        return [self.position]


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """γ of a cluster: positions of all its joints from those of the independent ones, leg by leg.

    Attributes:
        sizes: the number of position entries of each joint.
        independent: the numbers of the independent joints, in the order in which γ takes their positions.
        steps: the steps that determine the other positions, in order.
        revolute: the numbers of revolute joints.
        dead_points: whether the independent joints can fail to determine the others within the limits of joints.
    """

    sizes: tuple[int, ...]
    independent: tuple[int, ...]
    steps: tuple[Step, ...]
    revolute: frozenset[int]
    dead_points: bool = True

    def __call__(self, y: Array) -> Array:
        q = self._with_independent(y)
        for step in self.steps:
            for number, position in zip(step.solves, step(q), strict=True):
                q[number] = np.array([position])
        return np.concatenate(q)

    def _with_independent(self, y: Array) -> list[Any]:
        """Positions by joint: y for the independent joints, None for all others."""
        q: list[Any] = [None] * len(self.sizes)
        starts = np.cumsum([0, *(self.sizes[number] for number in self.independent)])
        for number, start in zip(self.independent, starts, strict=False):
            q[number] = y[start : start + self.sizes[number]]
        return q

    def beyond_reach(self, y: np.ndarray) -> tuple[int, ...]:
        """The joints of the first leg that cannot reach from its base to its goal; empty if all legs can."""
        q = self._with_independent(y)
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
        """The legs that its steps solve."""
        return [step.leg for step in self.steps if isinstance(step, LegStep)]

    def has_dead_points(self, limits: Limits, assembled: np.ndarray) -> bool:
        """Whether the independent joints can fail to determine the others within the limits of joints.

        Where the ranges of all independent joints are bounded, such poses are searched for.

        Args:
            limits: limits of joints, by their numbers.
            assembled: positions of the independent joints in the assembled pose.
        """
        ranges = [limits.get(number, np.array([-np.inf, np.inf])) for number in self.independent]
        ranges = [
            np.clip(range_, -np.pi, np.pi) if number in self.revolute else range_
            for number, range_ in zip(self.independent, ranges, strict=True)
        ]
        if not all(map(np.isfinite, np.ravel(ranges))):
            return any(leg.has_dead_points(limits) for leg in self.legs)
        lower, upper = np.transpose(ranges)
        rng, usual = np.random.default_rng(0), self._clearances(assembled)

        def worst(y: np.ndarray) -> float:
            return float((self._clearances(y) / usual).min(initial=np.inf))

        samples = rng.uniform(lower, upper, (_POSES, len(lower)))
        samples[: _POSES // 2] = np.where(samples[: _POSES // 2] > 0.5 * (lower + upper), upper, lower)
        nearest_first = sorted((worst(y), tuple(y)) for y in samples)
        return any(_lowered(worst, np.array(y), value, lower, upper) < _APART for value, y in nearest_first[:_SEARCHES])

    def _clearances(self, y: np.ndarray) -> np.ndarray:
        """Distances that vanish at dead points of linear actuators, and where these cannot reach."""
        q, clearances = self._with_independent(y), list[float]()
        for step in self.steps:
            with np.errstate(all="ignore"):
                solved = step(q)
                if isinstance(step, LegStep) and isinstance(step.leg, Slide):
                    clearances += np.nan_to_num(step.leg.clearances(solved), nan=0.0).tolist()
            for number, position in zip(step.solves, solved, strict=True):
                q[number] = np.array([position])
        return np.array(clearances)

    @property
    def name(self) -> str:
        """The name of the mechanism in the literature, such as 2-SPU+1U."""
        names, carrier = [leg.name for leg in self.legs], self._carrier
        if len(names) == 1 and carrier == "R":
            return _OF_ONE_HINGE.get(names[0], names[0])
        if carrier == "6":
            names = ["UPS" if name == "SPU" else name for name in names]
        counts = {name: names.count(name) for name in names}
        if counts.get("RUS") == counts.get("RPR") == self._nested:
            counts = {f"SU[{_OF_ONE_HINGE['RPR']}]": self._nested} | {
                name: count for name, count in counts.items() if name not in ("RUS", "RPR")
            }
        notation = " and ".join(name if count == 1 else f"{count}-{name}" for name, count in counts.items())
        return f"{notation}+1U" if carrier == "RR" else notation

    @property
    def _nested(self) -> int:
        """The number of linear actuators that turn the crank of another leg, or are turned by it."""
        cranks = {leg.base.joints[0] for leg in self.legs if leg.name == "RUS"}
        ways = [{joint.number for joint in leg.chain.joints} for leg in self.legs if leg.name == "RPR"]
        return sum(bool(way & cranks) for way in ways)

    @property
    def _carrier(self) -> str:
        """The joints between base and goal of the first leg: R for a rotation, P for a slide, 6 for a free joint."""
        kinds = [joint.kind for joint in self.legs[0].chain.joints]
        letters = {Revolute: "R", Prismatic: "P", Free: "6"}
        return "".join(next((s for kind, s in letters.items() if isinstance(each, kind)), "?") for each in kinds)


def _lowered(
    function: Callable[[np.ndarray], float], x: np.ndarray, value: float, lower: np.ndarray, upper: np.ndarray
) -> float:
    """Roughly the minimum of a function near x within limits, by steps along one coordinate after another."""
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


_ANALYTICALLY, _NUMERICALLY = ": closed analytically, as ", ": closed numerically, "


class Offer(NamedTuple):
    """A closed form that a cluster would have with other independent joints: loops, these joints, and its name."""

    loops: tuple[str, ...]
    independent: tuple[str, ...]
    mechanism: str


def remarks_of(
    closed_forms: Mapping[str, ClosedForm],
    unused: Mapping[str, ClosedForm],
    missing: Sequence[str],
    offers: Sequence[Offer],
) -> list[str]:
    """Remarks on how loops are closed, one for each kind of mechanism.

    Args:
        closed_forms: by name, of loops that are closed analytically.
        unused: by name, of loops that are closed numerically because of dead points.
        missing: loops that have no closed form although one was asked for.
        offers: closed forms that loops would have with other independent joints.
    """
    remarks = [f"{listed(names)}{_ANALYTICALLY}{mechanism}" for mechanism, names in _by_mechanism(closed_forms)]
    remarks += [
        f'{listed(names)}{_NUMERICALLY}to pass dead points; closure="analytical" closes '
        f"{'it' if len(names) == 1 else 'them'} as {mechanism}"
        for mechanism, names in _by_mechanism(unused)
    ]
    remarks += [
        f"{listed(offer.loops)}{_NUMERICALLY}with these independent joints; "
        f'closure="analytical" takes {listed(offer.independent)} instead, and closes it as {offer.mechanism}'
        for offer in offers
    ]
    if missing:
        remarks.append(
            f"{listed(missing)}{_NUMERICALLY}for want of a closed form; there is none with these independent joints, "
            "with joints of other kinds, or where limits and springs are beyond half a turn"
        )
    return remarks


def tells_of_closure(remark: str) -> bool:
    """Whether a remark is one of `remarks_of`."""
    return _ANALYTICALLY in remark or _NUMERICALLY in remark


def _by_mechanism(forms: Mapping[str, ClosedForm]) -> Iterable[tuple[str, list[str]]]:
    """The names of mechanisms, each with the names of its loops."""
    return grouped(forms, lambda name: forms[name].name).items()
