"""Configurations in which actuators have given positions.

Newton's method as a program (program.py) takes microseconds, which is what a controller needs. Its result counts where
its steps show that it has stayed on its branch. All other states move to their targets in short steps
(continuation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.actuation import check_positions
from coupler.compiled import attempted, remembered
from coupler.model import Robot
from coupler.model.actuators import by_actuator
from coupler.model.numbers import batch_of, numbers, switch
from coupler.model.robot import check_robot
from coupler.reaching.bounds import Bounds, within_limits
from coupler.reaching.continuation import REACHED, Continuation
from coupler.reaching.program import SETTLED, is_answered_by_program, reach_program

_CONTRACTION = 0.5  # the largest ratio of a step of Newton's method to the one before; see program.py


def configuration_of_actuators(robot: Robot, positions: Any, near: Any = None, *, limits: bool = True) -> np.ndarray:
    """The configuration in which actuators have these positions.

    There may be several, such as elbow up and elbow down. The result is on the branch of `near`: no singular
    configuration lies on the way to it. Either the convergence of Newton's method proves that, or the way is followed
    in short steps, by the method of Levenberg and Marquardt. Joints that actuators do not move stay close to `near`.

    Args:
        positions: (..., actuators), or a dictionary by name, u, rad or m.
        near: (..., nq), closed configurations to start from; neutral if None.
        limits: whether joints stay within their limits, or no further outside than they start.

    Returns:
        (..., nq), closed configurations.

    Raises:
        UnreachableError: for positions that loops or limits keep out of reach, with the closest that were found.
        ModelError: if the way to them leads to another branch.
    """
    check_robot(robot)
    check_positions(robot)
    target = numbers("positions", by_actuator(robot, "positions", positions), (len(robot.actuators),), batch=True)
    start = robot.neutral() if near is None else numbers("near", near, (robot.nq,), batch=True)
    parameters = np.zeros(0) if robot.given is None else robot.given.packed
    batch, differ = batch_of({"positions": target, "near": start, "parameters": parameters}), parameters.ndim > 1
    target = np.broadcast_to(target, (*batch, target.shape[-1])).reshape(-1, target.shape[-1])
    start = np.broadcast_to(start, (*batch, robot.nq)).reshape(-1, robot.nq)
    if not len(target):
        return start.reshape(*batch, robot.nq).copy()
    robots = robot.of_states(batch, slice(None)) if differ else robot
    q, sure = _answered(robots, target, start)
    if switch("limits", limits):
        sure &= within_limits(robots, q)
    rest = np.flatnonzero(~sure)
    if rest.size:
        robot.check(start.reshape(*batch, robot.nq))
    for states in [rest] if rest.size and not differ else rest[:, None]:
        one = robot.of_states(batch, int(states[0])) if differ else robot
        bounds = Bounds(one, start[states]) if limits else None
        places = [_place(batch, int(i)) for i in states]
        q[states] = Continuation(one, target[states], start[states], bounds, places).followed()
    return q.reshape(*batch, robot.nq)


def _answered(robot: Robot, target: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The result of Newton's method, and for which states it is certain to be on the branch of the start."""
    made_of = robot if robot.given is None else robot.given.variant
    if not remembered(made_of, is_answered_by_program, is_answered_by_program):
        return start.copy(), np.zeros(len(start), bool)
    inputs = (start[0], target[0]) if len(start) == 1 else (start, target)
    q, progress = (np.atleast_2d(x) for x in attempted(robot, reach_program, *inputs))
    last_step, growth, missed = progress.T
    near = missed <= REACHED * np.maximum(np.abs(target).max(axis=-1, initial=0.0), 1.0)
    return q, (last_step <= SETTLED) & (growth <= _CONTRACTION) & near


def _place(batch: tuple[int, ...], i: int) -> list[int]:
    """The index in a batch of a state that is numbered as if the batch were flat."""
    return [int(k) for k in np.unravel_index(i, batch)] if batch else []
