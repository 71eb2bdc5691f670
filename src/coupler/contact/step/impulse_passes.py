"""Passes of impulses over clusters: unit forces towards the ground, and changes of velocities outwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from coupler.algorithms.articulated import propagated, response
from coupler.algorithms.factorization import acceleration
from coupler.contact.step.columns import Passage
from coupler.contact.step.memory import Node
from coupler.passes import force_on_joints


def climb(cluster: Node, passage: Passage) -> None:
    """Forces by unit of impulse, as they are felt beyond a cluster: χᵀ := Xᵀ Lᵀ χᵀ, Lᵀ = 1 − U D⁻¹ Sᵀ. [001, eq. 62]"""
    active = [cluster.bodies[i] for i in passage.active]
    pushed = [] if passage.entry is None else [cluster.G[passage.entry][:, None]]
    pushed += [cluster.memory.gears[i] * cluster.G[entry][:, None] for i, entry in enumerate(passage.geared)]
    z = force_on_joints(cluster, {body: body.memory.P for body in active}, sum(pushed, np.zeros((1, 1))))
    cluster.memory.z, cluster.memory.y = z, cluster.memory.Dinv @ z
    for output, begins in zip(cluster.outputs, passage.begins, strict=True):
        if not output.grounded:
            P = {body: body.memory.P for body in active if body.output is output}
            felt = propagated(cluster, output, cluster.memory.Y, P, z)
            output.memory.P = felt if begins else output.memory.P + felt


def applying(located: Mapping[int, set[int]]) -> Callable[[Node], None]:
    """The pass from impulses to velocities after the step; bodies that `Kick` has located get their change Δu."""

    def apply_impulses(cluster: Node) -> None:
        """v⁺: what impulses do to joints, with what they do to all that carries them. [001, eq. 64]"""
        dv = cluster.memory.dv
        if not cluster.grounded:
            dv = dv - response(cluster, cluster.memory.Y, [output.memory.a for output in cluster.outputs])
        cluster.memory.v_next = cluster.memory.u + dv
        for body in cluster.bodies:
            if body.carries:
                body.memory.a = acceleration(body, dv)
            if body.number in located[id(cluster.shape)]:
                body.memory.du = acceleration(body, dv)

    return apply_impulses
