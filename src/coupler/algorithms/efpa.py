"""Inverse operational-space inertia by the cluster-based extended force propagator algorithm, C-EFPA [001, §VIII].

Ω = J H⁻¹ Jᵀ maps forces at frames (the paper's end effectors e) to accelerations of frames. λ stands for the output
bodies of a cluster: the bodies of other clusters that carry it.

    Iᴬ, U, D as in C-ABA                       articulated inertias                      inward     eq. 49, 55, 56
    χ_λᵀ = Xᵀ Lᵀ χᵀ,    Lᵀ = 1 − U D⁻¹ Sᵀ      force on each body, by a force at e       inward     eq. 62
    Ω = L X Ω_λ + S D⁻¹ Sᵀ χᵀ                  acceleration of each body, by the same    outward    eq. 67
    Ω_ee′ = χ_e Ω_e′                           at the nearest cluster that carries both frames    §VIII-D

χᵀ and Ω are 6 × 6 for each body, with one column for each unit force at a frame. For each frame, only the clusters
between it and the ground are visited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coupler.algorithms.aba import begin_pairs
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


class RespondingCluster(ClusterRecord):
    """What a cluster above the ground remembers: Y = D⁻¹ Uᵀ X, as in C-ABA."""

    Y = entry(lambda shape: None if shape.on_ground else (shape.freedoms, 6 * len(shape.grounded)))


class ArticulatedCluster(RespondingCluster):
    """What a cluster above the ground remembers: Y, and D⁻¹."""

    Dinv = entry(lambda shape: symmetric(shape.freedoms))


class BodyMemory(ArticulatedBody, PathBody):
    """What a body remembers: Iᴬ, and χᵀ and Ω, its force and acceleration per unit force at a frame."""


class ClusterMemory(ArticulatedCluster, PathCluster):
    """Adds y = D⁻¹ Sᵀ χᵀ: accelerations of a cluster's joints per unit force, with the output bodies at rest."""


Visited = Visit[BodyMemory, ClusterMemory]


def inverse_osim_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program q → J H⁻¹ Jᵀ of some frames, 6 rows each, along their own axes.

    Args:
        frames: for each frame the number of its link, and the transform from the link's frame to the frame.
    """
    sweep = Sweep(robot, "inverse_osim", body=BodyMemory, cluster=ClusterMemory, oriented={link for link, _ in frames})
    omega, paths = inward_passes(sweep, frames, inward, propagate)
    paths.outward(respond)
    paths.multiply_pairs(omega)
    return sweep.build()


def inward_passes(
    sweep: Sweep[Any, Any], frames: Sequence[tuple[int, Transform]], inward: Callable[..., None], propagate: Any
) -> tuple[Any, Paths]:
    """Writes the inward passes: articulated inertias, then forces at frames. Returns the output Ω and the paths."""
    sweep.inputs("q")
    omega = sweep.result("omega", (6 * len(frames)) ** 2)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    paths = Paths(sweep, frames)
    paths.inward(propagate)
    return omega, paths


def outward(cluster: Visit[Any, Any]) -> None:
    """Stores what later passes load again."""
    cluster.remember()
    begin_pairs(cluster)


def inward(cluster: Visit[ArticulatedBody, ArticulatedCluster]) -> None:
    """Passes articulated inertias on to the output bodies: the backward pass of C-ABA without forces."""
    cluster.memory.Dinv = factorised(cluster).inverse()


def factorised(
    cluster: Visit[ArticulatedBody, RespondingCluster], factors: Callable[[Any], Cholesky] = Cholesky
) -> Cholesky:
    """`inward`, but returns the factors of D instead of storing D⁻¹; another way to factorise D may be given."""
    cluster.report_gap()
    IA = articulated(cluster)
    D = factors(IA.D)  # eq. 49: U = Iᴬ S, D = Sᵀ U
    if not cluster.grounded:
        cluster.memory.Y = IA.pass_on_inertia(D)  # eq. 55, 56: Iᵃ = Iᴬ − U D⁻¹ Uᵀ, Iᴬ_λ += Xᵀ Iᵃ X
    return D


def propagate(cluster: Visited, active: Sequence[Body[BodyMemory]], felt: Sequence[Body[BodyMemory]]) -> None:
    """Propagates a force at a frame to the output bodies: χ_λᵀ = Xᵀ Lᵀ χᵀ with Lᵀ = 1 − U D⁻¹ Sᵀ. [eq. 62]

    Args:
        cluster: a cluster between the frame and the ground.
        active: its bodies on which the force acts, at the frame or from further out.
        felt: its bodies whose accelerations `respond` will compute.
    """
    cluster.memory.y = cluster.memory.Dinv @ pass_force_on(cluster, active)


def pass_force_on(cluster: Visit[Any, Any], active: Sequence[Body[Any]]) -> Any:
    """Stores the force on the output bodies by a force at a frame; returns z = Sᵀ χᵀ, its force on the joints."""
    z = force_on_joints(cluster, {body: body.memory.chiT for body in active})
    for output in [] if cluster.grounded else cluster.outputs:
        chiT = {body: body.memory.chiT for body in active if body.output is output}
        output.memory.chiT = propagated(cluster, output, cluster.memory.Y, chiT, z)  # eq. 62: χ_λᵀ = Xᵀ Lᵀ χᵀ
    return z


def respond(cluster: Visited, active: Sequence[Body[BodyMemory]], felt: Sequence[Body[BodyMemory]]) -> None:
    """Computes accelerations per unit force at a frame: Ω = L X Ω_λ + S D⁻¹ Sᵀ χᵀ. [eq. 67]

    Computed as in forward pass #2 of C-ABA: ÿ = D⁻¹ (Sᵀ χᵀ − Uᵀ X Ω_λ), Ω = X Ω_λ + S ÿ. [eq. 64, 65]
    """
    ydd = cluster.memory.y
    if not cluster.grounded:
        Omega_outputs = [output.memory.Omega for output in cluster.outputs]
        ydd = ydd - response(cluster, cluster.memory.Y, Omega_outputs)  # eq. 64: ÿ = D⁻¹ (Sᵀ χᵀ − Uᵀ X Ω_λ)
    for body in felt:
        across = across_joints(body, ydd)  # eq. 65: Ω = X Ω_λ + S ÿ
        body.memory.Omega = across if body.output.grounded else across + body.Xo @ body.output.memory.Omega
