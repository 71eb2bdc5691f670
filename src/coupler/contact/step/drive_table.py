"""The constants of actuators that kernels see; see drives.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.compiled import remembered
from coupler.contact.damping import lateness_at
from coupler.contact.scene import ContactScene
from coupler.contact.servos import at_joint, joint_lateness
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
        self._midpoint = scene.integrator == "midpoint"
        self._lateness = [self._lateness_of(number) for number in range(len(self.actuators))]
        self._damping = [self._damping_of(number) for number in range(count)]
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
            "late": [self._lateness[number] for number in numbers],
            "halfway": [0.5 * actuator.damping if self._midpoint else 0.0 for actuator in actuators],
            "ahead": np.full(len(numbers), 0.25 * h if self._midpoint else 0.0),
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
        group = self._group_of.get(number)
        return self._scene.step * float(
            self._mobilities[number] if group is None else self._mobilities[group.members[0]] / group.gears[0][0] ** 2
        )

    @property
    def _mobilities(self) -> np.ndarray:
        return remembered(self._robot, mobilities_of, mobilities_of)

    def _lateness_of(self, number: int) -> Any:
        """θ of an actuator's damper, which feels θ v⁺ + (1 − θ) v; see damping.py. It is 1 for stand-ins."""
        actuator = self.actuators[number]
        if not self._midpoint or number >= len(self._robot.actuators) or not actuator.servo:
            return 1.0
        if at_joint(self._robot, actuator, yielding=False):
            return joint_lateness(self._robot, actuator, self._scene.step)
        return lateness_at(1.0 / self._mobilities[number], self._scene.step * actuator.most_damping)

    def _damping_of(self, number: int) -> Any:
        """D of a servo in a step: how much its force drops per velocity after the step; see drives.py, damping.py.

        For a damper it is the largest value; its control sets the actual one.
        """
        actuator = self.actuators[number]
        spring = (0.25 if self._midpoint else 1.0) * self._scene.step * actuator.stiffness
        return self._lateness[number] * actuator.most_damping + spring

    def _rest(self, actuator: Actuator) -> float:
        """The position of a servo at a joint at which the springs of that joint are relaxed; zero for others."""
        if not self.is_at_joint(actuator):
            return 0.0
        ((link, j, gear),) = terms_of(self._robot, actuator)
        return gear * float(self._robot.tree.links[link].kind.rest[j])
