"""Inverse dynamics by the recursive Newton-Euler algorithm on the spanning tree, projected by G. [001, §II-C]"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.algorithms.baselines.spanning_tree import write_motion
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.model import Robot
from coupler.passes import Cluster, Spanning, Sweep

__all__ = ["projected_rnea_program"]


def projected_rnea_program(robot: Robot) -> Any:
    """The program τ(q, v, a) by the conventional algorithm on the spanning tree: τ = Gᵀ RNEA(p, w, ẇ)."""
    sweep = Sweep(robot, "projected_rnea", body={}, remembering=True)
    for name, size in (("q", robot.nq), ("v", robot.nv), ("a", robot.nv)):
        sweep.input(name, size)
    sweep.output("tau", robot.nv)
    spanning = Spanning(sweep)
    sweep.outward(spread)
    vectors = spanning.vectors
    spanning.call(
        inverse_dynamics_program(spanning.tree), q=vectors["p"], v=vectors["w"], a=vectors["wd"], tau=vectors["f"]
    )
    sweep.outward(project)
    return sweep.build()


def spread(cluster: Cluster) -> None:
    """Positions, velocities w = G v and accelerations ẇ = G a + g of all joints."""
    cluster.report_gap()
    cluster.remember()
    write_motion(cluster, cluster.G @ cluster.read("a") + cluster.g)


def project(cluster: Cluster) -> None:
    """τ = Gᵀ f."""
    cluster.write("tau", cluster.G.T @ np.concatenate([body.memory.f for body in cluster.bodies]))
