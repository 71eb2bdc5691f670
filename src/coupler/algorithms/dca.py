"""Accelerations and inverse operational-space inertia by divide and conquer, O(log n) in depth [002, §3.3].

A robot is divided into halves, these into halves, and so on down to single clusters; see passes/assembly.py. Each piece
keeps its handle equations [002, eq. 16], in the form that its neighbours need: with the acceleration a of what carries
it and forces f at its handles,

    F = M a + p − Σ Φᵢᵀ fᵢ,    aᵢ = Φᵢ a + Σ Ωᵢⱼ fⱼ + bᵢ.

M is what the piece weighs for its base, its joints being free, and Ωᵢⱼ the inverse inertia of its handles, its base
being held. Where a second piece hangs on handle m of a first, a_m = N (Φ_m a + b_m − Ω_mm p₂ + ...) with
N = (1 + Ω_mm M₂)⁻¹. Both matrices are positive semidefinite, so the inverse exists whatever they are: a body without
inertia about some axis, a rotor or a locked piece does no harm, unlike in the classical form, which inverts the inertia
of each body. Contacts are handles as well. When all is assembled, Ω of the whole robot is J H⁻¹ Jᵀ of the contacts;
taking it apart again gives the accelerations [002, eq. 17]. Velocities come before that, along the same pieces.

So the longest chain of operations grows with the logarithm of the number of clusters. There are two exceptions. Springs
between points need poses, which are found one after the other. A cluster next to without inertia of its own is put
together with what hangs on it first; a row of such clusters is a row of steps. Clusters must hang on one body each.
Where light bodies carry heavy ones, digits are lost with the ratio of Ω_mm⁻¹ and M₂, which recursion does not lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.aba import pulled
from coupler.linear import Cholesky, solve
from coupler.model import Robot
from coupler.passes import Assembly, Body, Cluster, Piece, Steps, add_loads
from coupler.spatial import RigidInertia, Transform, mirrored

__all__ = ["divide_and_conquer_program"]


def divide_and_conquer_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program (q, v, tau) → a, J H⁻¹ Jᵀ: accelerations of independent joints, and what forces at frames do there.

    Args:
        robot: which.
        frames: for each its link, and the transform from the link's frame to it.

    Raises:
        ModelError: for a cluster that hangs on several bodies.
    """
    links, loaded = {link for link, _ in frames if link}, bool(robot.elements)
    whole = Assembly(robot, "divide_and_conquer", links, loaded=loaded, turning=pulled(robot) | links)
    whole.input("q", robot.nq)
    whole.input("v", robot.nv)
    whole.input("tau", robot.nv)
    whole.output("a", robot.nv)
    if loaded:
        add_loads(whole, False)  # which finds velocities, too
    else:
        find_velocities(whole)
    assemble(whole)
    disassemble(whole)
    whole.tell("omega", frames)
    return whole.build()


# Velocities


def find_velocities(whole: Assembly) -> None:
    """Motions of handles against the bases of pieces, of larger and larger pieces; then velocities, the other way."""
    steps = whole.steps()
    for piece in whole.pieces:
        if piece.cluster:
            steps.add_cluster(move, piece)
        for at, two in piece.hung.items():
            for h in two.open:
                steps.add(follow, **whole.X(two, h, "2"), **whole.X(piece, at, "1"), **whole.X(piece, h))
    for piece in reversed(whole.pieces):
        for at in piece.hung:
            v, above = whole.of_link("v", at), whole.of_link("v", piece.base)
            steps.add(drive, **whole.X(piece, at), v=v, above=above)
    steps.run()


def move(cluster: Cluster, ports: Sequence[Body], taken: Sequence[Body]) -> None:
    """X and S ẏ."""
    cluster.remember()
    for body in ports:
        if body.carries:
            body.memory.Eo, body.memory.ro, body.memory.so = body.Xo.E, body.Xo.r, body.S @ cluster.v


def follow(here: Any) -> None:
    """A motion against a link that moves itself."""
    X = Transform(here.E2, here.r2)
    both = X @ Transform(here.E1, here.r1)
    here.E, here.r, here.s = both.E, both.r, X @ here.s1 + here.s2


def drive(here: Any) -> None:
    """v = X v_λ + S ẏ. [001, eq. 33]"""
    here.v = Transform(here.E, here.r) @ here.above + here.s


# Assembly


def assemble(whole: Assembly) -> None:
    """The handle equations of all pieces, smaller ones first. [002, eq. 16]"""
    steps = whole.steps()
    for piece in whole.pieces:
        if piece.cluster:
            steps.add_cluster(close, piece)
            placed = [*whole.ports(piece).values()]
        elif piece.at is None:
            one, two = piece.parts
            weights = {"M1": whole.M(one), "p1": whole.p(one), "M2": whole.M(two), "p2": whole.p(two)}
            steps.add(add, **weights, M=whole.M(piece), p=whole.p(piece))
            continue
        else:
            placed = join_parts(whole, steps, piece, piece.at)
        for at, two in piece.hung.items():
            placed += hang(whole, steps, piece, at, two, placed)
    steps.run()


def close(cluster: Cluster, ports: Sequence[Body], taken: Sequence[Body]) -> None:
    """A cluster by itself, with what it has taken in: its joints answer by ÿ = y₀ − Y a + Σ Z f."""
    cluster.report_gap()
    inertia: dict[Body, Any] = {body: body.inertia for body in cluster.bodies}
    p = {body: body.p for body in cluster.bodies}
    for body in taken:
        inertia[body], p[body] = body.inertia.matrix() + body.memory.M, body.p + body.memory.p
    p = {body: p[body] + inertia[body] @ body.c for body in cluster.bodies}
    U = {body: inertia[body] @ body.S for body in cluster.bodies}
    D = Cholesky(sum((body.S.T @ U[body] for body in cluster.bodies), cluster.armature))
    W: Any = sum(body.Xo.transform_force(U[body]) for body in cluster.bodies)
    u = cluster.read("tau") + cluster.passive - cluster.armature_bias
    y0 = cluster.memory.y0 = D.solve(u - sum(body.S.T @ p[body] for body in cluster.bodies))
    Y = cluster.memory.Y = D.solve(W.T)
    weights = [body.seen_by_output(inertia[body]) for body in cluster.bodies]
    matrices = [x.matrix() if isinstance(x, RigidInertia) else x for x in weights]
    cluster.memory.M = sum(matrices) - W @ Y
    cluster.memory.p = sum(body.Xo.transform_force(p[body]) for body in cluster.bodies) + W @ y0
    for body in ports:
        body.memory.Phi, body.memory.b = body.Xo.matrix() - body.S @ Y, body.c + body.S @ y0
        Z = body.memory.Z = D.solve(body.S.T)
        for other in ports:
            if other.number <= body.number:
                setattr(cluster.memory, f"Omega{other.number}_{body.number}", other.S @ Z)


def add(here: Any) -> None:
    """Two pieces side by side."""
    here.M, here.p = here.M1 + here.M2, here.p1 + here.p2


def join_parts(whole: Assembly, steps: Steps, piece: Piece, m: int) -> list[int]:
    """The first part of a piece when the second hangs on it, at handle m. Gives the first part's handles."""
    one, two = piece.parts
    M2, N = whole.M(two), whole.N(piece)
    first = {"Omega": whole.Omega(one, m, m), "Phi1": whole.Phi(one, m), "b1": whole.b(one, m)}
    first |= {"M1": whole.M(one), "p1": whole.p(one), "M2": M2, "p2": whole.p(two)}
    there = {"Phi": whole.Phi(piece, m), "b": whole.b(piece, m)}
    steps.add(join, **first, **there, V=whole.Omega(piece, m, m), N=N, M=whole.M(piece), p=whole.p(piece))
    others = [h for h in one.handles if h != m]
    for h in others:
        own = {"Phi1": whole.Phi(one, h), "b1": whole.b(one, h), "Omega1": whole.Omega(one, h, m)}
        own |= {"Phi": whole.Phi(piece, h), "b": whole.b(piece, h), "Omega": whole.Omega(piece, m, h)}
        steps.add(yield_to, **own, N=N, M2=M2, p2=whole.p(two), Phi_m=whole.Phi(piece, m), b_m=whole.b(piece, m))
    for i, h in enumerate(others):
        for g in others[i:]:
            both = {"Omega1": whole.Omega(one, h, g), "Omega": whole.Omega(piece, h, g)}
            steps.add(yield_both, **both, Omega_h=whole.Omega(one, h, m), M2=M2, Omega_g=whole.Omega(piece, m, g))
    return [m, *others]


def join(here: Any) -> None:
    """Handle m of the first piece, on which the second hangs, and what both weigh."""
    N = here.N = solve(np.eye(6) + here.Omega @ here.M2, np.eye(6))
    here.V = mirrored(N @ here.Omega)
    here.Phi, here.b = N @ here.Phi1, N @ (here.b1 - here.Omega @ here.p2)
    here.M = here.M1 + mirrored(here.Phi1.T @ (here.M2 @ here.Phi))
    here.p = here.p1 + here.Phi1.T @ (here.M2 @ here.b + here.p2)


def yield_to(here: Any) -> None:
    """Another handle of the first piece, which feels the second through Ω_hm."""
    here.Phi = here.Phi1 - here.Omega1 @ (here.M2 @ here.Phi_m)
    here.b = here.b1 - here.Omega1 @ (here.M2 @ here.b_m + here.p2)
    here.Omega = here.N @ here.Omega1.T


def yield_both(here: Any) -> None:
    """Two handles of the first piece."""
    here.Omega = here.Omega1 - here.Omega_h @ (here.M2 @ here.Omega_g)


def hang(whole: Assembly, steps: Steps, piece: Piece, m: int, two: Piece, placed: Sequence[int]) -> list[int]:
    """The handles of a piece that hangs on link m of another, beside those that have their place; gives them."""
    for i, h in enumerate(two.handles):
        way = {"Phi2": whole.Phi(two, h), "b2": whole.b(two, h), "Phi_m": whole.Phi(piece, m), "b_m": whole.b(piece, m)}
        steps.add(carry, **way, Phi=whole.Phi(piece, h), b=whole.b(piece, h))
        for g in placed:
            steps.add(reach, Phi2=way["Phi2"], Omega_m=whole.Omega(piece, m, g), Omega=whole.Omega(piece, h, g))
        for g in two.handles[: i + 1]:
            both = {"Omega2": whole.Omega(two, h, g), "Omega_h": whole.Omega(piece, h, m)}
            steps.add(carry_both, **both, Phi2=whole.Phi(two, g), Omega=whole.Omega(piece, h, g))
    return two.handles


def carry(here: Any) -> None:
    """A handle of the second piece moves with what carries the piece."""
    here.Phi, here.b = here.Phi2 @ here.Phi_m, here.b2 + here.Phi2 @ here.b_m


def reach(here: Any) -> None:
    """It moves by forces at other handles through m alone."""
    here.Omega = here.Phi2 @ here.Omega_m


def carry_both(here: Any) -> None:
    """Two handles of the second piece."""
    here.Omega = here.Omega2 + here.Omega_h @ here.Phi2.T


# Disassembly


def disassemble(whole: Assembly) -> None:
    """Accelerations of links and forces on them where pieces were joined, larger pieces first. [002, eq. 17]"""
    steps = whole.steps()
    for piece in reversed(whole.pieces):
        for m, two in piece.hung.items():
            a, f = whole.of_link("a", m), whole.of_link("f", m)
            steps.add(
                accelerate, Phi=whole.Phi(piece, m), b=whole.b(piece, m), above=whole.of_link("a", piece.base), a=a
            )
            for g in piece.open:
                steps.add(push, Omega=whole.Omega(piece, m, g), f=whole.of_link("f", g), a=a)
            if piece.cluster:
                steps.add(unload, f=f)
            else:
                steps.add(load, M=whole.M(two), p=whole.p(two), a=a, f=f)
            for g in two.open:
                steps.add(pull, Phi=whole.Phi(two, g), beyond=whole.of_link("f", g), f=f)
        if piece.cluster:
            steps.add_cluster(answer, piece)
    steps.run()


def accelerate(here: Any) -> None:
    here.a = here.Phi @ here.above + here.b


def push(here: Any) -> None:
    here.a += here.Omega @ here.f


def load(here: Any) -> None:
    here.f = -(here.M @ here.a + here.p)


def unload(here: Any) -> None:
    here.f = np.zeros(6)


def pull(here: Any) -> None:
    here.f += here.Phi.T @ here.beyond


def answer(cluster: Cluster, ports: Sequence[Body], taken: Sequence[Body]) -> None:
    """ÿ = y₀ − Y a + Σ Z f."""
    ydd = cluster.memory.y0 - cluster.memory.Y @ cluster.outputs[0].a
    for body in ports:
        if body.carries:
            ydd = ydd + body.memory.Z @ body.memory.f
    cluster.write("a", ydd)
