"""The constants of actuators that kernels see; see drives.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.compiled import remembered
from coupler.contact.scene import ContactScene
from coupler.contact.servos import at_joint, servo_damping
from coupler.contact.step.drive_rows import ENDLESS, damping_of, drive_rows, effort_limits, mobilities_of
from coupler.contact.step.shared_servos import stand_ins
from coupler.graph import Window, constants, fields
from coupler.model import Robot
from coupler.model.actuator_limits import SharedLimit
from coupler.model.actuators import Actuator, terms_of

_FAR = 1e10  # rad/s or m/s: stands for a speed limit that there is not


class DriveTable:
    """The actuators of a robot, and behind them one stand-in for each group of servos that share a limit.

    Args:
        robot: the robot as it is described.
        groups: servos that share a limit, and act as one.

    Attributes:
        actuators: all of them.
        rows: their rows of the contact problem.
    """

    def __init__(self, robot: Robot, scene: ContactScene, groups: Sequence[SharedLimit]) -> None:
        self._robot, self._scene, count = robot, scene, len(robot.actuators)
        self.actuators = [*robot.actuators, *stand_ins(robot, groups)]
        self._damping: list[Any] = [servo_damping(actuator, scene) for actuator in robot.actuators]
        self._damping += [damping_of(group, self._damping) for group in groups]
        members = {number for group in groups for number in group.members}
        self.rows = drive_rows(robot, scene, self.actuators, self._damping, members)
        self._group_of = {count + k: group for k, group in enumerate(groups)}

    def is_at_joint(self, actuator: Actuator) -> bool:
        """Whether a servo is a spring and a damper of its joint; see `at_joint`."""
        return at_joint(self._robot, actuator, yielding=self._scene.yielding)

    def window(self, numbers: Sequence[int]) -> Window:
        """The constants of some actuators."""
        actuators, h = [self.actuators[number] for number in numbers], self._scene.step
        endless = (-ENDLESS, ENDLESS)  # limits of servos at joints are not looked at in the step
        limits = np.array([endless if self.is_at_joint(x) else effort_limits(x) for x in actuators])
        table = {
            "lowest_control": np.clip([actuator.control[0] for actuator in actuators], -ENDLESS, ENDLESS),
            "highest_control": np.clip([actuator.control[1] for actuator in actuators], -ENDLESS, ENDLESS),
            "lower": limits[:, 0],
            "upper": limits[:, 1],
            "stiffness": [actuator.stiffness for actuator in actuators],
            "gain": [actuator.damping for actuator in actuators],
            "damping": [self._damping[number] for number in numbers],
            "ahead": np.full(len(numbers), 0.25 * h if self._scene.integrator == "midpoint" else 0.0),
            "rest": [self._rest(actuator) for actuator in actuators],
            "kick": [self._kick(number) for number in numbers],
            "fastest": np.clip([actuator.speed for actuator in actuators], 0.0, _FAR),
            "step": np.full(len(numbers), h),
        }
        return fields(**{name: constants(np.array(values)) for name, values in table.items()})

    def _kick(self, number: int) -> float:
        """Roughly the change of an actuator's velocity by a unit force within a step; zero if it has no row."""
        if all(row.actuator != number for row in self.rows):
            return 0.0
        mobilities, group = remembered(self._robot, mobilities_of, mobilities_of), self._group_of.get(number)
        return self._scene.step * float(
            mobilities[number] if group is None else mobilities[group.members[0]] / group.gears[0][0] ** 2
        )

    def _rest(self, actuator: Actuator) -> float:
        """The position of a servo at a joint at which the springs of that joint are relaxed; zero for others."""
        if not self.is_at_joint(actuator):
            return 0.0
        ((link, j, gear),) = terms_of(self._robot, actuator)
        return gear * float(self._robot.tree.links[link].kind.rest[j])
