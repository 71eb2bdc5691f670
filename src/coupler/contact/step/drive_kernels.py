"""Kernels of actuators in the program of a step; see drives.py.

Kernels see one actuator as `drive`. Beside its constants (drive_table.py) it has sums over its joints: its `position`,
its velocities `start` before the step and `speed` after it, and `bias`, what the biases of loops add to the latter.
`aim` and `loss` are F and D of its law. `push` is its force at joints before the contact problem, `given` the force
that its rows add to, and `held` what a speed limit takes off.
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
    """The fields that a cluster sees of one joint that an actuator acts on: the actuator's sums over joints."""

    position, start, speed = provided(), provided(), provided()


# Kernels of terms: one joint of one actuator


def look(cluster: Visit[Any, Any], i: int, j: int) -> None:
    term = DriveTerm(cluster.views.cluster)
    term.position = term.position + term.reach * position_of(cluster, i, j)
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
    """Adds to `bias` the change of a joint's velocity within a step by the bias g of loops, ẇ = G v̇ + g."""
    term, bias = DriveTerm(cluster.views.cluster), cluster.g[cluster.shape.starts[i] + j]
    term.speed = term.speed + term.gear * cluster.memory.step * bias


def speeding_ahead(cluster: Visit[Any, Any], i: int, j: int) -> None:
    """Does as `speeding_up`, with velocities of floating bodies along their axes after the step."""
    speeding_up(cluster, i, j)
    term = DriveTerm(cluster.views.cluster)
    term.speed = term.speed - term.gear * cluster.memory.step * (row_of(cluster, i, j) @ rotation_biases(cluster))


# Kernels of actuators


def limit_motor(drive: View) -> None:
    control = np.minimum(np.maximum(drive.control, drive.lowest_control), drive.highest_control)
    drive.control = np.minimum(np.maximum(control, drive.lower), drive.upper)


def deciding(kind: str, joint: bool, limited: bool) -> Callable[[View], None]:
    def decide_force(drive: View) -> None:
        """Computes F and D of an actuator, its force at joints, and the part of it that ends at the speed limit."""
        control = np.minimum(np.maximum(drive.control, drive.lowest_control), drive.highest_control)
        drive.loss = drive.damping
        if kind == "motor":
            drive.aim = np.minimum(np.maximum(control, drive.lower), drive.upper)
            drive.given = drive.push = drive.aim
        else:
            rate = {"position": lambda: drive.rate, "velocity": lambda: control, "damper": lambda: 0.0}[kind]()
            gain = drive.gain * np.maximum(control, _LEAST_ON) if kind == "damper" else drive.gain
            drive.aim = drive.gain * rate - (1.0 - drive.late) * gain * drive.start
            if kind == "position":
                drive.aim = drive.aim + drive.stiffness * (control - drive.position + drive.ahead * drive.start)
            elif kind == "damper":
                drive.loss = drive.late * gain
            drive.given = np.array(0.0) if joint else 0.5 * (drive.lower + drive.upper)
            drive.push = expected(drive)
            if joint:
                drive.push = drive.gain * rate
                drive.push = drive.push + drive.stiffness * (control - drive.rest) if kind == "position" else drive.push
        if limited:
            _decide_edge(drive)

    return decide_force


def expected(drive: View) -> Any:
    """An estimate of the force that a servo would have if it acted alone."""
    now = np.minimum(np.maximum(drive.aim - drive.loss * drive.start, drive.lower), drive.upper)
    return now / (1.0 + drive.loss * drive.kick)


def _decide_edge(drive: View) -> None:
    """Near a speed limit, pushes with half of the driving force only; the row adds or takes off up to the other half.

    Beyond the limit, the driving force at the present speed counts: a servo that brakes by itself is left alone.
    """
    forwards, backwards = (
        np.minimum(np.maximum(drive.aim - side * drive.loss * speed, drive.lower), drive.upper)
        for side, speed in ((side, np.maximum(drive.fastest, side * drive.start)) for side in (1.0, -1.0))
    )
    onwards = forwards > 0.0
    side = np.where(onwards, 1.0, -1.0)
    half = _halve(drive, side, np.where(onwards, forwards, np.maximum(-backwards, 0.0)))
    drive.given, drive.push = drive.given - side * half, drive.push - side * half


def _halve(drive: View, side: Any, force: Any) -> Any:
    """Half of a force that drives to one side if it may reach the speed limit there, else zero; sets `edge`."""
    near = side * drive.start + _CARE * drive.kick * force > _NEAR * drive.fastest
    half = np.where(near, 0.5 * force, 0.0)
    drive.edge = np.stack([side * drive.fastest, half])
    return half


def halve_at_edge(drive: View) -> None:
    """Does as `_decide_edge` in a step of several stages, whose first forces are those of the state before it."""
    side = np.where(drive.push > 0.0, 1.0, -1.0)
    drive.push = drive.push - side * _halve(drive, side, side * drive.push)


def begin_servo(drive: View) -> None:
    """Sets up the row of a servo: target velocity, own mobility, and the difference of expected and middle force."""
    middle, mobility = 0.5 * (drive.lower + drive.upper), drive.scale * drive.scale / (drive.step * drive.loss)
    drive.offset = np.array([drive.step * (drive.given - drive.push) / drive.scale])
    drive.z, drive.y = np.ones((1, 1)), np.array([[mobility]])
    target = (drive.aim - middle) / drive.loss
    drive.b = np.array(
        [drive.scale * (drive.speed - target) - mobility * drive.offset[0]]
    )  # which moves no node of its own
    drive.bound = drive.step * 0.5 * (drive.upper - drive.lower) / drive.scale
    _begin_row(drive, -drive.offset[0])


def begin_limit(drive: View) -> None:
    drive.b = np.array([drive.scale * (drive.speed - drive.edge[0])])
    drive.bound, drive.offset = drive.step * drive.edge[1] / drive.scale, np.zeros(1)
    _begin_row(drive, np.where(drive.edge[0] > 0.0, drive.bound, -drive.bound))


def _begin_row(drive: View, impulse: Any) -> None:
    drive.low, drive.high = np.array(-_FAR), np.array(_FAR)
    drive.impulse = np.array([impulse])


def bound_joint(row: View) -> None:
    row.bound = row.friction


def reporting(at_joint: bool) -> Callable[[View], None]:
    """The kernel that reports the force of an actuator without rows; a servo `at_joint` also feels loops' bias."""

    def report_force(drive: View) -> None:
        drive.force = drive.given
        if at_joint:
            lost = drive.loss * drive.speed + (drive.loss - drive.halfway) * drive.bias
            drive.force = drive.given + (drive.aim - lost)

    return report_force


def add_row(drive: View) -> None:
    drive.force = drive.force + drive.scale * drive.impulse[0] / drive.step


def check_limits(drive: View) -> None:
    drive.residual = np.where((drive.force < drive.lower) | (drive.force > drive.upper), np.nan, drive.residual)


def find_held(drive: View) -> None:
    """Computes what the speed limit takes off a force, and the force in the first stage."""
    row, side = drive.scale * drive.impulse / drive.step, np.where(drive.edge[0] > 0.0, 1.0, -1.0)
    drive.held, drive.push = row - side * drive.edge[1], drive.push + row


def hold_back(drive: View) -> None:
    """Reduces a driving force of a later stage by what the speed limit took off in the first stage."""
    forwards, backwards = np.maximum(drive.push + drive.held, 0.0), np.minimum(drive.push + drive.held, 0.0)
    driving = np.where(drive.edge[0] > 0.0, forwards, backwards)
    drive.push = np.where(drive.edge[0] * drive.push > 0.0, driving, drive.push)


def begin_stages(drive: View) -> None:
    drive.force, drive.work = drive.weight * drive.push, drive.weight * drive.step * drive.push * drive.speed


def add_stage(drive: View) -> None:
    drive.force += drive.weight * drive.push
    drive.work += drive.weight * drive.step * drive.push * drive.speed


def work(drive: View) -> None:
    drive.work = drive.step * drive.force * (0.5 * (drive.start + drive.speed))
