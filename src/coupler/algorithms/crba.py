"""The joint-space inertia matrix by the composite-rigid-body algorithm, on clusters.

To find column k of H, let cluster k alone move, by unit of ẏ, and hold all other joints. All that a body of the cluster
carries then moves with it as one rigid body, the composite Iᶜ. With F = Iᶜ S, the momenta of the cluster's bodies,

    Iᶜ_λ += Xᵀ Iᶜ X,    H_kk = Sᵀ F                                       inwards, once for each cluster
    F := Xᵀ F,          H_jk = S_jᵀ F                                      for each cluster j between k and the ground

Of a robot without loops this is the classic algorithm (HandC in Featherstone's spatial_v2). Clusters that do not carry
each other have no common entry of H; zeros are not computed.
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
    """What a body that carries other clusters remembers: the transform X = (E, r) from its output body, S and F."""

    E, r = entry((3, 3)), entry(3)


class BodyMemory(PlacedBody):
    """The same, and Iᶜ of all that it carries: mass, first moments and second moments."""

    m, h, I = collected(()), collected(3), collected(symmetric(3))  # noqa: E741


Node = Visit[BodyMemory, ClimbingCluster]


def mass_matrix_program(robot: Robot) -> Any:
    """The program q → H of a robot, as its `mass_matrix_entries`; what is left out is zero."""
    sweep = Sweep(robot, "mass_matrix", body=BodyMemory, cluster=ClimbingCluster, oriented=())
    sweep.inputs("q")
    climb = Climb(sweep)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    climb.run(momenta_further_in)
    return sweep.build()


def mass_matrix_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that the program gives, of each pair of equal ones at least one."""
    return CoupledClusters(robot).entries


def outward(cluster: Visit[PlacedBody, Any]) -> None:
    """Stores X and S of bodies that carry other clusters."""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.E, body.memory.r, body.memory.S = body.Xo.E, body.Xo.r, body.S


def inward(cluster: Node) -> None:
    """Composite inertias, added to those of the output bodies; the cluster's block H_kk, and its momenta F."""
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
        moved = [body.seen_by_output(inertia[body]) for body in output.bodies]  # Xᵀ Iᶜ X
        output.collect(m=sum(x.m for x in moved), h=sum(x.h for x in moved), I=sum(x.I for x in moved))


def _inward_joint_by_joint(cluster: Node, whole: JointByJoint) -> None:
    """The same for a large cluster: H of its tree is found first, and then projected onto its independent joints."""
    cluster.memory.H = whole.D
    for output, momenta in zip(cluster.outputs, whole.W, strict=True):
        if not output.grounded:
            carried = whole.on_output(output)
            output.memory.F = momenta
            output.collect(m=carried.m, h=carried.h, I=carried.I)


def composite(body: Body[BodyMemory]) -> RigidInertia:
    """Iᶜ, a body's own inertia with that of all that it carries."""
    memory = body.memory
    return body.inertia + RigidInertia(memory.m, memory.h, memory.I) if body.carries else body.inertia


def momenta_further_in(body: Any, momentum: Any) -> Any:
    """A step of F towards the ground, through a body that carries the cluster: F := Xᵀ F; gives Sᵀ F, part of H_jk."""
    block = body.S.T @ momentum.F
    momentum.F = Transform(body.E, body.r).transform_force(momentum.F)
    return block
