"""Cables and rods of actuators in pictures."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.view.figure import Figure
from transmission_samples import driven_arm


def test_cables_lead_from_point_to_point() -> None:
    robot, q = driven_arm(), np.array([0.3, -0.4])
    figure = Figure(robot)
    lines = figure.cables(figure.poses(q))
    assert lines.shape == (2 + 2 + 1, 2, 3)  # the rope, the belt and the rod
    lengths = np.linalg.norm(lines[:2, 1] - lines[:2, 0], axis=1)
    alone = robot.with_actuators([robot.actuators["rope"]])
    assert lengths @ [1.0, 0.5] == pytest.approx(coupler.actuator_positions(alone, q)[0])
    assert lines[0, 0] == pytest.approx([0.1, 0, 0.2])
    assert len(Figure(coupler.robots.load("four_bar")).cables(figure.poses(q))) == 0
