"""Joints whose positions hold an orientation, as a unit quaternion: balls and floating bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.joint import Joint
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
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Spherical(Joint):
    """A ball joint: q is the successor's unit quaternion (w, x, y, z), v its angular velocity in its own frame."""

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
        """7, the position at which the successor's frame is at the given place."""
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
