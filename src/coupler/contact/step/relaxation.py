"""Sweeps over the blocks of a contact problem, as steps of a program: each block in turn obeys its law.

This does for lanes and threads what `bisection` does in NumPy for one state: it takes w of a block with all impulses as
they are, finds the block's next impulses by its law (see laws.py), and goes on until no block changes by more than a
tolerance.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.step.blocks import braked, contact_error, joint_error, mobilities, shared
from coupler.contact.step.cone_update import ConeBlock, cone_at_rest, cone_sliding
from coupler.contact.step.interaction import InteractingBlocks, push, velocities
from coupler.contact.step.islands import Islands
from coupler.contact.step.turning_update import turning_update
from coupler.graph import Vector, View, constants, fields
from coupler.passes import Schedule

_FAR = 1e30  # a change that is above all tolerances
_NEAR = 1e-6  # m/s: sweeps that change velocities by less, ...
_SLOW = 0.3  # ... and by more than this part of the change before, leave the rest to the refinement
_WHOLE = 2  # sweeps over all blocks, before only blocks of unsolved islands go on


class Relaxation:
    """The sweeps over the active blocks of a problem.

    Args:
        islands: finds islands that are not solved; None to run over all active blocks always.

    Attributes:
        largest_change: 1, the largest change of a velocity by its own block's impulse in any sweep but the last, m/s.
    """

    def __init__(self, blocks: InteractingBlocks, islands: Islands | None = None) -> None:
        self._blocks, self.islands = blocks, islands
        self._change = blocks.builder.scratch("change", 1)
        self._before = blocks.builder.scratch("change_before", 1)
        self.largest_change = blocks.builder.scratch("largest_change", 1)

    def solve(self, tolerance: float, at_most: int, residual: Vector, sweeps: Vector, *, patient: bool = False) -> None:
        """Writes the steps that compute impulses, from those to start from.

        With islands, sweeps end early when they are near a solution and come nearer slowly: by then it is known what
        sticks, slides and opens, and the refinement is faster.

        Args:
            tolerance: sweeps end when no impulse changes a velocity of its own block by more, m/s.
            at_most: the largest number of sweeps.
            residual: 1, gets the error of the laws, m/s (see residuals.py).
            sweeps: 1; the number of sweeps is added to it.
            patient: whether sweeps go on even if they are slow.
        """
        builder, limit = self._blocks.builder, fields(tolerance=constants([tolerance]))
        ended = _settled if patient or self.islands is None else _settled_or_slow
        window = fields(change=self._change.at(0), before=self._before.at(0), sweeps=sweeps.at(0))
        window |= fields(largest_change=self.largest_change.at(0))

        def sweep(at_most: int) -> None:
            with builder.repeat(until=ended, at_most=at_most, sweep=window | limit):
                builder.loop(_again, sweep=window)
                builder.once((self._sweep, self._blocks.part), self._sweep)

        builder.loop(_begin, sweep=window)
        if self.islands is None or at_most <= _WHOLE:
            sweep(at_most)
        else:
            sweep(_WHOLE)
            with builder.repeat(until=ended, at_most=1, sweep=window | limit):
                self._blocks.measure()
                self.islands.choose(tolerance)
                with self._blocks.only("refined"):
                    sweep(at_most - _WHOLE)
        self.judge(residual)

    def judge(self, residual: Vector) -> None:
        """Writes the steps that compute the error of the laws, m/s, into `residual`."""
        self._blocks.builder.loop(_no_residual, problem=fields(residual=residual.at(0)))
        self._blocks.measure()
        self._blocks.each(_judge_contact, _judge_joint, more=shared(residual=residual))

    def _sweep(self) -> None:
        """Writes one sweep: blocks one after the other, each with the new impulses of those before.

        Sliding costs more than sticking or opening. So it has a kernel of its own, which is skipped where none slides.
        """
        blocks, change = self._blocks, shared(change=self._change)
        schedule = Schedule(blocks.builder)
        for block in blocks.all:
            blocks.look_along(schedule, block)
            if block < blocks.contacts:
                if blocks.width(block) == 3:
                    blocks.visit(schedule, _rest, block)
                    blocks.visit(schedule, _slide, block, "slides")
                else:
                    blocks.visit(schedule, _turn, block)
                blocks.visit(schedule, _take_over, block, more=change)
            else:
                blocks.visit(schedule, _brake, block, more=change)
            blocks.push_along(schedule, block)
        schedule.run()


# Kernels of sweeps


def _begin(sweep: View) -> None:
    sweep.change = sweep.before = np.array(_FAR)
    sweep.largest_change = np.array(0.0)


def _settled(sweep: View) -> Any:
    return sweep.change <= sweep.tolerance


def _settled_or_slow(sweep: View) -> Any:
    return _settled(sweep) | ((sweep.change <= _NEAR) & (sweep.change > _SLOW * sweep.before))


def _again(sweep: View) -> None:
    sweep.largest_change = np.where(
        sweep.change < _FAR, np.maximum(sweep.largest_change, sweep.change), sweep.largest_change
    )
    sweep.before, sweep.change, sweep.sweeps = sweep.change, np.array(0.0), sweep.sweeps + 1.0


def _no_residual(problem: View) -> None:
    problem.residual = np.array(0.0)


# Contacts


def _rest(block: View, ways: list[View]) -> None:
    w = velocities(block, ways)
    block.new, slides = cone_at_rest(_cone_block(block), block.friction[0], block.impulse, w)
    block.slides = np.where(slides, 1.0, 0.0)


def _slide(block: View, ways: list[View]) -> None:
    block.new = cone_sliding(_cone_block(block), block.friction[0], block.impulse, velocities(block, ways))


def _turn(block: View, ways: list[View]) -> None:
    w, mobility = velocities(block, ways), mobilities(block)
    block.new = turning_update(_cone_block(block), block.A, mobility, block.friction, block.impulse, w)


def _take_over(block: View, ways: list[View]) -> None:
    change = block.new - block.impulse
    size, m = np.abs(change), mobilities(block)
    block.change = np.maximum(block.change, m[0] * size[0])
    for (_, rows), mobility in zip(laws.discs(block.friction), m[1:], strict=True):
        block.change = np.maximum(block.change, mobility * reduce(np.maximum, size[rows]))
    push(block, ways, change)
    block.impulse, block.slides = block.new, np.array(0.0)


def _judge_contact(block: View) -> None:
    block.residual = np.maximum(block.residual, contact_error(block))


def _cone_block(block: View) -> ConeBlock:
    return ConeBlock(block.A[:3, :3], block.inverse, block.normal_step, block.disc_steps[0])


# Joints


def _brake(block: View, ways: list[View]) -> None:
    new, change = braked(block, velocities(block, ways))
    block.change = np.maximum(block.change, change)
    push(block, ways, np.array([new]) - block.impulse)
    block.impulse = np.array([new])


def _judge_joint(block: View) -> None:
    block.residual = np.maximum(block.residual, joint_error(block))
