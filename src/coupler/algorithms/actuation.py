"""From independent joints to actuators, and forces back: u = Σ gear q, u̇ = A v, ü = A a + Ȧ v, τ = Aᵀ f. [003, §II]

A = R G, where R has the gears and G maps independent velocities to those of all joints: an actuator may act on any
joints of the tree. Each joint that it acts on is a term of it, visited in its cluster. R depends on the pose where
actuators pull cables. inverse_actuation.py solves for the inverse maps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.model import Robot
from coupler.passes import (
    ClusterRecord,
    ClusterShape,
    ClusterWindows,
    Coordinate,
    Record,
    Sweep,
    TermRecord,
    TermRow,
    Visit,
    accelerate_transmissions,
    actuated_body,
    add_positions,
    cleared,
    measure_gears,
    posed_actuators,
    position_of,
    row_of,
    visit_terms,
)


class Moving(ClusterRecord):
    a, tau = Coordinate(), Coordinate()


Visited = Visit[Record, Moving]


def _sweep(robot: Robot, name: str, *vectors: str) -> Sweep[Record, Moving]:
    """Begins a program with the input q and further inputs."""
    sweep = Sweep(robot, name, body=actuated_body(robot), cluster=Moving)
    sweep.inputs("q", *vectors)
    return sweep


def _locate(cluster: Visited) -> None:
    cluster.report_gap(moving=False)


def _locate_and_remember(cluster: Visited) -> None:
    _locate(cluster)
    cluster.remember_positions()


def begin(cluster: Visit[Any, Any]) -> None:
    """The first pass: stores what the visits of terms load again."""
    cluster.report_gap()
    cluster.remember()


def _sum_over_terms(
    sweep: Sweep[Record, Moving],
    name: str,
    function: Callable[[Visited, int, int], None],
    first: Callable[[Visited], None] = begin,
    then: Callable[[Any, Any], None] = lambda *_: None,
) -> Any:
    """The program whose result is, for each actuator, a sum over its terms, and what the last function adds."""
    sweep.outward(first)
    measure_gears(sweep)
    totals = cleared(sweep, sweep.result(name, len(sweep.robot.actuators)))
    visit_terms(sweep, function, {"total": totals})
    then(sweep, totals)
    return sweep.build()


def actuator_positions_program(robot: Robot) -> Any:
    """The program q → u of all actuators."""
    locate = _locate_and_remember if posed_actuators(robot) else _locate
    return _sum_over_terms(_sweep(robot, "actuator_positions"), "u", _position, locate, add_positions)


def _position(cluster: Visited, i: int, j: int) -> None:
    term = TermRecord(cluster.views.cluster)
    term.total = term.total + term.reach * position_of(cluster, i, j)


def actuator_velocities_program(robot: Robot) -> Any:
    """The program (q, v) → u̇ = A v."""
    return _sum_over_terms(_sweep(robot, "actuator_velocities", "v"), "u_rate", _velocity)


def _velocity(cluster: Visited, i: int, j: int) -> None:
    term = TermRecord(cluster.views.cluster)
    term.total = term.total + term.gear * (row_of(cluster, i, j) @ cluster.v)


def actuator_accelerations_program(robot: Robot) -> Any:
    """The program (q, v, a) → ü = A a + Ȧ v."""
    return _sum_over_terms(
        _sweep(robot, "actuator_accelerations", "v", "a"), "u_rate2", _acceleration, then=accelerate_transmissions
    )


def _acceleration(cluster: Visited, i: int, j: int) -> None:
    term = TermRecord(cluster.views.cluster)
    wd = row_of(cluster, i, j) @ cluster.memory.a + cluster.g[cluster.shape.starts[i] + j]  # an entry of G ÿ + g
    term.total = term.total + term.gear * wd


def actuator_jacobian_program(robot: Robot) -> Any:
    """The program q → A, actuators × nv."""
    sweep = _sweep(robot, "actuator_jacobian")
    A = cleared(sweep, sweep.result("A", len(robot.actuators) * robot.nv))
    write_jacobian(sweep, A, lambda actuator, entry: actuator * robot.nv + entry)
    return sweep.build()


def write_jacobian(sweep: Sweep[Any, Any], A: Any, place: Callable[[int, int], int]) -> None:
    """Writes the steps that compute the entries of A that are not zero.

    Args:
        A: a vector of zeros, to which entries are added.
        place: gives the place in A of the entry for an actuator and an independent velocity.
    """
    sweep.outward(begin)
    measure_gears(sweep)
    write_rows(sweep, A, place)


def write_rows(sweep: Sweep[Any, Any], A: Any, place: Callable[[int, int], int]) -> None:
    """Writes the steps of `write_jacobian` without the first pass: an earlier one has stored what they need."""
    robot, starts = sweep.robot, sweep.robot.tree.v_start

    def provide(windows: ClusterWindows, shape: ClusterShape, rows: list[TermRow]) -> None:
        clusters = [sweep.number_in_cluster(link)[0] for _, link, _, _ in rows]
        for i, free in enumerate(shape.free):
            if free:
                links = [sweep.instances[k].links[i] for k in clusters]
                entries = robot.embedding.v_place[starts[links] + free[0]]
                first = [place(row[0], int(entry)) for row, entry in zip(rows, entries, strict=True)]
                windows.joints[i]["A"] = A.at(first, len(free))

    visit_terms(sweep, _row, {}, provide)


def _row(cluster: Visited, i: int, j: int) -> None:
    row, gear, start = row_of(cluster, i, j), TermRecord(cluster.views.cluster).gear, 0
    for joint, free in zip(cluster.views.joints, cluster.shape.free, strict=True):
        if free:
            joint.A = joint.A + gear * row[start : start + len(free)]
            start += len(free)


def generalized_forces_program(robot: Robot) -> Any:
    """The program (q, forces) → τ = Aᵀ f."""
    sweep = _sweep(robot, "generalized_forces")
    forces = sweep.builder.input("forces", len(robot.actuators))
    sweep.output("tau")
    sweep.outward(_begin_forces)
    measure_gears(sweep)
    visit_terms(sweep, _push, {"force": forces})
    return sweep.build()


def _begin_forces(cluster: Visited) -> None:
    begin(cluster)
    cluster.memory.tau = np.zeros(cluster.shape.freedoms)


def _push(cluster: Visited, i: int, j: int) -> None:
    term = TermRecord(cluster.views.cluster)
    cluster.memory.tau = cluster.memory.tau + row_of(cluster, i, j) * (term.gear * term.force)
