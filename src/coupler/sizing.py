"""What a motion demands of actuators, for choosing them: forces, speeds, powers and energies. [004, §1]"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coupler.actuation import actuator_positions, actuator_velocities, motor_forces
from coupler.model import ModelError, Robot
from coupler.model.numbers import as_array, numbers
from coupler.model.outputs import check_target, written_whole
from coupler.model.robot import check_robot
from coupler.model.wording import aligned, counted

__all__ = ["ActuatorSizing", "size_actuators"]

_COLUMNS = ("lowest", "highest", "peak force", "RMS force", "peak speed", "RMS speed", "peak power", "RMS power")
_COLUMNS += ("work done", "work taken back", "peak load")
_SHOWN = 12  # the most actuators that have curves


@dataclass(frozen=True, eq=False)
class ActuatorSizing:
    """The motion and forces of each actuator, in rad, rad/s and N m if it rotates, in m, m/s and N if it slides.

    Attributes:
        names: the names of the actuators.
        turning: for each, whether it rotates.
        times: n, s.
        positions, velocities, forces: n × actuators; a force drives if it has the sign of the velocity.
        limits: the largest force of each that its effort limits allow in both directions; infinite without limits.
    """

    names: tuple[str, ...]
    turning: tuple[bool, ...]
    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    forces: np.ndarray
    limits: np.ndarray

    @property
    def powers(self) -> np.ndarray:
        """n × actuators, W: positive where an actuator drives, negative where it brakes."""
        return self.forces * self.velocities

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """For each actuator: lowest and highest position; peak and RMS of force, speed and power; energies.

        The peak power is that of driving or of braking, whichever is larger. Work done is the energy that an actuator
        delivers, work taken back what the motion returns to it, both positive, J. The peak load is the peak force over
        its limit, and 0 without a limit.
        """
        P = self.powers
        columns = np.stack(
            [
                self.positions.min(axis=0),
                self.positions.max(axis=0),
                *(measure(x) for x in (self.forces, self.velocities, P) for measure in (_peak, self._rms)),
                self._integral(np.maximum(P, 0.0)),
                self._integral(np.maximum(-P, 0.0)),
                _peak(self.forces) / self.limits,
            ],
            axis=1,
        )
        return {
            name: dict(zip(_COLUMNS, map(float, row), strict=True))
            for name, row in zip(self.names, columns, strict=True)
        }

    def __str__(self) -> str:
        return aligned(self._rows("{:.4g}"), left=2)

    def __repr__(self) -> str:
        return f"<ActuatorSizing: {counted(len(self.names), 'actuator')} over {self.times[-1] - self.times[0]:g} s>"

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Writes the table of `summary`, a row for each actuator, and returns its path."""
        text = io.StringIO()
        csv.writer(text).writerows(self._rows("{!r}"))
        path = check_target(path)
        with written_whole(path) as file:
            file.write(text.getvalue().encode())
        return path

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Plots forces, speeds and powers over time, and energies, and returns the picture's path.

        Curves of sliding actuators are dashed. Of many actuators, only those with the largest peak powers have curves.
        Needs matplotlib.
        """
        try:
            from matplotlib.figure import Figure  # type: ignore[import-not-found]
        except ImportError:
            raise ModelError("pictures need matplotlib: pip install 'coupler[plot]'") from None
        summary, P = self.summary, self.powers
        order = np.argsort([-values["peak power"] for values in summary.values()], kind="stable")[:_SHOWN]
        figure = Figure((9, 11), layout="constrained")
        *curves, bars = figure.subplots(4, 1)
        for axes, x, label in zip(curves, (self.forces, self.velocities, P), ("force", "speed", "power"), strict=True):
            for i in order:
                axes.plot(self.times, x[:, i], "-" if self.turning[i] else "--", label=self.names[i], linewidth=1.2)
            axes.set_ylabel({"force": "N m or N", "speed": "rad/s or m/s", "power": "W"}[label])
            axes.set_title(label, loc="left", fontsize=10)
            axes.margins(x=0)
        curves[0].legend(fontsize=8, ncols=6)
        curves[-1].set_xlabel("time, s")
        at = np.arange(len(self.names))
        bars.bar(at, [values["work done"] for values in summary.values()], color="C0", label="work done")
        bars.bar(at, [-values["work taken back"] for values in summary.values()], color="C1", label="work taken back")
        bars.set_xticks(at, self.names, fontsize=8)
        bars.set_ylabel("J")
        bars.set_title("energy", loc="left", fontsize=10)
        bars.legend(fontsize=8)
        path = check_target(path)
        with written_whole(path) as file:
            try:
                figure.savefig(file, format=path.suffix.removeprefix(".") or "png", dpi=120)
            except ValueError as error:
                raise ModelError(f"{path}: the picture cannot be written: {error}") from None
        return path

    def _rows(self, number: str) -> list[list[str]]:
        rows = [["actuator", "units", *_COLUMNS]]
        for (name, values), turns in zip(self.summary.items(), self.turning, strict=True):
            rows.append([name, "rad, N m" if turns else "m, N", *(number.format(x) for x in values.values())])
        return rows

    def _integral(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * (np.diff(self.times)[:, None] * (x[1:] + x[:-1])).sum(axis=0)

    def _rms(self, x: np.ndarray) -> np.ndarray:
        return np.sqrt(self._integral(x**2) / (self.times[-1] - self.times[0]))


def size_actuators(
    robot: Robot, times: Any, q: Any, v: Any, a: Any, f_ext: Any = None, *, exact: bool = True
) -> ActuatorSizing:
    """Computes the forces, speeds and powers that a motion demands of a robot's actuators.

        sizing = coupler.size_actuators(robot, t, q, v, a)
        print(sizing)
        sizing.to_csv("actuators.csv")
        sizing.plot("actuators.png")

    Args:
        times: n, s, increasing.
        q, v, a: n × nq, n × nv and n × nv, the motion.
        f_ext: n × bodies × 6, as in `inverse_dynamics`.
        exact: as in `actuator_forces`: whether a floating base, which nothing drives, must need no force.

    Raises:
        ModelError: for a motion that the actuators cannot produce, and for times that do not increase.
    """
    check_robot(robot)
    if robot.given is not None and robot.given.packed.ndim > 1:
        raise ModelError("size_actuators takes one robot: the parameters of this one are a batch")
    t = as_array("times", times)
    t = numbers("times", times, (t.size,) if t.ndim == 1 else (2,))
    if len(t) < 2 or not (np.diff(t) > 0.0).all():
        raise ModelError("times must be two or more, each later than the one before")
    shapes = {"q": (len(t), robot.nq), "v": (len(t), robot.nv), "a": (len(t), robot.nv)}
    q, v, a = (numbers(name, given, shapes[name]) for name, given in (("q", q), ("v", v), ("a", a)))
    forces = motor_forces(robot, q, v, a, f_ext, exact=exact)
    kinds = {joint.name: joint.kind.kind for joint in robot.joints}
    return ActuatorSizing(
        tuple(robot.actuator_names),
        tuple(motor.along.turns if motor.along else kinds[motor.joints[0]] != "prismatic" for motor in robot.actuators),
        t,
        actuator_positions(robot, q),
        actuator_velocities(robot, q, v),
        forces,
        np.array([min(-motor.effort[0], motor.effort[1]) for motor in robot.actuators]),
    )


def _peak(x: np.ndarray) -> np.ndarray:
    return np.abs(x).max(axis=0)
