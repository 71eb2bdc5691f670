"""Robots of a thousand parts: kernels are traced once for each kind of part, so that they build in seconds.

How many is told by benchmarks/robot.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from coupler import Robot
from effort import sweep
from robot import four_bars, geared_chain, ladder, ring


def worst(robot: Robot, q: np.ndarray) -> float:
    return max(float(error) for error in robot.loop_errors(q).values())


@pytest.mark.parametrize(
    ("describe", "count", "bodies", "freedoms", "clusters"),
    sweep(
        [
            (ring, 1000, 999, 994, 1),
            (ladder, 24, 72, 48, 1),
            (ladder, 72, 216, 144, 1),
            (four_bars, 300, 900, 300, 300),
            (four_bars, 1000, 3000, 1000, 1000),
            (geared_chain, 500, 1000, 500, 500),
            (geared_chain, 1000, 2000, 1000, 1000),
        ],
        [
            (ring, 1000, 999, 994, 1),
            (ladder, 24, 72, 48, 1),
            (four_bars, 300, 900, 300, 300),
            (geared_chain, 500, 1000, 500, 500),
        ],
    ),
)
def test_a_thousand(describe, count: int, bodies: int, freedoms: int, clusters: int) -> None:
    robot = describe(count).build()
    assert (len(robot.bodies), robot.nv, len(robot.cluster_tree.clusters) - 1) == (bodies, freedoms, clusters)
    q, _ = robot.random_state(0)
    assert worst(robot, robot.neutral()) < 1e-12
    assert worst(robot, q) < 1e-12
    if robot.loops:
        noisy = q + 0.001 * np.random.default_rng(0).normal(size=q.shape)
        assert worst(robot, robot.close(noisy)) < 1e-12
    assert "more" in str(robot)
