"""Limits, motors and gravity that are probably not intended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coupler.cli.checks.finding import Finding
from coupler.model import Robot
from coupler.model.tolerances import WITHIN_LIMITS
from coupler.model.wording import clause, counted


def limits(robot: Robot) -> Iterator[Finding]:
    """Limits that exclude the neutral position, or leave no room."""
    positions = robot.joint_positions(robot.neutral())
    for joint in robot.joints:
        kind = joint.kind
        if kind.nq != kind.nv or joint.name not in positions:
            continue
        at = np.atleast_1d(positions[joint.name])
        if ((at < kind.lower - WITHIN_LIMITS) | (at > kind.upper + WITHIN_LIMITS)).any():
            yield Finding(
                "warning",
                f"joint {joint.name!r}: its neutral position {_text(at)} is outside its limits, "
                f"{_text(kind.lower)} to {_text(kind.upper)}",
                "are the limits in rad and m? Simulations that start from neutral() violate them",
            )
        if (kind.lower == kind.upper).any():
            yield Finding(
                "warning",
                f"joint {joint.name!r}: both its limits are {_text(kind.lower)}",
                "if it cannot move, make it a fixed joint; forward_dynamics ignores limits",
            )


def _text(numbers: np.ndarray) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)


def motors_without_effect(robot: Robot) -> Iterator[Finding]:
    """Joints whose effort or velocity limit is zero."""
    for what, attribute in (("effort", "effort_limit"), ("velocity", "velocity_limit")):
        joints = [joint.name for joint in robot.joints if joint.kind.nv and not getattr(joint.kind, attribute).all()]
        if joints:
            yield Finding(
                "warning",
                clause(joints, f"the {what} limit of joint {{}} is zero", f"the {what} limits of joints {{}} are zero"),
                'if there is no limit, leave it out; with effort="0" a motor can do nothing, and velocity="0" counts '
                "as no limit",
            )


def actuators(robot: Robot) -> Iterator[Finding]:
    """A robot without actuators or with more than freedoms, and joints that are both driven and dependent."""
    if not robot.actuators:
        yield Finding(
            "note",
            "it has no actuators",
            'to add motors: in URDF, a <transmission>, or actuated="true" on a joint; in MJCF, an <actuator>',
        )
    count = sum(actuator.kind != "damper" for actuator in robot.actuators)
    if count > robot.nv:
        yield Finding(
            "warning",
            f"{counted(count, 'actuator')} for {counted(robot.nv, 'freedom')}",
            "some work against each other; unless that is intended, mark fewer joints as actuated",
        )
    driven = dict.fromkeys(joint for actuator in robot.actuators for joint in actuator.joints)
    dependent = [joint for joint in driven if joint not in robot.independent_joints]
    if dependent:
        yield Finding(
            "note",
            clause(
                dependent,
                "motors drive joint {}, which is not independent and so not in tau",
                "motors drive joints {}, which are not independent and so not in tau",
            ),
            "give motor forces instead: step(motors=...), forward_dynamics(..., motors=...)",
        )


def gravity(robot: Robot) -> Iterator[Finding]:
    """A robot without gravity."""
    if not robot.gravity.any():
        yield Finding("note", "there is no gravity", "robot.with_gravity((0, 0, -9.81)) gives the same robot on earth")
