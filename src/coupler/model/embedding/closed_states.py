"""Closing the configurations of a robot, and refusing those that are open or singular.

Everything here works on the positions p and velocities w of all joints; see coordinates.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from coupler.forks import cached_property
from coupler.graph import Executable, Program, compile
from coupler.model.embedding.choice import pivots
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.gaps import described, what_is_open
from coupler.model.embedding.motion import Motion
from coupler.model.embedding.newton import newton_program
from coupler.model.errors import ModelError
from coupler.model.tolerances import CLOSED, MADE_CLOSED, SINGULAR, TINY
from coupler.model.wording import in_state, listed

_LARGEST = 48  # the most rows of a cluster that Newton's program solves for; NumPy closes larger clusters
_READABLE = 7.0  # quaternions are accepted, and normalised, if the logarithm of their length is smaller: 1000 times
_NEARLY_SINGULAR = 0.2  # of the quality at neutral: below it, the rows of a loop may become dependent
_HALVINGS = 30  # of the interval in which loops stop closing


class ClosedStates:
    """The closed configurations of a robot.

    Attributes:
        origin: the states without given parameters, whose programs these share; see `with_given`.
    """

    origin: Self | None = None

    def __init__(self, embedding: Embedding, neutral: np.ndarray) -> None:
        self.embedding, self.neutral = embedding, neutral.copy()
        self.neutral.setflags(write=False)
        self.closure, self.tree = embedding.closure, embedding.tree
        self.motion = Motion(self.tree, compiled=True)
        loops = zip(self.closure.loops, embedding.choices, embedding.explicit, strict=True)
        self.implicit = {
            i: loop.keeping(choice.rows) for i, (loop, choice, explicit) in enumerate(loops) if not explicit
        }

    def with_given(self, parameters: np.ndarray) -> Self:
        """A copy of these states with parameters that are inputs of programs; see variants.py."""
        other, embedding, closure = copy(self), copy(self.embedding), copy(self.closure)
        other.origin, embedding.origin, closure.origin = self, self.embedding, self.closure
        other.tree = closure.tree = replace(self.tree, given=parameters)
        other.embedding, other.closure, embedding.closure = embedding, closure, closure
        return other

    @cached_property
    def _newton(self) -> Executable:
        return compile(self.closing_program) if self.origin is None else self.origin._newton

    @cached_property
    def closing_program(self) -> Program:
        """(p, step, weight) → q, φ: Newton's way to a closed configuration, see `newton_program`.

        Raises:
            ModelError: for clusters with too many constraints for one program.
        """
        for loop in self.implicit.values():
            if loop.kept > _LARGEST:
                raise ModelError(
                    f"{described(loop, self.tree)}: {loop.kept} constraints are too many to be closed within a "
                    f"program, which takes {_LARGEST}"
                )
        return newton_program(self.tree, [*self.implicit.values()])

    @cached_property
    def _is_too_large(self) -> bool:
        """Whether a cluster has too many constraints for Newton's program."""
        return any(loop.kept > _LARGEST for loop in self.implicit.values())

    @cached_property
    def dependent(self) -> np.ndarray:
        """For each entry of w, 1 where it follows from others, else 0."""
        weight = np.ones(self.tree.nv)
        weight[self.embedding.v_index] = 0.0
        return weight

    @cached_property
    def usual_quality(self) -> np.ndarray:
        """For each loop, how far its coordinates are from singular in generic configurations."""
        usual = self.embedding.quality(self.neutral)
        pairs = zip(self.embedding.choices, self.embedding.explicit, usual, strict=True)
        return np.array([neutral if explicit else choice.quality for choice, explicit, neutral in pairs])

    def moved(self, p: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Closed positions after moving from p with w: independent ones exactly, the others as loops require."""
        q = self.closed(p, w, self.dependent, "the others follow the independent ones, which may be out of reach")
        if self.embedding.solutions:
            q = self.embedding.positions(q[..., self.embedding.q_index])
            self.check_solved(q)
        return q

    def closed(self, p: np.ndarray, step: np.ndarray, weight: np.ndarray, condition: str = "") -> np.ndarray:
        """Closed positions near integrate(p, step); closing moves no joint of weight 0.

        Newton's method is tried first, and where it fails, the slower and more robust method of `Closure.assemble`.

        Args:
            p: where to start.
            step: velocities with which p is moved first.
            weight: for each entry of w, how willingly it moves.
            condition: further requirements, as a phrase for a message.

        Raises:
            ModelError: for loops that stay open in any state of a batch.
        """
        q, failed = self.attempted(p, step, weight)
        if failed.any():
            self.check_closed(q, condition)
        return q

    def attempted(self, p: np.ndarray, step: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`closed` without an error: positions, and in which states, (...), a loop is open."""
        if not self.implicit:
            q = self.motion.integrate(p, step)
            return q, np.zeros(q.shape[:-1], bool)
        q, failed = self.approach(p, step, weight)
        if failed.any():
            start = np.broadcast_to(self.motion.integrate(p, step), q.shape)[failed]
            closure = self.closure.of_states(q.shape[:-1], failed)
            q[failed] = closure.assemble(start, np.broadcast_to(weight, (*q.shape[:-1], len(weight)))[failed])
            failed = np.asarray(~(self.closure.gaps(self.closure.at(q)[0]) < CLOSED).all(axis=-1))
        return q, failed

    def approach(self, p: np.ndarray, step: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions by Newton's method, and for which states it failed: for all if a cluster is too large for it."""
        if self._is_too_large:
            q = self.motion.integrate(p, step)
            return q, np.ones(q.shape[:-1], bool)
        q, phi = self._newton(p, step, weight, *self.tree.inputs_of(self._newton))
        return q, ~(np.abs(phi).max(axis=-1, initial=0.0) < MADE_CLOSED)

    def check_quaternions(self, p: np.ndarray, tolerance: float = _READABLE) -> None:
        """Raises a ModelError for quaternions whose length has a logarithm beyond the tolerance."""
        for link in self.motion.quaternion_links:
            entries = self.tree.positions(link)[-4:]
            with np.errstate(all="ignore"):
                length = np.linalg.norm(p[..., entries], axis=-1)
            wrong = ~(np.abs(np.log(np.maximum(length, TINY))) < tolerance)
            if wrong.any():
                state = [int(i) for i in np.argwhere(wrong)[0]]
                raise ModelError(
                    f"joint {self.tree.links[link].joint!r}: its quaternion has the length {length[tuple(state)]:.6g}"
                    f"{in_state(state)}; it must be 1; robot.close(q) makes it so"
                )

    def check_solved(self, p: np.ndarray) -> None:
        """Raises a ModelError for positions at which a solution γ does not exist."""
        if self.embedding.solutions and not np.isfinite(p).all():
            self.check_closed(p)

    def check_closed(self, p: np.ndarray, condition: str = "") -> None:
        """Raises a ModelError for positions at which a loop is open."""
        if not self.closure.loops:
            return
        phi = self.closure.at(p)[0]
        gaps = self.closure.gaps(phi)
        wrong = np.argwhere(~(gaps < CLOSED))
        if wrong.size:
            *state, i = (int(x) for x in wrong[0])
            what = described(self.closure.loops[i], self.tree)
            finite = np.isfinite(gaps[tuple(wrong[0])])
            at = tuple(state)
            reason = what_is_open(self.closure, i, phi[at]) if finite else self._no_solution(p[at])
            why = f"; {condition}" if condition else ""
            raise ModelError(f"{what} does not close{in_state(state)}: {reason}{why}")

    def _no_solution(self, p: np.ndarray) -> str:
        """A message that there is no solution at positions of one state; it names joints that do not reach, if any."""
        for solution in self.embedding.solutions:
            beyond_reach = getattr(solution.function.function, "beyond_reach", None)
            joints = beyond_reach(p[self.tree.positions_of(solution.inputs)]) if beyond_reach else ()
            if joints:
                names = listed(self.tree.links[solution.outputs[number]].joint for number in joints)
                return (
                    f"there is no solution: {names} cannot reach from one end of their leg to the other; on the way "
                    f"from the neutral configuration they reach up to {self._last_reached(solution.inputs, p)}"
                )
        return "there is no solution"

    def _last_reached(self, links: Sequence[int], p: np.ndarray) -> str:
        """The last positions, on the straight way from neutral to those of one state, at which loops still close."""
        entries, goal = self.tree.positions_of(links), self.neutral.copy()
        goal[entries] = p[entries]
        way, near, far = self.motion.difference(self.neutral, goal), 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            q = self.motion.integrate(self.neutral, middle * way)[self.embedding.q_index]
            near, far = (middle, far) if np.isfinite(self.embedding.positions(q)).all() else (near, middle)
        at = self.motion.integrate(self.neutral, near * way)
        reached = [(self.tree.links[link].joint, at[self.tree.positions(link)]) for link in links]
        return ", ".join(f"{joint} {' '.join(f'{x:.4g}' for x in position)}" for joint, position in reached)

    def check_regular(self, p: np.ndarray) -> None:
        """Raises a ModelError for positions at which the independent velocities do not determine the others."""
        wrong = np.argwhere(~(self.embedding.quality(p) > SINGULAR))
        if not wrong.size:
            return
        *state, i = (int(x) for x in wrong[0])
        loop, choice = self.closure.loops[i], self.embedding.choices[i]
        K = self.closure.at(p[tuple(state)])[1][self.closure.places[i][1][choice.rows]]
        names = [self.tree.joint_of(int(column)) for column in loop.columns]
        chosen = listed(dict.fromkeys(names[j] for j in choice.independent))
        what = f"{described(loop, self.tree)} is singular{in_state(state)}"
        if not np.isfinite(K).all():
            raise ModelError(f"{what}: {chosen} does not determine the velocities of the others")
        sigma = np.linalg.svd(K, compute_uv=False)
        if sigma[-1] <= SINGULAR * sigma[0]:
            raise ModelError(f"{what}: it has more freedoms there than elsewhere, whatever coordinates are chosen")
        others = np.setdiff1d(np.arange(len(names)), pivots(K, len(choice.rows)))
        better = listed(dict.fromkeys(names[j] for j in others))
        raise ModelError(f"{what}: {chosen} does not determine the others; choose {better} as independent instead")

    def extra_freedoms(self, p: np.ndarray) -> str:
        """Describes the loop that has, or nearly has, more freedoms at positions p of one state than elsewhere.

        Only loops without a solution γ are looked at. The text is empty if there is no such loop.
        """
        qualities: dict[str, float] = {}
        for i, loop in self.implicit.items():
            entries = self.closure.places[i][1][self.embedding.choices[i].rows]
            K_at_p, K_at_neutral = (self.closure.at(x)[1][entries] for x in (p, self.neutral))
            quality, normal = (
                sigma[-1] / sigma[0] for sigma in (_singular_values(K_at_p), _singular_values(K_at_neutral))
            )
            if quality < _NEARLY_SINGULAR * normal:
                qualities[described(loop, self.tree)] = quality
        return min(qualities, key=lambda name: qualities[name]) if qualities else ""


def _singular_values(K: np.ndarray) -> np.ndarray:
    return np.linalg.svd(np.nan_to_num(K), compute_uv=False) + TINY
