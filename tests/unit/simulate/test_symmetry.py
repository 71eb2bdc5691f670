"""A scene that is turned as a whole, seen in a mirror, or described in another order, moves alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import coupler
from coupler.model import Box, Capsule, Plane, Robot, RobotBuilder, Sphere
from coupler.rotation import about_axis
from effort import every

ALIKE = 1e-8  # m and rad, after 0.5 s and some fifty impacts; 5e-10 is seen
OPTIONS: list[dict[str, Any]] = [
    {},
    {"restitution": 0.5},
    {"integrator": "rk4"},
    {"integrator": "trapezoid", "restitution": 0.3},
    {"torsion": 0.01, "rolling": 0.002},
]
THINGS = {"box": Box((0.2, 0.3, 0.1)), "ball": Sphere(0.08), "bar": Capsule(0.05, 0.2)}
PLACES = {"box": (0.0, 0.0, 0.4), "ball": (0.05, 0.04, 0.75), "bar": (-0.3, 0.1, 0.3)}
TURNS = {
    "box": about_axis(np.array([1.0, 0, 0]), 0.4) @ about_axis(np.array([0, 1.0, 0]), 0.3),
    "ball": np.eye(3),
    "bar": about_axis(np.array([0, 1.0, 0]), 1.2),
}
SPINS = {"box": (1.0, -2.0, 3.0), "ball": (2.0, 1.0, -4.0), "bar": (-1.0, 3.0, 2.0)}
SPEEDS = {"box": (0.5, 0.3, 0.0), "ball": (0.1, -0.2, -1.0), "bar": (1.0, 0.0, 0.4)}
TURN = about_axis(np.array([0.6, 0.0, 0.8]), 1.1)
MIRROR = np.diag([1.0, -1.0, 1.0])  # across the plane of x and z, in which all three shapes are their own images


def scene(T: np.ndarray, order: Sequence[str]) -> tuple[Robot, np.ndarray]:
    """Three things above a floor, all of it moved by the orthogonal T, and the velocities they start with."""
    mirror = MIRROR if np.linalg.det(T) < 0 else np.eye(3)  # of bodies: E, the rotation of one, becomes T E mirror
    b = RobotBuilder("scene", gravity=T @ [0, 0, -9.81])
    b.shape("ground", Plane(), turned=T @ mirror, friction=0.4)
    for name in order:
        b.object(name, THINGS[name], at=T @ PLACES[name], turned=T @ TURNS[name] @ mirror)
    robot = b.build()
    v = np.zeros(robot.nv)
    for name in order:
        E = T @ TURNS[name] @ mirror
        v[robot.v_slice(name)] = [*(np.linalg.det(T) * E.T @ T @ SPINS[name]), *(E.T @ T @ SPEEDS[name])]
    return robot, v


def run(options: dict[str, Any], T: np.ndarray, order: Sequence[str] = tuple(THINGS)) -> np.ndarray:
    """Positions of the centres and kinetic energies over 0.5 s, moved back."""
    robot, v = scene(T, order)
    log = coupler.Simulation(robot, v=v, **options).run(0.5)
    centres = [coupler.frame_pose(robot, log.q, name)[:, :3, 3] @ T for name in THINGS]
    return np.concatenate([*centres, log.kinetic[:, None]], axis=1)


@cache
def as_it_is(i: int) -> np.ndarray:
    return run(OPTIONS[i], np.eye(3))


@pytest.mark.parametrize("i", every(len(OPTIONS), range(len(OPTIONS))))
@pytest.mark.parametrize("how", ["turned", "in a mirror", "in another order"])
def test_a_scene_moves_alike(i: int, how: str) -> None:
    if how == "in another order":
        found = run(OPTIONS[i], np.eye(3), ("bar", "box", "ball"))
    else:
        found = run(OPTIONS[i], TURN if how == "turned" else MIRROR)
    expected = as_it_is(i)
    assert expected[:, 8].min() < 0.06 and expected[-1, 9] < 0.7 * expected[:, 9].max()  # the bar has come down, hard
    np.testing.assert_allclose(found[:, :9], expected[:, :9], rtol=0, atol=ALIKE)
    np.testing.assert_allclose(found[:, 9], expected[:, 9], rtol=0, atol=ALIKE * 100)  # J, of some 20
