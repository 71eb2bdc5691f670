"""Forward dynamics by the cluster-based articulated-body algorithm, C-ABA [001, §VII, Algorithm 1].

The page below is the paper's, whose lines are named beside ours; what a line costs is decided in articulated.py. The
paper's forward pass #1 finds X, S, v and c of a cluster: here that is done where they are first asked for (see
passes/body.py), and the pass stores what is needed again.
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
    add_loads,
    afterwards,
    collected,
    entry,
    symmetric,
)

__all__ = [
    "BodyMemory",
    "ClusterMemory",
    "ResponseMemory",
    "accelerate",
    "forward_dynamics_program",
    "inward",
    "outward",
    "pass_on",
    "pulled_links",
]


class BodyMemory(Record):
    """What a body that carries others remembers."""

    v = entry(6)
    IA = collected(symmetric(6))
    pA = collected(6)
    a = afterwards(6)


class ResponseMemory(ClusterRecord):
    """What a cluster remembers, unless it is on the ground: y₀ = D⁻¹ u and Y = D⁻¹ Uᵀ X."""

    y0 = entry(lambda shape: None if shape.on_ground else shape.freedoms)
    Y = entry(lambda shape: None if shape.on_ground else (shape.freedoms, 6 * len(shape.grounded)))


class ClusterMemory(ResponseMemory):
    """That, and its forces τ and accelerations ÿ."""

    tau, a = Coordinate(), Coordinate()


Node = Visit[BodyMemory, ClusterMemory]


def forward_dynamics_program(robot: Robot, external: bool = False) -> Any:
    """The program a(q, v, tau) of a robot: accelerations of its independent joints, from their forces.

    Args:
        robot: the robot.
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
    sweep.input("q", robot.nq)
    sweep.input("v", robot.nv)
    sweep.input("tau", robot.nv)
    sweep.output("a", robot.nv)
    if loaded:
        add_loads(sweep, external)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    sweep.outward(accelerate)
    return sweep.build()


def outward(cluster: Node) -> None:
    """Forward pass #1: velocities. [lines 1-22; eq. 33]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.v = body.v  # line 13
    for _, _, pair in cluster.pairs:
        pair.IA = np.zeros((6, 6))


def inward(cluster: Node) -> None:
    """Backward pass: articulated inertia and bias force of a cluster, added to its parents'. [lines 24-35]"""
    pass_on(cluster)


def pass_on(cluster: Node) -> Cholesky:
    """The backward pass; gives D, for what needs it besides.

    Accelerations are a' = X a + c (line 40), of which c is known already: p = pᴬ + Iᴬ c stands for pᴬ, and X a is what
    line 41 lacks. The sums are the same: pᴬ + Iᵃ c + U D⁻¹ (τ − Sᵀ pᴬ) = p + U D⁻¹ (τ − Sᵀ p).
    """
    cluster.report_gap()
    memory, I = cluster.memory, articulated(cluster, bias_forces(cluster))  # noqa: E741
    D = Cholesky(I.D)  # lines 26, 27: D = Sᵀ U, U = Iᴬ S
    u = memory.tau + cluster.passive - cluster.armature_bias - I.force_on_joints()  # line 28: u = τ − Sᵀ p
    if cluster.grounded:
        memory.a = D.solve(u - I.joint_response(cluster.outputs[0].a))  # line 41
        return D
    memory.y0 = D.solve(u)
    memory.Y = I.pass_on_inertia(D)  # lines 30, 32: Iᵃ = Iᴬ − U D⁻¹ Uᵀ, Iᴬ_λ += Xᵀ Iᵃ X
    I.pass_on_force(memory.y0)  # lines 31, 33: pᵃ = p + U D⁻¹ u, pᴬ_λ += Xᵀ pᵃ
    return D


def bias_forces(cluster: Visit[Any, Any]) -> dict[Any, Any]:
    """p = pᴬ + Iᴬ c of each body."""
    p = {body: body.pA + inertia_times(body, body.c) for body in cluster.bodies}
    for one, other, pair in cluster.pairs:
        p[one], p[other] = p[one] + pair.IA @ other.c, p[other] + pair.IA.T @ one.c
    return p


def accelerate(cluster: Node) -> None:
    """Forward pass #2: accelerations. [lines 37-43; eq. 33, 52]"""
    memory = cluster.memory
    if cluster.grounded:
        ydd = memory.a
    else:
        above = [output.memory.a for output in cluster.outputs]
        ydd = memory.a = memory.y0 - response(cluster, memory.Y, above)  # line 41: ÿ = D⁻¹ (u − Uᵀ a')
    for body in cluster.carriers:
        body.memory.a = body.Xo @ body.output.a + body.c + body.S @ ydd  # lines 40, 42: a = X a_λ + c + S ÿ


def pulled_links(robot: Robot) -> set[int]:
    """The links that springs between points pull at, so that their angles matter even where they are symmetric."""
    return {robot.tree.place[body][0] for spring in robot.elements for body in (spring.first, spring.second)}
