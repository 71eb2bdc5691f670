"""Inverse operational-space inertia by the cluster-based extended force propagator algorithm, C-EFPA [001, §VIII].

Ω = J H⁻¹ Jᵀ gives the accelerations of frames (the paper's end effectors e) by forces at them. Index λ is for the
output bodies of a cluster, those of other clusters that carry it.

    Iᴬ, U, D as in C-ABA                                                          inwards     [eq. 49, 55, 56]
    χ_λᵀ = Xᵀ Lᵀ χᵀ with Lᵀ = 1 − U D⁻¹ Sᵀ    force that each body feels          inwards     [eq. 62]
    Ω = L X Ω_λ + S D⁻¹ Sᵀ χᵀ                 acceleration that it makes there    outwards    [eq. 67]
    Ω_ee' = χ_e Ω_e'                          at the nearest cluster that carries both frames e and e'    [§VIII-D]

χᵀ and Ω have 6 columns, one for each unit of force at a frame; bodies remember them as P and A. For each frame, only
the clusters between it and the ground are visited.
"""

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
    across_joints,
    collected,
    entry,
    force_on_joints,
    symmetric,
)
from coupler.spatial import Transform


class ArticulatedBody(Record):
    """What a body that carries other clusters remembers: Iᴬ of what it carries."""

    IA = collected(symmetric(6))


class ArticulatedCluster(ClusterRecord):
    """What a cluster remembers: D⁻¹, and Y = D⁻¹ Uᵀ X as in C-ABA, unless it is on the ground."""

    Dinv = entry(lambda shape: symmetric(shape.freedoms))
    Y = entry(lambda shape: None if shape.on_ground else (shape.freedoms, 6 * len(shape.grounded)))


class BodyMemory(ArticulatedBody, PathBody):
    """The same, and P = χᵀ and A = Ω, the force on a body and its acceleration by unit of force at a frame."""


class ClusterMemory(ArticulatedCluster, PathCluster):
    """The same, and y = D⁻¹ Sᵀ χᵀ, the acceleration of its joints by unit of force while what carries it rests."""


Node = Visit[BodyMemory, ClusterMemory]


def inverse_osim_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program q → J H⁻¹ Jᵀ of some frames, 6 rows each, along their own axes.

    Args:
        frames: for each its link, and the transform from the link's frame to it.
    """
    links = {link for link, _ in frames}
    sweep = Sweep(robot, "inverse_osim", body=BodyMemory, cluster=ClusterMemory, paired=True, oriented=links)
    omega, paths = towards_ground(sweep, frames, inward, propagate)
    paths.outward(respond)
    paths.multiply_pairs(omega)
    return sweep.build()


def towards_ground(
    sweep: Sweep[Any, Any], frames: Sequence[tuple[int, Transform]], inward: Callable[..., None], propagate: Any
) -> tuple[Any, Paths]:
    """The passes inwards: articulated inertias, then forces at frames. Gives the output Ω and the frames' paths."""
    sweep.inputs("q")
    omega = sweep.result("omega", (6 * len(frames)) ** 2)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    paths = Paths(sweep, frames)
    paths.inward(propagate)
    return omega, paths


def outward(cluster: Visit[Any, Any]) -> None:
    """Stores what later passes need again."""
    cluster.remember()
    for _, _, pair in cluster.pairs:  # a cluster further out couples two bodies of this one, from nothing
        pair.IA = np.zeros((6, 6))


def inward(cluster: Visit[ArticulatedBody, ArticulatedCluster]) -> None:
    """Articulated inertias, added to those of the output bodies: the backward pass of C-ABA without forces."""
    cluster.report_gap()
    IA = articulated(cluster)
    D = Cholesky(IA.D)  # eq. 49: U = Iᴬ S, D = Sᵀ U
    cluster.memory.Dinv = D.inverse()
    if not cluster.grounded:
        cluster.memory.Y = IA.pass_on_inertia(D)  # eq. 55, 56: Iᵃ = Iᴬ − U D⁻¹ Uᵀ, Iᴬ_λ += Xᵀ Iᵃ X


def propagate(cluster: Node, active: Sequence[Body[BodyMemory]], felt: Sequence[Body[BodyMemory]]) -> None:
    """A force at a frame, as the output bodies feel it: χ_λᵀ = Xᵀ Lᵀ χᵀ with Lᵀ = 1 − U D⁻¹ Sᵀ. [001, eq. 62]

    Args:
        cluster: a cluster between the frame and the ground.
        active: those of its bodies on which the force acts, at the frame or from further out.
        felt: those of its bodies whose acceleration `respond` is to find.
    """
    cluster.memory.y = cluster.memory.Dinv @ pass_force_on(cluster, active)


def pass_force_on(cluster: Visit[Any, Any], active: Sequence[Body[Any]]) -> Any:
    """Stores the force at a frame that output bodies feel; gives z = Sᵀ χᵀ, its force on the cluster's joints."""
    z = force_on_joints(cluster, {body: body.memory.P for body in active})
    for output in [] if cluster.grounded else cluster.outputs:
        P = {body: body.memory.P for body in active if body.output is output}
        output.memory.P = propagated(cluster, output, cluster.memory.Y, P, z)
    return z


def respond(cluster: Node, active: Sequence[Body[BodyMemory]], felt: Sequence[Body[BodyMemory]]) -> None:
    """Accelerations by unit of force at a frame: Ω = L X Ω_λ + S D⁻¹ Sᵀ χᵀ. [001, eq. 67]

    This is C-ABA's second pass outwards: ÿ = D⁻¹ (Sᵀ χᵀ − Uᵀ X Ω_λ), Ω = X Ω_λ + S ÿ.
    """
    ydd = cluster.memory.y
    if not cluster.grounded:
        ydd = ydd - response(cluster, cluster.memory.Y, [output.memory.A for output in cluster.outputs])
    for body in felt:
        across = across_joints(body, ydd)
        body.memory.A = across if body.output.grounded else across + body.Xo @ body.output.memory.A
