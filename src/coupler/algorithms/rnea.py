"""Inverse dynamics by the cluster-based recursive Newton-Euler algorithm, C-RNEA [001, §VI].

λ stands for the output bodies of a cluster: the bodies of other clusters that carry it. The two passes are

    v = X v_λ + S ẏ,    a = X a_λ + c + S ÿ    outward, with c = Ṡ ẏ and a₀ = −a_g    eq. 33
    f = I a + v ×* I v                                                                 eq. 34
    τ = Sᵀ f,    f_λ += Xᵀ f                   inward                                  eq. 31, 35

In a robot without loops every cluster is a single body, and this is the classic RNEA (ID in Featherstone's spatial_v2).
Bodies that carry nothing are visited once: the inward pass computes their f where it needs it.
"""

from __future__ import annotations

from typing import Any

from coupler.model import Robot
from coupler.passes import (
    Body,
    ClusterRecord,
    Coordinate,
    Record,
    Sweep,
    Visit,
    across_joints,
    add_loads,
    armature_force,
    entry,
    force_on_joints,
)


class BodyMemory(Record):
    """What a body that carries other clusters remembers: v, a, and f including the forces on those clusters."""

    v, a, f = entry(6), entry(6), entry(6)


class ClusterMemory(ClusterRecord):
    """A cluster's parts of the input ÿ and of the output τ."""

    a, tau = Coordinate(), Coordinate()


Visited = Visit[BodyMemory, ClusterMemory]


def inverse_dynamics_program(robot: Robot, external: bool = False) -> Any:
    """The program (q, v, a) → tau: forces at a robot's independent joints, from their accelerations.

    Args:
        external: whether forces on bodies are a further input, `f_ext`.
    """
    loaded = external or bool(robot.elements)
    sweep = Sweep(robot, "inverse_dynamics", body=BodyMemory, cluster=ClusterMemory, loaded=loaded, oriented=())
    sweep.inputs("q", "v", "a")
    sweep.output("tau")
    add_loads(sweep, external)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    return sweep.build()


def outward(cluster: Visited) -> None:
    """Forward pass: velocities, accelerations, and the net force on each body. [eq. 33, 34]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.v, body.memory.a = body.v, acceleration(body)
        body.memory.f = net_force(body)


def inward(cluster: Visited) -> None:
    """Backward pass: forces across cluster joints, passed on to the output bodies, and τ. [eq. 31, 35]"""
    cluster.report_gap()
    ydd = cluster.memory.a
    tau = armature_force(cluster, ydd) + cluster.armature_bias - cluster.passive
    f = {body: body.memory.f if body.carries else net_force(body) for body in cluster.bodies}
    for body in cluster.bodies:
        if not body.output.grounded:
            body.output.memory.f += body.Xo.transform_force(f[body])  # eq. 35: f_λ += Xᵀ f
    cluster.memory.tau = force_on_joints(cluster, f, tau)  # eq. 31: τ = Sᵀ f


def acceleration(body: Body[BodyMemory]) -> Any:
    """a = X a_λ + c + S ÿ. [eq. 33]"""
    return body.Xo @ body.output.a + body.c + across_joints(body, body.cluster.memory.a)


def net_force(body: Body[BodyMemory]) -> Any:
    """f = I a + v ×* I v, less the forces from outside. [eq. 34]"""
    return body.inertia @ acceleration(body) + body.p
