"""Newton's method for positions of actuators, as a program: all clusters at once, by linear systems of their groups.

With a basis of the velocities that loops allow, w = G z, actuators move by R G z, where R holds the gears. [003, §III]
Each step moves them by u* − u, as far as possible, and loops without a solution by −K⁺ φ closer to closed. If there are
fewer actuators than freedoms, the step is the shortest one; if there are more, the one that comes closest. [Deuflhard,
Newton methods for nonlinear problems, §4.3 and §4.4: the method of Gauss and Newton]

The rate at which steps shrink shows whether the result is on the branch of the start. If each is at most half as long
as the one before, there is one solution in the ball that they span, and no singular pose; with fewer actuators than
freedoms, no pose in which their rank drops. [ibid., §2.1: the theorem of Newton and Mysovskikh, its constant estimated
from the steps]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.actuation import write_rows
from coupler.graph import Part, Program, View, fields
from coupler.linear import least_squares
from coupler.model import Robot
from coupler.model.embedding.kernels import copy
from coupler.passes import (
    ActuatedGroups,
    ClusterRecord,
    ClusterShape,
    ClusterWindows,
    Coordinate,
    Record,
    Sweep,
    TermRecord,
    Visit,
    cleared,
    entry,
    have_full_rank,
    posed_actuators,
    position_of,
    provided,
    visit_terms,
)

_ROUNDS = 12  # the most steps: five are usual
SETTLED = 1e-12  # rad or m: a step shorter than this is the last
_SHORT = 1e-8  # rad or m: rounding may affect the ratios of shorter steps
_LARGEST = 30  # the most joint velocities of a cluster without a solution: larger ones take long to compile


class Reaching(ClusterRecord):
    """The progress of a cluster.

    Attributes:
        z: its step along a basis of the velocities that its loops allow.
        shift: the step that closes loops without a solution: −K⁺ φ.
        last: the longest entry of its last step, rad or m.
        longest: the longest entry of the last step of all clusters, rad or m.
        growth: the largest ratio of a step to the one before.
    """

    z = Coordinate()
    shift = entry(lambda shape: None if shape.solved else int(shape.starts[-1]))
    last = entry(())
    longest, growth = provided(), provided()


Visited = Visit[Record, Reaching]


def is_answered_by_program(robot: Robot) -> bool:
    """Whether `reach_program` can handle a robot: its clusters without a solution must not be too large.

    Its gears must be numbers, and not depend on the pose.

    No group of these may have a lower rank than both its actuators and its freedoms: in a basis that changes with the
    configuration, it is not known which columns span the others.
    """
    pairs = zip(robot.embedding.closure.loops, robot.embedding.explicit, strict=True)
    implicit = [loop for loop, explicit in pairs if not explicit]
    largest = max((len(loop.columns) for loop in implicit), default=0)
    clusters = {robot.cluster_tree.cluster_of[loop.links[0]] for loop in implicit}
    plain = not robot.tree.all_rows and not posed_actuators(robot)
    return plain and largest <= _LARGEST and have_full_rank(robot, clusters)


def reach_program(robot: Robot) -> Program:
    """The program (near, positions) → q, progress, of a robot of which `is_answered_by_program` holds.

    In the result q, actuators have these positions. The progress is the length of the last step, the largest ratio of a
    step to the one before, and the distance from the positions.
    """
    sweep = Sweep(robot, "reach", cluster=Reaching, leaf_clusters=True, tangent=True)
    builder, count = sweep.builder, len(robot.actuators)
    near, targets = builder.input("near", robot.nq), builder.input("positions", count)
    q, progress = builder.scratch("q", robot.nq), builder.scratch("progress", 5)
    missing, z = sweep.scratch("missing", count), sweep.vector("z")
    result, outcome = sweep.result("configuration", robot.nq), sweep.result("progress_out", 3)
    state = fields(longest=progress.at(0), growth=progress.at(1), missed=progress.at(4))
    builder.loop(copy, entry=fields(source=near.at(range(robot.nq)), target=q.at(range(robot.nq))))
    builder.loop(_start, progress=state)
    sweep.vectors["q"] = q
    groups = ActuatedGroups(sweep)

    def each_cluster(function: Callable[[Visited], None]) -> None:
        schedule = sweep.schedule()
        for k in groups.clusters:
            sweep.visit(schedule, function, k, provide=provide)
        schedule.run()

    def provide(windows: ClusterWindows, shape: ClusterShape, clusters: list[int]) -> None:
        places = enumerate(("longest", "growth"))
        windows.cluster |= {name: progress.at([i] * len(clusters)) for i, name in places}

    sweep.outward(_begin)
    with builder.repeat(until=_settled, at_most=_ROUNDS, progress=state):
        builder.loop(_begin_round, progress=state)
        builder.loop(copy, entry=fields(source=targets.at(range(count)), target=missing.at(range(count))))
        sweep.forget()
        each_cluster(_look)
        visit_terms(sweep, _subtract, {"total": missing})
        write_rows(sweep, cleared(sweep, groups.A), groups.place)
        groups.write(_step, z, False, Part(progress, 2, 3), missing, {"missing": (missing, True)})
        each_cluster(_move)
    builder.loop(copy, entry=fields(source=q.at(range(robot.nq)), target=result.at(range(robot.nq))))
    builder.loop(copy, entry=fields(source=progress.at([0, 1, 4]), target=outcome.at(range(3))))
    return sweep.build()


def _begin(cluster: Visited) -> None:
    cluster.report_gap(moving=False)
    cluster.memory.last = np.array(0.0)


def _look(cluster: Visited) -> None:
    cluster.remember_positions()
    if not cluster.shape.solved:
        cluster.memory.shift = -(cluster.K_inverse @ cluster.loops.residuals())


def _subtract(cluster: Visited, i: int, j: int) -> None:
    """Subtracts from an actuator's target its position once loops are closed."""
    term, position = TermRecord(cluster.views.cluster), position_of(cluster, i, j)
    if not cluster.shape.solved:
        position = position + cluster.memory.shift[cluster.shape.starts[i] + j]
    term.total = term.total - term.gear * position


def _step(A: Any, spanning: Sequence[int], missing: Any) -> tuple[Any, Any]:
    size = np.sqrt(np.sum(A * A, axis=1))  # large gears must not hide small ones
    z = least_squares(A / size[:, None], missing / size, spanning)
    return z, A @ z - missing


def _move(cluster: Visited) -> None:
    """Takes a cluster's step, and compares its length with the one before."""
    memory, shape = cluster.memory, cluster.shape
    w = np.zeros(int(shape.starts[-1])) + 0.0 * memory.z[0]
    if shape.solved:
        w[shape.independent] = memory.z
    else:
        w = cluster.G @ memory.z + memory.shift
    for i, (joint, kind) in enumerate(zip(cluster.views.joints, shape.kinds, strict=True)):
        if shape.stored[i]:
            joint.q = kind.normalize(kind.integrate(joint.q, w[shape.starts[i] : shape.starts[i + 1]]))
    longest = np.array(0.0)
    for value in w:
        longest = np.maximum(longest, np.abs(value))
    measurable = memory.last > _SHORT
    ratio = longest / np.where(measurable, memory.last, 1.0)
    memory.growth = np.maximum(memory.growth, np.where(measurable, ratio, 0.0))
    memory.last, memory.longest = longest, np.maximum(memory.longest, longest)


# Kernels of the whole robot


def _start(progress: View) -> None:
    progress.longest, progress.growth, progress.missed = np.array(1.0), np.array(0.0), np.array(0.0)


def _begin_round(progress: View) -> None:
    progress.longest = np.array(0.0)


def _settled(progress: View) -> Any:
    return progress.longest < SETTLED
