"""The solvers of contact problems, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.problem import ContactProblem
from coupler.contact.solution import TOLERANCE, Solution
from coupler.contact.solvers import admm, bisection, cascade, gauss_seidel, lemke
from coupler.model.errors import ModelError

SOLVERS: dict[str, Callable[..., Solution]] = {
    "admm": admm.solve,
    "bisection": bisection.solve,
    "cascade": cascade.solve,
    "gauss_seidel": gauss_seidel.solve,
    "lemke": lemke.solve,
}


def solve(
    problem: ContactProblem,
    method: str = "bisection",
    *,
    start: np.ndarray | None = None,
    tolerance: float = TOLERANCE,
    **options: Any,
) -> Solution:
    """Solves a contact problem.

    Args:
        problem: the contact problem.
        method: "bisection" (solves each contact exactly; the first choice), "gauss_seidel" (cheap sweeps), "admm" (for
            redundant contacts and large mass ratios), "lemke" (pivots, on polyhedral cones) or "cascade" (the solver of
            the compiled step).
        start: impulses to start from, N s, such as those of the step before; zeros if None.
        tolerance: the residual to reach, m/s.
        options: `iterations`, the largest number of iterations, and further options of the method.

    Raises:
        ModelError: for an unknown method or impossible options.
    """
    if method not in SOLVERS:
        raise ModelError(f"contact problem: method must be one of {', '.join(map(repr, SOLVERS))}, got {method!r}")
    return SOLVERS[method](problem, start=start, tolerance=tolerance, **options)
