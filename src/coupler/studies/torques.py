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
from coupler.studies.report import save_table, verdict, with_pyplot

AMPLITUDE, FREQUENCY, STEP, DURATION = 0.5, 1.5, 1e-3, 2.0  # rad, Hz, s, s
PAPER = {"without rotors": 4.31, "armatures": 1.04}  # N m, root mean square
PER_CENT = {"without rotors": 39.2, "armatures": 9.5}  # of the largest torque


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
    largest = np.abs(tau["exact"]).max(axis=0)
    rows: list[list[Any]] = []
    for i, joint in enumerate(leg.independent_joints):
        paper = [f"{PAPER[method]:.2f}" if "knee" in joint else "" for method in PAPER]
        rows.append([joint, errors["without rotors"][i], paper[0], errors["armatures"][i], paper[1], largest[i]])
        rows[-1] += [100.0 * errors[method][i] / largest[i] for method in PAPER]
    head = ["RMS error, N m", "without rotors", "paper", "armatures", "paper", "largest torque"]
    save_table(folder / f"{name}.csv", [*head, "without rotors, % of it", "armatures, % of it"], rows)
    knee = next(i for i, joint in enumerate(leg.independent_joints) if "knee" in joint)
    for method, theirs in PAPER.items():
        ours = errors[method][knee]
        outcome = "agrees" if abs(ours - theirs) < 0.005 else "differs: the leg's numbers or its motion are others"
        verdict(
            f"RMS torque error {_of(method)}, N m", f"{theirs:.2f} (said of the ankle)", f"{ours:.2f} (knee)", outcome
        )
    for method, theirs in PER_CENT.items():
        ours, whose = 100.0 * errors[method][knee] / largest[knee], 100.0 * PAPER[method] / theirs
        close = "agrees" if abs(ours / theirs - 1.0) < 0.05 else "differs"
        outcome = f"{close}: the largest torque is {largest[knee]:.1f} N m here, {whose:.1f} N m there"
        verdict(f"error {_of(method)}, % of the largest torque", f"{theirs:.1f}", f"{ours:.1f}", outcome)

    def draw(plt: Any) -> None:
        for method, x in tau.items():
            error = f", RMS error {errors[method][knee]:.2f} N m (paper {PAPER[method]:.2f})" if method in PAPER else ""
            plt.plot(t, x[:, knee], label=method + error)
        plt.xlabel("time, s")
        plt.ylabel("torque of the knee joint, N m")
        plt.legend(fontsize="small", ncols=1, loc="lower center", bbox_to_anchor=(0.5, 1.0))

    with_pyplot(folder / f"{name}.png", draw)


def _of(method: str) -> str:
    return method if method.startswith("without") else f"with {method}"
