"""Dampers and springs of joints within a step. They act implicitly, so that none, however strong, overshoots.

With dampers D, H (v⁺ − v) = h (τ − c − D v⁺) is the same as (H + h D) (v⁺ − v) = h (τ − c − D v): over a step of the
length h, the robot moves as if it had additional armatures h D, with its dampers explicit. In Euler's method, springs K
see the position at the end of the step, q + h v⁺: that is an armature h² K and a damper h K. The midpoint rule sees
them halfway between both ends, h (v⁺ − v)/4 beyond the middle at which forces are taken: that is an armature h² K/4.
"""

from __future__ import annotations

from dataclasses import replace

from coupler.compiled import remembered
from coupler.graph import may_differ
from coupler.model import Robot
from coupler.model.tree import Link


def damped(robot: Robot, step: float, midpoint: bool = False) -> Robot:
    """The robot with armatures and dampers that make its own dampers and springs implicit over such a step."""
    if not any(may_differ([*link.kind.damping, *link.kind.stiffness]) for link in robot.tree.links):
        return robot
    return remembered(robot, (damped, step, midpoint), _damped, step, midpoint)


def _damped(robot: Robot, step: float, midpoint: bool) -> Robot:
    links = tuple(_stiffened(link, step, midpoint) for link in robot.tree.links)
    return replace(robot, tree=replace(robot.tree, links=links))


def _stiffened(link: Link, step: float, midpoint: bool) -> Link:
    kind = link.kind
    armature = kind.armature + step * kind.damping + (0.25 if midpoint else 1.0) * step**2 * kind.stiffness
    damping = kind.damping if midpoint else kind.damping + step * kind.stiffness
    return replace(link, kind=kind.with_values(armature=armature, damping=damping))
