"""Contacts in steps of several stages, in NumPy: the reference for step/stage_contacts.py; see carried.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from coupler.contact.formulations import Touch, basis_biases, first_rows, touches
from coupler.contact.joint_rows import JointRows
from coupler.contact.pairs import Pair
from coupler.contact.passing_rounds import solved_part
from coupler.contact.problem import ContactProblem
from coupler.contact.sliding import slides_on
from coupler.contact.solution import Solution
from coupler.kinematics import frame_acceleration, frame_pose, frame_velocity
from coupler.model import Robot, Shape
from coupler.spatial import Transform, cross


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
    v = np.asarray(v, dtype=float)
    a = (free - v) / step - basis_biases(robot, q, v)
    rows = []
    for touch, moved_contact in zip(touches, _moved_contacts(robot, q, v, step, touches), strict=True):
        carriers = _carriers(robot, q, v, touch, a, step)
        rows.append(velocity_ahead(touch.contact, moved_contact, carriers, step, touch.cone.size))
    return np.concatenate([*rows, joints.rows @ (v + step * a) + step * joints.biases])


def slid_on(
    problem: ContactProblem,
    solution: Solution,
    touches: Sequence[Touch],
    approach: np.ndarray,
    active: Sequence[int],
    solve: Callable[..., Solution],
) -> Solution:
    """The solution of a problem in which sliding contacts have friction of second order: see sliding.py.

    Args:
        problem, solution: the problem and its solution with friction that opposes velocities after the step.
        approach: (rows,), velocities before the step.
        active: the blocks that take part.
        solve: solves a part of the problem.
    """
    b = problem.b.copy()
    for i, touch in zip(first_rows(touches), touches, strict=True):
        tangents = slice(i + 1, i + 3)
        if touch.pair.friction and slides_on(approach[tangents], solution.velocities[tangents]):
            b[tangents] += approach[tangents]
    if (b == problem.b).all():
        return solution
    return solved_part(replace(problem, b=b), active, solve, solution.impulses)


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
