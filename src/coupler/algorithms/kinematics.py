"""Where bodies are, how they move, and how independent joints move them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.model import Robot
from coupler.passes import Cluster, Sweep, velocities_of

__all__ = ["jacobians_program", "motions_program", "poses_program"]


def poses_program(robot: Robot) -> Any:
    """The program q → poses of all links, 12 each: rotation E from the world's axes to the link's, and origin r."""
    sweep = Sweep(robot, "poses", body={"E": (3, 3), "r": 3})
    sweep.input("q", robot.nq)
    sweep.report("pose", lambda link: 12)
    sweep.outward(locate)
    return sweep.build()


def motions_program(robot: Robot) -> Any:
    """The program (q, v, a) → poses, and velocities and accelerations of all links, 6 each, in their own frames."""
    sweep = Sweep(robot, "motions", body={"E": (3, 3), "r": 3, "v": 6, "a": 6})
    sweep.input("q", robot.nq)
    sweep.input("v", robot.nv)
    sweep.input("a", robot.nv)
    for name, size in (("pose", 12), ("velocity", 6), ("acceleration", 6)):
        sweep.report(name, lambda link, size=size: size)
    sweep.outward(move)
    return sweep.build()


def jacobians_program(robot: Robot) -> Any:
    """The program q → poses, and S of all links, 6 × n: motions against output bodies by v of their clusters."""
    sweep = Sweep(robot, "jacobians", body={"E": (3, 3), "r": 3})
    sweep.input("q", robot.nq)
    sweep.report("pose", lambda link: 12)
    sweep.report("subspace", lambda link: 6 * freedoms(robot, link))
    sweep.outward(span)
    return sweep.build()


def freedoms(robot: Robot, link: int) -> int:
    """How many independent velocities a link's cluster has."""
    return len(velocities_of(robot, robot.cluster_tree.cluster_of[link]))


def locate(cluster: Cluster) -> None:
    """Poses."""
    cluster.report_gap()
    for body in cluster.bodies:
        body.memory.pose = np.concatenate([body.pose.E.ravel(), body.pose.r])
        if body.carries:
            body.memory.E, body.memory.r = body.pose.E, body.pose.r


def move(cluster: Cluster) -> None:
    """Poses, velocities v = X v_λ + S ẏ and accelerations a = X a_λ + c + S ÿ. [001, eq. 33]"""
    locate(cluster)
    ydd = cluster.read("a")
    for body in cluster.bodies:
        above = np.zeros(6) if body.output.grounded else body.output.memory.a
        a = body.Xo @ above + body.c + body.S @ ydd
        body.memory.velocity, body.memory.acceleration = body.v, a
        if body.carries:
            body.memory.v, body.memory.a = body.v, a


def span(cluster: Cluster) -> None:
    """Poses and subspaces."""
    locate(cluster)
    for body in cluster.bodies:
        body.memory.subspace = body.S.ravel()
