"""Inverse operational-space inertia by the cluster-based extended force propagator algorithm, C-EFPA [001, §VIII]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.articulated import articulated, propagated, response
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import (
    Body,
    ClusterRecord,
    PathBody,
    PathCluster,
    Paths,
    Record,
    Sweep,
    Visit,
    collected,
    entry,
    symmetric,
)
from coupler.spatial import Transform

__all__ = [
    "ArticulatedBody",
    "ArticulatedCluster",
    "inverse_osim_program",
    "inward",
    "outward",
    "pass_force_on",
    "propagate",
    "respond",
    "towards_ground",
]


class ArticulatedBody(Record):
    """What a body that carries others remembers."""

    IA = collected(symmetric(6))


class ArticulatedCluster(ClusterRecord):
    """What a cluster remembers: D⁻¹, and Y as in C-ABA."""

    Dinv = entry(lambda shape: symmetric(shape.freedoms))
    Y = entry(lambda shape: None if shape.on_ground else (shape.freedoms, 6 * len(shape.grounded)))


class BodyMemory(ArticulatedBody, PathBody):
    """That, and the force and acceleration by unit of force at a frame."""


class ClusterMemory(ArticulatedCluster, PathCluster):
    """That, and the answer of its joints."""


Node = Visit[BodyMemory, ClusterMemory]


def inverse_osim_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program q → J H⁻¹ Jᵀ of some frames, 6 rows each, along their own axes.

    Args:
        robot: the robot.
        frames: for each its link, and the transform from the link's frame to it.
    """
    links = {link for link, _ in frames}
    sweep = Sweep(robot, "inverse_osim", body=BodyMemory, cluster=ClusterMemory, paired=True, oriented=links)
    omega, paths = towards_ground(sweep, frames, inward, propagate)
    paths.outward(respond)
    paths.meet(omega)
    return sweep.build()


def towards_ground(
    sweep: Sweep[Any, Any], frames: Sequence[tuple[int, Transform]], inward: Callable[..., None], propagate: Any
) -> tuple[Any, Paths]:
    """Articulated inertias, then forces at frames on their ways inwards; gives the output Ω and these ways."""
    sweep.input("q", sweep.robot.nq)
    omega = sweep.result("omega", (6 * len(frames)) ** 2)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    paths = Paths(sweep, frames)
    paths.inward(propagate)
    return omega, paths


def outward(cluster: Visit[Any, Any]) -> None:
    """What later passes need again."""
    cluster.remember()
    for _, _, pair in cluster.pairs:
        pair.IA = np.zeros((6, 6))


def inward(cluster: Visit[ArticulatedBody, ArticulatedCluster]) -> None:
    """Articulated inertias, collected on the output bodies. [001, eq. 49, 55, 56]"""
    cluster.report_gap()
    I = articulated(cluster)  # noqa: E741
    D = Cholesky(I.D)
    cluster.memory.Dinv = D.solve(np.eye(len(I.D)))
    if not cluster.grounded:
        cluster.memory.Y = I.pass_on_inertia(D)


def propagate(cluster: Node, active: Sequence[Body[BodyMemory]], felt: Sequence[Body[BodyMemory]]) -> None:
    """A force at a frame, as it is felt beyond the cluster: χᵀ := Xᵀ Lᵀ χᵀ with Lᵀ = 1 − U D⁻¹ Sᵀ. [001, eq. 62]"""
    cluster.memory.y = cluster.memory.Dinv @ pass_force_on(cluster, active)


def pass_force_on(cluster: Visit[Any, Any], active: Sequence[Body[Any]]) -> Any:
    """Leaves a force at a frame with the output bodies, as they feel it; gives z = Sᵀ χᵀ."""
    z = sum(body.S.T @ body.memory.P for body in active)
    for output in [] if cluster.grounded else cluster.outputs:
        P = {body: body.memory.P for body in active if body.output is output}
        output.memory.P = propagated(cluster, output, cluster.memory.Y, P, z)
    return z


def respond(cluster: Node, active: Sequence[Body[BodyMemory]], felt: Sequence[Body[BodyMemory]]) -> None:
    """Accelerations by unit of force at a frame: Ω := L X Ω_λ + S D⁻¹ Sᵀ χᵀ. [001, eq. 67]"""
    ydd = cluster.memory.y
    if not cluster.grounded:
        ydd = ydd - response(cluster, cluster.memory.Y, [output.memory.A for output in cluster.outputs])
    for body in felt:
        own = body.S @ ydd
        body.memory.A = own if body.output.grounded else own + body.Xo @ body.output.memory.A
