"""Loads of actuators along a motion, against numbers by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import coupler
from coupler.model import ModelError, Prismatic, Revolute, Robot, RobotBuilder


def lift() -> Robot:
    """A cart on a vertical rail, with a wheel on it."""
    b = RobotBuilder("lift", gravity=(0, 0, -10))
    b.body("cart", 3.0, inertia=(0.1, 0.1, 0.1))
    b.body("wheel", 1.0, inertia=(0.01, 0.02, 0.01))
    b.joint("rail", Prismatic(axis=(0, 0, 1), effort_limit=80.0), "ground", "cart", actuated=True)
    b.joint("axle", Revolute(axis=(0, 1, 0)), "cart", "wheel", actuated=True)
    return b.build()


def motion(n: int = 2001) -> tuple[np.ndarray, ...]:
    """Up by a sine, and down again, while the wheel speeds up."""
    t = np.linspace(0.0, 2.0, n)
    w = np.pi
    q = np.stack([0.5 * (1 - np.cos(w * t)), 1.5 * t**2], axis=1)
    v = np.stack([0.5 * w * np.sin(w * t), 3.0 * t], axis=1)
    return t, q, v, np.stack([0.5 * w**2 * np.cos(w * t), np.full(n, 3.0)], axis=1)


def test_numbers_are_those_by_hand(tmp_path: Path) -> None:
    sizing = coupler.size_actuators(lift(), *motion())
    rail, axle = sizing.summary["rail"], sizing.summary["axle"]
    swing = 4.0 * 0.5 * np.pi**2
    assert rail["peak force"] == pytest.approx(40.0 + swing) and rail["peak load"] == pytest.approx((40 + swing) / 80)
    assert rail["RMS force"] == pytest.approx(np.sqrt(40.0**2 + swing**2 / 2), rel=1e-6)
    assert (rail["lowest"], rail["highest"]) == pytest.approx((0.0, 1.0), abs=1e-12)
    assert rail["peak speed"] == pytest.approx(np.pi / 2, rel=1e-6)
    assert rail["work done"] - rail["work taken back"] == pytest.approx(
        0.0, abs=1e-5
    )  # it ends where it began, at rest
    assert axle["peak force"] == pytest.approx(0.06) == axle["RMS force"] and axle["peak load"] == 0.0
    assert axle["work done"] == pytest.approx(0.5 * 0.02 * 6.0**2, rel=1e-6) and axle["work taken back"] == 0.0
    assert axle["peak power"] == pytest.approx(0.06 * 6.0)
    assert sizing.turning == (False, True)
    with sizing.to_csv(tmp_path / "a.csv").open() as file:
        head, *rows = list(csv.reader(file))
    assert [row[:2] for row in rows] == [["rail", "m, N"], ["axle", "rad, N m"]]
    assert [float(x) for x in rows[0][2:]] == list(rail.values()) and head[2:] == list(rail)
    assert str(sizing).splitlines()[0].split()[0] == "actuator" and len(str(sizing).splitlines()) == 3


def test_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sizing = coupler.size_actuators(lift(), *motion(51))
    assert sizing.plot(tmp_path / "a.png").stat().st_size > 10_000
    with pytest.raises(ModelError, match="the picture cannot be written"):
        sizing.plot(tmp_path / "a.txt")
    assert not (tmp_path / "a.txt").exists()


def test_a_base_that_nothing_drives_is_left_out_if_asked() -> None:
    robot, t = coupler.robots.load("mini_cheetah"), np.linspace(0.0, 1.0, 3)
    q, v = np.tile(robot.neutral(), (3, 1)), np.zeros((3, robot.nv))
    with pytest.raises(ModelError, match=r"at joint 'floating_base'.*exact=False"):
        coupler.size_actuators(robot, t, q, v, v)
    assert len(coupler.size_actuators(robot, t, q, v, v, exact=False).summary) == 12


def test_wrong_motions_are_told(tmp_path: Path) -> None:
    robot, (t, q, v, a) = lift(), motion(11)
    with pytest.raises(ModelError, match="each later than the one before"):
        coupler.size_actuators(robot, t[::-1], q, v, a)
    with pytest.raises(ModelError, match="times must be"):
        coupler.size_actuators(robot, 1.0, q, v, a)
    with pytest.raises(ModelError, match="q must be 11 × 2 finite numbers"):
        coupler.size_actuators(robot, t, q[:3], v, a)
    with pytest.raises(ModelError, match="there is no folder"):
        coupler.size_actuators(robot, t, q, v, a).to_csv(tmp_path / "none" / "a.csv")
