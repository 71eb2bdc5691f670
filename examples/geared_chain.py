"""Forward dynamics of a chain of links, each with a geared rotor beside it, as one compiled program.

The cluster articulated-body algorithm (Chignoli et al., "Recursive Rigid-Body Dynamics Algorithms for Systems with
Kinematic Loops", Algorithm 1) for clusters of one link and one rotor. Both hang on the previous link; the rotor turns
`ratio` times as fast as the link. Three kernels are traced once and looped over the chain, whatever its length.

Spatial vectors are pairs (angular, linear). A transform from a parent to a child frame is a rotation E and a
translation r. A rigid inertia is a mass m, a first moment h = m c and a rotational inertia I about the frame's origin.

Run it for a demonstration: `python examples/geared_chain.py`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from coupler import graph
from coupler.graph import Builder, Program, View, constants, fields, symmetric

GRAVITY = 9.81  # m/s²


@dataclass(frozen=True)
class Bodies:
    """One body per row: where its joint sits in the previous link's frame (joint axis z), and its inertia."""

    E: np.ndarray  # (n, 3, 3) rotation from the previous link's frame at joint angle zero
    r: np.ndarray  # (n, 3) m
    m: np.ndarray  # (n,) kg
    h: np.ndarray  # (n, 3) kg m
    I: np.ndarray  # (n, 3, 3) kg m², about the joint frame's origin  # noqa: E741


@dataclass(frozen=True)
class Chain:
    """Links and their rotors, in general position."""

    links: Bodies
    rotors: Bodies
    ratio: np.ndarray  # (n,) rotor turns per link turn


def random_chain(n: int, seed: int = 0) -> Chain:
    """A chain of n links with frames, inertias and gear ratios drawn at random."""
    rng = np.random.default_rng(seed)

    def bodies(mass: float, size: float) -> Bodies:
        E = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
        E *= np.sign(np.linalg.det(E))[:, None, None]
        m = mass * rng.uniform(0.5, 1.5, n)
        c = rng.uniform(-size, size, (n, 3))
        principal = m[:, None] * size**2 * rng.uniform(0.2, 0.3, (n, 3))  # these obey the triangle inequality
        Q = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
        about_centre = np.einsum("nij,nj,nkj->nik", Q, principal, Q)
        cx = np.stack([_skew(x).astype(float) for x in c]) if n else np.empty((0, 3, 3))
        return Bodies(E, rng.uniform(-size, size, (n, 3)), m, m[:, None] * c, about_centre - m[:, None, None] * cx @ cx)

    return Chain(bodies(1.0, 0.3), bodies(0.1, 0.05), rng.uniform(4.0, 10.0, n))


def forward_dynamics(chain: Chain) -> Program:
    """The program qdd(q, qd, tau) of a chain: accelerations of the links' joints from angles, rates and torques."""
    n = len(chain.ratio)
    b = Builder("forward_dynamics")
    q, qd, tau, qdd = b.input("q", n), b.input("qd", n), b.input("tau", n), b.output("qdd", n)
    # Row 0 is the ground. IA is kept as three blocks [[A, H], [Hᵀ, M]].
    link = b.records("link", n + 1, w=3, v=3, al=3, aa=3, A=symmetric(3), H=(3, 3), M=symmetric(3), pn=3, pf=3)
    joint = b.records("joint", n, E=(3, 3), Wn=3, Wf=3, u=(), d=())
    here, before = link[1:], link[:-1]
    state = fields(q=q.at(range(n)), qd=qd.at(range(n)), tau=tau.at(range(n)), qdd=qdd.at(range(n)))
    model = fields(ratio=constants(chain.ratio))
    for name, bodies in (("", chain.links), ("r", chain.rotors)):
        model |= fields(**{f"{key}{name}0": constants(getattr(bodies, key)) for key in ("E", "r", "m", "h", "I")})
    b.loop(ground, link=link[0])
    b.loop(outward, link=here, parent=before, joint=joint[:] | state, model=model)
    b.loop(inward, link=here, parent=before, joint=joint[:] | state, model=model, backwards=True)
    b.loop(accelerate, link=here, parent=before, joint=joint[:] | state, model=model)
    return b.build()


def ground(link: View) -> None:
    """The ground rests and is accelerated upwards, which is what gravity amounts to."""
    link.w = link.v = link.aa = link.pn = link.pf = np.zeros(3)
    link.al = np.array([0.0, 0.0, GRAVITY])
    link.A = link.H = link.M = np.zeros((3, 3))


def outward(link: View, parent: View, joint: View, model: View) -> None:
    """Transforms, velocities, and the inertia and bias force of each cluster on its own. [lines 1-22]"""
    joint.E = _turn(joint.q) @ model.E0
    w, v = _to_child(joint.E, model.r0, parent.w, parent.v)
    w = w + np.array([0.0, 0.0, 1.0]) * joint.qd
    link.w, link.v = w, v
    link.A, link.M = model.I0, model.m0 * np.eye(3)
    link.H = _skew(model.h0)
    link.pn, link.pf = _gyroscopic(model.m0, model.h0, model.I0, w, v)


def inward(link: View, parent: View, joint: View, model: View) -> None:
    """Articulated inertia and bias force of a cluster, added to its parent's. [lines 24-35]"""
    cw, cv = _rate_of_axis(link.w, link.v, joint.qd)
    # The rotor has no children: its motion and forces are needed only here.
    spin = model.ratio * joint.qd
    Er = _turn(model.ratio * joint.q) @ model.Er0
    wr, vr = _to_child(Er, model.rr0, parent.w, parent.v)
    wr = wr + np.array([0.0, 0.0, 1.0]) * spin
    crw, crv = _rate_of_axis(wr, vr, spin)
    prn, prf = _gyroscopic(model.mr0, model.hr0, model.Ir0, wr, vr)

    # U = IA S for the link (axis z) and the rotor (axis z, ratio times as fast).
    Un, Uf = link.A[:, 2], link.H[2, :]
    Urn, Urf = model.ratio * model.Ir0[:, 2], model.ratio * -np.cross(model.hr0, [0.0, 0.0, 1.0])
    d = 1.0 / (Un[2] + model.ratio * Urn[2])
    u = joint.tau - link.pn[2] - model.ratio * prn[2]
    u = u - (Un @ cw + Uf @ cv) - (Urn @ crw + Urf @ crv)

    # W = Xᵀ U, summed over link and rotor, so that the cluster's coupling is one outer product.
    Wn, Wf = _to_parent(joint.E, model.r0, Un, Uf)
    Wrn, Wrf = _to_parent(Er, model.rr0, Urn, Urf)
    Wn, Wf = Wn + Wrn, Wf + Wrf
    joint.Wn, joint.Wf, joint.u, joint.d = Wn, Wf, u, d

    A, H, M = _inertia_to_parent(joint.E, model.r0, link.A, link.H, link.M)
    Ar, Hr, Mr = _rigid_inertia_to_parent(Er, model.rr0, model.mr0, model.hr0, model.Ir0)
    parent.A += A + Ar - d * np.outer(Wn, Wn)
    parent.H += H + Hr - d * np.outer(Wn, Wf)
    parent.M += M + Mr - d * np.outer(Wf, Wf)

    n, f = _to_parent(joint.E, model.r0, link.pn + link.A @ cw + link.H @ cv, link.pf + link.H.T @ cw + link.M @ cv)
    fr = prf + model.mr0 * crv - np.cross(model.hr0, crw)
    nr, fr = _to_parent(Er, model.rr0, prn + model.Ir0 @ crw + np.cross(model.hr0, crv), fr)
    parent.pn += n + nr + Wn * (d * u)
    parent.pf += f + fr + Wf * (d * u)


def accelerate(link: View, parent: View, joint: View, model: View) -> None:
    """Joint and link accelerations. [lines 37-43]"""
    joint.qdd = joint.d * (joint.u - joint.Wn @ parent.aa - joint.Wf @ parent.al)
    aa, al = _to_child(joint.E, model.r0, parent.aa, parent.al)
    cw, cv = _rate_of_axis(link.w, link.v, joint.qd)
    link.aa = aa + cw + np.array([0.0, 0.0, 1.0]) * joint.qdd
    link.al = al + cv


def _turn(angle):
    """The rotation into a frame turned by the angle about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def _skew(x):
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def _to_child(E, r, w, v):
    """A motion vector seen from the child frame."""
    return E @ w, E @ (v - np.cross(r, w))


def _to_parent(E, r, n, f):
    """A force vector seen from the parent frame."""
    f = E.T @ f
    return E.T @ n + np.cross(r, f), f


def _rate_of_axis(w, v, rate):
    """v x S q̇ for the axis z."""
    return np.array([w[1] * rate, -w[0] * rate, 0.0]), np.array([v[1] * rate, -v[0] * rate, 0.0])


def _gyroscopic(m, h, I, w, v):  # noqa: E741
    """v x* I v of a rigid body."""
    n, f = I @ w + np.cross(h, v), m * v - np.cross(h, w)
    return np.cross(w, n) + np.cross(v, f), np.cross(w, f)


def _inertia_to_parent(E, r, A, H, M):
    """Xᵀ [[A, H], [Hᵀ, M]] X."""
    A, H, M = E.T @ A @ E, E.T @ H @ E, E.T @ M @ E
    shifted = H + np.stack([np.cross(r, M[:, j]) for j in range(3)], axis=1)
    # A + r× shiftedᵀ − H r×
    A = A + np.stack([np.cross(r, shifted[j, :]) for j in range(3)], axis=1)
    A = A + np.stack([np.cross(r, H[i, :]) for i in range(3)], axis=0)
    return A, shifted, M


def _rigid_inertia_to_parent(E, r, m, h, I):  # noqa: E741
    """Xᵀ I X of a rigid body, as blocks."""
    h = E.T @ h
    moved = h + m * r
    square = 2.0 * (h @ r) + m * (r @ r)
    A = E.T @ I @ E + square * np.eye(3) - np.outer(r, h) - np.outer(moved, r)
    return A, _skew(moved), m * np.eye(3)


def main() -> None:
    """Compiles chains of several lengths, checks them against the reference and times them."""
    rng = np.random.default_rng(1)
    print("Forward dynamics of a chain whose links carry geared rotors, compiled from Python.\n")
    print(f"{'links':>6} {'compile':>10} {'one state':>12} {'batch, per state':>18} {'against reference':>18}")
    for n in (12, 96, 1000):
        start = time.perf_counter()
        program = forward_dynamics(random_chain(n))
        run = graph.compile(program)
        state = rng.normal(size=(3, 1, n))
        run(*state[:, 0])
        compile_time = time.perf_counter() - start
        states = rng.normal(size=(3, 4096 * 12 // n, n))
        one = _best_time(lambda run=run, state=state: run(*state[:, 0]))
        batch = _best_time(lambda run=run, states=states: run(*states)) / states.shape[1]
        reference = graph.compile(program, backend="interpreter")(*state)
        error = np.abs(run(*state) - reference).max() / np.abs(reference).max()
        print(f"{n:>6} {compile_time:>8.2f} s {one * 1e6:>9.2f} µs {batch * 1e6:>15.2f} µs {error:>18.1e}", flush=True)
    print(f"\nThe program for {n} links:\n{program}")


def _best_time(call) -> float:
    call()
    best = np.inf
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
