"""Newton's steps on the natural map: they make impulses exact once it is known what touches, sticks and slides."""

from __future__ import annotations

import numpy as np

from coupler.contact.problem import ContactProblem
from coupler.contact.residuals import reached, residual

__all__ = ["polished"]


def polished(
    problem: ContactProblem, impulses: np.ndarray, tolerance: float, most: int = 10
) -> tuple[np.ndarray, float]:
    """Impulses, and their residual, after steps of semismooth Newton on λ − P(λ − r w) = 0.

    Steps are taken for as long as each lessens the residual by half; none if the first does not. They are the
    shortest, by least squares, since redundant contacts leave λ undetermined.
    """
    error = residual(problem, impulses).total
    for _ in range(most):
        if reached(problem, impulses, error, tolerance):
            break
        F, J = _natural(problem, impulses)
        root = np.sqrt(problem.steps)  # of unknowns and equations of unit mobility
        step = np.linalg.lstsq(J * root / root[:, None], F / root, rcond=1e-13)[0]
        candidate = impulses - root * step
        new = residual(problem, candidate).total
        if not new < 0.5 * error:
            break
        impulses, error = candidate, new
    return impulses, error


def _natural(problem: ContactProblem, impulses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """F = λ − P(λ − r w), N s, and one of its derivatives by λ."""
    A, r, one = problem.A, problem.steps, np.eye(len(impulses))
    w = problem.velocities(impulses)
    target = impulses - r * w
    lower, upper = problem.bounds
    nearest = np.clip(target, lower, upper)
    F, J = impulses - nearest, np.where((nearest == target)[:, None], r[:, None] * A, one)
    pressed = np.maximum(impulses[problem.normals], 0.0)
    for k, (n, t) in enumerate(zip(problem.normals, problem.tangents, strict=True)):
        length, radius = float(np.hypot(*target[t])), float(problem.friction[k] * pressed[k])
        if length > radius:
            u = target[t] / length
            F[t] = impulses[t] - radius * u
            across = np.eye(2) - np.outer(u, u)
            J[t] = one[t] - (radius / length) * across @ (one[t] - r[t, None] * A[t])
            J[t, n] -= problem.friction[k] * u * (pressed[k] > 0.0)
    for k, s in zip(problem.spinning, problem.spins, strict=True):
        bound = problem.torsion[k] * pressed[k]
        if abs(target[s]) > bound:
            side = np.sign(target[s])
            F[s] = impulses[s] - side * bound
            J[s] = one[s]
            J[s, problem.normals[k]] -= side * problem.torsion[k] * (pressed[k] > 0.0)
    return F, J
