"""Times of calls, taken in turns, because machines are shared and noisy."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

__all__ = ["best_in_rounds", "best_times"]

TURN = 0.01  # how long a call is repeated before it is the next one's turn, s


def best_times(*calls: Callable[[], object], budget: float) -> list[float]:
    """The best time of each call, measured in turns over the budget in seconds.

    A turn is long enough for several calls: the first one finds the caches full of what the other used.
    """
    repeats = []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        repeats.append(max(1, int(TURN / 20 / (time.perf_counter() - start))))
    best = [np.inf] * len(calls)
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        for i, (call, repeat) in enumerate(zip(calls, repeats, strict=True)):
            turn_ends = time.perf_counter() + TURN
            while (start := time.perf_counter()) < turn_ends:
                for _ in range(repeat):
                    call()
                best[i] = min(best[i], (time.perf_counter() - start) / repeat)
    return best


def best_in_rounds(
    calls: dict[str, Callable[[], object]], repeats: int, rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The best time of each call, in turns of so many repeats, by a clock, s."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            for _ in range(repeats):
                call()
            best[name] = min(best[name], (clock() - start) / repeats)
    return best
