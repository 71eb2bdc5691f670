"""The contact problem of one time step.

After a step of length h, the relative velocities in the rows of all contacts, limits and constraints are

    w = A λ + b,

where λ are the impulses over the step (N s), A = J M⁻¹ Jᵀ the inverse operational-space inertia (1/kg), symmetric and
positive semidefinite, and b the velocities without impulses (m/s). A gap g enters the normal's entry of b as g/h [002,
eq. 4a]. Each block of rows has a law that relates its part of w to its part of λ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from coupler.contact.laws import discs, larger_eigenvalue, row_count
from coupler.forks import cached_property
from coupler.grouping import grouped
from coupler.model.errors import ModelError

_ROUNDING = 1e-9  # of A's largest diagonal entry: by how much A may fail to be symmetric and semidefinite
_NEGATIVE = 1e-12  # likewise: a diagonal entry below −this is an error; between that and zero, it is rounding
_IMMOBILE = 1e-14  # of the largest mobility: rows with less are moved by rounding alone
_UNBOUNDED = 1e8  # impulses this many times as large as b calls for count as infinite
_ZERO_VELOCITY = 1e-12  # of b: what counts as no velocity in a proof of infeasibility


@dataclass(frozen=True)
class Cone:
    """A contact with Coulomb friction: rows of the normal n, two tangents t, and perhaps of rotation.

    0 ≤ w_n ⊥ λ_n ≥ 0, and λ_t dissipates most among |λ_t| ≤ µ λ_n: it opposes w_t and is at its bound if w_t ≠ 0. With
    torsion, the row of the spin s about n has a bound of its own, |λ_s| ≤ torsion · λ_n, which λ_s reaches, opposing
    w_s, if w_s ≠ 0. With rolling friction, so do the two rows of the rotation r about the tangents, |λ_r| ≤ rolling ·
    λ_n; there is then a row of spin, too.

    Attributes:
        friction: µ.
        torsion, rolling: m; None for no such rows.
    """

    friction: float
    torsion: float | None = None
    rolling: float | None = None

    @property
    def coefficients(self) -> tuple[float, ...]:
        """The coefficient of each disc of friction; see laws.py."""
        if self.rolling is not None:
            return self.friction, 0.0 if self.torsion is None else self.torsion, self.rolling
        return (self.friction,) if self.torsion is None else (self.friction, self.torsion)

    @property
    def size(self) -> int:
        """The number of rows."""
        return row_count(self.coefficients)


@dataclass(frozen=True)
class Unilateral:
    """A contact without friction, or a joint limit: 0 ≤ w ⊥ λ ≥ 0."""

    size = 1


@dataclass(frozen=True)
class Bounded:
    """Dry friction of a joint: lower ≤ λ ≤ upper; w = 0 between the bounds, w ≥ 0 at the lower, w ≤ 0 at the upper.

    So λ opposes w. The bounds are impulses, the length of the step times the joint's friction; they may be infinite.
    """

    lower: float
    upper: float
    size = 1


@dataclass(frozen=True)
class Bilateral:
    """A constraint that holds both ways: w = 0, λ free."""

    size = 1


Block = Cone | Unilateral | Bounded | Bilateral


@dataclass(frozen=True, eq=False)
class Cones:
    """Cones of a problem with equally many rows, as arrays for the functions of laws.py.

    Attributes:
        rows: (3, m), the rows of m normals, first and second tangents; (4, m), with those of spin; or (6, m), with
            those of rolling.
        friction: for each disc its coefficients, (m,).
    """

    rows: np.ndarray
    friction: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, starts: Sequence[int], cones: Sequence[Cone]) -> Cones:
        """The cones that start at these rows."""
        friction = zip(*(cone.coefficients for cone in cones), strict=True)
        rows = np.array(starts) + np.arange(cones[0].size)[:, None]
        return cls(rows, tuple(np.array(coefficients, float) for coefficients in friction))

    @property
    def discs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each disc its coefficients, (m,), and its rows, (1 or 2, m)."""
        return [(coefficients, self.rows[rows]) for coefficients, rows in discs(self.friction)]

    def by_disc(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of the normals and of each disc, from those of all rows; both rows of a disc have the same one."""
        return [values[self.rows[0]], *(values[rows[0]] for _, rows in self.discs)]


@dataclass(frozen=True, eq=False)
class ContactProblem:
    """w = A λ + b under the laws of blocks, whose rows follow each other in order.

    Args:
        A: (n, n), symmetric positive semidefinite, 1/kg; 1/(kg m²) for rows of spin and rolling.
        b: (n,), m/s.
        blocks: the laws, with n rows in total.

    Attributes:
        starts: the first row of each block, and n.

    Raises:
        ModelError: for a wrong shape or size, a NaN, an A that cannot be semidefinite, or a meaningless block.
    """

    A: np.ndarray
    b: np.ndarray
    blocks: Sequence[Block]
    starts: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "blocks", tuple(self.blocks))
        for k, block in enumerate(self.blocks):
            _check_block(k, block)
        put(self, "starts", (0, *np.cumsum([block.size for block in self.blocks], dtype=int).tolist()))
        n = self.starts[-1]
        put(self, "A", _array("A", self.A, (n, n)))
        put(self, "b", _array("b", self.b, (n,)))
        self._check()
        put(self, "A", 0.5 * (self.A + self.A.T))
        np.fill_diagonal(self.A, np.maximum(self.A.diagonal(), 0.0))  # rounding makes some immobile rows negative

    def _check(self) -> None:
        A, b = self.A, self.b
        bad = ~np.isfinite(b) | ~np.isfinite(A).all(axis=1)
        if bad.any():
            raise ModelError(f"contact problem: {self.name(bad.argmax())}: A and b must be finite")
        diagonal = A.diagonal()
        largest = diagonal.max(initial=0.0)
        slack = _ROUNDING * largest
        if (diagonal < -_NEGATIVE * largest).any():
            raise ModelError(f"contact problem: {self.name(diagonal.argmin())}: its diagonal entry of A is negative")
        odd = np.abs(A - A.T) > slack
        if odd.any():
            raise ModelError(f"contact problem: {self.name(odd.any(axis=1).argmax())}: A must be symmetric")
        root = np.sqrt(np.maximum(diagonal, 0.0))
        odd = np.abs(A) > np.outer(root, root) * (1.0 + _ROUNDING) + slack
        if odd.any():
            raise ModelError(
                f"contact problem: {self.name(odd.any(axis=1).argmax())}: A must be positive semidefinite: |A_ij| may "
                "not exceed √(A_ii A_jj)"
            )

    def name(self, row: Any) -> str:
        """The block of a row, for messages."""
        k = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"block {k} ({type(self.blocks[k]).__name__}), row {int(row)}"

    @property
    def rows(self) -> list[slice]:
        """The rows of each block."""
        return [slice(i, j) for i, j in zip(self.starts, self.starts[1:], strict=False)]

    def velocities(self, impulses: np.ndarray) -> np.ndarray:
        """w = A λ + b, m/s."""
        return self.A @ impulses + self.b

    def start(self, impulses: Any) -> np.ndarray:
        """A copy of impulses to start from; zeros for None."""
        if impulses is None:
            return np.zeros(len(self.b))
        impulses = _array("start", impulses, self.b.shape)
        if not np.isfinite(impulses).all():
            raise ModelError("contact problem: start must be finite, and is not")
        return impulses

    @cached_property
    def cones(self) -> list[Cones]:
        """The cones, grouped by their number of rows."""
        cones = [(i, cone) for i, cone in zip(self.starts, self.blocks, strict=False) if isinstance(cone, Cone)]
        by_size = grouped(cones, lambda cone: cone[1].size)
        return [Cones.of(*zip(*by_size[size], strict=True)) for size in sorted(by_size)]

    @cached_property
    def frictional(self) -> np.ndarray:
        """(n,) of bool: whether each row is one of friction."""
        which = np.zeros(len(self.b), bool)
        for cones in self.cones:
            which[cones.rows[1:]] = True
        return which

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest impulse of each row, (n,) each; rows of friction are unbounded here."""
        pairs = []
        for block in self.blocks:
            match block:
                case Cone():
                    pairs += [(0.0, inf)] + [(-inf, inf)] * (block.size - 1)
                case Unilateral():
                    pairs.append((0.0, inf))
                case Bounded(lower, upper):
                    pairs.append((lower, upper))
                case Bilateral():
                    pairs.append((-inf, inf))
        lower, upper = np.array(pairs, float).reshape(-1, 2).T
        return lower, upper

    @cached_property
    def mobilities(self) -> np.ndarray:
        """(n,): the mobility of each row, 1/kg: A_ii; for both rows of a disc, the larger eigenvalue of their block.

        A row that no impulse can move gets the mean mobility of the others.
        """
        mobility = self.A.diagonal().copy()
        for x, y in (rows for cones in self.cones for _, rows in cones.discs if len(rows) == 2):
            mobility[[x, y]] = larger_eigenvalue(mobility[x], self.A[x, y], mobility[y])
        fixed = mobility <= _IMMOBILE * mobility.max(initial=0.0)
        mobility[fixed] = mobility[~fixed].mean() if not fixed.all() else 1.0
        return mobility

    @cached_property
    def steps(self) -> np.ndarray:
        """(n,): the inverse mobility of each row, kg."""
        return 1.0 / self.mobilities

    def proven_infeasible(self, direction: np.ndarray) -> bool:
        """Whether a direction y proves that no impulses satisfy the laws of normals, limits and constraints.

        By Farkas' lemma: if A y = 0, and y ≥ 0 where w ≥ 0 is required, then yᵀw = yᵀb for every λ; if that is
        negative, some entry of w is. In floats A y is not quite zero, and the proof is that impulses would have to be
        1e8 times as large as b calls for. Entries of y for friction, which prove nothing, are left out.
        """
        lower, upper = self.bounds
        y = np.clip(direction, np.where(np.isfinite(lower), 0.0, -inf), np.where(np.isfinite(upper), 0.0, inf))
        y[self.frictional] = 0.0
        root = np.sqrt(self.steps)  # of kg: rows of unit mobility
        Ay, size = root * (self.A @ y), np.linalg.norm(root * self.b)
        least = _UNBOUNDED * np.linalg.norm(Ay) + _ZERO_VELOCITY * np.linalg.norm(y / root)
        return bool(-self.b @ y > size * least)


def _array(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        values = np.array(values, float)
    except (TypeError, ValueError) as error:
        raise ModelError(f"contact problem: {name} must be numbers") from error
    if values.shape != shape:
        raise ModelError(f"contact problem: {name} has shape {values.shape}; the blocks' rows make it {shape}")
    return values


def _check_block(k: int, block: object) -> None:
    match block:
        case Cone(friction, torsion, rolling):
            for name, value in (("friction", friction), ("torsion", torsion or 0.0), ("rolling", rolling or 0.0)):
                if not 0.0 <= value < inf:
                    raise ModelError(f"contact problem: block {k} (Cone): {name} {value} must be finite, 0 or more")
        case Bounded(lower, upper):
            if not (lower <= upper and lower < inf and upper > -inf):
                raise ModelError(
                    f"contact problem: block {k} (Bounded): lower {lower} and upper {upper} must be in order"
                )
        case Unilateral() | Bilateral():
            pass
        case _:
            raise ModelError(f"contact problem: block {k} is a {type(block).__name__}, not a block such as Cone(0.5)")
