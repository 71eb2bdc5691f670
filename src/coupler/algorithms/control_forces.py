"""The forces of actuators (motors, servos, dampers) in a state under given controls, within their limits.

A simulation step evaluates springs and dampers later in the step, implicitly, so that no gain is too large for it: see
contact/step/drives.py. As the step size goes to zero, its forces become these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.algorithms.actuation import begin
from coupler.model import Robot
from coupler.model.actuator_limits import shared_limits
from coupler.passes import (
    ClusterRecord,
    Sweep,
    TermRecord,
    actuated_body,
    add_positions,
    cleared,
    measure_gears,
    position_of,
    provided,
    row_of,
    share_limits,
    visit_actuators,
    visit_terms,
)


class MovingTerm(TermRecord):
    """The fields that a cluster sees of one term of an actuator: the actuator's position and speed, sums over terms."""

    position, speed = provided(), provided()


def control_forces_program(robot: Robot) -> Any:
    """The program (q, v, motors, rates) → f of all actuators."""
    count = len(robot.actuators)
    sweep = Sweep(robot, "control_forces", body=actuated_body(robot), cluster=ClusterRecord)
    sweep.inputs("q", "v")
    controls, rates = (sweep.builder.input(name, count) for name in ("motors", "rates"))
    sums = {name: cleared(sweep, sweep.scratch(name, count)) for name in ("position", "speed")}
    force = sweep.result("forces", count)
    sweep.outward(begin)
    measure_gears(sweep)
    visit_terms(sweep, moving(lambda cluster: cluster.v), sums)
    add_positions(sweep, sums["position"])
    visit_actuators(sweep, controlling(), {**sums, "control": controls, "rate": rates, "force": force})
    share_limits(sweep, shared_limits(robot, robot.actuators), force)
    return sweep.build()


def moving(velocity: Callable[[Any], Any]) -> Callable[[Any, int, int], None]:
    """A function for `visit_terms` that adds to an actuator's position u and velocity u̇.

    Args:
        velocity: gives the independent velocities of a cluster.
    """

    def add_motion(cluster: Any, i: int, j: int) -> None:
        term = MovingTerm(cluster.views.cluster)
        term.position = term.position + term.reach * position_of(cluster, i, j)
        term.speed = term.speed + term.gear * (row_of(cluster, i, j) @ velocity(cluster))

    return add_motion


def controlling(*, at_any_speed: bool = False) -> Callable[[str], Callable[[Any], None]]:
    """For `visit_actuators`, the functions that compute the force of an actuator of each kind; see `Actuator`.

    They read the actuator's `position` u, `speed` u̇ and `control`, the `rate` of a position servo's control, and what
    `visit_actuators` provides.

    Args:
        at_any_speed: whether the speed limit is ignored.
    """

    def of_kind(kind: str) -> Callable[[Any], None]:
        def control(actuator: Any) -> None:
            force = _force(kind, actuator)
            actuator.force = force if at_any_speed else _within_speed(actuator, force)

        return control

    return of_kind


def _force(kind: str, actuator: Any) -> Any:
    control = np.minimum(np.maximum(actuator.control, actuator.least), actuator.most)
    if kind == "motor":
        force = control
    elif kind == "position":
        force = actuator.stiffness * (control - actuator.position) + actuator.gain * (actuator.rate - actuator.speed)
    elif kind == "velocity":
        force = actuator.gain * (control - actuator.speed)
    else:
        force = -actuator.gain * np.maximum(control, 0.0) * actuator.speed
    return np.minimum(np.maximum(force, actuator.lower), actuator.upper)


def _within_speed(actuator: Any, force: Any) -> Any:
    """The force, but zero if it would accelerate the actuator beyond its speed limit."""
    driving = ((force > 0.0) & (actuator.speed > actuator.fastest)) | (
        (force < 0.0) & (actuator.speed < -actuator.fastest)
    )
    return np.where(driving, 0.0, force)
