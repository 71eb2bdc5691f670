"""Servos of one joint that share its limit of effort, as one servo in the program of a step.

With servos f = F − D u̇⁺ and motors f = F, a joint feels the sum Σ gear f, within its limit. A single servo of the
joint with the force Σ gear F and the damping Σ gear² D does the same. This stand-in has a row of the contact problem,
and its force is shared out among the members of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.step.drive_kernels import expected
from coupler.graph import Builder, Vector, View, Window, constants, fields
from coupler.grouping import grouped
from coupler.model import Robot
from coupler.model.actuator_limits import SharedLimit
from coupler.model.actuators import Actuator
from coupler.passes import numbered


def stand_ins(robot: Robot, groups: Sequence[SharedLimit]) -> list[Actuator]:
    """The stand-in of each group: a servo at its joint."""
    joints = [robot.tree.links[group.joints[0]].joint for group in groups]
    pairs = zip(joints, groups, strict=True)
    return [Actuator(joint, joint, "velocity", damping=1.0, effort=group.limits[0]) for joint, group in pairs]


class SharedServos:
    """The groups of servos that share a limit.

    Args:
        buffers: the numbers of all actuators, and behind them those of the stand-ins; see drive_kernels.py.
        first: the number of the first stand-in.

    Attributes:
        totals: the force of each group; None if there are no groups.
    """

    def __init__(
        self, builder: Builder, groups: Sequence[SharedLimit], buffers: Mapping[str, Vector], first: int
    ) -> None:
        self._builder, self._groups, self._buffers, self._first = builder, groups, buffers, first
        self.totals = builder.scratch("shared_totals", len(groups)) if groups else None

    def gather(self, window_of: Callable[[Sequence[int]], Window]) -> None:
        """Writes the steps that compute F and D of stand-ins, which push in place of members, from those of members.

        Args:
            window_of: returns the fields that kernels see of some actuators.
        """
        for numbers, alike, size in self._alike():
            window = window_of(numbers) | self._members(alike, ("aim", "loss", "start"))
            self._builder.loop(_gathering(size), drive=window)
            for i in range(size):
                members = [group.members[i] for group in alike]
                slots = {name: self._buffers[name].at(members) for name in ("push", "given")}
                self._builder.loop(_stop_pushing, drive=fields(**slots))
            # The first member of each group pushes for all of them.
            window = fields(push=self._buffers["push"].at([group.members[0] for group in alike]))
            window |= fields(
                total=self._buffers["push"].at(numbers), gear=constants([group.gears[0][0] for group in alike])
            )
            self._builder.loop(_push, drive=window)

    def look(self) -> None:
        """Writes the steps that compute speeds of stand-ins from speeds of members."""
        for numbers, alike, _ in self._alike():
            window = fields(speed=self._buffers["speed"].at(numbers)) | self._members(alike, ("speed",), size=1)
            self._builder.loop(_look, drive=window)

    def begin(self) -> None:
        """Writes the steps that clear the forces of groups, to which the forces of rows are added."""
        if self.totals:
            clear(self._builder, self.totals)

    def share(self, forces: Vector) -> None:
        """Writes the steps that share the forces of groups out among members."""
        for numbers, alike, size in self._alike():
            assert self.totals is not None
            window = fields(total=self.totals.at([number - self._first for number in numbers]))
            window |= self._members(alike, ("aim", "loss", "speed"))
            for i in range(size):
                window |= fields(**{numbered("force", i): forces.at([group.members[i] for group in alike])})
            limits = constants([group.limits[0] for group in alike])
            self._builder.loop(_sharing(size), drive=window | fields(limit=limits))

    def _alike(self) -> list[tuple[list[int], list[SharedLimit], int]]:
        """Groups of the same size: the numbers of their stand-ins, the groups, and their size."""
        alike = grouped(range(len(self._groups)), lambda k: len(self._groups[k].members))
        return [
            ([self._first + k for k in groups], [self._groups[k] for k in groups], size)
            for size, groups in alike.items()
        ]

    def _members(self, alike: Sequence[SharedLimit], names: Sequence[str], size: int | None = None) -> Window:
        """The fields that kernels see of members of groups of one size: of all members, or of the first few."""
        window = fields()
        for i in range(len(alike[0].members) if size is None else size):
            members = [group.members[i] for group in alike]
            window |= fields(**{numbered(name, i): self._buffers[name].at(members) for name in names})
            window |= fields(**{numbered("gear", i): constants([group.gears[0][i] for group in alike])})
        return window


def check_shared_limits(builder: Builder, groups: Sequence[SharedLimit], forces: Vector, residual: Vector) -> None:
    """Writes the steps that set the residual to NaN where a sum of forces is beyond the limit of its joint."""
    for group in groups:
        window = fields(gears=constants([group.gears[0]]), limit=constants([group.limits[0]]), residual=residual.at(0))
        for i, number in enumerate(group.members):
            window |= fields(**{numbered("force", i): forces.at(number)})
        builder.loop(_checking(len(group.members)), drive=window)


# Kernels


def _each(drive: View, name: str, size: int) -> Any:
    return np.array([getattr(drive, numbered(name, i)) for i in range(size)])


def _gathering(size: int) -> Callable[[View], None]:
    def gather(drive: View) -> None:
        aim, loss, gear = (_each(drive, name, size) for name in ("aim", "loss", "gear"))
        drive.aim, drive.loss = gear @ aim, (gear * gear) @ loss
        drive.start = getattr(drive, numbered("start", 0)) / gear[0]
        drive.given = np.array(0.0)
        drive.push = expected(drive)

    return gather


def _stop_pushing(drive: View) -> None:
    drive.push = drive.given = np.array(0.0)


def _push(drive: View) -> None:
    drive.push = drive.total / drive.gear


def _look(drive: View) -> None:
    drive.speed = getattr(drive, numbered("speed", 0)) / getattr(drive, numbered("gear", 0))


def _sharing(size: int) -> Callable[[View], None]:
    def share(drive: View) -> None:
        """Scales all forces by one factor where their sum is beyond the limit.

        Elsewhere the sum differs from that of the stand-in by what the solver leaves, which dampers take.
        """
        aim, loss, gear, speed = (_each(drive, name, size) for name in ("aim", "loss", "gear", "speed"))
        forces = aim - loss * speed
        total, share = gear @ forces, gear * loss / ((gear * gear) @ loss)
        beyond = np.abs(total) > drive.limit
        factor = np.where(beyond, drive.total / np.where(beyond, total, 1.0), 1.0)
        forces = factor * forces + np.where(beyond, 0.0, drive.total - total) * share
        for i, force in enumerate(forces):
            setattr(drive, numbered("force", i), force)

    return share


def _checking(size: int) -> Callable[[View], None]:
    def check(drive: View) -> None:
        total = drive.gears @ _each(drive, "force", size)
        drive.residual = np.where(np.abs(total) > drive.limit, np.nan, drive.residual)

    return check
