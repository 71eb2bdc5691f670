"""Limits, motors and gravity that are probably not meant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coupler.cli.checks.finding import Finding
from coupler.model import Robot
from coupler.model.words import counted, listed

__all__ = ["actuators", "gravity", "limits", "motors_without_effect"]


def limits(robot: Robot) -> Iterator[Finding]:
    """Limits that exclude the neutral position, or leave no room."""
    positions = robot.joint_positions(robot.neutral())
    for joint in robot.joints:
        kind = joint.kind
        if kind.nq != kind.nv or joint.name not in positions:
            continue
        at = np.atleast_1d(positions[joint.name])
        if ((at < kind.lower - 1e-9) | (at > kind.upper + 1e-9)).any():
            yield Finding(
                "warning",
                f"joint {joint.name!r}: its neutral position {_told(at)} is outside of its limits, "
                f"{_told(kind.lower)} to {_told(kind.upper)}",
                "mind it when you start from neutral(); are the limits in rad and m?",
            )
        if (kind.lower == kind.upper).any():
            yield Finding(
                "warning",
                f"joint {joint.name!r}: both its limits are {_told(kind.lower)}",
                "if it does not move, make it a fixed joint; dynamics let it move beyond its limits",
            )


def _told(numbers: np.ndarray) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)


def motors_without_effect(robot: Robot) -> Iterator[Finding]:
    """Joints whose limits of effort or velocity are zero."""
    for what, attribute in (("effort", "effort_limit"), ("velocity", "velocity_limit")):
        found = [joint.name for joint in robot.joints if joint.kind.nv and not getattr(joint.kind, attribute).all()]
        if found:
            yield Finding(
                "warning",
                f"joint {listed(found)}: the limit of its {what} is zero",
                f'leave the limit out if there is none; {what}="0" lets a motor do nothing',
            )


def actuators(robot: Robot) -> Iterator[Finding]:
    """Motors that are none, too many, or at joints that follow others."""
    driven = [joint for joint in robot.joints if joint.actuated]
    if not driven:
        yield Finding("note", "no joint is actuated", 'mark those that motors drive: actuated="true" on the joint')
    count = sum(joint.kind.nv for joint in driven)
    if count > robot.nv:
        yield Finding(
            "warning",
            f"{counted(count, 'motion is', 'motions are')} actuated, more than its {counted(robot.nv, 'freedom')}",
            "some motors work against each other, unless that is meant; mark fewer joints as actuated",
        )
    dependent = [joint.name for joint in driven if joint.name not in robot.independent_joints]
    if dependent:
        yield Finding(
            "warning",
            f"joint {listed(dependent)} is actuated, but its motion follows from others, and forces are those of "
            "independent joints",
            "mark it as independent instead of others, or turn its force into theirs by Gᵀ of explicit_constraint",
        )


def gravity(robot: Robot) -> Iterator[Finding]:
    """No gravity."""
    if not robot.gravity.any():
        yield Finding("note", "there is no gravity", "robot.with_gravity((0, 0, -9.81)) is the same robot on earth")
