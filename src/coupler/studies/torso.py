"""What closing the torso numerically costs in accuracy [003, Table II].

The paper moves the independent joints of the reduced RH5 Manus along cycloids, closes its torso numerically and its
elbows analytically, and compares the torso's two actuators with those of the robot that is closed analytically
throughout. Duration and ends of its cycloids are not given: here they take 2 s between random poses within limits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.studies.report import save_table, verdict, with_pyplot
from coupler.studies.rh5 import actuation, cycloids, numerical_rows, reduced

DURATION, STATES = 2.0, 2001  # s, number of states
ACTUATORS = {"BodyActL": "torso left", "BodyActR": "torso right"}  # joints 5 and 8
PAPER = {  # root mean square of the difference, left and right
    "position": (2.36e-8, 3.77e-8),
    "velocity": (1.14e-9, 1.11e-9),
    "acceleration": (2.47e-11, 4.64e-11),
    "force": (1.15e-4, 1.13e-4),
}
UNITS = {"position": "m", "velocity": "m/s", "acceleration": "m/s²", "force": "N"}
ROWS = (6, 0)  # that are closed numerically
WANTED = 1e-10


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    robots = {way: reduced(way) for way in ("hybrid", "analytical")}
    counts = tuple(numerical_rows(robot) for robot in robots.values())
    compared = "agrees" if counts == ROWS else "differs: this compares other robots than the paper's"
    verdict(
        "rows that are closed numerically, hybrid and analytical", "6 and 0", f"{counts[0]} and {counts[1]}", compared
    )
    motion = cycloids(robots["hybrid"], DURATION, STATES)
    seen = {way: actuation(robot, motion) for way, robot in robots.items()}
    columns = [robots["hybrid"].actuated_joints.index(joint) for joint in ACTUATORS]
    curves: dict[str, np.ndarray] = {}
    rows: list[list[Any]] = []
    for quantity, paper in PAPER.items():
        hybrid, analytical = (getattr(result, quantity)[:, columns] for result in seen.values())
        curves |= {f"{quantity}_hybrid": hybrid, f"{quantity}_analytical": analytical}
        error = np.sqrt(((hybrid - analytical) ** 2).mean(axis=0))
        largest = np.abs(analytical).max()
        rows.append([f"{quantity}, {UNITS[quantity]}"])
        for ours, theirs in zip(error, paper, strict=True):
            rows[-1] += [f"{ours:.2e}", f"{theirs:.2e}"]
        rows[-1].append(largest)
    np.savez(folder / f"{name}.npz", t=motion.t, **curves)  # type: ignore[arg-type]
    head = ["RMS difference"]
    for actuator in ACTUATORS.values():
        head += [actuator, "paper"]
    save_table(folder / f"{name}.csv", [*head, "largest value"], rows)
    for row, quantity in zip(rows, PAPER, strict=True):
        worst = max(float(row[1]), float(row[3]))
        of_paper = f"{PAPER[quantity][0]:.2e} and {PAPER[quantity][1]:.2e}"
        verdict(row[0], of_paper, f"{row[1]} and {row[3]}", _judged(worst, min(PAPER[quantity])))

    def draw(plt: Any) -> None:
        _, axes = plt.subplots(len(PAPER), 1, sharex=True, figsize=(7, 9))
        for axis, (quantity, paper) in zip(axes, PAPER.items(), strict=True):
            error = np.abs(curves[f"{quantity}_hybrid"] - curves[f"{quantity}_analytical"])
            for ours, theirs, actuator, colour in zip(error.T, paper, ACTUATORS.values(), ("C0", "C1"), strict=True):
                axis.semilogy(motion.t, np.maximum(ours, 1e-18), colour, label=actuator)
                axis.axhline(theirs, color=colour, linestyle="--", label=f"{actuator}, paper's RMS")
            axis.set_ylabel(f"{quantity}, {UNITS[quantity]}")
        axes[0].legend(fontsize="small")
        axes[-1].set_xlabel("time, s")
        axes[0].set_title("differences of the torso's actuators, numerical against analytical")

    with_pyplot(folder / f"{name}.png", draw)


def _judged(ours: float, paper: float) -> str:
    if ours > WANTED:
        return f"differs: more than {WANTED:g}"
    if ours < paper:
        return "better: the loop is closed to rounding" if ours > 0 else "better: no difference at all"
    return f"agrees: below {WANTED:g}, to rounding"
