"""The solvers of contact problems, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.problem import ContactProblem, Solution
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
    tolerance: float = 1e-10,
    **options: Any,
) -> Solution:
    """Solves a contact problem.

    Args:
        problem: The contact problem.
        method: "bisection" (exact contact by contact; the first choice), "gauss_seidel" (cheap sweeps), "admm" (for
            redundant contacts and large mass ratios) or "lemke" (pivots, on polyhedral cones).
        start: Impulses to start from, N s, such as those of the step before; zeros for None.
        tolerance: The residual to reach, m/s.
        options: `most`, the number of iterations; others of the method's own.
    """
    if method not in SOLVERS:
        raise ModelError(f"contact problem: there is no method {method!r}; there are {', '.join(map(repr, SOLVERS))}")
    return SOLVERS[method](problem, start=start, tolerance=tolerance, **options)
