"""The joint-space inertia matrix by the composite-rigid-body algorithm, on clusters.

With all joints held, every body moves with its output body. What a cluster carries is then a rigid body on each of its
bodies, and H couples it with the clusters that carry it alone: F = I S are the momenta of its bodies by unit of ẏ,
H_kk = Sᵀ F, and H_jk = Sᵀ F for each cluster j on the way to the ground, where F is seen from its body in j.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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

__all__ = ["PlacedBody", "mass_matrix_entries", "mass_matrix_program", "momenta_further_in", "outward"]


class PlacedBody(ClimbingBody):
    """What a body that carries others remembers: the transform from its output body."""

    E, r = entry((3, 3)), entry(3)


class BodyMemory(PlacedBody):
    """That, and the inertia of all that it carries, as a rigid body."""

    m, h, I = collected(()), collected(3), collected(symmetric(3))  # noqa: E741


Node = Visit[BodyMemory, ClimbingCluster]


def mass_matrix_program(robot: Robot) -> Any:
    """The program q → H of a robot, as its `mass_matrix_entries`; what is left out is zero."""
    sweep = Sweep(robot, "mass_matrix", body=BodyMemory, cluster=ClimbingCluster, oriented=())
    sweep.input("q", robot.nq)
    climb = Climb(sweep)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    climb.run(momenta_further_in)
    return sweep.build()


def mass_matrix_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that the program gives, of each pair of equal ones at least one."""
    return CoupledClusters(robot).entries


def outward(cluster: Visit[PlacedBody, Any]) -> None:
    """How bodies that carry others move and hang on their output bodies."""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.E, body.memory.r, body.memory.S = body.Xo.E, body.Xo.r, body.S


def inward(cluster: Node) -> None:
    """Composite inertias, collected on the output bodies; the cluster's own block of H, and its momenta F."""
    cluster.report_gap()
    inertia = {body: composite(body) for body in cluster.bodies}
    F = {body: inertia[body] @ body.S for body in cluster.bodies}
    cluster.memory.H = mirrored(sum((body.S.T @ F[body] for body in cluster.bodies), cluster.armature))
    for output in cluster.outputs:
        if output.grounded:
            continue
        output.memory.F = sum(body.Xo.transform_force(F[body]) for body in output.bodies)
        seen = [body.seen_by_output(inertia[body]) for body in output.bodies]
        output.collect(m=sum(x.m for x in seen), h=sum(x.h for x in seen), I=sum(x.I for x in seen))


def composite(body: Body[BodyMemory]) -> RigidInertia:
    """A body with all that it carries."""
    memory = body.memory
    return body.inertia + RigidInertia(memory.m, memory.h, memory.I) if body.carries else body.inertia


def momenta_further_in(body: Any, momentum: Any) -> Any:
    """From a body that carries a cluster to that body's own output body; the block of H that is passed."""
    block = body.S.T @ momentum.F
    momentum.F = Transform(body.E, body.r).transform_force(momentum.F)
    return block
