"""The contact problem of a robot and a step, set up in two ways that give the same problem. [002, §3]

The rows J are those of all candidate contacts, each with a normal and two tangents at the contact's point, and with
spin and rolling if the contact resists them; then those of limits and dry friction of joints. With them,

    A = J H⁻¹ Jᵀ,    b = J (v + h (a + ω × v)) + [g/h, 0, 0, ...],

where a are the accelerations without contact. A floating body's v and a are along its own axes; adding ω × v to its
linear entries makes the velocity after the step one along the axes before it, which does not change without forces. The
traditional way uses H and its Cholesky factors, n³ operations [002, eq. 12]. The recursive way takes A from the inverse
operational-space inertia of the bodies that may touch, which the extended force propagator algorithm on clusters
computes without H, and a from the articulated-body algorithm: [002, eq. 15] does this with contact forces carried along
as unknowns. Rows of joints are rows of G, whose responses the factors of H give in linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.contact.collision.geometry import Contact, contacts, forces_on
from coupler.contact.damping import damped
from coupler.contact.floating import centre_of, frame_rotation_bias
from coupler.contact.joint_rows import JointRows, joint_rows
from coupler.contact.pairs import Pair
from coupler.contact.problem import Cone, ContactProblem
from coupler.dynamics import bias_force, forward_dynamics, inverse_osim
from coupler.inertia import mass_matrix, mass_matrix_solve
from coupler.kinematics import body_poses, frame_jacobian
from coupler.model import Robot
from coupler.model.numbers import numbers
from coupler.spatial import Transform

Respond = Callable[[Robot, list[str]], tuple[np.ndarray, np.ndarray]]

_SHORTEST_STEP = 1e-12  # s: shorter than any sensible step, and gaps over it are still finite velocities


@dataclass(frozen=True, eq=False)
class Touch:
    """A candidate contact of a robot.

    Attributes:
        pair: the two shapes.
        contact: its gap, point and frame.
    """

    pair: Pair
    contact: Contact

    @property
    def cone(self) -> Cone:
        """The law of the contact."""
        return self.pair.cone


def touches(robot: Robot, q: Any, pairs: Sequence[Pair]) -> list[Touch]:
    """All candidate contacts of the pairs at a configuration, open ones included: `pair.count` for each pair."""
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
    """The contact problem from the mass matrix and its factors. [002, §3.1]

    Args:
        robot: the robot.
        q, v, tau: its state, and forces at independent joints, held over the step.
        step: h, s.
        pairs: the pairs of shapes that may touch, from `pairs_of`.
        limits: whether joints stop at their limits. Dry friction of joints always counts.

    Returns:
        The problem, and the contacts of its first blocks; the blocks of joints follow (see `JointRows`).
    """
    h = step_length(step)
    candidates = touches(robot, q, pairs)
    joints = joint_rows(robot, q, h, limits, v)
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

    Arguments and results are those of `traditional_problem`.
    """

    def respond(implicit: Robot, bodies: list[str]) -> tuple[np.ndarray, np.ndarray]:
        osim = inverse_osim(implicit, q, bodies) if bodies else np.zeros((0, 0))
        return forward_dynamics(implicit, q, v, tau), osim

    return problem_of_bodies(robot, q, v, step, pairs, limits, respond)


def problem_of_bodies(
    robot: Robot, q: Any, v: Any, step: float, pairs: Sequence[Pair], limits: bool, respond: Respond
) -> tuple[ContactProblem, list[Touch]]:
    """The contact problem from the responses of bodies.

    Args:
        robot, q, v, step, pairs, limits: as for `traditional_problem`.
        respond: gives, for a robot whose springs and dampers are implicit and the names of bodies, the accelerations of
            its independent joints without contact, and the bodies' inverse operational-space inertia.
    """
    h = step_length(step)
    candidates = touches(robot, q, pairs)
    P, bodies = rows_by_body(robot, q, candidates)
    a, osim = respond(damped(robot, h), bodies)
    joints = joint_rows(robot, q, h, limits, v)
    A, J = _with_joints(robot, q, h, P @ osim @ P.T, P @ body_jacobians(robot, q, bodies), joints)
    w = J @ (np.asarray(v, dtype=float) + h * (a + basis_biases(robot, q, v)))
    return contact_problem(A, w, h, candidates, joints), candidates


def _with_joints(
    robot: Robot, q: Any, step: float, A: np.ndarray, J: np.ndarray, joints: JointRows
) -> tuple[np.ndarray, np.ndarray]:
    """A and J of contacts with the rows of joints appended; the factors of H give each response in linear time."""
    if not joints.blocks:
        return A, J
    response = mass_matrix_solve(damped(robot, step), q, joints.rows)
    A = np.block([[A, J @ response.T], [response @ J.T, joints.rows @ response.T]])
    return A, np.vstack([J, joints.rows])


def unimpeded(robot: Robot, q: Any, v: Any, tau: Any, step: float) -> np.ndarray:
    """(nv,): velocities after a step without contact, along the axes and on the tangents of loops before it."""
    a = forward_dynamics(damped(robot, step), q, v, tau)
    return np.asarray(v, dtype=float) + step * (a + basis_biases(robot, q, v))


def basis_biases(robot: Robot, q: Any, v: Any) -> np.ndarray:
    """(nv,): added to accelerations, the rates of change of velocities along the axes and loop tangents before a step.

    For floating bodies that is ω × v_c (see `frame_rotation_bias`). For loops without a solution, it is the part of g
    along them: all their joints have accelerations G v̇ + g, of which a step keeps what the loops allow at its start.
    """
    v = np.asarray(v, dtype=float)
    biases, embedding = np.zeros(robot.nv), robot.embedding
    if not all(embedding.explicit):
        p = embedding.positions(np.asarray(q, dtype=float))
        _, g = embedding.explicit_constraint(p, v)
        _, K, k = embedding.closure.at(p, embedding.velocities(p, v))
        for i in np.flatnonzero(~np.array(embedding.explicit)):
            (rows, entries), columns = embedding.closure.places[i], embedding.closure.loops[i].columns
            kept = embedding.choices[i].rows
            g[columns] -= np.linalg.pinv(K[entries[kept]]) @ k[rows[kept]]
        biases = np.where(np.isin(embedding.v_index, embedding.unsolved_entries), g[embedding.v_index], 0.0)
    for joint in floating(robot):
        biases[robot.v_slice(joint)] = frame_rotation_bias(v[robot.v_slice(joint)], floating_centre(robot, joint))
    return biases


def floating(robot: Robot) -> list[str]:
    """The free joints that are not part of a loop."""
    free = [joint.name for joint in robot.joints if joint.kind.floats]
    slices = [(name, robot.v_slice(name)) for name in free if name in robot.independent_joints]
    return [name for name, entries in slices if entries.stop - entries.start == 6]


def floating_centre(robot: Robot, joint: str) -> np.ndarray:
    """3: the centre of mass of the link that a free joint carries, in the link's frame, m."""
    return centre_of(robot.tree.links[robot.tree.number[joint]])


def contact_problem(
    A: np.ndarray, w: np.ndarray, step: float, candidates: Sequence[Touch], joints: JointRows
) -> ContactProblem:
    """The problem of contacts, followed by joints.

    Args:
        A: (rows, rows), J H⁻¹ Jᵀ; symmetrised here, as its halves may differ by rounding.
        w: (rows,), velocities after the step without contact; gaps are added here.
        step: h, s.
        candidates: the contacts.
    """
    b = with_closures(w, candidates, np.array([touch.contact.gap for touch in candidates]) / step, joints.closures)
    return ContactProblem((A + A.T) / 2, b, [*(touch.cone for touch in candidates), *joints.blocks])


def with_closures(w: np.ndarray, candidates: Sequence[Touch], gaps: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """b: velocities without impulses, plus gaps and distances to joint limits, over the step. [002, eq. 4a]"""
    b = w.copy()
    b[first_rows(candidates)] += gaps
    b[len(b) - len(limits) :] += limits
    return b


def first_rows(candidates: Sequence[Touch]) -> np.ndarray:
    """(contacts,): the row of each contact's normal; the contact's rows of friction follow it."""
    return np.cumsum([0, *(touch.cone.size for touch in candidates)])[:-1]


def _bodies(pairs: Sequence[Pair]) -> list[str]:
    return list(dict.fromkeys(shape.body for pair in pairs for shape in (pair.one, pair.other)))


def poses_of_shapes(robot: Robot, q: Any, pairs: Sequence[Pair]) -> dict[str, Transform]:
    """The transform from the world to each body that may touch."""
    poses = dict(zip(robot.bodies, body_poses(robot, q), strict=True))
    matrices = {body: poses.get(body, np.eye(4)) for body in _bodies(pairs)}  # the ground is none of the bodies
    return {body: Transform(T[:3, :3].T, T[:3, 3]) for body, T in matrices.items()}


def contact_rows(robot: Robot, q: Any, candidates: Sequence[Touch]) -> np.ndarray:
    """J of contacts: velocities of the first shape relative to the second, along normal and tangents, per v.

    Contacts with spin or rolling friction have further rows: the angular velocity of the first shape relative to the
    second about these axes.
    """
    P, bodies = rows_by_body(robot, q, candidates)
    return P @ body_jacobians(robot, q, bodies)


def rows_by_body(robot: Robot, q: Any, candidates: Sequence[Touch]) -> tuple[np.ndarray, list[str]]:
    """The rows of contacts as functions of the bodies' velocities, and the names of the bodies that move.

    Returns:
        (rows, 6 × bodies), with six columns for each body, in the body's own frame; and the bodies.
    """
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
    """(6 × bodies, nv): the spatial velocities of bodies per v, each in the body's own frame."""
    return np.vstack([np.zeros((0, robot.nv)), *(frame_jacobian(robot, q, body) for body in bodies)])
