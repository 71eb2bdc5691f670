"""Newton steps on the natural map: they make impulses exact once it is clear which contacts touch, stick and slide."""

from __future__ import annotations

import numpy as np

from coupler.contact.problem import ContactProblem
from coupler.contact.residuals import natural_map, reached, residual

_SINGULAR = 1e-13  # of the largest singular value: redundant contacts leave such directions of λ undetermined
_LESS = 0.5  # a step that does not reduce the residual by this factor starts too far from the solution to help


def polished(
    problem: ContactProblem, impulses: np.ndarray, tolerance: float, iterations: int = 10
) -> tuple[np.ndarray, float]:
    """Impulses, and their residual, after semismooth Newton steps on λ − P(λ − r w) = 0.

    Steps continue as long as each halves the residual; if the first does not, the impulses are returned unchanged. Each
    step is the shortest in the sense of least squares, because redundant contacts leave λ undetermined.
    """
    error = residual(problem, impulses).total
    for _ in range(iterations):
        if reached(problem, impulses, error, tolerance):
            break
        F, J = _natural(problem, impulses)
        root = np.sqrt(problem.steps)  # of unknowns and equations of unit mobility
        step = np.linalg.lstsq(J * root / root[:, None], F / root, rcond=_SINGULAR)[0]
        candidate = impulses - root * step
        new = residual(problem, candidate).total
        if not new < _LESS * error:
            break
        impulses, error = candidate, new
    return impulses, error


def _natural(problem: ContactProblem, impulses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F = λ − P(λ − r w), N s, and an element of its generalised derivative with respect to λ."""
    r, one = problem.steps, np.eye(len(impulses))
    target, rates = impulses - r * problem.velocities(impulses), one - r[:, None] * problem.A
    lower, upper = problem.bounds
    J = one - np.where(((lower <= target) & (target <= upper))[:, None], rates, 0.0)
    for cones in problem.cones:
        for coefficients, rows in cones.discs:
            for coefficient, t, n in zip(coefficients, rows.T, cones.rows[0], strict=True):
                pressed = max(impulses[n], 0.0)
                length, radius = float(np.linalg.norm(target[t])), coefficient * pressed
                if length > radius:
                    u = target[t] / length
                    J[t] = one[t] - (radius / length) * (np.eye(len(t)) - np.outer(u, u)) @ rates[t]
                    J[t, n] -= coefficient * u * (pressed > 0.0)
    return r * natural_map(problem, impulses), J
