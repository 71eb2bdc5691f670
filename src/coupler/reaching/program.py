"""Newton's way to positions of actuators, as a program: all clusters at once, each by its own linear system.

A cluster with a solution γ moves by its independent joints, so that A dy = u* − u. [003, §III] One without moves by all
of its joints: K dw = −φ closes its loops beside R dw = u* − u, where R has the gears. Either system is square where a
cluster has as many actuators as freedoms.

Whether the answer is on the branch on which it starts is told by how fast steps shrink: where each is at most half as
long as the one before, there is one solution in the ball that they span, and no singular pose. [Deuflhard, Newton
methods for nonlinear problems, §2.1: the theorem of Newton and Mysovskikh, its constant estimated by the steps]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.graph import Program, View, fields
from coupler.linear import solve
from coupler.model import Robot
from coupler.model.embedding.kernels import copy
from coupler.passes import (
    ActuatedRecord,
    ClusterRecord,
    ClusterWindows,
    Record,
    Shape,
    Sweep,
    Visit,
    entry,
    has_square_clusters,
    of_actuators,
    position_of,
    provided,
    visit_actuated,
)

__all__ = ["SETTLED", "is_answered_by_program", "reach_program"]

_ROUNDS = 12  # steps at most: five are usual
SETTLED = 1e-12  # rad or m: a step so short is the last
_SHORT = 1e-8  # rad or m: of shorter steps, rounding may decide how they shrink
_LARGEST = 16  # joint velocities of a cluster without a solution: a larger system takes long to compile


class Reaching(ClusterRecord):
    """What a cluster knows of its way.

    Attributes:
        last: the longest entry of its last step, rad or m.
        longest: the longest entry of the last step of all clusters, rad or m.
        growth: the largest ratio of a step to the one before.
    """

    last = entry(())
    longest, growth = provided(), provided()


def is_answered_by_program(robot: Robot) -> bool:
    """Whether `reach_program` takes a robot: its systems are square, and not too large."""
    pairs = zip(robot.embedding.closure.loops, robot.embedding.explicit, strict=True)
    largest = max((len(loop.columns) for loop, explicit in pairs if not explicit), default=0)
    return has_square_clusters(robot) and largest <= _LARGEST and not robot.tree.all_rows


def reach_program(robot: Robot) -> Program:
    """The program (near, positions) → q, progress, of a robot of which `is_answered_by_program` holds.

    The result q has actuators at these positions. Of the progress, the first number is how long the last step was, and
    the second the largest ratio of a step to the one before.
    """
    sweep = Sweep(robot, "reach", cluster=Reaching)
    builder = sweep.builder
    near, targets = builder.input("near", robot.nq), builder.input("positions", len(robot.actuators))
    q, progress = builder.scratch("q", robot.nq), builder.scratch("progress", 2)
    result, told = sweep.result("configuration", robot.nq), sweep.result("told", 2)
    own = fields(longest=progress.at(0), growth=progress.at(1))
    builder.loop(copy, entry=fields(source=near.at(range(robot.nq)), target=q.at(range(robot.nq))))
    builder.loop(_start, progress=own)
    sweep.vectors["q"] = q

    def provide(windows: ClusterWindows, shape: Shape, clusters: list[int]) -> None:
        places = enumerate(("longest", "growth"))
        windows.cluster |= {name: progress.at([i] * len(clusters)) for i, name in places}

    sweep.outward(_begin)
    with builder.repeat(until=_settled, at_most=_ROUNDS, progress=own):
        builder.loop(_begin_round, progress=own)
        sweep.forget()
        visit_actuated(sweep, _step, {"target": targets}, provide)
    builder.loop(copy, entry=fields(source=q.at(range(robot.nq)), target=result.at(range(robot.nq))))
    builder.loop(copy, entry=fields(source=progress.at(range(2)), target=told.at(range(2))))
    return sweep.build()


def _begin(cluster: Visit[Record, Reaching]) -> None:
    cluster.report_gap(moving=False)
    cluster.memory.last = np.array(0.0)


def _step(cluster: Visit[Record, Reaching]) -> None:
    """One step of a cluster by Newton's method, and how its length compares with that of the last."""
    memory, shape, gears = cluster.memory, cluster.shape, ActuatedRecord(cluster.views.cluster).gears
    entries = [(i, j) for i, kind in enumerate(shape.kinds) for j in range(kind.nv)]
    positions = np.array([position_of(cluster, i, j) for i, j in entries])
    missing = of_actuators(cluster, "target") - gears @ positions
    if shape.solved:
        w = np.zeros(len(entries)) + 0.0 * missing[0]
        w[shape.independent] = solve(gears @ cluster.G, missing)
    else:
        w = solve(np.concatenate([cluster.loops.K, gears]), np.concatenate([-cluster.loops.residuals(), missing]))
    for i, (joint, kind) in enumerate(zip(cluster.views.joints, shape.kinds, strict=True)):
        if shape.stored[i]:
            joint.q = kind.normalize(kind.integrate(joint.q, w[shape.starts[i] : shape.starts[i + 1]]))
    longest = np.array(0.0)
    for value in w:
        longest = np.maximum(longest, np.abs(value))
    known = memory.last > _SHORT
    memory.growth = np.maximum(memory.growth, np.where(known, longest / np.where(known, memory.last, 1.0), 0.0))
    memory.last, memory.longest = longest, np.maximum(memory.longest, longest)


# Kernels of the whole robot


def _start(progress: View) -> None:
    progress.longest, progress.growth = np.array(1.0), np.array(0.0)


def _begin_round(progress: View) -> None:
    progress.longest = np.array(0.0)


def _settled(progress: View) -> Any:
    return progress.longest < SETTLED
