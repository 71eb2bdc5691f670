"""Sweeps over the blocks of a contact problem, as steps of a program: each block in turn obeys its law.

What `bisection` does in NumPy for one state, for lanes and threads: w of a block with all impulses as they are, its
law's next impulses (see laws.py), and so on until no block changes by more than a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.blocks import Blocks, push, shared, velocities
from coupler.contact.cone_update import ConeBlock, cone_at_rest, cone_sliding, cone_update
from coupler.graph import Buffer, View, constants, fields
from coupler.passes import Schedule

__all__ = ["Relaxation"]

_FEW = 24  # contacts that are spelled out one by one; more of them are rows of a table, or code would grow
_FAR = 1e30  # a change that is above all tolerances


class Relaxation:
    """The sweeps over the blocks of a problem."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, self._builder = blocks, blocks.builder
        self._change, self._slides = (self._builder.scratch(name, 1) for name in ("change", "slides"))

    def solve(self, blocks: Iterable[int], tolerance: float, most: int, residual: Buffer, sweeps: Buffer) -> None:
        """Writes the steps to impulses, from those to start from.

        Args:
            blocks: those that take part.
            tolerance: in the last sweep no impulse changes a velocity of its own block by more, m/s.
            most: how many sweeps there are at most.
            residual: 1, how far the impulses are from the laws, m/s (see residuals.py).
            sweeps: 1, how many there were.
        """
        blocks, builder = [*blocks], self._builder
        window = fields(change=self._change.at(0), sweeps=sweeps.at(0, 1))
        builder.loop(_begin, here=window)
        with builder.repeat(until=_settled, at_most=most, here=window | fields(tolerance=constants([tolerance]))):
            builder.loop(_again, here=window)
            self._sweep(blocks)
        self.judge(blocks, residual)

    def judge(self, blocks: Iterable[int], residual: Buffer) -> None:
        """Writes the steps to how far impulses are from the laws."""
        self._builder.loop(_no_residual, here=fields(residual=residual.at(0)))
        schedule = Schedule(self._builder)
        for block in blocks:
            kernel = _judge_contact if block < self._blocks.contacts else _judge_joint
            self._blocks.visit(schedule, kernel, block, shared(residual=residual))
        schedule.run()

    def _sweep(self, blocks: list[int]) -> None:
        """All blocks, one after the other; each is taken over before the next is looked at."""
        change, contacts = shared(change=self._change), [block for block in blocks if block < self._blocks.contacts]
        if len(contacts) > _FEW:
            self._blocks.run(_press, contacts, change)
        else:
            for block in contacts:
                self._press_one(block)
        self._blocks.run(_brake, [block for block in blocks if block >= self._blocks.contacts], change)

    def _press_one(self, block: int) -> None:
        """One of few contacts. What slides costs more than what sticks or opens, and is left out where none does."""
        self._blocks.run(_rest, [block], shared(slides=self._slides))
        with self._builder.repeat(until=_holds, at_most=1, here=fields(slides=self._slides.at(0))):
            self._blocks.run(_slide, [block])
        self._blocks.run(_take_over, [block], shared(change=self._change))


# Kernels of sweeps


def _begin(here: View) -> None:
    here.change, here.sweeps = np.array(_FAR), np.zeros(1)


def _settled(here: View) -> Any:
    return here.change <= here.tolerance


def _again(here: View) -> None:
    here.change, here.sweeps = np.array(0.0), here.sweeps + 1.0


def _no_residual(here: View) -> None:
    here.residual = np.array(0.0)


# Contacts


def _rest(own: View, ways: list[View]) -> None:
    w = velocities(own, ways)
    own.new, slides = cone_at_rest(_block(own), own.friction, own.impulse, w)
    own.slides = np.where(slides, 1.0, 0.0)


def _holds(here: View) -> Any:
    return here.slides <= 0.0


def _slide(own: View, ways: list[View]) -> None:
    own.new = cone_sliding(_block(own), own.friction, own.impulse, velocities(own, ways))


def _take_over(own: View, ways: list[View]) -> None:
    _take(own, ways, own.new)


def _press(own: View, ways: list[View]) -> None:
    _take(own, ways, cone_update(_block(own), own.friction, own.impulse, velocities(own, ways)))


def _take(own: View, ways: list[View], new: Any) -> None:
    change = new - own.impulse
    n, x, y = np.abs(change)
    own.change = np.maximum(own.change, np.maximum(own.A[0, 0] * n, own.mobility * np.maximum(x, y)))
    push(ways, change)
    own.impulse = new


def _judge_contact(own: View, ways: list[View]) -> None:
    error = laws.cone_residual(own.A, own.friction, own.impulse, velocities(own, ways))
    own.residual = np.maximum(own.residual, error)


def _block(own: View) -> ConeBlock:
    return ConeBlock(own.A, own.inverse, own.normal_step, own.tangent_step)


# Joints


def _brake(own: View, ways: list[View]) -> None:
    new, change = _braked(own, velocities(own, ways))
    own.change = np.maximum(own.change, change)
    push(ways, np.array([new]) - own.impulse)
    own.impulse = np.array([new])


def _judge_joint(own: View, ways: list[View]) -> None:
    own.residual = np.maximum(own.residual, _braked(own, velocities(own, ways))[1])


def _braked(own: View, w: Any) -> tuple[Any, Any]:
    new = laws.joint_update(own.a, own.low, own.high, own.bound, own.impulse[0], w[0])
    return new, own.a * np.abs(new - own.impulse[0])
