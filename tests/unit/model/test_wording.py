"""Lists of names in messages."""

from __future__ import annotations

import pytest

import coupler
from coupler import ModelError, RobotBuilder
from coupler.model import Revolute, Sphere
from coupler.model.wording import length, listed


def test_names_like_the_one_asked_for_come_first() -> None:
    names = [f"body {i}" for i in range(20)] + ["left knee", "right knee"]
    assert listed(names, 2, like="lift knee") == "'left knee', 'right knee' and 20 more"
    assert listed(names, 2, like="zzz") == "'body 0', 'body 1' and 20 more"
    assert listed([], like="a") == ""
    assert listed(["a", "b"], like=["b"]) == "'a', 'b'"  # whatever somebody asks for


def test_the_name_that_was_meant_is_told() -> None:
    robot = coupler.robots.load("mini_cheetah")
    with pytest.raises(ModelError, match="has no joint 'HL_knee_joint'; it has 'HL_knee_link_joint', "):
        robot.pack_q({"HL_knee_joint": 0.1})
    with pytest.raises(ModelError, match="no frame, contact point or body 'HR_foot'; it has 'HR_"):
        coupler.frame_pose(robot, robot.neutral(), "HR_foot")
    with pytest.raises(ModelError, match="has no parameter 'mas:HR_hip_link'; there are 'mass:HR_hip_link', "):
        robot.with_parameters({"mas:HR_hip_link": 1.0})


def test_the_ground_is_among_the_bodies() -> None:
    b = RobotBuilder("arm")
    b.body("link", 1.0, inertia=(1, 1, 1))
    b.shape("world", Sphere(0.1))
    with pytest.raises(ModelError, match="there is no body 'world'; there are 'ground', 'link'"):
        b.build()
    b.joint("hinge", Revolute((0, 1, 0)), "world", "link")
    with pytest.raises(ModelError, match="there is no body 'world'; there are 'ground', 'link'"):
        b.build()


def test_lengths_are_told_in_the_unit_that_reads_best() -> None:
    told = [length(metres) for metres in (2.5e-5, 0.02, 0.9994, 0.9996, 12.345)]
    assert told == ["0.025 mm", "20 mm", "999 mm", "1 m", "12.3 m"]
