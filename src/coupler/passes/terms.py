"""The terms of actuators in programs: a term is one joint freedom that an actuator acts on, visited in its cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.graph import Buffer, Vector, View, constants, fields
from coupler.model import Robot
from coupler.model.actuator_limits import SharedLimit
from coupler.model.actuators import terms_of
from coupler.model.tolerances import TINY
from coupler.passes.cluster import Visit
from coupler.passes.records import Record, numbered, provided
from coupler.passes.shape import ClusterShape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows

_UNLIMITED = 1e12  # N m, N, rad/s and so on: stands for no limit, so that all numbers stay finite

TermRow = tuple[int, int, int, float]  # the number of an actuator, a link, an entry of the link's joint, and the gear
Slots = Mapping[str, Vector]  # vectors over all actuators, by the names of fields


class TermRecord(Record):
    """The fields that a cluster sees of one term of an actuator."""

    gear = provided()
    reach = provided()  # how far it moves per unit of the joint's position: its gear, or zero if gears are measured
    total = provided()  # the actuator's entry of a result that is a sum over its terms
    force = provided()  # the actuator's force


def visit_terms(sweep: Sweep[Any, Any], function: Callable[[Any, int, int], None], slots: Slots, *more: Any) -> None:
    """Runs a function for each term of each actuator.

    Gears that depend on poses must have been measured; see `measure_gears`.

    Args:
        function: takes the cluster, the number of a body in it and an entry of that body's joint. It reads and writes a
            `TermRecord`.
        slots: vectors over all actuators; a term sees its actuator's entry of each.
        more: further functions (windows, shape, rows) that provide fields, given all rows of a kernel.
    """
    robot, schedule = sweep.robot, sweep.schedule()

    def provide(windows: ClusterWindows, shape: ClusterShape, rows: list[TermRow]) -> None:
        numbers = [row[0] for row in rows]
        if robot.actuators[numbers[0]].along is None:
            windows.cluster["gear"] = windows.cluster["reach"] = constants(np.array([row[3] for row in rows]))
        else:
            assert sweep.gears is not None
            windows.cluster |= {"gear": sweep.gears.at(rows), "reach": constants(np.zeros(len(rows)))}
        windows.cluster |= {name: buffer.at(numbers) for name, buffer in slots.items()}
        for add in more:
            add(windows, shape, rows)

    for number, actuator in enumerate(robot.actuators):
        for link, j, gear in terms_of(robot, actuator):
            k, i = sweep.number_in_cluster(link)
            key = i, j, actuator.along is None
            sweep.visit(schedule, function, k, i, j, key=key, row=(number, link, j, gear), provide=provide)
    schedule.run()


def visit_actuators(sweep: Sweep[Any, Any], function: Callable[[str], Callable[[View], None]], slots: Slots) -> None:
    """Runs a function for each actuator, made for its kind, that sees its entries of vectors, its gains and its limits.

    The limits are `least` and `most` for the control, `lower` and `upper` for the effort, and `fastest` for the speed.
    They are finite even for unlimited actuators.
    """
    actuators = sweep.robot.actuators
    for kind in dict.fromkeys(actuator.kind for actuator in actuators):
        numbers = [i for i, actuator in enumerate(actuators) if actuator.kind == kind]
        numbers_of = {
            "stiffness": [actuators[i].stiffness for i in numbers],
            "gain": [actuators[i].damping for i in numbers],
        }
        limits = [(*actuators[i].control, *actuators[i].effort, actuators[i].speed) for i in numbers]
        names = ("least", "most", "lower", "upper", "fastest")
        numbers_of |= dict(zip(names, np.clip(limits, -_UNLIMITED, _UNLIMITED).T, strict=True))
        window = fields(**{name: buffer.at(numbers) for name, buffer in slots.items()})
        window |= fields(**{name: constants(np.array(values)) for name, values in numbers_of.items()})
        sweep.builder.loop(function(kind), actuator=window)


def share_limits(sweep: Sweep[Any, Any], shared: Sequence[SharedLimit], forces: Vector) -> None:
    """Writes the steps that scale down the forces of actuators, by a common factor, where they exceed a joint's limit.

    Args:
        shared: limits, and the actuators that share them.
        forces: the forces of all actuators, within their own limits.
    """
    for shape in dict.fromkeys(np.shape(limit.gears) for limit in shared):
        group = [limit for limit in shared if np.shape(limit.gears) == shape]
        window = fields(
            limits=constants([limit.limits for limit in group]), gears=constants([limit.gears for limit in group])
        )
        for i, numbers in enumerate(zip(*(limit.members for limit in group), strict=True)):
            window |= fields(**{numbered("force", i): forces.at(numbers)})
        sweep.builder.loop(_sharing(shape[1]), shared=window)


def _sharing(size: int) -> Callable[[View], None]:
    """The kernel for a limit that so many actuators share."""

    def share_limit(shared: View) -> None:
        names = [numbered("force", i) for i in range(size)]
        totals, factor = shared.gears @ np.array([getattr(shared, name) for name in names]), 1.0
        for total, limit in zip(totals, shared.limits, strict=True):
            factor = np.minimum(factor, limit / np.maximum(np.maximum(np.abs(total), limit), TINY))
        for name in names:
            setattr(shared, name, factor * getattr(shared, name))

    return share_limit


def actuators_by_cluster(robot: Robot) -> dict[int, list[int]]:
    """The numbers of the actuators that act in each cluster."""
    numbers: dict[int, list[int]] = {}
    for number, actuator in enumerate(robot.actuators):
        for k in sorted({robot.cluster_tree.cluster_of[link] for link, _, _ in terms_of(robot, actuator)}):
            numbers.setdefault(k, []).append(number)
    return numbers


def row_of(cluster: Visit[Any, Any], i: int, j: int) -> Any:
    """The row of G that belongs to entry j of the cluster's joint i."""
    return cluster.G[cluster.shape.starts[i] + j]


def position_of(cluster: Visit[Any, Any], i: int, j: int) -> Any:
    """The position of entry j of joint i; zero for ball and free joints, whose entries have no position."""
    return cluster.q[i][j] if cluster.shape.kinds[i].nq == cluster.shape.kinds[i].nv else np.array(0.0)


def cleared(sweep: Sweep[Any, Any], buffer: Buffer) -> Buffer:
    """The vector, which the program sets to zero first."""
    if buffer.size:
        sweep.builder.loop(_clear, total=fields(x=buffer.at(range(buffer.size))))
    return buffer


def _clear(total: View) -> None:
    total.x = np.array(0.0)
