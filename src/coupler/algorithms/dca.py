"""Accelerations and inverse operational-space inertia by divide and conquer, O(log n) in depth [002, §3.3].

A robot is divided into halves, these into halves, and so on down to single clusters; see pieces.py and assembly.py.
Each piece keeps its handle equations [002, eq. 16], in the form that its neighbours need: with the acceleration a of
what carries it and forces f at its handles,

    F = M a + p − Σ Φᵢᵀ fᵢ,    aᵢ = Φᵢ a + Σ Ωᵢⱼ fⱼ + bᵢ.

M is what the piece weighs for its base, its joints being free, and Ωᵢⱼ the inverse inertia of its handles, its base
being held. Where a second piece hangs on handle m of a first, a_m = N (Φ_m a + b_m − Ω_mm p₂ + ...) with
N = (1 + Ω_mm M₂)⁻¹. Both matrices are positive semidefinite, so the inverse exists whatever they are: a body without
inertia about some axis, a rotor or a locked piece does no harm, unlike in the classical form, which inverts the inertia
of each body. Contacts are handles as well. When all is assembled, Ω of the whole robot is J H⁻¹ Jᵀ of the contacts;
taking it apart again gives the accelerations [002, eq. 17]. Velocities come before that, along the same pieces.

So the longest chain of operations grows with the logarithm of the number of clusters. There are two exceptions. Springs
between points need poses, which are computed one after the other. A cluster next to without inertia of its own is put
together with what hangs on it first; a row of such clusters is a row of steps. A cluster that hangs on several bodies
is made one with the cluster that carries it [001, Fig. 5]. Where light bodies carry heavy ones, digits are lost with
the ratio of Ω_mm⁻¹ and M₂, which recursion does not lose.

In the functions below, 1 is the piece that carries and 2 the piece that hangs on its handle m; g and h are handles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.assembly import Assembly, PieceBody, PieceCluster, pair_number
from coupler.algorithms.pieces import Piece
from coupler.linear import Cholesky, solve
from coupler.model import Robot
from coupler.model.merging import merged_positions_program, on_one_body_each
from coupler.passes import Schedule, Visit, add_loads
from coupler.spatial import RigidInertia, Transform, mirrored

Node = Visit[PieceBody, PieceCluster]


def divide_and_conquer_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program (q, v, tau) → a, J H⁻¹ Jᵀ: accelerations of independent joints, and what forces at frames do there.

    Args:
        frames: for each its link, and the transform from the link's frame to it.
    """
    given, robot = robot, on_one_body_each(robot)
    links, loaded = {link for link, _ in frames if link}, bool(robot.elements)
    whole = Assembly(robot, "divide_and_conquer", links, loaded=loaded, oriented=links)
    q = whole.input("q", given.nq)
    whole.inputs("v", "tau")
    if positions := merged_positions_program(given, robot):
        whole.vectors["q"] = whole.scratch("positions", robot.nq)
        whole.call(positions, q=q, positions=whole.vectors["q"])
    whole.output("a")
    if loaded:
        add_loads(whole, False)  # which finds velocities, too
    else:
        find_velocities(whole)
    assemble(whole)
    disassemble(whole)
    whole.write_omega("omega", frames)
    return whole.build()


# Velocities


def find_velocities(whole: Assembly) -> None:
    """Motions of handles against the bases of pieces, of larger and larger pieces; then velocities, the other way."""
    schedule = whole.schedule()
    for piece in whole.pieces:
        if piece.cluster:
            whole.visit_piece(schedule, handle_motions, piece)
        for m, two in piece.hung.items():
            for h in two.open:
                schedule.call(motion_beyond, *whole.X(two, h), *whole.X(piece, m), out=whole.X(piece, h))
    for piece in reversed(whole.pieces):
        for m in piece.hung:
            v, base = whole.of_link("v", m), whole.of_link("v", piece.base)
            schedule.call(velocity, *whole.X(piece, m), base, out=v)
    schedule.run()


def handle_motions(cluster: Node, ports: Sequence[int], taken: Sequence[int]) -> None:
    """X and s = S ẏ, the motion of a cluster's handles against its base. See `cluster_equations` for the arguments."""
    cluster.remember()
    for body in (cluster.bodies[i] for i in ports):
        if body.carries:
            memory = body.memory
            memory.E_base, memory.r_base, memory.s_base = body.Xo.E, body.Xo.r, body.S @ cluster.v


def motion_beyond(E2: Any, r2: Any, s2: Any, E1: Any, r1: Any, s1: Any) -> Any:
    """The motion of a handle of the second piece against the base of the first, E, r and s."""
    X2 = Transform(E2, r2)
    X = X2 @ Transform(E1, r1)
    return X.E, X.r, X2 @ s1 + s2


def velocity(E: Any, r: Any, s: Any, v_base: Any) -> Any:
    """v = X v_λ + S ẏ. [001, eq. 33]"""
    return Transform(E, r) @ v_base + s


# Assembly


def assemble(whole: Assembly) -> None:
    """The handle equations of all pieces, smaller ones first. [002, eq. 16]"""
    schedule = whole.schedule()
    for piece in whole.pieces:
        if piece.cluster:
            whole.visit_piece(schedule, cluster_equations, piece)
            placed = [*whole.ports(piece).values()]
        elif piece.at is None:
            one, two = piece.parts
            weights = [whole.M(one), whole.p(one), whole.M(two), whole.p(two)]
            schedule.call(side_by_side, *weights, out=[whole.M(piece), whole.p(piece)])
            continue
        else:
            placed = join_parts(whole, schedule, piece, piece.at)
        for m, two in piece.hung.items():
            placed += hang(whole, schedule, piece, m, two, placed)
    schedule.run()


def cluster_equations(cluster: Node, ports: Sequence[int], taken: Sequence[int]) -> None:
    """The handle equations of a single cluster, whose joints answer by ÿ = y₀ − Y a + Σ Z f.

    This is the backward pass of C-ABA (aba.py) for a cluster on which nothing hangs, p and y₀ included. Its bodies have
    accelerations X a + c + S ÿ.

    Args:
        ports: numbers of its bodies that are handles, or on which a piece hangs that was taken in.
        taken: numbers of the latter; M and p of such a piece are added to the body's own.
    """
    cluster.report_gap()
    inertia: dict[Any, Any] = {body: body.inertia for body in cluster.bodies}
    p = {body: body.p for body in cluster.bodies}
    for body in (cluster.bodies[i] for i in taken):
        inertia[body], p[body] = body.inertia.matrix() + body.memory.M, body.p + body.memory.p
    p = {body: p[body] + inertia[body] @ body.c for body in cluster.bodies}
    U = {body: inertia[body] @ body.S for body in cluster.bodies}
    D = Cholesky(sum((body.S.T @ U[body] for body in cluster.bodies), cluster.armature))
    W: Any = sum(body.Xo.transform_force(U[body]) for body in cluster.bodies)  # Xᵀ U
    u = cluster.memory.tau + cluster.passive - cluster.armature_bias
    y0 = cluster.memory.y0 = D.solve(u - sum(body.S.T @ p[body] for body in cluster.bodies))
    Y = cluster.memory.Y = D.solve(W.T)
    from_base = [body.seen_by_output(inertia[body]) for body in cluster.bodies]  # Xᵀ I X
    matrices = [x.matrix() if isinstance(x, RigidInertia) else x for x in from_base]
    cluster.memory.M = sum(matrices) - W @ Y  # Xᵀ Iᵃ X
    cluster.memory.p = sum(body.Xo.transform_force(p[body]) for body in cluster.bodies) + W @ y0  # Xᵀ pᵃ
    for body in (cluster.bodies[i] for i in ports):
        body.memory.Phi, body.memory.b = body.Xo.matrix() - body.S @ Y, body.c + body.S @ y0
        Z = body.memory.Z = D.solve(body.S.T)
        for i in ports:
            if i <= body.number:
                cluster.memory.Omega[pair_number(i, body.number)] = cluster.bodies[i].S @ Z


def side_by_side(M1: Any, p1: Any, M2: Any, p2: Any) -> Any:
    """M and p of two pieces on a common base."""
    return M1 + M2, p1 + p2


def join_parts(whole: Assembly, schedule: Schedule, piece: Piece, m: int) -> list[int]:
    """The handle equations of a piece's first part, with the second on its handle m; gives the first part's handles."""
    one, two = piece.parts
    M2, p2, N, Phi_m, b_m = whole.M(two), whole.p(two), whole.N(piece), whole.Phi(piece, m), whole.b(piece, m)
    first = [whole.Omega(one, m, m), whole.Phi(one, m), whole.b(one, m), whole.M(one), whole.p(one)]
    joined = [N, whole.Omega(piece, m, m), Phi_m, b_m, whole.M(piece), whole.p(piece)]
    schedule.call(join, *first, M2, p2, out=joined)
    others = [h for h in one.handles if h != m]
    for h in others:
        unloaded = [whole.Phi(one, h), whole.b(one, h), whole.Omega(one, h, m)]
        loaded = [whole.Phi(piece, h), whole.b(piece, h), whole.Omega(piece, m, h)]
        schedule.call(loaded_handle, *unloaded, N, M2, p2, Phi_m, b_m, out=loaded)
    for i, h in enumerate(others):
        for g in others[i:]:
            unloaded = [whole.Omega(one, h, g), whole.Omega(one, h, m)]
            schedule.call(loaded_coupling, *unloaded, M2, whole.Omega(piece, m, g), out=whole.Omega(piece, h, g))
    return [m, *others]


def join(Omega1: Any, Phi1: Any, b1: Any, M1: Any, p1: Any, M2: Any, p2: Any) -> Any:
    """N, and Ω_mm, Φ_m and b_m of the handle m on which the second piece hangs, and M and p of both."""
    N = solve(np.eye(6) + Omega1 @ M2, np.eye(6))
    Phi, b = N @ Phi1, N @ (b1 - Omega1 @ p2)
    M = M1 + mirrored(Phi1.T @ (M2 @ Phi))
    return N, mirrored(N @ Omega1), Phi, b, M, p1 + Phi1.T @ (M2 @ b + p2)


def loaded_handle(Phi1: Any, b1: Any, Omega_hm: Any, N: Any, M2: Any, p2: Any, Phi_m: Any, b_m: Any) -> Any:
    """Φ_h, b_h and Ω_mh of another handle of the first piece, which feels the second through Ω_hm."""
    return Phi1 - Omega_hm @ (M2 @ Phi_m), b1 - Omega_hm @ (M2 @ b_m + p2), N @ Omega_hm.T


def loaded_coupling(Omega_hg: Any, Omega_hm: Any, M2: Any, Omega_mg: Any) -> Any:
    """Ω_hg of two handles of the first piece."""
    return Omega_hg - Omega_hm @ (M2 @ Omega_mg)


def hang(whole: Assembly, schedule: Schedule, piece: Piece, m: int, two: Piece, placed: Sequence[int]) -> list[int]:
    """The handle equations of a piece two that hangs on handle m of another; gives its handles.

    Args:
        whole: the robot.
        schedule: takes the computations.
        piece: the piece with two on it.
        m: the handle.
        two: what hangs there.
        placed: handles of the piece whose equations are known already; those of two are coupled with them.
    """
    for i, h in enumerate(two.handles):
        Phi2, carried = whole.Phi(two, h), [whole.Phi(piece, h), whole.b(piece, h)]
        schedule.call(carried_handle, Phi2, whole.b(two, h), whole.Phi(piece, m), whole.b(piece, m), out=carried)
        for g in placed:
            schedule.call(coupling_through_m, Phi2, whole.Omega(piece, m, g), out=whole.Omega(piece, h, g))
        for g in two.handles[: i + 1]:
            inputs = [whole.Omega(two, h, g), whole.Omega(piece, h, m), whole.Phi(two, g)]
            schedule.call(carried_coupling, *inputs, out=whole.Omega(piece, h, g))
    return two.handles


def carried_handle(Phi2: Any, b2: Any, Phi_m: Any, b_m: Any) -> Any:
    """Φ_h and b_h of a handle of the second piece, which moves with what carries the piece."""
    return Phi2 @ Phi_m, b2 + Phi2 @ b_m


def coupling_through_m(Phi2: Any, Omega_mg: Any) -> Any:
    """Ω_hg: a handle of the second piece moves by forces at handles of the first through m alone."""
    return Phi2 @ Omega_mg


def carried_coupling(Omega2: Any, Omega_hm: Any, Phi2: Any) -> Any:
    """Ω_hg of two handles of the second piece."""
    return Omega2 + Omega_hm @ Phi2.T


# Disassembly


def disassemble(whole: Assembly) -> None:
    """Accelerations of links and forces on them where pieces were joined, larger pieces first. [002, eq. 17]"""
    schedule = whole.schedule()
    for piece in reversed(whole.pieces):
        for m, two in piece.hung.items():
            a, f, base = whole.of_link("a", m), whole.of_link("f", m), whole.of_link("a", piece.base)
            schedule.call(handle_acceleration, whole.Phi(piece, m), whole.b(piece, m), base, out=a)
            for g in piece.open:
                schedule.call(add_response, a, whole.Omega(piece, m, g), whole.of_link("f", g), out=a)
            if piece.cluster:
                schedule.call(no_force, out=f)
            else:
                schedule.call(force_of_piece, whole.M(two), whole.p(two), a, out=f)
            for g in two.open:
                schedule.call(add_force_beyond, f, whole.Phi(two, g), whole.of_link("f", g), out=f)
        if piece.cluster:
            whole.visit_piece(schedule, joint_accelerations, piece)
    schedule.run()


def handle_acceleration(Phi: Any, b: Any, a_base: Any) -> Any:
    """Φ a + b, of a handle without forces at others."""
    return Phi @ a_base + b


def add_response(a: Any, Omega: Any, f: Any) -> Any:
    """a + Ω f, by a force at another handle."""
    return a + Omega @ f


def force_of_piece(M: Any, p: Any, a: Any) -> Any:
    """−(M a + p): the force of a piece on what carries it, if none acts at its handles."""
    return -(M @ a + p)


def no_force() -> Any:
    """What a cluster has taken in is part of it."""
    return np.zeros(6)


def add_force_beyond(f: Any, Phi: Any, f_beyond: Any) -> Any:
    """f + Φᵀ f', by a force at a handle of the piece."""
    return f + Phi.T @ f_beyond


def joint_accelerations(cluster: Node, ports: Sequence[int], taken: Sequence[int]) -> None:
    """ÿ = y₀ − Y a + Σ Z f."""
    ydd = cluster.memory.y0 - cluster.memory.Y @ cluster.outputs[0].a
    for body in (cluster.bodies[i] for i in ports):
        if body.carries:
            ydd = ydd + body.memory.Z @ body.memory.f
    cluster.memory.a = ydd
