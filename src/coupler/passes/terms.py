"""The terms of actuators in programs: each joint that an actuator acts on, looked at in its own cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.graph import Buffer, Vector, View, constants, fields
from coupler.model import Robot
from coupler.model.actuator_limits import SharedLimit
from coupler.model.actuators import terms_of
from coupler.passes.cluster import Visit
from coupler.passes.records import Record, numbered, provided
from coupler.passes.shape import Shape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows

_ENDLESS = 1e12  # N m, N, rad/s and so on: stands for no limit, so that all numbers stay finite
_TINY = 1e-300  # N m or N: a limit of zero

TermRow = tuple[int, int, int, float]  # the number of an actuator, a link, an entry of its joint, and the gear
Slots = Mapping[str, Vector]  # numbers of all actuators, by the names of fields


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


def visit_actuators(sweep: Sweep[Any, Any], function: Callable[[str], Callable[[View], None]], slots: Slots) -> None:
    """Runs a function for each actuator, made for its kind, that sees its numbers in vectors, its gains and its limits.

    Limits are finite, so that all numbers are: `least` and `most` of the control, `lower` and `upper` of the effort,
    and `fastest`, of the speed.
    """
    actuators = sweep.robot.actuators
    for kind in dict.fromkeys(actuator.kind for actuator in actuators):
        numbers = [i for i, actuator in enumerate(actuators) if actuator.kind == kind]
        known = {
            "stiffness": [actuators[i].stiffness for i in numbers],
            "gain": [actuators[i].damping for i in numbers],
        }
        limits = [(*actuators[i].control, *actuators[i].effort, actuators[i].speed) for i in numbers]
        names = ("least", "most", "lower", "upper", "fastest")
        known |= dict(zip(names, np.clip(limits, -_ENDLESS, _ENDLESS).T, strict=True))
        window = fields(**{name: buffer.at(numbers) for name, buffer in slots.items()})
        window |= fields(**{name: constants(np.array(values)) for name, values in known.items()})
        sweep.builder.loop(function(kind), own=window)


def share_limits(sweep: Sweep[Any, Any], shared: Sequence[SharedLimit], forces: Vector) -> None:
    """Writes the steps that weaken forces of actuators, by one factor, where their sum at a joint passes its limit.

    Args:
        sweep: the program.
        shared: limits, and who shares them.
        forces: of all actuators, within limits of their own.
    """
    for shape in dict.fromkeys(np.shape(own.gears) for own in shared):
        alike = [own for own in shared if np.shape(own.gears) == shape]
        window = fields(limits=constants([own.limits for own in alike]), gears=constants([own.gears for own in alike]))
        for i, numbers in enumerate(zip(*(own.members for own in alike), strict=True)):
            window |= fields(**{numbered("force", i): forces.at(numbers)})
        sweep.builder.loop(_sharing(shape[1]), own=window)


def _sharing(size: int) -> Callable[[View], None]:
    def share_limit(own: View) -> None:
        names = [numbered("force", i) for i in range(size)]
        totals, factor = own.gears @ np.array([getattr(own, name) for name in names]), 1.0
        for total, limit in zip(totals, own.limits, strict=True):
            factor = np.minimum(factor, limit / np.maximum(np.maximum(np.abs(total), limit), _TINY))
        for name in names:
            setattr(own, name, factor * getattr(own, name))

    return share_limit


def actuators_by_cluster(robot: Robot) -> dict[int, list[int]]:
    """The numbers of the actuators that act in each cluster."""
    own: dict[int, list[int]] = {}
    for number, actuator in enumerate(robot.actuators):
        for k in sorted({robot.cluster_tree.cluster_of[link] for link, _, _ in terms_of(robot, actuator)}):
            own.setdefault(k, []).append(number)
    return own


def row_of(cluster: Visit[Any, Any], i: int, j: int) -> Any:
    """The row of G that belongs to entry j of the cluster's joint i."""
    return cluster.G[cluster.shape.starts[i] + j]


def position_of(cluster: Visit[Any, Any], i: int, j: int) -> Any:
    """The position of entry j of joint i; nothing, of a joint that turns as a ball does."""
    return cluster.q[i][j] if cluster.shape.kinds[i].nq == cluster.shape.kinds[i].nv else np.array(0.0)


def cleared(sweep: Sweep[Any, Any], buffer: Buffer) -> Buffer:
    """A vector that begins with zeros."""
    if buffer.size:
        sweep.builder.loop(_clear, total=fields(x=buffer.at(range(buffer.size))))
    return buffer


def _clear(total: View) -> None:
    total.x = np.array(0.0)
