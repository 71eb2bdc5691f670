"""Inverse operational-space inertia in one sweep inward: PV-OSIM on clusters [001, §VIII-E; its reference 18].

Forces at frames are propagated inward as in C-EFPA: χ_λᵀ = Xᵀ Lᵀ χᵀ [001, eq. 62]. With z = Sᵀ χᵀ, a cluster adds
zᵀ D⁻¹ z to the accelerations of frames:

    J H⁻¹ Jᵀ = Σ zᵀ D⁻¹ z    over all clusters that carry both frames.

C-EFPA's outward pass is not needed. In return, every two frames are multiplied in each cluster that carries both, not
only in the nearest: N_ee² d products of 6 × 6 matrices for a depth d, instead of N_ee d + N_ee².
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coupler.algorithms.articulated import articulated
from coupler.algorithms.efpa import ArticulatedBody, ArticulatedCluster, inward_passes, pass_force_on
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Body, PathBody, PathCluster, Paths, Place, Sweep, Visit, entry
from coupler.spatial import Transform, mirrored


class BodyMemory(ArticulatedBody, PathBody):
    """Articulated inertia, and the force per unit force at a frame."""


class ClusterMemory(PathCluster):
    """R with D⁻¹ = Rᵀ R, Y as in C-ABA, and y = R z."""

    R = entry(lambda shape: (shape.freedoms, shape.freedoms))
    Y = ArticulatedCluster.Y


Visited = Visit[BodyMemory, ClusterMemory]


def pv_osim_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program q → J H⁻¹ Jᵀ of some frames; see `efpa.inverse_osim_program`."""
    sweep = Sweep(robot, "pv_osim", body=BodyMemory, cluster=ClusterMemory, oriented={link for link, _ in frames})
    omega, paths = inward_passes(sweep, frames, inward, propagate)
    add_products(sweep, paths, omega)
    return sweep.build()


def inward(cluster: Visited) -> None:
    """Passes articulated inertias on to the output bodies. [001, eq. 49, 55, 56]"""
    cluster.report_gap()
    IA = articulated(cluster)
    D = Cholesky(IA.D)
    cluster.memory.R = D.root()
    if not cluster.grounded:
        cluster.memory.Y = IA.pass_on_inertia(D)


def propagate(cluster: Visited, active: Sequence[Body[BodyMemory]], felt: Sequence[Body[BodyMemory]]) -> None:
    """Propagates a force at a frame to the output bodies [001, eq. 62], and stores y = R z."""
    cluster.memory.y = cluster.memory.R @ pass_force_on(cluster, active)


def add_products(sweep: Sweep[Any, Any], paths: Paths, omega: Any) -> None:
    """Writes Σ yᵀ y of every two frames, over the clusters that carry both, into the symmetric matrix Ω."""
    size, schedule, sums = 6 * len(paths.frames), sweep.schedule(), sweep.store("sums")
    pairs = [(one, other) for one in range(len(paths.frames)) for other in range(one + 1)]
    for pair in pairs:
        sums.add(pair, (6, 6))
    for one, other in pairs:
        total = sums.place((one, other))
        common = [k for k in paths.clusters(one) if k in set(paths.clusters(other))]
        schedule.clear(total)
        for k in common:
            schedule.call(add_product, total, paths.answer(one, k), paths.answer(other, k), out=total)
        lower, upper = (Place.block(omega, 6 * a * size + 6 * b, (6, 6), size) for a, b in ((one, other), (other, one)))
        if one == other:
            schedule.call(mirrored, total, out=lower)
        else:
            schedule.call(with_transpose, total, out=[lower, upper])
    schedule.run()


def add_product(total: Any, y1: Any, y2: Any) -> Any:
    return total + y1.T @ y2


def with_transpose(total: Any) -> Any:
    return total, total.T
