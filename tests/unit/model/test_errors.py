"""Warnings point to the line of the user's that led to them, however deep in the library they arise."""

from __future__ import annotations

import warnings
from inspect import currentframe

import numpy as np

import coupler
from coupler.model import ModelWarning


def test_warnings_point_to_the_users_line() -> None:
    robot = coupler.robots.load("mini_cheetah").with_floor()
    zero = np.zeros((2, 1, robot.nv))
    frame = currentframe()
    assert frame is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = frame.f_lineno
        coupler.rollout(robot, robot.neutral(), zero[0, 0], zero)  # starts below the floor
        coupler.Simulation(robot, q=robot.neutral()).step()
        coupler.Simulation(coupler.robots.load("mini_cheetah")).run(0.001)  # can touch nothing
    lines = {(warning.filename, warning.lineno - first) for warning in caught}
    assert lines == {(__file__, 1), (__file__, 2), (__file__, 3)}
    assert {warning.category for warning in caught} == {ModelWarning}
