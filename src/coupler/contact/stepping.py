"""One step of a robot with contact, by semi-implicit Euler, in NumPy: the reference for the compiled step.

It has the laws in common with that (laws.py, restitution.py, floating.py), but sets its problem up through whole
matrices (formulations.py) and solves it by another method: `bisection` and `lemke` have their own mathematics of cones.

    v⁺ = v + h a + H⁻¹ Jᵀ λ,    q⁺ = q ⊕ h v⁺,

with the accelerations a without contact and the impulses λ of the step's contact problem [002, §2.3]. A floating body
moves along a straight line of the world within a step and its momentum is what impulses make of it, to the last digits,
although its velocity is kept along its own axes. Gaps count at position level [002, eq. 4a]: what would close within
the step is stopped where it closes. What has got beyond can count otherwise (`gap_seen`). Where contacts rebound,
velocities jump at the end of the step. Joints stop at their limits, and dry friction slows them down. Loops stay
closed, because q moves along the robot's own coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coupler.contact.ahead import slid_on, velocities_ahead
from coupler.contact.damping import damped
from coupler.contact.floating import straight_motion, turned_velocity
from coupler.contact.formulations import (
    Touch,
    contact_rows,
    first_rows,
    floating,
    floating_centre,
    joint_rows,
    recursive_problem,
    unimpeded,
    with_closures,
)
from coupler.contact.impact_rounds import ImpactRounds
from coupler.contact.laws import PENETRATION, gap_seen, let_out
from coupler.contact.pairs import Pair
from coupler.contact.passing_rounds import PassingRounds, may_pass
from coupler.contact.problem import ContactProblem, Solution
from coupler.contact.restitution import LAG, ReboundTerms, Restitution, pending_rebound, rebound_terms
from coupler.contact.scene import rebounding, travelling
from coupler.contact.solvers import solve
from coupler.inertia import mass_matrix_solve
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers

__all__ = [
    "PENETRATION",
    "Impulses",
    "Stepped",
    "contact_impulses",
    "contact_step",
    "fitted_velocities",
    "gap_seen",
    "turned_jump",
]

Formulation = Callable[..., tuple[ContactProblem, list[Touch]]]


@dataclass(frozen=True, eq=False)
class Impulses:
    """The contacts of a step.

    Attributes:
        touches: the candidate contacts before it.
        rows: J, (rows, nv): three for each contact (normal and two tangents), or with torsion four, and with rolling
            friction six (spin, and turning about the tangents); then those of joints (see `JointRows`).
        free: (nv,), velocities after it without contact, seen along the axes before it.
        solution: impulses of all rows (N s, N m s), with residual and iterations.
        pending: (contacts, 3), what the next step must know of contacts that rebound in place; None if none can.
        jump: (rows,), impulses of impacts at the end of the step, N s: what velocities have more than those that
            positions move with; None if there are none.
    """

    touches: list[Touch]
    rows: np.ndarray
    free: np.ndarray
    solution: Solution
    pending: np.ndarray | None = None
    jump: np.ndarray | None = None

    @property
    def total(self) -> Solution:
        """The solution, with the impulses of impacts."""
        return (
            self.solution if self.jump is None else replace(self.solution, impulses=self.solution.impulses + self.jump)
        )


@dataclass(frozen=True, eq=False)
class Stepped:
    """What a step leads to.

    Attributes:
        q, v: the state after it.
        touches, pending: as in `Impulses`.
        solution: impulses of all rows, those of impacts included.
    """

    q: np.ndarray
    v: np.ndarray
    touches: list[Touch]
    solution: Solution
    pending: np.ndarray | None = None

    def force(self, step: float) -> np.ndarray:
        """The sum of all contact forces on the first bodies of their pairs, 3, along the world's axes, N."""
        impulses = _cone_rows(self.solution.impulses, self.touches)
        parts = [touch.contact.frame.T @ own for touch, own in zip(self.touches, impulses, strict=True)]
        return sum(parts, np.zeros(3)) / step


def contact_step(robot: Robot, q: Any, v: Any, tau: Any, step: float, pairs: Sequence[Pair], **options: Any) -> Stepped:
    """Moves a robot by one step.

    Args:
        robot, q, v, tau, step, pairs, options: as in `contact_impulses`.
    """
    contact = contact_impulses(robot, q, v, tau, step, pairs, **options)
    q = np.asarray(q, dtype=float)
    v_next = contact.free + mass_matrix_solve(damped(robot, step), q, contact.rows.T @ contact.solution.impulses)
    q_next, v_next = _integrated(robot, q, v_next, step)
    v_next = _after_impacts(robot, contact, q, q_next, v_next, step)
    return Stepped(q_next, v_next, contact.touches, contact.total, contact.pending)


def _after_impacts(
    robot: Robot, contact: Impulses, q: np.ndarray, q_next: np.ndarray, v_next: np.ndarray, step: float
) -> np.ndarray:
    """Velocities after the impacts at the end of a step from q to q_next, along the axes there."""
    if contact.jump is None:
        return v_next
    jump = mass_matrix_solve(damped(robot, step), q, contact.rows.T @ contact.jump)
    return v_next + turned_jump(robot, fitted_velocities(robot, q, q_next, jump), q, q_next)


def turned_jump(robot: Robot, jump: np.ndarray, q: np.ndarray, q_next: np.ndarray) -> np.ndarray:
    """A change of velocities at q along the axes that floating bodies have at q_next."""
    jump = jump.copy()
    for joint in floating(robot):
        turn, own = robot.q_slice(joint).start + 3, robot.v_slice(joint)
        before, after = (x[turn : turn + 4] for x in (q, q_next))
        jump[own] = turned_velocity(jump[own], before, after, floating_centre(robot, joint))
    return jump


def contact_impulses(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    step: float,
    pairs: Sequence[Pair],
    *,
    penetration: str | float = "position",
    recovery: float = np.inf,
    limits: bool = True,
    pending: np.ndarray | None = None,
    formulation: Formulation = recursive_problem,
    method: str = "bisection",
    start: np.ndarray | None = None,
    ahead: bool = False,
    **options: Any,
) -> Impulses:
    """The impulses of one step, whatever moves the robot then.

    Args:
        robot: the robot to move.
        q, v: its state.
        tau: (nv,), forces at independent joints, held over the step.
        step: h, s.
        pairs: what may touch, from `pairs_of`.
        penetration: how overlaps count; see `gap_seen`. What is beyond a joint's limit counts as it is.
        recovery: how fast overlaps are parted, and what is beyond a joint's limit comes back; see `ContactScene`.
        limits: whether joints stop at their limits. Dry friction of joints counts always.
        pending: what the step before left of contacts that rebound in place; None at the start.
        formulation: how the contact problem is set up.
        method: how it is solved, and `options` of that solver; see `solve`.
        start: impulses of all rows to start from, such as those of the step before: its contacts act at once, others
            if their shapes meet (see passing.py). For None, what touches does.
        ahead: whether velocities after the step are those of contacts where they then are, as accelerations of points
            give them [002, eq. 6, 10]: right for steps of higher order. Euler's method goes along the directions of the
            step's start. What is beyond a joint's limit then counts as overlaps do, for such steps leave more of it.
    """
    problem, touches = formulation(robot, q, v, tau, step, pairs, **({} if limits else {"limits": False}))
    joints, free = joint_rows(robot, q, step, limits), unimpeded(robot, q, v, tau, step)
    rows = np.vstack([contact_rows(robot, q, touches), joints.rows])
    _check_rows(robot, len(rows), problem, formulation)
    gaps = np.array([touch.contact.gap for touch in touches])
    velocities, closures = rows @ free, joints.closures
    if ahead:
        velocities = velocities_ahead(robot, q, v, free, step, touches, joint_rows(robot, q, step, limits, v))
        closures = gap_seen(closures * step, penetration) / step
    seen = let_out(gap_seen(gaps, penetration) / step, velocities[first_rows(touches)], recovery)
    closures = let_out(closures, velocities[len(rows) - len(closures) :], recovery * joints.recovery)
    if ahead or recovery < np.inf or (seen != gaps / step).any():
        problem = replace(problem, b=with_closures(velocities, touches, seen, closures))
    by_method, active = partial(solve, method=method, **options), list(range(len(problem.blocks)))
    if not rebounding(pairs):
        if not any(may_pass(touch) for touch in touches):
            solution = solve(problem, method, start=start, **options)
        else:
            acting = PassingRounds(robot, np.asarray(q, dtype=float), free, step, touches, rows, seen)
            limit = options.get("tolerance", 1e-10)
            solution = acting.solve(problem, by_method, start, limit)
            active = acting.active
            moved = [one is not other for one, other in zip(touches, acting.touches, strict=True)]
            moved = np.concatenate([*(np.full(3, own) for own in moved), np.zeros(len(rows) - 3 * len(touches), bool)])
            touches, rows, seen, problem = acting.touches, acting.rows, acting.closures, acting.problem
            velocities = np.where(moved, rows @ free, velocities)
        if not travelling(pairs):
            if ahead:
                approach = rows @ np.asarray(v, dtype=float)
                solution = slid_on(problem, solution, touches, approach, active, by_method)
            return Impulses(touches, rows, free, solution)
        problem, lag = replace(problem, b=velocities), 0.0 if ahead else LAG["euler"]
        rounds = ImpactRounds(problem, solution, touches, rows @ np.asarray(v, dtype=float), seen, lag)
        total = rounds.total(lambda part: solve(part, method, **options))
        return Impulses(touches, rows, free, solution, jump=None if total is None else total - solution.impulses)
    rebounds = _Rebounds(touches, pending, seen, velocities, rows @ np.asarray(v, dtype=float))
    solution = solve(rebounds.applied(problem), method, start=start, **options)
    total = replace(solution, impulses=solution.impulses + rebounds.offset)
    return Impulses(touches, rows, free, total, rebounds.pending(problem, solution))


def _check_rows(robot: Robot, rows: int, problem: ContactProblem, formulation: Formulation) -> None:
    if len(problem.b) != rows:
        name = getattr(formulation, "__name__", repr(formulation))
        raise ModelError(
            f"robot {robot.name!r}: {name} gives {len(problem.b)} rows, but contacts and joints have {rows}: it leaves "
            "out limits or dry friction of joints; take recursive_problem"
        )


def _cone_rows(values: np.ndarray, touches: Sequence[Touch]) -> np.ndarray:
    """(contacts, 3): of values by rows, those of the contacts' normals and tangents."""
    return values[first_rows(touches)[:, None] + np.arange(3)]


class _Rebounds:
    """The contacts of a step that can rebound, and what they bring into its problem.

    Attributes:
        offset: (rows,), impulses that act in advance, N s.
    """

    def __init__(
        self, contacts: Sequence[Touch], pending: Any, closures: np.ndarray, free: np.ndarray, approach: np.ndarray
    ) -> None:
        """Args: all contacts, what the step before left of them, and as for `rebound_terms`, by contacts or rows."""
        n = len(contacts)
        pending = np.zeros((n, 3)) if pending is None else numbers("pending", pending, (n, 3))
        self._contacts, self._first = contacts, first_rows(contacts)
        self._free, self._approach = _cone_rows(free, contacts), _cone_rows(approach, contacts)
        self._terms: dict[int, tuple[Restitution, ReboundTerms]] = {}
        self.offset = np.zeros(len(free))
        for k, pair in enumerate(touch.pair for touch in contacts):
            if (law := pair.restitution) is not None:
                before = pending[k], closures[k], self._free[k], self._approach[k]
                self._terms[k] = law, rebound_terms(law, pair.friction, *before)
                self.offset[self._first[k] :][:3] = self._terms[k][1].offset

    def applied(self, problem: ContactProblem) -> ContactProblem:
        """The step's problem, under the laws of contacts that close or rebound."""
        b = problem.b.copy()
        for k, (_, terms) in self._terms.items():
            b[self._first[k] :][:3] = terms.b
        return replace(problem, b=b + problem.A @ self.offset)

    def pending(self, problem: ContactProblem, solution: Solution) -> np.ndarray:
        """(contacts, 3), what the next step must know."""
        pending = np.zeros_like(self._approach)
        impulses, velocities = (_cone_rows(x, self._contacts) for x in (solution.impulses, solution.velocities))
        for k, (law, terms) in self._terms.items():
            mobility, solved = problem.A[self._first[k], self._first[k]], (impulses[k], velocities[k])
            pending[k] = pending_rebound(law, terms.closing, mobility, *solved, self._free[k], self._approach[k])
        return pending


def _integrated(robot: Robot, q: np.ndarray, v: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """q and v after a step with velocities v, which are seen along the axes before it; floating bodies go straight."""
    q_next = _with_loops(robot, q, v, step)
    v_next = fitted_velocities(robot, q, q_next, v)
    for joint in floating(robot):
        place, own = robot.q_slice(joint), robot.v_slice(joint)
        q_next[place], v_next[own] = straight_motion(q[place], v[own], step, floating_centre(robot, joint))
    return q_next, v_next


def _with_loops(robot: Robot, q: np.ndarray, v: np.ndarray, step: float) -> np.ndarray:
    """q after a step. Loops without a solution close where all their joints' velocities lead; see drift.py."""
    embedding, states = robot.embedding, robot.states
    if all(embedding.explicit):
        return robot.integrate(q, v, step)
    p = embedding.positions(q)
    w = embedding.velocities(p, v)
    return states.closed(p, step * w, np.ones(len(w)))[embedding.q_index]


def fitted_velocities(robot: Robot, q: np.ndarray, q_next: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Velocities at q as they fit loops without a solution at q_next: as fast along what these allow at q.

    With all joints' velocities w = G v at q: w − Kᵀ λ, so that K_next (w − Kᵀ λ) = 0.
    """
    embedding = robot.embedding
    loops = [i for i, solved in enumerate(embedding.explicit) if not solved]
    if not loops:
        return v.copy()
    p = embedding.positions(q)
    w = embedding.velocities(p, v)
    _, K, _ = embedding.closure.at(p)
    _, K_next, _ = embedding.closure.at(embedding.positions(q_next))
    for i in loops:
        columns, entries = embedding.closure.loops[i].columns, embedding.closure.places[i][1][embedding.choices[i].rows]
        before, after = K[entries], K_next[entries]
        w[columns] -= before.T @ np.linalg.solve(after @ before.T, after @ w[columns])
    return w[embedding.v_index]
