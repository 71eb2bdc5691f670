"""Dampers of joints within a step: they feel the velocity at its end, so that none, however strong, pushes too far.

With dampers D, H (v⁺ − v) = h (τ − c − D v⁺) is the same as (H + h D) (v⁺ − v) = h (τ − c − D v): over a step of the
length h, a robot moves like one that has armatures h D besides, and its dampers.
"""

from __future__ import annotations

from dataclasses import replace

from coupler.compiled import remembered
from coupler.model import Robot
from coupler.model.tree import Link

__all__ = ["damped"]


def damped(robot: Robot, step: float) -> Robot:
    """The robot whose accelerations, over a step of that length, make dampers feel the velocity at its end."""
    if not any(link.kind.damping.any() for link in robot.tree.links):
        return robot
    return remembered(robot, (damped, step), _damped, step)


def _damped(robot: Robot, step: float) -> Robot:
    links = tuple(_stiffened(link, step) for link in robot.tree.links)
    return replace(robot, tree=replace(robot.tree, links=links))


def _stiffened(link: Link, step: float) -> Link:
    kind = link.kind
    return replace(link, kind=kind.with_values(armature=kind.armature + step * kind.damping))
