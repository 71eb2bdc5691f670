"""Dampers and springs of joints within a step. They act implicitly, so that none, however strong, overshoots.

With dampers D, H (v⁺ − v) = h (τ − c − D v⁺) is the same as (H + h D) (v⁺ − v) = h (τ − c − D v): over a step of the
length h, the robot moves as if it had additional armatures h D, with its dampers explicit. In Euler's method, springs K
see the position at the end of the step, q + h v⁺: that is an armature h² K and a damper h K. The midpoint rule sees
them halfway between both ends, h (v⁺ − v)/4 beyond the middle at which forces are taken: that is an armature h² K/4.

Dampers that feel v⁺ alone are of first order. With the midpoint rule they feel θ v⁺ + (1 − θ) v, an armature θ h D.
For a single mass m and x = h D/m, θ = (1 + x)/(2 + x) gives v⁺ = v/(1 + x + x²/2): weak dampers feel the mean of both
velocities, as second order asks, and strong ones the end, so that they stop what moves and do not throw it back. With
θ of 1/2 and more, no velocity grows, whatever the mass is. So m need not be exact: it is that of a joint between two
links that are otherwise free to move along it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coupler.compiled import remembered
from coupler.graph import may_differ
from coupler.model import Robot
from coupler.model.tolerances import TINY
from coupler.model.tree import Link, Tree


def damped(robot: Robot, step: float, midpoint: bool = False) -> Robot:
    """The robot with armatures and dampers that make its own dampers and springs implicit over such a step."""
    if not any(may_differ([*link.kind.damping, *link.kind.stiffness]) for link in robot.tree.links):
        return robot
    return remembered(robot, (damped, step, midpoint), _damped, step, midpoint)


def _damped(robot: Robot, step: float, midpoint: bool) -> Robot:
    links = tuple(_stiffened(robot.tree, link, step, midpoint) for link in robot.tree.links)
    return replace(robot, tree=replace(robot.tree, links=links))


def _stiffened(tree: Tree, link: Link, step: float, midpoint: bool) -> Link:
    kind = link.kind
    felt_late = lateness(tree, link, step) if midpoint else 1.0
    armature = kind.armature + felt_late * step * kind.damping + (0.25 if midpoint else 1.0) * step**2 * kind.stiffness
    damping = kind.damping if midpoint else kind.damping + step * kind.stiffness
    return replace(link, kind=kind.with_values(armature=armature, damping=damping))


def lateness(tree: Tree, link: Link, step: float) -> Any:
    """(nv,): θ of the dampers of a link's joint in the midpoint rule, from 1/2 to 1; see above."""
    kind = link.kind
    if not may_differ(kind.damping):
        return np.ones(kind.nv)
    neutral = kind.neutral()
    S, damper = kind.subspace(neutral), step * kind.damping
    inertia = np.diagonal(S.T @ (link.inertia @ S))
    if link.parent:
        to_parent = (kind.transform(neutral) @ link.placement).inverse()
        of_parent = np.diagonal(S.T @ (tree.links[link.parent].inertia.seen_from(to_parent) @ S))
        inertia = inertia * of_parent / (inertia + of_parent + TINY)
    return lateness_at(inertia + kind.armature, damper)


def lateness_at(inertia: Any, damper: Any) -> Any:
    """θ of a damper, times the length of the step, that holds back some inertia."""
    return (inertia + damper + TINY) / (2.0 * inertia + damper + TINY)
