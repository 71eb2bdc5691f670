"""Coordinates around a configuration, in which motion is an ordinary differential equation.

Configurations near q0 are q = q0 ⊕ u, where u has an entry for each of v: independent joints move from q0 with the
constant velocity u for a unit of time, and loops make the others follow. Where v is q̇, u̇ is v. An orientation turns by
exp(u), and its v is seen from the turned body; there, with the bracket [ , ] of so(3) or se(3) and Bernoulli's numbers,

    u̇ = dexp⁻¹ v = v + ½ [u, v] + ¹⁄₁₂ [u, [u, v]] − ¹⁄₇₂₀ [u, [u, [u, [u, v]]]] + ...

With u̇ = v instead, methods of any order would fall to the second. The sum has a closed form: see `dexp_inverse`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coupler.compiled import remembered, run, run_on_state
from coupler.graph import Builder, Program, View, fields
from coupler.model import Robot
from coupler.model.embedding.scene import by_kind
from coupler.model.joint import Joint

__all__ = ["Chart", "joint_velocities"]


class Chart:
    """Configurations q0 ⊕ u around q0, of a robot that moves through it with the velocity v0; or of a batch."""

    def __init__(self, robot: Robot, q0: np.ndarray, v0: np.ndarray) -> None:
        self.robot, self.q0, self.v0 = robot, q0, v0
        self.layout: _Layout = remembered(robot, _Layout, _Layout)
        if self.layout.loops:
            self.p0 = robot.embedding.positions(q0)
            self.w0 = joint_velocities(robot, self.p0, v0)

    def at(self, u: np.ndarray, time: float) -> np.ndarray:
        """q0 ⊕ u, with quaternions of unit length and loops closed.

        Args:
            u: (..., nv), rad or m.
            time: since q0, s: where dependent joints are sought first, moving on as they did there.
        """
        robot, embedding = self.robot, self.robot.embedding
        if self.layout.loops:
            step = time * self.w0
            step[..., embedding.v_index] = u
            return robot.states.moved(self.p0, step)[..., embedding.q_index]
        q = run(robot, advance_program, self.q0, u) if self.layout.turning else self.q0 + u
        if embedding.solutions:
            robot.states.check_solved(embedding.positions(q))
        return q

    def rate(self, q: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """u̇ of a robot that moves through q = q0 ⊕ u with the velocity v."""
        if not self.layout.turning:
            return v
        if not self.layout.partial:
            return run_on_state(self.robot, rate_program, q, u, v)
        embedding = self.robot.embedding
        p = embedding.positions(q)
        way, w = self.robot.states.motion.difference(self.p0, p), joint_velocities(self.robot, p, v)
        return run_on_state(self.robot, rate_program, q, way, w)[..., embedding.v_index]


def joint_velocities(robot: Robot, p: np.ndarray, v: np.ndarray) -> np.ndarray:
    """w = G v at positions p of all joints; where no such G is, an error that names the loop."""
    try:
        return robot.embedding.velocities(p, v)
    except np.linalg.LinAlgError:
        robot.states.check_regular(p)
        raise


class _Layout:
    """Which joints of a robot need care.

    Attributes:
        loops: whether there are loops that q must close.
        turning: links with independent orientations, or with parts of them.
        partial: whether there are parts: then u̇ depends on entries that are not in u.
    """

    def __init__(self, robot: Robot) -> None:
        embedding, tree = robot.embedding, robot.tree
        self.loops = not all(embedding.explicit)
        self.turning, self.partial = [], False
        for link in robot.states.motion.turning:
            independent = np.isin(tree.velocities(link), embedding.v_index)
            if independent.any():
                self.turning.append(link)
                self.partial |= not independent.all()


def advance_program(robot: Robot) -> Program:
    """(q, u) → q0 ⊕ u of a robot whose q is not bound by loops."""
    builder, tree, embedding = Builder("advance"), robot.tree, robot.embedding
    q, u = builder.input("q", robot.nq), builder.input("u", robot.nv)
    after = builder.output("after", robot.nq)
    q_place = np.full(tree.nq, -1)
    q_place[embedding.q_index] = np.arange(robot.nq)
    links = [link for link in range(1, len(tree.links)) if (q_place[tree.positions(link)] >= 0).any()]
    for kind, alike in by_kind(tree, links):
        at, along = q_place[tree.q_start[alike]], embedding.v_place[tree.v_start[alike]]
        joint = fields(q=q.at(at, kind.nq), u=u.at(along, kind.nv), after=after.at(at, kind.nq))
        builder.loop(_advance(kind), joint=joint)
    return builder.build()


def rate_program(robot: Robot) -> Program:
    """(q, u, v) → u̇; of a robot with orientations that are independent in part, for the velocities of all joints."""
    builder, tree, layout = Builder("rate"), robot.tree, _Layout(robot)
    size = tree.nv if layout.partial else robot.nv
    builder.input("q", robot.nq)  # which tells, in a message, where something is wrong
    u, v, rate = builder.input("u", size), builder.input("v", size), builder.output("rate", size)
    builder.loop(_copy, entry=fields(v=v.at(range(size)), rate=rate.at(range(size))))
    for kind, links in by_kind(tree, layout.turning):
        at = tree.v_start[links] if layout.partial else robot.embedding.v_place[tree.v_start[links]]
        joint = fields(**{name: x.at(at, kind.nv) for name, x in (("u", u), ("v", v), ("rate", rate))})
        builder.loop(_rate(kind), joint=joint)
    return builder.build()


def _advance(kind: Joint) -> Callable[[View], None]:
    def advance(joint: View) -> None:
        joint.after = kind.integrate(joint.q, joint.u)

    return advance


def _copy(entry: View) -> None:
    entry.rate = entry.v


def _rate(kind: Joint) -> Callable[[View], None]:
    def rate(joint: View) -> None:
        joint.rate = kind.chart_rate(joint.u, joint.v)

    return rate
