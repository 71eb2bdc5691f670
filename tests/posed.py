"""Mechanisms described as they stand: axes and points in the world, in a pose in which all loops are closed."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model import Joint, LoopKind, Prismatic, Revolute, RobotBuilder
from coupler.rotation import about_axis

__all__ = ["PosedBuilder"]


class PosedBuilder(RobotBuilder):
    """Describes a mechanism in a pose whose joint positions are any: those of its joints, not zeros.

    Bodies are frames parallel to the world's in that pose, with their origins on their joints.
    """

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        super().__init__(name)
        self._rng, self._origins = rng, {"ground": np.zeros(3)}

    def _add(self, name: str, kind: Joint, parent: str, point: Any, turned: Any, start: float, free: bool) -> None:
        size = self._rng.uniform(0.5, 1.5, 3)
        inertia = np.diag(0.02 * (size.sum() - size)) + 0.002 * np.outer(size, size)
        self.body(name, self._rng.uniform(0.5, 2.0), self._rng.uniform(-0.1, 0.1, 3), inertia)
        self.joint(name, kind, parent, name, point - self._origins[parent], turned, independent=free, start=start)

    def turn(self, name: str, parent: str, axis: Any, point: Any, at: float = 0.0, *, free: bool = False) -> None:
        """A body on a hinge whose axis passes through a point."""
        axis, self._origins[name] = np.asarray(axis) / np.linalg.norm(axis), np.asarray(point, float)
        self._add(name, Revolute(axis=axis), parent, self._origins[name], about_axis(axis, -at), at, free)

    def slide(self, name: str, parent: str, axis: Any, point: Any, at: float = 0.0, *, free: bool = False) -> None:
        """A body that slides along an axis."""
        axis, self._origins[name] = np.asarray(axis) / np.linalg.norm(axis), np.asarray(point, float)
        self._add(name, Prismatic(axis=axis), parent, self._origins[name] - at * axis, None, at, free)

    def hold(self, name: str, kind: LoopKind, first: str, second: str, point: Any, other: Any = None) -> None:
        """Closes a loop at a point; of a rod, the second end is at another."""
        at, meets = (np.asarray(p) - self._origins[b] for p, b in ((point, first), (point, second)))
        if other is not None:
            meets = np.asarray(other) - self._origins[second]
        self.loop(name, kind, first, second, at, meets)
