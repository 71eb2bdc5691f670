"""The quantities of a recording to plot over time: positions, torques, energies, contact forces, errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.kinematics import centre_of_mass
from coupler.view.plotting import SMALLEST
from coupler.view.recording import Recording
from coupler.view.skeleton import View

_MOST_JOINTS = 12  # lines of positions that are told apart


@dataclass(frozen=True, eq=False)
class Quantity:
    """Lines over time that share an axis.

    Attributes:
        name: the quantity's name.
        unit: the quantity's unit.
        lines: by name, (n,) each.
        logarithmic: whether the axis is logarithmic.
    """

    name: str
    unit: str
    lines: dict[str, np.ndarray]
    logarithmic: bool = False


def quantities(recording: Recording, rows: np.ndarray) -> list[Quantity]:
    """All quantities of a recording, at some of its rows."""
    log, robot, up = recording.log, recording.robot, View.of(recording.robot).axes[1]
    finite = np.flatnonzero(np.isfinite(log.q).all(axis=1) & np.isfinite(log.times))[rows]
    quantities = [Quantity("Height", "m", {"centre of mass": centre_of_mass(robot, recording.q[rows]) @ up})]
    joints = _positions(recording, rows)
    if 0 < len(joints) <= _MOST_JOINTS:
        quantities.append(Quantity("Joint positions", "rad or m", joints))
    if recording.forces.shape[1]:
        total = np.nan_to_num(np.asarray(recording.forces[rows], float)).sum(axis=1)
        quantities.append(Quantity("Contact forces", "N", {"vertical": total @ up}))
    if {"kinetic", "potential"} <= set(log.columns):
        kinetic, potential = log.kinetic[finite], log.potential[finite]
        lines = {"total": kinetic + potential, "kinetic": kinetic, "potential": potential}
        quantities.append(Quantity("Energy", "J", lines))
    if "tau" in log.columns and log.tau.shape[1]:
        tau = np.abs(log.tau[finite]).max(axis=1)
        quantities.append(Quantity("Largest force at a joint", "N m or N", {"largest": tau}))
    errors = recording.closure_errors(rows)
    if errors.size:
        quantities.append(Quantity("Loops open by", "m or rad", {"largest": np.maximum(errors, SMALLEST)}, True))
    if "residuals" in log.columns and recording.forces.shape[1]:
        quantities.append(Quantity("Contact residual", "m/s", {"": np.maximum(log.residuals[finite], SMALLEST)}, True))
    return quantities


def _positions(recording: Recording, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The positions of independent joints with one freedom, by name, (n,) each."""
    robot = recording.robot
    single = {joint.name for joint in robot.joints if joint.kind.nq == joint.kind.nv == 1}
    return {
        name: recording.q[rows][:, robot.q_slice(name)][:, 0] for name in robot.independent_joints if name in single
    }
