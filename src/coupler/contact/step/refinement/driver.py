"""The iterations that follow the sweeps over a contact problem; each state follows a rule of its own (rules.py).

Each iteration linearises the laws by the rule that a state follows, solves one linear system, and ends with impulses
that are judged; the best ones are kept. Where contacts are to share their load (sharing.py), Newton's method goes on
from the solution to one with smaller impulses. Where there may be several islands of bodies that touch each other, only
blocks of islands take part that sweeps have not solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.contact.rows import BlockRecords, Indices, Layout
from coupler.contact.step.blocks import BlockKernel, shared
from coupler.contact.step.interaction import InteractingBlocks, Ways
from coupler.contact.step.refinement import gauge, interior, newton, path, rules, shares
from coupler.contact.step.refinement.elimination import Elimination
from coupler.contact.step.relaxation import Relaxation
from coupler.graph import Vector, View, Window, constants, fields

_ITERATIONS = 1200  # at most, of all rules together
# Impulses of blocks: to linearise at, the best so far, those that sweeps have left, and where a path starts.
_POINTS = ("point", "best", "swept", "origin")
_JOINT: Layout = dict.fromkeys(_POINTS, 1) | {"ahead": 3} | interior.JOINT | path.JOINT


def _contact(rows: int, discs: int) -> Layout:
    points: Layout = dict.fromkeys((*_POINTS, "ahead"), rows)
    return points | interior.contact_layout(rows, discs) | path.contact_layout(rows)


class Refinement:
    """The iterations that follow the sweeps over the active blocks of a problem.

    Args:
        ways: the nodes through which blocks see each other.
        relaxation: the sweeps, which judge impulses and know islands.

    Attributes:
        limit: 1, the residual to reach, m/s; `interior.ENDLESS` where the sweeps have reached theirs.
    """

    def __init__(self, blocks: InteractingBlocks, ways: Ways, relaxation: Relaxation) -> None:
        builder = blocks.builder
        self._blocks, self._relaxation, self._builder = blocks, relaxation, builder
        self._system = Elimination(blocks, ways)
        names = (*rules.STATE, *interior.STATE, *path.STATE, *shares.STATE)
        self._state = {name: builder.scratch(f"refinement_{name}", 1) for name in names}
        self.limit = self._state["limit"]
        self._windows = dict[int, Window]()  # further fields of blocks, by the first block of each kind
        self._records = BlockRecords(builder, "refined", blocks.rows, blocks.joints, _contact, _JOINT)

    def solve(
        self,
        tolerance: float,
        residual: Vector,
        iterations: Vector,
        sharing: Vector | None = None,
        enough: float = 1.0,
    ) -> None:
        """Writes the steps that improve the impulses that sweeps have left, in states where these are not good enough.

        Args:
            tolerance: the residual to reach, m/s; times the largest entry of b, if that is above 1 m/s.
            residual: 1, the error of the laws, m/s.
            iterations: 1; the number of iterations is added to it.
            sharing: 1, above zero if contacts are to share their load; None if they never are.
            enough: times the tolerance, the residual at which costly rules give up; whatever b is.
        """
        builder, blocks = self._builder, self._blocks
        state = fields(**{name: buffer.at(0) for name, buffer in self._state.items()})
        state |= fields(residual=residual.at(0), iterations=iterations.at(0), tolerance=constants([tolerance]))
        state |= fields(enough=constants([enough * tolerance]))
        state |= fields(sign=self._system.sign.at(0), sharing=sharing.at(0) if sharing else constants([0.0]))
        builder.loop(rules.set_no_limit, state=state)
        with builder.repeat(until=rules.good_enough, at_most=1, rare=True, state=state):
            if islands := self._relaxation.islands:
                islands.choose(tolerance)
            with blocks.only("refined" if islands else "active"):
                builder.loop(rules.clear_scales, state=state)
                self._run(_scale_contact, _scale_joint)
                builder.loop(rules.begin, state=state)
                self._run(_keep_contact, _keep_joint)
                self._system.begin()
                with builder.repeat(until=rules.ended, at_most=_ITERATIONS, state=state):
                    builder.loop(rules.clear_sums, state=state)
                    self._iterate(state)
                    blocks.sum_up()
                    self._relaxation.judge(self._state["error"])
                    builder.loop(rules.decide, state=state)
                    if sharing:
                        builder.loop(shares.decide, state=state)
                    self._run(_take, _take)
                self._run(_restore, _restore)
            blocks.sum_up()
            self._relaxation.judge(residual)

    def _iterate(self, state: Window) -> None:
        """Writes an iteration: each part of it runs for the states that follow its rule."""
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
            self._run(gauge.hold_contact, gauge.hold_joint)
        self._system.factor()
        self._solve()
        with self._states_that("by_gauge"):
            self._run(gauge.gauge_contact, gauge.gauge_joint)
        with self._states_that("by_newton"):
            self._run(newton.step_contact, newton.step_joint)
        with self._states_that("by_interior", "by_path"):
            self._correct(state)

    def _correct(self, state: Window) -> None:
        """Writes the second half of iterations that predict first, and then correct the prediction."""
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
            builder.loop(rules.decide_path, state=state)
            self._run(path.end_contact, path.end_joint)

    def _start_path(self, state: Window) -> None:
        """Writes the steps that start a path, which takes velocities at its origin and at its first point."""
        self._run(_set_out, _set_out)
        self._sum_up(_push_origin, _push_origin)
        self._run(path.place_contact, path.place_joint)
        self._sum_up(path.push_contact, path.push_joint)
        self._run(path.complete_contact, path.complete_joint)
        self._builder.loop(path.begin, state=state)

    @contextmanager
    def _states_that(self, *names: str) -> Iterator[None]:
        """A context: steps written inside run for states that follow, or start, one of these rules."""

        def others(state: View) -> Any:
            return reduce(add, (getattr(state, name) for name in names)) <= 0.0

        state = fields(**{name: self._state[name].at(0) for name in names})
        with self._builder.repeat(until=others, at_most=1, state=state):
            yield

    def _more(self, blocks: Indices) -> Window:
        """The fields that kernels see of all blocks of one kind besides `Blocks.of`."""
        if blocks[0] not in self._windows:
            first_drive = self._blocks.contacts + self._blocks.joints - self._drives
            moves = fields(moves=constants([float(block < first_drive) for block in blocks]))
            self._windows[blocks[0]] = self._records.of(blocks) | shared(**self._state)(blocks) | moves
        return self._windows[blocks[0]]

    @property
    def _drives(self) -> int:
        """The number of rows of actuators, which are the last ones."""
        return self._blocks.offsets.size if self._blocks.offsets else 0

    def _run(self, contact: BlockKernel, joint: BlockKernel) -> None:
        self._blocks.each(contact, joint, more=self._more)

    def _sum_up(self, contact: BlockKernel, joint: BlockKernel) -> None:
        """Writes the steps that compute x and velocities from the impulses that kernels put into `pushed`."""
        self._run(contact, joint)
        self._blocks.sum_up("pushed")
        self._blocks.measure()

    def _solve(self) -> None:
        """Writes the steps that compute the changes of blocks' velocities from p and Q."""
        self._system.solve()
        self._blocks.measure_change(self._system.right)


# Blocks of both kinds


def _keep_contact(block: View) -> None:
    _keep(block, [*interior.contact_layout(3, 1), *path.contact_layout(3)])


def _keep_joint(block: View) -> None:
    _keep(block, [*interior.JOINT, *path.JOINT])


def _keep(block: View, names: Iterable[str]) -> None:
    block.point = block.best = block.swept = block.impulse
    for name in ("p", "Q", *names):  # rules that a state does not follow compute with them all the same
        setattr(block, name, np.zeros(np.shape(getattr(block, name))))
    block.s, block.phi = np.ones(len(block.s)), np.ones(np.shape(block.phi))


def _take(block: View) -> None:
    block.best = np.where(block.better > 0.0, block.impulse, block.best)
    block.point = np.where(block.accepted > 0.0, block.impulse, block.point)


def _restore(block: View) -> None:
    block.impulse = block.best


def _set_out(block: View) -> None:
    block.origin = block.from_sweeps * block.swept


def _push_origin(block: View) -> None:
    block.pushed = block.origin


# Contacts


def _scale_contact(block: View) -> None:
    root, fast = interior.by_rows(block, interior.root_masses(block)), np.abs(block.b)
    block.speed = reduce(np.maximum, root * fast, block.speed)
    block.limit = reduce(np.maximum, fast, block.limit)
    block.scale = np.maximum(block.scale, block.impulse[0] / root[0])
    block.fast = np.maximum(block.fast, block.A[0, 0] * block.impulse[0])
    block.normals = block.normals + 1.0


def _push_contact(block: View) -> None:
    tracked = path.impulses_of_contact(block)
    block.pushed = np.where(block.by_newton > 0.0, block.point, np.where(block.by_path > 0.0, tracked, block.inner))


# Joints


def _scale_joint(block: View) -> None:
    mass = interior.root_mass(block)
    block.speed = np.maximum(block.speed, mass * np.abs(block.b[0]))
    block.limit = np.maximum(block.limit, block.moves * np.abs(block.b[0]))  # targets of servos are no velocities
    block.scale = np.maximum(block.scale, np.abs(block.impulse[0]) / mass)
    block.fast = np.maximum(block.fast, block.a * np.abs(block.impulse[0]))
    block.normals = block.normals + 1.0


def _push_joint(block: View) -> None:
    tracked, inner = path.impulse_of_joint(block), interior.together(block.inner)
    block.pushed = np.where(block.by_newton > 0.0, block.point, np.where(block.by_path > 0.0, tracked, inner))
