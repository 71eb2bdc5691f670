"""One step of a robot with contact by semi-implicit Euler, in NumPy: the reference for the compiled step.

It shares the laws with the compiled step (laws.py, restitution.py, floating.py), but sets up the contact problem with
whole matrices (formulations.py) and solves it by another method: `bisection` and `lemke` have cone mathematics of their
own.

    v⁺ = v + h a + H⁻¹ Jᵀ λ,    q⁺ = q ⊕ h v⁺,

where a are the accelerations without contact, and λ the impulses of the step's contact problem [002, §2.3]. The centre
of mass of a floating body moves along a straight line in the world within a step, although the body's velocity is kept
along its own axes, so impulses account for all of its change of momentum, to rounding. Gaps count at position level
[002, eq. 4a]: a contact that would close within the step is stopped where it closes; `gap_seen` says how overlaps
count. Where contacts rebound, velocities jump at the end of the step. Joints stop at their limits, and dry friction
slows them down. Loops stay closed, because q moves along the robot's own coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coupler.contact.ahead import slid_on, velocities_ahead
from coupler.contact.damping import damped
from coupler.contact.formulations import (
    Touch,
    contact_rows,
    first_rows,
    normal_and_tangents,
    recursive_problem,
    unimpeded,
    with_closures,
)
from coupler.contact.impact_rounds import ImpactRounds
from coupler.contact.integration import fitted_velocities, integrated, turned_jump
from coupler.contact.joint_rows import joint_rows
from coupler.contact.laws import gap_seen, let_out
from coupler.contact.pairs import Pair
from coupler.contact.passing import can_pass, slop
from coupler.contact.passing_rounds import PassingRounds
from coupler.contact.problem import ContactProblem
from coupler.contact.rebounds import Rebounds
from coupler.contact.restitution import LAG
from coupler.contact.scene import rebounding, travelling
from coupler.contact.solution import TOLERANCE, Solution
from coupler.contact.solvers import solve
from coupler.inertia import mass_matrix_solve
from coupler.model import ModelError, Robot

Formulation = Callable[..., tuple[ContactProblem, list[Touch]]]


@dataclass(frozen=True, eq=False)
class Impulses:
    """The contacts of a step, and their impulses.

    Attributes:
        touches: the candidate contacts before the step.
        rows: J, (rows, nv): for each contact three rows (normal and two tangents), four with torsion (and spin), or six
            with rolling friction (and rotation about the tangents); then the rows of joints (see `JointRows`).
        free: (nv,), velocities after the step without contact, along the axes before it.
        solution: the impulses of all rows (N s, N m s), with residual and iterations.
        pending: (contacts, 3), what the next step must know of contacts that rebound in place; None if none can.
        jump: (rows,), impulses of impacts at the end of the step, N s, which change velocities but not the positions of
            this step; None if there are no impacts.
    """

    touches: list[Touch]
    rows: np.ndarray
    free: np.ndarray
    solution: Solution
    pending: np.ndarray | None = None
    jump: np.ndarray | None = None

    @property
    def total(self) -> Solution:
        """The solution, with the impulses of impacts added."""
        if self.jump is None:
            return self.solution
        return replace(self.solution, impulses=self.solution.impulses + self.jump)


@dataclass(frozen=True, eq=False)
class Stepped:
    """The result of a step.

    Attributes:
        q, v: the state after the step.
        touches, pending: as in `Impulses`.
        solution: the impulses of all rows, those of impacts included.
    """

    q: np.ndarray
    v: np.ndarray
    touches: list[Touch]
    solution: Solution
    pending: np.ndarray | None = None

    def force(self, step: float) -> np.ndarray:
        """The sum of all contact forces on the first bodies of their pairs, 3, along the world's axes, N."""
        impulses = normal_and_tangents(self.solution.impulses, self.touches)
        parts = [touch.contact.frame.T @ impulse for touch, impulse in zip(self.touches, impulses, strict=True)]
        return sum(parts, np.zeros(3)) / step


def contact_step(robot: Robot, q: Any, v: Any, tau: Any, step: float, pairs: Sequence[Pair], **options: Any) -> Stepped:
    """Moves a robot by one step.

    Args:
        robot, q, v, tau, step, pairs, options: as in `contact_impulses`.
    """
    contact = contact_impulses(robot, q, v, tau, step, pairs, **options)
    q = np.asarray(q, dtype=float)
    v_next = contact.free + mass_matrix_solve(damped(robot, step), q, contact.rows.T @ contact.solution.impulses)
    q_next, v_next = integrated(robot, q, v_next, step)
    if contact.jump is not None:
        jump = mass_matrix_solve(damped(robot, step), q, contact.rows.T @ contact.jump)
        v_next = v_next + turned_jump(robot, fitted_velocities(robot, q, q_next, jump), q, q_next)
    return Stepped(q_next, v_next, contact.touches, contact.total, contact.pending)


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
    """The impulses of one step, for any integrator.

    Args:
        q, v: its state.
        tau: (nv,), forces at independent joints, held over the step.
        step: h, s.
        pairs: the pairs of shapes that may touch, from `pairs_of`.
        penetration: how overlaps count; see `gap_seen`. The distance beyond a joint's limit counts in full.
        recovery: how fast overlapping shapes part, and joints return from beyond a limit; see `ContactScene`.
        limits: whether joints stop at their limits. Dry friction of joints always counts.
        pending: what the previous step left of contacts that rebound in place; None at the start.
        formulation: sets up the contact problem.
        method: the solver, which `options` are passed to; see `solve`.
        start: impulses of all rows to start from, such as those of the previous step. Contacts that pressed in it act
            at once; others act if their shapes meet (see passing.py). If None, contacts that touch act at once.
        ahead: whether velocities after the step are taken where contacts then are, from accelerations of points
            [002, eq. 6, 10], as steps of higher order need. Euler's method takes them along the directions at the start
            of the step. With `ahead`, `penetration` also holds for joint limits, because such steps go further beyond.
    """
    problem, touches = formulation(robot, q, v, tau, step, pairs, **({} if limits else {"limits": False}))
    joints, free = joint_rows(robot, q, step, limits, v, ahead=ahead), unimpeded(robot, q, v, tau, step)
    rows = np.vstack([contact_rows(robot, q, touches), joints.rows])
    _check_rows(robot, len(rows), problem, formulation)
    gaps = np.array([touch.contact.gap for touch in touches])
    velocities, closures = rows @ free, joints.closures
    if ahead:
        velocities = velocities_ahead(robot, q, v, free, step, touches, joints)
        for i, touch in zip(first_rows(touches), touches, strict=True):  # where shapes then are, some have passed
            if touch.contact.gap > slop(step) and can_pass(touch.pair) and not rebounding(pairs):
                own = slice(i, i + touch.cone.size)
                velocities[own] = rows[own] @ free
        closures = gap_seen(closures * step, penetration) / step
    v = np.asarray(v, dtype=float)
    approach = rows @ v
    seen = let_out(gap_seen(gaps, penetration) / step, approach[first_rows(touches)], recovery)
    closures = let_out(closures, approach[len(rows) - len(closures) :], recovery * joints.recovery)
    if ahead or recovery < np.inf or (seen != gaps / step).any():
        problem = replace(problem, b=with_closures(velocities, touches, seen, closures))
    solver = partial(solve, method=method, **options)
    if rebounding(pairs):
        rebounds = Rebounds(touches, pending, seen, velocities, approach)
        solution = solver(rebounds.applied(problem), start=start)
        total = replace(solution, impulses=solution.impulses + rebounds.offset)
        return Impulses(touches, rows, free, total, rebounds.pending(problem, solution))
    active = list(range(len(problem.blocks)))
    if not any(can_pass(touch.pair) for touch in touches):
        solution = solver(problem, start=start)
    else:
        acting = PassingRounds(robot, np.asarray(q, dtype=float), free, step, touches, rows, seen)
        solution = acting.solve(problem, solver, start, options.get("tolerance", TOLERANCE))
        moved = np.zeros(len(rows), bool)
        for i, before, after in zip(first_rows(touches), touches, acting.touches, strict=True):
            moved[i : i + before.cone.size] = after is not before
        touches, rows, seen, problem, active = (
            acting.touches,
            acting.rows,
            acting.closures,
            acting.problem,
            acting.active,
        )
        velocities = np.where(moved, rows @ free, velocities)
    if travelling(pairs):
        rounds = ImpactRounds(
            replace(problem, b=velocities), solution, touches, rows @ v, seen, 0.0 if ahead else LAG["euler"]
        )
        total = rounds.total(solver)
        return Impulses(touches, rows, free, solution, jump=None if total is None else total - solution.impulses)
    if ahead:
        solution = slid_on(problem, solution, touches, rows @ v, active, solver)
    return Impulses(touches, rows, free, solution)


def _check_rows(robot: Robot, rows: int, problem: ContactProblem, formulation: Formulation) -> None:
    if len(problem.b) != rows:
        name = getattr(formulation, "__name__", repr(formulation))
        raise ModelError(
            f"robot {robot.name!r}: {name} gives {len(problem.b)} rows, but contacts and joints have {rows}: it leaves "
            "out limits or dry friction of joints; take recursive_problem"
        )
