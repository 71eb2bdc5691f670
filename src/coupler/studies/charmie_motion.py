"""The motion of [004, §6] that CHARMIE is validated with, and what studies of it share.

For 5 s, every actuator has a constant acceleration: negative for 2.5 s, then positive. Starting at rest, it is at rest
again at the end. The text leaves open that the robot starts at rest, what the acceleration is at 2.5 s and at the end,
and how two jaws that are one freedom turn by the same acceleration about the same axis. Here, it is positive from 2.5 s
on, the end included, and the second jaw of a claw is a mirror image of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import pi

import numpy as np

from coupler.model import Robot
from coupler.robots.charmie import INDIRECT, LENGTH, charmie

DURATION = 5.0  # s
RATES = {"turns": pi / 9, "actuators": 3e-3, "base": 30e-3}  # rad/s², m/s², m/s²
PISTONS = [f"{name}2" for name in INDIRECT.values()]


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion of the independent joints, which are those that actuators drive.

    Attributes:
        t: n, s.
        q, v, a: n × nq, n × nv, n × nv: closed configurations, velocities and accelerations.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


@cache
def robot_by_actuators() -> Robot:
    """CHARMIE, with the lengths of its linear actuators in place of joints 4 and 5."""
    return charmie(independent="actuators")


def actuator_motion(states: int) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Times, positions by joint, and velocities and accelerations, n × nv, in closed form."""
    robot = robot_by_actuators()
    t = np.linspace(0.0, DURATION, states)
    half, late = DURATION / 2, t >= DURATION / 2
    sign = np.where(late, 1.0, -1.0)
    speed = np.where(late, t - DURATION, -t)
    way = np.where(late, 0.5 * (t - DURATION) ** 2 - half**2, -0.5 * t**2)
    rate = np.array([_rate(joint) for joint in robot.independent_joints])
    starts = {joint: LENGTH if joint in PISTONS else 0.0 for joint in robot.independent_joints}
    positions = {joint: start + way * _rate(joint) for joint, start in starts.items()}
    return t, positions, speed[:, None] * rate, sign[:, None] * rate


def paper_motion(states: int = 1001) -> Motion:
    """The motion in a number of states from 0 to 5 s."""
    t, positions, v, a = actuator_motion(states)
    return Motion(t, robot_by_actuators().pack_q(positions), v, a)


def by_body(robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[dict[str, float]]:
    """Positions, velocities and accelerations of one state by main body, as the paper's recursion takes them."""
    G, g = robot.explicit_constraint(q, v)
    joints = [joint.name for joint in robot.joints if joint.kind.nv]
    rows = {joint: int(robot.tree.velocities(robot.tree.number[joint])[0]) for joint in joints}
    w, dw, positions = G @ v, G @ a + g, robot.joint_positions(q)
    return [
        {joint: float(positions[joint]) for joint in joints},
        {joint: float(w[rows[joint]]) for joint in joints},
        {joint: float(dw[rows[joint]]) for joint in joints},
    ]


def _rate(joint: str) -> float:
    if joint in PISTONS:
        return RATES["actuators"]
    return RATES["base"] if joint in ("1", "2") else RATES["turns"]
