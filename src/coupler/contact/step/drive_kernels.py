"""Kernels of actuators in the program of a step; see drives.py.

Kernels see one actuator as `own`. Beside its constants (drive_table.py) it has sums over its joints: its `position`,
its velocities `start` before the step and `speed` after it, and `bias`, what the biases of loops add to the latter.
`aim` and `loss` are F and D of its law. `push` is the force at joints before the contact problem, `given` the part of
it that no row decides, and `held` what a speed limit takes off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.contact.step.kick import rotation_biases
from coupler.graph import View
from coupler.passes import TermRecord, Visit, position_of, provided, row_of

_FAR = 1e10  # rad/s or m/s: stands for a limit that a joint does not have
_LEAST_ON = 1e-9  # how far a damper is on that is off, so that all numbers stay finite
_CARE = 4.0  # an actuator may have a mobility so many times the largest one that was found in samples
_NEAR = 0.5  # of the speed limit: an actuator that may exceed it within a step may reach the limit


class DriveTerm(TermRecord):
    """What a cluster sees of one joint that an actuator acts on: the actuator's sums over joints."""

    position, start, speed = provided(), provided(), provided()


# Kernels of terms: one joint of one actuator


def look(cluster: Visit[Any, Any], i: int, j: int) -> None:
    term = DriveTerm(cluster.views.cluster)
    term.position = term.position + term.gear * position_of(cluster, i, j)
    term.start = term.start + term.gear * (row_of(cluster, i, j) @ cluster.memory.start)


def push(cluster: Visit[Any, Any], i: int, j: int) -> None:
    term = DriveTerm(cluster.views.cluster)
    cluster.memory.tau = cluster.memory.tau + row_of(cluster, i, j) * (term.gear * term.force)


def speeding(vector: str) -> Callable[[Visit[Any, Any], int, int], None]:
    def sum_speeds(cluster: Visit[Any, Any], i: int, j: int) -> None:
        term = DriveTerm(cluster.views.cluster)
        term.speed = term.speed + term.gear * (row_of(cluster, i, j) @ getattr(cluster.memory, vector))

    return sum_speeds


def speeding_up(cluster: Visit[Any, Any], i: int, j: int) -> None:
    """Adds what the bias g of loops adds to the velocity of a joint within a step: ẇ = G v̇ + g."""
    term, bias = DriveTerm(cluster.views.cluster), cluster.g[cluster.shape.starts[i] + j]
    term.speed = term.speed + term.gear * cluster.memory.step * bias


def speeding_ahead(cluster: Visit[Any, Any], i: int, j: int) -> None:
    """Adds the same, with velocities of floating bodies along their axes after the step."""
    speeding_up(cluster, i, j)
    term = DriveTerm(cluster.views.cluster)
    term.speed = term.speed - term.gear * cluster.memory.step * (row_of(cluster, i, j) @ rotation_biases(cluster))


# Kernels of actuators


def limit_motor(own: View) -> None:
    control = np.minimum(np.maximum(own.control, own.lowest_control), own.highest_control)
    own.control = np.minimum(np.maximum(control, own.lower), own.upper)


def deciding(kind: str, joint: bool, limited: bool) -> Callable[[View], None]:
    def decide_force(own: View) -> None:
        """F and D of an actuator, its force at joints, and the part of the force that ends at its speed limit."""
        control = np.minimum(np.maximum(own.control, own.lowest_control), own.highest_control)
        own.loss = own.damping
        if kind == "motor":
            own.aim = np.minimum(np.maximum(control, own.lower), own.upper)
            own.given = own.push = own.aim
        else:
            rate = {"position": lambda: own.rate, "velocity": lambda: control, "damper": lambda: 0.0}[kind]()
            own.aim = own.gain * rate
            if kind == "position":
                own.aim = own.aim + own.stiffness * (control - own.position + own.ahead * own.start)
            elif kind == "damper":
                own.loss = own.gain * np.maximum(control, _LEAST_ON)
            own.given = np.array(0.0) if joint else 0.5 * (own.lower + own.upper)
            own.push = expected(own)
            if joint:
                own.push = own.gain * rate
                own.push = own.push + own.stiffness * (control - own.rest) if kind == "position" else own.push
        if limited:
            _decide_edge(own)

    return decide_force


def expected(own: View) -> Any:
    """About the force that a servo would have if it were alone."""
    now = np.minimum(np.maximum(own.aim - own.loss * own.start, own.lower), own.upper)
    return now / (1.0 + own.loss * own.kick)


def _decide_edge(own: View) -> None:
    """Near a speed limit, pushes with half of the driving force only; the row adds or takes off up to the other half.

    Beyond the limit, the driving force is that at the present speed: a servo that brakes by itself is left alone.
    """
    forwards, backwards = (
        np.minimum(np.maximum(own.aim - side * own.loss * speed, own.lower), own.upper)
        for side, speed in ((side, np.maximum(own.fastest, side * own.start)) for side in (1.0, -1.0))
    )
    onwards = forwards > 0.0
    side = np.where(onwards, 1.0, -1.0)
    half = _halve(own, side, np.where(onwards, forwards, np.maximum(-backwards, 0.0)))
    own.given, own.push = own.given - side * half, own.push - side * half


def _halve(own: View, side: Any, force: Any) -> Any:
    """Half of a force that drives to one side, if it may reach the speed limit there, else zero; sets the edge."""
    near = side * own.start + _CARE * own.kick * force > _NEAR * own.fastest
    half = np.where(near, 0.5 * force, 0.0)
    own.edge = np.stack([side * own.fastest, half])
    return half


def halve_at_edge(own: View) -> None:
    """The same in a step of several stages, whose first forces are those of the state before it."""
    side = np.where(own.push > 0.0, 1.0, -1.0)
    own.push = own.push - side * _halve(own, side, side * own.push)


def begin_servo(own: View) -> None:
    """The row of a servo: its target velocity, its own mobility, and the expected force beside the middle one."""
    middle, mobility = 0.5 * (own.lower + own.upper), own.scale * own.scale / (own.step * own.loss)
    own.offset = np.array([own.step * (own.given - own.push) / own.scale])
    own.z, own.y = np.ones((1, 1)), np.array([[mobility]])
    target = (own.aim - middle) / own.loss
    own.b = np.array([own.scale * (own.speed - target) - mobility * own.offset[0]])  # which moves no node of its own
    own.bound = own.step * 0.5 * (own.upper - own.lower) / own.scale
    _begin_row(own, -own.offset[0])


def begin_limit(own: View) -> None:
    own.b = np.array([own.scale * (own.speed - own.edge[0])])
    own.bound, own.offset = own.step * own.edge[1] / own.scale, np.zeros(1)
    _begin_row(own, np.where(own.edge[0] > 0.0, own.bound, -own.bound))


def _begin_row(own: View, impulse: Any) -> None:
    own.low, own.high = np.array(-_FAR), np.array(_FAR)
    own.impulse = np.array([impulse])


def bound_joint(row: View) -> None:
    row.bound = row.friction


def reporting(at_joint: bool) -> Callable[[View], None]:
    """The force of an actuator without rows; a servo that is a spring and a damper feels the bias of loops, too."""

    def report_force(own: View) -> None:
        own.force = own.given + (own.aim - own.loss * (own.speed + own.bias)) if at_joint else own.given

    return report_force


def add_row(own: View) -> None:
    own.force = own.force + own.scale * own.impulse[0] / own.step


def check_limits(own: View) -> None:
    own.residual = np.where((own.force < own.lower) | (own.force > own.upper), np.nan, own.residual)


def find_held(own: View) -> None:
    """What the speed limit takes off a force, and the force in the first stage."""
    row, side = own.scale * own.impulse / own.step, np.where(own.edge[0] > 0.0, 1.0, -1.0)
    own.held, own.push = row - side * own.edge[1], own.push + row


def hold_back(own: View) -> None:
    """Takes off a force of a later stage what the speed limit has taken off in the first, as far as it drives."""
    forwards, backwards = np.maximum(own.push + own.held, 0.0), np.minimum(own.push + own.held, 0.0)
    driving = np.where(own.edge[0] > 0.0, forwards, backwards)
    own.push = np.where(own.edge[0] * own.push > 0.0, driving, own.push)


def begin_stages(own: View) -> None:
    own.force, own.work = own.weight * own.push, own.weight * own.step * own.push * own.speed


def add_stage(own: View) -> None:
    own.force += own.weight * own.push
    own.work += own.weight * own.step * own.push * own.speed


def work(own: View) -> None:
    own.work = own.step * own.force * (0.5 * (own.start + own.speed))
