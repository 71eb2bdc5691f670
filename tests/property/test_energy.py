"""Seconds of motion of robots with loops: energy and momentum are kept, or change by what forces and dampers do.

Other tests compare accelerations at single states. Here an error of any size adds up, and so does one of `integrate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import legendre

import coupler
from coupler.model import Free, Robot
from coupler.model.elements import PointElement
from coupler.spatial import cross_motion
from effort import samples, sweep
from random_robots import sample

KEPT = 1e-10  # relative to the largest kinetic energy; 2e-12 is reached
TIME = float(samples(3, 10))  # s


pytestmark = pytest.mark.sampled


# The integrator: Gauss' collocation of order 12, whose stages are a batch


STAGES = 6
NODES = (legendre.leggauss(STAGES)[0] + 1.0) / 2.0


def weights(at: Any, integrated: bool) -> np.ndarray:
    """Of values at the nodes, for the polynomial through them at some times, or for its integral from 0 to there."""
    powers, at = np.arange(STAGES), np.atleast_1d(at)[:, None]
    terms = at ** (powers + 1) / (powers + 1) if integrated else at**powers
    return terms @ np.linalg.inv(NODES[:, None] ** powers)


WITHIN, ACROSS, AHEAD = weights(NODES, True), weights(1.0, True)[0], weights(NODES + 1.0, False)


def rates(robot: Robot, y: np.ndarray, v: np.ndarray) -> np.ndarray:
    """ẏ for the displacement y with q = integrate(start, y), which is v but for free joints: these move by exp(y).

    There it is v + ½ [y, v] + ¹⁄₁₂ [y, [y, v]] − ¹⁄₇₂₀ [y, [y, [y, [y, v]]]] + ..., with y small.
    """
    found = v.copy()
    for own in (robot.v_slice(joint.name) for joint in robot.joints if isinstance(joint.kind, Free)):
        way, term = np.moveaxis(y[..., own], -1, 0), np.moveaxis(v[..., own], -1, 0)
        for weight in (1 / 2, 1 / 12, 0, -1 / 720, 0, 1 / 30240, 0, -1 / 1209600):
            term = cross_motion(way, term)
            found[..., own] += weight * np.moveaxis(term, 0, -1)
    return found


@dataclass(frozen=True, eq=False)
class Load:
    """What moves a robot.

    Attributes:
        tau: forces at joints by time.
        f_ext: forces on bodies.
        power: of all that has no potential, by state and time.
    """

    tau: Callable[[np.ndarray], np.ndarray]
    f_ext: np.ndarray
    power: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def motion(
    robot: Robot, q: np.ndarray, v: np.ndarray, step: float, load: Load | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and the work done since the start, at the end of each step."""
    states, done = [(q, v)], [np.zeros(len(v))]
    Y, V = np.zeros((STAGES, *v.shape)), np.repeat(v[None], STAGES, axis=0)
    for n in range(round(TIME / step)):
        times = step * (n + NODES)[:, None]
        forces = (np.zeros_like(V),) if load is None else (load.tau(times), load.f_ext)
        for _ in range(60):  # until the stages are a fixed point
            Q = robot.integrate(q, Y)
            a, r = coupler.forward_dynamics(robot, Q, V, *forces), rates(robot, Y, V)
            last, Y, V = (Y, V), step * np.tensordot(WITHIN, r, 1), v + step * np.tensordot(WITHIN, a, 1)
            if max(np.abs(Y - last[0]).max(), step * np.abs(V - last[1]).max()) < 1e-14:
                break
        else:
            pytest.fail("the stages of the integrator do not converge")
        power = np.zeros(V.shape[:-1]) if load is None else load.power(Q, last[1], times)
        q, v = robot.integrate(q, step * np.tensordot(ACROSS, r, 1)), v + step * np.tensordot(ACROSS, a, 1)
        Y, V = (step * np.tensordot(WITHIN @ AHEAD, x, 1) for x in (r, a))  # to start from
        V += v
        states.append((q, v))
        done.append(done[-1] + step * np.tensordot(ACROSS, power, 1))
    q, v = map(np.array, zip(*states, strict=True))
    return q, v, np.array(done)


# Robots with states from which they keep clear of singularities


Start = tuple[Robot, np.ndarray, np.ndarray, float]  # q, v and the step


def at(robot: Robot, count: int) -> np.ndarray:
    """Neutral, several times."""
    return np.repeat(robot.neutral()[None], count, axis=0)


def hung(name: str) -> Robot:
    """Upside down: its linkage, which stands on the ground otherwise, can swing."""
    robot = coupler.robots.load(name)
    return robot.with_gravity(-robot.gravity)


def four_bar() -> Start:
    robot = hung("four_bar")
    return robot, robot.pack_q({"joint1": np.radians([60.0, 80.0, 115.0, 128.0])}), np.zeros((4, 1)), 0.02


def five_bar() -> Start:
    robot = hung("five_bar")
    shoulders = {"left_shoulder": np.array([1.6, 1.4, 1.5]), "right_shoulder": np.array([1.6, 1.7, 1.8])}
    return robot, robot.pack_q(shoulders), np.zeros((3, 2)), 0.02


def slider_crank() -> Start:
    """Full turns, either way, and a swing."""
    robot = coupler.robots.load("slider_crank")
    return robot, at(robot, 4), np.array([[-15.0], [-2.0], [0.0], [12.0]]), 0.01


def geared_chain() -> Start:
    robot = coupler.robots.load("geared_chain", links=4, seed=2)
    return robot, at(robot, 4), np.random.default_rng(0).normal(size=(4, robot.nv)), 0.02


def mini_cheetah() -> Start:
    """Tumbling in space, its legs and rotors turning."""
    robot = coupler.robots.load("mini_cheetah").with_gravity(np.zeros(3))
    return robot, at(robot, 3), np.random.default_rng(1).normal(size=(3, robot.nv)), 0.04


def sprung(robot: Robot, q: np.ndarray, damping: float = 0.0) -> Robot:
    """The same robot with springs that pull all joints towards a configuration, and armatures; dampers if asked for."""
    rest, rng = robot.joint_positions(q), np.random.default_rng(3)

    def passive(joint: str, kind: Any) -> Any:
        if isinstance(kind, Free):
            return kind
        stiffness, armature = rng.uniform(10.0, 30.0, kind.nv), rng.uniform(0.0, 0.3, kind.nv)
        return replace(kind, stiffness=stiffness, rest=rest[joint], damping=damping, armature=armature)

    ground, *links = robot.tree.links
    links = [replace(link, kind=passive(link.joint, link.kind)) for link in links]
    return replace(robot, tree=replace(robot.tree, links=(ground, *links)))


def sprung_loop(name: str) -> Start:
    """A random robot, away from where its springs are at ease."""
    robot = sample(name).robot
    q, _ = robot.random_state(1)
    robot = sprung(robot, q)
    return robot, np.repeat(q[None], 3, axis=0), 2.0 * np.random.default_rng(2).normal(size=(3, robot.nv)), 0.02


def tethered(name: str) -> Start:
    """A random robot afloat whose base hangs on three springs."""
    robot, q, v, step = sprung_loop(name)
    base, points = robot.joints[0].child, 0.3 * np.array([[1.0, 0.0, 0.0], [-0.5, 0.8, 0.0], [-0.5, -0.8, 0.2]])
    pose = coupler.frame_pose(robot, q[0], base)
    above = points @ pose[:3, :3].T + pose[:3, 3] + [0.0, 0.0, 0.65]
    springs = [
        PointElement(f"tether{i}", "ground", base, *ends, stiffness=100.0, free_length=0.5, pretension=3.0)
        for i, ends in enumerate(zip(above, points, strict=True))
    ]
    return replace(robot, elements=tuple(springs)), q, 0.25 * v, 2.0 * step


STARTS: dict[str, Callable[[], Start]] = {
    "four-bar": four_bar,
    "five-bar": five_bar,
    "slider-crank": slider_crank,
    "geared chain": geared_chain,
    "mini cheetah": mini_cheetah,
    "spherical loop with springs": lambda: sprung_loop("spherical loop"),
    "implicit coupling with springs": lambda: sprung_loop("implicit"),
    "four-bar on tethers": lambda: tethered("four-bar"),
}


def energies(robot: Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All energy, and the largest kinetic energy, for each motion."""
    kinetic = coupler.kinetic_energy(robot, q, v)
    return kinetic + coupler.potential_energy(robot, q), kinetic.max(axis=0)


@pytest.mark.parametrize("name", sweep(STARTS, ["four-bar", "slider-crank", "geared chain", "mini cheetah"]))
def test_energy_is_kept(name: str) -> None:
    """Without dampers and forces, at all times; without gravity, momentum too."""
    robot, q, v, step = STARTS[name]()
    q, v, _ = motion(robot, q, v, step)
    total, scale = energies(robot, q, v)
    assert (np.abs(total - total[0]) < KEPT * scale).all()
    if not robot.gravity.any():
        momentum = coupler.momentum(robot, q, v)
        assert np.abs(momentum - momentum[0]).max() < KEPT * np.abs(momentum[0]).max()


# Work


def loaded(robot: Robot, body: str) -> Load:
    """Forces at joints that swing, a force on a body, and the dampers of all joints."""
    rng = np.random.default_rng(4)
    phase, strength = rng.uniform(0.0, 6.0, robot.nv), rng.uniform(0.5, 1.5, robot.nv)
    f = 0.5 * rng.normal(size=6)
    damping = {link.joint: link.kind.damping for link in robot.tree.links[1:]}

    def tau(times: np.ndarray) -> np.ndarray:
        return strength * np.sin(2.0 * times[..., None] + phase)

    def power(q: np.ndarray, v: np.ndarray, times: np.ndarray) -> np.ndarray:
        pose, speed = coupler.frame_pose(robot, q, body), coupler.frame_velocity(robot, q, v, body, axes="world")
        moment = f[:3] - np.cross(pose[..., :3, 3], f[3:])  # about the body's origin
        pushed = speed[..., :3] * moment + speed[..., 3:] * f[3:]
        lost = sum(
            (damping[joint] * w.reshape(*v.shape[:-1], -1) ** 2).sum(axis=-1)
            for joint, w in robot.joint_velocities(q, v).items()
        )
        return (tau(times) * v).sum(axis=-1) + pushed.sum(axis=-1) - lost

    on_bodies = np.array([f if name == body else np.zeros(6) for name in robot.bodies])
    return Load(tau, on_bodies, power)


@pytest.mark.parametrize("name", ["spherical loop", "belt"])
def test_energy_changes_by_the_work_of_forces_and_dampers(name: str) -> None:
    """Of joint forces, a force on a body and dampers at all joints, dependent ones too, up to any time."""
    robot = sample(name).robot
    q, v = robot.random_state(1)
    robot = sprung(robot, q, damping=0.1)
    load = loaded(robot, robot.body_names[-1])
    states = np.repeat(q[None], 2, axis=0), np.stack([0.0 * v, 2.0 * v]), 0.02
    *found, work = motion(robot, *states, load)
    total, scale = energies(robot, *found)
    assert (np.abs(work).max(axis=0) > 0.1 * scale).all()
    assert (np.abs(total - total[0] - work) < KEPT * scale).all()
