"""Gears that depend on the pose, in programs: those of cables, slider-cranks and wrenches, joint by joint.

A transmission acts on its ends with spatial forces F (see model/transmissions.py). A joint with the motion subspace S
feels Sᵀ Σ F of the ends that it carries: that is its gear, by which it is then a term of the actuator like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.graph import Buffer, Slot, Vector, View, Window, constants, fields, jvp
from coupler.grouping import grouped
from coupler.model import Robot
from coupler.model.actuators import path_of
from coupler.model.transmissions import Transmission, displaced
from coupler.passes.along_joints import across_joints
from coupler.passes.body import Body, Moving
from coupler.passes.cluster import Visit
from coupler.passes.records import Record, entry, numbered, provided
from coupler.passes.shape import ClusterShape
from coupler.passes.sweep import Sweep
from coupler.passes.windows import ClusterWindows
from coupler.spatial import Transform


class PlacedBody(Record):
    """The memory that carriers need where gears depend on poses."""

    E, r = entry((3, 3)), entry(3)
    v, a = entry(6), entry(6)


class EndRecord(Record):
    """The fields that a cluster sees of an end of a transmission."""

    end_E, end_r = provided(), provided()
    end_v, end_a = provided(), provided()  # velocity and acceleration, in the world about its origin
    gears = provided()  # of a joint that carries ends


def posed_actuators(robot: Robot) -> dict[int, Transmission]:
    """The transmissions whose gears depend on the pose, by the numbers of their actuators."""
    along = {i: actuator.along for i, actuator in enumerate(robot.actuators)}
    return {i: way for i, way in along.items() if way is not None and not way.by_contact}


def actuated_body(robot: Robot) -> type[Record]:
    """The record of bodies in programs that measure gears and need nothing else of bodies."""
    return PlacedBody if posed_actuators(robot) else Record


def measure_gears(sweep: Sweep[Any, Any]) -> None:
    """Writes the steps that compute gears at the poses of clusters, for `visit_terms`; nothing where gears are numbers.

    An earlier pass has remembered the clusters.
    """
    if posed_actuators(sweep.robot):
        sweep.gears = sweep.gears or MeasuredGears(sweep)
        sweep.gears.measure()


def add_positions(sweep: Sweep[Any, Any], totals: Vector) -> None:
    """Adds the positions of transmissions whose gears have been measured, to a vector over actuators."""
    if sweep.gears:
        numbers = sweep.gears.actuators
        row = fields(total=totals.at(numbers), position=sweep.gears.positions.at(range(len(numbers))))
        sweep.builder.loop(_add_position, row=row)


def accelerate_transmissions(sweep: Sweep[Any, Any], totals: Vector) -> None:
    """Puts ü of actuators whose gears have been measured in their place, in a vector over actuators."""
    if sweep.gears:
        sweep.gears.accelerate(totals)


Flags = tuple[bool, ...]
Alike = tuple[Transmission, Flags, Window]


@dataclass(frozen=True)
class _End:
    """An end of a transmission: the number of its actuator, its own number, its link, and its place there."""

    actuator: int
    number: int
    link: int
    at: Transform


class MeasuredGears:
    """The gears of a robot's actuators that depend on poses.

    Attributes:
        actuators: the numbers of these actuators.
        positions: their positions u, in this order.
    """

    def __init__(self, sweep: Sweep[Any, Any]) -> None:
        self._sweep, robot, builder = sweep, sweep.robot, sweep.builder
        self._along = posed_actuators(robot)
        self.actuators = list(self._along)
        self._paths = {i: path_of(robot, along, robot.actuators[i].name) for i, along in self._along.items()}
        self._ends = {
            i: [
                _End(i, number, robot.tree.place[end.body][0], end.at @ robot.tree.place[end.body][1])
                for number, end in enumerate(along.ends)
            ]
            for i, along in self._along.items()
        }
        self.positions: Buffer = builder.scratch("transmission_positions", len(self.actuators))
        self._pose, self._forces, self._gears = (sweep.store(f"transmission_{x}") for x in ("ends", "forces", "gears"))
        for ends in self._ends.values():
            for end in ends:
                if end.link:
                    for name, shape in _OF_ENDS.items():
                        self._pose.add((name, end.link), shape)
                self._forces.add((end.actuator, end.number), 6)
        for i, path in self._paths.items():
            for link in path:
                self._gears.add((i, link), robot.tree.links[link].kind.nv)

    def at(self, rows: Sequence[tuple[int, int, int, float]]) -> Slot:
        """The gears of terms: an actuator, a link, and an entry of its joint each."""
        return self._gears.buffer.at([self._gears.starts[i, link] + j for i, link, j, _ in rows])

    def of_clusters(self, steps: Sequence[tuple[int, int]]) -> Slot:
        """All gears of an actuator in a cluster, in the order of its terms, for actuators and clusters of one shape."""
        first, size = [], 0
        for i, k in steps:
            links = [link for link in self._paths[i] if self._sweep.robot.cluster_tree.cluster_of[link] == k]
            first.append(self._gears.starts[i, links[0]])
            size = sum(self._sweep.robot.tree.links[link].kind.nv for link in links)
        return self._gears.buffer.at(first, size)

    def measure(self) -> None:
        """Writes the steps of `measure_gears`."""
        self._sweep.outward(_place, carriers=True)
        self._visit_ends(_locate_end, ("end_E", "end_r"))
        for along, moving, window in self._alike(("end_E", "end_r")):
            self._sweep.builder.loop(_measuring(along, moving), row=window)
        schedule = self._sweep.schedule()

        def provide(windows: ClusterWindows, shape: ClusterShape, rows: list[tuple[int, int]]) -> None:
            ends = zip(*(self._paths[i][link] for i, link in rows), strict=True)
            for number, column in enumerate(ends):
                keys = [(i, end) for (i, _), end in zip(rows, column, strict=True)]
                windows.cluster[numbered("force", number)] = self._forces.at(keys)
            windows.cluster["gears"] = self._gears.at(rows)

        for i, path in self._paths.items():
            for link, ends in path.items():
                k, number = self._sweep.number_in_cluster(link)
                key, count = (number, len(ends)), len(ends)
                self._sweep.visit(schedule, _measure_gear, k, number, count, key=key, row=(i, link), provide=provide)
        schedule.run()

    def accelerate(self, totals: Vector) -> None:
        """Writes the steps that compute ü of these actuators, into a vector over all actuators.

        Clusters have the accelerations `a` of independent joints in memory.
        """
        self._sweep.outward(_accelerate, carriers=True, new_velocities=True)
        self._visit_ends(_locate_motion, tuple(_OF_ENDS))
        for along, moving, window in self._alike(tuple(_OF_ENDS), totals):
            self._sweep.builder.loop(_accelerating(along, moving), row=window)

    def _visit_ends(self, function: Any, names: Sequence[str]) -> None:
        schedule, links = self._sweep.schedule(), {end.link for ends in self._ends.values() for end in ends if end.link}

        def provide(windows: ClusterWindows, shape: ClusterShape, rows: list[int]) -> None:
            windows.cluster |= {name: self._pose.at([(name, link) for link in rows]) for name in names}

        for link in sorted(links):
            k, number = self._sweep.number_in_cluster(link)
            self._sweep.visit(schedule, function, k, number, key=number, row=link, provide=provide)
        schedule.run()

    def _alike(self, names: Sequence[str], totals: Vector | None = None) -> Iterator[Alike]:
        """Transmissions that differ in numbers alone: one of them, whether its ends move, and a kernel's window."""

        def kind(i: int) -> Any:
            return *self._along[i].key, tuple(end.link > 0 for end in self._ends[i])

        for numbers in grouped(self.actuators, kind).values():
            window = fields(numbers=constants([self._along[i].numbers for i in numbers]))
            window |= fields(position=self.positions.at([self.actuators.index(i) for i in numbers]))
            if totals is not None:
                window |= fields(total=totals.at(numbers))
            for column in zip(*(self._ends[i] for i in numbers), strict=True):
                slots: dict[str, Any] = {"at_E": constants([end.at.E for end in column])}
                slots["at_r"] = constants([end.at.r for end in column])
                slots["force"] = self._forces.at([(end.actuator, end.number) for end in column])
                if column[0].link:
                    slots |= {name: self._pose.at([(name, end.link) for end in column]) for name in names}
                window |= fields(**{numbered(name, column[0].number): slot for name, slot in slots.items()})
            yield self._along[numbers[0]], tuple(end.link > 0 for end in self._ends[numbers[0]]), window


_OF_ENDS: dict[str, Any] = {"end_E": (3, 3), "end_r": 3, "end_v": 6, "end_a": 6}

# Kernels of clusters


def _place(cluster: Visit[Any, Any]) -> None:
    for body in cluster.carriers:
        memory = Moving(body.memory.view)
        memory.E, memory.r = body.pose.E, body.pose.r


def _locate_end(cluster: Visit[Any, Any], number: int) -> None:
    end, body = EndRecord(cluster.views.cluster), cluster.bodies[number]
    end.end_E, end.end_r = body.pose.E, body.pose.r


def _accelerate(cluster: Visit[Any, Any]) -> None:
    for body in cluster.carriers:
        memory = Moving(body.memory.view)
        memory.v, memory.a = body.v, _acceleration(body)


def _acceleration(body: Body[Any]) -> Any:
    """a = X a_λ + c + S ÿ, with a ground at rest. [001, eq. 33]"""
    a = body.c + across_joints(body, body.cluster.memory.a)
    return a if body.output.grounded else a + body.Xo @ Moving(body.output.memory.view).a


def _locate_motion(cluster: Visit[Any, Any], number: int) -> None:
    _locate_end(cluster, number)
    end, body = EndRecord(cluster.views.cluster), cluster.bodies[number]
    end.end_v, end.end_a = (body.pose.inverse_motion(m) for m in (body.v, _acceleration(body)))


def _measure_gear(cluster: Visit[Any, Any], number: int, count: int) -> None:
    body, view = cluster.bodies[number], cluster.views.cluster
    force = sum((getattr(view, numbered("force", i)) for i in range(count)), np.zeros(6))
    EndRecord(view).gears = body.output.pose.inverse_motion(body.motion).T @ force


# Kernels of transmissions


def _frames(row: View, moving: Flags, links: Sequence[Transform] | None = None) -> list[Transform]:
    """The transforms from the world to all ends, from those to their links."""
    links = _links(row, moving) if links is None else links
    at = [Transform(getattr(row, numbered("at_E", i)), getattr(row, numbered("at_r", i))) for i in range(len(moving))]
    return [place @ link for place, link in zip(at, links, strict=True)]


def _links(row: View, moving: Flags) -> list[Transform]:
    """The transforms from the world to the links of all ends."""
    fields = [_of_end(row, i, ("end_E", "end_r")) if moves else None for i, moves in enumerate(moving)]
    return [Transform(*values) if values else Transform.identity() for values in fields]


def _of_end(row: View, i: int, names: Sequence[str]) -> list[Any]:
    return [getattr(row, numbered(name, i)) for name in names]


def _measuring(along: Transmission, moving: Flags) -> Any:
    def measure_transmission(row: View) -> None:
        frames = _frames(row, moving)
        row.position = along.position(frames, row.numbers)
        for i, force in enumerate(along.wrenches(frames, row.numbers)):
            setattr(row, numbered("force", i), force)

    return measure_transmission


def _accelerating(along: Transmission, moving: Flags) -> Any:
    """The kernel for ü = Σ F · V̇ + Ḟ · V, with Ḟ by differentiating F along the motion of the ends."""

    def accelerate_transmission(row: View) -> None:
        numbers, links, ends = row.numbers, _links(row, moving), [i for i, moves in enumerate(moving) if moves]
        motions = {i: _of_end(row, i, ("end_v", "end_a")) for i in ends}

        def velocity(time: Any) -> Any:
            later = [displaced(link, time * motions[i][0]) if moving[i] else link for i, link in enumerate(links)]
            forces = along.wrenches(_frames(row, moving, later), numbers)
            return sum((forces[i] @ motions[i][0] for i in ends), np.array(0.0))

        forces = along.wrenches(_frames(row, moving, links), numbers)
        row.total = jvp(velocity, np.array(0.0), np.array(1.0)) + sum(forces[i] @ motions[i][1] for i in ends)

    return accelerate_transmission


def _add_position(row: View) -> None:
    row.total = row.total + row.position
