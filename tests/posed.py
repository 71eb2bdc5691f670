"""Mechanisms in general position, with bodies of random inertia."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.mechanisms import PosedBuilder
from coupler.model import Joint, Prismatic, Revolute

__all__ = ["RandomBuilder"]


class RandomBuilder(PosedBuilder):
    """Describes a mechanism as it stands, with joints at any positions in that pose."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        super().__init__(name)
        self._rng = rng

    def _add(self, name: str, kind: Joint, parent: str, point: Any, at: float, free: bool) -> None:
        size = self._rng.uniform(0.5, 1.5, 3)
        inertia = np.diag(0.02 * (size.sum() - size)) + 0.002 * np.outer(size, size)
        centre = np.asarray(point) + self._rng.uniform(-0.1, 0.1, 3)
        weighs = self._rng.uniform(0.5, 2.0), centre, inertia
        self.link(name, kind, parent, point, weighs=weighs, position=[at], independent=free)

    def turn(self, name: str, parent: str, axis: Any, point: Any, at: float = 0.0, *, free: bool = False) -> None:
        """A body on a hinge whose axis passes through a point."""
        self._add(name, Revolute(axis=axis), parent, point, at, free)

    def slide(self, name: str, parent: str, axis: Any, point: Any, at: float = 0.0, *, free: bool = False) -> None:
        """A body that slides along an axis."""
        self._add(name, Prismatic(axis=axis), parent, point, at, free)
