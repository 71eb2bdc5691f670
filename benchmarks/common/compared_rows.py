"""The rows that `compare.py` measures; they use only what coupler has long offered, so that older trees run them."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np

import coupler
import robot as to_build  # benchmarks/robot.py
from coupler import Robot, RobotBuilder
from coupler.model import Shape, Sphere
from coupler.model.compose import compose
from coupler.spatial import Transform

__all__ = ["ROWS"]

STATES = 1024  # of a batch
ANGLES = {"hip": -0.8, "knee": 1.6}  # rad, of a quadruped that stands
Call = Callable[[], object]


def without_rotors(name: str) -> Robot:
    """The links of a bundled robot alone."""
    robot = coupler.robots.load(name)
    b = RobotBuilder(name, robot.gravity)
    for body in robot.bodies.values():
        if "rotor" not in body.name:
            b.body(body.name, body.mass, body.centre, body.inertia, ideal=True)
    for joint in robot.joints:
        if "rotor" not in joint.child:
            b.joint(joint.name, joint.kind, joint.parent, joint.child, joint.placement)
    return b.build()


def dynamics(load: Callable[[], Robot], function: str, states: int) -> Call:
    """A function of q, v and as many numbers as v, or of some of them, for one state or a batch."""
    robot, rng = load(), np.random.default_rng(0)
    q, v = robot.random_state(rng)
    inputs = {"mass_matrix": 1, "mass_matrix_inverse": 1, "bias_force": 2}.get(function, 3)
    vectors = [np.array(x) for x in (q, v, rng.normal(size=robot.nv))][:inputs]
    if states > 1:
        vectors = [np.tile(x, (states, 1)) for x in vectors]
    return partial(getattr(coupler, function), robot, *vectors)


def on_its_feet() -> Robot:
    """The Mini Cheetah over a floor, with balls as feet, and joints held by springs and dampers."""
    robot, joints = coupler.robots.load("mini_cheetah"), []
    for joint in robot.joints:
        if joint.name in robot.independent_joints and joint.kind.nv == 1:
            rest = next((angle for part, angle in ANGLES.items() if part in joint.name), 0.0)
            joint = replace(joint, kind=replace(joint.kind, stiffness=80.0, damping=4.0, rest=rest))
        joints.append(joint)
    feet = tuple(
        Shape(f"{name}_ball", body.name, Sphere(0.01), Transform.translation(at), friction=0.8, meets=0)
        for body in robot.bodies.values()
        for name, at in body.contacts.items()
        if name.endswith("foot_contact")
    )
    parts = robot.bodies, joints, robot.loops, robot.couplings, robot.elements
    return replace(compose(robot.name, robot.gravity, *parts), shapes=feet).with_floor(0.8)


def feet(height: float | None) -> Call:
    """A step of the Mini Cheetah on its feet, with the options of older trees; or 20 of a batch, from a height, m.

    These are Euler's method, overlaps that are parted at once, and in batches no watch on energy.
    """
    robot = on_its_feet()
    legs = {name: a for name in robot.independent_joints for part, a in ANGLES.items() if part in name}
    q = robot.pack_q({**legs, "floating_base": [0, 0, 0.3, 1, 0, 0, 0]})
    options = {"contacts": "*_ball on floor"} | _known(coupler.Simulation, integrator="euler", recovery=np.inf)
    simulation = coupler.Simulation(robot, 1e-3, q=q, **options)  # type: ignore[arg-type]
    simulation.run(3.0)
    if height is None:
        return simulation.step
    q0, v0 = np.tile(simulation.q, (STATES, 1)), np.tile(simulation.v, (STATES, 1))
    q0[:, 2] += height
    options |= _known(coupler.rollout, on_energy_gain="ignore")
    return partial(coupler.rollout, robot, q0, v0, np.zeros((STATES, 20, robot.nv)), 1e-3, **options)


def _known(function: Callable[..., object], **options: Any) -> dict[str, Any]:
    """The options that a function of this source tree has."""
    return {name: value for name, value in options.items() if name in signature(function).parameters}


def frames(function: str) -> Call:
    """The pose of a foot of the Mini Cheetah, or its Jacobian."""
    robot = coupler.robots.load("mini_cheetah")
    return partial(getattr(coupler, function), robot, robot.random_state(0)[0], robot.frame_names[-1])


def closing(describe: Callable[[], RobotBuilder], states: int = 0) -> Call:
    """Closes a configuration that is 0.01 (rad or m) off, or a batch of them."""
    robot = describe().build()
    noise = np.random.default_rng(0).normal(size=(*([states] if states else []), robot.nq))
    return partial(robot.close, robot.random_state(0)[0] + 0.01 * noise)


def building(describe: Callable[[], RobotBuilder]) -> Call:
    return lambda: describe().build()


def process(script: str, *, cold: bool) -> Call:
    """Runs a script in a process of its own, with nothing in the cache on disk, or with what it left there before."""

    def run() -> None:
        with TemporaryDirectory() as empty:
            environment = os.environ | {"COUPLER_CACHE": empty if cold else kept}
            subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=environment, check=True)

    kept = mkdtemp()
    atexit.register(rmtree, kept, ignore_errors=True)
    return run


FIRST = """
import coupler
robot = coupler.robots.load("mini_cheetah")
q, v = robot.random_state(0)
coupler.forward_dynamics(robot, q, v, v)
"""
ROBOTS: dict[str, Callable[[], Robot]] = {
    "quadruped, no rotors": partial(without_rotors, "mini_cheetah"),
    "humanoid, no rotors": partial(without_rotors, "mit_humanoid"),
    "chain of 12 geared links": partial(coupler.robots.load, "geared_chain", links=12),
    "1 four-bar": lambda: to_build.four_bars(1).build(),
    "8 four-bars": lambda: to_build.four_bars(8).build(),
} | {name: partial(coupler.robots.load, name) for name in ("mini_cheetah", "mit_humanoid", "tello")}
BUILT: dict[str, Callable[[], RobotBuilder]] = {
    "ring of 1000 bodies": partial(to_build.ring, 1000),
    "ladder of 72 rungs": partial(to_build.ladder, 72),
    "tree of 1000 four-bars": partial(to_build.four_bars, 1000),
    "chain of 1000 geared links": partial(to_build.geared_chain, 1000),
    "hexapod": to_build.hexapod,
}
# By name, what prepares a call.
ROWS: dict[str, Callable[[], Call]] = {
    f"{name}, {function}, {way}": partial(dynamics, load, function, states)
    for name, load in ROBOTS.items()
    for function in ("forward_dynamics", "inverse_dynamics")
    for way, states in (("one", 1), ("batch", STATES))
}
ROWS |= {
    f"mini_cheetah, {function}, one": partial(dynamics, ROBOTS["mini_cheetah"], function, 1)
    for function in ("mass_matrix", "mass_matrix_inverse", "bias_force")
}
ROWS |= {
    f"chain of {links} geared links, forward_dynamics, {way}": partial(
        dynamics, partial(coupler.robots.load, "geared_chain", links=links), "forward_dynamics", states
    )
    for links in (96, 1000)
    for way, states in (("one", 1), ("batch", STATES))
}
ROWS |= {f"mini_cheetah, {function}, one": partial(frames, function) for function in ("frame_pose", "frame_jacobian")}
ROWS |= {
    "feet, one step": partial(feet, None),
    "feet, batch that stands": partial(feet, 0.0),
    "feet, batch that lands": partial(feet, 0.05),
}
ROWS |= {f"build {name}": partial(building, describe) for name, describe in BUILT.items()}
ROWS |= {f"close {name}": partial(closing, describe) for name, describe in BUILT.items() if "chain" not in name}
ROWS |= {
    "close hexapod, batch": partial(closing, to_build.hexapod, STATES),
    "close 1 four-bar, batch": partial(closing, partial(to_build.four_bars, 1), STATES),
    "import": partial(process, "import coupler", cold=True),
    "mini_cheetah, process to first dynamics, cold": partial(process, FIRST, cold=True),
    "mini_cheetah, process to first dynamics, cached": partial(process, FIRST, cold=False),
}
