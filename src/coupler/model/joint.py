"""The base class of all joints: a transform, the facts that follow from it, and passive properties.

A kind of joint is a subclass of `Joint`. It must define how many entries its position and velocity have (`nq`, `nv`)
and where a position puts the successor frame (`placed`). Everything else has a default that is right for any joint, by
differentiation where need be; what a subclass overrides makes it faster, or able to do more. See docs/extending.md.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from coupler.graph import jacobian, jvp, symbols, vjp
from coupler.linear import solve
from coupler.model.errors import ModelError
from coupler.model.identity import attributes_of
from coupler.model.loop_kind import LoopKind
from coupler.model.numbers import numbers
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes


@dataclass(frozen=True, eq=False, kw_only=True)
class Joint(LoopKind):
    """A joint with its passive properties, each of which is one number, or one for each entry of v.

    A position q has either as many entries as a velocity v, and then v is q̇, or one more, and then its last four
    entries are a unit quaternion.

    Attributes:
        nq, nv: the numbers of entries of q and v.
        axial: whether, once aligned, it only turns about and shifts along z: its frame may then be anywhere on that
            axis.
        spins: whether, once aligned, it only turns about z: a body that is symmetric about z then looks the same at any
            position.
        floats: whether it constrains nothing, q is a point and a quaternion, and v the spatial velocity of the
            successor in its own frame.
        stiffness: stiffness k of a spring that pulls towards `rest`, N m/rad or N/m. Its energy is ½ Σ k d² with
            d = difference(rest, q), for a ball the rotation vector that leads from `rest` to q.
        rest: (nq,), the position at which that spring is relaxed; neutral if None.
        damping: resisting force by unit of velocity, N m s/rad or N s/m.
        friction: the largest Coulomb friction, N m or N.
        armature: inertia that is added along the joint coordinate, kg m² or kg.
        lower, upper: limits of the position, rad or m, for joints whose v is q̇.
        velocity_limit, effort_limit: limits of |v| and of the magnitude of the actuator's force.
    """

    nq: ClassVar[int]
    nv: ClassVar[int]
    axial: ClassVar[bool] = False
    spins: ClassVar[bool] = False
    floats: ClassVar[bool] = False

    stiffness: Any = 0.0
    rest: Any = None
    damping: Any = 0.0
    friction: Any = 0.0
    armature: Any = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf
    velocity_limit: Any = np.inf
    effort_limit: Any = np.inf

    def __init_subclass__(cls, **given: Any) -> None:
        """Undoes the inheritance of facts that a subclass has made untrue.

        A subclass that redefines how it moves gets Joint's defaults for every fact that followed from how its base
        class moved, unless it redefines that fact as well.
        """
        super().__init_subclass__(**given)

        def depth(name: str) -> int:
            """The number of classes up from which a name is inherited."""
            return next((i for i, base in enumerate(cls.__mro__) if name in vars(base)), len(cls.__mro__))

        for motion, facts in _FACTS:
            last = min(map(depth, motion))
            for name in facts:
                if depth(name) > last:
                    setattr(cls, name, getattr(Joint, name))
                last = min(last, depth(name))

    def __post_init__(self) -> None:
        _check_class(type(self))
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
        rest = self.valid_position(f"{self.kind} joint: rest", self.rest)
        if rest is None:
            given = np.array(self.rest, float)
            raise ModelError(f"{self.kind} joint: its rest position {given} has no quaternion of finite length")
        rest.setflags(write=False)
        object.__setattr__(self, "rest", rest)

    def _take(self, name: str, *, finite: bool = True, least: float = -np.inf) -> None:
        what, given = f"{self.kind} joint: {name}", getattr(self, name)
        object.__setattr__(self, name, numbers(what, given, (self.nv,), finite=finite, least=least, spread=True))

    def valid_position(self, what: str, given: Any) -> np.ndarray | None:
        """A position that a user gave, normalised, or neutral for None; None if its quaternion cannot be normalised."""
        given = self.neutral() if given is None else np.atleast_1d(given)
        with np.errstate(invalid="ignore", over="ignore"):
            position = np.asarray(self.normalize(numbers(what, given, (self.nq,))))
        if not np.isfinite(position).all() or (self.nq != self.nv and not position[-4:].any()):
            return None
        return position

    def transform(self, q: Array) -> Transform:
        """The transform from the predecessor's to the successor's frame, for q of shape (nq,)."""
        return self.placed(self.keep(q))

    def keep(self, q: Array) -> Array:
        """The part of a position to keep for later passes: sines and cosines of its angles instead of the angles."""
        return q

    @abstractmethod
    def placed(self, kept: Array) -> Transform:
        """The transform, for what `keep` returned."""

    def subspace(self, q: Array) -> Array:
        """S: the motion subspace in the successor's frame, 6 × nv. [001, §III-E] By default, from the transform."""

        def pose(step: Array) -> Array:
            X = self.transform(self.integrate(q, step))
            return np.concatenate([np.ravel(X.E), X.r])

        E, columns = self.transform(q).E, [np.zeros((6, 0))]
        for rate in jacobian(pose, np.zeros(self.nv)).T:
            spin = E @ rate[:9].reshape(3, 3).T  # ω×, since Ė = −ω× E
            columns.append(np.concatenate([np.array([spin[2, 1], spin[0, 2], spin[1, 0]]), E @ rate[9:]])[:, None])
        return np.concatenate(columns, axis=1)

    def subspace_rate(self, q: Array, v: Array) -> Array:
        """dS/dt, the rate of S's coordinates in the successor's frame, 6 × nv. [001, eq. 26] By default, from S."""
        if np.asarray(self.subspace(symbols("q", self.nq))).dtype != object:  # it holds no nodes: S is constant
            return np.zeros((6, self.nv))
        return jvp(lambda t: self.subspace(self.integrate(q, v, t)), 0.0, 1.0)

    def residual(self, X: Transform) -> Array:
        raise ModelError(
            f"{self.kind} joints cannot close loops: give {type(self).__name__} a method `residual`, which is zero for "
            "the transforms that it allows"
        )

    def neutral(self) -> np.ndarray:
        """The position at which the two frames coincide, or come as close as this joint allows."""
        return np.zeros(self.nq)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """A random position within its range, or a random orientation."""
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
        """The position after moving from q with the constant velocity v for the time dt, s."""
        return q + v * dt

    def difference(self, q0: Array, q1: Array) -> Array:
        """The velocity that leads from q0 to q1 within 1 s: integrate(q0, difference(q0, q1)) is q1."""
        return q1 - q0

    def chart_rate(self, u: Array, v: Array) -> Array:
        """u̇ for which integrate(q0, u) moves with the velocity v, whatever q0 is."""
        if self.nq == self.nv:
            return v
        start = self.neutral()
        q = self.integrate(start, u)
        return solve(jacobian(lambda e: self.difference(q, self.integrate(start, u + e)), np.zeros(self.nv)), v)

    def along_velocity(self, u: Array, force: Array) -> Array:
        """The force along v that does the work of a given one along u, where the position is integrate(q0, u)."""
        if self.nq == self.nv:
            return force
        return vjp(lambda v: self.chart_rate(u, v), np.zeros(self.nv), force)

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

    def with_values(self, **values: np.ndarray) -> Self:
        """A copy of this joint with other values, which are not checked: they come from coupler itself."""
        other = copy(self)
        for name, value in values.items():
            value.setflags(write=False)
            object.__setattr__(other, name, value)
        return other

    def __repr__(self) -> str:
        default = {f.name: f.default for f in fields(self)} | {"rest": self.neutral()}
        given = [(name, x) for name, x in attributes_of(self).items() if not _is_equal(x, default.get(name, MISSING))]
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(x)}' for name, x in given)})"


def column(*parts: Array) -> Array:
    """A column of a motion subspace, 6 × 1: its angular and its linear part."""
    return np.concatenate(parts)[:, None]


# The facts about a joint follow from how it moves, and each fact from those before it in its row. Where a subclass
# redefines one of them, the facts behind it that it would inherit are no longer true.
_COORDINATES = ("nq", "nv", "integrate")
_FACTS = (
    (_COORDINATES, ("difference", "chart_rate")),
    (
        (*_COORDINATES, "keep", "placed"),
        ("subspace", "subspace_rate", "residual", "aligned", "form", "axial", "spins", "floats"),
    ),
)
Joint._passive = frozenset(field.name for field in fields(Joint))


@cache
def _check_class(cls: type[Joint]) -> None:
    """Raises a ModelError for a class whose q and v do not fit together: programs would move it wrongly."""
    what, moves = f"{cls.__name__.lower()} joint", ("integrate", "difference", "normalize")
    defined = [name for name in moves if getattr(cls, name) is not getattr(Joint, name)]
    if cls.nq == cls.nv and defined:
        raise ModelError(f"{what}: its v must be q̇, since nq is nv; it cannot have a method {defined[0]!r}")
    if cls.nq != cls.nv and (cls.nq != cls.nv + 1 or cls.nq < 4):
        raise ModelError(
            f"{what}: nq must be nv, or nv + 1 for a q whose last four entries are a unit quaternion; they are "
            f"{cls.nq} and {cls.nv}"
        )
    if cls.nq != cls.nv and (missing := [name for name in moves if name not in defined]):
        raise ModelError(f"{what}: its q holds a quaternion, so it must have a method {missing[0]!r} of its own")


def _is_equal(value: Any, default: Any) -> bool:
    try:
        return np.array_equal(value, np.broadcast_to(np.asarray(default, float), np.shape(value)))
    except (TypeError, ValueError):  # no numbers
        return value is default


def _shown(value: Any) -> str:
    return np.array2string(np.asarray(value), separator=", ") if np.asarray(value).dtype.kind in "bif" else repr(value)
