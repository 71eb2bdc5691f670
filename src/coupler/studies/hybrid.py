"""What it costs to close loops numerically, analytically, and some of each [003, Fig. 7, 9].

A time is that of one state, from the motion of the independent joints to the result: loops are closed, and then comes
what is asked for. Numerical loops are closed by Newton's method from the state before in a random trajectory, as in a
control loop; analytical ones by their formulas. All programs are compiled, run on one thread, and are called 10,000
times with one state each, as in the paper, and once with all of them, in SIMD lanes.

"Projected" is the paper's way: forces of the spanning tree, multiplied by Gᵀ, and for forward dynamics the mass matrix
GᵀHG. The cluster algorithms do the same without a spanning tree. With Baumgarte's stabilisation, loops are not closed:
velocities and accelerations of all joints are pulled towards it, as in RBDL, the paper's numerical method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.baselines import (
    joint_motion_program,
    projected_rnea_program,
    projection_program,
    stabilized_dynamics_program,
    stabilized_rnea_program,
)
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import compile
from coupler.model import ModelError, Robot
from coupler.studies.report import best_times, save_table, verdict, with_pyplot
from coupler.studies.rh5 import WAYS, Motion, decay_times, full, numerical_rows, reduced, wandering

__all__ = ["run"]

CALLS = 10_000
CALLED = ("one a call", "all at once")
SECONDS = 1.0  # for each program, while they take turns
RESULTS = {
    "full state": joint_motion_program,
    "inverse, projected": projected_rnea_program,
    "inverse, C-RNEA": inverse_dynamics_program,
    "forward, projected": projection_program,
    "forward, C-ABA": forward_dynamics_program,
}
STABILIZED = {"inverse, projected": stabilized_rnea_program, "forward, projected": stabilized_dynamics_program}
BAUMGARTE = "numerical, Baumgarte"
_SAME = 1e-8  # rad or m

Both = tuple[Callable[[], Any], Callable[[], Any]]  # state by state, and all at once
Calls = Mapping[str, Both]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes:
        robot: the robot, closed in one of `WAYS`.
        rows: how many rows the paper closes numerically in each way.
        ratios: how many times as long inverse dynamics takes in the paper in one way as in another, about.
    """

    robot: Callable[[str], Robot]
    rows: Mapping[str, int]
    ratios: Mapping[tuple[str, str], float]


FIGURES = {
    "003-fig7": Figure(
        reduced,
        {"numerical": 10, "hybrid": 6, "analytical": 0},
        {("numerical", "analytical"): 5.0, ("numerical", "hybrid"): 2.0},
    ),
    "003-fig9": Figure(full, {"numerical": 30, "hybrid": 20}, {("numerical", "hybrid"): 1.3}),
}


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    figure = FIGURES[name]
    calls: dict[str, Calls] = {}
    for way in figure.rows:
        robot = figure.robot(way)
        rows = numerical_rows(robot)
        found = "agrees" if rows == figure.rows[way] else "differs"
        verdict(f"{way}, rows that are closed numerically", str(figure.rows[way]), str(rows), found)
        motion = wandering(robot, CALLS)
        if way == WAYS[0]:
            calls[BAUMGARTE] = stabilized(robot, motion)
        calls[way] = programs(robot, motion)
    times = measured(calls)
    saved: list[list[Any]] = []
    for i, called in enumerate(CALLED):
        for way, own in times.items():
            saved.append([way, called, *(own[result][i] if result in own else "" for result in RESULTS)])
    save_table(folder / f"{name}.csv", ["loops closed, µs", "states", *RESULTS], saved)
    print()
    for method in ("projected", "C-RNEA"):
        for i, called in enumerate(CALLED):
            for (slow, fast), paper in figure.ratios.items():
                ratio = times[slow][f"inverse, {method}"][i] / times[fast][f"inverse, {method}"][i]
                what = f"inverse dynamics, {method}, {called}: time of {slow} over {fast}"
                verdict(what, f"≈ {paper:g}", f"{ratio:.2f}", _judged(ratio, paper))
    draw_bars(folder / f"{name}.png", figure, times)


def programs(robot: Robot, motion: Motion) -> Calls:
    """For each result, a function that computes it state by state, and one that does so for all states at once."""
    q = motion.positions(robot)
    close = closing(robot, q)
    calls: dict[str, Both] = {}
    for result, make in RESULTS.items():
        one, many = both_ways(compile(make(robot)), q, motion.v, motion.a)
        calls[result] = (one, many) if close is None else (_after(close[0], one), _after(close[1], many))
    return calls


def stabilized(robot: Robot, motion: Motion) -> Calls:
    """The same by projection with Baumgarte's stabilisation, from positions and velocities of all joints."""
    q = motion.positions(robot)
    _, w, _ = compile(joint_motion_program(robot))(q, motion.v, motion.a)
    times = decay_times(robot)
    return {result: both_ways(compile(make(robot, times)), q, w, motion.a) for result, make in STABILIZED.items()}


def closing(robot: Robot, q: np.ndarray) -> Both | None:
    """Newton's method for all loops without a solution, from dependent positions of the state before."""
    if not numerical_rows(robot):
        return None
    states, p = robot.states, robot.embedding.positions(q)
    start = np.where(_sought(robot), np.roll(p, 1, axis=0), p)
    start[0] = p[0]
    executable = compile(states.closing_program())
    arguments = (start, np.zeros_like(p), np.tile(states.dependent, (len(p), 1)))
    closed, left = executable(*arguments)
    if np.abs(closed - p).max() > _SAME or np.abs(left).max() > _SAME:
        raise ModelError("Newton's method leaves the branch that the trajectory is on; take shorter steps")
    return both_ways(executable, *arguments)


def _sought(robot: Robot) -> np.ndarray:
    """Which entries of the positions of all joints Newton's method finds; all joints have one freedom each."""
    entries = np.zeros(robot.tree.nv, bool)
    entries[robot.embedding.unsolved_entries] = True
    return entries & (robot.states.dependent > 0.0)


def both_ways(executable: Any, *arguments: np.ndarray) -> Both:
    """Calls an executable for state after state, and for all of them at once."""
    arrays = [np.ascontiguousarray(array) for array in arguments]
    states = list(zip(*arrays, strict=True))

    def one_by_one() -> None:
        for state in states:
            executable(*state)

    return one_by_one, lambda: executable(*arrays)


def _after(first: Callable[[], Any], second: Callable[[], Any]) -> Callable[[], Any]:
    def both() -> None:
        first()
        second()

    return both


def measured(calls: Mapping[str, Calls]) -> dict[str, dict[str, tuple[float, float]]]:
    """The times of one state, one a call and all at once, µs, by way and result; all take turns."""
    flat = [call for own in calls.values() for pair in own.values() for call in pair]
    print(f"{len(flat)} programs are measured, with {CALLS} states each", flush=True)
    micro = iter([1e6 * seconds / CALLS for seconds in best_times(flat, SECONDS)])
    return {way: {result: (next(micro), next(micro)) for result in own} for way, own in calls.items()}


def _judged(ratio: float, paper: float) -> str:
    if ratio < 1.0:
        return "differs: what is numerical is no slower here"
    if ratio > 1.3 * paper:
        return "differs: analytical loops gain more here"
    if ratio < paper / 1.3:
        return "differs: Newton's method, compiled and from the state before, costs less here"
    return "agrees"


def draw_bars(path: Path, figure: Figure, times: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Times as bars, and as lines what inverse dynamics would take with the paper's ratios."""

    def draw(plt: Any) -> None:
        width = 0.8 / len(times)
        for j, (way, own) in enumerate(times.items()):
            places = [i + width * j for i, result in enumerate(RESULTS) if result in own]
            plt.bar(places, [own[result][0] for result in RESULTS if result in own], width, label=way)
        reference = min(figure.rows, key=lambda way: figure.rows[way])
        at = list(RESULTS).index("inverse, projected")
        for (slow, fast), ratio in figure.ratios.items():
            base = times[fast]["inverse, projected"][0]
            label = f"paper: {slow} ≈ {ratio:g} × {fast}"
            style = "k--" if fast == reference else "k:"
            plt.plot([at - width, at + 0.8], [ratio * base] * 2, style, label=label)
        plt.xticks([i + 0.3 for i in range(len(RESULTS))], list(RESULTS), rotation=20)
        plt.ylabel("time of one state, one a call, µs")
        plt.legend(fontsize="small")

    with_pyplot(path, draw)
