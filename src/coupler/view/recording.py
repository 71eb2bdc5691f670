"""A motion to be shown: states over time, with the contacts of a log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from coupler.contact.collision.geometry import Contact
from coupler.contact.collision.proximity import Proximity
from coupler.contact.pairs import Pair, pairs_of
from coupler.forks import cached_property
from coupler.kinematics import frame_pose
from coupler.model import ModelError, Robot
from coupler.simulate import Log
from coupler.view.arrows import metres_per_newton

_NO_FORCE = 1e-12  # N: without gravity, a smaller force is none
_PRESSED = 1e-6  # of the robot's weight: a force below is none
_TRACED = 400  # points of the way of a frame


@dataclass(frozen=True, eq=False)
class Recording:
    """States of a robot over time.

    Attributes:
        robot: the robot.
        times: (T,), ascending, s.
        q: (T, nq).
        forces, points: (T, contacts, 3), N and m; zeros and no contacts where the log has none.
        log: the log that the states come from.
    """

    robot: Robot
    times: np.ndarray
    q: np.ndarray
    forces: np.ndarray
    points: np.ndarray
    log: Log

    @classmethod
    def of(cls, robot: Robot, log: Log) -> Recording:
        """The recording of a log's finite states.

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
        """Rows evenly spaced in time, `per_second` for each second, but at most `most` in all."""
        count = int(np.clip(np.ceil((self.end - self.start) * per_second) + 1, 2, most))
        return np.array([self.row(time) for time in np.linspace(self.start, self.end, count)])

    def pressed(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Points and forces of the contacts that press at a row, (n, 3) each, m and N."""
        forces, points = np.asarray(self.forces[row], float), np.asarray(self.points[row], float)
        weight = self.robot.mass * float(np.linalg.norm(self.robot.gravity))
        strong = np.linalg.norm(forces, axis=1) > max(_PRESSED * weight, _NO_FORCE)
        strong &= np.isfinite(points).all(axis=1)
        return points[strong], forces[strong]

    def cones(self, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Friction cones of the contacts that press at a row: tips, (n, 3), m, axes, (n, 3), and slopes, (n,).

        Axes point to the first body. A log has no normals: they are taken from the nearest contacts of the two shapes.
        """
        points, forces = np.asarray(self.points[row], float), np.asarray(self.forces[row], float)
        pressed = (np.linalg.norm(forces, axis=1) > 0.0) & np.isfinite(points).all(axis=1)
        pressing = [(k, self._pairs.get(_pair_of(self.log.contacts[k]))) for k in np.flatnonzero(pressed)]
        tips = {int(k): pair for k, pair in pressing if pair is not None}
        pairs = list(dict.fromkeys(tips.values()))
        places = Proximity(self.robot, pairs, self.q[row][None])
        touched = {pair: places.contacts(i, 0) for i, pair in enumerate(pairs)}
        axes = [_nearest(touched[pair], points[k]).frame[0] for k, pair in tips.items()]
        return points[list(tips)], np.array(axes).reshape(-1, 3), np.array([pair.friction for pair in tips.values()])

    @cached_property
    def _pairs(self) -> dict[str, Pair]:
        """The pairs that may touch, by name, with coefficients of friction."""
        return {pair.name: pair for pair in pairs_of(self.robot)}

    def force_scale(self, size: float) -> float:
        """The scale of force arrows, m/N, for a robot of this size, m."""
        strongest = float(np.nan_to_num(np.linalg.norm(self.forces, axis=-1)).max(initial=0.0))
        return metres_per_newton(self.robot, size, strongest)

    def traces(self, frames: Iterable[str]) -> dict[str, np.ndarray]:
        """The paths of frames, contact points or bodies, (n, 3) each, m."""
        rows = np.unique(np.linspace(0, len(self.times) - 1, _TRACED).astype(int))
        return {name: frame_pose(self.robot, self.q[rows], name)[:, :3, 3] for name in frames}

    def closure_errors(self, rows: np.ndarray) -> np.ndarray:
        """The error of the worst loop at some rows, (n,), m or rad; empty without loops."""
        errors = list(self.robot.loop_errors(self.q[rows]).values())
        return np.max(errors, axis=0) if errors else np.zeros(0)


def _pair_of(contact: str) -> str:
    """The name of the pair that a contact is of, without its number."""
    return re.sub(r", \d+$", "", contact)


def _nearest(contacts: Iterable[Contact], point: np.ndarray) -> Contact:
    return min(contacts, key=lambda contact: float(np.linalg.norm(contact.point - point)))
