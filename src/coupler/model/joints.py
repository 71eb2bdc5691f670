"""The kinds of joints: how one body moves against another.

A joint connects a predecessor frame to a successor frame. Its position q gives the transform between them, its velocity
v the motion S v of the successor against the predecessor, in the successor's frame. Where q has as many entries as v,
v is q̇; a ball's orientation is a unit quaternion, and its velocity the angular velocity in the successor's frame.

`transform` and its two halves, `keep` and `placed`, `subspace`, `subspace_rate`, `integrate` and `difference` take
floats or nodes of a trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coupler.model.axes import plane_across, rotation_about, tilt_of, turn_of, unit_axis
from coupler.model.errors import ModelError
from coupler.model.joint import Joint
from coupler.model.numbers import numbers
from coupler.rotation import (
    dexp_inverse,
    dexp_inverse_motion,
    exp_motion,
    identity_quaternion,
    log_motion,
    matrix_from_quaternion,
    normalize_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_from_matrix,
    quaternion_log,
    quaternion_product,
)
from coupler.spatial import Transform, cross

Array = Any  # an ndarray of floats, or of nodes

_Z = (0.0, 0.0, 1.0)
_PARALLEL = 1e-9  # rad: axes of a universal joint with a smaller angle make one freedom of two, in most digits
_SQUARE = 1e-15  # the cosine of an angle between axes that is a right one but for rounding


def _column(*parts: Array) -> Array:
    return np.concatenate(parts)[:, None]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fixed(Joint):
    """No motion at all."""

    nq, nv = 0, 0

    def placed(self, kept: Array) -> Transform:
        return Transform.identity()

    def subspace(self, q: Array) -> Array:
        return np.zeros((6, 0))

    def residual(self, X: Transform) -> Array:
        return np.concatenate([X.r, turn_of(X.E)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _Axial(Joint):
    """A joint of one freedom along an axis that is fixed in both frames.

    Attributes:
        axis: its direction; made of unit length.
    """

    nq, nv = 1, 1
    axis: Any = _Z

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "axis", unit_axis(self.kind, self.axis))

    def _along_z(self) -> tuple[np.ndarray, Self]:
        """The rotation that turns its axis to z, and the joint about z."""
        return np.vstack([plane_across(self.axis), self.axis]), self.with_values(axis=np.array(_Z))

    def _off_axis(self, r: Array) -> Array:
        """The two coordinates of a point across the axis."""
        return np.array([side @ r for side in plane_across(self.axis)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Revolute(_Axial):
    """A turn about an axis; q in rad."""

    axial = spins = True
    aligned = _Axial._along_z

    def keep(self, q: Array) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0])])

    def placed(self, kept: Array) -> Transform:
        return Transform.rotation(rotation_about(self.axis, *kept).T)

    def subspace(self, q: Array) -> Array:
        return _column(self.axis, np.zeros(3))

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
    """A shift along an axis; q in m."""

    axial = True
    aligned = _Axial._along_z

    def placed(self, kept: Array) -> Transform:
        return Transform.translation(self.axis * kept[0])

    def subspace(self, q: Array) -> Array:
        return _column(np.zeros(3), self.axis)

    def residual(self, X: Transform) -> Array:
        return np.concatenate([self._off_axis(X.r), turn_of(X.E)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Helical(_Axial):
    """A screw: a turn about an axis with a shift along it; q in rad.

    Attributes:
        pitch: shift per turn of one radian, m/rad.
    """

    pitch: float = 0.0
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
        return _column(self.axis, self.pitch * self.axis)

    def residual(self, X: Transform) -> Array:
        shift = np.array([self._beyond(X.E, self.axis @ X.r)])
        return np.concatenate([self._off_axis(X.r), tilt_of(X.E, self.axis), shift])

    def _beyond(self, E: Array, shift: Any) -> Any:
        """How far it is from where its turn would have it, however many turns it has made."""
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
    """A turn about and a shift along the same axis; q is (angle, shift) in rad and m."""

    nq, nv = 2, 2
    axial = True
    aligned = _Axial._along_z

    def keep(self, q: Array) -> Array:
        return np.array([np.cos(q[0]), np.sin(q[0]), q[1]])

    def placed(self, kept: Array) -> Transform:
        return Transform(rotation_about(self.axis, *kept[:2]).T, self.axis * kept[2])

    def subspace(self, q: Array) -> Array:
        return np.concatenate([_column(self.axis, np.zeros(3)), _column(np.zeros(3), self.axis)], axis=1)

    def residual(self, X: Transform) -> Array:
        return np.concatenate([self._off_axis(X.r), tilt_of(X.E, self.axis)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Universal(Joint):
    """Two turns, one after the other; q in rad.

    Attributes:
        first: axis of the first turn, fixed in the predecessor.
        second: axis of the second turn, fixed in the successor.
    """

    nq, nv = 2, 2
    first: Any = (1.0, 0.0, 0.0)
    second: Any = (0.0, 1.0, 0.0)

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
        return np.concatenate([_column(first, np.zeros(3)), _column(self.second, np.zeros(3))], axis=1)

    def subspace_rate(self, q: Array, v: Array) -> Array:
        first = rotation_about(self.second, np.cos(q[1]), np.sin(q[1])).T @ self.first
        return np.concatenate([_column(cross(first, self.second) * v[1], np.zeros(3)), np.zeros((6, 1))], axis=1)

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
        normal: of the plane, about which the angle turns. Where it is z, x and y are the predecessor's own.
    """

    nq, nv = 3, 3
    normal: Any = _Z

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
        shifts = [_column(np.zeros(3), E @ along) for along in self.plane]
        return np.concatenate([*shifts, _column(self.normal, np.zeros(3))], axis=1)

    def subspace_rate(self, q: Array, v: Array) -> Array:
        E = rotation_about(self.normal, np.cos(q[2]), np.sin(q[2])).T
        shifts = [_column(np.zeros(3), cross(E @ along, self.normal) * v[2]) for along in self.plane]
        return np.concatenate([*shifts, np.zeros((6, 1))], axis=1)

    def residual(self, X: Transform) -> Array:
        return np.concatenate([np.array([self.normal @ X.r]), tilt_of(X.E, self.normal)])

    def aligned(self) -> tuple[np.ndarray, Self]:
        return np.vstack([self.plane, self.normal]), self.with_values(normal=np.array(_Z))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Spherical(Joint):
    """A ball: q is the unit quaternion (w, x, y, z) of the successor, v its angular velocity in its own frame."""

    nq, nv = 4, 3
    directed = False

    def placed(self, kept: Array) -> Transform:
        return Transform.rotation(matrix_from_quaternion(kept).T)

    def subspace(self, q: Array) -> Array:
        return np.concatenate([np.eye(3), np.zeros((3, 3))])

    def residual(self, X: Transform) -> Array:
        return np.asarray(X.r)

    def neutral(self) -> np.ndarray:
        return identity_quaternion()

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return normalize_quaternion(rng.normal(size=4))

    def integrate(self, q: Array, v: Array, dt: Any = 1.0) -> Array:
        return normalize_quaternion(quaternion_product(q, quaternion_exp(v * dt)))

    def difference(self, q0: Array, q1: Array) -> Array:
        return quaternion_log(quaternion_product(quaternion_conjugate(q0), q1))

    def chart_rate(self, u: Array, v: Array) -> Array:
        return dexp_inverse(u, v)

    def normalize(self, q: Array) -> Array:
        return normalize_quaternion(q)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Free(Joint):
    """No constraint: q is (x, y, z) in m, then the unit quaternion (w, x, y, z); v is the body-frame spatial velocity.

    `integrate` is the exponential of SE(3): exact for a constant v.
    """

    nq, nv = 7, 6
    floats = True

    def placed(self, kept: Array) -> Transform:
        return Transform(matrix_from_quaternion(kept[3:]).T, kept[:3])

    @staticmethod
    def position_of(place: Transform) -> np.ndarray:
        """7, the position at which it carries its body to a place."""
        return np.concatenate([place.r, quaternion_from_matrix(place.E.T)])

    def subspace(self, q: Array) -> Array:
        return np.eye(6)

    def residual(self, X: Transform) -> Array:
        return np.zeros(0)

    def neutral(self) -> np.ndarray:
        return np.concatenate([np.zeros(3), identity_quaternion()])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([rng.uniform(-1.0, 1.0, 3), normalize_quaternion(rng.normal(size=4))])

    def integrate(self, q: Array, v: Array, dt: Any = 1.0) -> Array:
        turn, shift = exp_motion(v * dt)
        position = q[:3] + matrix_from_quaternion(q[3:]) @ shift
        return np.concatenate([position, normalize_quaternion(quaternion_product(q[3:], turn))])

    def difference(self, q0: Array, q1: Array) -> Array:
        turn = quaternion_product(quaternion_conjugate(q0[3:]), q1[3:])
        return log_motion(turn, matrix_from_quaternion(q0[3:]).T @ (q1[:3] - q0[:3]))

    def chart_rate(self, u: Array, v: Array) -> Array:
        return dexp_inverse_motion(u, v)

    def normalize(self, q: Array) -> Array:
        return np.concatenate([q[:3], normalize_quaternion(q[3:])])
