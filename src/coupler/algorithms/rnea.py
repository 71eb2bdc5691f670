"""Inverse dynamics by the cluster-based recursive Newton-Euler algorithm, C-RNEA [001, §VI].

Index λ is for the output bodies of a cluster, those of other clusters that carry it. Of a robot without loops every
cluster is a single body, and the page is the classic RNEA (ID in Featherstone's spatial_v2):

    v = X v_λ + S ẏ,    a = X a_λ + c + S ÿ    outwards, with c = Ṡ ẏ and a₀ = −a_g    [eq. 33]
    f = I a + v ×* I v                                                                  [eq. 34]
    τ = Sᵀ f,    f_λ += Xᵀ f                   inwards                                  [eq. 31, 35]

Bodies that carry nothing are visited once: their f is computed on the way inwards, where it is needed.
"""

from __future__ import annotations

from typing import Any

from coupler.algorithms.aba import pulled_links
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
    """What a body that carries other clusters remembers: v, a, and f with the forces of those clusters."""

    v, a, f = entry(6), entry(6), entry(6)


class ClusterMemory(ClusterRecord):
    """A cluster's accelerations ÿ and forces τ, input and output of the program."""

    a, tau = Coordinate(), Coordinate()


Node = Visit[BodyMemory, ClusterMemory]


def inverse_dynamics_program(robot: Robot, external: bool = False) -> Any:
    """The program τ(q, v, a) of a robot: forces at its independent joints, from accelerations.

    Args:
        external: whether there are forces on its bodies, too, as a further input `f_ext`.
    """
    loaded, oriented = external or bool(robot.elements), pulled_links(robot)
    sweep = Sweep(robot, "inverse_dynamics", body=BodyMemory, cluster=ClusterMemory, loaded=loaded, oriented=oriented)
    sweep.inputs("q", "v", "a")
    sweep.output("tau")
    if loaded:
        add_loads(sweep, external)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    return sweep.build()


def outward(cluster: Node) -> None:
    """Forward pass: velocities, accelerations, and the net force on each body. [001, eq. 33, 34]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.v, body.memory.a = body.v, acceleration(body)
        body.memory.f = net_force(body)


def inward(cluster: Node) -> None:
    """Backward pass: forces across cluster joints, added to those of the output bodies, and τ. [001, eq. 31, 35]"""
    cluster.report_gap()
    ydd = cluster.memory.a
    tau = armature_force(cluster, ydd) + cluster.armature_bias - cluster.passive
    f = {body: body.memory.f if body.carries else net_force(body) for body in cluster.bodies}
    for body in cluster.bodies:
        if not body.output.grounded:
            body.output.memory.f += body.Xo.transform_force(f[body])  # eq. 35
    cluster.memory.tau = force_on_joints(cluster, f, tau)  # eq. 31


def acceleration(body: Body[BodyMemory]) -> Any:
    """a = X a_λ + c + S ÿ. [001, eq. 33]"""
    return body.Xo @ body.output.a + body.c + across_joints(body, body.cluster.memory.a)


def net_force(body: Body[BodyMemory]) -> Any:
    """f = I a + v ×* I v, less forces from outside. [001, eq. 34]"""
    return body.inertia @ acceleration(body) + body.p
