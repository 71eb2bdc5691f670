"""Positions after a step, and the velocities that fit them, in NumPy: the reference for contact/step/drift.py."""

from __future__ import annotations

import numpy as np

from coupler.contact.floating import straight_motion, turned_velocity
from coupler.contact.formulations import floating, floating_centre
from coupler.model import Robot


def integrated(robot: Robot, q: np.ndarray, v: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """q and v after a step with velocities v along the axes before it; floating bodies move straight."""
    q_next = _with_loops(robot, q, v, step)
    v_next = fitted_velocities(robot, q, q_next, v)
    for joint in floating(robot):
        place, entries = robot.q_slice(joint), robot.v_slice(joint)
        q_next[place], v_next[entries] = straight_motion(q[place], v[entries], step, floating_centre(robot, joint))
    return q_next, v_next


def _with_loops(robot: Robot, q: np.ndarray, v: np.ndarray, step: float) -> np.ndarray:
    """q after a step; loops without a solution close where their joints' velocities lead; see contact/step/drift.py."""
    embedding, states = robot.embedding, robot.states
    if all(embedding.explicit):
        return robot.integrate(q, v, step)
    p = embedding.positions(q)
    w = embedding.velocities(p, v)
    return states.closed(p, step * w, np.ones(len(w)))[embedding.q_index]


def fitted_velocities(robot: Robot, q: np.ndarray, q_next: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Velocities at q, fitted to loops without a solution at q_next; unchanged along what the loops allow at q.

    With the velocities w = G v of all joints at q, the result is w − Kᵀ λ such that K_next (w − Kᵀ λ) = 0.
    """
    embedding = robot.embedding
    loops = [i for i, solved in enumerate(embedding.explicit) if not solved]
    if not loops:
        return v.copy()
    p = embedding.positions(q)
    w = embedding.velocities(p, v)
    _, K, _ = embedding.closure.at(p)
    _, K_next, _ = embedding.closure.at(embedding.positions(q_next))
    for i in loops:
        columns, entries = embedding.closure.loops[i].columns, embedding.closure.places[i][1][embedding.choices[i].rows]
        before, after = K[entries], K_next[entries]
        w[columns] -= before.T @ np.linalg.solve(after @ before.T, after @ w[columns])
    return w[embedding.v_index]


def turned_jump(robot: Robot, jump: np.ndarray, q: np.ndarray, q_next: np.ndarray) -> np.ndarray:
    """A change of velocities at q, along the axes that floating bodies have at q_next."""
    jump = jump.copy()
    for joint in floating(robot):
        turn, entries = robot.q_slice(joint).start + 3, robot.v_slice(joint)
        before, after = (x[turn : turn + 4] for x in (q, q_next))
        jump[entries] = turned_velocity(jump[entries], before, after, floating_centre(robot, joint))
    return jump
