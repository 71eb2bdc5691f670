"""Impacts that rebound, in NumPy with whole matrices: the reference for contact/step/impact.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coupler.contact.formulations import Touch, first_rows
from coupler.contact.problem import Block, ContactProblem, Unilateral
from coupler.contact.restitution import (
    RESTING_SPEED,
    Restitution,
    energy_parts,
    energy_scale,
    hits,
    impact_coefficients,
    impact_impulse,
    takes_part,
)
from coupler.contact.solution import Solution
from coupler.contact.step.impact_kernels import MOST_ROUNDS

_INELASTIC = Restitution(0.0)


class ImpactRounds:
    """The impacts at the end of a step.

    Args:
        problem: the problem of the step, without gaps in b: all rows at velocity level.
        closed: the solution of the problem with gaps, which has closed them.
        contacts: the contacts of the first rows.
        approach: (rows,), velocities before the step, m/s.
        closures: (contacts,), gaps as they count, over the step, m/s.
        lag: the number of steps by which velocities are behind positions.
    """

    def __init__(
        self,
        problem: ContactProblem,
        closed: Solution,
        contacts: Sequence[Touch],
        approach: np.ndarray,
        closures: np.ndarray,
        lag: float,
    ) -> None:
        self._problem, self._contacts, self._approach, self._lag = problem, contacts, approach, lag
        self._laws = [touch.pair.restitution or _INELASTIC for touch in contacts]
        self._first, self._closures = first_rows(contacts), closures
        mobile = (closed.impulses > 0.0) & (problem.A.diagonal() * closed.impulses > closed.velocities)
        self._pressed = [k for k, i in enumerate(self._first) if mobile[i]]
        self._held = self._rows_of_joints(closed)

    def total(self, solve: Callable[[ContactProblem], Solution]) -> np.ndarray | None:
        """(rows,): the impulses of all rounds; None if no contact approaches fast enough for an impact."""
        problem, impulses, settles = self._problem, np.zeros(len(self._problem.b)), False
        for number in range(MOST_ROUNDS):
            before = problem.A @ impulses + problem.b
            hit = any(self._hits(k, before) for k in self._pressed)
            if number == 0 and not hit:
                return None
            if settles or not any(before[self._first[k]] < -RESTING_SPEED for k in self._pressed):
                break
            settles = not hit or number == MOST_ROUNDS - 1
            after, e = self._round(solve, impulses, before, number == 0, settles)
            impulses = self._without_gain(impulses, before, after, e)
        return impulses

    def _round(
        self,
        solve: Callable[[ContactProblem], Solution],
        given: np.ndarray,
        came: np.ndarray,
        first: bool,
        settles: bool,
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """All impulses after one more round, and e of the contacts in it; impulses of joints are solved for again."""
        blocks, starts = self._problem.blocks, self._problem.starts
        hit = [k for k in self._pressed if takes_part(self._laws[k].elastic, came[self._first[k]], settles)]
        e = {k: self._coefficients(k, came, first) if not settles and self._hits(k, came) else np.zeros(3) for k in hit}
        taken = [*hit, *self._held]
        rows = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in taken])
        before = given.copy()
        before[starts[len(self._contacts)] :] = 0.0
        b = self._problem.A @ before + self._problem.b
        for k in hit:
            if self._laws[k].form == "velocity":
                b[self._first[k] :][:3] += e[k] * came[self._first[k] :][:3]
        part = ContactProblem(self._problem.A[np.ix_(rows, rows)], b[rows], [blocks[k] for k in taken])
        solution, after = solve(part), before
        for k, at in zip(taken, part.starts, strict=False):
            size, start = blocks[k].size, starts[k]
            impulse = solution.impulses[at : at + size].copy()
            if k in e:
                law, friction = self._laws[k], self._contacts[k].pair.friction
                remaining = solution.velocities[at : at + 3]
                impulse[:3] = impact_impulse(law.form, friction, e[k], impulse[:3], remaining, came[start : start + 3])
            after[start : start + size] += impulse
        return after, e

    def _without_gain(
        self, given: np.ndarray, came: np.ndarray, after: np.ndarray, e: dict[int, np.ndarray]
    ) -> np.ndarray:
        """The impulses after a round, scaled down where contacts would otherwise feed energy into the robot."""
        w, parts = self._problem.A @ after + self._problem.b, np.zeros(3)
        cones = {k: np.arange(*self._problem.starts[k : k + 2]) for k in self._pressed}
        for k, rows in cones.items():
            n, t = rows[:3], e[k][0] if k in e else 0.0
            parts += energy_parts(t, (after - given)[n], came[n], w[n])
        result, scale = after.copy(), float(energy_scale(parts))
        for rows in cones.values():
            result[rows] = given[rows] + scale * (after - given)[rows]
        return result

    def _hits(self, k: int, came: np.ndarray) -> bool:
        law, i = self._laws[k], self._first[k]
        least = -1.0 if law.threshold is None else law.threshold
        return law.elastic and bool(hits(least, came[i], self._problem.b[i] - self._approach[i]))

    def _coefficients(self, k: int, came: np.ndarray, first: bool) -> np.ndarray:
        law, i = self._laws[k], self._first[k]
        if not first:
            return np.array([law.normal, law.tangential, law.tangential])
        change = self._problem.b[i] - self._approach[i]
        motion = came[i], self._approach[i], change, self._closures[k]
        return impact_coefficients(law.normal, law.tangential, *motion, self._lag)

    def _rows_of_joints(self, closed: Solution) -> list[int]:
        """The blocks of joints that hold through impacts: dry friction, and limits that the step has reached."""
        starts, n = self._problem.starts, len(self._contacts)

        def holds(k: int, block: Block) -> bool:
            return not isinstance(block, Unilateral) or closed.velocities[starts[k]] <= RESTING_SPEED

        return [k for k, block in enumerate(self._problem.blocks) if k >= n and holds(k, block)]
