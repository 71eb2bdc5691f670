"""Between independent joints and actuators: u = Σ gear q, u̇ = A v, ü = A a + Ȧ v, and τ = Aᵀ f. [003, §II]

A = R G, where R has the gears and G the velocities of all joints by those of independent ones: an actuator may act on
any joints of the tree. Each of its joints, a term, is looked at in its own cluster. inverse_actuation.py has the way
back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.model import Robot
from coupler.passes import (
    ClusterRecord,
    ClusterWindows,
    Coordinate,
    Record,
    Shape,
    Sweep,
    TermRecord,
    TermRow,
    Visit,
    cleared,
    position_of,
    row_of,
    visit_terms,
)


class Moving(ClusterRecord):
    a, tau = Coordinate(), Coordinate()


Node = Visit[Record, Moving]


def _begun(robot: Robot, name: str, *vectors: str) -> Sweep[Record, Moving]:
    """A program whose clusters know their positions, and velocities where v is among the vectors."""
    sweep = Sweep(robot, name, cluster=Moving)
    sweep.inputs("q", *vectors)
    return sweep


def _told(
    sweep: Sweep[Record, Moving],
    name: str,
    function: Callable[[Node, int, int], None],
    begin: Callable[[Node], None] | None = None,
) -> Any:
    """The program whose result is a sum over terms, of each actuator."""
    sweep.outward(begin or _begin)
    told = cleared(sweep, sweep.result(name, len(sweep.robot.actuators)))
    visit_terms(sweep, function, {"told": told})
    return sweep.build()


def _locate(cluster: Node) -> None:
    cluster.report_gap(moving=False)


def _begin(cluster: Node) -> None:
    cluster.report_gap()
    cluster.remember()


def actuator_positions_program(robot: Robot) -> Any:
    """The program q → u, of all actuators."""
    return _told(_begun(robot, "actuator_positions"), "u", _position, _locate)


def _position(cluster: Node, i: int, j: int) -> None:
    term = TermRecord(cluster.views.cluster)
    term.told = term.told + term.gear * position_of(cluster, i, j)


def actuator_velocities_program(robot: Robot) -> Any:
    """The program (q, v) → u̇ = A v."""
    return _told(_begun(robot, "actuator_velocities", "v"), "u_rate", _velocity)


def _velocity(cluster: Node, i: int, j: int) -> None:
    term = TermRecord(cluster.views.cluster)
    term.told = term.told + term.gear * (row_of(cluster, i, j) @ cluster.v)


def actuator_accelerations_program(robot: Robot) -> Any:
    """The program (q, v, a) → ü = A a + Ȧ v."""
    return _told(_begun(robot, "actuator_accelerations", "v", "a"), "u_rate2", _acceleration)


def _acceleration(cluster: Node, i: int, j: int) -> None:
    term = TermRecord(cluster.views.cluster)
    own = row_of(cluster, i, j) @ cluster.memory.a + cluster.g[cluster.shape.starts[i] + j]
    term.told = term.told + term.gear * own


def actuator_jacobian_program(robot: Robot) -> Any:
    """The program q → A, actuators × nv."""
    sweep = _begun(robot, "actuator_jacobian")
    A = cleared(sweep, sweep.result("A", len(robot.actuators) * robot.nv))
    write_jacobian(sweep, A, lambda actuator, entry: actuator * robot.nv + entry)
    return sweep.build()


def write_jacobian(sweep: Sweep[Any, Any], A: Any, place: Callable[[int, int], int]) -> None:
    """Writes the steps to entries of A that are not zero.

    Args:
        sweep: the program.
        A: a vector of zeros, to which entries are added.
        place: where in A the entry of an actuator and an independent velocity is.
    """
    sweep.outward(_begin)
    write_rows(sweep, A, place)


def write_rows(sweep: Sweep[Any, Any], A: Any, place: Callable[[int, int], int]) -> None:
    """Writes the same, once clusters know where they are."""
    robot, starts = sweep.robot, sweep.robot.tree.v_start

    def provide(windows: ClusterWindows, shape: Shape, rows: list[TermRow]) -> None:
        clusters = [sweep.number_in_cluster(link)[0] for _, link, _, _ in rows]
        for i, free in enumerate(shape.free):
            if free:
                links = [sweep.instances[k].links[i] for k in clusters]
                entries = robot.embedding.v_place[starts[links] + free[0]]
                first = [place(row[0], int(entry)) for row, entry in zip(rows, entries, strict=True)]
                windows.joints[i]["A"] = A.at(first, len(free))

    visit_terms(sweep, _row, {}, provide)


def _row(cluster: Node, i: int, j: int) -> None:
    row, gear, start = row_of(cluster, i, j), TermRecord(cluster.views.cluster).gear, 0
    for joint, free in zip(cluster.views.joints, cluster.shape.free, strict=True):
        if free:
            joint.A = joint.A + gear * row[start : start + len(free)]
            start += len(free)


def generalized_forces_program(robot: Robot) -> Any:
    """The program (q, forces) → τ = Aᵀ f."""
    sweep = _begun(robot, "generalized_forces")
    forces = sweep.builder.input("forces", len(robot.actuators))
    sweep.output("tau")
    sweep.outward(_begin_forces)
    visit_terms(sweep, _push, {"force": forces})
    return sweep.build()


def _begin_forces(cluster: Node) -> None:
    _begin(cluster)
    cluster.memory.tau = np.zeros(cluster.shape.freedoms)


def _push(cluster: Node, i: int, j: int) -> None:
    term = TermRecord(cluster.views.cluster)
    cluster.memory.tau = cluster.memory.tau + row_of(cluster, i, j) * (term.gear * term.force)
