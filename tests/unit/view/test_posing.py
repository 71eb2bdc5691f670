"""Poses by independent coordinates: others follow, and the end of the way is told."""

from __future__ import annotations

import numpy as np
import pytest

import coupler
from coupler.model import ModelError
from coupler.view.posing import Posing


@pytest.mark.parametrize("name", ["four_bar", "mini_cheetah", "planar_leg_linkage", "rh5_manus"])
def test_coordinates_go_where_they_are_asked_to(name: str) -> None:
    robot = coupler.robots.load(name)
    posing, rng = Posing(robot), np.random.default_rng(0)
    for _ in range(3):
        ranges = [(max(c.low, -0.7), min(c.high, 0.7)) for c in posing.coordinates]
        goal = np.array([rng.uniform(*each) for each in ranges])
        assert posing.move(goal), posing.message
        np.testing.assert_allclose(posing.values, goal, atol=1e-6)
        robot.check_closed(posing.q)


def test_a_four_bar_stays_on_its_branch() -> None:
    robot = coupler.robots.load("four_bar")
    posing = Posing(robot)
    start = robot.joint_positions(posing.q)["joint2"]
    assert posing.move([2.5])
    assert posing.move([np.pi / 3])
    assert robot.joint_positions(posing.q)["joint2"] == pytest.approx(start)


def test_the_end_of_the_reach_is_told_and_the_way_back_is_open() -> None:
    robot = coupler.robots.load("five_bar")
    posing = Posing(robot)
    start = posing.values
    assert not posing.move([np.pi, start[1]])
    assert "does not come further" in posing.message
    robot.check_closed(posing.q)
    assert posing.move(start) and not posing.message


def test_limits_are_the_range_of_a_slider() -> None:
    coordinates = {each.joint: each for each in Posing(coupler.robots.load("rh5_manus")).coordinates}
    elbow = coordinates["ALElbow"]
    assert elbow.limited and (elbow.low, elbow.high) == (-1.8, 0.0)


def test_a_floating_base_is_placed_by_shifts_and_turns() -> None:
    robot = coupler.robots.load("mini_cheetah")
    posing = Posing(robot)
    labels = [each.label for each in posing.coordinates[:6]]
    assert labels == [f"floating_base {x}" for x in ("x", "y", "z", "about x", "about y", "about z")]
    goal = posing.values
    goal[:6] = [0.1, -0.2, 0.3, 0.0, 0.0, np.pi / 2]
    assert posing.move(goal)
    np.testing.assert_allclose(posing.q[:7], [0.1, -0.2, 0.3, np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-9)


def test_an_open_configuration_is_refused() -> None:
    robot = coupler.robots.load("four_bar")
    with pytest.raises(ModelError, match="loop1"):
        Posing(robot, robot.neutral() + np.array([0.3, 0.0, 0.0]))
