"""Forward dynamics in tangent coordinates of loops, which also work at dead points: the passes of aba.py.

At a dead point, independent joints do not determine the others, and v does not describe the motion of a loop. The
velocities w of all its joints do: with an orthonormal basis N of the null space of K, w = N ẏ and ẇ = N ÿ + K⁺ k (see
`Visit`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coupler.algorithms import aba
from coupler.model import Robot
from coupler.passes import (
    ClusterRecord,
    ClusterShape,
    ClusterWindows,
    Coordinate,
    Record,
    Sweep,
    Visit,
    add_loads,
    provided,
)


class ClusterMemory(aba.ClusterMemory):
    """What C-ABA remembers, and a cluster's velocities: as given, projected onto its loops (fit), and along N."""

    v, v_given, v_fit, tau_given = Coordinate(), Coordinate(), Coordinate(), Coordinate()


class FittedCluster(ClusterRecord):
    v, v_fit = Coordinate(), Coordinate()


class FittedJoint(Record):
    """A joint in a loop without a solution: its velocity as given and as projected, and its acceleration."""

    w, w_fit, w_rate = provided(), provided(), provided()


Visited = Visit[aba.BodyMemory, ClusterMemory]


def loop_dynamics_program(robot: Robot, external: bool = False) -> Any:
    """The program (q, v, w, tau) → v̇, ẇ, and v and w projected onto the loops.

    v has the velocities of independent joints; its entries in loops without a solution are ignored. w has the
    velocities of all joints in such loops, in the order of `unsolved_links`. It need not satisfy K w = 0 exactly, as it
    is replaced by N Nᵀ w.

    Args:
        external: whether forces on bodies are a further input, `f_ext`.
    """
    sweep = Sweep(
        robot,
        "loop_dynamics",
        body=aba.BodyMemory,
        cluster=ClusterMemory,
        loaded=external or bool(robot.elements),
        leaf_clusters=True,
        tangent=True,
        oriented=(),
    )
    count = len(robot.embedding.unsolved_entries)
    sweep.inputs("q")
    given = {"v": sweep.builder.input("v", robot.nv)}
    w = {"w": sweep.input("w", count)}
    given["tau"] = sweep.builder.input("tau", robot.nv)
    sweep.output("a")
    w["w_rate"] = sweep.result("w_rate", count)
    sweep.output("v_fit")
    w["w_fit"] = sweep.result("w_fit", count)
    for name, vector in given.items():
        sweep.vectors |= {f"{name}_given": vector, name: sweep.builder.scratch(f"own_{name}", robot.nv)}
    _provide(sweep, w)
    sweep.outward(outward)
    add_loads(sweep, external)
    sweep.inward(aba.inward)
    sweep.outward(accelerate)
    return sweep.build()


def loop_velocities_program(robot: Robot) -> Any:
    """The program (q, v, w) → v and w projected onto the loops; see `loop_dynamics_program`."""
    sweep = Sweep(robot, "loop_velocities", cluster=FittedCluster, tangent=True, oriented=())
    count = len(robot.embedding.unsolved_entries)
    sweep.inputs("q", "v")
    w = {"w": sweep.input("w", count)}
    sweep.output("v_fit")
    w["w_fit"] = sweep.result("w_fit", count)
    _provide(sweep, w)
    sweep.outward(fit)
    return sweep.build()


def _provide(sweep: Sweep[Any, Any], w: Mapping[str, Any]) -> None:
    """Gives joints in loops without a solution their parts of vectors over all such joints."""
    tree, entries = sweep.robot.tree, sweep.robot.embedding.unsolved_entries
    place = np.zeros(tree.nv, int)
    place[entries] = np.arange(len(entries))

    def provide(windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int]) -> None:
        for i, kind in enumerate(shape.kinds if not shape.solved else ()):
            at = place[tree.v_start[[sweep.instances[k].links[i] for k in clusters]]]
            windows.joints[i] |= {name: vector.at(at, kind.nv) for name, vector in w.items()}

    sweep.provide = provide


def outward(cluster: Visited) -> None:
    """Velocities and forces along the cluster's basis N; then forward pass #1 of C-ABA."""
    memory, shape = cluster.memory, cluster.shape
    memory.v, memory.tau = memory.v_given, memory.tau_given
    if cluster.tangent:
        memory.v = cluster.G.T @ np.concatenate([FittedJoint(view).w for view in cluster.views.joints])
        memory.tau = cluster.G[shape.independent].T @ memory.tau_given
    aba.outward(cluster)


def accelerate(cluster: Visited) -> None:
    """Forward pass #2 of C-ABA; then ẇ = N ÿ + g, and w = N ẏ."""
    aba.accelerate(cluster)
    memory, independent = cluster.memory, cluster.shape.independent
    memory.v_fit = memory.v
    if cluster.tangent:
        rate, fit = cluster.G @ memory.a + cluster.g, cluster.w
        memory.a, memory.v_fit = rate[independent], fit[independent]
        for body, view in zip(cluster.bodies, cluster.views.joints, strict=True):
            joint = FittedJoint(view)
            joint.w_rate, joint.w_fit = rate[body.entries], fit[body.entries]


def fit(cluster: Visit[Record, FittedCluster]) -> None:
    """Projects velocities onto the loops: w := N Nᵀ w, of which v is a part."""
    cluster.report_gap(moving=False)
    memory = cluster.memory
    memory.v_fit = memory.v
    if cluster.tangent:
        w = cluster.G @ (cluster.G.T @ np.concatenate([FittedJoint(view).w for view in cluster.views.joints]))
        memory.v_fit = w[cluster.shape.independent]
        for body, view in zip(cluster.bodies, cluster.views.joints, strict=True):
            FittedJoint(view).w_fit = w[body.entries]
