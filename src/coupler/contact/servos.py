"""Servos that act as springs and dampers of single joints, because no effort limit cuts their force short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coupler.compiled import remembered
from coupler.contact.damping import lateness
from coupler.model import Robot
from coupler.model.actuator_limits import SharedLimit, shared_limits
from coupler.model.actuators import Actuator, terms_of


def at_joint(robot: Robot, actuator: Actuator, *, yielding: bool) -> bool:
    """Whether a servo acts as a spring and a damper of one joint: no limit cuts its force, or none is assumed to."""
    if actuator.kind not in ("position", "velocity") or actuator.along is not None:
        return False
    if yielding and has_limits(robot, actuator):
        return False
    return len(terms_of(robot, actuator)) == 1


def has_limits(robot: Robot, actuator: Actuator) -> bool:
    """Whether an actuator has effort limits, of its own or shared with others."""
    if np.isfinite(actuator.effort).any():
        return True
    return any(robot.actuators[i] is actuator for group in servo_groups(robot) for i in group.members)


def servo_groups(robot: Robot) -> list[SharedLimit]:
    """Groups of servos, and of motors beside them, that share the effort limit of their joint."""
    return remembered(robot, servo_groups, _servo_groups)


def _servo_groups(robot: Robot) -> list[SharedLimit]:
    return [shared for shared in shared_limits(robot, robot.actuators) if shared.servos]


def may_yield(robot: Robot) -> bool:
    """Whether a servo of a single joint has effort limits, at which it yields."""
    return any(
        has_limits(robot, actuator) and at_joint(robot, actuator, yielding=False) for actuator in robot.actuators
    )


def joint_lateness(robot: Robot, actuator: Actuator, step: float) -> Any:
    """θ of a servo of a single joint in the midpoint rule: that of all dampers of its joint; see damping.py."""
    ((link, j, _),) = terms_of(robot, actuator)
    tree = servoed(robot, yielding=False).tree
    return lateness(tree, tree.links[link], step)[j]


def servoed(robot: Robot, *, yielding: bool) -> Robot:
    """The robot with springs and dampers at its joints in place of servos that act `at_joint`."""
    if not any(at_joint(robot, actuator, yielding=yielding) for actuator in robot.actuators):
        return robot
    return remembered(robot, (servoed, yielding), _servoed, yielding)


def _servoed(robot: Robot, yielding: bool) -> Robot:
    links = list(robot.tree.links)
    for actuator in robot.actuators:
        if at_joint(robot, actuator, yielding=yielding):
            ((link, j, gear),) = terms_of(robot, actuator)
            kind, more = links[link].kind, gear**2 * np.eye(links[link].kind.nv)[j]
            stiffness, damping = kind.stiffness + actuator.stiffness * more, kind.damping + actuator.damping * more
            links[link] = replace(links[link], kind=kind.with_values(stiffness=stiffness, damping=damping))
    return replace(robot, tree=replace(robot.tree, links=tuple(links)))
