"""Torque errors when rotors are neglected, or replaced by armatures [001, Fig. 14].

All joints of a leg of the MIT Humanoid follow A sin(2π f t) with A = 0.5 rad and f = 1.5 Hz. The paper gives errors of
what it calls the ankle joint; they are those of our knee joint, whose belt drive is coupled with that of the ankle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.algorithms.baselines import with_armatures, without_rotors
from coupler.dynamics import inverse_dynamics
from coupler.robots import load
from coupler.studies.report import save_table, with_pyplot

__all__ = ["run"]

AMPLITUDE, FREQUENCY, STEP, DURATION = 0.5, 1.5, 1e-3, 2.0  # rad, Hz, s, s
PAPER = {"without rotors": 4.31, "armatures": 1.04}  # N m, root mean square


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    leg = load("mit_humanoid_leg")
    rotors = [body for body in leg.body_names if "rotor" in body]
    robots = {"exact": leg, "armatures": with_armatures(leg, rotors), "without rotors": without_rotors(leg, rotors)}
    t = np.arange(0.0, DURATION, STEP)
    phase, rate = 2 * np.pi * FREQUENCY * t[:, None], 2 * np.pi * FREQUENCY
    q = AMPLITUDE * np.sin(phase) * np.ones(leg.nv)
    v, a = AMPLITUDE * rate * np.cos(phase) * np.ones(leg.nv), -(rate**2) * q
    tau = {method: inverse_dynamics(robot, q, v, a) for method, robot in robots.items()}
    data: dict[str, Any] = {method.replace(" ", "_"): x for method, x in tau.items()}
    np.savez(folder / f"{name}.npz", t=t, **data)
    errors = {method: np.sqrt(((tau[method] - tau["exact"]) ** 2).mean(axis=0)) for method in PAPER}
    rows: list[list[Any]] = []
    for i, joint in enumerate(leg.independent_joints):
        paper = [f"{PAPER[method]:.2f}" if "knee" in joint else "" for method in PAPER]
        largest = np.abs(tau["exact"][:, i]).max()
        rows.append([joint, errors["without rotors"][i], paper[0], errors["armatures"][i], paper[1], largest])
    head = ["RMS error, N m", "without rotors", "paper", "armatures", "paper", "largest torque"]
    save_table(folder / f"{name}.csv", head, rows)

    def draw(plt: Any) -> None:
        knee = next(i for i, joint in enumerate(leg.independent_joints) if "knee" in joint)
        for method, x in tau.items():
            plt.plot(t, x[:, knee], label=method)
        plt.xlabel("time, s")
        plt.ylabel("torque of the knee joint, N m")
        plt.legend()

    with_pyplot(folder / f"{name}.png", draw)
