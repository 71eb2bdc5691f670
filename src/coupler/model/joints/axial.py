"""Joints along or about one axis that is fixed in both frames, and the joint that does not move."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from coupler.model.axes import Z, plane_across, rotation_about, tilt_of, turn_of, unit_axis
from coupler.model.errors import ModelError
from coupler.model.joint import Joint, column
from coupler.model.numbers import numbers
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fixed(Joint):
    """A joint that does not move: a weld."""

    nq, nv = 0, 0

    def placed(self, kept: Array) -> Transform:
        return Transform.identity()

    def subspace(self, q: Array) -> Array:
        return np.zeros((6, 0))

    def residual(self, X: Transform) -> Array:
        return np.concatenate([X.r, turn_of(X.E)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _Axial(Joint):
    """A joint along or about an axis that is fixed in both frames.

    Attributes:
        axis: 3, its direction, which is normalised.
    """

    nq, nv = 1, 1
    axis: Any = field(default=Z, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "axis", unit_axis(self.kind, self.axis))

    def _along_z(self) -> tuple[np.ndarray, Self]:
        """The rotation that turns its axis to z, and this joint with z as its axis."""
        return np.vstack([plane_across(self.axis), self.axis]), self.with_values(axis=np.array(Z))

    def _off_axis(self, r: Array) -> Array:
        """The two coordinates of a point at right angles to the axis."""
        return np.array([side @ r for side in plane_across(self.axis)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Revolute(_Axial):
    """A rotation about an axis; q in rad."""

    axial = spins = True
    aligned = _Axial._along_z

    def keep(self, q: Array) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0])])

    def placed(self, kept: Array) -> Transform:
        return Transform.rotation(rotation_about(self.axis, *kept).T)

    def subspace(self, q: Array) -> Array:
        return column(self.axis, np.zeros(3))

    def residual(self, X: Transform) -> Array:
        return np.concatenate([X.r, tilt_of(X.E, self.axis)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Continuous(Revolute):
    """A revolute joint without limits: one angle, in rad, that may grow without end."""

    _traced_as = Revolute

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.isfinite([self.lower, self.upper]).any():
            raise ModelError("continuous joint: it has no position limits; use a revolute joint for that")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Prismatic(_Axial):
    """A translation along an axis; q in m."""

    axial = True
    aligned = _Axial._along_z

    def placed(self, kept: Array) -> Transform:
        return Transform.translation(self.axis * kept[0])

    def subspace(self, q: Array) -> Array:
        return column(np.zeros(3), self.axis)

    def residual(self, X: Transform) -> Array:
        return np.concatenate([self._off_axis(X.r), turn_of(X.E)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Helical(_Axial):
    """A screw: a rotation about an axis coupled with a translation along it; q in rad.

    Attributes:
        pitch: translation by unit of rotation, m/rad.
    """

    pitch: float = field(default=0.0, kw_only=False)
    axial = True
    aligned = _Axial._along_z

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pitch", float(numbers("helical joint: its pitch", self.pitch, ())))

    def keep(self, q: Array) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), q[0]])

    def placed(self, kept: Array) -> Transform:
        return Transform(rotation_about(self.axis, *kept[:2]).T, self.axis * (self.pitch * kept[2]))

    def subspace(self, q: Array) -> Array:
        return column(self.axis, self.pitch * self.axis)

    def residual(self, X: Transform) -> Array:
        shift = np.array([self._beyond(X.E, self.axis @ X.r)])
        return np.concatenate([self._off_axis(X.r), tilt_of(X.E, self.axis), shift])

    def _beyond(self, E: Array, shift: Any) -> Any:
        """How far the translation is from what the rotation requires, however many turns it has made, m."""
        if self.pitch == 0.0:
            return shift
        b, c = plane_across(self.axis)
        turned = E.T @ b
        due = shift / self.pitch
        sine = np.sin(due) * (b @ turned) - np.cos(due) * (c @ turned)
        cosine = np.cos(due) * (b @ turned) + np.sin(due) * (c @ turned)
        return self.pitch * 2.0 * sine / (1.0 + cosine)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Cylindrical(_Axial):
    """A rotation about and a translation along the same axis; q is (angle, shift) in rad and m."""

    nq, nv = 2, 2
    axial = True
    aligned = _Axial._along_z

    def keep(self, q: Array) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), q[1]])

    def placed(self, kept: Array) -> Transform:
        return Transform(rotation_about(self.axis, *kept[:2]).T, self.axis * kept[2])

    def subspace(self, q: Array) -> Array:
        return np.concatenate([column(self.axis, np.zeros(3)), column(np.zeros(3), self.axis)], axis=1)

    def residual(self, X: Transform) -> Array:
        return np.concatenate([self._off_axis(X.r), tilt_of(X.E, self.axis)])
