"""A motion to be shown: states over time, with the contacts of a log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from coupler.contact.pairs import FRICTION
from coupler.forks import cached_property
from coupler.kinematics import frame_pose
from coupler.model import ModelError, Plane, Robot
from coupler.simulate import Log
from coupler.view.arrows import metres_per_newton

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
        between = (self.times[1:] + self.times[:-1]) / 2
        return int(np.searchsorted(between, time))

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

    def cones(self, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Friction cones of the contacts with planes that press at a row: tips, (n, 3), m, axes, and slopes, (n,)."""
        axes, slopes = self._friction
        points, forces = np.asarray(self.points[row], float), np.asarray(self.forces[row], float)
        known = np.isfinite(slopes) & (np.linalg.norm(forces, axis=1) > 0.0) & np.isfinite(points).all(axis=1)
        return points[known], axes[known], slopes[known]

    @cached_property
    def _friction(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each contact the normal of the plane that it is with, and its coefficient; NaN if with something else."""
        place, count = self.robot.tree.place, self.points.shape[1]
        shapes = {shape.name or shape.body: shape for shape in self.robot.shapes}
        axes, slopes = np.full((count, 3), np.nan), np.full(count, np.nan)
        for k, name in enumerate(self.log.contacts[:count]):
            first, _, second = re.sub(r", \d+$", "", name).rpartition(" on ")
            plane = shapes.get(second)
            if plane is not None and isinstance(plane.geometry, Plane) and place[plane.body][0] == 0:
                given = [each.friction for each in (plane, shapes.get(first)) if each and each.friction is not None]
                axes[k] = (plane.at @ place[plane.body][1]).E[2]
                slopes[k] = max(given, default=FRICTION)
        return axes, slopes

    def force_scale(self, size: float) -> float:
        """Metres for each newton of the arrows of forces, beside a robot of a size, m."""
        strongest = float(np.nan_to_num(np.linalg.norm(self.forces, axis=-1)).max(initial=0.0))
        return metres_per_newton(self.robot, size, strongest)

    def traces(self, frames: Iterable[str], most: int = 400) -> dict[str, np.ndarray]:
        """The ways of frames, contact points or bodies, (n, 3) each, m."""
        rows = np.unique(np.linspace(0, len(self.times) - 1, most).astype(int))
        return {name: frame_pose(self.robot, self.q[rows], name)[:, :3, 3] for name in frames}

    def closure_errors(self, rows: np.ndarray) -> np.ndarray:
        """How far the worst loop is from closed at rows, (n,), m or rad; empty without loops."""
        errors = list(self.robot.loop_errors(self.q[rows]).values())
        return np.max(errors, axis=0) if errors else np.zeros(0)
