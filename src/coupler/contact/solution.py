"""What a solver of contact problems returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

TOLERANCE = 1e-10  # m/s: the residual that solvers of whole problems reach if no other is asked for
ENOUGH = 10.0  # times the tolerance that a step aims at: what it leaves within that counts as solved


class Status(Enum):
    """The outcome of a solver."""

    SOLVED = "solved"
    LIMIT = "the iterations are spent"
    INFEASIBLE = "no impulses keep the laws"
    RAY = "pivots ended without a solution, on a ray or by rounding, and none is ruled out"


@dataclass(frozen=True, eq=False)
class Solution:
    """Impulses λ (n,) in N s, velocities w = A λ + b (n,) in m/s, and how good they are.

    `residual` is that of the laws themselves, true cones included, whatever the solver did (see `residual`).
    """

    impulses: np.ndarray
    velocities: np.ndarray
    residual: float
    iterations: int
    status: Status
