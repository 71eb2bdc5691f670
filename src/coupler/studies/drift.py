"""The energy drift of a swinging chain with Euler's method and with a Runge-Kutta method [002, §4.1, Fig. 7].

The paper releases a planar chain of 8 identical bodies, of mass and length 1, hung at one end, from rest in a
horizontal line [002, Fig. 4], and finds errors "of magnitude O(10^6) higher" with Euler's method. Here the bodies are
thin rods, and two further methods are shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.kinematics import kinetic_energy, potential_energy
from coupler.model import Revolute, Robot, RobotBuilder
from coupler.simulate import integrate_motion
from coupler.studies.report import save_table, verdict, with_pyplot

BODIES, MASS, LENGTH = 8, 1.0, 1.0  # number, kg, m
STEP, DURATION = 1e-3, 2.0  # s
METHODS = ("explicit_euler", "rk4", "semi_implicit_euler", "dormand_prince")  # the paper's two come first
PAPER = 1e6  # the errors of Euler's method relative to those of the Runge-Kutta method


def chain(bodies: int = BODIES) -> Robot:
    """Thin rods along x, each hinged about y at the end of the one before, the first at the origin."""
    b = RobotBuilder(f"pendulum_of_{bodies}")
    moment, turn = MASS * LENGTH**2 / 12.0, Revolute(axis=(0, 1, 0))
    for i in range(bodies):
        b.body(f"rod{i}", MASS, (0.5 * LENGTH, 0, 0), (0.0, moment, moment))
        parent, at = (f"rod{i - 1}", (LENGTH, 0, 0)) if i else ("ground", (0, 0, 0))
        b.joint(f"hinge{i}", turn, parent, f"rod{i}", at)
    return b.build()


def energy_errors(robot: Robot, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Times, s, and the error of the total energy relative to the start, J."""
    motion = integrate_motion(robot, np.zeros(robot.nq), np.zeros(robot.nv), DURATION, STEP, method=method)
    energy = kinetic_energy(robot, motion.q, motion.v) + potential_energy(robot, motion.q)
    return motion.times, energy - energy[0]


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    robot = chain()
    runs = {method: energy_errors(robot, method) for method in METHODS}
    t, errors = runs["rk4"][0], {method: error for method, (_, error) in runs.items()}
    np.savez(folder / f"{name}.npz", t=t, **errors)  # type: ignore[arg-type]
    largest = {method: np.abs(error).max() for method, error in errors.items()}
    rows = [
        [method, largest[method], np.abs(error[-1]), largest[method] / largest["rk4"]]
        for method, error in errors.items()
    ]
    head = ["method", "largest energy error, J", f"after {DURATION:g} s, J", "largest, relative to rk4"]
    save_table(folder / f"{name}.csv", head, rows)
    ratio = largest["explicit_euler"] / largest["rk4"]
    outcome = "agrees" if 0.1 * PAPER < ratio < 10.0 * PAPER else "differs: by more than an order of magnitude"
    verdict("energy error of explicit Euler over rk4", f"O(10^{np.log10(PAPER):.0f})", f"{ratio:.1e}", outcome)

    def draw(plt: Any) -> None:
        for method, error in errors.items():
            plt.semilogy(t[1:], np.abs(error[1:]), label=method)
        plt.axhline(PAPER * largest["rk4"], color="k", linestyle=":", label="paper: Euler, O(10^6) times rk4")
        plt.xlabel("time, s")
        plt.ylabel("error of total energy, J")
        plt.legend(fontsize="small", ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))

    with_pyplot(folder / f"{name}.png", draw)
