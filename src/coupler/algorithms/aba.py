"""Forward dynamics by the cluster-based articulated-body algorithm, C-ABA [001, §VII, Algorithm 1].

λ stands for the output bodies of a cluster: the bodies of other clusters that carry it. The three passes are

    v = X v_λ + S ẏ,    c = Ṡ ẏ,    pᴬ = v ×* I v              forward pass #1     lines 13-21
    U = Iᴬ S,    D = Sᵀ U,    u = τ − Sᵀ pᴬ                     backward pass       lines 26-28
    Iᵃ = Iᴬ − U D⁻¹ Uᵀ,    pᵃ = pᴬ + Iᵃ c + U D⁻¹ u                                 lines 30, 31
    Iᴬ_λ += Xᵀ Iᵃ X,    pᴬ_λ += Xᵀ pᵃ                                               lines 32, 33
    a′ = X a_λ + c,    ÿ = D⁻¹ (u − Uᵀ a′),    a = a′ + S ÿ     forward pass #2     lines 40-42

In a robot without loops every cluster is a single body, and this is Featherstone's ABA (FDab in spatial_v2). The code
computes the same numbers, but with less work and less memory:

- X, S, v, c and pᴬ (lines 4-21) are properties of a body, computed where they are first needed: see passes/body.py, and
  passes/loops.py for G and g (line 11). Forward pass #1 only stores what later passes load.
- p = pᴬ + Iᴬ c takes the place of pᴬ. As c is known, it can be accounted for at once: with u = τ − Sᵀ p, line 31
  becomes pᵃ = p + U D⁻¹ u and line 41 becomes ÿ = D⁻¹ (u − Uᵀ X a_λ).
- The backward pass stores y₀ = D⁻¹ u and Y = D⁻¹ Uᵀ X instead of u, D and U, so that line 41 is ÿ = y₀ − Y a_λ.
- A cluster on the ground knows a_λ = −a_g (line 38), so the backward pass already computes its ÿ.
- τ includes the springs, dampers and armatures of joints.

articulated.py computes U, D, Iᵃ and pᵃ, in the way that is cheapest for the size of a cluster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.algorithms.articulated import articulated, inertia_times, response
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import (
    ClusterRecord,
    Coordinate,
    Record,
    Sweep,
    Visit,
    across_joints,
    add_loads,
    afterwards,
    collected,
    entry,
    symmetric,
)


class BodyMemory(Record):
    """What a body that carries other clusters remembers: v, Iᴬ and pᴬ of what it carries, and a."""

    v = entry(6)
    IA = collected(symmetric(6))
    pA = collected(6)
    a = afterwards(6)


class ResponseMemory(ClusterRecord):
    """What a cluster above the ground remembers for forward pass #2: y₀ and Y; see the module's text."""

    y0 = entry(lambda shape: None if shape.on_ground else shape.freedoms)
    Y = entry(lambda shape: None if shape.on_ground else (shape.freedoms, 6 * len(shape.grounded)))


class ClusterMemory(ResponseMemory):
    """What a cluster remembers: `ResponseMemory`, and its parts of the input τ and of the output ÿ."""

    tau, a = Coordinate(), Coordinate()


Visited = Visit[BodyMemory, ClusterMemory]


def forward_dynamics_program(robot: Robot, external: bool = False) -> Any:
    """The program (q, v, tau) → a: accelerations of a robot's independent joints, from their forces.

    Args:
        external: whether forces on bodies are a further input, `f_ext`.
    """
    loaded = external or bool(robot.elements)
    sweep = Sweep(robot, "forward_dynamics", body=BodyMemory, cluster=ClusterMemory, loaded=loaded, oriented=())
    sweep.inputs("q", "v", "tau")
    sweep.output("a")
    add_loads(sweep, external)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    sweep.outward(accelerate)
    return sweep.build()


# Algorithm 1


def outward(cluster: Visited) -> None:
    """Forward pass #1: velocities. [lines 1-22; eq. 33]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.v = body.v  # line 13: v = X v_λ + S ẏ
    begin_pairs(cluster)


def inward(cluster: Visited) -> Cholesky:
    """Backward pass: articulated inertias and bias forces, passed on to the output bodies. [lines 24-35]

    Returns:
        D, factorised, for algorithms that need it again.
    """
    cluster.report_gap()
    memory, IA = cluster.memory, articulated(cluster, bias_forces(cluster))
    tau = memory.tau + cluster.passive - cluster.armature_bias
    D = Cholesky(IA.D)  # lines 26, 27: U = Iᴬ S, D = Sᵀ U
    u = tau - IA.force_on_joints()  # line 28: u = τ − Sᵀ p
    if cluster.grounded:
        memory.a = D.solve(u - IA.joint_response(cluster.outputs[0].a))  # lines 38-41: ÿ = D⁻¹ (u − Uᵀ X a₀)
        return D
    memory.y0 = D.solve(u)
    memory.Y = IA.pass_on_inertia(D)  # lines 30, 32: Iᵃ = Iᴬ − U D⁻¹ Uᵀ, Iᴬ_λ += Xᵀ Iᵃ X
    IA.pass_on_force(memory.y0)  # lines 31, 33: pᵃ = p + U D⁻¹ u, pᴬ_λ += Xᵀ pᵃ
    return D


def accelerate(cluster: Visited) -> None:
    """Forward pass #2: accelerations. [lines 37-43; eq. 33, 52]"""
    memory = cluster.memory
    if cluster.grounded:
        ydd = memory.a
    else:
        a_outputs = [output.memory.a for output in cluster.outputs]
        ydd = memory.a = memory.y0 - response(cluster, memory.Y, a_outputs)  # line 41: ÿ = D⁻¹ (u − Uᵀ X a_λ)
    for body in cluster.carriers:
        body.memory.a = body.Xo @ body.output.a + body.c + across_joints(body, ydd)  # lines 40, 42: a = X a_λ + c + S ÿ


# Beneath it


def begin_pairs(cluster: Visit[Any, Any]) -> None:
    """Clears the block of Iᴬ that two bodies of a cluster share if a third cluster hangs on both of them."""
    for _, _, pair in cluster.pairs:
        pair.IA = np.zeros((6, 6))


def bias_forces(cluster: Visit[Any, Any]) -> dict[Any, Any]:
    """p = pᴬ + Iᴬ c of each body, with the blocks of Iᴬ that two bodies share."""
    p = {body: body.pA + inertia_times(body, body.c) for body in cluster.bodies}
    for one, other, pair in cluster.pairs:
        p[one], p[other] = p[one] + pair.IA @ other.c, p[other] + pair.IA.T @ one.c
    return p
