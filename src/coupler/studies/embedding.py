"""Whether cluster forward dynamics and the mass matrix give the same accelerations [003, Fig. 10].

The paper moves the reduced RH5 Manus along cycloids and finds no difference between C-ABA, there called ABACE, and
H⁻¹ (τ − c), "direct". Here the same is done with bundled robots: Tello with arms, whose gears have closed forms, and
linkages that are closed numerically. Forces come from inverse dynamics, so that both must also give the accelerations
of the cycloid itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.dynamics import bias_force, forward_dynamics, inverse_dynamics
from coupler.inertia import mass_matrix
from coupler.robots import load
from coupler.studies.report import save_table, with_pyplot

__all__ = ["run"]

ROBOTS = ("tello_with_arms", "planar_leg_linkage", "six_bar")
DURATION, STEPS, AMPLITUDE = 2.0, 401, 0.4  # s, number of states, rad or m
SHOWN = 4  # number of joints in the picture


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    rows: list[list[Any]] = []
    curves: dict[str, np.ndarray] = {}
    t = np.linspace(0.0, DURATION, STEPS)
    phase = 2 * np.pi * t[:, None] / DURATION
    for robot_name in ROBOTS:
        robot, rng = load(robot_name), np.random.default_rng(3)
        displacement = AMPLITUDE * rng.uniform(-1.0, 1.0, robot.nv)
        s = (phase - np.sin(phase)) / (2 * np.pi)  # a cycloid from 0 to 1, at rest at both ends
        v = (1 - np.cos(phase)) / DURATION * displacement
        a = 2 * np.pi * np.sin(phase) / DURATION**2 * displacement
        q = robot.integrate(robot.random_state(rng)[0], s * displacement)
        tau = inverse_dynamics(robot, q, v, a)
        recursive = forward_dynamics(robot, q, v, tau)
        direct = np.linalg.solve(mass_matrix(robot, q), (tau - bias_force(robot, q, v))[..., None])[..., 0]
        to_direct, to_cycloid = (np.sqrt(((recursive - other) ** 2).mean(axis=0)).max() for other in (direct, a))
        joints = len(robot.joint_names)
        rows.append(
            [robot_name, f"{robot.nv} of {joints}", np.abs(a).max(), f"{to_direct:.1e}", "0", f"{to_cycloid:.1e}"]
        )
        curves |= {f"{robot_name}_recursive": recursive, f"{robot_name}_direct": direct}
    np.savez(folder / f"{name}.npz", t=t, **curves)  # type: ignore[arg-type]
    head = ["robot", "freedoms of joints", "largest, rad/s²", "RMS to direct", "paper", "RMS to the cycloid"]
    save_table(folder / f"{name}.csv", head, rows)

    def draw(plt: Any) -> None:
        for i in range(SHOWN):
            plt.plot(t, curves[f"{ROBOTS[0]}_direct"][:, -1 - i], "k-", label="direct" if i == 0 else None)
            plt.plot(t, curves[f"{ROBOTS[0]}_recursive"][:, -1 - i], "--", label=f"C-ABA, joint {-1 - i}")
        plt.xlabel("time, s")
        plt.ylabel(f"accelerations of {ROBOTS[0]}, rad/s²")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)
