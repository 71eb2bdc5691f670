"""Times of baselines with dense matrices, measured in a process of its own, where LAPACK has one thread.

LAPACK takes its number of threads from the environment when it is loaded. With several of them, on a machine that is
busy otherwise, one of its threads waits for another most of the time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.baselines.dense import dense_lagrange, dense_osim, dense_projection
from coupler.graph import compile
from coupler.kinematics import frame_place
from coupler.model import ModelError, Robot
from coupler.robots import load
from coupler.studies.report import best_times

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SECONDS = 0.2  # of measurement for each method and length
METHODS: Mapping[str, Callable[[Robot], Callable[..., Any]]] = {
    "projection": lambda robot: dense_projection(robot, compile),
    "multipliers": lambda robot: dense_lagrange(robot, compile),
    "projected EFPA": lambda robot: dense_osim(robot, [frame_place(robot, robot.frame_names[-1])], compile),
}


def dense_times(
    chain: str, seed: int | None, lengths: Sequence[int], methods: Sequence[str]
) -> dict[str, dict[int, float]]:
    """The time of one state, s, by method and number of links.

    Args:
        chain: the name of the bundled robot.
        seed: seed of its random parameters, or None.
        lengths: numbers of links.
        methods: some of `METHODS`.
    """
    given = json.dumps([chain, seed, [*lengths], [*methods]])
    environment = os.environ | dict.fromkeys(THREADS, "1")
    command = [sys.executable, "-m", "coupler.studies.dense", given]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ModelError(f"the measurement of dense matrices failed: {done.stderr.strip().splitlines()[-1:]}")
    seconds_of = json.loads(done.stdout)
    return {method: {int(links): s for links, s in by_links.items()} for method, by_links in seconds_of.items()}


def _measured(chain: str, seed: int | None, lengths: Sequence[int], methods: Sequence[str]) -> Any:
    seconds_of: dict[str, dict[int, float]] = {method: {} for method in methods}
    for links in lengths:
        robot = load(chain, links=links, seed=seed)
        (q, v), tau = robot.random_state(0), np.zeros(robot.nv)
        calls = [_called(METHODS[method](robot), (q,) if "EFPA" in method else (q, v, tau)) for method in methods]
        for method, seconds in zip(methods, best_times(calls, SECONDS), strict=True):
            seconds_of[method][links] = seconds
    return seconds_of


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: function(*arguments)


if __name__ == "__main__":
    print(json.dumps(_measured(*json.loads(sys.argv[1]))))
