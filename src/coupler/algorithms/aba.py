"""Forward dynamics by the cluster-based articulated-body algorithm, C-ABA [001, §VII].

Inertias and forces are seen from the output bodies before they are reduced: with W = Xᵀ U the articulated inertia that
a cluster shows to its parent is Xᵀ Iᴬ X − W D⁻¹ Wᵀ, and a rotor beside its link costs one more Xᵀ I X of a rigid body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Body, Cluster, Output, Shape, Sweep, add_loads, symmetric

__all__ = ["collect_inertia", "forward_dynamics_program", "momenta", "pulled", "seen_from_outputs"]


def forward_dynamics_program(robot: Robot, external: bool = False) -> Any:
    """The program a(q, v, tau) of a robot: accelerations of its independent joints, from their forces.

    Args:
        robot: which.
        external: whether there are forces on its bodies, too, as a further input `f_ext`.
    """
    loaded = external or bool(robot.elements)
    body, pair = {"v": 6, "a": 6, "IA": symmetric(6), "pA": 6}, {"IA": (6, 6)}
    turning = pulled(robot)
    sweep = Sweep(robot, "forward_dynamics", body=body, pair=pair, cluster=memory_of, loaded=loaded, turning=turning)
    sweep.input("q", robot.nq)
    sweep.input("v", robot.nv)
    sweep.input("tau", robot.nv)
    sweep.output("a", robot.nv)
    if loaded:
        add_loads(sweep, external)
    sweep.outward(outward, carriers=True)
    sweep.inward(inward)
    sweep.outward(accelerate)
    return sweep.build()


def pulled(robot: Robot) -> set[int]:
    """The links that springs between points pull at, so that their angles matter even where they are symmetric."""
    return {robot.tree.place[body][0] for spring in robot.elements for body in (spring.first, spring.second)}


def memory_of(shape: Shape) -> dict[str, Any]:
    """What a cluster remembers on the way inwards: ÿ = y₀ − Y a, for accelerations a of its output bodies."""
    n, outputs = len(shape.independent), len(shape.grounded)
    return {} if all(shape.grounded) else {"y0": n, "Y": (n, 6 * outputs)}


def outward(cluster: Cluster) -> None:
    """Velocities, and inertias and bias forces of bodies on their own. [001, eq. 33, 36]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.v = body.v
        body.memory.IA, body.memory.pA = body.inertia.matrix(), body.p
    for _, _, pair in cluster.pairs:
        pair.IA = np.zeros((6, 6))


def inward(cluster: Cluster) -> None:
    """Articulated inertias and bias forces, collected on the output bodies. [001, eq. 49, 55, 56]"""
    cluster.report_gap()
    U = momenta(cluster)
    pA = {body: bias_of(body) + inertia_times(body, body.c) for body in cluster.bodies}
    for one, other, pair in cluster.pairs:
        pA[one], pA[other] = pA[one] + pair.IA @ other.c, pA[other] + pair.IA.T @ one.c
    D = Cholesky(sum((body.S.T @ U[body] for body in cluster.bodies), cluster.armature))
    u = cluster.read("tau") + cluster.passive - cluster.armature_bias
    u = u - sum(body.S.T @ pA[body] for body in cluster.bodies)
    if cluster.outputs[0].grounded:
        u = u - sum(U[body].T @ (body.Xo @ body.output.a) for body in cluster.bodies)
        cluster.write("a", D.solve(u))
        return
    W, y0 = seen_from_outputs(cluster, U), D.solve(u)
    cluster.memory.Y, cluster.memory.y0 = collect_inertia(cluster, W, D), y0
    for output, Wo in zip(cluster.outputs, W, strict=True):
        output.memory.pA += sum((body.Xo.transform_force(pA[body]) for body in on(cluster, output)), Wo @ y0)


def accelerate(cluster: Cluster) -> None:
    """Accelerations. [001, eq. 33, 54]"""
    if cluster.outputs[0].grounded:
        ydd = cluster.read("a")
    else:
        ydd = cluster.memory.y0 - cluster.memory.Y @ np.concatenate([output.a for output in cluster.outputs])
        cluster.write("a", ydd)
    for body in cluster.carriers:
        body.memory.a = body.Xo @ body.output.a + body.c + body.S @ ydd


def momenta(cluster: Cluster) -> dict[Body, Any]:
    """U = Iᴬ S."""
    U = {body: inertia_times(body, body.S) for body in cluster.bodies}
    for one, other, pair in cluster.pairs:
        U[one], U[other] = U[one] + pair.IA @ other.S, U[other] + pair.IA.T @ one.S
    return U


def seen_from_outputs(cluster: Cluster, U: dict[Body, Any]) -> list[Any]:
    """W = Xᵀ U, for each output body."""
    return [sum(body.Xo.transform_force(U[body]) for body in on(cluster, output)) for output in cluster.outputs]


def collect_inertia(cluster: Cluster, W: Sequence[Any], D: Cholesky) -> Any:
    """Adds Xᵀ Iᴬ X − W D⁻¹ Wᵀ to the output bodies; returns Y = D⁻¹ Wᵀ."""
    Y = D.solve(np.concatenate(W).T)
    for output, Wo in zip(cluster.outputs, W, strict=True):
        own = slice(6 * output.number, 6 * output.number + 6)
        output.memory.IA += sum((seen_by_output(body) for body in on(cluster, output)), -Wo @ Y[:, own])
    for (a, b), pair in cluster.output_pairs.items():
        pair.IA -= W[a] @ Y[:, 6 * b : 6 * b + 6]
    for one, other, pair in cluster.pairs:
        shared = other.Xo.transform_force(one.Xo.transform_force(pair.IA).T).T  # Xᵀ I X'
        a, b = one.output.number, other.output.number
        if a == b:
            one.output.memory.IA += shared + shared.T
        else:
            cluster.output_pairs[min(a, b), max(a, b)].IA += shared if a < b else shared.T
    return Y


def on(cluster: Cluster, output: Output) -> list[Body]:
    """The bodies of a cluster that hang on one of its output bodies."""
    return [body for body in cluster.bodies if body.output is output]


def inertia_times(body: Body, m: Any) -> Any:
    """Iᴬ m; a body that carries nothing has its own inertia."""
    return body.memory.IA @ m if body.carries else body.inertia @ m


def bias_of(body: Body) -> Any:
    return body.memory.pA if body.carries else body.p


def seen_by_output(body: Body) -> Any:
    """Xᵀ Iᴬ X."""
    return body.Xo.transform_inertia(body.memory.IA) if body.carries else body.inertia.seen_from(body.Xo).matrix()
