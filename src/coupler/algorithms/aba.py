"""Forward dynamics by the cluster-based articulated-body algorithm, C-ABA [001, §VII, Algorithm 1].

The page below is the paper's, with its symbols and the numbers of its lines. Index λ is for the output bodies of a
cluster, those of other clusters that carry it. Of a robot without loops every cluster is a single body, and the page is
Featherstone's ABA (FDab in spatial_v2). Where the code departs from the paper, the numbers are the same:

- X, S, v and c (lines 4-19) are properties of a body, computed where they are first asked for: see passes/body.py, and
  passes/loops.py for G and g (line 11). Forward pass #1 only stores what later passes need again.
- p = pᴬ + Iᴬ c stands for pᴬ. Since a' = X a_λ + c (line 40) and c is known, c is taken into account at once:
  pᴬ + Iᵃ c + U D⁻¹ (τ − Sᵀ pᴬ) = p + U D⁻¹ (τ − Sᵀ p), and line 41 becomes ÿ = D⁻¹ (τ − Sᵀ p − Uᵀ X a_λ).
- y₀ = D⁻¹ (τ − Sᵀ p) and Y = D⁻¹ Uᵀ X are stored instead of u, D and U, so that line 41 is one product: ÿ = y₀ − Y a_λ.
- A cluster on the ground knows a_λ = −a_g (line 38), and finds its ÿ in the backward pass already.
- τ has springs, dampers and armatures of joints in it.

articulated.py has U, D, Iᵃ and pᵃ of a cluster; how they are computed there depends on how many bodies it has.
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
    """What a cluster that is not on the ground remembers for forward pass #2: y₀ and Y; see the module's text."""

    y0 = entry(lambda shape: None if shape.on_ground else shape.freedoms)
    Y = entry(lambda shape: None if shape.on_ground else (shape.freedoms, 6 * len(shape.grounded)))


class ClusterMemory(ResponseMemory):
    """The same, and the cluster's forces τ and accelerations ÿ, which are input and output of the program."""

    tau, a = Coordinate(), Coordinate()


Node = Visit[BodyMemory, ClusterMemory]


def forward_dynamics_program(robot: Robot, external: bool = False) -> Any:
    """The program a(q, v, tau) of a robot: accelerations of its independent joints, from their forces.

    Args:
        external: whether there are forces on its bodies, too, as a further input `f_ext`.
    """
    loaded = external or bool(robot.elements)
    sweep = Sweep(
        robot,
        "forward_dynamics",
        body=BodyMemory,
        cluster=ClusterMemory,
        paired=True,
        loaded=loaded,
        oriented=pulled_links(robot),
    )
    sweep.inputs("q", "v", "tau")
    sweep.output("a")
    if loaded:
        add_loads(sweep, external)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    sweep.outward(accelerate)
    return sweep.build()


# Algorithm 1


def outward(cluster: Node) -> None:
    """Forward pass #1: velocities. [lines 1-22; eq. 33]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.v = body.v  # line 13: v = X v_λ + S ẏ
    for _, _, pair in cluster.pairs:  # a cluster further out couples two bodies of this one, from nothing
        pair.IA = np.zeros((6, 6))


def inward(cluster: Node) -> Cholesky:
    """Backward pass: articulated inertias and bias forces, added to those of the output bodies. [lines 24-35]

    Returns:
        D, factorised, for algorithms that go on with it.
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


def accelerate(cluster: Node) -> None:
    """Forward pass #2: accelerations. [lines 37-43; eq. 33, 52]"""
    memory = cluster.memory
    if cluster.grounded:
        ydd = memory.a
    else:
        a_parents = [output.memory.a for output in cluster.outputs]
        ydd = memory.a = memory.y0 - response(cluster, memory.Y, a_parents)  # line 41: ÿ = D⁻¹ (u − Uᵀ X a_λ)
    for body in cluster.carriers:
        body.memory.a = body.Xo @ body.output.a + body.c + across_joints(body, ydd)  # lines 40, 42: a = X a_λ + c + S ÿ


# Beneath it


def bias_forces(cluster: Visit[Any, Any]) -> dict[Any, Any]:
    """p = pᴬ + Iᴬ c of each body, where Iᴬ may couple two bodies of a cluster on which a third cluster hangs."""
    p = {body: body.pA + inertia_times(body, body.c) for body in cluster.bodies}
    for one, other, pair in cluster.pairs:
        p[one], p[other] = p[one] + pair.IA @ other.c, p[other] + pair.IA.T @ one.c
    return p


def pulled_links(robot: Robot) -> set[int]:
    """The links that springs between points pull at, so that their angles matter even where they are symmetric."""
    return {robot.tree.place[body][0] for spring in robot.elements for body in (spring.first, spring.second)}
