"""What it costs to close loops numerically, analytically, and some of each [003, Fig. 7, 9].

A time is that of one state, from the motion of the independent joints to the result: loops are closed, and then comes
what is asked for. Numerical loops are closed by Newton's method from the state before in a random trajectory, as in a
control loop; analytical ones by their formulas. All programs are compiled, run on one thread, and are called 10,000
times with one state each, as in the paper, and with 500 states at once, in SIMD lanes.

"Projected" is the paper's way: forces of the spanning tree, multiplied by Gᵀ, and for forward dynamics the mass matrix
GᵀHG, or Lagrange multipliers. Cluster algorithms do the same without a spanning tree. With Baumgarte's stabilisation,
loops are not closed: accelerations of all joints pull them together, as in RBDL, the paper's numerical method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.baselines import (
    joint_motion_program,
    lagrange_program,
    projected_rnea_program,
    projection_program,
    stabilized_dynamics_program,
    stabilized_rnea_program,
)
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import compile
from coupler.model import ModelError, Robot
from coupler.studies.report import best_times, note, progress, save_table, verdict, with_pyplot
from coupler.studies.rh5 import WAYS, Motion, decay_times, full, numerical_rows, reduced, wandering

CALLS = 10_000
PART = 500  # of the states, which are timed together
CALLED = ("one a call", f"{PART} at once")
SECONDS = 1.0  # for each result, while they take turns
RESULTS = {
    "full state": joint_motion_program,
    "inverse, projected": projected_rnea_program,
    "inverse, C-RNEA": inverse_dynamics_program,
    "forward, projected": projection_program,
    "forward, C-ABA": forward_dynamics_program,
}
STABILIZED = {"inverse, projected": stabilized_rnea_program, "forward, projected": stabilized_dynamics_program}
CLOSING = "closing"  # which is in all the others
BAUMGARTE = "numerical, Baumgarte"
_SAME = 1e-8  # rad or m

Calls = list[Callable[[], Any]]
Both = tuple[Calls, Calls]  # state by state, and many at once; together they go over all states


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes:
        robot: the robot, closed in one of `WAYS`.
        rows: how many rows the paper closes numerically in each way.
        ratios: how many times as long inverse dynamics takes in the paper in one way as in another, about, and why it
            may not do so here: {slow}, {fast} and {most} are operations of a round of Newton's method, and their ratio.
        further: results beside `RESULTS`.
    """

    robot: Callable[[str], Robot]
    rows: Mapping[str, int]
    ratios: Mapping[tuple[str, str], tuple[float, str]]
    further: Mapping[str, Callable[..., Any]]


CHEAP = "Newton's method, compiled and from the state before, costs less"
STAYS = (
    "each loop is solved by itself, not all rows as one system; of {slow:,} operations of a round of Newton's method "
    "{fast:,} are for the {part}, so that no more than {most:.2f} can be gained"
)
FIGURES = {
    "003-fig7": Figure(
        reduced,
        {"numerical": 10, "hybrid": 6, "analytical": 0},
        {
            ("numerical", "analytical"): (5.0, CHEAP),
            (BAUMGARTE, "analytical"): (5.0, "without a search for positions, what is left is as cheap as formulas"),
            ("numerical", "hybrid"): (2.0, STAYS.replace("{part}", "torso")),
        },
        {"forward, multipliers": lagrange_program},
    ),
    "003-fig9": Figure(  # multipliers of 30 rows on 61 joints make a kernel that takes minutes to compile
        full,
        {"numerical": 30, "hybrid": 20},
        {("numerical", "hybrid"): (1.3, STAYS.replace("{part}", "wrists"))},
        {},
    ),
}


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    figure = FIGURES[name]
    calls: dict[str, dict[str, Both]] = {}
    results, rounds = {**RESULTS, **figure.further}, dict[str, int]()
    for way in figure.rows:
        robot = figure.robot(way)
        rows = numerical_rows(robot)
        outcome = "agrees" if rows == figure.rows[way] else "differs"
        verdict(f"{way}, rows that are closed numerically", str(figure.rows[way]), str(rows), outcome)
        rounds[way] = robot.states.closing_program.operations().total() if rows else 0
        motion = wandering(robot, CALLS)
        if way == WAYS[0]:
            calls[BAUMGARTE] = stabilized(robot, motion)
        calls[way] = programs(robot, motion, results)
    times = measured(calls)
    note(
        "Times are of one state on one thread, µs, best of many, with the search for dependent positions where loops "
        "are closed numerically: one state a call, and many states at once."
    )
    saved: list[list[Any]] = []
    for i, called in enumerate(CALLED):
        for way, by_result in times.items():
            cells = [by_result[result][i] if result in by_result else "" for result in (CLOSING, *results)]
            saved.append([way, called, *cells])
    save_table(folder / f"{name}.csv", ["loops closed, µs", "states", CLOSING, *results], saved)
    print()
    for method in ("projected", "C-RNEA"):
        for i, called in enumerate(CALLED):
            for (slow, fast), (paper, why) in figure.ratios.items():
                if f"inverse, {method}" not in times[slow]:
                    continue
                ratio = times[slow][f"inverse, {method}"][i] / times[fast][f"inverse, {method}"][i]
                what = f"inverse dynamics, {method}, {called}: time of {slow} over {fast}"
                if largest := rounds.get(slow, 0) / rounds[fast] if rounds[fast] else 0.0:
                    why = why.format(slow=rounds[slow], fast=rounds[fast], most=largest)
                verdict(what, f"≈ {paper:g}", f"{ratio:.2f}", _judged(ratio, paper, why))
    draw_bars(folder / f"{name}.png", figure, times)


def programs(robot: Robot, motion: Motion, results: Mapping[str, Callable[..., Any]]) -> dict[str, Both]:
    """Calls that close the loops, where this needs a search, and then compute each result, in both ways."""
    q = motion.positions(robot)
    search = closing(robot, q)
    calls = {} if search is None else {CLOSING: search}
    return calls | {result: both_ways(compile(make(robot)), q, motion.v, motion.a) for result, make in results.items()}


def stabilized(robot: Robot, motion: Motion) -> dict[str, Both]:
    """Results by projection with Baumgarte's stabilisation, from positions and velocities of all joints."""
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
    executable = compile(states.closing_program)
    arguments = (start, np.zeros_like(p), np.tile(states.dependent, (len(p), 1)))
    closed, residuals = executable(*arguments)
    if np.abs(closed - p).max() > _SAME or np.abs(residuals).max() > _SAME:
        raise ModelError("Newton's method leaves the branch that the trajectory is on; take shorter steps")
    return both_ways(executable, *arguments)


def _sought(robot: Robot) -> np.ndarray:
    """The entries of all joint positions that Newton's method finds; all joints have one freedom each."""
    entries = np.zeros(robot.tree.nv, bool)
    entries[robot.embedding.unsolved_entries] = True
    return entries & (robot.states.dependent > 0.0)


def both_ways(executable: Any, *arguments: np.ndarray) -> Both:
    """Calls of an executable for state after state, and for many of them at once, in parts."""
    arrays = [np.ascontiguousarray(array) for array in arguments]
    parts = [np.arange(len(arrays[0]))[k : k + PART] for k in range(0, len(arrays[0]), PART)]

    def one_by_one(states: list[Any]) -> None:
        for state in states:
            executable(*state)

    ones = [partial(one_by_one, list(zip(*(array[part] for array in arrays), strict=True))) for part in parts]
    return ones, [partial(executable, *(array[part] for array in arrays)) for part in parts]


def measured(calls: Mapping[str, Mapping[str, Both]]) -> dict[str, dict[str, np.ndarray]]:
    """The times of one state, one a call and many at once, µs, by way and result, each with what closes the loops.

    All take turns, and the best time of each part of the states counts: machines are shared.
    """
    groups = [group for results in calls.values() for both in results.values() for group in both]
    progress(f"{len(groups)} results, for {CALLS} states each")
    best = iter(best_times([call for group in groups for call in group], SECONDS * PART / CALLS))
    micro = iter([1e6 / CALLS * sum(next(best) for _ in group) for group in groups])
    times = {way: {result: np.array([next(micro), next(micro)]) for result in both} for way, both in calls.items()}
    for by_result in times.values():
        search = by_result.pop(CLOSING, np.zeros(2))
        for result in by_result:
            by_result[result] += search
        by_result[CLOSING] = search
    return times


def _judged(ratio: float, paper: float, why: str) -> str:
    """Judges a gain: half of the paper's, or twice as much, is of the same size on another machine."""
    gain = (ratio - 1.0) / (paper - 1.0)
    if gain > 2.0:
        return "better: formulas gain more here"
    return "agrees" if gain > 0.5 else f"differs: {why}"


def draw_bars(path: Path, figure: Figure, times: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Times as bars, and as lines what inverse dynamics would take with the paper's ratios."""

    def draw(plt: Any) -> None:
        results = [*RESULTS, *figure.further]
        width, at = 0.8 / len(times), results.index("inverse, projected")
        for j, (way, by_result) in enumerate(times.items()):
            places = [i + width * j for i, result in enumerate(results) if result in by_result]
            plt.bar(places, [by_result[result][0] for result in results if result in by_result], width, label=way)
        for ((slow, fast), (ratio, _)), style in zip(figure.ratios.items(), ("k--", "k-.", "k:"), strict=False):
            height = ratio * times[fast]["inverse, projected"][0]
            if slow != BAUMGARTE:  # whose ratio is the same
                plt.plot([at - width, at + 0.8], [height] * 2, style, label=f"paper: {slow} ≈ {ratio:g} × {fast}")
        plt.xticks([i + 0.3 for i in range(len(results))], results, rotation=20)
        plt.ylabel("time of one state, one a call, µs")
        plt.legend(fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))

    with_pyplot(path, draw)
