"""Servos that are springs and dampers of single joints: those that no limit of effort cuts short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coupler.compiled import remembered
from coupler.contact.scene import ContactScene
from coupler.model import Robot
from coupler.model.actuator_limits import SharedLimit, shared_limits
from coupler.model.actuators import Actuator, terms_of


def at_joint(robot: Robot, actuator: Actuator, *, yielding: bool) -> bool:
    """Whether a servo is a spring and a damper of a joint, as no limit cuts its force short, or is assumed to."""
    if actuator.kind not in ("position", "velocity") or (yielding and has_limits(robot, actuator)):
        return False
    return len(terms_of(robot, actuator)) == 1


def has_limits(robot: Robot, actuator: Actuator) -> bool:
    """Whether an actuator has limits of effort, of its own or together with others."""
    if np.isfinite(actuator.effort).any():
        return True
    return any(robot.actuators[i] is actuator for group in servo_groups(robot) for i in group.members)


def servo_groups(robot: Robot) -> list[SharedLimit]:
    """Servos, and motors beside them, that share the limit of effort of their joint."""
    return remembered(robot, servo_groups, _servo_groups)


def _servo_groups(robot: Robot) -> list[SharedLimit]:
    return [shared for shared in shared_limits(robot, robot.actuators) if shared.servos]


def may_yield(robot: Robot) -> bool:
    """Whether a servo of a single joint has limits of effort, at which it gives way."""
    return any(has_limits(robot, own) and at_joint(robot, own, yielding=False) for own in robot.actuators)


def servo_damping(actuator: Actuator, scene: ContactScene) -> Any:
    """D of a servo in a step: how much less it pushes by unit of velocity after it; see drives.py and damping.py.

    Of a damper, the most that it is: its control decides.
    """
    return actuator.most_damping + (0.25 if scene.integrator == "midpoint" else 1.0) * scene.step * actuator.stiffness


def servoed(robot: Robot, *, yielding: bool) -> Robot:
    """The robot whose joints have the springs and dampers that such servos are."""
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
