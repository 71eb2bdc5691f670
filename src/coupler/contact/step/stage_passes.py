"""Passes over clusters in the stages of a step; see stages.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.step.drift import UnsolvedJoint
from coupler.contact.step.kick import accelerated, move, rotation_biases
from coupler.contact.step.memory import Visited
from coupler.passes import Visit

Pass = Callable[[Visited], None]


def _joints(cluster: Visited) -> list[tuple[Any, int]]:
    """The joints of a cluster whose velocities are carried, and how many velocities each has."""
    views, shape = cluster.views.joints, cluster.shape
    sizes = [kind.nv if cluster.tangent else len(free) for kind, free in zip(shape.kinds, shape.free, strict=True)]
    return [(view, size) for view, size in zip(views, sizes, strict=True) if size]


def _read(cluster: Visited, name: str) -> Any:
    """A cluster's entries of a vector of `Stages`."""
    return np.concatenate([getattr(joint, f"stage_{name}") for joint, _ in _joints(cluster)])


def _store(cluster: Visited, name: str, values: Any) -> None:
    start = 0
    for joint, size in _joints(cluster):
        setattr(joint, f"stage_{name}", values[start : start + size])
        start += size


def _carried_rates(cluster: Visited, ydd: Any) -> Any:
    """Rates of carried velocities, from accelerations along the cluster's basis."""
    return cluster.G @ ydd + cluster.g if cluster.tangent else ydd


def first_rates(jumping: bool) -> Pass:
    """The pass that computes rates at the start of a step and, if `jumping`, what impacts add at its end."""

    def find_first_rates(cluster: Visited) -> None:
        """Computes rates at the start, from the velocities with impulses that Euler's method gives."""
        memory = cluster.memory
        ydd = (memory.v_next - memory.start) / memory.step - rotation_biases(cluster)
        _store(cluster, "x_rate", _carried_rates(cluster, ydd))
        if jumping:
            _store(cluster, "jump", cluster.G @ memory.jump if cluster.tangent else memory.jump)

    return find_first_rates


def settling(pushed: bool) -> Pass:
    """The pass to positions and velocities of a stage; with `pushed`, joints feel limits and dry friction."""

    def settle(cluster: Visited) -> None:
        """Computes positions and velocities of a stage, and forces at joints."""
        memory, x, shape, joints = cluster.memory, _read(cluster, "x"), cluster.shape, cluster.views.joints
        memory.v = cluster.G.T @ x if cluster.tangent else x
        tau = np.concatenate([joint.tau_given for joint, free in zip(joints, shape.free, strict=True) if free])
        tau = cluster.G[shape.independent].T @ tau if cluster.tangent else tau
        memory.tau = tau + cluster.G.T @ np.concatenate([joint.push for joint in joints]) if pushed else tau
        cluster.remember_positions()
        move(cluster)
        for _, _, pair in cluster.pairs:
            pair.IA = np.zeros((6, 6))
        _store(cluster, "moves", cluster.G @ memory.v if cluster.tangent else x)

    return settle


def rates(cluster: Visited) -> None:
    """Computes rates of velocities. [001, eq. 33, 52]"""
    _store(cluster, "x_rate", _carried_rates(cluster, accelerated(cluster)))


def fit(cluster: Visit[Any, Any]) -> None:
    """Projects w onto the loops where the step ends: N Nᵀ w; v is a part of w."""
    joints = [UnsolvedJoint(view) for view in cluster.views.joints]
    N = cluster.elsewhere([joint.q_next for joint in joints]).loops.null_space[0]
    w = N @ (N.T @ np.concatenate([joint.w_next for joint in joints]))
    for body, joint in zip(cluster.bodies, joints, strict=True):
        joint.w_next = w[body.entries]
    cluster.memory.v_next = w[cluster.shape.independent]
