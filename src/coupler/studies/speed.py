"""The speed of other methods relative to the cluster algorithms [001, Tables II, III, IV].

All methods are written for the same compiler and run on the same batch, on one thread. Approximate methods run the
cluster algorithm on a robot with armatures instead of rotors, which is the conventional algorithm on its tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import compile
from coupler.kinematics import frame_place
from coupler.model import Robot
from coupler.robots import load
from coupler.studies.report import best_times, save_table, with_pyplot

__all__ = ["at_effectors", "run", "sampled"]

STATES = 1024
ROBOTS = ("geared_chain", "belt_chain", "mini_cheetah", "mit_humanoid", "tello", "jvrc1")
Make = Callable[[Robot], Any]

FEET = {
    "mini_cheetah": [f"{leg}_foot_contact" for leg in ("FR", "FL", "HR", "HL")],
    "mit_humanoid": [f"{side}_{end}_contact" for side in ("right", "left") for end in ("toe", "heel")],
    "tello": [f"{side}-{end}_contact" for side in ("right", "left") for end in ("toe", "heel")],
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
        cluster: its program.
        approximate: the name of the same algorithm for a robot with armatures.
        others: programs of other exact methods, by name.
        paper: additional time of each method in the paper, in per cent, in the order of ROBOTS.
    """

    exact: str
    cluster: Make
    approximate: str
    others: Mapping[str, Make]
    paper: Mapping[str, tuple[float, ...]]


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
    ),
}


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    table = TABLES[name]
    methods = (table.approximate, *table.others)
    rows: list[list[Any]] = []
    for i, robot_name in enumerate(ROBOTS):
        robot = load(robot_name)
        approximate = with_armatures(robot, [body for body in robot.body_names if "rotor" in body])
        makes = [
            (table.cluster, robot),
            (table.cluster, approximate),
            *((make, robot) for make in table.others.values()),
        ]
        calls = [sampled(make, model) for make, model in makes]
        print(f"{robot_name}: {len(calls)} programs", flush=True)
        exact, *times = best_times(calls)
        row: list[Any] = [robot_name, f"{exact / STATES * 1e6:.3f} µs"]
        for method, seconds in zip(methods, times, strict=True):
            row += [f"{100 * (seconds / exact - 1):+.0f} %", f"{table.paper[method][i]:+.1f} %"]
        rows.append(row)
    head = ["robot", table.exact]
    for method in methods:
        head += [method, "paper"]
    save_table(folder / f"{name}.csv", head, rows)

    def draw(plt: Any) -> None:
        for j, method in enumerate(methods):
            values = [float(row[2 + 2 * j].rstrip(" %")) for row in rows]
            plt.bar(np.arange(len(ROBOTS)) + 0.25 * j, values, 0.25, label=method)
        plt.xticks(np.arange(len(ROBOTS)) + 0.25, ROBOTS, rotation=30)
        plt.ylabel(f"additional time relative to {table.exact}, %")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)


def sampled(make: Make, robot: Robot, states: int = STATES) -> Callable[[], Any]:
    """A function that calls a program with a batch of random closed states."""
    q = np.stack([robot.random_state(seed)[0] for seed in range(16)])
    q = np.tile(q, (-(-states // 16), 1))[:states]
    v, x = np.random.default_rng(0).normal(size=(2, states, robot.nv))
    executable = compile(make(robot))
    arguments = (q, v, x)[: len(executable.program.inputs)]
    return lambda: executable(*arguments)
