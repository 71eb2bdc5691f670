"""Coordinates around a configuration in which motion is an ordinary differential equation.

Configurations near q0 are q = q0 ⊕ u: joints move from q0 with the constant velocity u for a unit of time. Where v is
q̇, u̇ is v. An orientation turns by exp(u), and its v is given along the axes of the turned body; there, with the
bracket [ , ] of so(3) or se(3) and Bernoulli's numbers,

    u̇ = dexp⁻¹ v = v + ½ [u, v] + ¹⁄₁₂ [u, [u, v]] − ¹⁄₇₂₀ [u, [u, [u, [u, v]]]] + ...

With u̇ = v instead, methods of any order would drop to the second. The series has a closed form: see `dexp_inverse`.

Independent joints do not always determine how a loop moves: not at a dead point. So motion is described by *carried*
velocities x = (v, w): those of independent joints, and those of all joints in loops without a solution, of which v is
then a part. u has an entry for each of them. Where u and x violate such loops they are projected: q0 ⊕ u is the closed
configuration nearest to where u leads, and w becomes its part that K allows, w − K⁺ K w. A Runge-Kutta method in u and
x, with rates that depend on these projections, keeps its order, because the rates and their derivatives along the
motion are those of the robot. [Hairer, Lubich, Wanner, Geometric numerical integration, IV.4]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.compiled import remembered, run, run_on_state
from coupler.dynamics import loop_velocities
from coupler.graph import Builder, Program, View, fields
from coupler.model import Robot
from coupler.model.embedding.constraint_steps import by_kind
from coupler.model.joint import Joint


class Chart:
    """Configurations q0 ⊕ u around q0, or around each configuration of a batch."""

    def __init__(self, robot: Robot, q0: np.ndarray) -> None:
        self.robot, self.q0 = robot, q0
        self.layout: _Layout = remembered(robot, _Layout, _Layout)
        if self.layout.loops:
            self.p0 = robot.embedding.positions(q0)

    def at(self, u: np.ndarray) -> np.ndarray:
        """q0 ⊕ u, with quaternions of unit length and closed loops; u is (..., carried), rad or m."""
        robot, embedding = self.robot, self.robot.embedding
        if self.layout.loops:
            step = np.zeros((*u.shape[:-1], robot.tree.nv))
            step[..., embedding.v_index] = u[..., : robot.nv]
            step[..., embedding.unsolved_entries] = u[..., robot.nv :]
            p = robot.states.closed(self.p0, step, np.ones(robot.tree.nv), "a shorter step may close it")
            q = p[..., embedding.q_index]
        else:
            q = run(robot, advance_program, self.q0, u) if self.layout.quaternion_links else self.q0 + u
        if embedding.solutions:
            robot.states.check_solved(embedding.positions(q))
        return q

    def rate(self, q: np.ndarray, u: np.ndarray, x: np.ndarray) -> np.ndarray:
        """u̇ of a robot that moves through q = q0 ⊕ u with the carried velocities x."""
        return run_on_state(self.robot, rate_program, q, u, x) if self.layout.quaternion_links else x


def carried_velocities(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """x = (v, w) at configurations q, (..., nq), from velocities v of independent joints.

    Raises:
        ModelError: where v does not determine the velocities of a moving loop.
    """
    entries = robot.embedding.unsolved_entries
    if not len(entries):
        return v
    x = np.concatenate([v, np.zeros((*v.shape[:-1], len(entries)))], axis=-1)
    moving = v.any(axis=-1)
    if moving.any():
        p = robot.embedding.positions(q[moving])
        robot.states.check_regular(p)
        x[moving, robot.nv :] = robot.embedding.velocities(p, v[moving])[..., entries]
    return x


def fitted(robot: Robot, q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Carried velocities projected onto those that loops allow at q: w − K⁺ K w, of which v is a part."""
    if x.shape[-1] == robot.nv:
        return x
    return np.concatenate(loop_velocities(robot, q, x[..., : robot.nv], x[..., robot.nv :]), axis=-1)


class _Layout:
    """The joints of a robot that need special treatment.

    Attributes:
        loops: whether there are loops that q must close.
        quaternion_links: links whose orientations are carried.
        place: for each entry of all joints' velocities, its place among the carried entries, or -1.
        size: the number of carried entries.
    """

    def __init__(self, robot: Robot) -> None:
        embedding, entries = robot.embedding, robot.embedding.unsolved_entries
        self.loops, self.size = bool(len(entries)), robot.nv + len(entries)
        self.place = embedding.v_place.copy()
        self.place[entries] = robot.nv + np.arange(len(entries))
        self.quaternion_links = [
            link for link in robot.states.motion.quaternion_links if self.place[robot.tree.v_start[link]] >= 0
        ]


def advance_program(robot: Robot) -> Program:
    """(q, u) → q0 ⊕ u, for a robot without loops that q must close."""
    builder, tree, embedding = Builder("advance"), robot.tree, robot.embedding
    q, u = builder.input("q", robot.nq), builder.input("u", robot.nv)
    after = builder.output("after", robot.nq)
    q_place = np.full(tree.nq, -1)
    q_place[embedding.q_index] = np.arange(robot.nq)
    links = [link for link in range(1, len(tree.links)) if (q_place[tree.positions(link)] >= 0).any()]
    for kind, same_kind in by_kind(tree, links):
        at, along = q_place[tree.q_start[same_kind]], embedding.v_place[tree.v_start[same_kind]]
        joint = fields(q=q.at(at, kind.nq), u=u.at(along, kind.nv), after=after.at(at, kind.nq))
        builder.loop(_advance(kind), joint=joint)
    return builder.build()


def rate_program(robot: Robot) -> Program:
    """(q, u, x) → u̇."""
    builder, tree, layout = Builder("rate"), robot.tree, _Layout(robot)
    builder.input("q", robot.nq)  # only for messages, which name the configuration
    u, x = (builder.input(name, layout.size) for name in "ux")
    rate = builder.output("rate", layout.size)
    builder.loop(_copy, entry=fields(x=x.at(range(layout.size)), rate=rate.at(range(layout.size))))
    for kind, links in by_kind(tree, layout.quaternion_links):
        at = layout.place[tree.v_start[links]]
        joint = fields(**{name: vector.at(at, kind.nv) for name, vector in (("u", u), ("x", x), ("rate", rate))})
        builder.loop(_rate(kind), joint=joint)
    return builder.build()


def _advance(kind: Joint) -> Callable[[View], None]:
    def advance(joint: View) -> None:
        joint.after = kind.integrate(joint.q, joint.u)

    return advance


def _copy(entry: View) -> None:
    entry.rate = entry.x


def _rate(kind: Joint) -> Callable[[View], None]:
    def rate(joint: View) -> None:
        joint.rate = kind.chart_rate(joint.u, joint.x)

    return rate
