"""The inverse maps of actuation.py: f with Aᵀ f = τ, and motions with A motion = rates. [003, §II-III]

A = R G has a block for each group of clusters in which the same actuators act. A block has more rows than columns if
actuators are redundant, and fewer if some joints are not actuated. Its system is solved by Householder reflections, for
the solution of least norm or the least-squares one, and each program also returns the residual. Some columns of a
system span all others in every configuration; see `least_squares`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coupler.algorithms.actuation import write_jacobian
from coupler.linear import least_squares
from coupler.model import Robot
from coupler.passes import ActuatedGroups, ClusterRecord, Sweep, actuated_body

Array = Any


def _begin(robot: Robot, name: str) -> tuple[Sweep[Any, Any], ActuatedGroups]:
    """A program that has computed the blocks of A."""
    sweep = Sweep(robot, name, body=actuated_body(robot), cluster=ClusterRecord)
    sweep.inputs("q")
    groups = ActuatedGroups(sweep)
    write_jacobian(sweep, groups.A, groups.place)
    return sweep, groups


def actuator_forces_program(robot: Robot) -> Any:
    """The program (q, tau, weights) → f with Aᵀ f = τ, or nearest to it, of least Σ weight f²; and the residual."""
    sweep, groups = _begin(robot, "actuator_forces")
    groups.solve(_share, "tau", tau=False, weights=True)
    return sweep.build()


def _share(A: Array, spanning: Sequence[int], tau: Array, weights: Array) -> tuple[Array, Array]:
    if len(spanning) == len(A):  # the solution is unique, whatever the weights
        forces = least_squares(A.T, tau)
    else:
        root = 1.0 / np.sqrt(weights)
        forces = root * least_squares((root[:, None] * A).T, tau, spanning)
    return forces, A.T @ forces - tau


def actuated_motion_program(robot: Robot) -> Any:
    """The program (q, near, rates) → the motion nearest to `near` with A motion = rates; and the residual."""
    sweep, groups = _begin(robot, "actuated_motion")
    groups.solve(_follow, "rates", "near", near=False, rates=True)
    return sweep.build()


def _follow(A: Array, spanning: Sequence[int], near: Array, rates: Array) -> tuple[Array, Array]:
    size = np.sqrt(np.sum(A * A, axis=1))  # rows are scaled, so that large gears do not hide small ones
    motion = near + least_squares(A / size[:, None], (rates - A @ near) / size, spanning)
    return motion, A @ motion - rates
