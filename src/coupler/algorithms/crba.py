"""The joint-space inertia matrix by the composite-rigid-body algorithm, on clusters.

Column k of H: let cluster k move with a unit of ẏ while all other joints are held. Everything that a body of the
cluster carries then moves with it as one rigid body, of composite inertia Iᶜ. With the momenta F = Iᶜ S,

    Iᶜ_λ += Xᵀ Iᶜ X,    H_kk = Sᵀ F      inward, once for each cluster
    F := Xᵀ F,          H_jk = S_jᵀ F    for each cluster j between k and the ground

where λ stands for the output bodies of a cluster: the bodies of other clusters that carry it. In a robot without loops
this is the classic algorithm (HandC in Featherstone's spatial_v2). Blocks of clusters that do not carry each other are
zero and are not computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.algorithms.articulated import JointByJoint
from coupler.model import Robot
from coupler.passes import (
    Body,
    Climb,
    ClimbingBody,
    ClimbingCluster,
    CoupledClusters,
    Sweep,
    Visit,
    collected,
    entry,
    symmetric,
)
from coupler.spatial import RigidInertia, Transform, mirrored


class PlacedBody(ClimbingBody):
    """What a body that carries other clusters remembers: X = (E, r) from its output body, S and F."""

    E, r = entry((3, 3)), entry(3)


class BodyMemory(PlacedBody):
    """What a body remembers: `PlacedBody`, and Iᶜ of everything that it carries: mass, first and second moments."""

    m, h, I = collected(()), collected(3), collected(symmetric(3))  # noqa: E741


Visited = Visit[BodyMemory, ClimbingCluster]


def mass_matrix_program(robot: Robot) -> Any:
    """The program q → H: those entries that `mass_matrix_entries` lists; all others are zero."""
    sweep = Sweep(robot, "mass_matrix", body=BodyMemory, cluster=ClimbingCluster, oriented=())
    sweep.inputs("q")
    climb = Climb(sweep)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    climb.run(momenta_further_in)
    return sweep.build()


def mass_matrix_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the program's entries; of two entries that are equal by symmetry, at least one is there."""
    return CoupledClusters(robot).entries


def outward(cluster: Visit[PlacedBody, Any]) -> None:
    """Stores X and S of bodies that carry other clusters."""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.E, body.memory.r, body.memory.S = body.Xo.E, body.Xo.r, body.S


def inward(cluster: Visited) -> None:
    """Passes composite inertias on to the output bodies; computes the cluster's block H_kk and its momenta F."""
    cluster.report_gap()
    inertia = {body: composite(body) for body in cluster.bodies}
    if cluster.shape.is_large and not cluster.pairs:
        _inward_joint_by_joint(cluster, JointByJoint(cluster, {}, inertia))
        return
    F = {body: inertia[body] @ body.S for body in cluster.bodies}
    cluster.memory.H = mirrored(sum((body.S.T @ F[body] for body in cluster.bodies), cluster.armature))
    for output in cluster.outputs:
        if output.grounded:
            continue
        output.memory.F = sum(body.Xo.transform_force(F[body]) for body in output.bodies)
        seen = [body.seen_by_output(inertia[body]) for body in output.bodies]  # Xᵀ Iᶜ X
        output.collect(m=sum(x.m for x in seen), h=sum(x.h for x in seen), I=sum(x.I for x in seen))


def _inward_joint_by_joint(cluster: Visited, composites: JointByJoint) -> None:
    """`inward` for a large cluster: H of its tree is computed first, and then projected onto its independent joints."""
    cluster.memory.H = composites.D
    for output, momenta in zip(cluster.outputs, composites.W, strict=True):
        if not output.grounded:
            carried = composites.on_output(output)
            output.memory.F = momenta
            output.collect(m=carried.m, h=carried.h, I=carried.I)


def composite(body: Body[BodyMemory]) -> RigidInertia:
    """Iᶜ: the inertia of a body with everything that it carries."""
    memory = body.memory
    return body.inertia + RigidInertia(memory.m, memory.h, memory.I) if body.carries else body.inertia


def momenta_further_in(body: Any, momentum: Any) -> Any:
    """Takes F one step towards the ground, across a body that carries the cluster: F := Xᵀ F. Returns S_jᵀ F."""
    block = body.S.T @ momentum.F
    momentum.F = Transform(body.E, body.r).transform_force(momentum.F)
    return block
