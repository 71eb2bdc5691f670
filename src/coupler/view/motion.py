"""The picture of a motion: a robot at instants of a run, and what happened meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.kinematics import centre_of_mass
from coupler.model import ModelError, Robot
from coupler.model.outputs import check_target
from coupler.simulate.logs import Log
from coupler.view.plotting import POINTS, SMALLEST, new_figure, plot_style, save_figure, thinned
from coupler.view.skeleton import View
from coupler.view.stick_figures import FORCE, Strip, newtons

# From the palette of Okabe and Ito, which everybody can tell apart; lines differ in their dashes, too.
_BLACK, _BLUE, _ORANGE, _GREEN, _PURPLE, _GREY = "#222222", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#777777"

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 11.0, 0.95, 0.25, 0.85, 0.5  # inches, the page's width and its margins
_PANEL, _ABOVE, _BELOW = 1.1, 0.33, 0.42  # inches, a panel's height, the space above it, and that below the figures

_LOWEST_TOP = 1e-14  # the error axis reaches at least this far, so that pure rounding does not fill it
_NOTE = 110  # longer notes are cut off, characters


def plot_motion(robot: Robot, log: Log, path: str | Path, *, title: str | None = None) -> Path:
    """Draws how a robot moved in a run: stick figures over time, and below them heights, forces and energies.

    Figures stand above their instants on the time axis. Arrows are contact forces.

    Args:
        robot: the robot that moved.
        log: the log of the run.
        path: the picture to write; its suffix selects the format, ".png" or another one that matplotlib knows.
        title: the heading; the robot's name by default.

    Returns:
        The path.

    Raises:
        ModelError: without matplotlib, for a log of another robot or without finite states, and for a path that cannot
            be written to.
    """
    path = check_target(path)
    if log.q.shape[1] != robot.nq or list(log.joints) != robot.independent_joints:
        raise ModelError(f"the log is of robot {log.robot!r}, whose joints are not those of {robot.name!r}")
    rows = np.flatnonzero(np.isfinite(np.column_stack([log.q, log.times, log.potential])).all(axis=1))
    if not rows.size:
        raise ModelError(f"the log of robot {log.robot!r} has no finite states to draw")
    with plot_style():
        save_figure(_page(robot, log, rows, robot.name if title is None else title), path, dpi=160)
    return path


def _page(robot: Robot, log: Log, rows: np.ndarray, title: str) -> Any:
    """The whole picture: figures above, panels below, one under the other with the same time axis."""
    width, label = _WIDTH - _LEFT - _RIGHT, (-0.64 / (_WIDTH - _LEFT - _RIGHT), 0.5)
    strip, panels = Strip(robot, log, rows, width), _Panels(robot, log, rows)
    height = _TOP + strip.height + _BELOW + len(panels.drawn) * (_ABOVE + _PANEL) + _BOTTOM
    figure = new_figure(_WIDTH, height)
    figure.text(_LEFT / _WIDTH, 1 - 0.32 / height, title, fontsize=14, fontweight="bold", parse_math=False)
    duration = f"{log.times[rows[-1]] - log.times[rows[0]]:.3g} s in steps of {1e3 * log.step:.3g} ms"
    figure.text(_LEFT / _WIDTH, 1 - 0.55 / height, duration, color=_GREY)
    if log.note:
        note = " ".join(f"ended early: {log.note}".split())
        note = note if len(note) <= _NOTE else f"{note[: _NOTE - 1]}…"
        figure.text(1 - _RIGHT / _WIDTH, 1 - 0.55 / height, note, color=FORCE, ha="right", parse_math=False)
    top = height - _TOP - strip.height
    axes = figure.add_axes((_LEFT / _WIDTH, top / height, width / _WIDTH, strip.height / height))
    strip.draw(axes)
    axes.yaxis.set_label_coords(*label)
    top -= _BELOW
    slot = np.ptp(strip.times) / (len(strip.times) - 1) if len(strip.times) > 1 else 1.0
    for draw in panels.drawn:
        top -= _ABOVE + _PANEL
        axes = figure.add_axes((_LEFT / _WIDTH, top / height, width / _WIDTH, _PANEL / height))
        axes.set_xlim(strip.times[0] - slot / 2, strip.times[-1] + slot / 2)
        for time in strip.times:
            axes.axvline(time, color="#E4E4E4", linewidth=0.8, zorder=0)
        draw(axes)
        last = draw == panels.drawn[-1]
        axes.tick_params(axis="x", labelbottom=last)
        axes.yaxis.set_label_coords(*label)
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=3, borderaxespad=0.0, handlelength=1.8)
        if last:
            axes.set_xlabel("time (s)")
    return figure


class _Panels:
    """Plots of heights, forces, energies and errors over time.

    Attributes:
        drawn: the functions that draw a panel on given axes, one for each quantity that the log contains.
    """

    def __init__(self, robot: Robot, log: Log, rows: np.ndarray) -> None:
        self._robot, self._log, self._rows = robot, log, rows
        self._view = View.of(robot)
        self._loops = bool(robot.embedding.closure.loops)
        self.drawn = [self.heights]
        if log.contacts:
            self.drawn.append(self.forces)
        self.drawn.append(self.energies)
        if log.contacts or self._loops:
            self.drawn.append(self.errors)

    def heights(self, axes: Any) -> None:
        up, q = self._view.axes[1], self._log.q[self._rows]
        self._line(axes, centre_of_mass(self._robot, q) @ up, "centre of mass", _BLUE)
        base = next((joint for joint in self._robot.joints if joint.kind.floats), None)
        if base and base.name in self._robot.position_joints:
            position = q[:, self._robot.q_slice(base.name)][:, :3] @ base.placement.E
            self._line(axes, (position + base.placement.r) @ up, f"{base.child}", _ORANGE, "--")
        axes.set_ylabel("height (m)")

    def forces(self, axes: Any) -> None:
        total = np.nan_to_num(self._log.forces[self._rows].sum(axis=1) @ self._view.axes[1])
        weight = self._robot.mass * float(np.linalg.norm(self._robot.gravity))
        peak, limit = float(total.max()), max(1.4 * float(np.percentile(total, 97)), 2.5 * weight)
        cut = peak > 1.5 * limit  # a single impact would flatten everything else
        label = f"vertical contact forces{f' (highest: {newtons(peak)})' if cut else ''}"
        self._line(axes, total, label, FORCE)
        axes.axhline(weight, color=_BLACK, linewidth=0.9, linestyle="--", label=f"weight ({newtons(weight)})")
        if cut:
            axes.set_ylim(-0.04 * limit, limit)
        axes.set_ylabel("force (N)")

    def energies(self, axes: Any) -> None:
        kinetic, potential = (x[self._rows] for x in (self._log.kinetic, self._log.potential))
        potential = potential - potential.min()
        self._line(axes, kinetic + potential, "total", _BLACK, width=0.9)
        self._line(axes, potential, "potential, from its lowest", _BLUE, "--")
        self._line(axes, kinetic, "kinetic", _ORANGE)
        axes.set_ylabel("energy (J)")

    def errors(self, axes: Any) -> None:
        axes.set_yscale("log")
        if self._log.contacts:
            residuals = np.maximum(self._log.residuals[self._rows], SMALLEST)
            self._line(axes, residuals, "contact residual (m/s)", _PURPLE)
        if self._loops:
            sampled = self._rows[np.unique(np.linspace(0, len(self._rows) - 1, POINTS).astype(int))]
            errors = self._robot.loop_errors(self._log.q[sampled]).values()
            largest = np.maximum(np.max(list(errors), axis=0), SMALLEST)
            axes.plot(self._log.times[sampled], largest, color=_GREEN, linewidth=0.9, label="loop errors (m or rad)")
        axes.set_ylim(0.5 * SMALLEST, max(axes.get_ylim()[1], _LOWEST_TOP))
        axes.set_ylabel("error")

    def _line(
        self, axes: Any, values: np.ndarray, label: str, colour: str, dashes: str = "-", width: float = 1.4
    ) -> None:
        t, y = thinned(self._log.times[self._rows], values)
        axes.plot(t, y, color=colour, linestyle=dashes, linewidth=width, label=label)
