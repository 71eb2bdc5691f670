"""Spatial vector algebra for bodies (Featherstone, "Rigid Body Dynamics Algorithms", chapter 2).

A motion vector is (ω, v): angular velocity and the velocity of the point at the frame's origin. A force vector is
(n, f): moment about the origin and force. Both are arrays of 6, angular part first. Every function takes floats or
nodes of a trace. `X` is a transform, `m` a motion, `f` a force, `I` an inertia.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coupler.forks import cached_property
from coupler.linear import known_value

Array = Any  # an ndarray of floats, or of nodes


def cross(a: Array, b: Array) -> Array:
    """The vector product a × b of two vectors of 3."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def skew(a: Array) -> Array:
    """The matrix a× with a× b = a × b."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def cross_motion(v: Array, m: Array) -> Array:
    """v × m: the rate of change of a motion vector m that moves with velocity v. [001, eq. 5]"""
    return np.concatenate([cross(v[:3], m[:3]), cross(v[:3], m[3:]) + cross(v[3:], m[:3])])


def cross_force(v: Array, f: Array) -> Array:
    """v ×* f: the rate of change of a force vector f that moves with velocity v. [001, eq. 5]"""
    return np.concatenate([cross(v[:3], f[:3]) + cross(v[3:], f[3:]), cross(v[:3], f[3:])])


def cross_motion_matrix(v: Array) -> Array:
    """The 6 × 6 matrix v× of `cross_motion`."""
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def cross_force_matrix(v: Array) -> Array:
    """The 6 × 6 matrix v×* = −(v×)ᵀ of `cross_force`."""
    return np.block([[skew(v[:3]), skew(v[3:])], [np.zeros((3, 3)), skew(v[:3])]])


def mirrored(M: Array) -> Array:
    """The symmetric matrix with the upper triangle of M, so that a trace computes equal entries once."""
    n = len(M)
    return np.array([[M[min(i, j), max(i, j)] for j in range(n)] for i in range(n)])


@dataclass(frozen=True, eq=False)
class Transform:
    """The change of coordinates from a frame A to a frame B, stored as a rotation and a translation.

    As a 6 × 6 matrix on motion vectors it is X = [[E, 0], [−E r×, E]]: `X @ m` are the coordinates in B of a motion m
    given in A. The transpose takes forces and inertias the other way, from B to A.

    Attributes:
        E: 3 × 3 rotation: a vector with coordinates u in A has coordinates E u in B.
        r: 3, the origin of B in coordinates of A, in m.
    """

    E: Array
    r: Array

    @classmethod
    def identity(cls) -> Self:
        """The transform between two frames that coincide."""
        return cls(np.eye(3), np.zeros(3))

    @classmethod
    def rotation(cls, E: Array) -> Self:
        """The transform to a frame with the same origin, whose axes are the rows of E, 3 × 3."""
        return cls(E, np.zeros(3))

    @classmethod
    def translation(cls, r: Array) -> Self:
        """The transform to a frame with the same axes, whose origin is at r, 3, m."""
        return cls(np.eye(3), np.asarray(r))

    def __matmul__(self, other: Any) -> Any:
        """The product with another transform, with a motion vector, or with motion vectors as columns."""
        if isinstance(other, Transform):
            return Transform(self.E @ other.E, other.r + other.E.T @ self.r)
        w, v = other[:3], other[3:]
        moved = v - (cross(self.r, w) if other.ndim == 1 else skew(self.r) @ w)
        return np.concatenate([self.E @ w, self.E @ moved])

    def inverse(self) -> Transform:
        """The inverse transform, from B to A."""
        return Transform(self.E.T, -(self.E @ self.r))

    def inverse_motion(self, m: Array) -> Array:
        """X⁻¹ m: a motion given in B, seen from A."""
        w, v = self.E.T @ m[:3], self.E.T @ m[3:]
        return np.concatenate([w, v + (cross(self.r, w) if m.ndim == 1 else skew(self.r) @ w)])

    def transform_force(self, f: Array) -> Array:
        """Xᵀ f: a force (or forces as columns) given in B, seen from A."""
        n, f = self.E.T @ f[:3], self.E.T @ f[3:]
        return np.concatenate([n + (cross(self.r, f) if f.ndim == 1 else skew(self.r) @ f), f])

    def inverse_force(self, f: Array) -> Array:
        """X⁻ᵀ f: a force given in A, seen from B."""
        n, f = f[:3], f[3:]
        return np.concatenate([self.E @ (n - (cross(self.r, f) if f.ndim == 1 else skew(self.r) @ f)), self.E @ f])

    def transform_inertia(self, inertia: Array) -> Array:
        """Xᵀ I X: a symmetric 6 × 6 inertia (rigid or articulated) given in B, seen from A.

        With I = [[A, H], [Hᵀ, M]] turned into A's axes, shifting by r gives H + r× M beside the unchanged M, and
        A + r× (H + r× M)ᵀ − H r×.
        """
        R = skew(self.r)
        A = mirrored(self.turn_back(inertia[:3, :3]))
        H = self.turn_back(inertia[:3, 3:])
        M = mirrored(self.turn_back(inertia[3:, 3:]))
        shifted = H + R @ M
        return np.block([[mirrored(A + R @ shifted.T - H @ R), shifted], [shifted.T, M]])

    @cached_property
    def axis(self) -> tuple[int, int, float] | None:
        """An axis of B, the parallel axis of A, and the sign, ±1; None if no two axes are known to be parallel."""
        values = [[known_value(x) for x in row] for row in self.E]
        for i, row in enumerate(values):
            for j, sign in enumerate(row):
                if sign in (1.0, -1.0) and [*row, *(other[j] for other in values)].count(0.0) == 4:
                    return i, j, sign
        return None

    def turn_back(self, A: Array) -> Array:
        """Eᵀ A E: a 3 × 3 matrix along B's axes, seen along A's.

        If E is a rotation about a coordinate axis, this takes half the products. In the plane across that axis, with
        (x, y) the first column of E there, [[p, q], [r, t]] becomes [[t + x w, ±(q − y w)], [±(r − y w), p − x w]],
        where w = x (p − t) + y (q + r).
        """
        if self.axis is None:
            return self.E.T @ A @ self.E
        i, j, sign = self.axis
        across, along = [k for k in range(3) if k != i], [k for k in range(3) if k != j]
        (p, q), (r, t) = A[np.ix_(across, across)]
        E = self.E[np.ix_(across, along)]
        x, y = E[:, 0]
        w = x * (p - t) + y * (q + r)
        result: Any = [[None] * 3 for _ in range(3)]
        det = sign * (-1) ** (i + j)
        plane = [[t + x * w, det * (q - y * w)], [det * (r - y * w), p - x * w]]
        for a, row in zip(along, plane, strict=True):
            for b, value in zip(along, row, strict=True):
                result[a][b] = value
        for a, down, right in zip(along, sign * (E.T @ A[across, i]), sign * (A[i, across] @ E), strict=True):
            result[a][j], result[j][a] = down, right
        result[j][j] = A[i, i]
        return np.array(result)

    def matrix(self) -> Array:
        """X as a 6 × 6 matrix on motion vectors."""
        return np.block([[self.E, np.zeros((3, 3))], [-self.E @ skew(self.r), self.E]])

    def force_matrix(self) -> Array:
        """X* = X⁻ᵀ as a 6 × 6 matrix on force vectors, from A to B."""
        return np.block([[self.E, -self.E @ skew(self.r)], [np.zeros((3, 3)), self.E]])


@dataclass(frozen=True, eq=False)
class RigidInertia:
    """The inertia of a rigid body in a frame, stored as its ten parameters.

    Attributes:
        m: mass, kg.
        h: 3, first moment m c with c the centre of mass, kg m.
        I: 3 × 3, rotational inertia about the frame's origin (not the centre of mass), kg m².
    """

    m: Any
    h: Array
    I: Array  # noqa: E741

    @classmethod
    def from_centre(cls, m: Any, c: Array, about_centre: Array) -> Self:
        """The inertia with the centre of mass c (m) and the rotational inertia about it (kg m²). [001, §III-D]"""
        C = skew(c)
        return cls(m, m * np.asarray(c), about_centre - m * (C @ C))

    def __matmul__(self, m: Array) -> Array:
        """The momentum I m of a motion vector m (or of motion vectors as columns)."""
        w, v = m[:3], m[3:]
        if m.ndim == 1:
            return np.concatenate([self.I @ w + cross(self.h, v), self.m * v - cross(self.h, w)])
        H = skew(self.h)
        return np.concatenate([self.I @ w + H @ v, self.m * v - H @ w])

    def __add__(self, other: RigidInertia) -> RigidInertia:
        """The inertia of two bodies welded together."""
        return RigidInertia(self.m + other.m, self.h + other.h, self.I + other.I)

    def seen_from(self, X: Transform) -> RigidInertia:
        """Xᵀ I X: the inertia given in B, seen from A, for the transform X from A to B.

        Shifting by r adds 2 (r·h) 1 − r hᵀ − h rᵀ + m (r·r 1 − r rᵀ) to I, with h in A's axes.
        """
        h, r = X.E.T @ self.h, X.r
        moved = h + self.m * r
        square = r @ (h + moved)
        shifted = X.turn_back(self.I) + square * np.eye(3) - np.outer(r, h) - np.outer(moved, r)
        return RigidInertia(self.m, moved, mirrored(shifted))

    def matrix(self) -> Array:
        """The inertia as a symmetric 6 × 6 matrix."""
        H = skew(self.h)
        return np.block([[self.I, H], [H.T, self.m * np.eye(3)]])
