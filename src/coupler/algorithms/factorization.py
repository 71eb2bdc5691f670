"""Factors of the joint-space inertia matrix, and products with it and its inverse in linear time [003, §IV-B].

Without velocities and gravity, C-ABA (aba.py) solves u = D (ÿ + Y a_λ) for each cluster, with D = Sᵀ U and
Y = D⁻¹ Uᵀ X. The accelerations a_λ of its output bodies follow from ÿ of the clusters that carry it, so for all
clusters together u = D B ÿ. Forces are propagated by the transpose, τ = Bᵀ u. Hence

    H = Bᵀ D B,    B = 1 + κ A X    [003, eq. 24]

D is block diagonal, and B is triangular. The block of B for a cluster k and a cluster j that carries it is Y of k
times the accelerations of k's output bodies per unit of ÿ_j, with all other joints held.

Products with H and H⁻¹ need no factors. H x is C-RNEA for accelerations x, and H⁻¹ x is C-ABA for forces x, both
without velocities and gravity. mass_matrix_inverse.py inverts B [003, eq. 26].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.algorithms import aba, crba, efpa
from coupler.algorithms.articulated import articulated, response, response_by_output
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import (
    Body,
    Climb,
    ClimbingCluster,
    ClusterRecord,
    Coordinate,
    Record,
    Sweep,
    Visit,
    across_joints,
    armature_force,
    collected,
    entry,
    force_on_joints,
    symmetric,
    velocities_of,
)
from coupler.spatial import mirrored

# Factors


class FactorBody(crba.PlacedBody):
    """What a body that carries other clusters remembers: X, S, F as in crba.py, and Iᴬ of what it carries."""

    IA = collected(symmetric(6))


def mass_matrix_factors_program(robot: Robot) -> Any:
    """The program q → D and Bᵀ: those entries that `mass_matrix_factors_entries` lists; all others are zero or one."""
    sweep = Sweep(robot, "mass_matrix_factors", body=FactorBody, cluster=ClimbingCluster, oriented=())
    sweep.inputs("q")
    climb = Climb(sweep)
    sweep.outward(place_bodies, carriers=True)
    sweep.inward(factorise)
    climb.run(crba.momenta_further_in)
    return sweep.build()


def mass_matrix_factors_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows and columns of the program's entries, and how many of them belong to D; those of Bᵀ follow."""
    clusters = range(len(robot.cluster_tree.clusters))
    return *crba.mass_matrix_entries(robot), sum(len(velocities_of(robot, k)) ** 2 for k in clusters)


def place_bodies(cluster: Visit[FactorBody, Any]) -> None:
    """Stores X and S of bodies that carry other clusters."""
    crba.outward(cluster)
    aba.begin_pairs(cluster)


def factorise(cluster: Visit[FactorBody, ClimbingCluster]) -> None:
    """Stores D and Yᵀ in place of H_kk and the momenta F of crba.py, so that its blocks H_jk = Sᵀ F are those of Bᵀ."""
    cluster.report_gap()
    IA = articulated(cluster)
    cluster.memory.H = mirrored(IA.D)
    if not cluster.grounded:
        Y = IA.pass_on_inertia(Cholesky(IA.D))
        for output, Yt in zip(cluster.outputs, response_by_output(cluster, Y), strict=True):
            output.memory.F = Yt


# H x


class VectorMemory(ClusterRecord):
    """A cluster's parts of the input x and of the output y = H x or H⁻¹ x."""

    x, y = Coordinate(), Coordinate()


class ProductBody(Record):
    """What a body that carries other clusters remembers: its acceleration a, and the force f on those clusters."""

    a, f = entry(6), collected(6)


def mass_matrix_product_program(robot: Robot) -> Any:
    """The program (q, x) → H x: C-RNEA for accelerations x, without velocities, gravity and springs."""
    sweep = Sweep(robot, "mass_matrix_product", body=ProductBody, cluster=VectorMemory, oriented=())
    sweep.inputs("q", "x")
    sweep.output("y")
    sweep.outward(accelerate_bodies, carriers=True)
    sweep.inward(collect_forces)
    return sweep.build()


def accelerate_bodies(cluster: Visit[ProductBody, VectorMemory]) -> None:
    """The forward pass of C-RNEA. [001, eq. 33]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.a = acceleration(body, cluster.memory.x)


def collect_forces(cluster: Visit[ProductBody, VectorMemory]) -> None:
    """The backward pass of C-RNEA. [001, eq. 31, 34, 35]"""
    cluster.report_gap()
    x = cluster.memory.x
    f = {body: body.inertia @ (body.memory.a if body.carries else acceleration(body, x)) for body in cluster.bodies}
    f |= {body: f[body] + body.memory.f for body in cluster.carriers}
    cluster.memory.y = force_on_joints(cluster, f, armature_force(cluster, x))
    for output in cluster.outputs:
        if not output.grounded:
            output.collect(f=sum(body.Xo.transform_force(f[body]) for body in output.bodies))


def acceleration(body: Body[Any], y: Any) -> Any:
    """a = X a_λ + S y, for joint accelerations y; the output body remembers a_λ."""
    across = across_joints(body, y)
    return across if body.output.grounded else across + body.Xo @ body.output.memory.a


# H⁻¹ x


class SolveBody(Record):
    """What a body that carries other clusters remembers: a, and Iᴬ and pᴬ of what it carries."""

    a, IA, pA = entry(6), collected(symmetric(6)), collected(6)


class SolveCluster(aba.ResponseMemory, VectorMemory):
    """What a cluster remembers: y₀ = D⁻¹ u and Y, as in C-ABA, and its parts of x and y."""


def mass_matrix_solve_program(robot: Robot) -> Any:
    """The program (q, x) → H⁻¹ x: C-ABA for forces x, without velocities, gravity and springs."""
    sweep = Sweep(robot, "mass_matrix_solve", body=SolveBody, cluster=SolveCluster, oriented=())
    sweep.inputs("q", "x")
    sweep.output("y")
    sweep.outward(efpa.outward, carriers=True)
    sweep.inward(collect_inertias)
    sweep.outward(accelerate)
    return sweep.build()


def collect_inertias(cluster: Visit[SolveBody, SolveCluster]) -> None:
    """The backward pass of C-ABA, for bodies without bias forces of their own. [001, Algorithm 1, lines 24-35]"""
    cluster.report_gap()
    p = {body: body.memory.pA if body.carries else np.zeros(6) for body in cluster.bodies}
    IA = articulated(cluster, p)
    D = Cholesky(IA.D)
    y0 = D.solve(cluster.memory.x - IA.force_on_joints())  # D⁻¹ u
    if cluster.grounded:
        cluster.memory.y = y0
        return
    cluster.memory.y0 = y0
    cluster.memory.Y = IA.pass_on_inertia(D)
    IA.pass_on_force(y0)


def accelerate(cluster: Visit[SolveBody, SolveCluster]) -> None:
    """Forward pass #2 of C-ABA. [001, Algorithm 1, lines 37-43]"""
    memory = cluster.memory
    if cluster.grounded:
        y = memory.y
    else:
        y = memory.y = memory.y0 - response(cluster, memory.Y, [output.memory.a for output in cluster.outputs])
    for body in cluster.carriers:
        body.memory.a = acceleration(body, y)
