"""A million steps of every bundled robot: energy swings and does not drift, loops stay closed, and what stands stays.

The short run takes 2,000 steps of some of them. A million takes 2 to 80 s of one core, by robot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import coupler
from coupler import Robot, Simulation
from effort import sweep

MANY, FEW = 1_000_000, 2_000
BLOCKS = 1000  # looks at a run of many steps; at one of few, every tenth step
SPEED = 0.5  # of random velocities

ENERGY = {"five_bar": 0.05, "six_bar": 0.05, "planar_leg_linkage": 0.05}  # of the largest kinetic energy
USUAL = 0.01
ROBOTS = coupler.robots.names()

# Without friction these come to poses at which loops have more freedoms than elsewhere, or where light links turn so
# fast that no step of this length keeps energy: the run stops and says so. With some friction, and their limits, they
# do not; what they have only falls then.
RUBBING = ("tello_with_arms", "rh5_manus", "charmie")
FRICTION = 0.01  # N m s/rad for each kg of a robot

STIFFNESS, DAMPING = 30.0, 0.8  # of springs and dampers that hold joints, N m/rad and N m s/rad for each kg of a robot
RISE = 1e-6  # of energy in all, as a part of its range: what is held only loses some
CREEP = 1e-6  # rad or m: by which a robot that stands has moved in 500 s
DEPTH = {FEW: 1e-5, MANY: 1e-7}  # m: the few steps are looked at while robots land, turning, the many mostly afterwards
DROP = 1e-3  # m: from so high what stands is let go
CASES = [(name, steps) for steps in (FEW, MANY) for name in ROBOTS]
FREE, SLOWED = ([case for case in CASES if (case[0] in RUBBING) is rubs] for rubs in (False, True))


@dataclass
class Seen:
    """What is seen of a run, from time to time.

    Attributes:
        kinetic, total: energies, J.
        poses: configurations.
        gap: by how much loops were open at most, m or rad.
        depth: by how much contacts overlapped at most, m.
    """

    kinetic: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    poses: list[np.ndarray] = field(default_factory=list)
    gap: float = 0.0
    depth: float = 0.0


def ran(simulation: Simulation, steps: int) -> Seen:
    robot, engine, seen = simulation.robot, simulation._engine, Seen()
    for _ in _blocks(simulation, steps):
        kinetic, potential = engine.energies(simulation._state)
        seen.kinetic.append(float(kinetic))
        seen.total.append(float(kinetic + potential))
        seen.poses.append(np.array(simulation.q))
        residual = robot.embedding.closure.at(robot.embedding.positions(np.array(simulation.q)))[0]
        seen.gap = max(seen.gap, float(np.abs(residual).max(initial=0.0)))
        seen.depth = max(seen.depth, float(-simulation.gaps.min(initial=0.0)))  # before the last step
    return seen


def _blocks(simulation: Simulation, steps: int) -> Iterator[None]:
    """Takes all steps; yields before them and after each block."""
    block = max(steps // BLOCKS, 10)
    yield
    for _ in range(steps // block):
        for _ in range(block):
            simulation.step()
        yield


def passive(name: str) -> Robot:
    robot = coupler.robots.load(name)
    floats = any(joint.kind.floats for joint in robot.joints)
    return robot.with_gravity((0.0, 0.0, 0.0)) if floats else robot


@pytest.mark.parametrize(("name", "steps"), sweep(FREE, [(name, FEW) for name in ("mini_cheetah", "six_bar")]))
def test_passive_robots_keep_their_energy(name: str, steps: int) -> None:
    """Without motors, and nothing touches; without gravity, if they float."""
    robot = passive(name)
    q, v = robot.random_state(1)
    seen = ran(Simulation(robot, q=q, v=SPEED * v, contacts=[], limits=False), steps)
    assert seen.gap <= 1e-10
    assert np.ptp(seen.total) / max(seen.kinetic) < ENERGY.get(name, USUAL)
    half = len(seen.total) // 2
    drift = abs(np.mean(seen.total[half:]) - np.mean(seen.total[:half])) / max(seen.kinetic)
    assert drift < ENERGY.get(name, USUAL) / 2


@pytest.mark.parametrize(("name", "steps"), sweep(SLOWED, [("tello_with_arms", FEW)]))
def test_robots_whose_joints_rub_only_lose_energy(name: str, steps: int) -> None:
    robot = passive(name)
    q, v = robot.random_state(1)
    robot = with_joints(robot, lambda _: {"damping": FRICTION * robot.mass})
    seen = ran(Simulation(robot, q=q, v=SPEED * v, contacts=[]), steps)
    assert seen.gap <= 1e-10
    assert rise(seen) < RISE * np.ptp(seen.total)


def rise(seen: Seen) -> float:
    """By how much energy grows at most from one look to any later one, J."""
    later = np.maximum.accumulate(seen.total[::-1])[::-1]
    return float((later[1:] - seen.total[:-1]).max())


def with_joints(robot: Robot, values: Callable[[str], dict[str, Any]]) -> Robot:
    """The robot with such values at its independent joints that turn or slide, each a number for all its freedoms."""
    links = []
    for link in robot.tree.links:
        kind = link.kind
        if link.joint in robot.independent_joints and not kind.floats and kind.nq == kind.nv:
            own = {name: np.full(kind.nv, value) for name, value in values(link.joint).items()}
            links.append(replace(link, kind=kind.with_values(**own)))
        else:
            links.append(link)
    return replace(robot, tree=replace(robot.tree, links=tuple(links)))


def held(robot: Robot, q: np.ndarray) -> Robot:
    """The robot with springs and dampers at its independent joints, which hold them where they are at q.

    Dampers are half of critical ones, or stronger: else long chains would swing all the time.
    """
    positions, inertias = robot.joint_positions(q), np.diag(coupler.mass_matrix(robot, q))
    stiffness = STIFFNESS * robot.mass

    def spring(joint: str) -> dict[str, Any]:
        damping = max(DAMPING * robot.mass, np.sqrt(stiffness * inertias[robot.v_slice(joint)].max()))
        return {"stiffness": stiffness, "damping": damping, "rest": positions[joint]}

    return with_joints(robot, spring)


def standing(name: str) -> Simulation:
    """A robot held by springs, on a floor if it floats."""
    robot = coupler.robots.load(name)
    bent = {"hip_joint": -0.4, "knee": 0.8} if name == "mini_cheetah" else {}
    legs = {joint: x for joint in robot.independent_joints for part, x in bent.items() if part in joint}
    q = robot.pack_q(legs) if legs else robot.neutral()
    base = [joint.name for joint in robot.joints if joint.kind.floats]
    if base:
        robot, height = robot.with_floor(friction=0.8), robot.q_slice(base[0]).start + 2
        q[height] += 2.0
        above = Simulation(robot, q=q)
        above.step()
        q[height] += DROP - above.gaps.min()
    v = np.zeros(robot.nv)
    for joint in robot.independent_joints:
        v[robot.v_slice(joint)] = 0.0 if joint in base else 0.1
    return Simulation(held(robot, q), q=q, v=v)


@pytest.mark.parametrize(("name", "steps"), sweep(CASES, [(name, FEW) for name in ("mini_cheetah", "four_bar")]))
def test_robots_that_are_held_come_to_rest_and_stay(name: str, steps: int) -> None:
    """On springs, and on their feet if they float: energy only falls, nothing sinks in, and nothing creeps."""
    simulation = standing(name)
    robot, seen = simulation.robot, ran(simulation, steps)
    assert seen.gap <= 1e-10
    assert seen.depth < DEPTH[steps]
    assert rise(seen) < RISE * np.ptp(seen.total)
    if steps == MANY:
        half = seen.poses[len(seen.poses) // 2]
        assert np.abs(robot.difference(half, seen.poses[-1])).max() < CREEP
        assert seen.kinetic[-1] < 1e-12 * max(seen.kinetic)
