"""The forces of actuators in a state, under given controls: of motors, servos and dampers, within their limits.

A step of a simulation takes dampers and springs as they are later in the step, so that no gain is too large for it:
contact/step/drives.py. As steps become shorter, its forces become these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.model import Robot
from coupler.model.actuator_limits import shared_limits
from coupler.passes import (
    ClusterRecord,
    Record,
    Sweep,
    TermRecord,
    Visit,
    cleared,
    position_of,
    provided,
    row_of,
    share_limits,
    visit_actuators,
    visit_terms,
)

Node = Visit[Record, ClusterRecord]


class MovingTerm(TermRecord):
    """What a cluster sees of one term of an actuator: sums over terms."""

    position, speed = provided(), provided()


def control_forces_program(robot: Robot) -> Any:
    """The program (q, v, motors, rates) → f of all actuators."""
    sweep, count = Sweep(robot, "control_forces", cluster=ClusterRecord), len(robot.actuators)
    sweep.inputs("q", "v")
    controls, rates = (sweep.builder.input(name, count) for name in ("motors", "rates"))
    sums = {name: cleared(sweep, sweep.scratch(name, count)) for name in ("position", "speed")}
    force = sweep.result("forces", count)
    sweep.outward(_begin)
    visit_terms(sweep, moving(lambda cluster: cluster.v), sums)
    visit_actuators(sweep, controlling(), {**sums, "control": controls, "rate": rates, "force": force})
    share_limits(sweep, shared_limits(robot, robot.actuators), force)
    return sweep.build()


def _begin(cluster: Node) -> None:
    cluster.report_gap()
    cluster.remember()


def moving(velocity: Callable[[Any], Any]) -> Callable[[Any, int, int], None]:
    """The function of a term that adds to an actuator's position u and velocity u̇, from the velocities of clusters."""

    def sum_up(cluster: Any, i: int, j: int) -> None:
        term = MovingTerm(cluster.views.cluster)
        term.position = term.position + term.gear * position_of(cluster, i, j)
        term.speed = term.speed + term.gear * (row_of(cluster, i, j) @ velocity(cluster))

    return sum_up


def controlling(*, at_any_speed: bool = False) -> Callable[[str], Callable[[Any], None]]:
    """By kind, the function of an actuator that gives its force; `Actuator` has the law.

    It sees `position` u and `speed` u̇, the `control`, of a position servo the `rate` of that, and what
    `visit_actuators` provides.

    Args:
        at_any_speed: whether the limit of its speed does not count.
    """

    def of_kind(kind: str) -> Callable[[Any], None]:
        def control(own: Any) -> None:
            force = _force(kind, own)
            own.force = force if at_any_speed else _within_speed(own, force)

        return control

    return of_kind


def _force(kind: str, own: Any) -> Any:
    control = np.minimum(np.maximum(own.control, own.least), own.most)
    if kind == "motor":
        force = control
    elif kind == "position":
        force = own.stiffness * (control - own.position) + own.gain * (own.rate - own.speed)
    elif kind == "velocity":
        force = own.gain * (control - own.speed)
    else:
        force = -own.gain * np.maximum(control, 0.0) * own.speed
    return np.minimum(np.maximum(force, own.lower), own.upper)


def _within_speed(own: Any, force: Any) -> Any:
    """A force that brakes beyond the speed limit, but does not drive."""
    onwards = ((force > 0.0) & (own.speed > own.fastest)) | ((force < 0.0) & (own.speed < -own.fastest))
    return np.where(onwards, 0.0, force)
