"""Which contacts act in a step, in NumPy with whole matrices: the reference for contact/step/passing_program.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact, forces_on
from coupler.contact.damping import damped
from coupler.contact.formulations import Touch, first_rows, poses_of_shapes
from coupler.contact.passing import (
    MOST_ADVANCES,
    Shift,
    advanced,
    advanced_among,
    can_pass,
    closing_speed,
    is_searched,
    nearest,
    on_field,
    seen_around,
    shifted,
    slop,
    too_fast,
)
from coupler.contact.problem import ContactProblem
from coupler.contact.solution import Solution, Status
from coupler.inertia import mass_matrix_solve
from coupler.kinematics import frame_jacobian
from coupler.model import Robot, Shape

_ROUNDS = 30
Solve = Callable[..., Solution]


class PassingRounds:
    """The contact problem of a step in which shapes may pass each other, and its solution.

    Attributes:
        touches: the candidate contacts; acting ones are moved to where their shapes meet.
        rows: (rows, nv), J of all rows, with those of moved contacts.
        closures: (contacts,), gaps over the step, m/s, with those of moved contacts.
        problem: the problem, with the moved contacts.
        active: the blocks that take part in it.
    """

    def __init__(
        self,
        robot: Robot,
        q: np.ndarray,
        free: np.ndarray,
        step: float,
        touches: Sequence[Touch],
        rows: np.ndarray,
        closures: np.ndarray,
    ) -> None:
        """Finds the contacts whose shapes may pass each other.

        Args:
            robot, q: the robot and its configuration.
            free: (nv,), velocities after the step without contact.
            step: h, s.
            touches, rows, closures: as before the step; see the attributes.
        """
        self._robot, self._q, self._free, self._step = robot, q, free, step
        self.touches, self.rows, self.closures = list(touches), rows.copy(), closures.copy()
        self._first, self._poses = first_rows(touches), poses_of_shapes(robot, q, [touch.pair for touch in touches])
        self._doubtful = [k for k, touch in enumerate(touches) if can_pass(touch.pair)]
        self._near = [touch.contact.gap <= slop(step) for touch in touches]

    def solve(self, problem: ContactProblem, solve: Solve, start: np.ndarray | None, tolerance: float) -> Solution:
        """The impulses of all rows.

        Args:
            problem: the problem of all contacts, as they are before the step.
            solve: solves a part of the problem.
            start: impulses of the previous step; if None, contacts that touch count as pressed in it.
            tolerance: by how much contacts may violate their laws, m/s.
        """
        H, joints = damped(self._robot, self._step), problem.b - self.rows @ self._free
        pressed = self._near if start is None else [start[i] > 0.0 for i in self._first]
        active = [k for k in range(len(problem.blocks)) if k not in self._doubtful or pressed[k]]
        solution = solved_part(problem, active, solve, start)
        self.problem, fast = problem, self._too_fast(self._free)
        for _ in range(_ROUNDS):
            v = self._free + mass_matrix_solve(H, self._q, self.rows.T @ solution.impulses)
            waiting = self._waiting(solution.velocities, active, tolerance)
            waiting = self._with_others_listed_anew([*waiting, *(k for k in fast if k not in active)], active)
            waiting = [k for k in waiting if self._meets(k, v)]
            if moved := [k for k in waiting if not self._near[k]]:
                b = self.rows @ self._free + joints
                for k in moved:
                    rows = slice(self._first[k], self._first[k] + 3)
                    b[rows] = self.rows[rows] @ self._free
                    b[self._first[k]] += self.closures[k]
                joints = b - self.rows @ self._free
                answer = mass_matrix_solve(H, self._q, self.rows)
                problem = self.problem = ContactProblem(self.rows @ answer.T, b, problem.blocks)
                w = problem.A @ solution.impulses + b
                waiting = [k for k in waiting if w[self._first[k]] < -tolerance]
            if not waiting:
                break
            touching = [k for k in waiting if self._near[k]]
            active = sorted({*active, *(touching or waiting)})
            solution = solved_part(problem, active, solve, start)
        self.active = active
        return solution

    def _waiting(self, w: np.ndarray, active: Sequence[int], tolerance: float) -> list[int]:
        return [k for k in self._doubtful if k not in active and w[self._first[k]] < -tolerance]

    def _too_fast(self, v: np.ndarray) -> list[int]:
        """Contacts with height fields whose shapes may leave the searched ground within the step."""
        too_fast_ones = []
        for k in self._doubtful:
            forms = (pair := self.touches[k].pair).one.geometry, pair.other.geometry
            if on_field(*forms):
                shifts = [self._shift(shape, v) for shape in (pair.one, pair.other)]
                too_fast_ones += [k] if too_fast(shifts[0], shifts[1], seen_around(*forms), self._step) else []
        return too_fast_ones

    def _with_others_listed_anew(self, waiting: Sequence[int], active: Sequence[int]) -> list[int]:
        """Waiting contacts, and the others of their pairs if the contacts of the pair are not a fixed list."""
        forms = [((pair := self.touches[k].pair), pair.one.geometry, pair.other.geometry) for k in waiting]
        asked = [pair for pair, *both in forms if on_field(*both) or is_searched(*both)]
        others = [k for k in self._doubtful if k not in active and any(self.touches[k].pair is pair for pair in asked)]
        return sorted({*waiting, *others})

    def _meets(self, k: int, v: np.ndarray) -> bool:
        """Whether the shapes of a contact meet within the step; if it was open, it is moved to where they meet."""
        pair = self.touches[k].pair
        one, other = (self._shift(shape, v) for shape in (pair.one, pair.other))
        t, meeting, contacts = 0.0, True, list[Contact]()
        for _ in range(MOST_ADVANCES):
            contacts = shifted(one, other, t)
            if on_field(one.form, other.form):
                around = seen_around(one.form, other.form)
                later, passes, meeting = advanced_among(t, one, other, contacts, self._step, around)
            else:
                gap, normal = nearest(one, other, t, contacts)
                later, passes, meeting = advanced(t, gap, closing_speed(one, other, normal), self._step)
            if passes or meeting:
                break
            t, meeting = float(later), True
        if meeting and contacts and not self._near[k]:
            number = [i for i, touch in enumerate(self.touches) if touch.pair is pair].index(k)
            self._move(k, contacts[number], t, v, (one, other))
        return bool(meeting)

    def _move(self, k: int, contact: Contact, t: float, v: np.ndarray, shifts: tuple[Shift, Shift]) -> None:
        pair = self.touches[k].pair
        rows = pair.cone.size
        J_contact = np.zeros((rows, self._robot.nv))
        for shape, shift, sign in zip((pair.one, pair.other), shifts, (1.0, -1.0), strict=True):
            if shift.linear is not None:
                at = replace(contact, point=contact.point - t * shift.velocity(t, contact.point))
                J = frame_jacobian(self._robot, self._q, shape.body)
                J_contact += sign * forces_on(self._poses[shape.body], at, rows).T @ J
        i, gap = self._first[k], float(contact.gap - t * J_contact[0] @ v)
        self.rows[i : i + rows], self.closures[k] = J_contact, gap / self._step
        self.touches[k] = Touch(pair, replace(contact, gap=gap))

    def _shift(self, shape: Shape, v: np.ndarray) -> Shift:
        if not self._robot.tree.place[shape.body][0]:
            return Shift(shape.geometry, shape.at @ self._poses[shape.body])
        velocity: Any = frame_jacobian(self._robot, self._q, shape.body) @ v
        return Shift.on_link(shape.geometry, shape.at, self._poses[shape.body], velocity)


def solved_part(problem: ContactProblem, active: Sequence[int], solve: Solve, start: np.ndarray | None) -> Solution:
    """The solution of a problem with only the active blocks; the others have no impulses."""
    impulses, starts = np.zeros(len(problem.b)), problem.starts
    if len(active) == len(problem.blocks):
        return solve(problem, start=start)
    if not active:
        return Solution(impulses, problem.b.copy(), 0.0, 0, Status.SOLVED)
    rows = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in active])
    part = ContactProblem(problem.A[np.ix_(rows, rows)], problem.b[rows], [problem.blocks[k] for k in active])
    solution = solve(part, start=None if start is None else start[rows])
    impulses[rows] = solution.impulses
    return replace(solution, impulses=impulses, velocities=problem.A @ impulses + problem.b)
