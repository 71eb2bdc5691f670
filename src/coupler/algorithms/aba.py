"""Forward dynamics by the cluster-based articulated-body algorithm, C-ABA [001, §VII].

A cluster answers accelerations a from outside by ÿ = y₀ − Y a. Where it is one body that carries others, a is what that
body would do with its joint locked, Y = D⁻¹ Uᵀ, and its inertia is reduced first, Iᴬ − U Y, and then seen from its
output body: the rows that its joint moves are zero then. Otherwise a is what the output bodies do. With W = Xᵀ U and
Y = D⁻¹ Wᵀ they feel Xᵀ Iᴬ X − W Y, and a rotor beside its link costs no more than one Xᵀ I X of a rigid body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.gathering import ByBody, ByJoint, gathered, inertia_times
from coupler.linear import Cholesky
from coupler.model import Robot
from coupler.passes import Cluster, Shape, Sweep, add_loads, symmetric

__all__ = ["alone", "collect_inertia", "forward_dynamics_program", "met", "pulled"]


def forward_dynamics_program(robot: Robot, external: bool = False) -> Any:
    """The program a(q, v, tau) of a robot: accelerations of its independent joints, from their forces.

    Args:
        robot: which.
        external: whether there are forces on its bodies, too, as a further input `f_ext`.
    """
    loaded = external or bool(robot.elements)
    sweep = Sweep(
        robot,
        "forward_dynamics",
        body={"v": 6},
        left={"IA": symmetric(6), "pA": 6},
        after={"a": 6},
        pair={"IA": (6, 6)},
        cluster=memory_of,
        loaded=loaded,
        turning=pulled(robot),
    )
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
    """What a cluster remembers on the way inwards: y₀ and Y."""
    n, outputs = len(shape.independent), len(shape.grounded)
    return {} if all(shape.grounded) else {"y0": n, "Y": (n, 6 * outputs)}


def outward(cluster: Cluster) -> None:
    """Velocities. [001, eq. 33]"""
    cluster.remember()
    for body in cluster.carriers:
        body.memory.v = body.v
    for _, _, pair in cluster.pairs:
        pair.IA = np.zeros((6, 6))


def inward(cluster: Cluster) -> None:
    """Articulated inertias and bias forces, collected on the output bodies. [001, eq. 49, 55, 56]"""
    cluster.report_gap()
    pA = {body: body.pA + inertia_times(body, body.c) for body in cluster.bodies}
    for one, other, pair in cluster.pairs:
        pA[one], pA[other] = pA[one] + pair.IA @ other.c, pA[other] + pair.IA.T @ one.c
    all_of_it = gathered(cluster, pA)
    u = cluster.read("tau") + cluster.passive - cluster.armature_bias - all_of_it.felt()
    if cluster.outputs[0].grounded:
        cluster.write("a", Cholesky(all_of_it.D).solve(u - all_of_it.answer(cluster.outputs[0].a)))
        return
    y0 = cluster.memory.y0 = Cholesky(all_of_it.D).solve(u)
    cluster.memory.Y = collect_inertia(cluster, all_of_it)
    for output in cluster.outputs:
        output.collect(pA=all_of_it.force(output, y0))


def accelerate(cluster: Cluster) -> None:
    """Accelerations. [001, eq. 33, 54]"""
    if cluster.outputs[0].grounded:
        ydd = cluster.read("a")
    else:
        ydd = cluster.memory.y0 - cluster.memory.Y @ met(cluster, [output.a for output in cluster.outputs])
        cluster.write("a", ydd)
    for body in cluster.carriers:
        body.memory.a = body.Xo @ body.output.a + body.c + body.S @ ydd


def met(cluster: Cluster, above: Sequence[Any]) -> Any:
    """What Y answers, from accelerations of the output bodies; see the module's text."""
    return cluster.bodies[0].Xo @ above[0] if alone(cluster) else np.concatenate(above)


def alone(cluster: Cluster) -> bool:
    """Whether it is one body that carries others; one that carries nothing is rigid and easily seen from elsewhere."""
    return len(cluster.bodies) == 1 and cluster.bodies[0].carries


def collect_inertia(cluster: Cluster, all_of_it: ByBody | ByJoint) -> Any:
    """Adds what a cluster weighs for its output bodies to their inertias; returns Y."""
    D = all_of_it.D
    if isinstance(all_of_it, ByBody) and alone(cluster):
        (body,) = cluster.bodies
        U = all_of_it.U[body]
        Y = Cholesky(D).solve(U.T)
        body.output.collect(IA=body.seen_by_output(reduced(body.IA, U, D, Y)))
        return Y
    W = all_of_it.W
    Y = Cholesky(D).solve(np.concatenate(W).T)
    for output, Wo in zip(cluster.outputs, W, strict=True):
        own = slice(6 * output.number, 6 * output.number + 6)
        output.collect(IA=all_of_it.inertia(output) - Wo @ Y[:, own])
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


def reduced(IA: Any, U: Any, M: Any, Y: Any) -> Any:
    """Iᴬ − U Y. Where U are columns of Iᴬ and M what they share, those columns of the result are zero, and its rows."""
    Ia = IA - U @ Y
    moved = [r for column in U.T for r in range(6) if same(column, IA[:, r])]
    if len(moved) != len(M) or not same(M.ravel(), IA[np.ix_(moved, moved)].ravel()):
        return Ia
    return np.array([[0.0 if {i, j} & {*moved} else Ia[i, j] for j in range(6)] for i in range(6)])


def same(one: Any, other: Any) -> bool:
    """Whether numbers are computed in the same way."""
    return all(a is b for a, b in zip(one, other, strict=True))
