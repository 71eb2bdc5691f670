"""Inverse dynamics by the recursive Newton-Euler algorithm on the spanning tree, projected by G. [001, §II-C]"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.algorithms.baselines.spanning_tree import Spanning, Visited, spanning_sweep, write_motion
from coupler.algorithms.rnea import inverse_dynamics_program
from coupler.model import Robot
from coupler.passes import Visit


def projected_rnea_program(robot: Robot) -> Any:
    """The program τ(q, v, a) by the conventional algorithm on the spanning tree: τ = Gᵀ RNEA(p, w, ẇ)."""
    sweep = spanning_sweep(robot, "projected_rnea")
    sweep.inputs("q", "v", "a")
    sweep.output("tau")
    spanning = Spanning(sweep)
    sweep.outward(spread)
    vectors = spanning.vectors
    sweep.call(
        inverse_dynamics_program(spanning.tree), q=vectors["p"], v=vectors["w"], a=vectors["wd"], tau=vectors["f"]
    )
    sweep.outward(project)
    return sweep.build()


def spread(cluster: Visited) -> None:
    """Positions, velocities w = G v and accelerations ẇ = G a + g of all joints."""
    cluster.report_gap()
    cluster.remember()
    write_motion(cluster, cluster.G @ cluster.memory.a + cluster.g)


def project(cluster: Visit[Any, Any]) -> None:
    """Projects forces of all joints onto the independent ones: τ = Gᵀ f."""
    cluster.memory.tau = cluster.G.T @ np.concatenate([body.memory.f for body in cluster.bodies])
