"""The contact problem of a robot and a step, set up in several ways that give the same problem. [002, §3]

With the rows J of all candidate contacts, each a normal and two tangents at the contact's point, and turning about them
where that is resisted, then of limits and dry friction of joints,

    A = J H⁻¹ Jᵀ,    b = J (v + h (a + ω × v)) + [g/h, 0, 0, ...],

where a are the accelerations without contact. Of a floating body, v and a go by the body's own axes; with ω × v in the
entries of its shift, velocities after the step are seen along the axes before it, and without forces they stay as they
are. The traditional way takes H and its Cholesky factors, n³ operations [002, eq. 12]. The recursive one takes A from
the inverse operational-space inertia of the bodies that may touch, which the extended force propagator algorithm on
clusters gives without H, and a from the articulated-body algorithm: what [002, eq. 15] does with contact forces carried
along as unknowns. Rows of joints are rows of G, and answer by the factors of H in linear time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact, contacts, forces_on
from coupler.contact.damping import damped
from coupler.contact.floating import centre_of, frame_rotation_bias
from coupler.contact.laws import limit_velocities
from coupler.contact.pairs import Pair
from coupler.contact.problem import Block, Bounded, Cone, ContactProblem, Unilateral
from coupler.contact.scene import friction_impulses, limited_joints, recovery_speeds, rubbing_joints
from coupler.dynamics import bias_force, forward_dynamics, inverse_osim
from coupler.inertia import mass_matrix, mass_matrix_solve
from coupler.kinematics import body_poses, frame_jacobian
from coupler.model import Robot
from coupler.model.numbers import numbers
from coupler.spatial import Transform

_SHORTEST_STEP = 1e-12  # s: shorter than any that makes sense, and gaps over it are still finite velocities


@dataclass(frozen=True, eq=False)
class Touch:
    """A candidate contact of a robot.

    Attributes:
        pair: the shapes.
        contact: gap, point and frame.
    """

    pair: Pair
    contact: Contact

    @property
    def cone(self) -> Cone:
        """Its law."""
        return self.pair.cone


@dataclass(frozen=True, eq=False)
class JointRows:
    """What joints bring into the problem of a step.

    Of each entry that has limits, in the order of `limited_joints`, a row for its lower limit and one for its upper,
    those that are finite: 0 ≤ q̇ + (q − lower)/h ⊥ λ ≥ 0 and 0 ≤ −q̇ + (upper − q)/h ⊥ λ ≥ 0, a gap at position level
    like those of contacts [002, eq. 2a, 4a]. Then, in the order of `rubbing_joints`, a row for dry friction, whose
    impulse is at most h times the largest force.

    Attributes:
        rows: J, (rows, nv).
        closures: (rows,), the ways to limits over the step, rad/s or m/s; zero for dry friction.
        blocks: the laws.
        recovery: (rows,), how fast each comes back from beyond a limit, by how fast what slides does.
        biases: (rows,), J̇ v, rad/s² or m/s².
    """

    rows: np.ndarray
    closures: np.ndarray = field(default_factory=lambda: np.zeros(0))
    blocks: Sequence[Block] = ()
    recovery: np.ndarray = field(default_factory=lambda: np.zeros(0))
    biases: np.ndarray = field(default_factory=lambda: np.zeros(0))


def joint_rows(robot: Robot, q: Any, step: float, limits: bool = True, v: Any = None) -> JointRows:
    """The rows of joints that have limits, unless these do not count, and of joints with dry friction; v for biases."""
    limited, rubbing = limited_joints(robot) if limits else [], rubbing_joints(robot)
    if not (limited or rubbing):
        return JointRows(np.zeros((0, robot.nv)))
    tree, (G, g) = robot.tree, robot.explicit_constraint(q, v)
    p = robot.embedding.positions(np.asarray(q, dtype=float))
    terms: list[tuple[np.ndarray, float, Block, float, float]] = []
    for (link, j), fast in zip(limited, recovery_speeds(robot, limited, 1.0), strict=True):
        kind, entry = tree.links[link].kind, tree.v_start[link] + j
        low, high = limit_velocities(kind.lower[j], kind.upper[j], p[tree.q_start[link] + j], step)
        sides = [(sign, w) for sign, w in ((1.0, low), (-1.0, high)) if np.isfinite(w)]
        terms += [(sign * G[entry], -sign * w, Unilateral(), float(fast), float(sign * g[entry])) for sign, w in sides]
    for (link, j), bound in zip(rubbing, friction_impulses(robot, rubbing, step), strict=True):
        entry = tree.v_start[link] + j
        terms.append((G[entry], 0.0, Bounded(-bound, bound), 1.0, float(g[entry])))
    rows, closures, blocks, recovery, biases = zip(*terms, strict=True)
    return JointRows(np.array(rows), np.array(closures), blocks, np.array(recovery), np.array(biases))


def touches(robot: Robot, q: Any, pairs: Sequence[Pair]) -> list[Touch]:
    """All candidate contacts of pairs at a configuration, open ones included: as many as the pairs count."""
    poses = poses_of_shapes(robot, q, pairs)
    return [
        Touch(pair, contact)
        for pair in pairs
        for contact in contacts(
            pair.one.geometry,
            pair.other.geometry,
            pair.one.at @ poses[pair.one.body],
            pair.other.at @ poses[pair.other.body],
        )
    ]


def step_length(step: Any) -> float:
    """The length of a step, checked, s."""
    return float(numbers("step", step, (), least=_SHORTEST_STEP))


def traditional_problem(
    robot: Robot, q: Any, v: Any, tau: Any, step: float, pairs: Sequence[Pair], *, limits: bool = True
) -> tuple[ContactProblem, list[Touch]]:
    """The contact problem by the mass matrix and its factors. [002, §3.1]

    Args:
        robot: the robot.
        q, v, tau: its state, and forces at independent joints, held over the step.
        step: h, s.
        pairs: what may touch, from `pairs_of`.
        limits: whether joints stop at their limits. Dry friction of joints counts always.

    Returns:
        The problem, and the contacts that its first blocks belong to; those of joints follow (see `JointRows`).
    """
    h = step_length(step)
    candidates = touches(robot, q, pairs)
    joints = joint_rows(robot, q, h, limits)
    J = np.vstack([contact_rows(robot, q, candidates), joints.rows])
    factor = np.linalg.cholesky(mass_matrix(damped(robot, h), q))
    half = np.linalg.solve(factor, J.T)
    free = np.linalg.solve(factor.T, np.linalg.solve(factor, np.asarray(tau) - bias_force(robot, q, v)))
    w = J @ (np.asarray(v) + h * (free + basis_biases(robot, q, v)))
    return contact_problem(half.T @ half, w, h, candidates, joints), candidates


def recursive_problem(
    robot: Robot, q: Any, v: Any, tau: Any, step: float, pairs: Sequence[Pair], *, limits: bool = True
) -> tuple[ContactProblem, list[Touch]]:
    """The contact problem by recursions over clusters, C-EFPA and C-ABA. [002, §3.2]

    Args and returns are those of `traditional_problem`.
    """
    h = step_length(step)
    candidates = touches(robot, q, pairs)
    P, bodies = rows_by_body(robot, q, candidates)
    A = P @ inverse_osim(damped(robot, h), q, bodies) @ P.T if bodies else np.zeros((len(P), len(P)))
    joints = joint_rows(robot, q, h, limits)
    A, J = with_joints(robot, q, h, A, P @ body_jacobians(robot, q, bodies), joints)
    return contact_problem(A, J @ unimpeded(robot, q, v, tau, h), h, candidates, joints), candidates


def with_joints(
    robot: Robot, q: Any, step: float, A: np.ndarray, J: np.ndarray, joints: JointRows
) -> tuple[np.ndarray, np.ndarray]:
    """A and J of contacts, and of joints behind them: these answer by the factors of H, in linear time for each."""
    if not joints.blocks:
        return A, J
    answer = mass_matrix_solve(damped(robot, step), q, joints.rows)
    A = np.block([[A, J @ answer.T], [answer @ J.T, joints.rows @ answer.T]])
    return A, np.vstack([J, joints.rows])


def unimpeded(robot: Robot, q: Any, v: Any, tau: Any, step: float) -> np.ndarray:
    """Velocities after a step without contact, along the axes and on the tangents of loops before it."""
    a = forward_dynamics(damped(robot, step), q, v, tau)
    return np.asarray(v, dtype=float) + step * (a + basis_biases(robot, q, v))


def basis_biases(robot: Robot, q: Any, v: Any) -> np.ndarray:
    """(nv,): what accelerations lack as changes of velocities along the axes and on the tangents of a step's start.

    That is ω × v_c of floating bodies (see `frame_rotation_bias`). In loops without a solution, it is the part of g
    along them: all their joints have accelerations G v̇ + g, of which a step keeps what the loops allow where it starts.
    """
    v = np.asarray(v, dtype=float)
    biases, embedding = np.zeros(robot.nv), robot.embedding
    if not all(embedding.explicit):
        p = embedding.positions(np.asarray(q, dtype=float))
        _, g = embedding.explicit_constraint(p, v)
        _, K, k = embedding.closure.at(p, embedding.velocities(p, v))
        for i in np.flatnonzero(~np.array(embedding.explicit)):
            (rows, entries), columns = embedding.closure.places[i], embedding.closure.loops[i].columns
            own = embedding.choices[i].rows
            g[columns] -= np.linalg.pinv(K[entries[own]]) @ k[rows[own]]
        biases = np.where(np.isin(embedding.v_index, embedding.unsolved_entries), g[embedding.v_index], 0.0)
    for joint in floating(robot):
        biases[robot.v_slice(joint)] = frame_rotation_bias(v[robot.v_slice(joint)], floating_centre(robot, joint))
    return biases


def floating(robot: Robot) -> list[str]:
    """The free joints that no loop binds."""
    free = [joint.name for joint in robot.joints if joint.kind.floats]
    slices = [(name, robot.v_slice(name)) for name in free if name in robot.independent_joints]
    return [name for name, own in slices if own.stop - own.start == 6]


def floating_centre(robot: Robot, joint: str) -> np.ndarray:
    """3: the centre of mass of the link that a free joint carries, in its own frame, m."""
    return centre_of(robot.tree.links[robot.tree.number[joint]])


def contact_problem(
    A: np.ndarray, w: np.ndarray, step: float, candidates: Sequence[Touch], joints: JointRows
) -> ContactProblem:
    """The problem of contacts and of joints behind them.

    Args:
        A: (rows, rows), J H⁻¹ Jᵀ; of its two halves, which may differ by rounding, the mean counts.
        w: (rows,), velocities after the step without contact, to which gaps are added here.
        step: h, s.
        candidates: the contacts.
        joints: what joints bring in.
    """
    b = with_closures(w, candidates, np.array([touch.contact.gap for touch in candidates]) / step, joints.closures)
    return ContactProblem((A + A.T) / 2, b, [*(touch.cone for touch in candidates), *joints.blocks])


def with_closures(w: np.ndarray, candidates: Sequence[Touch], gaps: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """b: velocities without impulses, plus gaps of contacts and ways to joints' limits, over the step. [002, eq. 4a]"""
    b = w.copy()
    b[first_rows(candidates)] += gaps
    b[len(b) - len(limits) :] += limits
    return b


def first_rows(candidates: Sequence[Touch]) -> np.ndarray:
    """(contacts,), the rows of the contacts' normals; those of friction follow each."""
    return np.cumsum([0, *(touch.cone.size for touch in candidates)])[:-1]


def _bodies(pairs: Sequence[Pair]) -> list[str]:
    return list(dict.fromkeys(shape.body for pair in pairs for shape in (pair.one, pair.other)))


def poses_of_shapes(robot: Robot, q: Any, pairs: Sequence[Pair]) -> dict[str, Transform]:
    """From the world to each body that may touch."""
    poses = dict(zip(robot.bodies, body_poses(robot, q), strict=True))
    own = {body: poses.get(body, np.eye(4)) for body in _bodies(pairs)}  # the ground is none of the bodies
    return {body: Transform(T[:3, :3].T, T[:3, 3]) for body, T in own.items()}


def contact_rows(robot: Robot, q: Any, candidates: Sequence[Touch]) -> np.ndarray:
    """J: how fast the first shape's point moves against the second's, along normal and tangents, by unit of v.

    Further rows of contacts that resist turning: how fast the first shape turns against the second about these axes.
    """
    P, bodies = rows_by_body(robot, q, candidates)
    return P @ body_jacobians(robot, q, bodies)


def rows_by_body(robot: Robot, q: Any, candidates: Sequence[Touch]) -> tuple[np.ndarray, list[str]]:
    """The rows of contacts by motions of bodies, six columns each in the body's own frame, and those that move."""
    poses = poses_of_shapes(robot, q, [touch.pair for touch in candidates])
    bodies = [body for body in poses if robot.tree.place[body][0]]
    P = np.zeros((sum(touch.cone.size for touch in candidates), 6 * len(bodies)))
    for i, touch in zip(first_rows(candidates), candidates, strict=True):
        for body, sign in ((touch.pair.one.body, 1.0), (touch.pair.other.body, -1.0)):
            if body in bodies:
                k, X = 6 * bodies.index(body), poses[body]
                rows = touch.cone.size
                P[i : i + rows, k : k + 6] += sign * forces_on(X, touch.contact, rows).T
    return P, bodies


def body_jacobians(robot: Robot, q: Any, bodies: Sequence[str]) -> np.ndarray:
    """The motions of bodies by unit of v, six rows each."""
    return np.vstack([np.zeros((0, robot.nv)), *(frame_jacobian(robot, q, body) for body in bodies)])
