"""Inverse operational-space inertia by the cluster-based extended force propagator algorithm, C-EFPA [001, §VIII]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.aba import alone, collect_inertia, met
from coupler.algorithms.gathering import gathered
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Body, Cluster, Paths, Shape, Sweep, symmetric
from coupler.spatial import Transform

__all__ = ["inverse_osim_program"]


def inverse_osim_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program q → J H⁻¹ Jᵀ of some frames, 6 rows each, along their own axes.

    Args:
        robot: which.
        frames: for each its link, and the transform from the link's frame to it.
    """
    left, pair, turning = {"IA": symmetric(6)}, {"IA": (6, 6)}, {link for link, _ in frames}
    sweep = Sweep(robot, "inverse_osim", body={}, left=left, pair=pair, cluster=memory_of, turning=turning)
    sweep.input("q", robot.nq)
    omega = sweep.result("omega", (6 * len(frames)) ** 2)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    paths = Paths(sweep, frames)
    paths.inward(propagate)
    paths.outward(respond)
    paths.meet(omega)
    return sweep.build()


def memory_of(shape: Shape) -> dict[str, Any]:
    """D⁻¹, and Y as in C-ABA."""
    n, outputs = len(shape.independent), len(shape.grounded)
    return {"Dinv": symmetric(n)} if all(shape.grounded) else {"Dinv": symmetric(n), "Y": (n, 6 * outputs)}


def outward(cluster: Cluster) -> None:
    """What later passes need again."""
    cluster.remember()
    for _, _, pair in cluster.pairs:
        pair.IA = np.zeros((6, 6))


def inward(cluster: Cluster) -> None:
    """Articulated inertias, collected on the output bodies. [001, eq. 49, 55]"""
    cluster.report_gap()
    all_of_it = gathered(cluster)
    cluster.memory.Dinv = Cholesky(all_of_it.D).solve(np.eye(len(all_of_it.D)))
    if not cluster.outputs[0].grounded:
        cluster.memory.Y = collect_inertia(cluster, all_of_it)


def propagate(cluster: Cluster, active: Sequence[Body], felt: Sequence[Body]) -> None:
    """A force at a frame, as it is felt beyond the cluster: χᵀ := Xᵀ Lᵀ χᵀ with Lᵀ = 1 − U D⁻¹ Sᵀ. [001, eq. 62]"""
    z = sum(body.S.T @ body.memory.P for body in active)
    cluster.memory.y = cluster.memory.Dinv @ z
    if alone(cluster) and not cluster.outputs[0].grounded:
        (body,) = cluster.bodies
        body.output.memory.P = body.Xo.transform_force(body.memory.P - cluster.memory.Y.T @ z)
        return
    for output in cluster.outputs:
        if not output.grounded:
            own = slice(6 * output.number, 6 * output.number + 6)
            passed = [body.Xo.transform_force(body.memory.P) for body in active if body.output is output]
            output.memory.P = sum(passed, -cluster.memory.Y[:, own].T @ z)


def respond(cluster: Cluster, active: Sequence[Body], felt: Sequence[Body]) -> None:
    """Accelerations by unit of force at a frame: Ω := L X Ω_λ + S D⁻¹ Sᵀ χᵀ. [001, eq. 67]"""
    ydd = cluster.memory.y
    if not cluster.outputs[0].grounded:
        ydd = ydd - cluster.memory.Y @ met(cluster, [output.memory.A for output in cluster.outputs])
    for body in felt:
        own = body.S @ ydd
        body.memory.A = own if body.output.grounded else own + body.Xo @ body.output.memory.A
