"""The contact problem of one time step, its laws and its solvers."""

from coupler.contact.problem import Bilateral, Block, Bounded, Cone, ContactProblem, Unilateral
from coupler.contact.residuals import Residual, residual
from coupler.contact.solution import Solution, Status
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
