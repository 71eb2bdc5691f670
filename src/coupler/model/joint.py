"""What every joint has: a transform, a motion subspace, and passive properties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from coupler.model.errors import ModelError
from coupler.model.numbers import numbers
from coupler.spatial import Transform

__all__ = ["Joint"]

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False, kw_only=True)
class Joint(ABC):
    """A kind of joint with its passive properties, each a number or one for each entry of v.

    Attributes:
        stiffness: of a spring that pulls towards `rest`, N m/rad or N/m.
        rest: the position at which that spring is at ease, of nq entries; the neutral position if not given.
        damping: force against the velocity, N m s/rad or N s/m.
        friction: the largest Coulomb friction, N m or N.
        armature: inertia added to the joint coordinate, kg m² or kg.
        lower, upper: limits of the position, rad or m; for joints whose v is q̇.
        velocity_limit, effort_limit: limits of |v| and of the actuator's |force|.
    """

    nq: ClassVar[int]
    nv: ClassVar[int]

    stiffness: Any = 0.0
    rest: Any = None
    damping: Any = 0.0
    friction: Any = 0.0
    armature: Any = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf
    velocity_limit: Any = np.inf
    effort_limit: Any = np.inf

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "friction", "armature"):
            self._take(name, least=0.0)
        for name in ("velocity_limit", "effort_limit"):
            self._take(name, finite=False, least=0.0)
        for name in ("lower", "upper"):
            self._take(name, finite=False)
        if (self.lower > self.upper).any() or (self.lower == np.inf).any() or (self.upper == -np.inf).any():
            raise ModelError(f"{self.kind} joint: nothing lies between its limits {self.lower} and {self.upper}")
        if self.nq != self.nv and np.isfinite([self.lower, self.upper]).any():
            raise ModelError(f"{self.kind} joint: limits of its position have no meaning for an orientation")
        object.__setattr__(self, "rest", self._valid_rest())

    def _take(self, name: str, *, finite: bool = True, least: float = -np.inf) -> None:
        what, given = f"{self.kind} joint: {name}", getattr(self, name)
        object.__setattr__(self, name, numbers(what, given, (self.nv,), finite=finite, least=least, spread=True))

    def _valid_rest(self) -> np.ndarray:
        rest = self.valid_position(f"{self.kind} joint: rest", self.rest)
        if rest is None:
            given = np.array(self.rest, float)
            raise ModelError(f"{self.kind} joint: its rest position {given} has no quaternion of finite length")
        rest.setflags(write=False)
        return rest

    def valid_position(self, what: str, given: Any) -> np.ndarray | None:
        """A position that a user gave, made valid, or neutral for None; None if its quaternion has no finite length."""
        given = self.neutral() if given is None else np.atleast_1d(given)
        with np.errstate(invalid="ignore", over="ignore"):
            position = np.asarray(self.normalize(numbers(what, given, (self.nq,))))
        if not np.isfinite(position).all() or (self.nq != self.nv and not position[-4:].any()):
            return None
        return position

    @property
    def kind(self) -> str:
        """What it is called: "revolute", "free", ..."""
        return type(self).__name__.lower()

    def transform(self, q: Array) -> Transform:
        """The transform from the predecessor to the successor frame, for q of shape (nq,)."""
        return self.placed(self.keep(q))

    def keep(self, q: Array) -> Array:
        """What of a position is worth keeping for later: sines and cosines of its angles instead of the angles."""
        return q

    @abstractmethod
    def placed(self, kept: Array) -> Transform:
        """The transform for what was kept of a position."""

    @abstractmethod
    def subspace(self, q: Array) -> Array:
        """S: the motion subspace in the successor's frame, 6 × nv. [001, §III-E]"""

    def subspace_rate(self, q: Array, v: Array) -> Array:
        """dS/dt, the rate of S's coordinates in the successor's frame, 6 × nv; zero for most joints. [001, eq. 26]"""
        return np.zeros((6, self.nv))

    def neutral(self) -> np.ndarray:
        """The position at which the two frames coincide, or come as close as this joint allows."""
        return np.zeros(self.nq)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """A position within its range; any orientation."""
        return rng.uniform(*self.range())

    def range(self) -> tuple[np.ndarray, np.ndarray]:
        """The limits of the position, or ±π (rad) and ±1 m where there are none."""
        span = self._span()
        lower = np.where(np.isfinite(self.lower), self.lower, np.minimum(-span, self.upper - 2 * span))
        upper = np.where(np.isfinite(self.upper), self.upper, np.maximum(span, lower + span))
        return lower, upper

    def _span(self) -> np.ndarray:
        """Half the range of a random position without limits: π for turns, 1 for shifts."""
        S = np.asarray(self.subspace(self.neutral()), dtype=float)
        return np.where(np.abs(S[:3]).max(axis=0, initial=0.0) > 0, np.pi, 1.0)

    def integrate(self, q: Array, v: Array, dt: Any = 1.0) -> Array:
        """The position after moving from q with the constant velocity v for the time dt."""
        return q + v * dt

    def difference(self, q0: Array, q1: Array) -> Array:
        """The velocity that leads from q0 to q1 in a unit of time: integrate(q0, difference(q0, q1)) is q1."""
        return q1 - q0

    def normalize(self, q: Array) -> Array:
        """The valid position nearest to q: quaternions of unit length."""
        return q

    def active_force_subspace(self, q: np.ndarray) -> np.ndarray:
        """Tᵃ = S (SᵀS)⁻¹, 6 × nv: the force that does work for each unit of joint force, SᵀTᵃ = 1. [001, eq. 9]"""
        return np.linalg.pinv(np.asarray(self.subspace(q), dtype=float).reshape(6, self.nv).T)

    def constraint_force_subspace(self, q: np.ndarray) -> np.ndarray:
        """Tᶜ, 6 × (6 − nv): an orthonormal basis of the forces that do no work, SᵀTᶜ = 0. [001, eq. 9]"""
        S = np.asarray(self.subspace(q), dtype=float).reshape(6, self.nv)
        return np.linalg.svd(S, full_matrices=True)[0][:, self.nv :]

    def __repr__(self) -> str:
        told = []
        for f in fields(self):
            value = getattr(self, f.name)
            default = f.default if not isinstance(f.default, tuple) else np.asarray(f.default)
            if f.name == "rest":
                default = self.neutral()
            if not np.array_equal(value, np.broadcast_to(np.asarray(default, float), np.shape(value))):
                told.append(f"{f.name}={np.array2string(np.asarray(value), separator=', ')}")
        return f"{type(self).__name__}({', '.join(told)})"
