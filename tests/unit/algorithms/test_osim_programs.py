"""Programs that give accelerations and inverse operational-space inertia in other ways: all give the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coupler import forward_dynamics, inverse_osim, robots
from coupler.algorithms.aba_with_osim import dynamics_and_osim_program
from coupler.algorithms.baselines.dense import dense_lagrange, dense_osim, dense_projection
from coupler.algorithms.baselines.traditional import traditional_program
from coupler.algorithms.pv_osim import pv_osim_program
from coupler.graph import compile
from coupler.kinematics import frame_place
from coupler.model import Robot
from coupler.passes import Place
from coupler.studies.formulations import chain
from effort import sweep
from property.test_random_dynamics import robot_of

EXACT = 1e-11  # relative to the largest entry; 1e-14 is reached
NAMES = ["mini_cheetah", "five_bar", "chain", "on several bodies", "tello"]


def robot_named(name: str) -> Robot:
    if name == "chain":
        return chain(12)  # 14 freedoms: tiles beyond the matrix
    return robot_of("three carriers") if name == "on several bodies" else robots.load(name)


def interpreted(program: Any) -> Any:
    return compile(program, backend="interpreter")


@pytest.mark.parametrize("name", sweep(NAMES, NAMES[:4]))
def test_all_ways_give_the_same(name: str) -> None:
    robot = robot_named(name)
    (q, v), tau = robot.random_state(3), np.random.default_rng(1).normal(size=robot.nv)
    frames = [robot.body_names[-1], robot.body_names[0], robot.body_names[-1]]
    places = [frame_place(robot, frame) for frame in frames]
    a, omega = forward_dynamics(robot, q, v, tau), inverse_osim(robot, q, frames)
    for make in (dynamics_and_osim_program, traditional_program):
        found, response = interpreted(make(robot, places))(q, v, tau)
        assert np.abs(found - a).max() < EXACT * np.abs(a).max()
        assert np.abs(response.reshape(omega.shape) - omega).max() < EXACT * np.abs(omega).max()
    response = interpreted(pv_osim_program(robot, places))(q).reshape(omega.shape)
    assert np.abs(response - omega).max() < EXACT * np.abs(omega).max()
    assert np.array_equal(response, response.T)
    assert np.abs(dense_osim(robot, places, interpreted)(q) - omega).max() < EXACT * np.abs(omega).max()
    for dense in (dense_projection, dense_lagrange):
        assert np.abs(dense(robot, interpreted)(q, v, tau) - a).max() < 100 * EXACT * np.abs(a).max()


def test_without_frames_there_are_accelerations_alone() -> None:
    robot = robots.load("five_bar")
    q, v = robot.random_state(0)
    for make in (dynamics_and_osim_program, traditional_program):
        a, omega = interpreted(make(robot, []))(q, v, v)
        assert np.abs(a - forward_dynamics(robot, q, v, v)).max() < EXACT * np.abs(a).max()
        assert omega.shape == (0,)


def test_contacts_at_the_root_cost_next_to_nothing_in_one_pass() -> None:
    """002, Fig. 6: curves with no contact and with one at the root are parallel, with one at the tip they are not."""
    counts = []
    for bodies in (8, 16):
        robot = chain(bodies)
        ways = [[], ["rod0"], ["rod0", f"rod{bodies - 1}"]]
        programs = [dynamics_and_osim_program(robot, [robot.tree.place[body] for body in way]) for way in ways]
        counts.append([program.operations().total() for program in programs])
    none, one, two = np.diff(counts, axis=0)[0]
    assert one < 1.05 * none and two > 1.5 * none


def test_a_place_can_be_a_block_of_a_matrix() -> None:
    block = Place.block(None, 7, (2, 3), 10)  # type: ignore[arg-type]
    assert (block.start, block.field.shape, block.field.places) == (7, (2, 3), (0, 1, 2, 10, 11, 12))
