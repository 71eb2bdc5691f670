"""The contact problem of a step by divide and conquer, O(log n) in depth [002, §3.3].

It is the third way beside the two of formulations.py: each body that may touch is a handle of the robot's assembly, and
one program computes both A and the accelerations without contact. On one processor it takes longer than recursion, but
from some tens of bodies in a row its longest chain of dependent operations is shorter. Limits and dry friction of
joints use the factors of H, as in the recursive way, in linear depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.dca import divide_and_conquer_program
from coupler.compiled import run
from coupler.contact.formulations import Touch, problem_of_bodies
from coupler.contact.pairs import Pair
from coupler.contact.problem import ContactProblem
from coupler.kinematics import frame_place
from coupler.model import Robot


def divide_and_conquer_problem(
    robot: Robot, q: Any, v: Any, tau: Any, step: float, pairs: Sequence[Pair], *, limits: bool = True
) -> tuple[ContactProblem, list[Touch]]:
    """The contact problem by assembly and disassembly of handle equations. [002, eq. 16, 17]

    Arguments and results are those of `traditional_problem`.
    """

    def respond(implicit: Robot, bodies: list[str]) -> tuple[np.ndarray, np.ndarray]:
        return divide_and_conquer(implicit, q, v, tau, bodies)

    return problem_of_bodies(robot, q, v, step, pairs, limits, respond)


def divide_and_conquer(robot: Robot, q: Any, v: Any, tau: Any, frames: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations of independent joints, (..., nv), and J H⁻¹ Jᵀ of frames, (..., 6 frames, 6 frames).

    Arguments are those of `forward_dynamics` and `inverse_osim`, which give the same results.
    """
    a, omega = run(robot, _program, q, v, tau, options=tuple(frames))
    size = 6 * len(frames)
    return a, omega.reshape(*omega.shape[:-1], size, size)


def _program(robot: Robot, *frames: str) -> Any:
    return divide_and_conquer_program(robot, [frame_place(robot, frame) for frame in frames])
