"""Contact: the problem of one time step, and its solvers."""

from coupler.contact.problem import Bilateral, Block, Bounded, Cone, ContactProblem, Solution, Status, Unilateral
from coupler.contact.residuals import Residual, residual
from coupler.contact.solvers import solve

__all__ = [
    "Bilateral",
    "Block",
    "Bounded",
    "Cone",
    "ContactProblem",
    "Residual",
    "Solution",
    "Status",
    "Unilateral",
    "residual",
    "solve",
]
