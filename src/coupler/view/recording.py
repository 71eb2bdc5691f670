"""A motion to be shown: states over time, with the contacts of a log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.kinematics import frame_pose
from coupler.model import ModelError, Robot
from coupler.simulate import Log

__all__ = ["Recording"]

_PRESSED = 1e-6  # of the robot's weight: a force below is none


@dataclass(frozen=True, eq=False)
class Recording:
    """States of a robot over time.

    Attributes:
        robot: the robot.
        times: (T,), ascending, s.
        q: (T, nq).
        forces, points: (T, contacts, 3), N and m; zeros and no contacts where the log has none.
        log: the log that it is from.
    """

    robot: Robot
    times: np.ndarray
    q: np.ndarray
    forces: np.ndarray
    points: np.ndarray
    log: Log

    @classmethod
    def of(cls, robot: Robot, log: Log) -> Recording:
        """What of a log can be shown: its finite states.

        Raises:
            ModelError: for a log of another robot, without q, or without finite states.
        """
        if "q" not in log.columns:
            raise ModelError(f"the log of robot {log.robot!r} has no 'q', without which there is nothing to show")
        if log.q.shape[1] != robot.nq or list(log.joints) != robot.independent_joints:
            raise ModelError(f"the log is of robot {log.robot!r}, whose joints are not those of {robot.name!r}")
        rows = np.flatnonzero(np.isfinite(log.q).all(axis=1) & np.isfinite(log.times))
        if not rows.size:
            raise ModelError(f"the log of robot {log.robot!r} has no finite states to show")
        contacts = {"forces", "points"} <= set(log.columns)
        nothing = np.zeros((len(rows), 0, 3))
        forces, points = (log.forces[rows], log.points[rows]) if contacts else (nothing, nothing)
        return cls(robot, np.asarray(log.times[rows], float), np.asarray(log.q[rows], float), forces, points, log)

    @property
    def start(self) -> float:
        return float(self.times[0])

    @property
    def end(self) -> float:
        return float(self.times[-1])

    def row(self, time: float) -> int:
        """The row nearest to a time."""
        k = int(np.searchsorted(self.times, time))
        return min(k, len(self.times) - 1) if k == 0 or k >= len(self.times) else k - (
            time - self.times[k - 1] < self.times[k] - time
        )

    def frames(self, per_second: float, most: int) -> np.ndarray:
        """Rows that follow each other evenly in time, so many for each second, and not more than that at all."""
        count = int(np.clip(np.ceil((self.end - self.start) * per_second) + 1, 2, most))
        return np.array([self.row(time) for time in np.linspace(self.start, self.end, count)])

    def pressed(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Points and forces of the contacts that press at a row, (n, 3) each, m and N."""
        forces, points = np.asarray(self.forces[row], float), np.asarray(self.points[row], float)
        weight = self.robot.mass * float(np.linalg.norm(self.robot.gravity))
        strong = np.linalg.norm(forces, axis=1) > max(_PRESSED * weight, 1e-12)
        strong &= np.isfinite(points).all(axis=1)
        return points[strong], forces[strong]

    def force_scale(self, length: float) -> float:
        """Metres for each newton, so that the robot's weight, or the strongest force without one, has a length, m."""
        weight = self.robot.mass * float(np.linalg.norm(self.robot.gravity))
        strongest = float(np.nan_to_num(np.linalg.norm(self.forces, axis=-1)).max(initial=0.0))
        return length / (weight or strongest or 1.0)

    def traces(self, frames: Iterable[str], most: int = 400) -> dict[str, np.ndarray]:
        """The ways of frames, contact points or bodies, (n, 3) each, m."""
        rows = np.unique(np.linspace(0, len(self.times) - 1, most).astype(int))
        return {name: frame_pose(self.robot, self.q[rows], name)[:, :3, 3] for name in frames}

    def closure_errors(self, rows: np.ndarray) -> np.ndarray:
        """How far the worst loop is from closed at rows, (n,), m or rad; empty without loops."""
        errors = list(self.robot.loop_errors(self.q[rows]).values())
        return np.max(errors, axis=0) if errors else np.zeros(0)


