"""What follows the sweeps over a contact problem: three rules, of which each state follows its own, step by step.

Each iteration takes one linear system by one of the rules, and ends with impulses that are judged; the best are kept.
Newton's method comes first. Where it does not halve the residual, the interior point takes over, and tries Newton's
method from where it is now and then; it may start twice. Where that is spent, paths are followed, from several starts.

Where contacts are to share their load (sharing.py), Newton's method goes on from the solution to one with less of it.

Where there may be several islands of bodies that touch each other, those take part that sweeps have not solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.rows import BlockRecords, Indices, Layout
from coupler.contact.step.blocks import OwnKernel, shared
from coupler.contact.step.interaction import InteractingBlocks, Ways
from coupler.contact.step.refinement import interior, newton, path, shares
from coupler.contact.step.refinement.elimination import Elimination
from coupler.contact.step.relaxation import Relaxation
from coupler.graph import Vector, View, Window, constants, fields

_ITERATIONS = 400  # at most, of all rules together
_NEWTON = 8.0  # iterations of Newton's method in a row
_INTERIOR = 30.0  # iterations of the interior point
_FIRST_TRY, _NEXT_TRY = 6.0, 3.0  # iterations of the interior point before Newton's method is tried, and tried again
_STALLED, _STALLS = 0.05, 3.0  # a step so short, so often in a row, ends the interior point
_SHORT = 0.2  # after a step so short, the next one only centres
_PATH = 60.0  # iterations of a path
# Of paths: θ₀ by the speed, and how much of the sweeps' impulses they start from.
_STARTS = ((0.1, 1.0), (0.03, 1.0), (0.1, 0.0), (1.0, 0.0))

_STATE = (
    *("by_newton", "by_interior", "by_path", "by_gauge"),  # 1 for the rule that is followed
    *("starts_interior", "starts_path"),  # 1 where it begins
    *("limit", "least", "before", "error"),  # residuals, m/s: to reach, the best, of the last iteration, of this one
    *("tried", "turns", "until_newton", "stalls", "gauged", "steps", "paths"),  # counts
    *("speed", "scale", "normals", "from_sweeps"),  # how large velocities and impulses are; how many normals
    *("better", "accepted"),  # 1 if this iteration's impulses are the best so far, and if they are gone on from
)
_POINTS = ("point", "best", "swept", "origin")
_JOINT: Layout = dict.fromkeys(_POINTS, 1) | {"ahead": 3} | interior.JOINT | path.JOINT


def _contact(rows: int, discs: int) -> Layout:
    points: Layout = dict.fromkeys((*_POINTS, "ahead"), rows)
    return points | interior.contact_layout(rows, discs) | path.contact_layout(rows)


class Refinement:
    """The rules that follow the sweeps over the active blocks of a problem.

    Attributes:
        limit: 1, the residual that was to be reached, m/s; without bound where sweeps have reached it.
    """

    def __init__(self, blocks: InteractingBlocks, ways: Ways, relaxation: Relaxation) -> None:
        builder = blocks.builder
        self._blocks, self._relaxation, self._builder = blocks, relaxation, builder
        self._system = Elimination(blocks, ways)
        names = (*_STATE, *interior.STATE, *path.STATE, *shares.STATE)
        self._state = {name: builder.scratch(f"refinement_{name}", 1) for name in names}
        self._known = dict[int, Window]()  # of kinds of blocks, by the first of each
        self.limit = self._state["limit"]
        self._records = BlockRecords(builder, "refined", blocks.rows, blocks.joints, _contact, _JOINT)

    def solve(self, tolerance: float, residual: Vector, iterations: Vector, sharing: Vector | None = None) -> None:
        """Writes the steps from impulses that sweeps have left, with that residual, to better ones.

        Args:
            tolerance: the residual to reach, m/s; times the largest entry of b, if that is above 1 m/s.
            residual: 1, m/s.
            iterations: 1, how many there were; these are added.
            sharing: 1, whether contacts are to share their load; they are not, if this is not given.
        """
        builder, blocks = self._builder, self._blocks
        state = fields(**{name: buffer.at(0) for name, buffer in self._state.items()})
        state |= fields(residual=residual.at(0), iterations=iterations.at(0), tolerance=constants([tolerance]))
        state |= fields(sign=self._system.sign.at(0), sharing=sharing.at(0) if sharing else constants([0.0]))
        builder.loop(_set_no_limit, state=state)
        with builder.repeat(until=_good_enough, at_most=1, rare=True, state=state):
            if islands := self._relaxation.islands:
                islands.choose(tolerance)
            with blocks.only("refined" if islands else "active"):
                builder.loop(_clear_scales, state=state)
                self._run(_scale_contact, _scale_joint)
                builder.loop(_begin, state=state)
                self._run(_keep_contact, _keep_joint)
                self._system.begin()
                with builder.repeat(until=_ended, at_most=_ITERATIONS, state=state):
                    builder.loop(_clear_sums, state=state)
                    self._iterate(state)
                    blocks.sum_up()
                    self._relaxation.judge(self._state["error"])
                    builder.loop(_decide, state=state)
                    if sharing:
                        builder.loop(shares.decide, state=state)
                    self._run(_take, _take)
                self._run(_restore, _restore)
            blocks.sum_up()
            self._relaxation.judge(residual)

    def _iterate(self, state: Window) -> None:
        """One iteration of the rule that a state follows."""
        builder = self._builder
        with self._states_that("starts_interior"):
            self._run(interior.start_contact, interior.start_joint)
        with self._states_that("starts_path"):
            self._start_path(state)
        self._sum_up(_push_contact, _push_joint)
        with self._states_that("by_newton"):
            self._run(newton.linearise_contact, newton.linearise_joint)
        with self._states_that("by_interior"):
            self._run(interior.multiply_contact, interior.multiply_joint)
            builder.loop(interior.average, state=state)
            self._run(interior.predict_contact, interior.predict_joint)
        with self._states_that("by_path"):
            self._run(path.linearise_contact, path.linearise_joint)
        with self._states_that("by_gauge"):
            self._run(interior.hold_contact, interior.hold_joint)
        self._system.factor()
        self._solve()
        with self._states_that("by_gauge"):
            self._run(interior.gauge_contact, interior.gauge_joint)
        with self._states_that("by_newton"):
            self._run(newton.step_contact, newton.step_joint)
        with self._states_that("by_interior", "by_path"):
            self._go_on(state)

    def _go_on(self, state: Window) -> None:
        """The second half of an iteration that corrects what the first one foresees."""
        builder = self._builder
        with self._states_that("by_interior"):
            self._run(interior.direct_contact, interior.direct_joint)
            builder.loop(interior.look_ahead, state=state)
            self._run(interior.foresee_contact, interior.foresee_joint)
            builder.loop(interior.center, state=state)
            self._run(interior.correct_contact, interior.correct_joint)
        with self._states_that("by_path"):
            self._run(path.move_contact, path.move_joint)
        self._solve()
        with self._states_that("by_interior"):
            self._run(interior.direct_contact, interior.direct_joint)
            builder.loop(interior.stay_inside, state=state)
            self._run(interior.advance_contact, interior.advance_joint)
        with self._states_that("by_path"):
            self._run(path.turn_contact, path.turn_joint)
            builder.loop(_decide_path, state=state)
            self._run(path.end_contact, path.end_joint)

    def _start_path(self, state: Window) -> None:
        self._run(_set_out, _set_out)
        self._sum_up(_push_origin, _push_origin)
        self._run(path.place_contact, path.place_joint)
        self._sum_up(path.push_contact, path.push_joint)
        self._run(path.complete_contact, path.complete_joint)
        self._builder.loop(path.begin, state=state)

    @contextmanager
    def _states_that(self, *names: str) -> Iterator[None]:
        """What is written inside is for states that follow one of these rules, or start it."""

        def others(state: View) -> Any:
            return reduce(add, (getattr(state, name) for name in names)) <= 0.0

        state = fields(**{name: self._state[name].at(0) for name in names})
        with self._builder.repeat(until=others, at_most=1, state=state):
            yield

    def _more(self, blocks: Indices) -> Window:
        """Further fields of all blocks of one kind."""
        if blocks[0] not in self._known:
            self._known[blocks[0]] = self._records.of(blocks) | shared(**self._state)(blocks)
        return self._known[blocks[0]]

    def _run(self, contact: OwnKernel, joint: OwnKernel) -> None:
        self._blocks.each(contact, joint, more=self._more)

    def _sum_up(self, contact: OwnKernel, joint: OwnKernel) -> None:
        """Writes the steps from what kernels say is pushed to x, and to velocities."""
        self._run(contact, joint)
        self._blocks.sum_up("pushed")
        self._blocks.measure()

    def _solve(self) -> None:
        """Writes the steps from p to changes of velocities."""
        self._system.solve()
        self._blocks.measure_change(self._system.right)


# States: how large their numbers are, and which rule they follow


def _set_no_limit(state: View) -> None:
    state.limit = np.array(interior.ENDLESS)


def _clear_scales(state: View) -> None:
    state.speed = state.scale = state.limit = state.normals = state.fast = np.array(0.0)


def _begin(state: View) -> None:
    state.limit = state.tolerance * np.maximum(state.limit, 1.0)
    shares.begin(state)
    state.speed = state.speed + laws.TINY
    state.scale = np.maximum(state.scale, state.speed)
    state.least = state.before = state.error = state.residual
    state.by_newton = np.array(1.0)
    state.by_interior = state.by_path = state.by_gauge = state.starts_interior = state.starts_path = np.array(0.0)
    state.tried = state.turns = state.stalls = state.gauged = state.steps = state.paths = np.array(0.0)
    state.until_newton = np.array(_FIRST_TRY)
    state.from_sweeps = np.array(1.0)
    for name in (*interior.STATE, *path.STATE):
        setattr(state, name, np.array(0.0))


def _good_enough(state: View) -> Any:
    return (state.residual <= state.tolerance) & (state.sharing <= 0.0)


def _ended(state: View) -> Any:
    followed = state.by_newton + state.by_interior + state.by_path + state.by_gauge
    return ((state.least <= state.limit) & (state.shares + state.polishes <= 0.0)) | (followed <= 0.0)


def _clear_sums(state: View) -> None:
    state.iterations = state.iterations + 1.0
    state.products = state.count = np.array(0.0)
    state.length = np.array(interior.ENDLESS)
    path.clear_sums(state)


def _decide_path(state: View) -> None:
    path.decide(state, state.sign)


def _decide(state: View) -> None:
    """Whether this iteration was good, and which rule comes next."""
    by_newton, by_interior, by_path, by_gauge = (getattr(state, name) > 0.0 for name in _STATE[:4])
    finite = state.error == state.error
    error = np.where(finite, state.error, interior.ENDLESS)
    state.better = np.where(error < state.least, 1.0, 0.0)
    state.least = np.minimum(state.least, error)
    # Newton's method goes on while it halves the residual. Who called it goes on then.
    halved, tried = by_newton & (error < 0.5 * state.before), state.tried + state.by_newton
    goes_on = halved & (tried < _NEWTON)
    back = by_newton & np.logical_not(goes_on)
    # The interior point tries Newton's method now and then, until it is spent. Paths do when they see their end.
    turns, until_newton = state.turns + state.by_interior, state.until_newton - state.by_interior
    stalls = np.where(by_interior, np.where(state.length < _STALLED, state.stalls + 1.0, 0.0), state.stalls)
    stalls = np.where(by_interior & np.logical_not(finite), _STALLS, stalls)
    tries = (by_interior & finite & (until_newton <= 0.0)) | (by_path & (state.tries > 0.0) & finite)
    resumes = back | ((by_interior | by_path) & np.logical_not(tries))
    # What is spent starts once more, from impulses as large as those that would hold all rows; then there are paths.
    spent, gauged = (turns >= _INTERIOR) | (stalls >= _STALLS), state.gauged + state.by_gauge
    gauges = resumes & spent & (gauged <= 0.0)
    turns, stalls = np.where(by_gauge, 0.0, turns), np.where(by_gauge, 0.0, stalls)
    until_newton = np.where(by_gauge, _FIRST_TRY, until_newton)
    spent = spent & (gauged > 0.0) & np.logical_not(by_gauge)
    steps = state.steps + state.by_path
    next_path = spent & ((state.paths <= 0.0) | (steps >= _PATH)) & np.logical_not(goes_on | tries)
    paths, steps = np.where(next_path, state.paths + 1.0, state.paths), np.where(next_path, 0.0, steps)
    state.by_newton = np.where(goes_on | tries, 1.0, 0.0)
    state.by_interior = np.where((resumes & np.logical_not(spent | gauges)) | by_gauge, 1.0, 0.0)
    state.by_gauge, state.gauged = np.where(gauges, 1.0, 0.0), gauged
    state.by_path = np.where(resumes & spent & (paths <= float(len(_STARTS))), 1.0, 0.0)
    state.starts_interior = np.where((back | by_gauge) & (turns <= 0.0), state.by_interior, 0.0)
    state.starts_path = np.where(next_path, state.by_path, 0.0)
    state.accepted = np.where(halved | tries, 1.0, 0.0)
    state.before = np.where(halved | tries, error, state.before)
    state.tried, state.turns, state.stalls = np.where(goes_on, tried, 0.0), turns, stalls
    state.until_newton = np.where(tries & by_interior, _NEXT_TRY, until_newton)
    centres = np.where(by_interior, np.where(state.length < _SHORT, 1.0, 0.0), state.centring)
    state.centring = np.where(by_gauge, 0.0, centres)
    state.steps, state.paths = steps, paths
    for k, (part, swept) in enumerate(_STARTS):
        begins = next_path & (paths == k + 1.0)
        state.theta = np.where(begins, part * state.speed, state.theta)
        state.from_sweeps = np.where(begins, swept, state.from_sweeps)


# Blocks of both kinds


def _keep_contact(own: View) -> None:
    _keep(own, [*interior.contact_layout(3, 1), *path.contact_layout(3)])


def _keep_joint(own: View) -> None:
    _keep(own, [*interior.JOINT, *path.JOINT])


def _keep(own: View, names: Iterable[str]) -> None:
    own.point = own.best = own.swept = own.impulse
    for name in ("p", "Q", *names):  # until a rule gives them
        setattr(own, name, np.zeros(np.shape(getattr(own, name))))
    own.s, own.phi = np.ones(len(own.s)), np.ones(np.shape(own.phi))


def _take(own: View) -> None:
    own.best = np.where(own.better > 0.0, own.impulse, own.best)
    own.point = np.where(own.accepted > 0.0, own.impulse, own.point)


def _restore(own: View) -> None:
    own.impulse = own.best


def _set_out(own: View) -> None:
    own.origin = own.from_sweeps * own.swept


def _push_origin(own: View) -> None:
    own.pushed = own.origin


# Contacts


def _scale_contact(own: View) -> None:
    root, fast = interior.by_rows(own, interior.root_masses(own)), np.abs(own.b)
    own.speed = reduce(np.maximum, root * fast, own.speed)
    own.limit = reduce(np.maximum, fast, own.limit)
    own.scale = np.maximum(own.scale, own.impulse[0] / root[0])
    own.fast = np.maximum(own.fast, own.A[0, 0] * own.impulse[0])
    own.normals = own.normals + 1.0


def _push_contact(own: View) -> None:
    tracked = path.impulses_of_contact(own)
    own.pushed = np.where(own.by_newton > 0.0, own.point, np.where(own.by_path > 0.0, tracked, own.inner))


# Joints


def _scale_joint(own: View) -> None:
    mass = interior.root_mass(own)
    own.speed = np.maximum(own.speed, mass * np.abs(own.b[0]))
    own.limit = np.maximum(own.limit, np.abs(own.b[0]))
    own.scale = np.maximum(own.scale, np.abs(own.impulse[0]) / mass)
    own.fast = np.maximum(own.fast, own.a * np.abs(own.impulse[0]))
    own.normals = own.normals + 1.0


def _push_joint(own: View) -> None:
    tracked, inner = path.impulse_of_joint(own), interior.together(own.inner)
    own.pushed = np.where(own.by_newton > 0.0, own.point, np.where(own.by_path > 0.0, tracked, inner))
