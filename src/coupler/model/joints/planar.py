"""Joints of two and three freedoms whose positions are angles and shifts: crosses and planes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from coupler.model.axes import Z, plane_across, rotation_about, tilt_of, unit_axis
from coupler.model.errors import ModelError
from coupler.model.joint import Joint, column
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

_PARALLEL = 1e-9  # rad: axes of a universal joint at a smaller angle are one axis, to most of their digits
_SQUARE = 1e-15  # the cosine of an angle between axes that is a right angle up to rounding


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Universal(Joint):
    """Two rotations, one after the other; q in rad.

    Attributes:
        first: 3, the axis of the first rotation, fixed in the predecessor.
        second: 3, the axis of the second rotation, fixed in the successor.
    """

    nq, nv = 2, 2
    first: Any = field(default=(1.0, 0.0, 0.0), kw_only=False)
    second: Any = field(default=(0.0, 1.0, 0.0), kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "first", unit_axis(self.kind, self.first))
        object.__setattr__(self, "second", unit_axis(self.kind, self.second))
        if np.linalg.norm(np.cross(self.first, self.second)) < _PARALLEL:
            raise ModelError("universal joint: its two axes are parallel; use a revolute joint")

    def keep(self, q: Array) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), np.cos(q[1]), np.sin(q[1])])

    def placed(self, kept: Array) -> Transform:
        return Transform.rotation((rotation_about(self.first, *kept[:2]) @ rotation_about(self.second, *kept[2:])).T)

    def subspace(self, q: Array) -> Array:
        first = rotation_about(self.second, np.cos(q[1]), np.sin(q[1])).T @ self.first
        return np.concatenate([column(first, np.zeros(3)), column(self.second, np.zeros(3))], axis=1)

    def subspace_rate(self, q: Array, v: Array) -> Array:
        first = rotation_about(self.second, np.cos(q[1]), np.sin(q[1])).T @ self.first
        return np.concatenate([column(cross(first, self.second) * v[1], np.zeros(3)), np.zeros((6, 1))], axis=1)

    def residual(self, X: Transform) -> Array:
        return np.concatenate([X.r, np.array([self.first @ (X.E.T @ self.second) - self.first @ self.second])])

    def aligned(self) -> tuple[np.ndarray, Self]:
        """The first axis becomes x, and the second lies in the plane of x and y."""
        lean = self.first @ self.second
        across = self.second - lean * self.first
        across = across / np.linalg.norm(across)
        second = (0.0, 1.0, 0.0) if abs(lean) < _SQUARE else (lean, self.second @ across, 0.0)
        A = np.vstack([self.first, across, np.cross(self.first, across)])
        return A, self.with_values(first=np.array([1.0, 0.0, 0.0]), second=np.array(second))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Planar(Joint):
    """Motion in a plane; q is (x, y, angle) in m and rad, x and y along fixed axes of the predecessor.

    Attributes:
        normal: 3, the normal of the plane, about which the angle turns. If it is z, x and y are the predecessor's axes.
    """

    nq, nv = 3, 3
    normal: Any = field(default=Z, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "normal", unit_axis(self.kind, self.normal))

    @property
    def plane(self) -> np.ndarray:
        """2 × 3: the directions x and y."""
        return plane_across(self.normal)

    def keep(self, q: Array) -> Array:
        return np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])])

    def placed(self, kept: Array) -> Transform:
        x, y = self.plane
        return Transform(rotation_about(self.normal, *kept[2:]).T, x * kept[0] + y * kept[1])

    def subspace(self, q: Array) -> Array:
        E = rotation_about(self.normal, np.cos(q[2]), np.sin(q[2])).T
        shifts = [column(np.zeros(3), E @ along) for along in self.plane]
        return np.concatenate([*shifts, column(self.normal, np.zeros(3))], axis=1)

    def subspace_rate(self, q: Array, v: Array) -> Array:
        E = rotation_about(self.normal, np.cos(q[2]), np.sin(q[2])).T
        shifts = [column(np.zeros(3), cross(E @ along, self.normal) * v[2]) for along in self.plane]
        return np.concatenate([*shifts, np.zeros((6, 1))], axis=1)

    def residual(self, X: Transform) -> Array:
        return np.concatenate([np.array([self.normal @ X.r]), tilt_of(X.E, self.normal)])

    def aligned(self) -> tuple[np.ndarray, Self]:
        return np.vstack([self.plane, self.normal]), self.with_values(normal=np.array(Z))
