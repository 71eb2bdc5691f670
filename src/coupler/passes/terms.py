"""The terms of actuators in programs: each joint that an actuator acts on, looked at in its own cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.graph import Buffer, Vector, View, constants, fields
from coupler.model.actuators import terms_of
from coupler.passes.cluster import Visit
from coupler.passes.records import Record, provided
from coupler.passes.shape import Shape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows

__all__ = ["TermRecord", "TermRow", "cleared", "position_of", "row_of", "visit_terms"]

TermRow = tuple[int, int, int, float]  # the number of an actuator, a link, an entry of its joint, and the gear
Slots = dict[str, Vector]  # numbers of all actuators, by the names of fields


class TermRecord(Record):
    """What a cluster sees of one term of an actuator."""

    gear = provided()
    told, force = provided(), provided()  # what the actuator gets, and its force


def visit_terms(sweep: Sweep[Any, Any], function: Callable[[Any, int, int], None], slots: Slots, *more: Any) -> None:
    """Runs a function of a cluster, and of the number of body and entry in it, for each term of all actuators.

    Args:
        sweep: the program.
        function: reads and writes a `TermRecord`.
        slots: vectors over all actuators; a term has its actuator's number of each.
        more: further functions (windows, shape, rows) that provide fields, given all rows of a kernel.
    """
    robot, schedule = sweep.robot, sweep.schedule()

    def provide(windows: ClusterWindows, shape: Shape, rows: list[TermRow]) -> None:
        numbers = [row[0] for row in rows]
        windows.cluster["gear"] = constants(np.array([row[3] for row in rows]))
        windows.cluster |= {name: buffer.at(numbers) for name, buffer in slots.items()}
        for add in more:
            add(windows, shape, rows)

    for number, actuator in enumerate(robot.actuators):
        for link, j, gear in terms_of(robot, actuator):
            k, i = sweep.number_in_cluster(link)
            sweep.visit(schedule, function, k, i, j, key=(i, j), row=(number, link, j, gear), provide=provide)
    schedule.run()


def row_of(cluster: Visit[Any, Any], i: int, j: int) -> Any:
    """The row of G that belongs to entry j of the cluster's joint i."""
    return cluster.G[cluster.shape.starts[i] + j]


def position_of(cluster: Visit[Any, Any], i: int, j: int) -> Any:
    """The position of entry j of joint i; nothing, of a joint that turns as a ball does."""
    return cluster.q[i][j] if cluster.shape.kinds[i].nq == cluster.shape.kinds[i].nv else np.array(0.0)


def cleared(sweep: Sweep[Any, Any], name: str, size: int) -> Buffer:
    """A result that begins with zeros."""
    buffer = sweep.result(name, size)
    if size:
        sweep.builder.loop(_clear, total=fields(x=buffer.at(range(size))))
    return buffer


def _clear(total: View) -> None:
    total.x = np.array(0.0)
