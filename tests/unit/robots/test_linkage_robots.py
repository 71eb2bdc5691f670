"""The bundled robots with differentials and linkages, and JVRC-1: sizes, clusters, closed and regular states."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from coupler.model import Robot
from coupler.robots.five_bar import FORE, UPPER, five_bar
from coupler.robots.four_bar import four_bar
from coupler.robots.jvrc1 import jvrc1
from coupler.robots.planar_leg_linkage import planar_leg_linkage
from coupler.robots.six_bar import six_bar
from coupler.robots.slider_crank import CRANK, ROD, slider_crank
from coupler.robots.tello import tello
from coupler.robots.tello_with_arms import tello_with_arms


class Expected(NamedTuple):
    """Sizes, the mass in kg, and how many bodies each cluster has, outwards from the ground."""

    nq: int
    nv: int
    mass: float
    clusters: list[int]
    actuated: int


LEG = [2, 4, 4]
EXPECTED: dict[Callable[[], Robot], Expected] = {
    tello: Expected(25, 16, 10.4494, [1, *LEG, *LEG], 10),
    tello_with_arms: Expected(33, 24, 16.136868, [1, *LEG, *LEG, *[2] * 8], 18),
    jvrc1: Expected(39, 38, 62.24, [1, *[2] * 32], 32),
    four_bar: Expected(3, 1, 9.9, [3], 1),
    planar_leg_linkage: Expected(4, 2, 0.476, [1, 3], 2),
    six_bar: Expected(5, 3, 16.5, [5], 3),
    slider_crank: Expected(3, 1, 2.05, [3], 1),
    five_bar: Expected(4, 2, 1.0, [4], 2),
}
PARALLELOGRAMS = [(four_bar, "joint1", "joint3"), (planar_leg_linkage, "shank_driver_joint", "shank_support_joint")]
LINKAGES = (four_bar, planar_leg_linkage, six_bar, slider_crank, five_bar)

every_robot = pytest.mark.parametrize("describe", EXPECTED, ids=lambda describe: describe.__name__)
every_linkage = pytest.mark.parametrize("describe", LINKAGES, ids=lambda describe: describe.__name__)
every_tello = pytest.mark.parametrize("describe", [tello, tello_with_arms], ids=lambda describe: describe.__name__)


@every_robot
def test_sizes_mass_and_clusters(describe: Callable[[], Robot]) -> None:
    robot, expected = describe(), EXPECTED[describe]
    assert robot.name == describe.__name__
    assert (robot.nq, robot.nv) == (expected.nq, expected.nv)
    assert robot.mass == pytest.approx(expected.mass, rel=1e-12)
    assert sorted(len(cluster.bodies) for cluster in robot.cluster_tree.clusters[1:]) == sorted(expected.clusters)
    assert len(robot.actuated_joints) == expected.actuated
    assert set(robot.actuated_joints) <= set(robot.independent_joints)
    assert not robot.idle


@every_robot
def test_neutral_and_random_states_are_closed_and_regular(describe: Callable[[], Robot]) -> None:
    robot = describe()
    configurations = np.stack([robot.neutral(), *(robot.random_state(seed)[0] for seed in range(5))])
    robot.check(configurations)
    assert all(error.max() < 1e-9 for error in robot.loop_errors(configurations).values())


@every_linkage
def test_a_linkages_neutral_configuration_is_far_from_singular(describe: Callable[[], Robot]) -> None:
    """The constraint's Jacobian of the dependent joints, with rows of unit length, is well conditioned."""
    robot = describe()
    K, _ = robot.implicit_constraint(robot.neutral())
    K = K / np.linalg.norm(K, axis=1, keepdims=True)
    assert np.linalg.norm(np.delete(K, robot.embedding.v_index, axis=1), -2) > 0.2


@every_tello
@pytest.mark.parametrize("as_shipped", [False, True])
def test_both_variants_of_the_differentials_close(describe: Callable[..., Robot], as_shipped: bool) -> None:
    robot = describe(as_shipped=as_shipped)
    for q in (robot.neutral(), robot.random_state(3)[0]):
        phi, _, _ = robot.embedding.closure.at(robot.embedding.positions(q))
        np.testing.assert_allclose(phi, 0.0, atol=1e-10)


@every_tello
def test_tello_stands_straight_when_neutral(describe: Callable[..., Robot]) -> None:
    robot = describe(as_shipped=False)
    rotors = [joint for joint in robot.joint_names if "hip-rotor" in joint]
    positions = robot.joint_positions(robot.neutral())
    for joint, position in positions.items():
        if joint not in (*rotors, robot.joint_names[0]):
            assert abs(position) < 1e-4, joint  # the lengths are rounded: straight, the rod is open by 2 µm
    assert np.ptp([positions[rotor] for rotor in rotors]) < 1e-6


@pytest.mark.parametrize(
    ("rotors", "together", "apart"),
    [
        ("left-hip-clamp-to-hip-rotor", "left-gimbal-to-thigh", "left-hip-clamp-to-gimbal"),
        ("right-thigh-to-knee-ankle-rotor", "right-thigh-to-shin", "right-shin-to-foot"),
    ],
    ids=["hip", "knee and ankle"],
)
def test_a_differential_adds_and_subtracts(rotors: str, together: str, apart: str) -> None:
    """Rotors that turn alike move one link, rotors that turn against each other the other; all are geared by 6."""
    robot = tello()
    for second, moved, still in ((1.0, together, apart), (-1.0, apart, together)):
        velocities = robot.joint_velocities(robot.neutral(), robot.pack_v({f"{rotors}-1": 1.0, f"{rotors}-2": second}))
        assert abs(velocities[still]) < 1e-6
        assert 0.1 < abs(velocities[moved]) < 0.25


def test_arms_leave_the_legs_as_they_are() -> None:
    legs, both = tello(as_shipped=True), tello_with_arms()
    q, v = both.random_state(4)
    velocities = both.joint_velocities(q, v)
    own = legs.joint_velocities(q[: legs.nq], v[: legs.nv])
    own["torso-to-ground"] = own.pop("floating_base")
    for joint, velocity in own.items():
        np.testing.assert_allclose(velocities[joint], velocity, rtol=1e-12, atol=1e-12)


def test_a_slider_crank_moves_as_the_textbook_says() -> None:
    robot = slider_crank()
    for angle in np.linspace(-np.pi, np.pi, 13):
        positions = robot.joint_positions(robot.pack_q({"shaft": angle}))
        inner = np.arcsin(CRANK / ROD * np.sin(angle))
        assert positions["slide"] == pytest.approx(CRANK * np.cos(angle) + ROD * np.cos(inner), abs=1e-9)


def test_a_five_bar_starts_with_its_elbows_up() -> None:
    """Its figures make the neutral pose exact: triangles of 3, 4 and 5."""
    positions = five_bar().joint_positions(five_bar().neutral())
    assert positions["left_shoulder"] + positions["right_shoulder"] == pytest.approx(np.pi)
    heights = (
        UPPER * np.sin(positions["right_shoulder"]),
        FORE * np.sin(positions["right_shoulder"] + positions["right_elbow"]),
    )
    np.testing.assert_allclose(heights, (0.1 * np.sqrt(3.0), 0.15), rtol=1e-9)


@pytest.mark.parametrize(("describe", "crank", "rocker"), PARALLELOGRAMS, ids=["four-bar", "leg"])
def test_parallelograms_start_as_such(describe: Callable[[], Robot], crank: str, rocker: str) -> None:
    positions = describe().joint_positions(describe().neutral())
    assert positions[crank] == pytest.approx(positions[rocker], abs=1e-9)
    assert abs(np.sin(positions[crank])) > 0.5
