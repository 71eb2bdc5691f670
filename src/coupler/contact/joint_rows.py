"""Limits and dry friction of joints as rows of a contact problem, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.contact.laws import limit_velocities
from coupler.contact.problem import Block, Bounded, Unilateral
from coupler.contact.scene import friction_impulses, limited_joints, recovery_speeds, rubbing_joints
from coupler.model import Robot


@dataclass(frozen=True, eq=False)
class JointRows:
    """The rows of joints in the problem of a step.

    First come entries of joints that have limits, in the order of `limited_joints`, with a row for each finite limit,
    the lower before the upper: 0 ≤ q̇ + (q − lower)/h ⊥ λ ≥ 0 and 0 ≤ −q̇ + (upper − q)/h ⊥ λ ≥ 0, a gap at position
    level like those of contacts [002, eq. 2a, 4a]. Then, in the order of `rubbing_joints`, come rows of dry friction,
    whose impulse is at most h times the largest force.

    Attributes:
        rows: J, (rows, nv).
        closures: (rows,), the distances to limits over the step, rad/s or m/s; zero for dry friction.
        blocks: the laws of the rows.
        recovery: (rows,), how fast each joint returns from beyond a limit, as a multiple of the speed of a sliding
            joint.
        biases: (rows,), J̇ v, rad/s² or m/s².
    """

    rows: np.ndarray
    closures: np.ndarray = field(default_factory=lambda: np.zeros(0))
    blocks: Sequence[Block] = ()
    recovery: np.ndarray = field(default_factory=lambda: np.zeros(0))
    biases: np.ndarray = field(default_factory=lambda: np.zeros(0))


def joint_rows(robot: Robot, q: Any, step: float, limits: bool = True, v: Any = None) -> JointRows:
    """The rows of joints with limits, if limits count, and of joints with dry friction.

    Loops bend the path of a joint within a step: so a slide turns round at its dead point, and not later.

    Args:
        robot, q, step: the robot, its configuration, and h, s.
        limits: whether limits count.
        v: its velocity; without it, biases are zero.
    """
    limited, rubbing = limited_joints(robot) if limits else [], rubbing_joints(robot)
    if not (limited or rubbing):
        return JointRows(np.zeros((0, robot.nv)))
    tree, (G, g) = robot.tree, robot.explicit_constraint(q, v)
    p, bend = robot.embedding.positions(np.asarray(q, dtype=float)), _bend(robot, q, v, g)
    terms: list[tuple[np.ndarray, float, Block, float, float]] = []
    for (link, j), fast in zip(limited, recovery_speeds(robot, limited, 1.0), strict=True):
        kind, entry = tree.links[link].kind, tree.v_start[link] + j
        position = p[tree.q_start[link] + j] + 0.5 * step * step * bend[entry]
        low, high = limit_velocities(kind.lower[j], kind.upper[j], position, step)
        sides = [(sign, w) for sign, w in ((1.0, low), (-1.0, high)) if np.isfinite(w)]
        terms += [(sign * G[entry], -sign * w, Unilateral(), float(fast), float(sign * g[entry])) for sign, w in sides]
    for (link, j), bound in zip(rubbing, friction_impulses(robot, rubbing, step), strict=True):
        entry = tree.v_start[link] + j
        terms.append((G[entry], 0.0, Bounded(-bound, bound), 1.0, float(g[entry])))
    rows, closures, blocks, recovery, biases = zip(*terms, strict=True)
    return JointRows(np.array(rows), np.array(closures), blocks, np.array(recovery), np.array(biases))


def _bend(robot: Robot, q: Any, v: Any, g: np.ndarray) -> np.ndarray:
    """How loops bend the paths of all joints in a step, rad/s² or m/s².

    Loops with a solution γ keep their independent velocities: that is g, given. Others close where they are nearest to
    a straight path: that is K⁺ k.
    """
    unsolved, bend = robot.embedding.unsolved_entries, np.array(g)
    if v is not None and len(unsolved):
        K, k = robot.implicit_constraint(q, v)
        bend[unsolved] = (np.linalg.pinv(K) @ k)[unsolved]
    return bend
