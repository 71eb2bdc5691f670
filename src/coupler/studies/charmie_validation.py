"""CHARMIE's claw and base along the paper's motion [004, Fig. 12, 13].

The paper compares its recursion with a commercial program. Here the same curves are computed by coupler, loops and all,
and by the paper's recursion, in NumPy and with its misprints corrected. The paper prints no numbers of either curve.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.forces import joint_forces
from coupler.kinematics import frame_pose
from coupler.studies.charmie_chain import charmie_chain
from coupler.studies.charmie_motion import Motion, by_body, paper_motion, robot_by_actuators
from coupler.studies.report import save_table, verdict, with_pyplot

STATES = 1001
COMPARED = 51  # of these, by the paper's recursion
POINT = "12a.D"
AGREES = 1e-10  # relative to the largest number


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    motion = paper_motion(STATES)
    at = np.linspace(0, STATES - 1, COMPARED).round().astype(int)
    ours, theirs, units = (_claw if name == "004-fig12" else _base)(motion, at)
    gap = float(np.abs(ours[at] - theirs).max() / np.abs(theirs).max())
    np.savez(folder / f"{name}.npz", t=motion.t, ours=ours, compared=at, paper=theirs)
    shown = np.linspace(0, STATES - 1, 11).round().astype(int)
    head = ["time, s", *(f"{axis}, {units}" for axis in "xyz")]
    save_table(folder / f"{name}.csv", head, [[f"{motion.t[k]:.2f}", *ours[k]] for k in shown])
    what = f"position of {POINT} in the world" if name == "004-fig12" else "force of body 2 on 3, in the axes of 3"
    outcome = "agrees" if gap < AGREES else "differs"
    measured = f"{gap:.0e} of the largest number between coupler and the paper's recursion, at {COMPARED} instants"
    verdict(what, "two programs, curves that overlap", measured, outcome)
    if name == "004-fig12":
        speed = float(np.abs(motion.v[-1]).max())
        verdict("end of the motion", '"fully stopped"', f"actuators at {speed:.0e} rad/s or m/s", "agrees")
    else:
        mean = float(np.trapezoid(ours[:, 2], motion.t) / motion.t[-1])  # of what starts and ends at rest: its weight
        weight = 9.81 * robot_by_actuators().mass
        measured = f"{mean:.1f} N on average, {weight:.1f} N of weight"
        verdict("vertical force", "gravity is in no equation", measured, "differs: without gravity, it would be zero")

    def draw(plt: Any) -> None:
        _, axes = plt.subplots(3, 1, sharex=True, figsize=(7, 7))
        for i, axis in enumerate(axes):
            axis.plot(motion.t, ours[:, i], "C0-", label="coupler")
            axis.plot(motion.t[at], theirs[:, i], "C1o", markersize=3, label="the paper's recursion")
            axis.set_ylabel(head[1 + i])
        axes[0].legend()
        axes[0].set_title(what)
        axes[-1].set_xlabel("time, s")

    with_pyplot(folder / f"{name}.png", draw)


def _claw(motion: Motion, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    robot, chain = robot_by_actuators(), charmie_chain()
    ours = frame_pose(robot, motion.q, POINT)[:, :3, 3]
    point = robot.bodies["12a"].frames[POINT].r
    theirs = []
    for k in at:
        R, origin = chain.placed(by_body(robot, motion.q[k], motion.v[k], motion.a[k])[0])["12a"]
        theirs.append(origin + R @ point)
    return ours, np.array(theirs), "m"


def _base(motion: Motion, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    robot, chain = robot_by_actuators(), charmie_chain()
    ours = joint_forces(robot, motion.q, motion.v, motion.a).joints["3"][:, 3:]
    theirs = [chain.loads(*by_body(robot, motion.q[k], motion.v[k], motion.a[k])).force["3"] for k in at]
    return ours, np.array(theirs), "N"
