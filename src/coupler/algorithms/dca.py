"""Accelerations and inverse operational-space inertia by divide and conquer, O(log n) in depth [002, §3.3].

A robot is halved again and again, down to single clusters; see pieces.py and assembly.py. Every piece has handle
equations [002, eq. 16], solved for what its neighbours need: given the acceleration a of its base, the body that
carries it, and forces fᵢ at its handles, the force on the base and the accelerations of handles are

    F = M a + p − Σ Φᵢᵀ fᵢ,    aᵢ = Φᵢ a + Σ Ωᵢⱼ fⱼ + bᵢ.

M is the inertia of the piece seen from its base with its joints free, and Ωᵢⱼ the inverse inertia of its handles with
the base held. If a second piece hangs on handle m of a first,

    a_m = N (Φ_m a + b_m − Ω_mm p₂ + …),    N = (1 + Ω_mm M₂)⁻¹.

Ω_mm and M₂ are positive semidefinite, so N always exists: a body without inertia about some axis, a rotor or a locked
piece does no harm, unlike in the classical form, which inverts the inertia of each body. Contacts are handles as well.
After assembly, Ω of the whole robot is J H⁻¹ Jᵀ of the contacts; disassembly gives accelerations [002, eq. 17].

So the longest chain of operations grows with the logarithm of the number of clusters, with two exceptions. Springs
between points need poses, which are computed one after the other. And a cluster with almost no inertia of its own is
first joined with what hangs on it, so that a row of such clusters is a row of steps. A cluster that hangs on several
bodies is merged with the cluster that carries it [001, Fig. 5]. If light bodies carry heavy ones, digits are lost in
the ratio of M₂ to Ω_mm⁻¹, which recursive algorithms do not lose.

In the functions below, 1 is the piece that carries, 2 is the piece on its handle m, and g and h are other handles.
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

Visited = Visit[PieceBody, PieceCluster]


def divide_and_conquer_program(robot: Robot, frames: Sequence[tuple[int, Transform]]) -> Any:
    """The program (q, v, tau) → a, J H⁻¹ Jᵀ: accelerations of independent joints, and the inverse inertia of frames.

    Args:
        frames: for each frame the number of its link, and the transform from the link's frame to the frame.
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
        add_loads(whole, external=False)  # computes velocities, too
    else:
        find_velocities(whole)
    assemble(whole)
    disassemble(whole)
    whole.write_omega("omega", frames)
    return whole.build()


# Velocities


def find_velocities(whole: Assembly) -> None:
    """Computes velocities of handles relative to bases, smaller pieces first; then of links, larger pieces first."""
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


def handle_motions(cluster: Visited, ports: Sequence[int], taken: Sequence[int]) -> None:
    """Stores X and s = S ẏ: poses and velocities of a cluster's handles against its base; see `cluster_equations`."""
    cluster.remember()
    for body in (cluster.bodies[i] for i in ports):
        if body.carries:
            memory = body.memory
            memory.E_base, memory.r_base, memory.s_base = body.Xo.E, body.Xo.r, body.S @ cluster.v


def motion_beyond(E2: Any, r2: Any, s2: Any, E1: Any, r1: Any, s1: Any) -> Any:
    """E, r and s of a handle of the second piece relative to the base of the first."""
    X2 = Transform(E2, r2)
    X = X2 @ Transform(E1, r1)
    return X.E, X.r, X2 @ s1 + s2


def velocity(E: Any, r: Any, s: Any, v_base: Any) -> Any:
    """v = X v_λ + S ẏ. [001, eq. 33]"""
    return Transform(E, r) @ v_base + s


# Assembly


def assemble(whole: Assembly) -> None:
    """Computes the handle equations of all pieces, smaller ones first. [002, eq. 16]"""
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


def cluster_equations(cluster: Visited, ports: Sequence[int], taken: Sequence[int]) -> None:
    """Computes the handle equations of a single cluster, with joint accelerations ÿ = y₀ − Y a + Σ Z f.

    This is the backward pass of C-ABA (aba.py) for a cluster that carries nothing, with the same p and y₀. Its bodies
    accelerate with X a + c + S ÿ.

    Args:
        ports: numbers of its bodies that are handles, or that carry a piece that was taken in.
        taken: numbers of the latter; M and p of such a piece are added to those of the body.
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
    """The handle equations of a piece's first part with the second on its handle m. Returns the first's handles."""
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
    """N; Ω_mm, Φ_m and b_m of the handle m that carries the second piece; and M and p of both pieces together."""
    N = solve(np.eye(6) + Omega1 @ M2, np.eye(6))
    Phi, b = N @ Phi1, N @ (b1 - Omega1 @ p2)
    M = M1 + mirrored(Phi1.T @ (M2 @ Phi))
    return N, mirrored(N @ Omega1), Phi, b, M, p1 + Phi1.T @ (M2 @ b + p2)


def loaded_handle(Phi1: Any, b1: Any, Omega_hm: Any, N: Any, M2: Any, p2: Any, Phi_m: Any, b_m: Any) -> Any:
    """Φ_h, b_h and Ω_mh of another handle h of the first piece, which feels the second piece through Ω_hm."""
    return Phi1 - Omega_hm @ (M2 @ Phi_m), b1 - Omega_hm @ (M2 @ b_m + p2), N @ Omega_hm.T


def loaded_coupling(Omega_hg: Any, Omega_hm: Any, M2: Any, Omega_mg: Any) -> Any:
    """Ω_hg of two handles of the first piece."""
    return Omega_hg - Omega_hm @ (M2 @ Omega_mg)


def hang(whole: Assembly, schedule: Schedule, piece: Piece, m: int, two: Piece, placed: Sequence[int]) -> list[int]:
    """The handle equations of a piece that hangs on handle m of another. Returns its handles.

    Args:
        whole: the robot.
        schedule: the loop that takes the computations.
        piece: the piece that both are parts of.
        m: the handle.
        two: the piece that hangs on it.
        placed: handles of `piece` whose equations are known already; those of `two` are coupled with them.
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
    """Φ_h and b_h of a handle of the second piece, which moves with handle m."""
    return Phi2 @ Phi_m, b2 + Phi2 @ b_m


def coupling_through_m(Phi2: Any, Omega_mg: Any) -> Any:
    """Ω_hg of a handle h of the second piece and a handle g of the first, whose force acts on h through m only."""
    return Phi2 @ Omega_mg


def carried_coupling(Omega2: Any, Omega_hm: Any, Phi2: Any) -> Any:
    """Ω_hg of two handles of the second piece."""
    return Omega2 + Omega_hm @ Phi2.T


# Disassembly


def disassemble(whole: Assembly) -> None:
    """Computes accelerations of links where pieces join, and forces on them, larger pieces first. [002, eq. 17]"""
    schedule = whole.schedule()
    for piece in reversed(whole.pieces):
        for m, two in piece.hung.items():
            a, f, base = whole.of_link("a", m), whole.of_link("f", m), whole.of_link("a", piece.base)
            schedule.call(handle_acceleration, whole.Phi(piece, m), whole.b(piece, m), base, out=a)
            for g in piece.open:
                schedule.call(add_response, a, whole.Omega(piece, m, g), whole.of_link("f", g), out=a)
            if piece.cluster:
                schedule.clear(f)  # what a cluster has taken in is part of it
            else:
                schedule.call(force_of_piece, whole.M(two), whole.p(two), a, out=f)
            for g in two.open:
                schedule.call(add_force_beyond, f, whole.Phi(two, g), whole.of_link("f", g), out=f)
        if piece.cluster:
            whole.visit_piece(schedule, joint_accelerations, piece)
    schedule.run()


def handle_acceleration(Phi: Any, b: Any, a_base: Any) -> Any:
    """Φ a + b: the acceleration of a handle without forces at handles."""
    return Phi @ a_base + b


def add_response(a: Any, Omega: Any, f: Any) -> Any:
    """a + Ω f: with a force at another handle."""
    return a + Omega @ f


def force_of_piece(M: Any, p: Any, a: Any) -> Any:
    """−(M a + p): the force of a piece on its base, without forces at its handles."""
    return -(M @ a + p)


def add_force_beyond(f: Any, Phi: Any, f_beyond: Any) -> Any:
    """f + Φᵀ f′: with a force f′ at a handle of the piece."""
    return f + Phi.T @ f_beyond


def joint_accelerations(cluster: Visited, ports: Sequence[int], taken: Sequence[int]) -> None:
    """Computes joint accelerations ÿ = y₀ − Y a + Σ Z f."""
    ydd = cluster.memory.y0 - cluster.memory.Y @ cluster.outputs[0].a
    for body in (cluster.bodies[i] for i in ports):
        if body.carries:
            ydd = ydd + body.memory.Z @ body.memory.f
    cluster.memory.a = ydd
