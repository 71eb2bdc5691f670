"""Configurations of given positions of actuators.

Newton's method as a program answers where its steps show that it stays on its branch (program.py): in microseconds,
which is what a controller needs. All other states are followed to their targets in short steps (way.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.actuation import check_positions
from coupler.compiled import attempted, remembered
from coupler.model import ModelError, Robot
from coupler.model.numbers import numbers
from coupler.model.robot import check_robot
from coupler.reaching.bounds import Bounds, within_limits
from coupler.reaching.program import SETTLED, is_answered_by_program, reach_program
from coupler.reaching.way import UnreachableError, Way

__all__ = ["UnreachableError", "configuration_of_actuators"]

_CONTRACTION = 0.5  # what a step of Newton's method may be of the one before; see program.py
_MISSED = 1e-10  # rad or m, or of the target: so near counts as there


def configuration_of_actuators(robot: Robot, positions: Any, near: Any = None, *, limits: bool = True) -> np.ndarray:
    """The configuration in which actuators have these positions.

    There may be several, such as elbow up and elbow down. The result is on the branch of `near`: no singular
    configuration lies on the way to it. Either the convergence of Newton's method proves that, or the way is followed
    in short steps, damped after Levenberg and Marquardt. What actuators do not move stays near where it is.

    Args:
        positions: (..., actuators), u, rad or m.
        near: (..., nq), closed configurations to start from; neutral if not given.
        limits: whether joints keep within their limits, or no further beyond them than where they start.

    Returns:
        (..., nq), closed configurations.

    Raises:
        UnreachableError: for positions out of reach, of loops or of limits, with the nearest that were found.
        ModelError: where the way to them leads to another branch.
    """
    check_robot(robot)
    check_positions(robot)
    target = numbers("positions", positions, (len(robot.actuators),), batch=True)
    start = robot.neutral() if near is None else numbers("near", near, (robot.nq,), batch=True)
    try:
        batch = np.broadcast_shapes(target.shape[:-1], start.shape[:-1])
    except ValueError:
        raise ModelError(f"positions of {target.shape[:-1]} states do not fit near of {start.shape[:-1]}") from None
    target = np.broadcast_to(target, (*batch, target.shape[-1])).reshape(-1, target.shape[-1])
    start = np.broadcast_to(start, (*batch, robot.nq)).reshape(-1, robot.nq)
    if not len(target):
        return start.reshape(*batch, robot.nq).copy()
    q, sure = _answered(robot, target, start)
    if limits:
        sure &= within_limits(robot, q)
    if not sure.all():
        rest = np.flatnonzero(~sure)
        bounds = Bounds(robot, start[rest]) if limits else None
        q[rest] = Way(robot, target[rest], start[rest], bounds, [_place(batch, int(i)) for i in rest]).followed()
    return q.reshape(*batch, robot.nq)


def _answered(robot: Robot, target: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What Newton's method finds, and for which states that is sure to be what is asked for."""
    if not remembered(robot, is_answered_by_program, is_answered_by_program):
        return start.copy(), np.zeros(len(start), bool)
    inputs = (start[0], target[0]) if len(start) == 1 else (start, target)
    q, told = (np.atleast_2d(x) for x in attempted(robot, reach_program, *inputs))
    near = told[:, 2] <= _MISSED * np.maximum(np.abs(target).max(axis=-1, initial=0.0), 1.0)
    return q, (told[:, 0] <= SETTLED) & (told[:, 1] <= _CONTRACTION) & near


def _place(batch: tuple[int, ...], i: int) -> list[int]:
    """Where a state is in a batch, that was counted in a row."""
    return [int(k) for k in np.unravel_index(i, batch)] if batch else []
