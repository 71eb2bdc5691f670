"""Adhesion in the program of a step: contacts that pull two bodies together.

An adhesion with the force f pulls with f/n along the normal of each of the n contacts at which its body touches when
the step begins. These forces are known before the contact problem is solved, and go the same ways as its impulses: they
are impulses −h f/n along the columns of contacts, which act besides λ (`Blocks.pulls`). So λ has what it takes against
the pull, and its friction holds the bodies together. All contacts that are pulled take part in the problem.

A contact touches if its gap is at most `slop`. Around a bend, a contact that has pressed opens within a step, to second
order, before it is pulled back; so it may be somewhat more open. A step with the midpoint rule measures a body that is
not near a contact half a step later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.passing import slop
from coupler.contact.scene import Layout
from coupler.contact.step.candidates import Candidates
from coupler.contact.step.halves import Halves
from coupler.contact.step.interaction import InteractingBlocks
from coupler.contact.step.report import ContactReport
from coupler.graph import Builder, Vector, View, Window, constants, fields
from coupler.model import Robot

_BEND = 100.0  # m/s²: a contact that has pressed may be open by this times h², which is enough for bends of 20 g
_FURTHEST = 1e-3  # m: but not further than that


class Adhesions:
    """The adhesions of a robot in a step.

    Args:
        robot: the robot.
        step: h, s.
        candidates: the candidate contacts.
        blocks: the contact problem, which gets the impulses that pull.
        forces: the forces of all actuators, within their limits, N.
    """

    def __init__(
        self, robot: Robot, step: float, candidates: Candidates, blocks: InteractingBlocks, forces: Vector
    ) -> None:
        self._builder, self._step, self._blocks, self._forces = blocks.builder, step, blocks, forces
        self._along = {i: x.along for i, x in enumerate(robot.actuators) if x.along is not None and x.along.by_contact}
        self._rows = [
            (number, actuator, contact)
            for number, (actuator, along) in enumerate(self._along.items())
            for i, pair in enumerate(candidates.pairs)
            if along.ends[0].body in (pair.one.body, pair.other.body)
            for contact in candidates.contacts_of(i)
        ]
        self._contacts = sorted({contact for _, _, contact in self._rows})
        names = ("adhesion_contacts", "adhesion_work")
        self._counts, self._work = (self._builder.scratch(name, len(self._along)) for name in names)
        self._touches = self._builder.scratch("adhesion_touches", max(len(self._rows), 1))
        if self._rows:
            blocks.pull()

    def pull(self, report: ContactReport, layout: Layout, halves: Halves) -> None:
        """Writes the steps that find the contacts that are pulled, and the impulses that pull them.

        Contacts are measured; λ has the impulses of the step before. Trees of bodies that are pulled are near a contact
        in the next step, so that it finds them where they start.
        """
        for vector in (self._counts, self._work):
            clear(self._builder, vector)
        if not self._rows:
            return
        for vector in (self._blocks.pulls, self._blocks.flags["pulled"]):
            assert vector is not None
            clear(self._builder, vector)
        contacts = [contact for _, _, contact in self._rows]
        limits = {"slop": slop(self._step), "bend": min(_BEND * self._step**2, _FURTHEST)}
        window = self._window() | fields(gap=report.at("gaps", contacts))
        window |= fields(**{name: constants(np.full(len(contacts), limit)) for name, limit in limits.items()})
        self._builder.loop(_count, row=window)
        self._builder.loop(_pull, row=window)
        self._builder.list_flags(self._blocks.flags["pulled"])
        trees = {(contact, tree) for _, contact, tree in layout.stopping_rows if contact in {*self._contacts}}
        if halves.near_next.size and trees:
            rows, places = zip(*sorted(trees), strict=True)
            window = fields(pulled=self._blocks.flags["pulled"].at(rows), near=halves.near_next.at(places))
            self._builder.loop(_come_near, row=window)

    def let_wait(self) -> None:
        """Writes the steps that flag all contacts that are pulled as waiting; the contact problem has begun."""
        if self._rows:
            flags = {name: self._blocks.flags[name].at(self._contacts) for name in ("pulled", "waiting")}
            window = fields(**flags, joining=self._blocks.joining.at([0] * len(self._contacts)))
            self._builder.loop(_let_wait, block=window)

    def look(self, report: ContactReport) -> None:
        """Writes the steps that compute the work of adhesions, once the contact problem is solved.

        Args:
            report: has the velocities of contacts before the step, and after it without impulses.
        """
        if not self._rows:
            return
        clear(self._builder, self._work)
        self._blocks.measure_change(where="pulled")
        for group in self._blocks.alike(self._contacts):
            kind = {*group.tolist()}
            rows = [i for i, (_, _, contact) in enumerate(self._rows) if contact in kind]
            contacts = [self._rows[i][2] for i in rows]
            window = self._window(rows) | fields(work=self._work.at([self._rows[i][0] for i in rows]))
            window |= fields(**{name: report.at(name, contacts) for name in ("free", "approach")})
            self._builder.loop(_work, row=window, block=self._blocks.of(contacts), where=self._touches.at(rows))

    def report(self, forces: Vector, work: Vector) -> None:
        """Writes the steps that report forces and work, N and J, as entries of vectors over all actuators."""
        actuators, numbers = list(self._along), range(len(self._along))
        slots = {"force": forces.at(actuators), "work": work.at(actuators)}
        slots |= {"count": self._counts.at(numbers), "done": self._work.at(numbers)}
        self._builder.loop(_act, row=fields(**slots))

    def _window(self, rows: Sequence[int] | None = None) -> Window:
        """The fields that kernels see of an adhesion and a contact; of all, if rows are not given."""
        chosen = self._rows if rows is None else [self._rows[i] for i in rows]
        numbers, actuators, contacts = (list(column) for column in zip(*chosen, strict=True))
        first, pulls = self._blocks.rows.first[contacts], self._blocks.pulls
        assert pulls is not None
        return fields(
            touches=self._touches.at(range(len(chosen)) if rows is None else rows),
            count=self._counts.at(numbers),
            actuating=self._forces.at(actuators),
            pressed=self._blocks.impulses.at(first),
            pull=pulls.at(first),
            pulled=self._blocks.flags["pulled"].at(contacts),
            scale=constants([self._step * float(self._along[i].numbers[0]) for i in actuators]),
        )


def leave_idle(builder: Builder, robot: Robot, forces: Vector) -> None:
    """Writes the steps that report no force of adhesions, where nothing can touch."""
    actuators = [i for i, actuator in enumerate(robot.actuators) if actuator.along and actuator.along.by_contact]
    builder.loop(_leave_idle, row=fields(force=forces.at(actuators)))


# Kernels of an adhesion and a contact


def _count(row: View) -> None:
    touches = (row.gap <= row.slop) | ((row.pressed > 0.0) & (row.gap <= row.bend))
    row.touches = np.where(touches & (row.actuating > 0.0), 1.0, 0.0)
    row.count = row.count + row.touches


def _share(row: View) -> Any:
    """The impulse by which an adhesion pulls a contact; zero if it does not touch."""
    return row.touches * row.scale * row.actuating / np.maximum(row.count, 1.0)


def _pull(row: View) -> None:
    row.pull = row.pull - _share(row)
    row.pulled = np.maximum(row.pulled, row.touches)


def _work(row: View, block: View) -> None:
    """Adds the work of a pull: the impulse, times the mean velocity of its contact along the normal."""
    row.work = row.work - _share(row) * 0.5 * (row.approach[0] + row.free[0] + block.dw[0])


# Kernels of contacts, and of adhesions


def _let_wait(block: View) -> None:
    block.waiting = np.maximum(block.waiting, block.pulled)
    block.joining = np.maximum(block.joining, block.pulled)


def _come_near(row: View) -> None:
    row.near = np.maximum(row.near, row.pulled)


def _leave_idle(row: View) -> None:
    row.force = np.array(0.0)


def _act(row: View) -> None:
    row.force, row.work = np.where(row.count > 0.0, row.force, 0.0), row.done
