"""Few combinations of options in which each two of their values meet."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

__all__ = ["pairwise"]

Case = dict[str, Any]

_TRIES = 40  # of which each next case is the one in which the most values meet for the first time


def pairwise(options: Mapping[str, Sequence[Any]]) -> list[Case]:
    """Cases in which each two values of different options meet.

    Args:
        options: the values of each, by name.
    """
    left = [{one: x, other: y} for one, other in combinations(options, 2) for x in options[one] for y in options[other]]
    rng, cases = random.Random(0), list[Case]()
    while left:
        tried = [_drawn(options, left, rng) for _ in range(_TRIES)]
        case = max(tried, key=lambda case: _met(case, left))
        cases.append({name: case[name] for name in options})
        left = [pair for pair in left if not pair.items() <= case.items()]
    return cases


def _drawn(options: Mapping[str, Sequence[Any]], left: list[Case], rng: random.Random) -> Case:
    """A case with a pair that is left, to which options are added in a random order, each as most pairs want it."""
    case = dict(rng.choice(left))
    for name in rng.sample(list(options), len(options)):
        if name not in case:
            case[name] = max(options[name], key=lambda value: (_met(case | {name: value}, left), rng.random()))
    return case


def _met(case: Case, left: list[Case]) -> int:
    """How many of the pairs that are left a case has."""
    return sum(pair.items() <= case.items() for pair in left)
