"""One step of a robot with contact, by semi-implicit Euler, in NumPy: what faster steppers are compared with.

    v⁺ = v + h a + H⁻¹ Jᵀ λ,    q⁺ = q ⊕ h v⁺,

with the accelerations a without contact and the impulses λ of the step's contact problem [002, §2.3]. A floating body
moves along a straight line of the world within a step and its momentum is what impulses make of it, to the last digits,
although its velocity is kept along its own axes. Gaps count at position level [002, eq. 4a]: what would close within
the step is stopped where it closes. Loops stay closed, because q moves along the robot's own coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.formulations import Touch, contact_rows, floating, recursive_problem, unimpeded
from coupler.contact.pairs import Pair
from coupler.contact.problem import ContactProblem, Solution
from coupler.contact.solvers import solve
from coupler.inertia import mass_matrix_solve
from coupler.model import Robot
from coupler.rotation import matrix_from_quaternion

__all__ = ["Stepped", "contact_step"]

Formulation = Callable[..., tuple[ContactProblem, list[Touch]]]


@dataclass(frozen=True, eq=False)
class Stepped:
    """What a step leads to.

    Attributes:
        q, v: the state after it.
        touches: the candidate contacts before it.
        solution: impulses, three for each contact (normal and two tangents, N s), with residual and iterations.
    """

    q: np.ndarray
    v: np.ndarray
    touches: list[Touch]
    solution: Solution

    def force(self, step: float) -> np.ndarray:
        """The sum of all contact forces on the first bodies of their pairs, 3, along the world's axes, N."""
        impulses = self.solution.impulses.reshape(-1, 3)
        parts = [touch.contact.frame.T @ own for touch, own in zip(self.touches, impulses, strict=True)]
        return sum(parts, np.zeros(3)) / step


def contact_step(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    step: float,
    pairs: Sequence[Pair],
    *,
    formulation: Formulation = recursive_problem,
    method: str = "bisection",
    start: np.ndarray | None = None,
    **options: Any,
) -> Stepped:
    """Moves a robot by one step.

    Args:
        robot: which.
        q, v: one state.
        tau: (nv,), forces at independent joints, held over the step.
        step: h, s.
        pairs: what may touch, from `pairs_of`.
        formulation: how the contact problem is set up.
        method: how it is solved, and `options` of that solver; see `solve`.
        start: impulses to start from, such as those of the step before.
    """
    problem, found = formulation(robot, q, v, tau, step, pairs)
    solution = solve(problem, method, start=start, **options)
    J = contact_rows(robot, q, found)
    moved = unimpeded(robot, q, v, tau, step) + mass_matrix_solve(robot, q, J.T @ solution.impulses)
    return Stepped(*_moved(robot, np.asarray(q, dtype=float), moved, step), found, solution)


def _moved(robot: Robot, q: np.ndarray, v: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """The state after moving with v, which is seen along the axes before the step: floating bodies go straight."""
    q_next, v_next = robot.integrate(q, v, step), v.copy()
    for joint in floating(robot):
        place, own = robot.q_slice(joint), robot.v_slice(joint)
        before, after = (matrix_from_quaternion(x[place][3:]) for x in (q, q_next))
        shift = before @ v[own][3:]
        q_next[place][:3] = q[place][:3] + step * shift
        v_next[own][3:] = after.T @ shift
    return q_next, v_next
