"""How fast other methods are, against the cluster algorithms [001, Tables II, III].

All methods are written for the same compiler and run on the same batch, on one thread. Approximate methods run the
cluster algorithm on a robot with armatures instead of rotors, which is the conventional algorithm on its tree.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.approximate import with_armatures
from coupler.algorithms.baselines import lagrange_program, projected_rnea_program, projection_program
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.graph import compile
from coupler.model import Robot
from coupler.robots import load
from coupler.studies.report import best_times, save_table, with_pyplot

__all__ = ["run", "sampled"]

STATES = 1024
ROBOTS = ("geared_chain", "belt_chain", "mini_cheetah", "mit_humanoid", "tello", "jvrc1")
Make = Callable[[Robot], Any]
INVERSE: dict[str, Make] = {"projected RNEA": projected_rnea_program}
FORWARD: dict[str, Make] = {"projection": projection_program, "Lagrange multipliers": lagrange_program}
PAPER = {  # per cent of additional time, in the order of ROBOTS
    "approximate RNEA": (-40.3, -36.2, -41.0, -42.0, -59.6, -37.7),
    "projected RNEA": (38.0, 37.8, 36.7, 35.9, 22.4, 36.6),
    "approximate ABA": (-34.1, -34.6, -35.3, -38.6, -49.4, -38.4),
    "projection": (86.8, 73.5, 21.0, 32.5, 22.2, 87.3),
    "Lagrange multipliers": (133.1, 119.8, 76.3, 106.2, 82.7, 212.8),
}


def run(name: str, folder: Path) -> None:
    inverse = name == "001-table2"
    cluster, others = (inverse_dynamics_program, INVERSE) if inverse else (forward_dynamics_program, FORWARD)
    approximate = "approximate RNEA" if inverse else "approximate ABA"
    rows: list[list[Any]] = []
    for i, robot_name in enumerate(ROBOTS):
        robot = load(robot_name)
        light = with_armatures(robot, [body for body in robot.body_names if "rotor" in body])
        makes = [(cluster, robot), (cluster, light), *((make, robot) for make in others.values())]
        calls = [sampled(make, of) for make, of in makes]
        print(f"{robot_name}: {len(calls)} programs", flush=True)
        exact, *times = best_times(calls)
        row: list[Any] = [robot_name, f"{exact / STATES * 1e6:.3f} µs"]
        for method, seconds in zip((approximate, *others), times, strict=True):
            row += [f"{100 * (seconds / exact - 1):+.0f} %", f"{PAPER[method][i]:+.1f} %"]
        rows.append(row)
    head = ["robot", "C-RNEA" if inverse else "C-ABA"]
    for method in (approximate, *others):
        head += [method, "paper"]
    save_table(folder / f"{name}.csv", head, rows)

    def draw(plt: Any) -> None:
        for j, method in enumerate((approximate, *others)):
            values = [float(row[2 + 2 * j].rstrip(" %")) for row in rows]
            plt.bar(np.arange(len(ROBOTS)) + 0.25 * j, values, 0.25, label=method)
        plt.xticks(np.arange(len(ROBOTS)) + 0.25, ROBOTS, rotation=30)
        plt.ylabel(f"time beyond {head[1]}'s, %")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)


def sampled(make: Make, robot: Robot, states: int = STATES) -> Callable[[], Any]:
    """A call of a program with a batch of closed states."""
    q = np.stack([robot.random_state(seed)[0] for seed in range(16)])
    q = np.tile(q, (-(-states // 16), 1))[:states]
    v, x = np.random.default_rng(0).normal(size=(2, states, robot.nv))
    executable = compile(make(robot))
    return lambda: executable(q, v, x)
