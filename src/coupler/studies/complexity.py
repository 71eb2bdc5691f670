"""Complexity in the length of loops and in the number of end effectors [001, §VI to §VIII].

The paper gives O(N_C l³) for C-ABA with N_C clusters of at most l bodies, and O(N_C l³ + N_ee d + N_ee²) for C-EFPA
with N_ee end effectors on a tree of depth d. Operations of the compiled programs are counted, which are the same on
every machine, beside the time of one state.
"""

from __future__ import annotations

from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.efpa import inverse_osim_program
from coupler.algorithms.pv_osim import pv_osim_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.kinematics import frame_place
from coupler.model import Revolute, Robot, RobotBuilder
from coupler.robots import load
from coupler.studies.report import best_times, full, note, progress, save_table, verdict, with_pyplot
from coupler.studies.speed import sampled

LOOPS, LONGER = (4, 6, 8, 12, 16, 24), (32,)  # bodies of a loop; more with --full
EFFECTORS, LINKS = (1, 2, 4, 8, 16), 24
STATES, SECONDS = 64, 0.2


def ring(bodies: int) -> Robot:
    """A planar ring of rods, of which the first and the last are hinged to the ground."""
    b, turn = RobotBuilder(f"ring_of_{bodies}"), Revolute(axis=(0, 0, 1))
    angle = 2.0 * pi / (bodies + 1)  # with the ground a regular polygon of one side more
    for i in range(bodies):
        b.body(f"rod{i}", 1.0, (0.5, 0.05, 0), (0.01, 0.1, 0.1))
        b.joint(f"hinge{i}", turn, f"rod{i - 1}" if i else "ground", f"rod{i}", (1.0 if i else 0.0, 0, 0), start=angle)
    b.loop("closing", turn, f"rod{bodies - 1}", "ground", (1.0, 0, 0), _end(bodies, angle))
    return b.build()


def _end(bodies: int, angle: float) -> tuple[float, float, float]:
    """The end of the last rod of a regular polygon."""
    turns = [angle * (i + 1) for i in range(bodies)]
    return sum(cos(x) for x in turns), sum(sin(x) for x in turns), 0.0


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    note(f"Operations are counted. Times are of one state, best of many runs of a batch of {STATES} on one thread.")
    loops, effectors = of_loops(), of_effectors()
    save_table(folder / f"{name}.csv", ["case", "count", "algorithm", "operations", "µs"], [*loops, *effectors])
    for algorithm, paper in (("C-RNEA", "at most 3"), ("C-ABA", "3")):
        n, counts = _series(loops, algorithm)
        power = float(np.log(counts[-1] / counts[-3]) / np.log(n[-1] / n[-3]))
        outcome = "agrees" if power < 3.3 else "differs: steeper"
        if algorithm == "C-ABA" and power < 2.5:
            outcome = "better: below the cube, since only D and what solves the loop are full"
        verdict(
            f"{algorithm}: power of growth with the bodies of a loop, {n[-3]} to {n[-1]}",
            paper,
            f"{power:.2f}",
            outcome,
        )
    for algorithm, paper in (("C-EFPA", 2.0), ("PV-OSIM on clusters", 2.0)):
        n, counts = _series(effectors, algorithm)
        added = np.diff(counts)
        power = float(np.log(added[-1] / added[-2]) / np.log(2.0))  # doublings: of what is added, that of the last term
        outcome = "agrees" if power <= 2.2 else "differs: steeper"
        verdict(
            f"{algorithm}: power of growth with the number of end effectors",
            f"at most {paper:g}",
            f"{power:.2f}",
            outcome,
        )
    many = {algorithm: _series(effectors, algorithm)[1][-1] for algorithm in ("C-EFPA", "PV-OSIM on clusters")}
    ratio = many["PV-OSIM on clusters"] / many["C-EFPA"]
    outcome = "agrees: C-EFPA multiplies pairs once, PV-OSIM in each cluster that carries both"
    if ratio < 1.0:
        outcome = "better: with a sweep less PV-OSIM is ahead here still"
    verdict(f"operations of PV-OSIM over C-EFPA, {EFFECTORS[-1]} end effectors", "not given", f"{ratio:.2f}", outcome)

    def draw(plt: Any) -> None:
        _, panels = plt.subplots(1, 2, figsize=(13, 5))
        for panel, rows, what, power in (
            (panels[0], loops, "bodies of a loop", 3),
            (panels[1], effectors, "end effectors", 2),
        ):
            series = {algorithm: _series(rows, algorithm) for algorithm in dict.fromkeys(row[2] for row in rows)}
            for algorithm, (n, counts) in series.items():
                panel.loglog(n, counts, "o-", label=algorithm)
            n, counts = next(reversed(series.values()))
            ends = np.array(n[-2:], float)
            panel.loglog(ends, counts[-1] * (ends / ends[-1]) ** power, "k:", label=f"paper: power {power}")
            panel.set_xticks(n, map(str, n))
            panel.minorticks_off()
            panel.set_xlabel(what)
            panel.set_ylabel("operations")
            panel.legend(fontsize="small")

    with_pyplot(folder / f"{name}.png", draw)


def of_loops() -> list[list[Any]]:
    """Operations and times of rings."""
    rows: list[list[Any]] = []
    for bodies in (*LOOPS, *(LONGER if full() else ())):
        progress(f"a loop of {bodies} bodies")
        rows += _measured(
            "loop", bodies, ring(bodies), {"C-RNEA": inverse_dynamics_program, "C-ABA": forward_dynamics_program}
        )
    return rows


def of_effectors() -> list[list[Any]]:
    """Operations and times of a chain with frames on its last links."""
    robot, rows = load("geared_chain", links=LINKS), list[list[Any]]()
    for count in EFFECTORS:
        progress(f"{count} end effectors")
        frames = [frame_place(robot, frame) for frame in robot.frame_names[-count:]]
        programs = {"C-EFPA": inverse_osim_program, "PV-OSIM on clusters": pv_osim_program}
        makes = {name: (lambda robot, make=make, frames=frames: make(robot, frames)) for name, make in programs.items()}
        rows += _measured("effectors", count, robot, makes)
    return rows


def _measured(case: str, count: int, robot: Robot, makes: dict[str, Any]) -> list[list[Any]]:
    times = best_times([sampled(make, robot, STATES) for make in makes.values()], SECONDS)
    counted = {name: make(robot).operations().total() for name, make in makes.items()}
    return [[case, count, name, counted[name], 1e6 * t / STATES] for name, t in zip(makes, times, strict=True)]


def _series(rows: list[list[Any]], algorithm: str) -> tuple[list[int], list[float]]:
    rows = [row for row in rows if row[2] == algorithm]
    return [row[1] for row in rows], [float(row[3]) for row in rows]
