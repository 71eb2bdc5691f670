"""Passes of impulses over clusters: unit forces towards the ground, and changes of velocities outwards."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

import numpy as np

from coupler.algorithms.articulated import propagated, response
from coupler.algorithms.factorization import acceleration
from coupler.contact.step.columns import Passage
from coupler.contact.step.inertia import answer
from coupler.contact.step.memory import Visited
from coupler.passes import force_on_joints


def climb(cluster: Visited, passage: Passage) -> None:
    """Forces by unit of impulse, as they are felt beyond a cluster: χᵀ := Xᵀ Lᵀ χᵀ, Lᵀ = 1 − U D⁻¹ Sᵀ. [001, eq. 62]"""
    active = [cluster.bodies[i] for i in passage.active]
    if passage.gates:
        _climb_through_gates(cluster, passage)
        return
    pushed = [] if passage.entry is None else [cluster.G[passage.entry][:, None]]
    gears = cluster.memory.gears if passage.geared else ()
    gears = cluster.memory.factor * gears if passage.measured else gears
    pushed += [gear * cluster.G[entry][:, None] for gear, entry in zip(gears, passage.geared, strict=True)]
    z = force_on_joints(cluster, {body: body.memory.P for body in active}, sum(pushed, np.zeros((1, 1))))
    cluster.memory.z, cluster.memory.y = z, answer(cluster, z)
    for output, begins in zip(cluster.outputs, passage.begins, strict=True):
        if not output.grounded:
            P = {body: body.memory.P for body in active if body.output is output}
            felt = propagated(cluster, output, cluster.memory.Y, P, z)
            output.memory.P = felt if begins else output.memory.P + felt


def weigh_gates(cluster: Visited, gates: Sequence[int]) -> None:
    """Computes the effect of forces on the gates of a cluster: D⁻¹ B, Λ = Bᵀ D⁻¹ B, and M; see gates.py."""
    memory, bodies, one = cluster.memory, [cluster.bodies[i] for i in gates], np.eye(6)
    z = [force_on_joints(cluster, {body: one}) for body in bodies]
    B = np.concatenate(z, axis=1)
    memory.gate_answer = y = answer(cluster, B)
    memory.gate_mobility = B.T @ y
    felt = []
    for output in cluster.outputs:
        if not output.grounded:
            its_own = [{body: one} if body.output is output else {} for body in bodies]
            pairs = zip(its_own, z, strict=True)
            felt.append([propagated(cluster, output, memory.Y, forces, z_of) for forces, z_of in pairs])
    if felt:
        memory.gate_felt = np.block(felt)


def _climb_through_gates(cluster: Visited, passage: Passage) -> None:
    """`climb` for a cluster that columns enter at few bodies: z := Λ F, y := F, χᵀ := M F."""
    memory, active = cluster.memory, {i: cluster.bodies[i].memory.P for i in passage.active}
    nothing = np.zeros(next(iter(active.values())).shape)
    F = np.concatenate([active.get(i, nothing) for i in passage.gates])
    memory.z, memory.y = memory.gate_mobility @ F, F
    beyond = [both for both in zip(cluster.outputs, passage.begins, strict=True) if not both[0].grounded]
    for i, (output, begins) in enumerate(beyond):
        felt = memory.gate_felt[6 * i : 6 * i + 6] @ F
        output.memory.P = felt if begins else output.memory.P + felt


def applying(located: Mapping[int, set[int]], gated: Container[int]) -> Callable[[Visited], None]:
    """The pass from impulses to velocities after the step; bodies that `Kick` has located get their change Δu.

    Args:
        located: for each shape, by its identity, the bodies that `Kick` has located.
        gated: the shapes, by identity, of clusters with gates.
    """

    def apply_impulses(cluster: Visited) -> None:
        """Computes v⁺: the velocities of joints after impulses on them and on all that carries them. [001, eq. 64]"""
        dv = cluster.memory.dv
        if id(cluster.shape) in gated:
            dv = cluster.memory.gate_answer @ dv
        if not cluster.grounded:
            dv = dv - response(cluster, cluster.memory.Y, [output.memory.a for output in cluster.outputs])
        cluster.memory.v_next = cluster.memory.u + dv
        for body in cluster.bodies:
            if body.carries:
                body.memory.a = acceleration(body, dv)
            if body.number in located[id(cluster.shape)]:
                body.memory.du = acceleration(body, dv)

    return apply_impulses
