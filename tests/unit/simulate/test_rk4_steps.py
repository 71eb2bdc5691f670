"""Compiled steps of Runge and Kutta with contact, against those of NumPy: whole matrices, and another solver."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from coupler import Robot, RobotBuilder, Simulation
from coupler.contact.formulations import touches
from coupler.contact.joint_rows import joint_rows
from coupler.contact.pairs import pairs_of
from coupler.contact.restitution import Restitution
from coupler.model import Box, Capsule, Cylinder, Ellipsoid, Free, Plane, Prismatic, Revolute, Sphere
from effort import every, sweep
from reference.rk4 import rk4_contact_step

Y = (0.0, 1.0, 0.0)
pytestmark = pytest.mark.filterwarnings("ignore:.*can touch nothing", "ignore:.*overlap", "ignore:.*beyond")
Scene = tuple[Robot, np.ndarray, np.ndarray]  # with the state to start from


def arms() -> Scene:
    """Two floating arms, with springs and dampers at their joints, that touch each other and the ground."""
    b = RobotBuilder("arms")
    for side in "ab":
        b.body(f"{side}0", 1.0, (0.2, 0, 0), (0.02, 0.03, 0.04))
        b.body(f"{side}1", 2.0, (0.2, 0, 0), (0.02, 0.03, 0.04))
        b.joint(f"{side}0", Free(), "ground", f"{side}0")
        hinge = Revolute(axis=(0, 1, 1), damping=0.3, stiffness=5.0, rest=0.2, lower=-0.5, upper=0.25, friction=0.05)
        b.joint(f"{side}1", hinge, f"{side}0", f"{side}1", (0.4, 0, 0))
        b.shape(f"{side}0", Capsule(0.05, 0.3))
        b.shape(f"{side}1", Sphere(0.1))
    b.shape("ground", Plane())
    robot = b.build()
    turned = np.array([0.9, 0.1, 0.3, -0.2]) / np.linalg.norm([0.9, 0.1, 0.3, -0.2])
    places = {"a0": [0, 0, 0.345, *turned], "b0": [0.1, 0.03, 0.47, *turned], "a1": 0.2, "b1": -0.3}
    rng = np.random.default_rng(4)
    return robot, robot.pack_q(places), rng.normal(size=robot.nv) + robot.pack_v({"b0": [0, 0, 0, 0, 0, -2]})


def walking_linkage() -> Scene:
    """A four-bar without a closed form that floats and lands on its coupler's foot, with a damper in the loop."""
    b = RobotBuilder("linkage")
    b.body("base", 2.0, inertia=(0.05, 0.05, 0.05))
    b.joint("free", Free(), "ground", "base")
    for name, length in {"crank": 0.3, "coupler": 0.8, "rocker": 0.7}.items():
        b.body(name, 2.0 * length, (length / 2, 0, 0), (1e-3, length**3 / 6, length**3 / 6))
    b.joint("A", Revolute(axis=Y), "base", "crank")
    b.joint("B", Revolute(axis=Y, damping=0.05), "crank", "coupler", at=(0.3, 0, 0))
    b.joint("D", Revolute(axis=Y, friction=0.02), "base", "rocker", at=(0.9, 0, 0), independent=True)
    b.loop("C", Revolute(axis=Y), "coupler", "rocker", at=(0.8, 0, 0), meets=(0.7, 0, 0))
    b.shape("coupler", Sphere(0.05), at=(0.4, 0, -0.4))
    b.shape("base", Sphere(0.1), at=(0, 0.1, -0.6))
    b.shape("ground", Plane(), friction=0.4)
    robot = b.build()
    q = robot.pack_q({"free": [0, 0, 0.72, 1, 0, 0, 0], "A": -2.0})
    return robot, q, robot.pack_v({"free": [0.1, 0.2, 0, 0.5, 0, -1.5], "D": 0.3})


def stack() -> Scene:
    """A box that slides on another one, which slides on the ground: contacts without a closed form."""
    b = RobotBuilder("stack")
    for name, z in (("low", 0.1), ("high", 0.3)):
        b.body(name, 1.0 + z, inertia=(0.01, 0.012, 0.014))
        b.joint(name, Free(), "ground", name, at=(0, 0, z))
        b.shape(name, Box((0.3, 0.25, 0.2)), friction=0.5)
    b.shape("ground", Plane(), friction=0.2)
    robot = b.build()
    v = robot.pack_v({"low": [0, 0, 0.1, 0.6, 0, 0], "high": [0, 0, -0.3, 1.4, 0.2, 0]})
    return robot, robot.neutral(), v


def strong() -> Scene:
    """A ball and an ellipsoid, each under a heavy one: contacts that keep their lever arms."""
    b = RobotBuilder("strong")
    for x, kind in enumerate((Sphere(0.1), Ellipsoid((0.15, 0.12, 0.1)))):
        for name, mass, z in ((f"light{x}", 1.0, 0.1), (f"heavy{x}", 3e3, 0.3)):
            b.body(name, mass, (0.01, 0.0, 0.02), inertia=(0.004 * mass,) * 3)
            b.joint(name, Free(), "ground", name, at=(x, 0, z))
            b.shape(name, kind, friction=0.5)
    b.shape("ground", Plane())
    robot = b.build()
    return robot, robot.neutral(), robot.pack_v({"heavy0": [0, 0, 0, 1e-3, 0, 0], "light1": [0, 0.1, 0, 0, 2e-3, 0]})


def rolling_wheel() -> Scene:
    """A cylinder that rolls on its side, beside one that wobbles on its rim."""
    b = RobotBuilder("wheels")
    for name in ("rolls", "wobbles"):
        b.body(name, 1.5, inertia=(0.01, 0.01, 0.02))
        b.joint(name, Free(), "ground", name)
        b.shape(name, Cylinder(0.1, 0.2))
    b.shape("ground", Plane(), friction=0.6)
    robot, half = b.build(), np.sqrt(0.5)
    q = robot.pack_q({"rolls": [0, 0, 0.1, half, half, 0, 0], "wobbles": [1, 0, 0.1, 1, 0, 0, 0]})
    return robot, q, robot.pack_v({"rolls": [0, 0, 3.0, 0.3, 0, 0], "wobbles": [0.4, 0.1, 2, 0.1, 0, 0]})


def passing_ball() -> Scene:
    """A ball that flies past the edge of a box, and one that meets another."""
    b = RobotBuilder("balls")
    b.shape("ground", Box((1.0, 1.0, 0.2)))
    for name in ("passes", "meets", "stands"):
        b.body(name, 1.0, inertia=(0.004,) * 3)
        b.joint(name, Free(), "ground", name)
        b.shape(name, Sphere(0.1))
    robot = b.build()
    places = {"passes": [0.603, 0, 0.25], "meets": [0, 0, 0.2004], "stands": [0, 0.22, 0.2]}
    q = robot.pack_q({name: [*place, 1, 0, 0, 0] for name, place in places.items()})
    return robot, q, robot.pack_v({"passes": [0, 0, 0, 0.1, 0, -3.0], "meets": [1, 0, 0, 0.2, 3.0, -1.0]})


def cam() -> Scene:
    """A slide that rubs and has limits, behind a coupling with a closed form."""
    b = RobotBuilder("cam", (0.0, 0.0, 0.0))
    slide = Prismatic(axis=(1, 0, 0), friction=0.5, lower=-1.0, upper=0.05)
    for name, kind in {"crank": Revolute(axis=(0, 0, 1)), "slide": slide}.items():
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, kind, "ground", name)
    b.couple("cam", ["crank", "slide"], lambda q: np.array([q[0], q[0] + 0.5 * np.sin(q[0])]), ["crank"])
    return b.build(), np.array([0.0]), np.array([2.0])


SCENES: dict[str, Callable[[], Scene]] = {
    "arms": arms,
    "linkage": walking_linkage,
    "stack": stack,
    "strong": strong,
    "wheels": rolling_wheel,
    "balls": passing_ball,
    "cam": cam,
}
STEPS = {"stack": 2, "strong": 3, "wheels": 30, "arms": 60, "linkage": 60, "balls": 60, "cam": 40}


@cache
def scene(name: str) -> Scene:
    return SCENES[name]()


def differences(robot: Robot, q: np.ndarray, v: np.ndarray, steps: int, **options: Any) -> tuple[float, int]:
    """By how much steps differ from those of NumPy at most, side by side, and in how many of them something pressed."""
    simulation = Simulation(robot, q=q, v=v, integrator="rk4", tolerance=1e-13, sweeps=60, **options)
    chosen, tau = simulation.options, np.random.default_rng(1).normal(size=robot.nv)
    pairs, fallen = pairs_of(robot, **chosen.laws), float(np.linalg.norm(robot.gravity)) * 1e-3**2  # g h²
    depth = -fallen if chosen.penetration is None else chosen.penetration
    rows = sum(touch.cone.size for touch in touches(robot, q, pairs)) + len(joint_rows(robot, q, 1e-3).blocks)
    worst, pressed, pending, impulses = 0.0, 0, None, np.zeros(rows)
    for _ in range(steps):
        given = {"penetration": depth, "recovery": chosen.recovery, "tolerance": 1e-13}
        done = rk4_contact_step(robot, q, v, tau, 1e-3, pairs, pending=pending, start=impulses, **given)
        simulation.step(tau)
        apart = np.concatenate([robot.difference(done.q, np.array(simulation.q)), simulation.v - done.v])
        worst = max(worst, float(np.abs(apart).max()))
        contacts = 3 * len(done.touches) or None
        pressed += int(np.abs(done.solution.impulses[:contacts]).max() > 0.0)
        q, v, pending, impulses = done.q, done.v, done.pending, done.solution.impulses
        if worst > 1e-6:
            break
    return worst, pressed


@pytest.mark.parametrize("name", sweep(SCENES, ["arms", "stack", "strong", "balls"]))
def test_steps_are_those_of_numpy(name: str) -> None:
    worst, pressed = differences(*scene(name), STEPS[name])
    assert worst < 1e-10
    assert pressed > 0


@pytest.mark.parametrize("penetration", ["position", "velocity", "limited", -1e-4])
@pytest.mark.parametrize("name", every(2, ["cam", "arms"]))
def test_overlaps_count_as_for_numpy(name: str, penetration: str | float) -> None:
    worst, pressed = differences(*scene(name), STEPS[name], penetration=penetration, recovery=np.inf)
    assert worst < 1e-10
    assert pressed > 0


@pytest.mark.parametrize("law", [Restitution(0.7), Restitution(0.5, 0.3), Restitution(0.6, in_place=True)])
@pytest.mark.parametrize("name", every(2, ["linkage", "arms"]))
def test_impacts_rebound_as_for_numpy(name: str, law: Restitution) -> None:
    worst, pressed = differences(*scene(name), STEPS[name], restitution=law)
    assert worst < 1e-10
    assert pressed > 0
