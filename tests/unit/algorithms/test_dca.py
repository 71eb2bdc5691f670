"""Divide and conquer: the same as recursions, in a depth that grows with the logarithm of the number of bodies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coupler import forward_dynamics, inverse_dynamics, inverse_osim, robots
from coupler.algorithms.aba import forward_dynamics_program
from coupler.algorithms.assembly import Assembly
from coupler.algorithms.dca import divide_and_conquer_program
from coupler.algorithms.efpa import inverse_osim_program
from coupler.algorithms.pieces import Piece
from coupler.graph import compile
from coupler.mechanisms import gear
from coupler.model import (
    Fixed,
    Free,
    ModelWarning,
    Planar,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Rod,
)
from coupler.model.merging import on_one_body_each
from effort import samples, sweep
from random_robots import sample

SAME = 1e-11  # relative to the largest entry; 1e-13 is usual


def chain(bodies: int, mass: Callable[[int], float] = lambda i: 1.0, first: Any = None, seed: int = 0) -> Robot:
    """Bodies in a row, in general position."""
    rng, b = np.random.default_rng(seed), RobotBuilder("chain")
    for i in range(bodies):
        b.body(f"b{i}", mass(i), rng.uniform(-0.3, 0.3, 3), tuple(mass(i) * np.array([0.1, 0.12, 0.15])))
        kind = first if first and not i else Revolute(axis=rng.normal(size=3))
        b.joint(f"j{i}", kind, f"b{i - 1}" if i else "ground", f"b{i}", rng.uniform(-1, 1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # of bodies without mass
        return b.build()


def ends(robot: Robot) -> list[str]:
    return [robot.body_names[0], robot.body_names[-1]]


def program(robot: Robot, *frames: str) -> Any:
    return divide_and_conquer_program(robot, [robot.tree.place[frame] for frame in frames])


def check(robot: Robot, frames: list[str], same: float = SAME) -> None:
    """Against the articulated-body and the extended force propagator algorithm."""
    run = compile(program(robot, *frames), backend=robot.backend)
    for seed in range(3):
        (q, v), tau = robot.random_state(seed), np.random.default_rng(seed).normal(size=robot.nv)
        a, omega = run(q, v, tau)
        wanted, response = forward_dynamics(robot, q, v, tau), inverse_osim(robot, q, frames)
        np.testing.assert_allclose(a, wanted, rtol=0, atol=same * np.abs(wanted).max())
        np.testing.assert_allclose(omega.reshape(response.shape), response, rtol=0, atol=same * np.abs(response).max())


@pytest.mark.parametrize(
    "name",
    sweep(
        ["floating tree", "tree", "series", "geared loop", "belt", "differential", "four-bar"],
        ["tree", "belt", "four-bar"],
    ),
)
def test_it_agrees_with_recursions(name: str) -> None:
    robot = sample(name).robot
    check(robot, [*robot.body_names[:3], robot.body_names[-1], "ground"])


@pytest.mark.parametrize("name", sweep(["tello", "mit_humanoid", "mini_cheetah"], ["tello"]))
def test_it_agrees_on_robots_with_rotors(name: str) -> None:
    robot = robots.load(name).with_backend("interpreter")
    check(robot, ends(robot))


@pytest.mark.parametrize("light", sweep([0.0, 1e-9, 1e-3], [0.0, 1e-9]))
def test_bodies_next_to_without_mass_do_no_harm(light: float) -> None:
    """Two of three have none, so that their own inertias are singular."""
    robot = chain(9, lambda i: 1.0 if i % 3 == 2 else light).with_backend("interpreter")
    check(robot, ends(robot))
    q, v = robot.random_state(0)
    a, _ = compile(program(robot), backend=robot.backend)(q, v, np.ones(robot.nv))
    np.testing.assert_allclose(inverse_dynamics(robot, q, v, a), 1.0, rtol=0, atol=1e-8)


def test_a_body_without_inertia_about_its_own_line_does_no_harm() -> None:
    """A thin rod, free in space, whose inertia is singular; what it carries resists."""
    b = RobotBuilder("rod")
    b.body("rod", 1.0, (0.5, 0, 0), (0.0, 0.1, 0.1))
    b.joint("free", Free(), "ground", "rod")
    b.body("arm", 1.0, (0, 0.3, 0), (0.1, 0.1, 0.1))
    b.joint("turn", Revolute(axis=(0, 1, 0)), "rod", "arm", (1, 0, 0))
    robot = b.build()
    check(robot, ends(robot))


def test_springs_between_points_pull() -> None:
    b = RobotBuilder("sprung")
    for i in range(6):
        b.body(f"b{i}", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
        b.joint(f"j{i}", Revolute(axis=(0, 1, 0)), f"b{i - 1}" if i else "ground", f"b{i}", (1, 0, 0))
    b.spring("spring", "b1", "b5", (0, 0, 0.1), (0, 0.2, 0.1), stiffness=30.0, damping=1.0)
    robot = b.build()
    check(robot, ends(robot))


@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_on_several_bodies_is_one_with_what_carries_it(seed: int) -> None:
    robot = sample("geared loops", seed).robot
    assert any(len(set(cluster.outputs)) > 1 for cluster in robot.cluster_tree.clusters)
    check(robot, [*robot.body_names[:3], robot.body_names[-1]])


def two_arms(geared: bool, solved: bool = True) -> RobotBuilder:
    """Two arms on a trolley that hold a rod, with wrists that turn together, and a hand that hangs on one of them."""
    b = RobotBuilder("two arms")
    b.body("trolley", 3.0, inertia=(0.1, 0.1, 0.1))
    b.joint("rail", Prismatic(axis=(1, 0, 0)), "ground", "trolley")
    for side, x in (("left", 0.0), ("right", 0.5)):
        b.body(side, 1.0, (0, 0, -0.2), (0.02, 0.02, 0.002))
        b.joint(f"{side} shoulder", Revolute(axis=(0, 1, 0)), "trolley", side, (x, 0, 0))
        b.body(f"{side} wrist", 0.4, (0.05, 0, 0), (0.002, 0.003, 0.004))
        b.joint(f"{side} turn", Revolute(axis=(0, 0, 1)), side, f"{side} wrist", (0, 0, -0.4))
    if geared:
        b.couple("shoulders", ["left shoulder", "right shoulder"], gear(-2.0), ["left shoulder"])
    else:
        b.loop("rod", Rod(0.5), "left", "right", at=(0, 0, -0.1), meets=(0, 0, -0.1))
    wrists = ["left turn", "right turn"]
    if solved:
        b.couple("wrists", wrists, gear(3.0), wrists[:1])
    else:
        b.couple("wrists", wrists, lambda q: q[1] - 3 * q[0])
    b.body("hand", 0.2, (0.1, 0, 0), (0.001, 0.002, 0.002))
    b.joint("grip", Revolute(axis=(0, 1, 0)), "right wrist", "hand", (0.1, 0, 0))
    return b


def test_wrists_that_turn_together_on_arms_that_do() -> None:
    """A cluster that is solved on two bodies of another that is, with a third on it."""
    robot = two_arms(geared=True).build()
    assert len(robot.cluster_tree.clusters) == 5
    check(robot, ["hand", "left wrist", "trolley"])
    merged = on_one_body_each(robot).cluster_tree.clusters
    assert len(merged) == 4 and all(len(set(cluster.outputs)) <= 1 for cluster in merged)


def test_parts_that_are_solved_on_parts_that_are_not() -> None:
    """Wrists with a γ on arms that a rod holds, and the other way round; q has independent joints of the one alone."""
    robot = two_arms(geared=False).build(closure={"rod": "numerical"})
    assert on_one_body_each(robot).nq == robot.nq + 1
    check(robot, ["hand", "left wrist", "trolley"])
    check(two_arms(geared=True, solved=False).build(), ["hand", "left wrist", "trolley"])
    check(two_arms(geared=False, solved=False).build(closure="numerical"), ["hand", "left wrist"])


def test_robots_without_such_clusters_stay_as_they_are() -> None:
    robot = robots.load("tello")
    assert on_one_body_each(robot) is robot


@pytest.mark.sampled
def test_depth_grows_with_the_logarithm() -> None:
    """The same increment for each doubling, from 4 bodies on, where the articulated-body algorithm doubles."""
    planar = Planar(normal=(0, 1, 0))
    lengths = [4, 8, 16, 32, 64, 128][: samples(5, 6)]
    found = [chain(n, first=planar) for n in lengths]
    divided = np.array([program(robot, *ends(robot)).depth() for robot in found])
    assert len(set(np.diff(divided))) == 1
    assert np.diff(divided)[0] < 200
    places = [[robot.tree.place[end] for end in ends(robot)] for robot in found]
    for recursive in (
        [forward_dynamics_program(robot).depth() for robot in found],
        [inverse_osim_program(robot, place).depth() for robot, place in zip(found, places, strict=True)],
    ):
        steps = np.diff(recursive) / np.diff(lengths)
        np.testing.assert_allclose(steps[1:], steps[-1], rtol=0.1)  # so much for each body
        assert recursive[-1] > 2 * divided[-1]


@pytest.mark.long
def test_a_chain_of_400_bodies_has_as_many_kernels_as_a_short_one() -> None:
    long, short = chain(400), chain(64)
    of_long, of_short = program(long, *ends(long)), program(short, *ends(short))
    assert len(of_long.kernels()) == len(of_short.kernels())
    assert of_long.depth() < of_short.depth() + 3 * 200  # not quite three doublings
    q, v = long.random_state(0)
    a, _ = compile(of_long)(q, v, np.zeros(long.nv))
    wanted = forward_dynamics(long, q, v, np.zeros(long.nv))
    np.testing.assert_allclose(a, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


def test_many_bodies_on_one_are_put_together_side_by_side() -> None:
    """64 arms on a hub take no more depth than a few."""

    def star(arms: int) -> Robot:
        b = RobotBuilder("star")
        b.body("hub", 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint("free", Free(), "ground", "hub")
        for i in range(arms):
            b.body(f"arm{i}", 0.1, (0.1, 0, 0), (0.01, 0.01, 0.01))
            b.joint(f"turn{i}", Revolute(axis=(0, 1, 0)), "hub", f"arm{i}", (np.cos(i), np.sin(i), 0))
        return b.build()

    robot = star(64).with_backend("interpreter")
    check(robot, ends(robot))
    assert program(robot).depth() <= program(star(4)).depth() + 2 * 4  # an addition for each doubling, of M and p


def test_halves_are_halves() -> None:
    def height(piece: Piece) -> int:
        return 1 + max((height(part) for part in (*piece.parts, *piece.taken.values())), default=-1)

    for bodies in (1, 2, 7, 64, 100):
        assert height(Assembly(chain(bodies), "halves", []).whole) == int(np.ceil(np.log2(bodies)))


def test_a_robot_that_cannot_move_has_nothing_to_put_together() -> None:
    b = RobotBuilder("post")
    b.body("post", 1.0, inertia=(1, 1, 1))
    b.joint("weld", Fixed(), "ground", "post")
    a, omega = compile(program(b.build(), "post"))([], [], [])
    assert a.shape == (0,)
    np.testing.assert_array_equal(omega, np.zeros(36))


def test_the_largest_gap_counts_wherever_it_is() -> None:
    """A quaternion of wrong length gives no result."""
    robot = chain(3, first=Free())
    (q, v), run = robot.random_state(0), compile(program(robot))
    q[3:7] *= 1.1
    assert np.isnan(run(q, v, np.zeros(robot.nv))[0]).all()
