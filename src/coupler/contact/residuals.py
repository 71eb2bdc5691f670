"""How far impulses are from obeying the laws of a contact problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coupler.contact.problem import ContactProblem

__all__ = ["Residual", "reached", "residual"]


@dataclass(frozen=True)
class Residual:
    """The largest errors over all rows, as velocities (m/s; rad/s of spin rows)."""

    cone: float  # how far λ is outside its bounds
    complementarity: float  # of normals, limits, bounds and bilateral rows
    dissipation: float  # of rows of friction

    @property
    def total(self) -> float:
        return max(self.cone, self.complementarity, self.dissipation)


def residual(problem: ContactProblem, impulses: np.ndarray) -> Residual:
    """The natural map's residual of a contact problem: zero if and only if λ solves it.

    The laws of all blocks read λ = P(λ − r w), with P the nearest point of what is admissible: λ_n ≥ 0, the disc of
    radius µ max(λ_n, 0), or an interval. With r = `problem.steps`, the inverse mobilities, |λ − P(λ − r w)| / r is a
    velocity of the row: for a normal it is |min(λ_n / r, w_n)|, where λ_n / r is the velocity that λ_n alone makes.
    Tangents count by the length of their pair. The violation of cones and bounds is |λ − P(λ)| / r.
    """
    r = problem.steps
    moved = impulses - r * problem.velocities(impulses)
    outside = (impulses - _admissible(problem, impulses, impulses)) / r
    natural = (impulses - _admissible(problem, moved, impulses)) / r
    return Residual(
        cone=_largest(problem, outside),
        complementarity=_largest(problem, np.where(problem.frictional, 0.0, natural)),
        dissipation=_largest(problem, np.where(problem.frictional, natural, 0.0)),
    )


def reached(problem: ContactProblem, impulses: np.ndarray, error: float, tolerance: float) -> bool:
    """Whether a residual is within a tolerance, or is no more than rounding: 4 ε (|A| |λ| + |b|), at most 1e-6 |b|."""
    if error <= tolerance:
        return True
    size = np.abs(problem.b)
    terms = np.abs(problem.A) @ np.abs(impulses) + size
    return bool(error <= min(4.0 * np.finfo(float).eps * terms.max(), 1e-6 * size.max()))


def _admissible(problem: ContactProblem, target: np.ndarray, impulses: np.ndarray) -> np.ndarray:
    """The nearest admissible impulses to a target, each on its own, friction's bounds being those of given normals."""
    nearest = np.clip(target, *problem.bounds)
    pressure = np.maximum(impulses[problem.normals], 0.0)
    t = target[problem.tangents]
    length, radius = np.hypot(t[:, 0], t[:, 1]), problem.friction * pressure
    scale = np.divide(radius, length, out=np.ones_like(length), where=length > radius)
    nearest[problem.tangents] = scale[:, None] * t
    bound = (problem.torsion * pressure)[problem.spinning]
    nearest[problem.spins] = np.clip(target[problem.spins], -bound, bound)
    return nearest


def _largest(problem: ContactProblem, errors: np.ndarray) -> float:
    """The largest error of all rows, tangents by pairs."""
    t = errors[problem.tangents]
    return float(max(np.abs(errors).max(initial=0.0), np.hypot(t[:, 0], t[:, 1]).max(initial=0.0)))
