"""The speed of other methods relative to the cluster algorithms [001, Tables II, III, IV, Fig. 9, 10, 12].

All methods are written for the same compiler and run on the same batch, on one thread. Approximate methods run the
cluster algorithm on a robot with armatures instead of rotors, which is the conventional algorithm on its tree. The
figures show the times themselves, the tables how many per cent longer other methods take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.baselines import (
    lagrange_program,
    projected_osim_program,
    projected_rnea_program,
    projection_program,
    with_armatures,
)
from coupler.algorithms.efpa import inverse_osim_program
from coupler.algorithms.pv_osim import pv_osim_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import compile
from coupler.kinematics import frame_place
from coupler.model import Robot
from coupler.robots import load
from coupler.studies.report import best_times, note, progress, save_table, verdict, with_pyplot

STATES = 1024
ROBOTS = ("geared_chain", "belt_chain", "mini_cheetah", "mit_humanoid", "tello_with_arms", "jvrc1")
FREEDOMS = (12, 12, 18, 24, 24, 38)  # as the paper says
Make = Callable[[Robot], Any]

FEET = {
    "mini_cheetah": [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")],
    "mit_humanoid": [f"{side}_{end}_contact" for side in ("right", "left") for end in ("toe", "heel")],
    "tello_with_arms": [f"{side}-{end}_contact" for side in ("right", "left") for end in ("toe", "heel")],
    "jvrc1": [f"{side}_{end}_contact" for side in ("right", "left") for end in ("toe", "heel")],
}


def at_effectors(make: Callable[..., Any]) -> Make:
    """Makes a program for the frames with which a robot touches its environment: feet, or the tip of a chain."""

    def make_at_effectors(robot: Robot) -> Any:
        name = robot.name.removesuffix("_with_armatures")
        frames = FEET.get(name) or robot.frame_names[-1:]
        return make(robot, [frame_place(robot, frame) for frame in frames])

    return make_at_effectors


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Attributes:
        exact: the name of the cluster algorithm.
        cluster: the program of the cluster algorithm.
        approximate: the name of the same algorithm for a robot with armatures.
        others: programs of other exact methods, by name.
        further: programs of methods that the paper only mentions.
        paper: additional time of each method in the paper, in per cent, in the order of ROBOTS.
    """

    exact: str
    cluster: Make
    approximate: str
    others: Mapping[str, Make]
    paper: Mapping[str, tuple[float, ...]]
    further: Mapping[str, Make] = field(default_factory=dict)


TABLES = {
    "001-table2": Table(
        "C-RNEA",
        inverse_dynamics_program,
        "approximate RNEA",
        {"projected RNEA": projected_rnea_program},
        {
            "approximate RNEA": (-40.3, -36.2, -41.0, -42.0, -59.6, -37.7),
            "projected RNEA": (38.0, 37.8, 36.7, 35.9, 22.4, 36.6),
        },
    ),
    "001-table3": Table(
        "C-ABA",
        forward_dynamics_program,
        "approximate ABA",
        {"projection": projection_program, "Lagrange multipliers": lagrange_program},
        {
            "approximate ABA": (-34.1, -34.6, -35.3, -38.6, -49.4, -38.4),
            "projection": (86.8, 73.5, 21.0, 32.5, 22.2, 87.3),
            "Lagrange multipliers": (133.1, 119.8, 76.3, 106.2, 82.7, 212.8),
        },
    ),
    "001-table4": Table(
        "C-EFPA",
        at_effectors(inverse_osim_program),
        "approximate EFPA",
        {"projected EFPA": at_effectors(projected_osim_program)},
        {
            "approximate EFPA": (-35.7, -52.1, -28.6, -37.4, -51.4, -22.54),
            "projected EFPA": (51.8, 6.3, 19.0, 23.2, 7.80, 107.4),
        },
        {"PV-OSIM on clusters": at_effectors(pv_osim_program)},
    ),
}
FIGURES = {"001-fig9": "001-table2", "001-fig10": "001-table3", "001-fig12": "001-table4"}  # the same, as times


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    table = TABLES[FIGURES.get(name, name)]
    times = {robot: measured(table, load(robot)) for robot in ROBOTS}
    note(
        f"Times are of one state, best of many runs of a batch of {STATES} random states on one thread; all methods "
        "are compiled by the same compiler, which leaves out what is zero by structure."
    )
    (show_times if name in FIGURES else show_additions)(name, folder, table, times)


def measured(table: Table, robot: Robot) -> dict[str, float]:
    """The time of one state by each method, µs, the cluster algorithm first."""
    approximate = with_armatures(robot, [body for body in robot.body_names if "rotor" in body])
    calls = {table.exact: sampled(table.cluster, robot), table.approximate: sampled(table.cluster, approximate)}
    calls |= {method: sampled(make, robot) for method, make in {**table.others, **table.further}.items()}
    progress(f"{robot.name}, {robot.nv} freedoms: {', '.join(calls)}")
    best = best_times([*calls.values()])
    return {method: 1e6 * seconds / STATES for method, seconds in zip(calls, best, strict=True)}


def show_times(name: str, folder: Path, table: Table, times: Mapping[str, Mapping[str, float]]) -> None:
    """Prints and draws the times themselves. [001, Fig. 9, 10, 12]"""
    methods = [*next(iter(times.values()))]
    rows = [[robot, *by_method.values()] for robot, by_method in times.items()]
    save_table(folder / f"{name}.csv", ["robot", *(f"{method}, µs" for method in methods)], rows)
    for method in table.others:
        slower = [robot for robot, by_method in times.items() if by_method[method] > by_method[table.exact]]
        others = [robot for robot in times if robot not in slower]
        outcome = "agrees" if not others else f"differs: not on {', '.join(others)}, whose matrices are sparse"
        measured = f"on {len(slower)} of {len(times)}"
        verdict(f"{table.exact} is faster than {method}", "on all robots", measured, outcome)
    for method in table.further:
        ratio = np.median([by_method[method] / by_method[table.exact] for by_method in times.values()])
        verdict(
            f"time of {method} over {table.exact}, median", "none; said to be possible", f"{ratio:.2f}", _gain(ratio)
        )

    exact = np.array([by_method[table.exact] for by_method in times.values()])
    bars = {method: [by_method[method] for by_method in times.values()] for method in methods}
    marks = {m: (1.0 + 0.01 * np.array(added[: len(times)])) * exact for m, added in table.paper.items()}
    label = f"paper's ratio to {table.exact}"
    _draw_bars(folder / f"{name}.png", [*times], bars, marks, label, "time of one state in a batch, µs")


def show_additions(name: str, folder: Path, table: Table, times: Mapping[str, Mapping[str, float]]) -> None:
    """Prints the additional times of other methods over the cluster algorithm's, %. [001, Tables II, III, IV]"""
    methods = (table.approximate, *table.others, *table.further)
    added = {m: [100 * (by_method[m] / by_method[table.exact] - 1) for by_method in times.values()] for m in methods}
    paper = {m: values[: len(times)] for m, values in table.paper.items()}
    head, rows = ["robot", "freedoms", f"{table.exact}, µs"], []
    for method in methods:
        head += [f"{method}, %", *(["paper, %"] if method in paper else [])]
    for i, robot in enumerate(times):
        row: list[Any] = [robot, FREEDOMS[i], times[robot][table.exact]]
        for method in methods:
            row += [added[method][i], *([paper[method][i]] if method in paper else [])]
        rows.append(row)
    save_table(folder / f"{name}.csv", head, rows)
    for method in methods:
        ours = f"{min(added[method]):+.0f} to {max(added[method]):+.0f} %"
        if method not in paper:
            ratio = 1.0 + 0.01 * float(np.median(added[method]))
            verdict(f"additional time of {method}", "none; said to be possible", ours, _gain(ratio))
            continue
        of_paper = f"{min(paper[method]):+.0f} to {max(paper[method]):+.0f} %"
        verdict(f"additional time of {method}", of_paper, ours, _judged(added[method], paper[method], [*times]))

    _draw_bars(folder / f"{name}.png", [*times], added, paper, "paper", f"additional time relative to {table.exact}, %")


def _draw_bars(
    path: Path,
    robots: Sequence[str],
    bars: Mapping[str, Sequence[float]],
    marks: Mapping[str, Any],
    label: str,
    unit: str,
) -> None:
    """Bars for each robot, side by side by method, with marks on some of them."""

    def draw(plt: Any) -> None:
        width = 0.8 / len(bars)
        for j, (method, values) in enumerate(bars.items()):
            places = np.arange(len(robots)) + width * j
            plt.bar(places, values, width, label=method)
            if method in marks:
                first = method == next(iter(marks))
                plt.plot(places, marks[method], "k_", markersize=12, label=label if first else None)
        plt.xticks(np.arange(len(robots)) + 0.4, robots, rotation=30)
        plt.ylabel(unit)
        plt.legend(fontsize="small")

    with_pyplot(path, draw)


def _judged(added: Sequence[float], paper: Sequence[float], robots: Sequence[str]) -> str:
    """Judges additional times of one method by how the paper's signs and sizes return."""
    ratio = np.median([(1 + 0.01 * ours) / (1 + 0.01 * theirs) for ours, theirs in zip(added, paper, strict=True)])
    if max(paper) < 0:
        return "better: to be exact costs less here" if ratio > 1.1 else "agrees: inexact, and cheaper"
    faster = [robot for robot, ours in zip(robots, added, strict=True) if ours < 0]
    if faster:
        return f"differs: faster on {', '.join(faster)}, where the compiler leaves out more of its zeros"
    if ratio > 1.1:
        return "better: the cluster algorithm gains more here"
    return "agrees" if ratio > 0.9 else "differs: slower as well, by less; the compiler leaves out zeros of H and G"


def _gain(ratio: float) -> str:
    return (
        "better: one sweep less" if ratio < 0.98 else "agrees: about as fast" if ratio < 1.1 else "differs: slower here"
    )


def sampled(make: Make, robot: Robot, states: int = STATES) -> Callable[[], Any]:
    """A function that calls a program with a batch of random closed states."""
    q = np.stack([robot.random_state(seed)[0] for seed in range(16)])
    q = np.tile(q, (-(-states // 16), 1))[:states]
    v, x = np.random.default_rng(0).normal(size=(2, states, robot.nv))
    executable = compile(make(robot))
    arguments = (q, v, x)[: len(executable.program.inputs)]
    return lambda: executable(*arguments)
