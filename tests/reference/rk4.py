"""A step with contact by the classical Runge-Kutta method, in NumPy for one state: the reference for the compiled one.

The contact problem is solved at the start of the step, as in Euler's method [002, §4.1]. Its impulses, spread over the
step as forces F = λ/h of fixed direction, then act on the robot where contacts are in each stage (contact/carried.py).
Torsion is a constant moment. The forces of joints at their limits or with dry friction are constant, too, and act on
independent joints through the loops' present configuration in each stage. Springs and dampers are explicit.

The method is of fourth order while nothing touches, and of third order where contacts stay closed without friction. But
the laws of contact are those of Euler's method: the force that stops a body or a joint lasts the whole step, during
which it moves on by h |v| / 2. If that overlap counted at position level, it would bounce. So overlaps, and distances
beyond limits, count as at most 1e-5 m (or rad), unless another `penetration` is chosen. Friction is of second order
(contact/sliding.py), and not certain to dissipate most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from coupler.contact.carried import (
    Carrier,
    carried,
    centre,
    followed,
    is_strong,
    load,
    moved,
    on_carriers,
    on_same_side,
    on_surface,
    reach,
    strength,
    turned,
    velocity_ahead,
)
from coupler.contact.collision.convex import cores
from coupler.contact.collision.geometry import Contact, contacts, has_closed_form
from coupler.contact.floating import centre_of, mean_inertia
from coupler.contact.formulations import (
    Touch,
    basis_biases,
    contact_rows,
    first_rows,
    recursive_problem,
    touches,
    unimpeded,
    with_closures,
)
from coupler.contact.joint_rows import JointRows, joint_rows
from coupler.contact.laws import gap_seen, let_out
from coupler.contact.pairs import Pair
from coupler.contact.passing import can_pass, slop
from coupler.contact.scene import rebounding, travelling
from coupler.contact.sliding import slides_on
from coupler.contact.solvers import solve
from coupler.dynamics import bias_force
from coupler.inertia import mass_matrix_solve
from coupler.kinematics import frame_acceleration, frame_pose, frame_velocity
from coupler.model import Robot, Shape
from coupler.simulate.chart import carried_velocities, fitted
from coupler.simulate.integrators import rk4
from coupler.spatial import Transform, cross
from reference.integration import turned_jump
from reference.passing_rounds import solved_part
from reference.stepping import Impulses, Stepped, StepProblem, solved


def rk4_contact_step(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    step: float,
    pairs: Sequence[Pair],
    *,
    penetration: str | float = "limited",
    limits: bool = True,
    **options: Any,
) -> Stepped:
    """Moves a robot by one step.

    Args:
        robot, q, v, tau, step, pairs: as in `contact_impulses`.
        penetration: how overlaps, and distances beyond a joint's limit, count; see `gap_seen`.
        limits, options: as in `contact_impulses`.
    """
    bare, q, v = _undamped(robot), np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    passive = bias_force(bare, q, v) - bias_force(robot, q, v)  # of springs and dampers, explicit like all other forces
    contact = impulses_ahead(bare, q, v, tau + passive, step, pairs, penetration=penetration, limits=limits, **options)
    forces, moments, of_joints = _forces(contact, step)
    normals = [touch.contact.frame[0] for touch in contact.touches]
    loads = StageLoads(robot, q, v, step, touches(robot, q, pairs), normals, forces, moments)

    def on_joints(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if t == 0.0:  # where the problem was solved
            return tau + contact.rows.T @ contact.solution.impulses / step
        return tau + joint_rows(robot, q, step, limits).rows.T @ of_joints

    def on_bodies(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return loads.loads(q) if t > 0.0 else np.zeros((len(robot.bodies), 6))

    f_ext = on_bodies if forces.any() or moments.any() else None
    q_next, v_next = rk4(robot, q, v, on_joints, step, f_ext=f_ext)
    v_next = _after_impacts(bare, contact, q, q_next, v_next)
    return Stepped(q_next, v_next, contact.touches, contact.total, contact.pending)


def impulses_ahead(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    step: float,
    pairs: Sequence[Pair],
    *,
    penetration: str | float = "position",
    recovery: float = np.inf,
    limits: bool = True,
    pending: np.ndarray | None = None,
    start: np.ndarray | None = None,
    **options: Any,
) -> Impulses:
    """`contact_impulses` of a step of higher order, which takes velocities after the step where contacts then are.

    They follow from accelerations of points [002, eq. 6, 10]. `penetration` also holds for joint limits, because such
    steps go further beyond.
    """
    q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    problem, touches = recursive_problem(robot, q, v, tau, step, pairs, limits=limits)
    free, biased = unimpeded(robot, q, v, tau, step), joint_rows(robot, q, step, limits, v)
    rows = np.vstack([contact_rows(robot, q, touches), biased.rows])
    velocities, approach = velocities_ahead(robot, q, v, free, step, touches, biased), rows @ v
    for i, touch in zip(first_rows(touches), touches, strict=True):  # where shapes then are, some have passed
        if touch.contact.gap > slop(step) and can_pass(touch.pair) and not rebounding(pairs):
            of_contact = slice(i, i + touch.cone.size)
            velocities[of_contact] = rows[of_contact] @ free
    gaps = np.array([touch.contact.gap for touch in touches])
    seen = let_out(gap_seen(gaps, penetration) / step, approach[first_rows(touches)], recovery)
    closures = gap_seen(joint_rows(robot, q, step, limits).closures * step, penetration) / step
    closures = let_out(closures, approach[len(rows) - len(closures) :], recovery * biased.recovery)
    problem = replace(problem, b=with_closures(velocities, touches, seen, closures))
    given = StepProblem(robot, q, v, step, problem, touches, rows, free, velocities, seen)
    contact = solved(given, start, pending, 0.0, **options)
    return contact if rebounding(pairs) or travelling(pairs) else _slid_on(contact, v, options)


def _slid_on(contact: Impulses, v: np.ndarray, options: dict[str, Any]) -> Impulses:
    """The same with friction of second order where contacts slide on; see contact/sliding.py."""
    solution, b = contact.solution, contact.problem.b.copy()
    approach = contact.rows @ v
    for i, touch in zip(first_rows(contact.touches), contact.touches, strict=True):
        tangents = slice(i + 1, i + 3)
        if touch.pair.friction and slides_on(approach[tangents], solution.velocities[tangents]):
            b[tangents] += approach[tangents]
    if (b == contact.problem.b).all():
        return contact
    problem, solver = replace(contact.problem, b=b), partial(solve, **options)
    return replace(contact, solution=solved_part(problem, contact.active, solver, solution.impulses))


def _undamped(robot: Robot) -> Robot:
    """The robot without dampers and springs at its joints."""
    values = [(link, np.zeros(link.kind.nv)) for link in robot.tree.links]
    links = [replace(link, kind=link.kind.with_values(damping=none, stiffness=none.copy())) for link, none in values]
    return replace(robot, tree=replace(robot.tree, links=tuple(links)))


def _after_impacts(
    robot: Robot, contact: Impulses, q: np.ndarray, q_next: np.ndarray, v_next: np.ndarray
) -> np.ndarray:
    """Velocities after the impacts at the end of a step from q to q_next, as the loops allow them there."""
    if contact.jump is None:
        return v_next
    jump = mass_matrix_solve(robot, q, contact.rows.T @ contact.jump)
    x = carried_velocities(robot, q_next, v_next) + carried_velocities(robot, q, turned_jump(robot, jump, q, q_next))
    return fitted(robot, q_next, x)[: robot.nv]


def _forces(contact: Impulses, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Impulses spread over a step: forces and moments of contacts, (contacts, 3) each, and forces of joints."""
    rates, touched = contact.solution.impulses / step, contact.touches
    forces, moments = np.zeros((2, len(touched), 3))
    for k, (i, touch) in enumerate(zip(first_rows(touched), touched, strict=True)):
        frame = touch.contact.frame
        forces[k] = frame.T @ rates[i : i + 3]
        rotational = rates[i + 3 : i + touch.cone.size]  # about the normal, and about the tangents
        moments[k] = rotational @ frame[: len(rotational)]
    return forces, moments, rates[sum(touch.cone.size for touch in touched) :]


def velocities_ahead(
    robot: Robot, q: Any, v: Any, free: np.ndarray, step: float, touches: Sequence[Touch], joints: JointRows
) -> np.ndarray:
    """Velocities of all rows after a step without contact, where contacts then are; for joints, J v + h (J a + J̇ v).

    Args:
        q, v: its state.
        free: (nv,), velocities after the step, as `unimpeded` gives them.
        step: h, s.
        joints: the rows of joints, with biases.
    """
    a = (free - v) / step - basis_biases(robot, q, v)
    rows = []
    for touch, moved_contact in zip(touches, _moved_contacts(robot, q, v, step, touches), strict=True):
        carriers = _carriers(robot, q, v, touch, a, step)
        rows.append(velocity_ahead(touch.contact, moved_contact, carriers, step, touch.cone.size))
    return np.concatenate([*rows, joints.rows @ (v + step * a) + step * joints.biases])


class StageLoads:
    """The forces of contacts on bodies, in the stages of a step."""

    def __init__(
        self,
        robot: Robot,
        q: Any,
        v: Any,
        step: float,
        touches: Sequence[Touch],
        normals: Any,
        forces: Any,
        moments: Any,
    ) -> None:
        """Keeps the contacts at the start of a step.

        Args:
            q, v: its state at the start.
            step: h, s.
            touches: the candidate contacts at the start.
            normals, forces, moments: (contacts, 3) each, along the world's axes: the normals along which the contacts
                act, and their forces, N, and moments, N m.
        """
        self._robot, self._touches = robot, touches
        self._normals, self._forces, self._moments = normals, forces, moments
        self._places, self._reach, self._arms = [], [], []
        strengths = np.zeros(len(robot.tree.links))
        for touch, force in zip(touches, forces, strict=True):
            carriers = _carriers(robot, q, v, touch)
            self._places.append(on_carriers([body.X for body in carriers], touch.contact.point))
            self._reach.append(reach(carriers, touch.contact.point, step))
            self._arms.append({})
            for body in _moving_bodies(robot, touch.pair):
                link = robot.tree.place[body][0]
                arm = self._arms[-1][body] = touch.contact.point - _centre(robot, q, body)
                strengths[link] += strength(force, arm, mean_inertia(robot.tree.links[link]), step)
        self._strong = is_strong(strengths)

    def loads(self, q: np.ndarray) -> np.ndarray:
        """f_ext, (bodies, 6), at the configuration of a stage."""
        robot, pairs = self._robot, list(dict.fromkeys(touch.pair for touch in self._touches))
        place = {name: i for i, name in enumerate(robot.body_names)}
        total = np.zeros((len(place), 6))
        for k, now in enumerate(touches(robot, q, pairs)):
            pair = now.pair
            bodies = _moving_bodies(robot, pair)
            point = carried([_pose(robot, q, body) for body in bodies], self._places[k])
            closed = has_closed_form(pair.one.geometry, pair.other.geometry)
            force, normal, contact = self._forces[k], self._normals[k], now.contact
            same = closed and followed(contact.point, point, self._reach[k])
            touched = bool((normal == self._touches[k].contact.frame[0]).all())
            same = same and (not touched or on_same_side(contact.frame[0], normal))
            strong = any(self._strong[robot.tree.place[body][0]] for body in bodies)
            keeps_arm = strong and (touched or not closed)
            if same and touched and not strong:
                force = turned(force, normal, contact.frame[0])
            for shape, sign in ((pair.one, 1.0), (pair.other, -1.0)):
                if shape.body not in place:
                    continue
                if same:
                    margin = 0.0 if touched else cores.margin(shape.geometry)
                    point = on_surface(contact.point, contact.gap, contact.frame[0], normal, sign, margin)
                if keeps_arm and shape.body in bodies:
                    point = _centre(robot, q, shape.body) + self._arms[k][shape.body]
                total[place[shape.body]] += sign * load(point, force, self._moments[k])
        return total


def _moved_contacts(robot: Robot, q: Any, v: np.ndarray, step: float, touches: Sequence[Touch]) -> list[Contact | None]:
    """The contacts after bodies have moved with v for a step; None for those without a closed form."""
    moved_contacts: list[Contact | None] = []
    for pair in dict.fromkeys(touch.pair for touch in touches):
        if has_closed_form(pair.one.geometry, pair.other.geometry):
            X = [shape.at @ _moved(robot, q, v, shape, step) for shape in (pair.one, pair.other)]
            moved_contacts += contacts(pair.one.geometry, pair.other.geometry, X[0], X[1])
        else:
            moved_contacts += [None] * pair.count
    return moved_contacts


def _carriers(robot: Robot, q: Any, v: Any, touch: Touch, a: Any = None, step: float = 0.0) -> list[Carrier]:
    """The moving bodies that carry a contact's shapes; given accelerations a, also their velocities after a step."""
    carriers = []
    for shape, sign in ((touch.pair.one, 1.0), (touch.pair.other, -1.0)):
        if _moves(robot, shape):
            V = after = frame_velocity(robot, q, v, shape.body)
            if a is not None:
                rate = frame_acceleration(robot, q, v, a, shape.body)
                after = V + step * np.concatenate([rate[:3], rate[3:] - np.array(cross(V[:3], V[3:]))])
            carriers.append(Carrier(sign, _pose(robot, q, shape.body), V, after))
    return carriers


def _moved(robot: Robot, q: Any, v: np.ndarray, shape: Shape, step: float) -> Transform:
    X = _pose(robot, q, shape.body)
    return moved(X, frame_velocity(robot, q, v, shape.body), step) if _moves(robot, shape) else X


def _moving_bodies(robot: Robot, pair: Pair) -> list[str]:
    return [shape.body for shape in (pair.one, pair.other) if _moves(robot, shape)]


def _centre(robot: Robot, q: Any, body: str) -> np.ndarray:
    """The centre of mass, in the world, of a body and of those welded to it."""
    link, X = robot.tree.place[body]
    return centre(X.inverse() @ _pose(robot, q, body), centre_of(robot.tree.links[link]))


def _moves(robot: Robot, shape: Shape) -> bool:
    return bool(robot.tree.place[shape.body][0])


def _pose(robot: Robot, q: Any, body: str) -> Transform:
    T = frame_pose(robot, q, body)
    return Transform(T[:3, :3].T, T[:3, 3])
