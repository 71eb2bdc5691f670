"""Moving a robot by its independent coordinates: every other joint follows through the closure of its loops.

Poses are followed in short steps from where the robot is, so that it stays on its branch: an elbow that is up stays up.
Where the way ends, at a dead point or at the end of the reach, the robot stays there, and a message says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers
from coupler.rotation import quaternion_exp, quaternion_log

_STEP = 0.08  # rad, or parts of the robot's size: how far a step goes
_ARRIVED = 1e-6  # rad, m or parts of a quaternion: as close as a user wants to be
_MOST = 80  # steps


@dataclass(frozen=True)
class Coordinate:
    """A coordinate that a user may set.

    Attributes:
        joint: the name of its joint.
        label: its label: the name of the joint, or of one of its coordinates.
        low, high: the range of its slider, rad or m.
        limited: whether these are limits of the joint.
        angular: whether it is an angle, rad, rather than a distance, m.
    """

    joint: str
    label: str
    low: float
    high: float
    limited: bool
    angular: bool


class Posing:
    """A robot in one configuration, which may be changed coordinate by coordinate.

    Attributes:
        robot: the robot.
        coordinates: the coordinates that may be set, in order.
        q: (nq,), the closed configuration that it is in.
        message: why the last move ended early, or what is wrong where it ended; empty if nothing is.
    """

    def __init__(self, robot: Robot, q: Any = None, size: float = 1.0) -> None:
        """Starts in a configuration, neutral if none is given.

        Args:
            q: (nq,), closed.
            size: the robot's size, m: the range of distances without limits.

        Raises:
            ModelError: for a q that is not closed.
        """
        self.robot, self._size = robot, size
        self.q = robot.neutral() if q is None else numbers("q", q, (robot.nq,))
        robot.check_closed(self.q)
        self.message = ""
        self._joints = [entry for name in robot.independent_joints if (entry := self._joint(name)) is not None]
        self.coordinates = tuple(each for joint in self._joints for each in joint.coordinates)
        self._follows = len(robot.embedding.closure.loops) > 0

    def _joint(self, name: str) -> _Joint | None:
        """The settings of a joint; None for a joint of whose orientation only a part is independent."""
        robot, link = self.robot, self.robot.tree.number[name]
        kind = next(joint.kind for joint in robot.joints if joint.name == name)
        entries = robot.tree.velocities(link)
        free = [k for k, entry in enumerate(entries) if entry in robot.embedding.v_index]
        if kind.nq != kind.nv and len(free) != kind.nv:
            return None
        places = np.flatnonzero(np.isin(robot.embedding.v_index, entries))
        S = np.asarray(kind.subspace(kind.neutral()), dtype=float)
        coordinates = []
        for k in free:
            with_quaternion = kind.nq != kind.nv  # then positions are shifts and a turn, whatever velocities are
            angular = k >= kind.nv - 3 if with_quaternion else bool(np.abs(S[:3, k]).any())
            limits = [float(np.atleast_1d(x)[k]) for x in (kind.lower, kind.upper)]
            limited = kind.nq == kind.nv and bool(np.isfinite(limits).all())
            low, high = limits if limited else self._range(kind, k, angular, name)
            label = name if len(free) == 1 else f"{name} {_label(kind, k)}"
            coordinates.append(Coordinate(name, label, low, high, limited, angular))
        return _Joint(robot.q_slice(name), places, kind, tuple(free), tuple(coordinates))

    def _range(self, kind: Any, k: int, angular: bool, name: str) -> tuple[float, float]:
        """The range of a coordinate without limits, around its start position."""
        if kind.nq == kind.nv:
            now = float(self.q[self.robot.q_slice(name)][k])
            lower, upper = float(kind.lower[k]), float(kind.upper[k])
            half = np.pi if angular else max(0.5 * self._size, abs(now))
            middle = 0.0 if abs(now) <= half else now
            return (
                lower if np.isfinite(lower) else min(middle - half, upper - 2 * half),
                upper if np.isfinite(upper) else max(middle + half, lower + 2 * half),
            )
        return (-np.pi, np.pi) if angular else (-2.0 * self._size, 2.0 * self._size)

    @property
    def values(self) -> np.ndarray:
        """The present values of the coordinates, (coordinates,), rad or m."""
        return np.concatenate([np.zeros(0), *(joint.values(self.q) for joint in self._joints)])

    def reset(self, q: Any = None) -> None:
        """Goes to another closed configuration, neutral if none is given."""
        q = self.robot.neutral() if q is None else numbers("q", q, (self.robot.nq,))
        self.robot.check_closed(q)
        self.q, self.message = q, ""

    def move(self, values: Sequence[float] | np.ndarray) -> bool:
        """Moves coordinates towards values, (coordinates,), rad or m, as far as possible.

        Returns:
            Whether they reached them. If not, `message` says why.
        """
        goal = numbers("values", values, (len(self.coordinates),))
        self.message = ""
        way = self._way(goal)
        longest = float(np.abs(way / self._scale()).max(initial=0.0))
        steps = int(np.clip(np.ceil(longest / _STEP), 1, _MOST)) if self._follows else 1
        try:
            for remaining in range(steps, 0, -1):
                self.q = self.robot.integrate(self.q, self._way(goal), 1.0 / remaining)
            self.robot.check(self.q)
        except ModelError as error:
            self.message = str(error)
        arrived = float(np.abs(self._way(goal)).max(initial=0.0)) < _ARRIVED
        if arrived and self.message:
            self.message = f"here the robot is singular: {self.message}"
        elif self.message:
            self.message = f"it does not come further: {self.message}"
        return arrived

    def _way(self, goal: np.ndarray) -> np.ndarray:
        """The velocity that leads from here to values in a unit of time, (nv,)."""
        v, start = np.zeros(self.robot.nv), 0
        for joint in self._joints:
            v[joint.places] = joint.way(self.q, goal[start : start + len(joint.coordinates)])
            start += len(joint.coordinates)
        return v

    def _scale(self) -> np.ndarray:
        """The unit in which each velocity is measured: a radian, or the robot's size."""
        scale = np.ones(self.robot.nv)
        for joint in self._joints:
            if joint.kind.nq == joint.kind.nv:
                scale[joint.places] = [1.0 if each.angular else self._size for each in joint.coordinates]
        return scale


@dataclass(frozen=True, eq=False)
class _Joint:
    """A joint whose coordinates may be set.

    Attributes:
        slot: the entries of its position in q.
        places: the entries of its velocity in v.
        kind: how it moves.
        free: which of its velocities are independent.
        coordinates: the coordinates that a user sets.
    """

    slot: slice
    places: np.ndarray
    kind: Any
    free: tuple[int, ...]
    coordinates: tuple[Coordinate, ...]

    def values(self, q: np.ndarray) -> np.ndarray:
        position = q[self.slot]
        if self.kind.nq == self.kind.nv:
            return position[list(self.free)]
        return np.concatenate([position[:-4], np.asarray(quaternion_log(position[-4:]), dtype=float)])

    def way(self, q: np.ndarray, goal: np.ndarray) -> np.ndarray:
        position = q[self.slot]
        if self.kind.nq == self.kind.nv:
            return goal - position[list(self.free)]
        target = np.concatenate([goal[:-3], np.asarray(quaternion_exp(goal[-3:]), dtype=float)])
        return np.asarray(self.kind.difference(position, target), dtype=float)


def _label(kind: Any, k: int) -> str:
    """The label of one of several coordinates of a joint."""
    if kind.nq == kind.nv:
        return str(k + 1)
    shifts = kind.nv - 3
    return "xyz"[k] if k < shifts else ("about x", "about y", "about z")[k - shifts]
