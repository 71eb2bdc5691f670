"""How far impulses are from satisfying the laws of a contact problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.contact.laws import cone_error, inside_cone, interval_error
from coupler.contact.problem import ContactProblem

_ROUNDING = 4.0 * np.finfo(float).eps  # of the terms of A λ + b: how much their sum may be off by rounding
_LARGEST_ROUNDING = 1e-6  # of b: impulses so large that rounding exceeds this are out of proportion, and no solution


@dataclass(frozen=True)
class Residual:
    """The largest errors over all rows, as velocities: m/s, or rad/s in rows of spin and rolling.

    Attributes:
        cone: how far λ is outside its bounds.
        complementarity: the error of normals, limits, bounds and bilateral rows.
        dissipation: the error of rows of friction.
    """

    cone: float
    complementarity: float
    dissipation: float

    @property
    def total(self) -> float:
        """The largest of the three."""
        return max(self.cone, self.complementarity, self.dissipation)


def residual(problem: ContactProblem, impulses: np.ndarray) -> Residual:
    """The residual of the natural map of a contact problem: zero if and only if λ solves the problem.

    It is |λ − P(λ − r w)| / r, a velocity for each row (see laws.py), where r = `problem.steps`, the inverse
    mobilities. For a normal that is |min(λ_n / r, w_n)|, where λ_n / r is the velocity that λ_n alone would cause. The
    two rows of a disc count as one vector. The violation of cones and bounds is |λ − P(λ)| / r.
    """
    outside = problem.mobilities * (impulses - _admissible(problem, impulses))
    natural = natural_map(problem, impulses)
    return Residual(
        cone=_largest(problem, outside),
        complementarity=_largest(problem, np.where(problem.frictional, 0.0, natural)),
        dissipation=_largest(problem, np.where(problem.frictional, natural, 0.0)),
    )


def natural_map(problem: ContactProblem, impulses: np.ndarray) -> np.ndarray:
    """(λ − P(λ − r w)) / r of all rows, (n,): zero if and only if λ solves the problem."""
    w, m = problem.velocities(impulses), problem.mobilities
    errors = interval_error(m, *problem.bounds, impulses, w)
    for cones in problem.cones:
        rows = cones.rows
        errors[rows] = cone_error(cones.friction, cones.by_disc(m), impulses[rows], w[rows])
    return errors


def reached(problem: ContactProblem, impulses: np.ndarray, error: float, tolerance: float) -> bool:
    """Whether a residual is within a tolerance, or due to rounding alone: 4 ε (|A| |λ| + |b|), at most 1e-6 |b|."""
    if error <= tolerance:
        return True
    size = np.abs(problem.b)
    terms = np.abs(problem.A) @ np.abs(impulses) + size
    return bool(error <= min(_ROUNDING * terms.max(), _LARGEST_ROUNDING * size.max()))


def _admissible(problem: ContactProblem, impulses: np.ndarray) -> np.ndarray:
    """Impulses moved into their bounds, and friction into the bounds that the normals give it."""
    nearest = np.clip(impulses, *problem.bounds)
    for cones in problem.cones:
        nearest[cones.rows] = inside_cone(cones.friction, impulses[cones.rows])
    return nearest


def _largest(problem: ContactProblem, errors: np.ndarray) -> float:
    """The largest error of all rows; the two rows of a disc count as one vector."""
    pairs = [np.hypot(*errors[rows]) for cones in problem.cones for _, rows in cones.discs if len(rows) == 2]
    return float(max(part.max(initial=0.0) for part in (np.abs(errors), *pairs)))
