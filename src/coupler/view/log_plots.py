"""The columns of a log over time, one panel under the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.model import ModelError, Robot
from coupler.model.outputs import check_target
from coupler.model.wording import plain_name
from coupler.simulate import Log
from coupler.view.plotting import SMALLEST, new_figure, plot_style, save_figure, thinned
from coupler.view.recording import Recording

_LEGEND = 12  # lines that are named
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#222222", "#999999")


def plot_log(log: Log, path: str | Path | None = None, robot: Robot | None = None) -> Path:
    """Draws a log; see `Log.plot`."""
    path = check_target(f"{plain_name(log.robot)}.png" if path is None else path)
    panels = _panels(log, robot)
    if not len(log) or not panels:
        raise ModelError(f"the log of robot {log.robot!r} has no rows or columns to draw")
    with plot_style():
        figure = new_figure(9.0, 0.7 + 1.65 * len(panels), layout="constrained")
        figure.suptitle(log.robot, x=0.01, ha="left", fontsize=13, fontweight="bold", parse_math=False)
        below = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (label, lines, logarithmic) in zip(below, panels, strict=True):
            _draw(axes, np.asarray(log.times, float), label, lines, logarithmic)
        below[-1].set_xlabel("time (s)")
        save_figure(figure, path, dpi=140)
    return path


def _panels(log: Log, robot: Robot | None) -> list[tuple[str, dict[str, np.ndarray], bool]]:
    """Labels of axes, lines by name, and whether the axis is logarithmic, for all that the log has."""
    panels: list[tuple[str, dict[str, np.ndarray], bool]] = []
    for column, label in (("q", "q (rad or m)"), ("v", "v (rad/s or m/s)"), ("tau", "tau (N m or N)")):
        if _width(log, column):
            names = line_names(log, column, robot)
            panels.append((label, dict(zip(names, getattr(log, column).T, strict=True)), False))
    if {"kinetic", "potential"} <= set(log.columns):
        lines = {"total": log.kinetic + log.potential, "kinetic": log.kinetic, "potential": log.potential}
        panels.append(("energy (J)", lines, False))
    if _width(log, "forces"):
        sizes = np.linalg.norm(np.nan_to_num(log.forces), axis=-1)
        pressed = np.flatnonzero(sizes.max(axis=0, initial=0.0) > 0.0)
        if pressed.size:
            panels.append(("contact force (N)", {log.contacts[k]: sizes[:, k] for k in pressed}, False))
        if "residuals" in log.columns:
            panels.append(("residual (m/s)", {"": np.maximum(log.residuals, SMALLEST)}, True))
    if robot is not None:
        recording = Recording.of(robot, log)
        errors = recording.closure_errors(np.arange(len(recording.times)))
        if errors.size:
            whole = np.interp(log.times, recording.times, np.maximum(errors, SMALLEST))
            panels.append(("loops open by (m or rad)", {"": whole}, True))
    return panels


def line_names(log: Log, column: str, robot: Robot | None) -> list[str]:
    """Names of a column's lines: those of joints, if each has one entry or the robot says which entries are whose."""
    width, names = _width(log, column), list(log.joints)
    if column == "q" and robot is not None:
        sizes = {joint: len(range(robot.nq)[robot.q_slice(joint)]) for joint in robot.position_joints}
        names = [joint if n == 1 else f"{joint}[{k}]" for joint, n in sizes.items() for k in range(n)]
    return names if len(names) == width else [f"{column}[{k}]" for k in range(width)]


def _width(log: Log, column: str) -> int:
    return getattr(log, column).shape[1] if column in log.columns else 0


def _draw(axes: Any, times: np.ndarray, label: str, lines: dict[str, np.ndarray], logarithmic: bool) -> None:
    if logarithmic:
        axes.set_yscale("log")
    for k, (name, line) in enumerate(lines.items()):
        dashes = ("-", "--", ":", "-.")[k // len(_COLOURS) % 4]
        axes.plot(
            *thinned(times, np.asarray(line, float)), dashes, color=_COLOURS[k % len(_COLOURS)], label=name, lw=1.2
        )
    axes.set_ylabel(label)
    if 1 < len(lines) <= _LEGEND:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)
