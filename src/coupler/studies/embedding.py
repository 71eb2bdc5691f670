"""Whether cluster forward dynamics and the mass matrix give the same accelerations [003, Fig. 10].

The paper moves the reduced RH5 Manus along cycloids and finds no difference between C-ABA, there called ABACE, and
H⁻¹ (τ − c), "direct". Here the same is done with loops that are closed numerically, in part, and analytically. Forces
come from inverse dynamics, so that both must also give the accelerations of the cycloid itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.dynamics import bias_force, forward_dynamics, inverse_dynamics
from coupler.inertia import mass_matrix
from coupler.studies.report import save_table, verdict, with_pyplot
from coupler.studies.rh5 import WAYS, cycloids, numerical_rows, reduced

DURATION, STATES = 2.0, 401  # s, number of states
SHOWN = ("BodyPitch", "BodyRoll", "ALShoulder2", "ALElbow")  # joints in the picture
ZERO = 1e-11  # rad/s²: below this, a difference is rounding. The wrists' inertias are a millionth of the torso's.


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    rows: list[list[Any]] = []
    curves: dict[str, np.ndarray] = {}
    robots = {way: reduced(way) for way in WAYS}
    motion = cycloids(robots[WAYS[0]], DURATION, STATES)
    for way, robot in robots.items():
        q = motion.positions(robot)
        tau = inverse_dynamics(robot, q, motion.v, motion.a)
        recursive = forward_dynamics(robot, q, motion.v, tau)
        H, c = mass_matrix(robot, q), bias_force(robot, q, motion.v)
        direct = np.linalg.solve(H, (tau - c)[..., None])[..., 0]
        to_direct, to_cycloid = (np.sqrt(((recursive - x) ** 2).mean(axis=0)).max() for x in (direct, motion.a))
        largest = np.abs(motion.a).max()
        rows.append([way, str(numerical_rows(robot)), largest, f"{to_direct:.1e}", "0", f"{to_cycloid:.1e}"])
        curves |= {f"{way}_recursive": recursive, f"{way}_direct": direct}
        print(f"{way}: done", flush=True)
    np.savez(folder / f"{name}.npz", t=motion.t, **curves)  # type: ignore[arg-type]
    head = ["loops closed", "numerical rows", "largest, rad/s²", "RMS to direct", "paper", "RMS to the cycloid"]
    save_table(folder / f"{name}.csv", head, rows)
    for row in rows:
        outcome = "agrees: rounding" if float(row[3]) < ZERO else f"differs: more than {ZERO:g} rad/s²"
        verdict(f"C-ABA against direct, {row[0]}, RMS in rad/s²", row[4], row[3], outcome)

    def draw(plt: Any) -> None:
        for joint in SHOWN:
            i = robots[WAYS[0]].v_slice(joint).start
            plt.plot(motion.t, curves[f"{WAYS[0]}_direct"][:, i], "k-", label="direct" if joint == SHOWN[0] else None)
            plt.plot(motion.t, curves[f"{WAYS[0]}_recursive"][:, i], "--", label=f"C-ABA, {joint}")
        plt.xlabel("time, s")
        plt.ylabel("accelerations of RH5 Manus, rad/s²")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)
