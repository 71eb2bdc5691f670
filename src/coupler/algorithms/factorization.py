"""Factors and inverse of the joint-space inertia matrix, and products with it in linear time [003, §IV-B].

With the articulated inertias of C-ABA, H = Bᵀ D B, where D = Sᵀ U of each cluster. A cluster answers accelerations a of
its output bodies by ÿ = −Y a. So B = 1 + κ A X, eq. 24, has Y times what the clusters that carry it do to its output
bodies, with joints between locked. B⁻¹ = 1 − κ ψ X, eq. 26, is the same with joints between free: −Y is at the end,
and each cluster on the way counts with T = X − S Y instead of X.

Blocks of H⁻¹ = B⁻¹ D⁻¹ B⁻ᵀ, eq. 27, are sums over all clusters that carry both c and k. From the nearest of them to the
ground, all terms have the same ends: P = Tᵀ … Tᵀ (−Yᵀ), forces that climb from c, and others from k, to bodies of that
cluster. What is between is summed once: Ω, the accelerations of these bodies by forces on them, S D⁻¹ Sᵀ + T Ω' Tᵀ with
Ω' of the output bodies [001, eq. 67]. So H⁻¹ = P_cᵀ Ω P_k, and a pair of clusters takes one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from coupler.algorithms import aba, crba, efpa
from coupler.algorithms.aba import alone, collect_inertia, met
from coupler.algorithms.gathering import gathered, on
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Body, Climb, Cluster, Output, Sweep, symmetric, velocities_of
from coupler.passes.responses import Responses
from coupler.spatial import mirrored

__all__ = [
    "mass_matrix_factors_entries",
    "mass_matrix_factors_program",
    "mass_matrix_inverse_entries",
    "mass_matrix_inverse_program",
    "mass_matrix_product_program",
    "mass_matrix_solve_program",
]


# Factors


def mass_matrix_factors_program(robot: Robot) -> Any:
    """The program q → D and Bᵀ of a robot, as its `mass_matrix_factors_entries`; what is left out is zero or one."""
    body, left, pair = {"E": (3, 3), "r": 3}, {"IA": symmetric(6)}, {"IA": (6, 6)}
    sweep = Sweep(robot, "mass_matrix_factors", body=body, left=left, pair=pair, turning=())
    sweep.input("q", robot.nq)
    climb = Climb(sweep)
    sweep.outward(prepare, carriers=True)
    sweep.inward(factorise)
    climb.run(crba.up)
    return sweep.build()


def mass_matrix_factors_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows and columns of the entries that the program gives, and how many are of D; those of Bᵀ come behind."""
    clusters = range(len(robot.cluster_tree.clusters))
    return *crba.mass_matrix_entries(robot), sum(len(velocities_of(robot, k)) ** 2 for k in clusters)


def prepare(cluster: Cluster) -> None:
    """How bodies that carry others move and hang on their output bodies."""
    crba.outward(cluster)
    for _, _, pair in cluster.pairs:
        pair.IA = np.zeros((6, 6))


def factorise(cluster: Cluster) -> None:
    """D, and what climbs to the ground instead of momenta, Yᵀ: then Sᵀ Yᵀ are blocks of Bᵀ. [003, eq. 24]"""
    cluster.report_gap()
    all_of_it = gathered(cluster)
    cluster.memory.H = mirrored(all_of_it.D)
    if not cluster.outputs[0].grounded:
        for output, Yt in zip(cluster.outputs, answering(cluster, collect_inertia(cluster, all_of_it)), strict=True):
            output.memory.F = Yt


def answering(cluster: Cluster, Y: Any) -> list[Any]:
    """Yᵀ of each output body, whatever Y answers."""
    return [cluster.bodies[0].Xo.transform_force(Y.T)] if alone(cluster) else np.split(Y.T, len(cluster.outputs))


# Products


def mass_matrix_product_program(robot: Robot) -> Any:
    """The program (q, x) → H x of a robot: C-RNEA from accelerations x, without all that is not inertia."""
    sweep = Sweep(robot, "mass_matrix_product", body={"a": 6}, left={"f": 6}, turning=())
    sweep.input("q", robot.nq)
    sweep.input("x", robot.nv)
    sweep.output("y", robot.nv)
    sweep.outward(move, carriers=True)
    sweep.inward(weigh)
    return sweep.build()


def move(cluster: Cluster) -> None:
    """Accelerations. [001, eq. 33]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.a = moved(body, cluster.read("x"))


def weigh(cluster: Cluster) -> None:
    """Forces, collected on the output bodies, and what joints must do. [001, eq. 34, 35]"""
    cluster.report_gap()
    x = cluster.read("x")
    f = {body: body.inertia @ (body.memory.a if body.carries else moved(body, x)) for body in cluster.bodies}
    f |= {body: f[body] + body.memory.f for body in cluster.carriers}
    cluster.write("y", sum((body.S.T @ f[body] for body in cluster.bodies), cluster.armature @ x))
    for output in cluster.outputs:
        if not output.grounded:
            output.collect(f=sum(body.Xo.transform_force(f[body]) for body in on(cluster, output)))


def mass_matrix_solve_program(robot: Robot) -> Any:
    """The program (q, x) → H⁻¹ x of a robot: C-ABA from forces x, without all that is not inertia."""
    left, pair = {"IA": symmetric(6), "pA": 6}, {"IA": (6, 6)}
    options: Any = {"body": {"a": 6}, "left": left, "pair": pair, "cluster": aba.memory_of, "turning": ()}
    sweep = Sweep(robot, "mass_matrix_solve", **options)
    sweep.input("q", robot.nq)
    sweep.input("x", robot.nv)
    sweep.output("y", robot.nv)
    sweep.outward(efpa.outward, carriers=True)
    sweep.inward(push)
    sweep.outward(give_way)
    return sweep.build()


def push(cluster: Cluster) -> None:
    """Articulated inertias, and forces of joints further out, collected on the output bodies. [001, eq. 49, 55, 56]"""
    cluster.report_gap()
    all_of_it = gathered(cluster, {body: body.memory.pA if body.carries else np.zeros(6) for body in cluster.bodies})
    y0 = Cholesky(all_of_it.D).solve(cluster.read("x") - all_of_it.felt())
    if cluster.outputs[0].grounded:
        cluster.write("y", y0)
        return
    cluster.memory.y0 = y0
    cluster.memory.Y = collect_inertia(cluster, all_of_it)
    for output in cluster.outputs:
        output.collect(pA=all_of_it.force(output, y0))


def give_way(cluster: Cluster) -> None:
    """Accelerations. [001, eq. 54]"""
    if cluster.outputs[0].grounded:
        y = cluster.read("y")
    else:
        y = cluster.memory.y0 - cluster.memory.Y @ met(cluster, [output.memory.a for output in cluster.outputs])
        cluster.write("y", y)
    for body in cluster.carriers:
        body.memory.a = moved(body, y)


def moved(body: Body, y: Any) -> Any:
    """a = X a_λ + S ÿ."""
    own = body.S @ y
    return own if body.output.grounded else own + body.Xo @ body.output.memory.a


# Inverse


def mass_matrix_inverse_program(robot: Robot) -> Any:
    """The program q → H⁻¹ of a robot, as its `mass_matrix_inverse_entries`; what is left out is zero."""
    left, pair = {"IA": symmetric(6)}, {"IA": (6, 6)}
    sweep = Sweep(robot, "mass_matrix_inverse", body={}, left=left, pair=pair, cluster=efpa.memory_of, turning=())
    sweep.input("q", robot.nq)
    responses = Responses(sweep)
    sweep.outward(efpa.outward, carriers=True)
    sweep.inward(efpa.inward)
    sweep.outward(respond)
    responses.run(climb, reach, meet)
    return sweep.build()


def mass_matrix_inverse_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that the program gives, of each pair of equal ones at least one."""
    return Responses(Sweep(robot, "entries", body={})).entries


def respond(cluster: Cluster) -> None:
    """A cluster's own H⁻¹ = D⁻¹ + Y Ω' Yᵀ, and what its bodies do by unit of force at its joints, A, or on them, Ω.

    A force on a body is Sᵀ at the joints and Xᵀ on the output body: so Ω = A Sᵀ + T Ω' Xᵀ.
    """
    outputs, grounded = cluster.outputs, cluster.outputs[0].grounded
    outside = [[outside_response(one, other) for other in outputs] for one in outputs]  # Ω', zero on the ground
    Dinv = cluster.memory.Dinv
    Yt = [np.zeros((6, len(Dinv)))] if grounded else answering(cluster, cluster.memory.Y)
    felt = [reach(row, Yt) for row in outside]  # Ω' Yᵀ
    cluster.memory.H = mirrored(Dinv + meet(Yt, felt))
    for body in cluster.carriers:
        body.memory.A = body.S @ cluster.memory.H - body.Xo @ felt[body.output.number]
        for other in cluster.carriers:
            a, b = body.output.number, other.output.number
            TO = body.Xo @ outside[a][b] - body.S @ felt[b].T
            Omega = body.memory.A @ other.S.T + (other.Xo @ TO.T).T
            setattr(body.memory, f"Omega{other.number}", mirrored(Omega) if other is body else Omega)
    for output in [] if grounded else outputs:
        output.memory.P = -Yt[output.number]
        for body in cluster.carriers:
            T = -body.S @ Yt[output.number].T
            setattr(body.memory, f"T{output.number}", T + body.Xo.matrix() if output is body.output else T)


def outside_response(one: Output, other: Output) -> Any:
    """Acceleration of an output body by unit of force on another."""
    return np.zeros((6, 6)) if one.grounded else getattr(one.memory, f"Omega{other.number}")


def climb(A: Sequence[Any], T: Sequence[Sequence[Any]], P: Sequence[Any]) -> Any:
    """H⁻¹ = Aᵀ P of a cluster and one that it carries, and P := Tᵀ P on its output bodies.

    Joints answer a force on a body as the body answers a force at the joints.
    """
    return meet(A, P), [meet(column, P) for column in zip(*T, strict=True)]


def reach(Omega: Sequence[Any], P: Sequence[Any]) -> Any:
    """Ω P: acceleration of a body by forces on all that has to do with it."""
    return reduce(add, (W @ p for W, p in zip(Omega, P, strict=True)))


def meet(P: Sequence[Any], A: Sequence[Any]) -> Any:
    """H⁻¹ = Pᵀ A of two clusters, by forces of the one and accelerations by the other."""
    return reduce(add, (p.T @ a for p, a in zip(P, A, strict=True)))
