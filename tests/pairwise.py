"""Few combinations of options in which each two of their values meet."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

__all__ = ["pairwise"]

Case = dict[str, Any]

_TRIES = 40  # of which each next case is the one in which the most values meet for the first time


def pairwise(options: Mapping[str, Sequence[Any]], possible: Callable[[Case], bool]) -> list[Case]:
    """Cases in which each two values of different options meet that can.

    Args:
        options: the values of each, by name.
        possible: whether a case may be, of which some options may be missing.
    """
    left = [
        {one: x, other: y}
        for one, other in combinations(options, 2)
        for x in options[one]
        for y in options[other]
        if possible({one: x, other: y})
    ]
    rng, cases = random.Random(0), list[Case]()
    while left:
        tried = [_drawn(options, possible, left, rng) for _ in range(_TRIES)]
        case = max(tried, key=lambda case: _met(case, left))
        cases.append({name: case[name] for name in options})
        left = [pair for pair in left if not pair.items() <= case.items()]
    return cases


def _drawn(
    options: Mapping[str, Sequence[Any]], possible: Callable[[Case], bool], left: list[Case], rng: random.Random
) -> Case:
    """A case with a pair that is left, to which options are added in a random order, each as most pairs want it."""
    case = dict(rng.choice(left))
    for name in rng.sample(list(options), len(options)):
        if name not in case:
            values = [value for value in options[name] if possible(case | {name: value})]
            case[name] = max(values, key=lambda value: (_met(case | {name: value}, left), rng.random()))
    return case


def _met(case: Case, left: list[Case]) -> int:
    """How many of the pairs that are left a case has."""
    return sum(pair.items() <= case.items() for pair in left)
